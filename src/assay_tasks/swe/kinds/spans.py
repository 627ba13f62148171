"""Spans of time with a diary."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_SPANS = '''\
"""Spans of time."""


class Span:
    """Minutes from start up to end, the end itself not included. ValueError where the end is before the start."""

    def __init__(self, start, end):
        if end < start:
            raise ValueError("a span cannot end before it starts")
        self.start = start
        self.end = end

    def length(self):
        """How many minutes it has."""
        return self.end - self.start

    def has_minute(self, minute):
        """Whether a minute is in it."""
        return self.start <= minute < self.end

    def meets(self, other):
        """Whether each starts before the other ends."""
        return self.start < other.end and other.start < self.end

    def common(self, other):
        """The span that is in both; None where the two do not meet."""
        if not self.meets(other):
            return None
        return Span(max(self.start, other.start), min(self.end, other.end))

    def pair(self):
        """Start and end as a list."""
        return [self.start, self.end]
'''

_DIARY = '''\
"""Spans of a day."""

from .spans import Span


def merge_spans(spans):
    """As few spans as cover the same minutes, in order of time. Spans that touch become one, empty ones are left out."""
    merged = []
    for span in sorted(spans, key=lambda one: one.start):
        if span.length() == 0:
            continue
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def free_gaps(busy, day, least=1):
    """The spans of a day that no busy one covers and that have at least so many minutes, in order of time."""
    gaps = []
    at = day.start
    for span in merge_spans(busy):
        part = span.common(day)
        if part is None:
            continue
        if part.start - at >= least:
            gaps.append(Span(at, part.start))
        at = part.end
    if day.end - at >= least:
        gaps.append(Span(at, day.end))
    return gaps


def busy_minutes(busy, day):
    """How many minutes of a day are covered."""
    return day.length() - sum(gap.length() for gap in free_gaps(busy, day))


def first_slot(busy, day, minutes):
    """The start of the first gap with so many minutes; None where there is none."""
    gaps = free_gaps(busy, day, minutes)
    return gaps[0].start if gaps else None
'''


def _span(rng: Random, most: int = 60) -> str:
    start = rng.randint(0, most)
    return f"Span({start}, {start + rng.choice((0, rng.randint(1, 25), rng.randint(5, 30)))})"


def _near(rng: Random) -> list[str]:
    a = rng.randint(5, 40)
    b = a + rng.randint(3, 20)
    c, d = sorted((rng.choice((a, b, b, a + 1, rng.randint(0, 60))), rng.choice((a, b, rng.randint(0, 60)))))
    return [f"one = Span({a}, {b})", f"two = Span({c}, {d + (d == c)})"]


def _span_asked(rng: Random) -> Example:
    asks = ("one.meets(two)", "two.meets(one)", "one.common(two) and one.common(two).pair()", "two.length()")
    return _near(rng), rng.choice(asks)


def _span_minute(rng: Random) -> Example:
    a = rng.randint(0, 40)
    b = a + rng.randint(1, 20)
    return [f"span = Span({a}, {b})"], f"span.has_minute({rng.choice((a, b, a - 1, b - 1, rng.randint(0, 60)))})"


def _span_made(rng: Random) -> Example:
    a = rng.randint(5, 40)
    return [f"span = Span({a}, {a + rng.choice((-1, -5, 0, 7))})"], rng.choice(("span.pair()", "span.length()"))


def _spans(rng: Random, count: int) -> str:
    return f"[{', '.join(_span(rng) for _ in range(count))}]"


def _spans_merged(rng: Random) -> Example:
    a, b = rng.randint(0, 20), rng.randint(3, 9)
    touching = f"[Span({a + b}, {a + 2 * b}), {_span(rng)}, Span({a}, {a + b})]"
    inside = f"[Span({a}, {a + 30}), Span({a + 4}, {a + b + 4}), {_span(rng, 90)}]"
    chosen = rng.choice((_spans(rng, rng.randint(2, 4)), touching, inside))
    return [f"spans = {chosen}"], "[span.pair() for span in merge_spans(spans)]"


def _gaps(rng: Random) -> Example:
    lines = [f"busy = {_spans(rng, rng.randint(1, 4))}", f"day = Span({rng.randint(0, 12)}, {rng.randint(60, 90)})"]
    least = rng.choice(("", "", f", {rng.randint(2, 15)}"))
    return lines, rng.choice((f"[gap.pair() for gap in free_gaps(busy, day{least})]", "busy_minutes(busy, day)"))


def _slot(rng: Random) -> Example:
    a, n = rng.randint(3, 20), rng.randint(4, 10)
    day = f"day = Span({rng.choice((0, a - 2))}, {a + 40 + rng.choice((0, n, n + 5))})"
    lines = [f"busy = [Span({a}, {a + 9}), Span({a + 9 + n}, {a + 40})]", day]
    return lines, f"first_slot(busy, day, {rng.choice((n, n + 1, 2, 3))})"


KIND = Kind(
    "spans",
    {"spans": _SPANS, "diary": _DIARY},
    {
        "Span span spans": ("Span span spans", "Slot slot slots", "Period period periods", "Interval interval intervals"),
        "diary": ("diary", "agenda", "planner"),
        "meets": ("meets", "overlaps", "clashes"),
        "common": ("common", "overlap", "shared_part"),
        "has_minute": ("has_minute", "contains", "covers"),
        "merge_spans": ("merge_spans", "union_of", "join_all"),
        "free_gaps": ("free_gaps", "gaps_of", "find_free"),
        "busy_minutes": ("busy_minutes", "used_minutes", "minutes_taken"),
        "first_slot": ("first_slot", "earliest", "next_start"),
    },
    (_span_asked, _span_minute, _span_made, _spans_merged, _gaps, _slot),
    (
        Plant("missing step", "diary", "sorted(spans, key=lambda one: one.start)", "spans"),
        Plant("missing step", "diary", "max(merged[-1].end, span.end)", "span.end"),
        Plant("wrong name", "diary", "        at = part.end\n", "        at = part.start\n"),
        Plant("missing step", "diary", "for span in merge_spans(busy):", "for span in busy:"),
        Plant("missing step", "diary", "free_gaps(busy, day, minutes)", "free_gaps(busy, day)"),
    ),
)
"""Spans of time with a diary."""
