"""Word problems: shopping, work, ages, mixtures, travel, percentages, parts, dates, times, currencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.tasks.problems import Problems
from assay.verify.exact import ExactMatch
from assay_tasks.math.arithmetic import number_in
from assay_tasks.math.exact import ExactProblem, sum_text, wrap_number
from assay_tasks.math.quantities import Quantities
from assay_tasks.math.stories import cents, draw_aside, list_parts, people, said_aside

__all__ = ["Ages", "Calendar", "Clock", "Currencies", "Mixtures", "Parts", "Percentages", "Shopping", "Travel", "Work", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shopping(ExactProblem):
    r"""The change of a purchase. The level is the number of goods; from level 3 there is a discount.

    >>> facts = {"who": "Ada", "goods": [["pens", 3, 120], ["maps", 1, 450]], "off": 0, "paid": 2000, "aside": None}
    >>> Shopping().solve(facts).steps
    'pens: 3 × 1.20 = 3.60\nmaps: 1 × 4.50 = 4.50\nin all 8.10\n20.00 - 8.10 = 11.90'
    """

    name: str = "words/shopping"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "{who} buys {goods}. {off}{aside}{who} pays with {paid} dollars. How many dollars of change are given back?",
        "In a shop, {who} takes {goods}. {aside}{off}At the till {who} hands over {paid} dollars. How much change, in "
        "dollars, does "
        "{who} get?",
        "{aside}{who} wants {goods}. {off}How many dollars are left of {paid} dollars after paying?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Goods with numbers and prices; a note that suffices."""
        step = 5 if level <= 2 else 20  # a discount then leaves whole cents
        goods = [(g, rng.randint(1, 9), step * rng.randint(4, 2000 // step)) for g in rng.sample(_GOODS, level)]
        total = sum(n * price for _, n, price in goods)
        off = rng.choice((5, 10, 15, 20, 25, 30)) if level > 2 else 0
        note = 1000 if total < 10_000 else 5000
        return {
            "who": people(1, rng)[0],
            "goods": [list(g) for g in goods],
            "off": off,
            "paid": (total // note + 1) * note,
            "aside": draw_aside(rng),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The purchase in words."""
        goods = [f"{n} {g} at {cents(p)} dollars each" for g, n, p in facts["goods"]]
        off = f"There is a discount of {facts['off']}% on the whole purchase. " if facts["off"] else ""
        return {
            "who": facts["who"],
            "goods": list_parts(goods),
            "off": off,
            "aside": said_aside(facts["aside"]),
            "paid": str(facts["paid"] // 100),
        }

    def solve(self, facts: Facts) -> Solution:
        """Item by item."""
        steps = [f"{g}: {n} × {cents(p)} = {cents(n * p)}" for g, n, p in facts["goods"]]
        total = sum(n * p for _, n, p in facts["goods"])
        if len(steps) > 1:
            steps.append(f"in all {cents(total)}")
        if facts["off"]:
            less = total * (100 - facts["off"]) // 100
            steps.append(f"less {facts['off']}%: {cents(less)}")
            total = less
        change = facts["paid"] - total
        steps.append(f"{cents(facts['paid'])} - {cents(total)} = {cents(change)}")
        return Solution(answer=cents(change), steps="\n".join(steps), effort=len(steps))


_GOODS = (
    "pens",
    "maps",
    "loaves of bread",
    "notebooks",
    "bottles of juice",
    "candles",
    "boxes of tea",
    "puzzles",
    "mugs",
    "scarves",
    "light bulbs",
    "bags of rice",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(ExactProblem):
    r"""How long several need together. The level is the number of workers or pipes, less one; some undo the work.

    >>> Work().solve({"hours": [3, 6], "signs": [1, 1], "share": "1"}).steps
    'in one hour 1/3 + 1/6 = 1/2\n1 / (1/2) = 2'
    """

    name: str = "words/work"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "A tank is filled or emptied by pipes, each at a constant rate. {pipes} The tank is empty and all these pipes "
        "are opened. How "
        "many hours does it take until it is {share} full? Answer with a whole number or a fraction.",
        "{pipes} All of them are open at the same time, and the tank is empty at the beginning. After how many hours "
        "is it {share} "
        "full? Give an exact number of hours.",
        "At noon all pipes of an empty tank are opened; they work evenly. {pipes} How many hours after noon is the "
        "tank {share} full? "
        "Give a whole number or a fraction.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Rates whose sum is positive."""
        while True:
            hours = [rng.randint(2, 30) for _ in range(level + 1)]
            signs = [1, *(rng.choice((1, 1, -1)) for _ in range(level))]
            if sum(Fraction(s, h) for s, h in zip(signs, hours, strict=True)) > 0:
                return {"hours": hours, "signs": signs, "share": rng.choice(("1", "1", "1/2", "3/4", "2/3"))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The pipes in sentences."""
        lines = [
            f"Pipe {c} alone {'fills the empty' if s > 0 else 'empties the full'} tank in {h} hours."
            for c, s, h in zip("ABCDE", facts["signs"], facts["hours"], strict=False)
        ]
        share = facts["share"]
        return {"pipes": " ".join(lines), "share": "completely" if share == "1" else share}

    def solve(self, facts: Facts) -> Solution:
        """The share of the work in an hour."""
        rates = [Fraction(s, h) for s, h in zip(facts["signs"], facts["hours"], strict=True)]
        rate, share = sum(rates, Fraction(0)), Fraction(facts["share"])
        said = " ".join(f"{'-' if r < 0 else '+'} {abs(r)}" for r in rates).removeprefix("+ ")
        steps = f"in one hour {said} = {rate}\n{share} / ({rate}) = {share / rate}"
        return Solution(answer=str(share / rate), steps=steps, effort=len(rates) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages(ExactProblem):
    r"""How old somebody is, from comparisons with others and a sum. The level is the number of people, less one.

    >>> facts = {"who": ["Ada", "Ben"], "links": [["times", 3]], "total": 48, "in": 0, "asked": 1}
    >>> Ages().solve(facts).steps
    'with x for the age of Ada, Ben is 3x\n4x = 48, so x = 12\nBen: 36'
    """

    name: str = "words/ages"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "{links} {total} How old is {asked} now?",
        "{total} {links} What is the age of {asked} today, in years?",
        "These are facts about ages, in whole years: {links} {total} How many years old is {asked} at present?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A youngest person, and each other one by the one before."""
        age = rng.randint(3, 14)
        links: list[list[Any]] = []
        ages = [age]
        for _ in range(level):
            last = ages[-1]
            kind = rng.choice(["older", "older"] + ["times"] * (last < 25) + ["younger"] * (last > 4))
            by = rng.randint(2, 3) if kind == "times" else rng.randint(1, min(20, last - 3) if kind == "younger" else 20)
            links.append([kind, by])
            ages.append({"times": last * by, "older": last + by, "younger": last - by}[kind])
        later = rng.choice((0, 0, 2, 5, 10))
        return {
            "who": people(level + 1, rng),
            "links": links,
            "total": sum(ages) + later * len(ages),
            "in": later,
            "asked": rng.randrange(level + 1),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The comparisons in sentences."""
        who = facts["who"]
        lines: list[str] = []
        for i, (kind, by) in enumerate(facts["links"]):
            more = f"{by} times as old as" if kind == "times" else f"{by} year{'s' * (by > 1)} {kind} than"
            lines.append(f"{who[i + 1]} is {more} {who[i]}.")
        total = f"Together {list_parts(sorted(who))} are {facts['total']} years old."
        if facts["in"]:
            total = f"In {facts['in']} years, {list_parts(sorted(who))} will be {facts['total']} years old together."
        return {"links": " ".join(lines), "total": total, "asked": who[facts["asked"]]}

    def solve(self, facts: Facts) -> Solution:
        """All ages by that of the first."""
        forms: list[tuple[int, int]] = [(1, 0)]
        for kind, by in facts["links"]:
            k, b = forms[-1]
            forms.append((k * by, b * by) if kind == "times" else (k, b + (by if kind == "older" else -by)))
        k, b = sum(f[0] for f in forms), sum(f[1] for f in forms)
        now = facts["total"] - facts["in"] * len(forms)
        x = Fraction(now - b, k)
        who: list[str] = facts["who"]
        asked = int(facts["asked"])
        said = ", ".join(f"{w} is {_linear(*f)}" for w, f in zip(who[1:], forms[1:], strict=True))
        own: tuple[int, int] = forms[asked]
        answer = own[0] * x + own[1]
        steps = f"with x for the age of {who[0]}, {said}\n{_linear(k, b)} = {now}, so x = {x}\n{who[asked]}: {answer}"
        return Solution(answer=str(answer), steps=steps, effort=2 * len(forms))


def _linear(k: int, b: int) -> str:
    return sum_text([k, b], ["x", ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixtures(ExactProblem):
    r"""The strength of a mixture. The level is the number of parts, less one.

    >>> Mixtures().solve({"parts": [[2, 30], [3, 80]], "water": 0}).steps
    '2 × 30% + 3 × 80% = 3\n3 / 5 = 60%'
    """

    name: str = "words/mixtures"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "Somebody mixes {parts}. What percentage of acid does the mixture have? Answer exactly, with the number of percent.",
        "In a laboratory {parts} are poured together. How many percent of the mixture are acid? Give the exact number "
        "of percent.",
        "{Parts} are combined. Find the exact acid content of the result in percent.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Litres and percentages."""
        parts = [[rng.randint(1, 30), 5 * rng.randint(1, 19)] for _ in range(level + 1)]
        return {"parts": parts, "water": rng.choice((0, 0, rng.randint(1, 10))) if level > 1 else 0}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The parts in words."""
        parts = [f"{n} litre{'s' * (n > 1)} of a solution with {p}% acid" for n, p in facts["parts"]]
        if facts["water"]:
            parts.append(f"{facts['water']} litre{'s' * (facts['water'] > 1)} of pure water")
        return {"parts": list_parts(parts), "Parts": list_parts(parts)}

    def verifier(self, form: Form) -> Verifier:
        """The number, with or without the sign."""
        return replace(number_in(form), percent="optional")

    def solve(self, facts: Facts) -> Solution:
        """The acid, of all that there is."""
        acid = sum((Fraction(n * p, 100) for n, p in facts["parts"]), Fraction(0))
        total = sum(n for n, _ in facts["parts"]) + facts["water"]
        said = " + ".join(f"{n} × {p}%" for n, p in facts["parts"])
        answer = 100 * acid / total
        return Solution(
            answer=str(answer),
            steps=f"{said} = {acid}\n{wrap_number(acid)} / {total} = {wrap_number(answer)}%",
            effort=len(facts["parts"]) * 2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Travel(ExactProblem):
    r"""Distances, times and average speeds. The level is the number of legs.

    >>> Travel().solve({"who": "Ada", "legs": [[30, 2], [60, 1]], "what": "speed", "aside": None}).steps
    '30 × 2 = 60\n60 × 1 = 60\n120 km in 3 h: 40 km/h'
    """

    name: str = "words/travel"

    templates: ClassVar[tuple[str, ...]] = (
        "{who} travels {legs}. {aside}{question}",
        "{aside}On a tour {who} goes {legs}. {question}",
        "A journey of {who}'s: {legs}. {aside}{question}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Legs with a speed and a time in hours, quarters at most."""
        legs = [[rng.randint(2, 30) * 4, rng.randint(1, 6) if level < 3 else rng.randint(1, 24)] for _ in range(level)]
        if level > 2:
            legs = [[speed, str(Fraction(time, 4))] for speed, time in legs]
        what = rng.choice(("way", "speed")) if level > 1 else rng.choice(("way", "way", "late"))
        return {"who": people(1, rng)[0], "legs": legs, "what": what, "aside": draw_aside(rng)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The legs and the question in words."""
        legs = [f"{_hours(time)} at {speed} km/h" for speed, time in facts["legs"]]
        question = {
            "way": "How many kilometres is that in all?",
            "speed": "What is the average speed over the whole time, in km/h? Give an exact number.",
            "late": "How many hours would the same way have taken at half of that speed?",
        }[facts["what"]]
        return {
            "who": facts["who"],
            "legs": ", then ".join(legs),
            "question": question,
            "aside": said_aside(facts["aside"]),
        }

    def solve(self, facts: Facts) -> Solution:
        """Leg by leg."""
        legs = [(speed, Fraction(time)) for speed, time in facts["legs"]]
        steps = [f"{speed} × {time} = {speed * time}" for speed, time in legs]
        way, hours = sum((s * t for s, t in legs), Fraction(0)), sum((t for _, t in legs), Fraction(0))
        match facts["what"]:
            case "way":
                answer, said = way, f"in all {way} km"
            case "speed":
                answer, said = way / hours, f"{way} km in {hours} h: {way / hours} km/h"
            case _:
                answer, said = 2 * hours, f"at {legs[0][0]}/2 km/h: {2 * hours} h"
        return Solution(answer=str(answer), steps="\n".join([*steps, said]), effort=2 * len(legs) + 1)


def _hours(time: int | str) -> str:
    value = Fraction(time)
    return f"{value} hour{'s' * (value != 1)}" if value.denominator == 1 else f"{int(value * 60)} minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentages(ExactProblem):
    r"""A price after several changes, or before them. The level is the number of changes.

    >>> Percentages().solve({"start": "200", "changes": [10, -25], "back": False}).steps
    '200 × 110/100 = 220\n220 × 75/100 = 165'
    """

    name: str = "words/percentages"

    templates: ClassVar[tuple[str, ...]] = (
        "{thing} {start} dollars. {changes} {question} Give the exact number of dollars.",
        "{thing} {start} dollars. {changes} {question} Answer exactly, with a decimal number or a fraction.",
        "Prices change: {small} {start} dollars. {changes} {question} Do not round.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Changes by multiples of five percent."""
        changes = [5 * rng.choice((-1, 1)) * rng.randint(1, 10) for _ in range(level)]
        back = rng.random() < 0.4
        start = Fraction(rng.randint(4, 200) * 5)
        shown = start
        for c in changes:
            shown = shown * (100 + c) / 100
        return {"start": str(shown if back else start), "changes": changes, "back": back}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The changes in sentences."""
        starts = ("First it {}", "Then it {}")
        lines = [f"{starts[i > 0].format('rises' if c > 0 else 'falls')} by {abs(c)}%." for i, c in enumerate(facts["changes"])]
        value = Fraction(facts["start"])
        shown = str(int(value)) if value.denominator == 1 else str(float(value)) if _ends(value) else str(value)
        if facts["back"]:
            thing, question = (
                "After all the changes below, the price of a bicycle is",
                "What was the price before them?",
            )
        else:
            thing, question = "At the beginning, the price of a bicycle is", "What is the price in the end?"
        return {
            "thing": thing,
            "small": thing[0].lower() + thing[1:],
            "start": shown,
            "changes": " ".join(lines),
            "question": question,
        }

    def solve(self, facts: Facts) -> Solution:
        """Factor by factor, forwards or backwards."""
        value = Fraction(facts["start"])
        steps: list[str] = []
        for c in reversed(facts["changes"]) if facts["back"] else facts["changes"]:
            found = value * 100 / (100 + c) if facts["back"] else value * (100 + c) / 100
            how = f"100/{100 + c}" if facts["back"] else f"{100 + c}/100"
            steps.append(f"{value} × {how} = {found}")
            value = found
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps))


def _ends(value: Fraction) -> bool:
    """Whether a fraction is short as a decimal."""
    return 10**8 % value.denominator == 0 and value < 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(ExactProblem):
    r"""What there was, when parts of the rest went one after the other. The level is the number of parts.

    >>> Parts().solve({"who": "Ada", "what": "coins", "parts": ["1/3", "1/4"], "left": 30, "back": True, "aside": None}).steps
    '30 are 3/4: before it were 40\n40 are 2/3: before it were 60'
    """

    name: str = "words/parts"

    templates: ClassVar[tuple[str, ...]] = (
        "{who} has {many}. {aside}{parts} {question}",
        "{aside}{who} owns {many}. {parts} {question}",
        "There are {many} in {who}'s box. {parts} {aside}{question}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Parts of which what is left is always a whole number."""
        parts = [Fraction(rng.randint(1, d - 1), d) for d in (rng.randint(2, 6) for _ in range(level))]
        least = 1
        for p in parts:
            least *= p.denominator
        start = least * rng.randint(1, max(2, 120 // least))
        left = Fraction(start)
        for p in parts:
            left *= 1 - p
        back = rng.random() < 0.6
        return {
            "who": people(1, rng)[0],
            "what": rng.choice(_KEPT),
            "parts": [str(p) for p in parts],
            "left": int(left) if back else start,
            "back": back,
            "aside": draw_aside(rng),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The parts in sentences."""
        verbs = ("are given away", "are sold", "get lost", "are swapped for something else", "are put aside")
        what = facts["what"]
        lines = [
            f"{('First' if i == 0 else 'Then')}, {p} of {'them' if i == 0 else f'the remaining {what}'} {verbs[i % 5]}."
            for i, p in enumerate(facts["parts"])
        ]
        if facts["back"]:
            many, question = f"some {what}", f"In the end {facts['left']} {what} are left. How many were there at the beginning?"
        else:
            many, question = f"{facts['left']} {what}", f"How many {what} are left in the end?"
        return {
            "who": facts["who"],
            "many": many,
            "parts": " ".join(lines),
            "question": question,
            "aside": said_aside(facts["aside"]),
        }

    def solve(self, facts: Facts) -> Solution:
        """Part by part, forwards or backwards."""
        value = Fraction(facts["left"])
        steps: list[str] = []
        for part in reversed(facts["parts"]) if facts["back"] else facts["parts"]:
            rest = 1 - Fraction(part)
            found = value / rest if facts["back"] else value * rest
            steps.append(f"{value} are {rest}: before it were {found}" if facts["back"] else f"{value} × {rest} = {found}")
            value = found
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps))


_KEPT = ("stamps", "marbles", "shells", "cards", "coins", "beads", "postcards", "nuts")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
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
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar(ExactProblem):
    r"""The day of the week of a date. The level: 1 some days later, 2 in the same year, 3 in near years, 4 in far ones.

    >>> Calendar().solve({"from": [2024, 2, 27], "day": 1, "to": [2024, 3, 1]}).steps
    'from 27 February 2024 to 1 March 2024: 3 days\n3 = 0 × 7 + 3: Friday'
    """

    name: str = "words/calendar"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "{start} is a {day}. What day of the week is {end}? Answer with its name.",
        "If {start} is a {day}, which weekday is {end}? Give its English name.",
        "Find the day of the week of {end}, knowing that {start} is a {day}. Use the Gregorian calendar, and answer "
        "with the name.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Two dates, the later one last."""
        year = rng.randint(1950, 2090)
        if level == 1:
            month = rng.randrange(1, 13)
            first = rng.randint(1, 14)
            dates = [[year, month, first], [year, month, rng.randint(first + 1, 28)]]
        else:
            years = [year, year + (0, rng.randint(1, 5), rng.randint(20, 100))[level - 2]]
            dates = [[y, rng.randint(1, 12), rng.randint(1, 28)] for y in years]
            if dates[0] > dates[1]:
                dates.reverse()
            if dates[0] == dates[1]:
                dates[1][2] += 1
        return {"from": dates[0], "day": _ordinal(dates[0]) % 7, "to": dates[1]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The dates in words."""
        return {
            "start": _date(facts["from"]),
            "end": _date(facts["to"]),
            "day": _DAYS[int(facts["day"])],
        }

    def verifier(self, form: Form) -> Verifier:
        """The name of the day."""
        return ExactMatch(strip=True, casefold=True, punctuation=True, where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """The days in between, and what is left of whole weeks."""
        days = _ordinal(facts["to"]) - _ordinal(facts["from"])
        answer = _DAYS[(int(facts["day"]) + days) % 7]
        steps = (
            f"from {_date(facts['from'])} to {_date(facts['to'])}: {days} days\n{days} = {days // 7} × 7 + {days % 7}: {answer}"
        )
        return Solution(answer=answer, steps=steps, effort=days.bit_length() + 1)


def _ordinal(date: Sequence[int]) -> int:
    """Days of the Gregorian calendar up to a date; 0 modulo 7 is a Monday."""
    year, month, day = date
    before = year - 1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 365 * before + before // 4 - before // 100 + before // 400 + sum(_LENGTHS[: month - 1]) + (leap and month > 2)
    return days + day - 1


def _date(date: Sequence[int]) -> str:
    return f"{date[2]} {_MONTHS[date[1] - 1]} {date[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(ExactProblem):
    r"""The time of day after several pieces of time. The level is their number.

    >>> Clock().solve({"at": 1430, "parts": [95, 20], "back": False}).steps
    '23:50 and 95 minutes: 01:25\n01:25 and 20 minutes: 01:45'
    """

    name: str = "words/clock"

    templates: ClassVar[tuple[str, ...]] = (
        "{start} {parts} {question} Answer in the form HH:MM, from 00:00 to 23:59.",
        "{parts} {start} {question} Write the time as HH:MM on a 24-hour clock.",
        "A day's plan. {start} {parts} {question} (24-hour clock, HH:MM)",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A time, and pieces of minutes or hours."""
        return {
            "at": rng.randrange(1440),
            "parts": [rng.randint(5, 290) for _ in range(level)],
            "back": rng.random() < 0.5,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The plan in sentences."""
        things = ("The first train ride", "The wait after it", "The next ride", "The pause that follows", "The last walk")
        parts = [f"{t} takes {_long(p)}." for t, p in zip(things, facts["parts"], strict=False)]
        at = _time(facts["at"])
        start, question = f"The journey begins at {at}.", "At what time does it end?"
        if facts["back"]:
            start, question = f"The journey shall end at {at}.", "At what time must it begin?"
        return {"start": start, "parts": " ".join(parts), "question": question}

    def verifier(self, form: Form) -> Verifier:
        """The time as it is asked for."""
        return ExactMatch(strip=True, where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """Piece by piece."""
        at = facts["at"]
        steps: list[str] = []
        for part in reversed(facts["parts"]) if facts["back"] else facts["parts"]:
            found = (at + (-part if facts["back"] else part)) % 1440
            steps.append(f"{_time(at)} {'less' if facts['back'] else 'and'} {part} minutes: {_time(found)}")
            at = found
        return Solution(answer=_time(at), steps="\n".join(steps), effort=len(steps))


def _time(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _long(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} hour{'s' * (hours > 1)}"] * (hours > 0) + [f"{rest} minute{'s' * (rest > 1)}"] * (rest > 0)
    return list_parts(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Currencies(ExactProblem):
    r"""An amount changed from currency to currency. The level is the number of changes; from level 3 a fee is kept each time.

    >>> Currencies().solve({"who": "Ada", "names": ["doubloons", "ducats"], "amount": 30, "rates": [[2, 5]], "fee": 0}).steps
    '30 doubloons: 30 × 5/2 = 75 ducats'
    """

    name: str = "words/currencies"

    templates: ClassVar[tuple[str, ...]] = (
        "{rates} {fee}{who} changes {amount} {first} into {way}. How many {last} does {who} have in the end? Give the "
        "exact number.",
        "At the bank of a fantasy town these rates hold. {rates} {fee}How many {last} does {who} get for {amount} {first}, "
        "changed into {way}? Answer exactly, with a fraction if needed.",
        "{who} has {amount} {first} and changes all of them into {way}. {rates} {fee}Find the exact number of {last} at the end.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Coins of story books and rates between neighbours."""
        return {
            "who": people(1, rng)[0],
            "names": rng.sample(_COINS, level + 1),
            "amount": rng.randint(2, 60) * 5,
            "rates": [[rng.randint(1, 9), rng.randint(1, 12)] for _ in range(level)],
            "fee": rng.choice((5, 10, 20)) if level > 2 else 0,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The rates in sentences."""
        names = facts["names"]
        lines = [
            f"For {a} {_coin(x, a)} one gets {b} {_coin(y, b)}."
            for (a, b), x, y in zip(facts["rates"], names, names[1:], strict=False)
        ]
        fee = f"At each change, {facts['fee']}% of what one gets are kept as a fee. " if facts["fee"] else ""
        return {
            "who": facts["who"],
            "rates": " ".join(lines),
            "fee": fee,
            "amount": str(facts["amount"]),
            "first": names[0],
            "way": ", these into ".join(names[1:]),
            "last": names[-1],
        }

    def solve(self, facts: Facts) -> Solution:
        """Change by change."""
        value, names = Fraction(facts["amount"]), facts["names"]
        steps: list[str] = []
        for (a, b), x, y in zip(facts["rates"], names, names[1:], strict=False):
            found = value * Fraction(b, a) * (100 - facts["fee"]) / 100
            fee = f" × {100 - facts['fee']}/100" if facts["fee"] else ""
            steps.append(f"{value} {x}: {value} × {b}/{a}{fee} = {found} {y}")
            value = found
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps) * (1 + (facts["fee"] > 0)))


_COINS = ("doubloons", "ducats", "florins", "guilders", "crowns", "shells", "pearls", "thalers")


def _coin(name: str, count: int) -> str:
    return name[:-1] if count == 1 else name


def words() -> Problems:
    """Word problems of everyday life, and of any depth."""
    return Problems(
        name="words",
        summary="Word problems of everyday life, and of any depth.",
        problems=(
            Quantities(),
            Shopping(),
            Work(),
            Ages(),
            Mixtures(),
            Travel(),
            Percentages(),
            Parts(),
            Calendar(),
            Clock(),
            Currencies(),
        ),
    )
