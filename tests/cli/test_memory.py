"""What explain says of memory, against the weights that training really holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hub_cases import DENSE, hub_model

from assay.cli.memory import weights_in, weights_of
from assay.cli.sizes import derive
from assay.core.errors import DataError
from assay.core.rollout import Sampling
from assay.runtime import DecoderShape, LearnerSettings, Lora, Muon, TorchLearner, char_tokenizer, init_model, save_model
from assay.tasks import SortDigits
from assay.train import Folder, Reinforce, Run, Scratch

ADAPTERS = (None, Lora(rank=4), Lora(rank=4, dora=True), Lora(rank=3, targets=("q_proj", "down_proj")))


def held(learner: TorchLearner) -> tuple[int, int]:
    """Weights in all, and those that learn."""
    learns = sum(p.numel() for p in learner.parameters.values())
    frozen = sum(p.numel() for n, p in learner.policy.weights().items() if n not in learner.parameters)
    return learns + frozen, learns


@pytest.mark.parametrize("adapter", ADAPTERS, ids=str)
@pytest.mark.parametrize("family", ["qwen3", "gemma2"])
def test_counts_of_a_folder_are_those_that_are_trained(family, adapter, tmp_path):
    save_model(hub_model(family), tmp_path / "m")
    found = weights_in(tmp_path / "m")
    count, learns = held(TorchLearner(hub_model(family), LearnerSettings(adapter=adapter), total_steps=1))
    assert found.trained(adapter) == learns
    assert found.count + (learns if adapter else 0) == count


@pytest.mark.parametrize("adapter", ADAPTERS, ids=str)
def test_counts_of_a_shape_are_those_that_are_trained(adapter):
    shape = DecoderShape(
        vocab_size=12, hidden_size=32, num_heads=4, num_kv_heads=2, head_dim=16, intermediate_size=48, tied=False
    )
    learner = TorchLearner(init_model(shape, char_tokenizer("0123456789"), 0), LearnerSettings(adapter=adapter), total_steps=1)
    assert weights_of(shape).trained(adapter) == held(learner)[1]


@pytest.mark.parametrize("family", DENSE)
def test_explain_adds_up_the_parts_of_any_model(family, tmp_path):
    """fp32 throughout: weights, gradients, two moments, the reference and the engine's copy; an adapter takes their place."""
    save_model(hub_model(family), tmp_path / "m")
    count = hub_model(family).shape.parameters
    run = Run(
        model=Folder(str(tmp_path / "m")),
        tasks=SortDigits(levels=(1,)),
        stages=(Reinforce(),),
        sampling=Sampling(max_new_tokens=4),
    )
    full = derive(run)
    assert full.parameters == count and full.context == 160
    parts = full.memory
    assert (parts.weights, parts.gradients, parts.optimiser, parts.anchors, parts.engine) == (4 * count, 4 * count, 8 * count) + (
        4 * count,
    ) * 2
    stage = replace(run.stages[0], learner=LearnerSettings(adapter=Lora(rank=4), precision="bf16"))
    small = derive(replace(run, stages=(stage,))).memory
    learns = weights_in(tmp_path / "m").trained(Lora(rank=4))
    assert small.weights == 2 * count + 4 * learns
    assert (small.gradients, small.optimiser, small.anchors, small.engine) == (4 * learns, 8 * learns, 4 * learns, 4 * learns)


def test_muon_keeps_one_moment_of_hidden_matrices():
    run = Run(model=Scratch(), tasks=SortDigits(levels=(1,)), stages=(Reinforce(learner=LearnerSettings(optimizer=Muon())),))
    found = derive(run)
    assert found.memory.optimiser == 4 * (2 * found.parameters - weights_of(found.shape).hidden)


def test_bad_folders_are_named(tmp_path):
    with pytest.raises(DataError, match=r"has no \*.safetensors"):
        weights_in(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(DataError, match="truncated or damaged"):
        weights_in(tmp_path)
