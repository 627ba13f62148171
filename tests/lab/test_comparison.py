"""Comparisons: rules that cannot be broken by accident, rates from tuning seeds alone, verdicts from the interval alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.lab.comparison import Arm, Comparison, over_seeds
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from evidence import comparison_page
from evidence.cells.comparisons import COMPARISONS, comparison_cell
from evidence.pages import make

STAGE = Reinforce(steps=3, groups=2, group_size=2)
ASKED = Comparison(
    name="asked",
    question="Is b better than a?",
    rung="L0",
    predicted="higher",
    because="it is later in the alphabet",
    arms=(Arm(name="a", stage=STAGE), Arm(name="b", stage=STAGE)),
    rates=(1e-3, 2e-3, 4e-3),
    tuning=(7, 8),
    test=(0, 1, 2, 3, 4),
)


def record(kind: str, seed: int, right: int, n: int = 200) -> dict[str, Any]:
    items = [{"id": str(i), "level": 3, "values": [float(i < right)]} for i in range(n)]
    return {
        "kind": kind,
        "seed": seed,
        "steps": 3,
        "digest": kind,
        "cpu_seconds": 2.0,
        "machine": "Abacus",
        "load": [0.5, 1.5],
        "now_sampled": items,
    }


TUNED = {("a", 1e-3): 50, ("a", 2e-3): 90, ("a", 4e-3): 90, ("b", 1e-3): 10, ("b", 2e-3): 20, ("b", 4e-3): 60}


def answered(cells: Sequence[tuple[str, int, int | None]], test: dict[str, int]) -> list[dict[str, Any]]:
    """Tuning cells as `TUNED`; test cells as ``test`` says of the arm, one more right answer per seed."""
    out: list[dict[str, Any]] = []
    for kind, seed, _ in cells:
        _, arm, rate = kind.split("~")
        out.append(record(kind, seed, TUNED[arm, float(rate)] if seed in ASKED.tuning else test[arm] + seed))
    return out


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"test": (0, 1, 2, 3)}, "5 to 10 different test seeds"),
        ({"test": (0, 1, 2, 3, 3)}, "5 to 10 different test seeds"),
        ({"test": (0, 1, 2, 3, 7)}, r"\[7\] both tune and test"),
        ({"rates": ()}, "give rates"),
        ({"arms": (ASKED.arms[0], Arm(name="b", stage=replace(STAGE, group_size=4)))}, "make them equal"),
    ],
)
def test_a_comparison_that_would_not_count_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        replace(ASKED, **changed)


def test_a_prediction_is_a_verdict() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'higher'"):
        replace(ASKED, predicted="highr")
    with pytest.raises(UnknownNameError, match="arm 'c'"):
        ASKED.arm("c")


def test_rates_come_from_the_tuning_seeds_and_ties_go_to_the_lower() -> None:
    cells = ASKED.tuning_cells()
    assert len(cells) == 2 * 3 * 2
    assert {s for _, s, _ in cells} == {7, 8}
    rates = ASKED.chosen_rates(answered(cells, {}))
    assert rates == {"a": 2e-3, "b": 4e-3}
    assert ASKED.test_cells(rates)[:2] == [("asked~a~0.002", 0, None), ("asked~b~0.004", 0, None)]
    assert len(ASKED.test_cells(rates)) == 10


@pytest.mark.parametrize(("b", "verdict"), [(130, "higher"), (70, "lower"), (100, "no difference seen")])
def test_the_verdict_is_the_interval(b: int, verdict: str) -> None:
    tuning = answered(ASKED.tuning_cells(), {})
    test = answered(ASKED.test_cells(ASKED.chosen_rates(tuning)), {"a": 100, "b": b})
    found = ASKED.result_of(tuning, test)
    assert found.verdict == verdict
    assert found.difference.value == pytest.approx((b - 100) / 200)
    assert found.accuracy["a"] == (0.5, 0.505, 0.51, 0.515, 0.52)
    assert found.edge == ["b"]


def test_few_seeds_that_disagree_decide_nothing() -> None:
    apart = [np.r_[np.ones(k), np.zeros(100 - k)] for k in (2, 40, 1, 3, 2)]
    assert over_seeds(apart).low <= 0.011 < over_seeds(apart).value
    mixed = [x if k % 2 else -x for k, x in enumerate(apart)]
    assert over_seeds(mixed).low < 0 < over_seeds(mixed).high
    assert over_seeds(apart) == over_seeds(apart)


@pytest.mark.prove
def test_the_interval_covers_as_often_as_it_says() -> None:
    """100 studies of five seeds without a difference, seeds and items both at random: about one in twenty says otherwise."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(100):
        mean = rng.normal(0.0, 0.05, 5)
        gaps = [rng.choice([-1.0, 0.0, 1.0], 100, p=[0.2 - m / 2, 0.6, 0.2 + m / 2]) for m in mean]
        found = over_seeds(gaps)
        wrong += found.low > 0 or found.high < 0
    assert wrong <= 8


# ---- those of this repository


@pytest.mark.parametrize("name", list(COMPARISONS))
def test_comparisons_of_this_repository_can_be_run(name: str) -> None:
    comparison = COMPARISONS[name]
    assert comparison.name == name
    for kind, seed, _ in comparison.tuning_cells()[: 2 * len(comparison.rates)]:
        run = comparison_cell(kind, seed).run
        check_run(run)
        assert run.stages[0].learner.optimizer.lr == float(kind.split("~")[2])
    first, second = comparison.arms
    assert replace(first.stage, objective=second.stage.objective) == second.stage  # nothing else differs
    with pytest.raises(UnknownNameError, match="comparison 'nosuch'"):
        comparison_cell("nosuch~a~1", 0)


def test_the_page_says_what_was_asked_tuned_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(comparison_page, "COMPARISONS", f"{__name__}:PAGE")

    def run(maker: str, wanted: Sequence[tuple[str, int, int | None]], out: Path, workers: int) -> list[dict[str, Any]]:
        return answered(wanted, {"a": 100, "b": 70})

    monkeypatch.setattr(comparison_page, "run_cells", run)
    assert make(tmp_path / "docs", ["comparison"]) == 0
    page = (tmp_path / "docs" / "comparison.md").read_text(encoding="utf-8")
    for said in (
        "## asked: lower",
        "Predicted of\n`b` against `a`: *higher*, because it is later in the alphabet.",
        "Found: *lower*, not as predicted: -0.150 [-0.",
        "| test seed | `a` at 0.002 | `b` at 0.004 | difference |",
        "| 4 | 0.520 | 0.370 | -0.150 |",
        "The rate of b lies at the end of the grid",
        "| 0.001 | 0.250 | 0.050 |",
        "CPU-seconds of all steps: 44.",
    ):
        assert said in page, said
    data = json.loads((tmp_path / "docs" / "comparison.json").read_text(encoding="utf-8"))
    assert data["comparisons"][0]["verdict"] == "lower"
    assert len(data["cells"]) == 22


PAGE = {"asked": ASKED}
