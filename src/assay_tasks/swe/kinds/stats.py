"""Statistics with marks."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_STATS = '''\
"""Numbers about lists of numbers."""


def mean_of(values):
    """The mean. ValueError without values."""
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def median_of(values):
    """The middle value in order of size, or the mean of the two middle ones. ValueError without values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def modes_of(values):
    """The values that occur most often, in order of size; none without values."""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    most = max(counts.values(), default=0)
    return sorted(value for value, count in counts.items() if count == most)


def spread_of(values):
    """The largest value minus the smallest; 0 without values."""
    return max(values) - min(values) if values else 0


def moving_means(values, size):
    """The means of all runs of so many neighbours. ValueError for a size below 1."""
    if size < 1:
        raise ValueError("size must be positive")
    return [mean_of(values[at : at + size]) for at in range(len(values) - size + 1)]
'''

_MARKS = '''\
"""Marks of pupils."""

from .stats import mean_of, median_of


def grade_of(points, most=100):
    """A from 90 percent of the most points, B from 75, C from 50, D below. ValueError for points below 0 or above the most."""
    if points < 0 or points > most:
        raise ValueError("no such points")
    percent = points * 100 / most
    if percent >= 90:
        return "A"
    if percent >= 75:
        return "B"
    if percent >= 50:
        return "C"
    return "D"


def ranked(points):
    """[rank, name] of each in a dict of points by name, most points first. Equal points have one rank, and the next is skipped.

    Names of one rank are in alphabetical order: points 9, 7, 7, 4 have the ranks 1, 2, 2, 4.
    """
    names = sorted(points, key=lambda name: (-points[name], name))
    result = []
    for place, name in enumerate(names, 1):
        if result and points[name] == points[names[place - 2]]:
            result.append([result[-1][0], name])
        else:
            result.append([place, name])
    return result


def above_average(points):
    """Names with more points than the mean of all, in alphabetical order."""
    if not points:
        return []
    mean = mean_of(list(points.values()))
    return sorted(name for name, value in points.items() if value > mean)


def final_points(tests, drop_lowest=False):
    """The median of the points of several tests, without the lowest one if it is dropped and there are two or more."""
    kept = sorted(tests)
    if drop_lowest and len(kept) > 1:
        kept = kept[1:]
    return median_of(kept)


def grade_counts(points):
    """How many have each of the grades A, B, C and D, as a dict with all four."""
    counts = {"A": 0, "B": 0, "C": 0, "D": 0}
    for value in points.values():
        counts[grade_of(value)] += 1
    return counts
'''

_PUPILS = ["Ann", "Ben", "Cem", "Dora", "Eli", "Fay", "Gil"]


def _values(rng: Random, least: int = 1) -> list[int]:
    return [rng.randint(0, 9) for _ in range(rng.randint(least, 6))]


def _stats_asked(rng: Random) -> Example:
    asks = ("mean_of(values)", "median_of(values)", "modes_of(values)", "spread_of(values)")
    return [f"values = {_values(rng)}"], rng.choice(asks)


def _median_asked(rng: Random) -> Example:
    return [f"values = {_values(rng, 3)}"], "median_of(values)"


def _modes_asked(rng: Random) -> Example:
    values = [rng.randint(1, 4) for _ in range(rng.randint(0, 7))]
    return [f"values = {values}"], rng.choice(("modes_of(values)", "spread_of(values)"))


def _moving(rng: Random) -> Example:
    return [f"values = {_values(rng, 3)}"], f"moving_means(values, {rng.choice((1, 2, 2, 3, 0))})"


def _stats_refused(rng: Random) -> Example:
    asks = ("mean_of([])", "median_of([])", "spread_of([])", "modes_of([])", f"moving_means({_values(rng)}, -1)")
    return [], rng.choice(asks)


def _draw_grade(rng: Random) -> Example:
    most = rng.choice((100, 100, 40, 20))
    edge = rng.choice((most * 90 // 100, most * 75 // 100, most // 2, 0, most)) + rng.choice((0, 0, 1, -1))
    return [], f"grade_of({rng.choice((edge, edge, rng.randint(0, most)))}{'' if most == 100 else f', {most}'})"


def _points(rng: Random, step: int = 1) -> str:
    return str({name: rng.randint(3, 10) * step for name in rng.sample(_PUPILS, rng.randint(3, 5))})


def _ranks(rng: Random) -> Example:
    return [f"points = {_points(rng)}"], rng.choice(("ranked(points)", "ranked(points)", "above_average(points)"))


def _finals(rng: Random) -> Example:
    values = rng.choice((_values(rng), _values(rng), [rng.randint(0, 9)]))
    return [], f"final_points({values}{rng.choice(('', ', True', ', drop_lowest=True'))})"


def _draw_count(rng: Random) -> Example:
    return [f"points = {_points(rng, rng.choice((10, 9, 5)))}"], "grade_counts(points)"


KIND = Kind(
    "stats",
    {"stats": _STATS, "marks": _MARKS},
    {
        "stats": ("stats", "figures", "summary"),
        "marks": ("marks", "grades", "school"),
        "mean_of": ("mean_of", "average", "avg"),
        "median_of": ("median_of", "median", "middle_of"),
        "modes_of": ("modes_of", "modes", "most_frequent"),
        "spread_of": ("spread_of", "value_range", "width_of"),
        "moving_means": ("moving_means", "rolling", "smoothed"),
        "grade_of": ("grade_of", "letter_for", "to_grade"),
        "ranked": ("ranked", "ranking", "standings"),
        "above_average": ("above_average", "better_half", "over_mean"),
        "final_points": ("final_points", "final_score", "overall"),
        "grade_counts": ("grade_counts", "histogram", "count_grades"),
    },
    (_stats_asked, _median_asked, _modes_asked, _moving, _stats_refused, _draw_grade, _ranks, _finals, _draw_count),
    (
        Plant("missing step", "stats", "ordered = sorted(values)", "ordered = list(values)"),
        Plant("missing step", "marks", "kept = sorted(tests)", "kept = list(tests)"),
        Plant("missing case", "marks", "drop_lowest and len(kept) > 1", "drop_lowest"),
        Plant("wrong default", "marks", "grade_of(value)] += 1", "grade_of(value, 10)] += 1"),
        Plant("missing case", "marks", "key=lambda name: (-points[name], name)", "key=lambda name: -points[name]"),
        Plant("wrong name", "marks", "[result[-1][0], name]", "[place - 1, name]"),
    ),
)
"""Statistics with marks."""
