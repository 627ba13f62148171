"""Tensors that are said to be trained and never get a gradient: an event that names them, a metric, a doctor's sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hub_cases import hub_model
from test_hub_runs import hub_run
from tiny_runs import tiny

import assay.runtime.models.lora as lora
from assay.measure import diagnose, read_run
from assay.runs.storage import read_json
from assay.runtime import Lora, save_model
from assay.runtime.learner.untrained import SIGNAL_STEPS, GradientWatch
from assay.train import resume, train

ON_HEAD = Lora(rank=4, targets=("q_proj", "lm_head"))


def test_a_gradient_that_comes_late_counts():
    watch = GradientWatch(["a", "b", "c"])
    for step in range(2 * SIGNAL_STEPS):
        b = torch.full((2,), float(step == SIGNAL_STEPS))
        watch.look({"a": torch.tensor([0.0, 1e-30]), "b": b, "c": None})
        if step < SIGNAL_STEPS - 1:
            assert watch.untrained == ()
        elif step < SIGNAL_STEPS:
            assert watch.untrained == ("b", "c")
        else:
            assert watch.untrained == ("c",)


def test_parameters_without_any_gradient_are_silent():
    watch = GradientWatch(["a"])
    for _ in range(SIGNAL_STEPS):
        watch.look({"a": None})
    assert watch.untrained == ("a",)


def test_it_goes_on_from_a_checkpoint_where_it_was():
    watch, again = GradientWatch(["a", "b"]), GradientWatch(["a", "b"])
    assert watch.state_dict() == {}
    for _ in range(SIGNAL_STEPS - 1):
        watch.look({"a": torch.ones(1), "b": torch.zeros(1)})
    again.load_state_dict(json.loads(json.dumps(watch.state_dict())))
    again.look({"a": torch.zeros(1), "b": torch.zeros(1)})
    assert again.untrained == ("b",)
    again.load_state_dict({})
    assert again.untrained == ("b",)


class _Ranks:
    """Two ranks, of which the other has a gradient of ``b``."""

    def totals(self, numbers: Any) -> dict[str, float]:
        return {name: value + (name == "b") for name, value in numbers.items()}


def test_parts_of_other_ranks_count():
    watch = GradientWatch(["a", "b"], _Ranks())  # type: ignore[arg-type]
    for _ in range(SIGNAL_STEPS):
        watch.look({"a": torch.zeros(1), "b": torch.zeros(1)})
    assert watch.untrained == ("a",)


def events(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "events.jsonl").read_text().splitlines() if (folder / "events.jsonl").exists() else []
    return [e for e in map(json.loads, lines) if e["kind"] == "untrained"]


@pytest.fixture
def unchecked(monkeypatch) -> None:
    """Adapters on the head are put in, as if nobody had looked."""
    monkeypatch.setattr(lora, "_check_trained", lambda module, settings: None)


@pytest.mark.slow
def test_a_run_names_them_once_and_its_doctor_says_so(unchecked, tmp_path):
    save_model(hub_model("llama"), tmp_path / "base")
    run = hub_run(tmp_path / "base", ON_HEAD, warm=SIGNAL_STEPS + 2, rl=1, checkpoint_every=5)
    stage = replace(run.stages[0], learner=replace(run.stages[0].learner, adapter=ON_HEAD))
    run = replace(run, stages=(stage,))
    done = train(run, tmp_path / "run")
    (told,) = events(tmp_path / "run")
    assert told["step"] == SIGNAL_STEPS
    assert "2 trained tensors" in told["message"] and "lm_head.lora_A" in told["message"] and "lm_head.lora_B" in told["message"]
    view = read_run(tmp_path / "run")
    series = view.history()["grad/untrained"]
    assert series.steps.tolist() == [SIGNAL_STEPS, SIGNAL_STEPS + 1, SIGNAL_STEPS + 2] and set(series.values) == {2.0}
    assert "UntrainedWeights" in [f.rule for f in diagnose(view.history())]
    short = replace(run, stages=(replace(stage, steps=5),))
    train(short, tmp_path / "two")
    resume(tmp_path / "two", steps=SIGNAL_STEPS + 2)
    assert read_json(tmp_path / "two" / "done.json")["step"] == done.step
    assert [e["message"] for e in events(tmp_path / "two")] == [told["message"]]


@pytest.mark.slow
def test_ordinary_runs_say_nothing(tmp_path):
    train(tiny(warm=SIGNAL_STEPS + 1, rl=SIGNAL_STEPS + 1), tmp_path / "own")
    save_model(hub_model("llama"), tmp_path / "base")
    adapter = Lora(rank=4, dora=True)
    train(hub_run(tmp_path / "base", adapter, warm=1, rl=SIGNAL_STEPS + 2), tmp_path / "lora")
    for name in ("own", "lora"):
        assert events(tmp_path / name) == []
        assert not len(read_run(tmp_path / name).history()["grad/untrained"])
