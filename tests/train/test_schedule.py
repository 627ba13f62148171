"""A stage's learning rate follows the stage's own steps: not the weight versions, not the steps that learned something."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import SCHEDULE, at_named, in_child, only_rl, resumed, tiny, trained

from assay.core.batch import Batch
from assay.guide import Compose
from assay.runtime.settings import AdamW, LearnerSettings, LearningRateSchedule
from assay.train.driver import resume, train
from assay.train.run import Run


class EveryOther(Compose):
    """Finds nothing to learn from in steps 1, 3, 5, ..., counted from 0."""

    __slots__ = ()

    def compose(self, groups: Any, replay: Any, step: int, experts: Any = ()) -> Batch | None:
        return None if step % 2 else super().compose(groups, replay, step)


class OneGroup(Compose):
    """Keeps one group of a step: of several mini-batches all but one are empty."""

    __slots__ = ()

    def compose(self, groups: Any, replay: Any, step: int, experts: Any = ()) -> Batch | None:
        return super().compose(groups[:1], replay, step)


def rates(folder: Path, stage: str = "rl") -> dict[int, float]:
    """Learning rate of each step of a stage that made an update."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {r["step"]: r["metrics"]["lr"] for r in lines if r["stage"] == stage and "lr" in r["metrics"]}


def wanted(steps: int, lr: float = 1e-3) -> dict[int, float]:
    return {k + 1: lr * SCHEDULE.factor(k, steps) for k in range(steps)}


def skipping(steps: int = 9) -> Run:
    return replace(only_rl(steps=steps, composer=EveryOther()), checkpoint_every=2)


def test_a_stage_half_of_whose_steps_are_skipped_ends_at_the_schedules_final_rate(tmp_path: Path) -> None:
    train(skipping(), tmp_path / "run")
    found = rates(tmp_path / "run")
    assert list(found) == [1, 3, 5, 7, 9]
    assert found == {step: rate for step, rate in wanted(9).items() if step in found}
    assert found[9] == 1e-3 * SCHEDULE.factor(8, 9) < found[1] == 1e-3


def test_a_second_stage_begins_its_own_schedule(tmp_path: Path) -> None:
    train(tiny(warm=8, rl=6), tmp_path / "run")
    assert rates(tmp_path / "run") == {8 + step: rate for step, rate in wanted(6).items()}
    assert rates(tmp_path / "run", "warm-up") == wanted(8, lr=4e-3)


@pytest.mark.slow
def test_a_resume_goes_on_in_the_schedule_after_skipped_steps(tmp_path: Path) -> None:
    run = skipping()

    def killed() -> None:
        at_named("renamed:step_0000006", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")
    assert rates(tmp_path / "run") == rates(tmp_path / "whole")


@pytest.mark.prove
def test_a_resume_within_a_second_stage_goes_on_in_its_schedule(tmp_path: Path) -> None:
    run = replace(tiny(warm=8), stages=(tiny(warm=8).stages[0], skipping().stages[0]), checkpoint_every=2)

    def killed() -> None:
        at_named("renamed:step_0000014", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")
    assert list(rates(tmp_path / "run").values()) == [rate for step, rate in wanted(9).items() if step % 2]


def test_more_steps_stretch_the_schedule_over_the_whole_stage(tmp_path: Path) -> None:
    train(only_rl(steps=4), tmp_path / "run")
    resume(tmp_path / "run", steps=8)
    assert rates(tmp_path / "run") == wanted(4) | {k: rate for k, rate in wanted(8).items() if k > 4}


def test_mini_batches_count_whether_they_hold_something_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    factor = LearningRateSchedule.factor

    def spy(self: LearningRateSchedule, step: int, total: int) -> float:
        seen.append(step)
        assert total == 3 * 4
        return factor(self, step, total)

    monkeypatch.setattr(LearningRateSchedule, "factor", spy)
    settings = LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=SCHEDULE)
    train(only_rl(steps=3, minibatches=2, epochs=2, learner=settings), tmp_path / "all")
    assert seen == list(range(12))
    seen.clear()
    train(only_rl(steps=3, minibatches=2, epochs=2, learner=settings, composer=OneGroup()), tmp_path / "few")
    assert seen == [0, 1, 4, 5, 8, 9]
