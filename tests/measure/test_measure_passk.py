"""pass@k, best-of-k and maj@k against hand counts and brute force over all subsets."""

from itertools import combinations, pairwise
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import DataError
from assay.measure.accuracy_at_k import TaskOutcomes, best_of_k, eval_items, maj_at_k, pass_at_k, tabulate


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [(4, 1, 2, 0.5), (4, 0, 4, 0.0), (4, 4, 1, 1.0), (10, 3, 1, 0.3), (5, 2, 4, 1.0), (5, 2, 3, 1 - 1 / 10)],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k).item() == pytest.approx(expected, abs=1e-15)


def test_pass_at_k_of_large_n_neither_overflows_nor_cancels() -> None:
    found = pass_at_k(4096, 1, 1024).item()
    assert found == pytest.approx(0.25, rel=1e-12)


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_counts_subsets(nck: tuple[int, int, int]) -> None:
    n, c, k = nck
    hits = sum(any(i < c for i in chosen) for chosen in combinations(range(n), k))
    assert pass_at_k(n, c, k).item() == pytest.approx(hits / comb(n, k), abs=1e-12)


def test_pass_at_k_broadcasts_over_tasks() -> None:
    assert pass_at_k([2, 4], [1, 2], 2).tolist() == pytest.approx([1.0, 1 - 1 / 6])


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 0), (4, 2, 5), (4, 5, 2), (4, -1, 2)])
def test_pass_at_k_refuses(n: int, c: int, k: int) -> None:
    with pytest.raises(DataError):
        pass_at_k(n, c, k)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=9).flatmap(lambda v: st.tuples(st.just(v), st.integers(1, len(v)))))
def test_best_of_k_is_the_mean_of_maxima(case: tuple[list[float], int]) -> None:
    values, k = case
    expected = np.mean([max(chosen) for chosen in combinations(values, k)])
    assert best_of_k(values, k) == pytest.approx(float(expected), abs=1e-12)


def test_best_of_k_of_verdicts_is_pass_at_k() -> None:
    assert best_of_k([0.0, 1.0, 0.0, 1.0, 0.0], 2) == pytest.approx(pass_at_k(5, 2, 2).item())
    with pytest.raises(DataError, match="best@3"):
        best_of_k([1.0], 3)


def brute_majority(answers: list[str | None], passed: list[bool], k: int) -> float:
    share = {a: np.mean([p for b, p in zip(answers, passed, strict=True) if a == b]) for a in set(answers) if a is not None}
    total = 0.0
    for chosen in combinations(answers, k):
        votes = {a: chosen.count(a) for a in share if a in chosen}
        winners = [a for a, v in votes.items() if v == max(votes.values())]
        total += float(np.mean([share[a] for a in winners])) if winners else 0.0
    return total / comb(len(answers), k)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=9).flatmap(
        lambda a: st.tuples(st.just(a), st.lists(st.booleans(), min_size=len(a), max_size=len(a)), st.integers(1, len(a)))
    )
)
def test_majority_is_exact(case: tuple[list[str | None], list[bool], int]) -> None:
    answers, passed, k = case
    assert maj_at_k(answers, passed, k) == pytest.approx(brute_majority(answers, passed, k), abs=1e-9)


def test_majority_by_hand() -> None:
    answers, passed = ["7", "7", "8", None], [True, True, False, False]
    assert maj_at_k(answers, passed, 4) == pytest.approx(1.0)
    # pairs: 77 wins; 7-8 twice ties; 7-None twice wins; 8-None loses
    assert maj_at_k(answers, passed, 2) == pytest.approx((1 + 2 * 0.5 + 2 + 0) / 6)
    assert maj_at_k([None, None], [False, False], 2) == 0.0


def test_majority_of_one_is_the_mean() -> None:
    answers = [str(i % 5) for i in range(40)]
    assert maj_at_k(answers, [i % 5 == 0 for i in range(40)], 1) == pytest.approx(0.2)


def test_majority_of_many_attempts_is_stable() -> None:
    answers = ["x"] * 34 + ["y"] * 30
    assert maj_at_k(answers, [a == "x" for a in answers], 64) == pytest.approx(1.0)
    assert 0.5 < maj_at_k(answers, [a == "x" for a in answers], 33) < 1.0


def test_majority_refuses() -> None:
    with pytest.raises(DataError, match="2 answers but 1 verdicts"):
        maj_at_k(["a", "b"], [True], 1)
    with pytest.raises(DataError, match="maj@3"):
        maj_at_k(["a", "b"], [True, False], 3)


def test_items_from_records() -> None:
    items = eval_items(
        [
            {"id": "a", "arm": "s", "level": 2, "values": [1, 0.5], "answers": ["x", None], "faults": 0},
            {"id": "b", "arm": "s", "level": 2, "values": [], "answers": [], "faults": 2},
        ]
    )
    assert items == (TaskOutcomes(id="a", arm="s", level=2, values=(1.0, 0.5), answers=("x", None)),)
    assert items[0].reach_threshold(0.5) == (True, True)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"id": "a", "arm": "s", "values": [1]}, "item 0: KeyError 'level'"),
        ({"id": "a", "arm": "s", "level": "x", "values": [1]}, "item 0: ValueError"),
        ({"id": "a", "arm": "s", "level": 1, "values": [float("nan")]}, "not finite"),
        ({"id": "a", "arm": "s", "level": 1, "values": [1], "answers": ["x", "y"]}, "1 values but 2 answers"),
    ],
)
def test_bad_items_are_named(record: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        eval_items([record])


def test_an_item_needs_values_and_its_own_id() -> None:
    with pytest.raises(DataError, match="no values"):
        TaskOutcomes(id="a", arm="s", level=1, values=())
    record = {"id": "a", "arm": "s", "level": 1, "values": [1]}
    with pytest.raises(DataError, match="occurs twice"):
        eval_items([record, record])


def items_of(levels: dict[int, list[list[float]]], answers: bool = False) -> list[TaskOutcomes]:
    return [
        TaskOutcomes(id=f"{lv}-{i}", arm="s", level=lv, values=tuple(v), answers=tuple(str(x) for x in v) if answers else ())
        for lv, rows in levels.items()
        for i, v in enumerate(rows)
    ]


def test_table_at_three_depths() -> None:
    table = tabulate(items_of({2: [[1, 1, 0, 0], [1, 1, 1, 1]], 5: [[0, 0, 0, 1]]}, answers=True))
    assert table.names == ("avg@4", "pass@1", "pass@2", "pass@4", "maj@2", "maj@4")
    assert [(r.name, r.tasks) for r in table.cells] == [("s level 2", 2), ("s level 5", 1)]
    assert [r.metrics["avg@4"].value for r in table.tasks] == [0.5, 1.0, 0.25]
    assert table.total.metrics["avg@4"].value == pytest.approx(1.75 / 3)
    assert table.total.metrics["pass@2"].value == pytest.approx((5 / 6 + 1 + 0.5) / 3)
    assert table.cells[0].metrics["maj@4"].value == pytest.approx(0.75)  # one tie, one win
    assert (table.total.arm, table.total.level, table.cells[1].level) == ("s", None, 5)
    assert table.tasks[0].metrics["pass@1"].low == table.tasks[0].metrics["pass@1"].value


def test_greedy_table_has_accuracy_alone_and_threshold_decides() -> None:
    items = items_of({1: [[0.4], [0.6], [1.0]]})
    assert tabulate(items).names == ("avg@1", "best@1")
    assert tabulate(items, threshold=0.5).total.metrics["avg@1"].value == pytest.approx(2 / 3)
    assert tabulate(items).total.metrics["best@1"].value == pytest.approx(2 / 3)
    assert tabulate(items_of({1: [[0.0], [1.0]]})).names == ("avg@1",)


def test_table_refuses() -> None:
    with pytest.raises(DataError, match="at least one item"):
        tabulate([])
    with pytest.raises(DataError, match="pass@8 needs at least 8 rollouts"):
        tabulate(items_of({1: [[1, 0, 1, 0]]}), ks=[1, 8])


def test_pass_at_k_grows_with_k() -> None:
    values = [pass_at_k(32, 3, k).item() for k in range(1, 33)]
    assert all(a < b or b == 1.0 for a, b in pairwise(values))
    assert log(1 - values[0]) == pytest.approx(log(29 / 32))
