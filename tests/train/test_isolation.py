"""A run says what contained the programs that its judges started: in its folder, in its events, and again where that changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tiny_runs import only_rl

from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.lab.controls import Rewarded
from assay.sandbox import Refused, attack_probe
from assay.train import record
from assay.train.driver import train
from assay.train.run import Run
from assay.verify import ExactMatch
from assay.verify.code import CodeOutput, close_sandboxes


@dataclass(frozen=True, slots=True)
class Contained:
    """An exact match that claims to start programs as a verifier of programs does."""

    trusted: ClassVar[bool] = True
    backend: str = "auto"
    allow_unsafe: bool = False

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return ExactMatch()(task, rollout)

    def isolation(self) -> dict[str, Any]:
        return CodeOutput(backend=self.backend, allow_unsafe=self.allow_unsafe).isolation()


def judged_by(verifier: Any, steps: int = 1) -> Run:
    run = only_rl(steps=steps)
    return replace(run, tasks=Rewarded(source=run.tasks, scorer=verifier))


def test_a_run_records_what_contains_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(judged_by(Contained("rlimits", True)), tmp_path / "run")
    found = json.loads((tmp_path / "run" / "isolation.json").read_text())
    assert found["reward"]["tag"] == "rlimits (UNSAFE)" and found["reward"]["held"] is False
    line = f"reward: {found['reward']['line']}"
    (event,) = map(json.loads, (tmp_path / "run" / "events.jsonl").read_text().splitlines())
    assert (event["kind"], event["message"], event["step"]) == ("isolation", line, 0)
    said = capsys.readouterr().err
    assert line in said and "UNSAFE. Programs run with limits on time and memory only" in said


def test_a_run_whose_judges_start_no_program_says_nothing(tmp_path: Path) -> None:
    train(only_rl(steps=1), tmp_path / "run")
    assert not (tmp_path / "run" / "isolation.json").exists()


def test_only_what_changes_is_told_again(tmp_path: Path) -> None:
    rlimits = Contained("rlimits", True)
    assert record.isolation(tmp_path, {"reward": rlimits, "check": ExactMatch()}) != []
    assert record.isolation(tmp_path, {"reward": rlimits}) == []
    (line,) = record.isolation(tmp_path, {"reward": rlimits, "check": rlimits})
    assert line.startswith("check: isolation: rlimits")
    assert set(json.loads((tmp_path / "isolation.json").read_text())) == {"reward", "check"}


def test_a_run_that_nothing_would_contain_is_refused_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise Refused("planted")

    close_sandboxes()
    monkeypatch.setattr("assay.sandbox.levels.ZygoteBackend.start", refuse)
    monkeypatch.setattr("assay.sandbox.levels.installed_folders", lambda: ())
    monkeypatch.setattr(attack_probe, "_known", {})
    with pytest.raises(ConfigError, match="a verifier of programs cannot run here"):
        train(judged_by(Contained()), tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()
