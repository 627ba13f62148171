"""Countdown: by hand, and against a second search that shares nothing with the solver's."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

from assay.core.errors import DataError
from assay.tasks import Problem, family
from assay.testing import check_problem
from assay.verify import Countdown, task_and_rollout
from assay_tasks.math.countdown import Closest, MakeAll, MakeTarget, TwentyFour, countdown

SOURCE = family("countdown")


def everything(numbers: list[Fraction], whole: bool) -> set[Fraction]:
    """Every value of any of the numbers: two are replaced by what they make, again and again."""
    out = set(numbers)
    for i, j in combinations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        rest = [n for k, n in enumerate(numbers) if k not in (i, j)]
        made = [a + b, a - b, b - a, a * b] + [x / y for x, y in ((a, b), (b, a)) if y]
        for value in made:
            if not whole or value.denominator == 1:
                out |= everything([*rest, value], whole)
    return out


def test_by_hand() -> None:
    assert MakeAll().solve({"numbers": [2, 3, 4], "target": 20}).answer == "4 * (2 + 3)"
    found = MakeTarget().solve({"numbers": [5, 7, 9], "target": 44})
    assert (found.answer, found.steps) == ("9 + 5 * 7", "5 * 7 = 35\n9 + 35 = 44")
    assert TwentyFour().solve({"numbers": [1, 5, 5, 5], "target": 24}).steps == "1 / 5 = 1/5\n5 - (1/5) = 24/5\n5 * (24/5) = 24"
    assert Closest().solve({"numbers": [10, 10], "target": 15}).gold["distance"] == 5
    for problem, facts in (
        (MakeTarget(), {"numbers": [2, 2], "target": 50}),
        (MakeAll(), {"numbers": [2, 2, 9], "target": 100}),
        (TwentyFour(), {"numbers": [1, 1, 1, 1], "target": 24}),
    ):
        with pytest.raises(DataError, match="no expression"):
            problem.solve(facts)
    with pytest.raises(DataError, match="did not make 24"):
        TwentyFour().draw(1, _Ones())
    with pytest.raises(DataError, match="gave no target"):
        MakeAll().draw(1, _Ones())


class _Ones(Random):
    def randint(self, a: int, b: int) -> int:
        return 1


@pytest.mark.parametrize("problem", countdown().problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=30, growth=5.0)


def test_the_nearest_value_is_the_nearest() -> None:
    for index in range(12):
        for level in (2, 3) if index < 3 else (1, 2):
            task = SOURCE.task("countdown/closest", level, "train", index)
            facts, gold = task.public["facts"], task.private["answer"]
            values = everything([Fraction(n) for n in facts["numbers"]], whole=True)
            assert min(abs(v - facts["target"]) for v in values) == gold["distance"]


@pytest.mark.prove
def test_the_known_count_of_hands_that_make_24() -> None:
    """1,362 of the 1,820 hands of four cards from 1 to 13 do; a second search says which."""
    from itertools import combinations_with_replacement as hands

    rng, count = Random(0), 0
    for hand in hands(range(1, 14), 4):
        try:
            said = TwentyFour().solve({"numbers": list(hand), "target": 24}).answer
        except DataError:
            said = ""
        gold = {"numbers": list(hand), "target": 24}
        assert not said or Countdown(every=True)(*task_and_rollout(gold, said)).primary == 1.0
        count += bool(said)
        if rng.random() < 0.02:
            assert bool(said) == (24 in _all_used([Fraction(n) for n in hand]))
    assert count == 1362


def _all_used(numbers: list[Fraction]) -> set[Fraction]:
    if len(numbers) == 1:
        return set(numbers)
    out: set[Fraction] = set()
    for i, j in combinations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        rest = [n for k, n in enumerate(numbers) if k not in (i, j)]
        for value in [a + b, a - b, b - a, a * b] + [x / y for x, y in ((a, b), (b, a)) if y]:
            out |= _all_used([*rest, value])
    return out
