"""Word problems: the story is read again from its English, and calculated by other means."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from assay.core.canon import plain
from assay.tasks import Form, Problem
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.math.quantities import Quantities
from assay_tasks.math.words import Ages, Calendar, Clock, Currencies, Mixtures, Parts, Percentages, Shopping, Travel, words

SOURCE = words()


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=40, growth=1.8)


def from_english(prompt: str) -> int:
    """The answer to a question of `Quantities`, from the sentences alone."""
    told: dict[tuple[str, str], Any] = {}
    parts = {"half": 2, "a third": 3, "a quarter": 4, "a fifth": 5}
    thing = r"(\w+) has (\w+)"
    for sentence in re.findall(r"[A-Z][^.?\n]*(?=\.)", prompt):
        if m := re.fullmatch(r"(\w+) has (\d+) (\w+)", sentence):
            told[m[1], m[3]] = int(m[2])
        elif m := re.fullmatch(rf"(\w+) has (\d+) (more|fewer) (\w+) than {thing}", sentence):
            told[m[1], m[4]] = lambda v, m=m: v(m[5], m[6]) + int(m[2]) * (1 if m[3] == "more" else -1)
        elif m := re.fullmatch(rf"(\w+) has (\d+) times as many (\w+) as {thing}", sentence):
            told[m[1], m[3]] = lambda v, m=m: v(m[4], m[5]) * int(m[2])
        elif m := re.fullmatch(rf"(\w+) has (half|a third|a quarter|a fifth) as many (\w+) as {thing}", sentence):
            told[m[1], m[3]] = lambda v, m=m: Fraction(v(m[4], m[5]), parts[m[2]])
        elif m := re.fullmatch(rf"(\w+) has as many (\w+) as {thing} and {thing} together", sentence):
            told[m[1], m[2]] = lambda v, m=m: v(m[3], m[4]) + v(m[5], m[6])
        elif m := re.fullmatch(rf"The number of (\w+) that (\w+) has is how many more (\w+) (\w+) has than {thing}", sentence):
            told[m[2], m[1]] = lambda v, m=m: v(m[4], m[3]) - v(m[5], m[6])

    @cache
    def value(who: str, what: str) -> Any:
        how = told[who, what]
        return how(value) if callable(how) else how

    asked = re.search(
        r"How many (\w+) does (\w+) have\?|number of (\w+) that (\w+) has\?|how many (\w+) are there in (\w+)'s", prompt
    )
    assert asked
    what, who = (group for group in asked.groups() if group)
    return value(who, what)


@pytest.mark.parametrize("level", Quantities().levels)
def test_stories_say_what_they_mean(level: int) -> None:
    for index in range(12):
        task = SOURCE.task("words/quantities", level, "train", index)
        assert str(from_english(task.public["prompt"])) == task.private["answer"]
        assert task.private["effort"] == level


def recalculated(arm: str, f: dict[str, Any]) -> Any:
    match arm:
        case "shopping":
            total = sum(n * Decimal(price) / 100 for _, n, price in f["goods"]) * (100 - f["off"]) / 100
            return f"{Decimal(f['paid']) / 100 - total:.2f}"
        case "work":
            level = sum(Fraction(s, h) for s, h in zip(f["signs"], f["hours"], strict=True))
            return Fraction(f["share"]) / level
        case "ages":
            found = []
            for age in range(1, 200):
                ages = [age]
                for kind, by in f["links"]:
                    ages.append(ages[-1] * by if kind == "times" else ages[-1] + by * (1 if kind == "older" else -1))
                if sum(a + f["in"] for a in ages) == f["total"]:
                    found.append(ages[f["asked"]])
            assert len(found) == 1
            return found[0]
        case "mixtures":
            litres = [p for n, p in f["parts"] for _ in range(n)] + [0] * f["water"]
            return Fraction(sum(litres), len(litres))
        case "travel":
            minutes = [(speed, int(Fraction(t) * 60)) for speed, t in f["legs"]]
            way = Fraction(sum(s * m for s, m in minutes), 60)
            hours = Fraction(sum(m for _, m in minutes), 60)
            return {"way": way, "speed": way / hours, "late": way / Fraction(minutes[0][0], 2)}[f["what"]]
        case "parts":
            if not f["back"]:
                rest = Fraction(f["left"])
                for p in f["parts"]:
                    rest -= rest * Fraction(p)
                return rest
            return next(n for n in range(1, 10**6) if recalculated("parts", f | {"left": n, "back": False}) == f["left"])
        case "calendar":
            assert date(*f["from"]).weekday() == f["day"]
            return f"{date(*f['to']):%A}"
        case "clock":
            at = datetime(2000, 1, 1) + timedelta(minutes=f["at"])
            return f"{at + timedelta(minutes=sum(f['parts'])) * (-1 if f['back'] else 1):%H:%M}"
        case "currencies":
            amount = Fraction(f["amount"])
            for a, b in f["rates"]:
                got = amount / a * b
                amount = got - got * f["fee"] / 100
            return amount
        case _:
            value = Fraction(f["start"])
            for c in f["changes"]:
                value = value / (1 + Fraction(c, 100)) if f["back"] else value + value * c / 100
            return value


@pytest.mark.parametrize("arm", [arm for arm in SOURCE.arms() if arm != "words/quantities"])
def test_agrees_with_another_way(arm: str) -> None:
    for level in SOURCE.arms()[arm]:
        for index in range(15):
            task = SOURCE.task(arm, level, "train", index)
            assert SOURCE.solution(task).answer == str(recalculated(arm.removeprefix("words/"), plain(task.public["facts"])))


def test_days_of_four_hundred_years() -> None:
    at = date(1900, 1, 1)
    while at < date(2300, 1, 1):
        facts = {"from": [1900, 1, 1], "day": 0, "to": [at.year, at.month, at.day]}
        assert Calendar().solve(facts).answer == f"{at:%A}"
        at += timedelta(days=97)


def test_by_hand() -> None:
    facts = {"who": "Ada", "goods": [["pens", 1, 1000]], "off": 10, "paid": 2000, "aside": [3, 12]}
    assert Shopping().solve(facts).answer == "11.00"
    told = Shopping().word(facts, 2)
    assert told.startswith("Last year there were 12 sunny days in May. Ada wants 1 pens at 10.00 dollars each. There is a ")
    assert told.endswith("How many dollars are left of 20 dollars after paying?")
    assert (
        Ages().fields({"who": ["A", "B"], "links": [["older", 1]], "total": 9, "in": 0, "asked": 0})["links"]
        == "B is 1 year older than A."
    )
    assert Travel().fields({"who": "A", "legs": [[60, "1/2"]], "what": "way", "aside": None})["legs"] == "30 minutes at 60 km/h"
    assert Clock().fields({"at": 5, "parts": [60], "back": False})["parts"] == "The first train ride takes 1 hour."
    assert Percentages().fields({"start": "1/3", "changes": [5], "back": False})["start"] == "1/3"
    assert Currencies().fields({"who": "A", "names": ["crowns", "pearls"], "amount": 1, "rates": [[1, 2]], "fee": 0})[
        "rates"
    ] == ("For 1 crown one gets 2 pearls.")
    parts = Parts().fields({"who": "A", "what": "nuts", "parts": ["1/2", "1/3"], "left": 6, "back": False, "aside": None})
    assert parts["parts"] == "First, 1/2 of them are given away. Then, 1/3 of the remaining nuts are sold."
    assert Mixtures().solve({"parts": [[1, 50]], "water": 1}).answer == "25"


@pytest.mark.parametrize(
    ("arm", "gold", "right", "wrong"),
    [
        ("shopping", "11.90", ("11.90", "11.9", "$11.90", "11.90 dollars"), ("20 - 8.10", "11.09", "1190")),
        ("mixtures", "60", ("60", "60%", "60 percent"), ("0.6", "3/5 + 0", "30 + 30")),
        ("calendar", "Friday", ("Friday", "friday", "Friday."), ("Fri or Sat", "Friday or Saturday", "5")),
        ("clock", "01:45", ("01:45",), ("1:45 or 2:00", "13:45", "0145")),
        ("quantities", "28", ("28", "28.0", "$28$"), ("4 × 7", "7 * 4", "27")),
    ],
)
def test_what_answers_count(arm: str, gold: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    for said, score in [*((r, 1.0) for r in right), *((w, 0.0) for w in wrong)]:
        found = SOURCE.problem(f"words/{arm}").verifier(Form.TAG)(*task_and_rollout(gold, f"<answer>{said}</answer>"))
        assert found.primary == score, said
