"""Callbacks and early stopping: what hears of a run, and what ends it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny_runs import digest_of, only_rl, reinforce, tiny

from assay.core.config import from_dict, to_dict
from assay.core.errors import CallbackError, ConfigError
from assay.runs.journal import Journal
from assay.runs.storage import read_json
from assay.train import Callback, Evaluation, Run, Until, resume, train
from assay.train.run_progress import Progress
from assay.train.stage_driver import StageDriver


class Recorder(Callback):
    """Remembers all that it hears; meddles with what it can reach."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.evaluations: list[tuple[int, list[str]]] = []
        self.checkpoints: list[tuple[int, bool]] = []

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        self.steps.append(step)
        random.seed(0)
        np.random.seed(0)
        with pytest.raises(TypeError):
            metrics["reward/mean"] = 1.0  # type: ignore[index]

    def on_evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        self.evaluations.append((step, sorted(n for n in metrics if n.endswith("/all"))))

    def on_checkpoint(self, step: int, folder: Path) -> None:
        self.checkpoints.append((step, (folder / "state.json").exists()))


class FailsAt(Callback):
    def __init__(self, method: str, step: int) -> None:
        self._at = method, step

    def _maybe(self, method: str, step: int) -> None:
        if self._at == (method, step):
            raise ValueError("my own mistake")

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        self._maybe("on_step", step)

    def on_evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        self._maybe("on_evaluation", step)

    def on_checkpoint(self, step: int, folder: Path) -> None:
        self._maybe("on_checkpoint", step)


class StopsAt(Callback):
    def __init__(self, step: int) -> None:
        self._step = step

    def on_step(self, step: int, metrics: Mapping[str, float]) -> bool:
        return step == self._step


def run() -> Run:
    return tiny(warm=2, rl=6)


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the run without callbacks."""
    return train(run(), tmp_path_factory.mktemp("plain") / "run", progress=False).digest


def test_a_callback_hears_everything_and_changes_nothing(tmp_path: Path, digest: str) -> None:
    heard = Recorder()
    assert train(run(), tmp_path / "run", progress=False, callbacks=[heard]).digest == digest
    assert heard.steps == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [step for step, _ in heard.evaluations] == [2, 8]
    assert heard.evaluations[0][1] == ["eval/greedy/all", "eval/sampled/all"]
    assert heard.checkpoints == [(0, True), (2, True), (2, True), (6, True), (8, True)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "step"), [("on_step", 3), ("on_evaluation", 2), ("on_checkpoint", 6), ("on_checkpoint", 0)])
def test_a_callback_that_fails_stops_the_run_and_loses_nothing(tmp_path: Path, digest: str, method: str, step: int) -> None:
    heard = Recorder()
    said = rf"FailsAt\.{method} failed at step {step}: ValueError: my own mistake"
    with pytest.raises(CallbackError, match=said) as error:
        train(run(), tmp_path / "run", progress=False, callbacks=[FailsAt(method, step), heard])
    assert isinstance(error.value.__cause__, ValueError)
    assert (tmp_path / "run" / "LATEST").read_text() == f"step_{step:07d}\n"
    assert "my own mistake" in Journal(tmp_path / "run").newest("error") and step not in heard.steps[step:]
    assert resume(tmp_path / "run", progress=False).digest == digest


def test_an_evaluation_before_the_first_step_is_heard_of(tmp_path: Path) -> None:
    with pytest.raises(CallbackError, match=r"FailsAt\.on_evaluation failed at step 0"):
        train(only_rl(steps=2), tmp_path / "run", progress=False, callbacks=[FailsAt("on_evaluation", 0)])
    assert resume(tmp_path / "run", progress=False).finished


def test_a_callback_may_ask_for_the_end(tmp_path: Path, digest: str) -> None:
    stopped = train(run(), tmp_path / "run", progress=False, callbacks=[StopsAt(4), Recorder()])
    assert (stopped.step, stopped.finished, stopped.digest) == (4, False, "")
    heard = Recorder()
    assert resume(tmp_path / "run", progress=False, callbacks=[heard]).digest == digest
    assert heard.steps == [5, 6, 7, 8]


# ---- a stage that ends early -------------------------------------------------------------------------------------------


class Judge:
    """`StageDriver._ends` on given values, with what a checkpoint keeps."""

    def __init__(self, until: Until | None) -> None:
        self.parts: Any = type("Parts", (), {"stage": type("Stage", (), {"until": until})})
        self.driver: Any = type("Driver", (), {"progress": Progress(), "_evaluator": SimpleNamespace(comparable={})})

    def __call__(self, *values: float | None) -> list[bool]:
        metrics = [{} if v is None else {"eval/greedy/all": v} for v in values]
        return [bool(StageDriver._ends(self.driver, self.parts, m)) for m in metrics]


def test_patience_counts_evaluations_without_a_better_value() -> None:
    assert Judge(Until(patience=2))(0.2, 0.3, None, 0.3, 0.25) == [False, False, False, False, True]
    assert Judge(Until(patience=2))(0.2, 0.1, 0.3, 0.1, 0.2) == [False, False, False, False, True]
    assert Judge(Until(patience=1, gain=0.05))(0.2, 0.24) == [False, True]
    assert Judge(Until(patience=1, gain=0.05))(0.2, 0.26) == [False, False]
    assert Judge(Until(at_least=0.5))(0.2, 0.2, 0.2, 0.5) == [False, False, False, True]
    assert Judge(Until(at_least=0.5, patience=3))(0.6) == [True]
    assert Judge(None)(1.0) == [False]


def test_an_old_run_keeps_its_settings() -> None:
    assert set(to_dict(Until(at_least=0.5))) == {"kind", "metric", "at_least"}
    assert from_dict(Any, to_dict(Until(patience=3, gain=0.1))) == Until(patience=3, gain=0.1)
    for wrong in ({"patience": -1}, {"patience": 0.5}, {"gain": -0.1}, {"gain": float("nan")}):
        with pytest.raises(ConfigError, match=f"Until.{next(iter(wrong))}"):
            Until(**wrong)  # type: ignore[arg-type]


def impatient(steps: int) -> Run:
    """An untrained model that solves nothing, evaluated at every step."""
    often = Evaluation(every=1, per_level=2, final_per_level=2)
    stage = reinforce(steps=steps, until=Until(metric="eval/greedy/level_3", at_least=0.9, patience=3))
    return replace(only_rl(), stages=(stage,), evaluation=often, checkpoint_every=1)


def test_a_run_without_progress_ends_and_a_resume_ends_it_at_the_same_step(tmp_path: Path) -> None:
    whole = train(impatient(9), tmp_path / "whole", progress=False)
    assert (whole.finished, whole.step) == (True, 4)  # the first is the best, then three that are not better
    stopped = train(impatient(9), tmp_path / "run", progress=False, callbacks=[StopsAt(2)])
    assert not stopped.finished
    again = resume(tmp_path / "run", progress=False)
    assert (again.step, again.digest) == (4, whole.digest)
    longer = resume(tmp_path / "run", steps=12, progress=False)
    assert longer.step == 7 and digest_of(tmp_path / "run") == longer.digest  # its patience begins anew
    assert read_json(tmp_path / "run" / "done.json")["step"] == 7
