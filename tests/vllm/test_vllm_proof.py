"""The proof of weights on a real bf16 server at lr 1e-6, where no threshold tells new weights from those of a step before."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from vllm_proof import LR, PART, REHEARSED, Faulty, Trained, base, before, other, part, proved
from vllm_servers import gap

from assay.core.errors import WeightProofError
from assay.core.rollout import Sampling
from assay.lab.controls import RandomReward, Rewarded
from assay.objective import grpo
from assay.runs.storage import read_json
from assay.runtime import AdamW, LearnerSettings, Lora, VllmEngine, save_model
from assay.train import Evaluation, Folder, Reinforce, Run, train
from assay.train.proof import probe_rows
from assay_tasks import SortDigits


def test_a_healthy_server_is_proved_at_a_tiny_learning_rate(spare, model):
    engine, made = VllmEngine(spare.settings(), model), Trained(model)
    proof, found = asyncio.run(proved(engine, made))
    assert found == [True] * 3
    assert proof.steady and proof.blind == ()
    assert 1e-4 < proof.noise < 0.5


def test_no_threshold_would_have_told(spare, model):
    """The newest weights and those of a step before are equally far from the learner's own numbers."""
    engine, made = VllmEngine(spare.settings(), model), Trained(model)
    rows = probe_rows(model.shape.vocab_size, 64, 0, rows=4, length=24)

    async def measured():
        gaps = []
        await engine.swap(made.manifest())
        old = await engine.score(rows)
        for _ in range(3):
            await engine.swap(made.step())
            new, mine = await engine.score(rows), made.learner.score(rows)
            moved = np.concatenate([np.not_equal(a[1:], b[1:]) for a, b in zip(new, old, strict=True)])
            gaps.append((gap(new, mine), gap(old, mine), float(moved.mean())))
            old = new
        return gaps

    for fresh, stale, moved in asyncio.run(measured()):
        assert 0.5 < stale / fresh < 2.0
        assert moved > 0.9


@pytest.mark.parametrize(
    ("fault", "healthy", "said"),
    [
        (before, REHEARSED, "it is one step stale|tensors differ"),
        (base, REHEARSED + 1, "version 0 gave|tensors differ"),
        (part, 1, f"in all of them: {PART} did not arrive"),
        (other, REHEARSED, "other weights|tensors differ"),
        (other, 0, "before the first update|tensors differ"),
    ],
    ids=["stale", "base again", "partial", "another model", "another model from the start"],
)
@pytest.mark.parametrize("checksums", [True, False])
def test_faults_of_the_weights_are_caught(spare, model, fault, healthy, said, checksums, monkeypatch):
    engine = Faulty(VllmEngine(spare.settings(), model), fault, healthy)
    if not checksums:
        monkeypatch.setattr(VllmEngine, "checksums", nothing)
    with pytest.raises(WeightProofError, match=said):
        asyncio.run(proved(engine, Trained(model)))


async def nothing(self: Any) -> None:
    return None


class Bare:
    """Answers without the adapter that it was handed: as a server does that knows none of that name."""

    def __init__(self, engine: Any, base: Any) -> None:
        self.engine, self.base = engine, base

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    async def score(self, rows: Any) -> Any:
        return await self.base.score(rows)


def test_an_adapter_is_proved_and_a_server_without_it_is_caught(spare, model):
    """Before the first step an adapter changes nothing: only the rehearsal shows that it is asked."""
    made = Trained(model, Lora(rank=4))
    start = VllmEngine(spare.settings(), model)
    asyncio.run(start.swap(Trained(model).manifest()))
    engine = made.learner.settings and spare.settings().build(made.learner)
    proof, found = asyncio.run(proved(engine, made))
    assert found == [True] * 3 and proof.blind == ()
    again = Trained(model, Lora(rank=4))
    with pytest.raises(WeightProofError, match="or it answers without them"):
        asyncio.run(proved(Bare(spare.settings().build(again.learner), start), again))


@pytest.mark.parametrize("adapter", [None, Lora(rank=4)], ids=["full", "lora"])
def test_a_run_on_the_server(spare, model, tmp_path, adapter):
    """The whole loop: sampled there, trained here, every update proved."""
    save_model(model, tmp_path / "start")
    if adapter is not None:
        asyncio.run(VllmEngine(spare.settings(), model).swap(Trained(model).manifest()))
    run = Run(
        model=Folder(str(tmp_path / "start")),
        tasks=Rewarded(source=SortDigits(levels=(1, 2)), scorer=RandomReward()),
        stages=(
            Reinforce(
                steps=3,
                groups=2,
                group_size=4,
                objective=grpo(kl=0.0),
                learner=LearnerSettings(optimizer=AdamW(lr=LR), adapter=adapter),
            ),
        ),
        sampling=Sampling(max_new_tokens=6),
        engine=spare.settings(),
        evaluation=Evaluation(every=0, final_per_level=2),
    )
    done = train(run, tmp_path / "run")
    assert done.finished
    lines = [read for read in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines() if '"proof/state"' in read]
    assert len(lines) == 3 and all('"proof/state":1.0' in line.replace(" ", "") for line in lines)
    assert read_json(tmp_path / "run" / "done.json")["step"] == 3
