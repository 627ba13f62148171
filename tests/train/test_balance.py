"""Weights of an objective's terms by how their losses have gone: the published numbers, and a run with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from live import session
from test_interleave import advance
from tiny_runs import only_rl

from assay.core.errors import AssayError
from assay.objective import Nll
from assay.objective.methods import grpo
from assay.testing import check_stage
from assay.train import BalanceLosses, RowSource
from assay.train.balance import LossBalance, balanced_weights, softmax_weights
from assay.train.preflight import check_run
from assay.train.run import ContaminationCheck, Run
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(1, 2))
BOTH = replace(grpo(), terms=(Nll(streams=("expert",)),))


def test_the_published_numbers() -> None:
    none = np.zeros(2)
    assert softmax_weights(np.array([2.0, 1.0]), none) == pytest.approx([1.0997, 0.9003], abs=1e-4)
    assert softmax_weights(np.array([0.5, 1.0]), none) == pytest.approx([0.9501, 1.0499], abs=1e-4)  # the other quotient
    assert softmax_weights(np.ones(2), np.array([0.0, 0.3])) == pytest.approx([0.970, 1.030], abs=1e-3)


def test_convergence_and_instability_come_from_two_windows() -> None:
    losses = np.array([[1.0, 2.0], [1.0, 0.0], [0.5, 1.0], [0.5, 1.0]])
    # means (1, 1) and (.5, 1); squared distances from the later means .25 + .25 and 1 + 1, over 2 W - 1 = 3
    spread = np.sqrt(np.array([0.5, 2.0]) / 3)
    wanted = softmax_weights(np.array([2.0, 1.0]), spread / np.array([1.5, 2.0]))
    assert balanced_weights(losses, floor=0.0) == pytest.approx(wanted)


def test_a_scale_of_a_loss_changes_nothing_and_the_weights_add_up() -> None:
    losses = np.random.default_rng(0).uniform(0.1, 2.0, (8, 3))
    found = balanced_weights(losses)
    assert balanced_weights(losses * np.array([1.0, 7.0, 0.01])) == pytest.approx(found) and found.sum() == pytest.approx(3.0)
    assert balanced_weights(-losses).tolist() == [1.0, 1.0, 1.0], "a floor stands for losses below it"


def test_weights_are_one_until_both_windows_are_full() -> None:
    balance = LossBalance(BalanceLosses(window=2), BOTH)
    for step in range(4):
        used = balance.weights()
        assert used == {"policy": 1.0, "nll": 1.0}, step
        balance.observe({"reward/mean": 0.25 * step, "loss/nll": 1.0}, used)
        balance.observe({"loss/nll": 1.0}, used)  # a step without rollouts is no step of the window
    found = balance.weights()
    assert found["policy"] > 1.0 > found["nll"], "1 - reward fell, so its weight rises"
    assert LossBalance(BalanceLosses(window=2, raises="stuck"), BOTH).weights()["nll"] == 1.0
    other = LossBalance(BalanceLosses(window=2, raises="stuck"), BOTH)
    other.load_state_dict(balance.state_dict())
    assert other.weights()["nll"] > 1.0 > other.weights()["policy"]
    balance.observe({"reward/mean": 0.5, "loss/nll": 2 * found["nll"]}, found)
    assert balance.state_dict()["history"][-1] == [0.5, pytest.approx(2.0)], "the loss without its weight"


def weighed(balance: Any, **changes: Any) -> Run:
    rows = [
        {"prompt": t.public["prompt"], "answer": t.private["answer"]}
        for t in (TASKS.task("sort", level, "train", i) for level in (1, 2) for i in range(8))
    ]
    given = {"objective": BOTH, "sources": (RowSource(data=rows, match="own", rows=4),), "balance": balance, "levels": (1, 2)}
    return replace(only_rl(**(given | changes)), contamination=ContaminationCheck(mode="off"))


def test_the_weights_multiply_the_losses_of_a_run() -> None:
    s = session(weighed(BalanceLosses(window=1, temperature=0.5)))
    found = advance(s, 4)
    assert found[0]["balance/nll"] == found[1]["balance/nll"] == 1.0 != found[2]["balance/nll"]
    assert found[3]["balance/nll"] + found[3]["balance/policy"] == pytest.approx(2.0)
    plain = advance(session(weighed(None)), 3)
    assert found[2]["loss/nll"] == pytest.approx(plain[2]["loss/nll"] * found[2]["balance/nll"], rel=1e-4)


def test_the_stage_resumes_exactly() -> None:
    check_stage(weighed(BalanceLosses(window=1), groups=2, group_size=2).stages[0], tasks=TASKS)


def test_what_makes_no_sense_is_refused() -> None:
    for make, said in (
        (lambda: BalanceLosses(window=0), r"BalanceLosses\.window"),
        (lambda: BalanceLosses(temperature=0.0), r"BalanceLosses\.temperature"),
        (lambda: BalanceLosses(raises="none"), r"BalanceLosses\.raises"),
        (lambda: check_run(weighed(BalanceLosses(), objective=replace(grpo(), terms=()), sources=())), "there is one, 'policy'"),
    ):
        with pytest.raises(AssayError, match=said):
            make()
