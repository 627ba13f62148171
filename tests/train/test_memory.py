"""What explain says of memory, against the weights that training really holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hub_cases import DENSE, FAMILIES, hub_model
from live_bytes import LiveBytes

from assay.cli.sizes import derive
from assay.core.errors import DataError
from assay.core.rollout import Sampling
from assay.core.seeds import generator
from assay.objective.methods import srpo
from assay.recipes import quickstart
from assay.runtime import (
    DecoderShape,
    HubModel,
    InProcess,
    LearnerSettings,
    Lora,
    Mesh,
    Model,
    Muon,
    Native,
    TorchLearner,
    Trunk,
    ValueHead,
    char_tokenizer,
    init_model,
    load_model,
    save_model,
)
from assay.runtime.compiled import build as builds
from assay.runtime.kernels import compile as compiling
from assay.runtime.learner.lm_head import LmHead, head_columns
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.settings import HEAD_ELEMENTS
from assay.train import Folder, Reinforce, Run, Scratch
from assay.train.memory import WeightSizes, activations_of, head_of, weights_in, weights_of
from assay_tasks import SortDigits

ADAPTERS = (None, Lora(rank=4), Lora(rank=4, dora=True), Lora(rank=3, targets=("q_proj", "down_proj")))


def held(learner: TorchLearner) -> tuple[int, int]:
    """Weights in all, and those that learn."""
    learns = sum(p.numel() for p in learner.parameters.values())
    frozen = sum(p.numel() for n, p in learner.policy.weights().items() if n not in learner.parameters)
    return learns + frozen, learns


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS, ids=str)
@pytest.mark.parametrize("family", ["qwen3", "gemma2"])
def test_counts_of_a_folder_are_those_that_are_trained(family, adapter, tmp_path):
    save_model(hub_model(family), tmp_path / "m")
    found = weights_in(tmp_path / "m")
    count, learns = held(TorchLearner(hub_model(family), LearnerSettings(adapter=adapter), total_steps=1))
    assert found.trainable_count(adapter) == learns
    assert found.count + (learns if adapter else 0) == count


@pytest.mark.parametrize("adapter", ADAPTERS, ids=str)
def test_counts_of_a_shape_are_those_that_are_trained(adapter):
    shape = DecoderShape(
        vocab_size=12, hidden_size=32, num_heads=4, num_kv_heads=2, head_dim=16, intermediate_size=48, tied=False
    )
    learner = TorchLearner(init_model(shape, char_tokenizer("0123456789"), 0), LearnerSettings(adapter=adapter), total_steps=1)
    assert weights_of(shape).trainable_count(adapter) == held(learner)[1]


@pytest.mark.parametrize("family", DENSE)
def test_explain_adds_up_the_parts_of_any_model(family, tmp_path):
    """fp32 throughout: weights, gradients, two moments, the reference and the engine's copy; an adapter takes their place.

    assay's own engine holds its copy twice: as tensors, and in the order of its compiled decode path.
    """
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
    copies = 2 if isinstance(full.shape, DecoderShape) else 1
    assert (parts.weights, parts.gradients, parts.optimiser) == (4 * count, 4 * count, 8 * count)
    assert (parts.anchors, parts.engine) == (4 * count, copies * 4 * count)
    assert derive(replace(run, engine=Native(kernel=False))).memory.engine == 4 * count
    assert derive(replace(run, engine=Native(dtype="bfloat16"))).memory.engine == 2 * (copies + 1) * count
    stage = replace(run.stages[0], learner=LearnerSettings(adapter=Lora(rank=4), precision="bf16"))
    small = derive(replace(run, stages=(stage,))).memory
    learns = weights_in(tmp_path / "m").trainable_count(Lora(rank=4))
    assert small.weights == 2 * count + 4 * learns
    assert (small.gradients, small.optimiser, small.anchors) == (4 * learns, 8 * learns, 4 * learns)
    assert small.engine == 4 * count + 4 * learns, "a float32 engine cannot share weights that lie in bf16"
    bf16 = derive(replace(run, engine=InProcess(dtype="bfloat16"), stages=(stage,))).memory
    assert bf16.engine == 4 * learns


def test_muon_keeps_one_moment_of_hidden_matrices():
    run = Run(model=Scratch(), tasks=SortDigits(levels=(1,)), stages=(Reinforce(learner=LearnerSettings(optimizer=Muon())),))
    found = derive(run)
    assert found.memory.optimiser == 4 * (2 * found.parameters - weights_of(found.shape).hidden)


def test_ranks_share_what_is_learned_and_not_the_engine():
    run = Run(model=Scratch(), tasks=SortDigits(levels=(1,)), stages=(Reinforce(),))
    one, two, rows = (derive(replace(run, mesh=m)).memory for m in (Mesh(), Mesh(data=2), Mesh(context=2)))
    for part in ("weights", "gradients", "optimiser", "anchors"):
        assert getattr(one, part) == 2 * getattr(two, part) == 2 * getattr(rows, part)
    assert (two.engine, two.cache, two.activations) == (one.engine, one.cache, one.activations)
    assert rows.activations == one.activations // 2


def measured(model: HubModel | Model, settings: LearnerSettings, lengths: list[int]) -> int:
    """The most bytes that a gradient pass over rows, entropies read too, keeps alive at once, besides weights and gradients."""
    learner = TorchLearner(model, settings, total_steps=1)
    held = builds.kernel().assay_bytes() if learner.policy.shares else 0
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = torch.from_numpy(generator("ids", 0).integers(2, 90, int(offsets[-1])))
    where = torch.from_numpy(np.setdiff1d(np.arange(offsets[-1]), offsets[:-1]))
    with LiveBytes() as live:
        with learner.passes.autocast():
            logp, entropy = learner.policy.columns(ids, pack_offsets(offsets), where, True)
        (logp.sum() + entropy.sum()).backward()
    return live.peak + (builds.kernel().assay_bytes() - held if learner.policy.shares else 0)


KEPT = ("qwen3", "gpt2", "gemma2", "mixtral")
WAYS = {
    "full": LearnerSettings(),
    "plain": LearnerSettings(kernel=False),
    "bf16": LearnerSettings(precision="bf16"),
    "again": LearnerSettings(checkpointing=True),
    "lora": LearnerSettings(adapter=Lora(rank=4)),
    "both": LearnerSettings(adapter=Lora(rank=4), precision="bf16"),
    "all": LearnerSettings(adapter=Lora(rank=4), precision="bf16", checkpointing=True),
}


@pytest.mark.parametrize(
    ("family", "way"),
    [
        pytest.param(f, way, marks=[] if f == KEPT[0] or (f in KEPT and way in ("full", "all")) else pytest.mark.prove)
        for f in FAMILIES
        for way in WAYS
    ],
)
def test_activations_are_predicted_within_a_factor_of_one_and_a_half(family, way, tmp_path):
    """Of every family, and with ``qwen3`` and ``llama`` for assay's own decoder, where nothing is asked that it lacks."""
    save_model(hub_model(family), tmp_path / "m")
    model, rows = load_model(tmp_path / "m"), [100] * 8
    settings = replace(WAYS[way], micro_tokens=sum(rows))
    shape = replace(model.shape, max_positions=100)  # the longest row there is
    weights = weights_in(tmp_path / "m")
    told = activations_of(settings, shape, weights) + head_of(settings, shape, weights)
    assert told / 1.5 < measured(model, settings, rows) < told * 1.5


@pytest.mark.prove
def test_what_compiled_layers_keep_is_predicted_too(tmp_path, monkeypatch):
    """By the compiler's own choice of what is computed again, on operations as they are; bytes are the allocator's."""
    monkeypatch.setattr(compiling, "BACKEND", "aot_eager_decomp_partition")
    torch._dynamo.reset()
    save_model(hub_model("qwen3"), tmp_path / "m")
    weights, rows = weights_in(tmp_path / "m"), np.arange(0, 801, 100)
    ids = torch.from_numpy(generator("ids", 0).integers(2, 90, 800))
    where = torch.from_numpy(np.setdiff1d(np.arange(800), rows[:-1]))
    peaks: dict[bool, int] = {}
    for compiled in (False, True):
        settings = LearnerSettings(precision="bf16", compile=compiled, micro_tokens=800)
        learner = TorchLearner(hub_model("qwen3"), settings, total_steps=1)

        def work(learner: TorchLearner = learner) -> None:
            with learner.passes.autocast():
                logp, entropy = learner.policy.columns(ids, pack_offsets(rows), where, True)
            (logp.sum() + entropy.sum()).backward()

        work()
        with torch.profiler.profile(profile_memory=True) as profile:
            work()
        events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        events.sort(key=lambda e: e.start_ns())
        peaks[compiled] = int(np.cumsum([e.nbytes() for e in events]).max())
        shape = replace(learner.policy.shape, max_positions=100)
        told = activations_of(settings, shape, weights) + head_of(settings, shape, weights)
        assert told / 1.5 < peaks[compiled] < told * 1.5, compiled
    torch._dynamo.reset()
    assert peaks[True] < 0.8 * peaks[False]


def test_logits_on_cuda_are_told_by_the_chunks_that_are_computed_there(monkeypatch):
    """A chunk there is larger, and beside it lies the head's weight as products take it."""
    monkeypatch.setitem(HEAD_ELEMENTS, "cuda", 1 << 20)
    monkeypatch.setitem(HEAD_ELEMENTS, "cpu", 1 << 20)
    shape = DecoderShape(vocab_size=4096, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=8)
    settings = LearnerSettings(precision="bf16", device="cuda", micro_tokens=1024)
    told = head_of(settings, shape, WeightSizes(0, ()))
    assert told == 4 * (4 * 256 * 4096 + 4096 * 32) + 2 * 4096 * 32
    here = replace(settings, device="cpu", precision="fp32")
    assert head_of(replace(here, kernel=False), shape, WeightSizes(0, ())) == told - 2 * 4096 * 32
    large = replace(shape, vocab_size=4097)
    assert head_of(here, large, WeightSizes(0, ())) == head_of(replace(here, kernel=False), large, WeightSizes(0, ()))
    hidden, weight = (torch.from_numpy(generator("head", n).standard_normal((n, 32), np.float32)) for n in (1024, 4096))
    hidden.requires_grad_(), weight.requires_grad_()
    with LiveBytes() as live:
        logp, entropy = head_columns(hidden, LmHead(weight, half=True), torch.arange(1024), True)
        (logp.sum() + entropy.sum()).backward()
    assert told / 1.5 < live.peak < told * 1.5


def test_the_compiled_head_holds_a_block_of_logits_and_sums_of_its_gradient():
    """2 ** 27 products are worth eight sums; what a layer needs later on is not counted twice."""
    shape = DecoderShape(vocab_size=4096, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=8)
    settings = LearnerSettings(precision="bf16", device="cpu", micro_tokens=1024)
    assert head_of(settings, shape, WeightSizes(0, ())) == 4 * (2 * 96 * 4096 + 10 * 4096 * 32)


@pytest.mark.parametrize("there", [["NVIDIA"], []])
def test_auto_counts_as_the_device_that_is_there(monkeypatch, there):
    monkeypatch.setattr("assay.runtime.machine.gpus", lambda: there)
    shape, device = DecoderShape(vocab_size=20_000), "cuda" if there else "cpu"
    heads = [head_of(LearnerSettings(device=d, precision="bf16"), shape, WeightSizes(0, ())) for d in ("auto", "cuda", "cpu")]
    assert heads[0] == heads[1 if device == "cuda" else 2]
    assert heads[1] != heads[2]


def test_checkpointing_and_smaller_micro_batches_save_what_they_are_said_to(tmp_path):
    save_model(hub_model("gpt2"), tmp_path / "m")
    run = Run(model=Folder(str(tmp_path / "m")), tasks=SortDigits(levels=(1,)), stages=(Reinforce(),))
    found = derive(run)
    less = dict(found.less)
    assert list(less.values()) == sorted(less.values(), reverse=True) and "checkpointing=True" in less
    assert less["micro_tokens=2048"] == pytest.approx(found.memory.activations / 2, rel=0.2)
    for name, change in (("checkpointing=True", {"checkpointing": True}), ("micro_tokens=2048", {"micro_tokens": 2048})):
        stage = replace(run.stages[0], learner=replace(run.stages[0].learner, **change))
        then = derive(replace(run, stages=(stage,)))
        assert found.memory.total - then.memory.total == less[name] and name not in dict(then.less)
    served = derive(replace(run, engine=InProcess(max_batch=2, dtype="bfloat16")))
    assert served.memory.cache < found.memory.cache / 2


@pytest.mark.parametrize(("k", "proposed"), [(3, ["group_size=4"]), (4, [])])
def test_no_group_is_proposed_that_is_smaller_than_the_objective_needs(k, proposed):
    run = quickstart()
    run = replace(run, stages=(replace(run.stages[0], objective=srpo(k=k), group_size=8),))
    assert run.stages[0].objective.min_group == k + 1
    assert [name for name, _ in derive(run).less if name.startswith("group_size")] == proposed


def test_critics_trunks_count_as_models(tmp_path):
    plain = LearnerSettings()
    heads = replace(plain, trunks=(Trunk(tau=0.1),), heads=(ValueHead(trunk="critic", tau=0.1),))
    one, two = (
        derive(Run(model=Scratch(), tasks=SortDigits(levels=(1,)), stages=(Reinforce(learner=x),))) for x in (plain, heads)
    )
    assert two.memory.weights - one.memory.weights == 8 * one.parameters
    assert two.memory.optimiser - one.memory.optimiser == 8 * one.parameters


def test_bad_folders_are_named(tmp_path):
    with pytest.raises(DataError, match=r"has no \*.safetensors"):
        weights_in(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(DataError, match="truncated or damaged"):
        weights_in(tmp_path)
