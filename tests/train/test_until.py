"""Stages of every kind end early by an evaluation, and a resume ends them at the same step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_runs import imitate, prefer, tiny

from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError
from assay.measure import read_run
from assay.runs.journal import Journal
from assay.train import Until, load_run, resume, train
from assay.train.callbacks import Callbacks
from assay.train.run import ContaminationCheck, Evaluation, Run
from assay.train.run_log import RunLog
from assay.train.run_progress import Progress
from assay.train.stage import Stage
from assay.train.stage_driver import StageDriver
from assay.train.stages import Texts, WarmUp

DIGITS = "0123456789"
TEXTS = Texts(data=tuple({"text": f"{a}{b}"} for a in DIGITS for b in DIGITS), steps=6, batch=4, max_tokens=16)
STAGES: dict[str, Stage] = {
    "WarmUp": WarmUp(steps=6, batch=4, demonstrations=8, levels=(3,)),
    "Imitate": replace(imitate(), steps=6),
    "Prefer": replace(prefer(), steps=6),
    "Texts": TEXTS,
}


def ending(stage: Stage) -> Run:
    """Ends at its first evaluation, at step 2."""
    often = Evaluation(every=2, per_level=1, final_per_level=1)
    return replace(
        tiny(),
        stages=(replace(stage, until=Until(at_least=0.0)),),
        evaluation=often,
        contamination=ContaminationCheck(mode="off"),
    )


@pytest.mark.parametrize("kind", STAGES)
def test_a_stage_of_any_kind_ends_when_its_metric_is_reached(tmp_path: Path, kind: str) -> None:
    outcome = train(ending(STAGES[kind]), tmp_path / "run")
    assert (outcome.finished, outcome.step) == (True, 2)
    lines = [json.loads(line) for line in (tmp_path / "run" / "evals.jsonl").read_text().splitlines()]
    assert [(r["step"], r["full"]) for r in lines if r["mode"] == "greedy"][-2:] == [(2, False), (2, True)]
    assert load_run(tmp_path / "run").stages[0].until == Until(at_least=0.0)
    if kind == "Imitate":
        told = f"Ended early: {STAGES[kind].name} ended at its step 2 of 6: eval/greedy/all is "
        assert told in outcome.sentence and told in outcome.summary(), outcome.sentence
        (event,) = [e for e in read_run(tmp_path / "run").events if e.kind == "until"]
        assert event.step == 2 and "which reaches until.at_least = 0" in event.message
        assert resume(tmp_path / "run", steps=20).step == 4, "more steps lift it until the next evaluation"


@pytest.mark.parametrize("kind", STAGES)
def test_a_stage_without_one_is_written_as_before(kind: str) -> None:
    run = replace(tiny(), stages=(STAGES[kind],))
    assert "until" not in to_dict(run)["stages"][0]
    assert from_dict(Run, to_dict(run)) == run


@pytest.mark.parametrize("kind", STAGES)
def test_an_early_end_without_evaluations_is_refused_by_name(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"{kind}.until is looked at when there is an evaluation"):
        replace(ending(STAGES[kind]), evaluation=Evaluation(every=0))


def test_a_strict_bound_is_not_reached_by_its_own_value() -> None:
    """SATURN: pass@1 of exactly 0.5 does not promote."""
    strict, weak = Until(at_least=0.5, strictly=True), Until(at_least=0.5)
    assert [bool(strict.reason(value, 0)) for value in (0.49, 0.5, 0.51)] == [False, False, True]
    assert [bool(weak.reason(value, 0)) for value in (0.49, 0.5, 0.51)] == [False, True, True]
    assert strict.reason(0.51, 0) == "eval/greedy/all is 0.51, which is above until.at_least = 0.5"


def test_patience_ranks_evaluations_on_the_items_that_all_have(tmp_path: Path) -> None:
    """At a stage's end 0.6 of all items are 0.9 of the few that the evaluations before it had: better than their 0.8."""
    log = RunLog(Journal(tmp_path / "run"))
    driver = StageDriver(tiny(), tmp_path / "run", log, Callbacks(()), Progress(), saved={})
    parts: Any = SimpleNamespace(stage=SimpleNamespace(until=Until(patience=1)))
    for shown, common, best, stale in ((0.8, 0.8, 0.8, 0), (0.6, 0.9, 0.9, 0), (0.85, 0.85, 0.9, 1)):
        driver._evaluator.comparable = {"eval/greedy/all": common}
        assert driver._ends(parts, {"eval/greedy/all": shown}) == (
            "1 evaluations without a gain in eval/greedy/all (until.patience = 1)" if stale else ""
        )
        assert (driver.progress.best, driver.progress.stale) == (best, stale)
