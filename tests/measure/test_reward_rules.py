"""The doctor on a model that begins as noise, and on a reward that pays for wrong answers."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log

import pytest

from assay.measure import PartialCredit, RandomWeights, doctor
from assay.measure.findings import Severity
from assay.measure.history import History
from assay.measure.runs import read_run
from assay.runs import MetricLine

UNIFORM = log(395)


def history(steps: int = 70, every: int = 10, **courses: tuple[float, float]) -> History:
    """A history whose metrics go straight from one value to another; evaluations come every few steps."""
    lines = [
        MetricLine(
            step=step,
            stage="rl",
            metrics={
                n.replace("__", "/"): a + (b - a) * (step - 1) / (steps - 1)
                for n, (a, b) in courses.items()
                if not n.startswith("eval") or step % every in (0, 1)
            },
        )
        for step in range(1, steps + 1)
    ]
    return History.of(lines, 80)


NOISE = {
    "entropy__mean": (5.963, 5.963),
    "length__truncated": (0.9, 0.9),
    "reward__mean": (0.15, 0.16),
    "format__rate": (0.1, 0.1),
}
FARMED = {
    "reward__mean": (0.23, 0.2),
    "reward__std": (0.15, 0.1),
    "signal__fraction": (0.8, 0.25),
    "eval__sampled__all": (0.05, 0.0125),
    "entropy__mean": (0.28, 0.26),
}
MOVING = {"grad__norm": (0.3, 0.3), "proof__state": (1.0, 1.0)}
NOISE |= MOVING
FARMED |= MOVING


def test_a_model_that_begins_as_noise_is_told_to_load_or_imitate_and_not_to_write_longer() -> None:
    found = doctor.diagnose(replace(history(**NOISE), vocabulary=395))
    assert [f.rule for f in found] == ["RandomWeights"] and found[0].severity is Severity.ALARM
    assert "5.96 nats" in found[0].sentence and "395 tokens has 5.98" in found[0].sentence
    assert "nothing was loaded or trained" in found[0].action and "imitate" in found[0].action
    assert found[0].numbers["entropy/uniform"] == UNIFORM


def test_noise_is_only_what_is_near_uniform_over_a_vocabulary_that_is_known() -> None:
    assert RandomWeights()(history(**NOISE)) is None  # unknown
    assert RandomWeights()(replace(history(**NOISE), vocabulary=151_936)) is None  # half of log(151,936): a model that doubts
    assert RandomWeights()(replace(history(entropy__mean=(2.4, 2.4)), vocabulary=12)) is None  # a toy's own start


def test_the_vocabulary_is_that_of_the_weights_that_the_run_began_with(tmp_path) -> None:
    lines = [
        {"step": s, "stage": "rl", "metrics": {"entropy/mean": 5.96, "grad/norm": 0.3, "proof/state": 1.0}} for s in range(1, 9)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(tmp_path).history().vocabulary == 0
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "config.json").write_text('{"text_config": {"vocab_size": 395}}')
    assert [f.rule for f in doctor.diagnose(read_run(tmp_path).history())] == ["RandomWeights"]
    (tmp_path / "start" / "config.json").write_text("torn {")
    assert read_run(tmp_path).history().vocabulary == 0


def test_partial_credit_that_is_farmed_is_found() -> None:
    (found,) = doctor.diagnose(history(**FARMED))
    assert found.rule == "PartialCredit" and found.severity is Severity.WARNING
    assert "wrong answers are paid" in found.sentence and "assay verify audit" in found.action
    assert found.numbers["eval/sampled/all"] == pytest.approx(0.0125)


def test_what_is_no_farmed_credit() -> None:
    for healthier in (
        {"eval__sampled__all": (0.05, 0.3)},  # it learns
        {"eval__sampled__all": (0.2, 0.19)},  # the reward is the right answers
        {"signal__fraction": (0.8, 0.75)},  # groups still differ
        {"reward__mean": (0.4, 0.2)},  # the reward fell with it: another finding's
        {"reward__std": (0.4, 0.4)},  # a reward of 0 and 1, on rows that are easier than those held out
    ):
        assert PartialCredit()(history(**{**FARMED, **healthier})) is None, healthier
    assert PartialCredit()(history(steps=8, every=7, **FARMED)) is None  # too short to have a before and a now
