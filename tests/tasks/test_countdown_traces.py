"""Written-out searches for countdown: exactly so many backtracks, right answers, and controls without any habit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.measure.behaviours import behaviour_rates, count_behaviours
from assay.testing import graded_group
from assay.train import Demonstration
from assay.verify import ScoringPool
from assay_tasks.math.countdown import countdown
from assay_tasks.math.countdown_traces import ARMS, SearchTraces


def said(n: int = 20, **changes: Any) -> list[str]:
    return [row["completion"] for row in SearchTraces(**changes).rows(n)]


@pytest.mark.parametrize("b", [0, 1, 5, 10])
def test_a_search_backtracks_exactly_so_often(b: int) -> None:
    assert {count_behaviours(text)["backtracking"] for text in said(backtracks=b)} == {b}


def test_each_habit_is_shown_where_it_is_wanted() -> None:
    wanted = ("verification", "subgoals", "backward_chaining")
    for text in said(habits=wanted, backtracks=1):
        assert set(count_behaviours(text).values()) == {1}
    rates = behaviour_rates(said(habits=("verification",), backtracks=0))
    assert rates == {"verification": 1.0, "backtracking": 0.0, "subgoals": 0.0, "backward_chaining": 0.0}


def test_controls_are_as_long_or_empty_and_show_no_habit() -> None:
    plain = said(backtracks=3, habits=("verification",))
    dummy, empty = said(arm="dummy", backtracks=3, habits=("verification",)), said(arm="empty", backtracks=3)
    assert [len(text) for text in dummy] == [len(text) for text in plain]
    assert not any(behaviour_rates([*dummy, *empty]).values()) and all(text.startswith("<answer>") for text in empty)
    shuffled = said(arm="shuffled", backtracks=3, habits=("verification",))
    pairs = list(zip(plain, shuffled, strict=True))
    lines = [(Counter(a.replace("\n", " \n ").split()), Counter(b.replace("\n", " \n ").split())) for a, b in pairs]
    assert all(a == b for a, b in lines) and any(a != b for a, b in pairs), "the same words in another order"
    assert behaviour_rates(shuffled) == behaviour_rates(plain)
    lengths = [row["characters"] for row in SearchTraces(backtracks=3).rows(5)]
    assert min(lengths) > 0 and {row["characters"] for row in SearchTraces(arm="empty").rows(5)} == {0}


def test_the_familys_verifier_accepts_all_answers_but_the_wrong_ones() -> None:
    tasks = [countdown().task("countdown/target", 2, "train", i) for i in range(6)]
    with ScoringPool(countdown().verifier()) as pool:
        for arm in ARMS:
            made = said(6, arm=arm, level=2)
            groups = [
                graded_group(t, [0.0], key=f"{arm}{i}", texts={0: text})
                for i, (t, text) in enumerate(zip(tasks, made, strict=True))
            ]
            pairs = [(g.task, g.rollouts[0]) for g in groups]
            found = pool.score(pairs)
            assert {found[r.id].primary for _, r in pairs} == {0.0 if arm == "wrong" else 1.0}, arm


def test_rows_are_demonstrations_and_the_same_every_time() -> None:
    rows = SearchTraces(backtracks=2).rows(3)
    assert rows == SearchTraces(backtracks=2).rows(3) != SearchTraces(backtracks=2, seed=1).rows(3)
    assert [Demonstration.of(row).turns[0].content for row in rows] == [row["completion"] for row in rows]


def test_settings_are_checked() -> None:
    for changes, said_ in (
        ({"backtracks": -1}, "backtracks"),
        ({"arm": "loud"}, "SearchTraces.arm"),
        ({"habits": ("luck",)}, "SearchTraces.habits"),
    ):
        with pytest.raises((ConfigError, UnknownNameError), match=said_):
            SearchTraces(**changes)
    assert behaviour_rates([]) == dict.fromkeys(("verification", "backtracking", "subgoals", "backward_chaining"), 0.0)
