"""Dates of a year from what is said about them."""

from __future__ import annotations

from calendar import isleap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.exact import ExactMatch
from assay_tasks.puzzles.clued import Clue, Clued
from assay_tasks.puzzles.constraints import Constraint, Count
from assay_tasks.puzzles.solver import Model

__all__ = ["Calendar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar(Clued):
    r"""A date of a year, from what is said about day, month and weekday. The level counts how little each clue says.

    >>> facts = {"names": ["year", "2023"], "year": 2023, "clues": [["weekday", 4], ["days", 28], ["over", 20]]}
    >>> Calendar().fields(facts)["clues"].split("\n")[1], Calendar().solve(facts).answer
    ('- The month has 28 days.', '02-24')
    """

    name: str = "riddles/calendar"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = (
        ("month", "weekday", "third"),
        ("weekday", "days", "letter", "over", "under", "by", "odd"),
        ("weekday", "half", "days", "odd", "third", "letter"),
        ("not weekday", "days", "letter", "over", "under", "by", "odd", "week"),
    )
    templates: ClassVar[tuple[str, ...]] = (
        "Somebody's holiday in {year} begins on a day of which this is known:\n\n{clues}\n\nOn which date does it begin? "
        "Answer with month and day as two digits each, such as 03-09 for 9 March.",
        "Find the date in the year {year} that fits all of these statements (weekdays are those of the usual calendar):\n\n"
        "{clues}\n\nWrite it as MM-DD; 25 April would be 04-25.",
        "A letter was written in {year}. The date can be worked out:\n\n{clues}\n\nGive it in the form month-day with two "
        "digits each, as in 11-02 for the second of November.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A date at random; clues of the level's kinds that are needed."""
        kinds = self.shapes[level - 1]
        year = rng.randint(1950, 2049)
        truth = rng.randrange(365 + isleap(year))
        when = date(year, 1, 1) + timedelta(truth)
        pool = [clue for _ in range(25) if (clue := _date_clue(rng.choice(kinds), when, rng)) is not None]
        return self.with_clues({"names": ["year", str(year)], "year": year}, (truth,), pool, rng)

    def base(self, facts: Facts) -> Model:
        """The number of the day in the year, from 0."""
        model = Model()
        model.var(range(365 + isleap(facts["year"])))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """The days that fit."""
        return Count((0,), (_days(facts["year"], tuple(clue)),), 1, 1)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """In words of the calendar."""
        return _CALENDAR[clue[0]].format(_said_date(clue[0], clue[1]))

    def solve(self, facts: Facts) -> Solution:
        """Day by day."""
        return self.sift(facts)

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """Month and day."""
        when = date(facts["year"], 1, 1) + timedelta(values[0])
        return Solution(answer=f"{when.month:02d}-{when.day:02d}")

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Clues in another order."""
        return {**facts, "clues": rng.sample(facts["clues"], len(facts["clues"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The year and clues."""
        return {**Clued.fields(self, facts), "year": str(facts["year"])}

    def verifier(self, form: Form) -> Verifier:
        """The date as asked for."""
        return ExactMatch(strip=True, where=form.place)


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


_CALENDAR = {
    "month": "The month is {}.",
    "weekday": "It is a {}.",
    "not weekday": "It is not a {}.",
    "third": "The day of the month is {}.",
    "half": "It lies in the {} half of the year (the first half is January to June).",
    "sum": "The number of the month and the day of the month add up to {}.",
    "days": "The month has {} days.",
    "letter": "The English name of the month contains the letter {}.",
    "over": "The day of the month is later than the {}.",
    "under": "The day of the month is earlier than the {}.",
    "by": "The day of the month is divisible by {}.",
    "odd": "The day of the month is {}.",
    "week": "A week later it is {}.",
}


def _said_date(kind: str, value: Any) -> str:
    index = value if isinstance(value, int) else 0
    match kind:
        case "weekday" | "not weekday":
            return _WEEKDAYS[index]
        case "month":
            return _MONTHS[index - 1]
        case "third":
            return ("1 to 10", "11 to 20", "21 or later")[index]
        case "half":
            return ("first", "second")[index]
        case "over" | "under":
            tail = "th" if 10 < value < 14 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
            return f"{value}{tail}"
        case "odd":
            return ("even", "odd")[index]
        case "week":
            return ("still the same month", "already the next month")[index]
        case _:
            return str(value)


def _of_date(kind: str, when: date) -> Any:
    """What a date has, of each kind that is one value."""
    match kind:
        case "month":
            return when.month
        case "weekday" | "not weekday":
            return when.weekday()
        case "third":
            return min(2, (when.day - 1) // 10)
        case "half":
            return int(when.month > 6)
        case "sum":
            return when.month + when.day
        case "days":
            after = date(when.year + when.month // 12, when.month % 12 + 1, 1)
            return (after - timedelta(1)).day
        case "odd":
            return when.day % 2
        case _:
            return int((when + timedelta(7)).month != when.month)


def _date_clue(kind: str, when: date, rng: Random) -> list[Any] | None:
    """A true clue of a kind about a date."""
    match kind:
        case "letter":
            return [kind, rng.choice([c for c in _MONTHS[when.month - 1].lower() if c in "aeurybjm"])]
        case "over":
            return [kind, rng.randint(1, when.day - 1)] if when.day > 1 else None
        case "under":
            return [kind, rng.randint(when.day + 1, min(31, when.day + 9))] if when.day < 31 else None
        case "by":
            fits = [k for k in (3, 4, 5, 6, 7) if not when.day % k]
            return [kind, rng.choice(fits)] if fits else None
        case "not weekday":
            return [kind, rng.choice([d for d in range(7) if d != when.weekday()])]
        case _:
            return [kind, _of_date(kind, when)]


@lru_cache(maxsize=4096)
def _days(year: int, clue: tuple[Any, ...]) -> int:
    """The days of a year that fit a clue."""
    kind, value = clue
    mask, when = 0, date(year, 1, 1)
    for number in range(365 + isleap(year)):
        match kind:
            case "letter":
                fits = value in _MONTHS[when.month - 1].lower()
            case "over":
                fits = when.day > value
            case "under":
                fits = when.day < value
            case "by":
                fits = not when.day % value
            case "not weekday":
                fits = when.weekday() != value
            case _:
                fits = _of_date(kind, when) == value
        mask |= fits << number
        when += timedelta(1)
    return mask
