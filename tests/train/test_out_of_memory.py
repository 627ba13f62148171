"""Memory that really runs out, in a process of its own with a limit: the part, the arithmetic, the settings that would help."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import SHAPE, in_child, only_rl, reinforce, tiny, warm_up

from assay.core.errors import EngineError, OutOfMemoryError
from assay.core.out_of_memory import ran_out
from assay.core.timing import span
from assay.guide import Compose
from assay.objective import grpo
from assay.runtime import Anchor, LearnerSettings
from assay.train import Evaluation, Scratch, train
from assay.train.out_of_memory import advice

PETA = 1 << 50


def test_what_is_memory_and_what_is_not():
    with (
        pytest.raises(
            OutOfMemoryError, match=r"the sampler asked for more memory than there is \(DefaultCPUAllocator: can't all"
        ),
        span("sample"),
    ):
        torch.empty(PETA)
    with pytest.raises(OutOfMemoryError, match=r"the gradient pass asked for .*\(MemoryError\)"), span("update"):
        bytearray(1 << 62)
    with pytest.raises(ZeroDivisionError), span("update"):
        _ = 1 / 0
    with pytest.raises(RuntimeError, match="size mismatch"), span("update"):
        raise RuntimeError("size mismatch")
    with pytest.raises(OutOfMemoryError, match=r"^the gradient pass asked"), span("step"), span("update"):
        torch.empty(PETA)


def test_errors_that_were_made_of_it_tell_it_too():
    try:
        try:
            torch.empty(PETA)
        except RuntimeError as error:
            raise EngineError("generation failed") from error
    except EngineError as error:
        assert "DefaultCPUAllocator" in (ran_out(error) or "")
    assert ran_out(EngineError("generation failed")) is None
    assert ran_out(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")) is not None


def limited(more: int, work: Callable[[], object], told: Path) -> None:
    """Runs ``work`` where no more than ``more`` bytes can still be asked for, in a child, and writes what was raised."""

    def child() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + more
        try:
            torch.set_num_threads(1)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            work()
        except Exception as error:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            told.write_text(json.dumps([type(error).__name__, str(error)]))

    assert in_child(child) == 0


def wide(**changes: Any) -> LearnerSettings:
    return LearnerSettings(micro_tokens=1 << 20, kernel=False, **changes)  # whose passes ask most


BROAD = replace(SHAPE, hidden_size=64, intermediate_size=4096)  # blocks too large for what a process keeps for itself
LONG = replace(SHAPE, hidden_size=64, num_heads=32, num_kv_heads=32, head_dim=64)
CASES = {
    "the gradient pass": replace(
        tiny(), model=Scratch(shape=BROAD), stages=(warm_up(batch=1024, steps=1, demonstrations=1024, learner=wide()),)
    ),
    "the sampler": replace(only_rl(groups=64, group_size=16, steps=1), model=Scratch(shape=LONG)),
    "the pass that compares sampler and learner": replace(
        only_rl(groups=64, group_size=16, learner=wide(anchors=()), objective=grpo(kl=0.0), steps=1),
        model=Scratch(shape=replace(LONG, num_heads=16, num_kv_heads=16)),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
    ),
    "the passes before a step": replace(
        only_rl(groups=64, group_size=16, learner=wide(), steps=1),
        model=Scratch(shape=replace(LONG, num_heads=16, num_kv_heads=16)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", CASES)
def test_the_part_that_asked_is_named_with_what_would_help(part, tmp_path):
    limited(185 << 20, lambda: train(CASES[part], tmp_path / "run"), tmp_path / "told")
    name, text = json.loads((tmp_path / "told").read_text())
    assert name == "OutOfMemoryError" and text.startswith(f"{part} asked for more memory than there is (")
    assert "this stage needs about " in text and "what would take less, in a new run: " in text
    saved = text.split("in a new run: ")[1]
    first = "Run.engine=InProcess(max_batch=32) saves " if part == "the sampler" else "micro_tokens=524288 saves "
    assert first in saved and "checkpointing=True saves " in saved and "\n" not in text
    said = [json.loads(line)["kind"] for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert "error" in said, "the journal knows it too"


def test_memory_that_runs_out_elsewhere_in_a_step_is_told_too(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Compose, "compose", full)
    with pytest.raises(OutOfMemoryError, match=r"a step, beside its passes, asked for more .*this stage needs about "):
        train(only_rl(steps=1), tmp_path / "run")


def test_a_model_that_does_not_fit_frees_the_folder(tmp_path):
    """Positions without end: the tables of cosines alone would be terabytes."""
    run = replace(only_rl(), model=Scratch(shape=replace(SHAPE, max_positions=1 << 40)))
    with pytest.raises(OutOfMemoryError, match=r"learner and engine, as they were built, asked for more .*TiB"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert train(only_rl(steps=1), tmp_path / "run").finished


def test_models_of_anchors_are_counted(tmp_path):
    train(only_rl(steps=1), tmp_path / "teacher")
    learner = LearnerSettings(anchors=(Anchor(), Anchor("teacher", model=str(tmp_path / "teacher"))), micro_tokens=512)
    run = replace(only_rl(), stages=(reinforce(steps=1, learner=learner),))
    train(run, tmp_path / "run")
    alone = advice(only_rl(), only_rl().stages[0], SHAPE, tmp_path / "teacher")
    both = advice(run, run.stages[0], SHAPE, tmp_path / "run")
    assert "anchors" in both and both != alone
