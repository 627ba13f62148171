"""Mixtures of experts on real servers: two families, files and transfers, faults of the weights, and what a CPU must be told."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from vllm_experts import exact, mixture
from vllm_proof import LR, REHEARSED, Faulty, Trained, base, before, other, part, proved
from vllm_servers import NCCL, NEEDED, PROCESSED, ROOT, gap, of, request, rows, stood_in, trained, version

from assay.core.errors import EngineError, WeightProofError
from assay.core.protocols import SwapMode
from assay.core.rollout import Sampling
from assay.lab.controls import RandomReward, Rewarded
from assay.objective import grpo
from assay.runtime import AdamW, LearnerSettings, VllmEngine, load_model, save_model
from assay.runtime.vllm.flags import EXTENSION
from assay.runtime.vllm.snapshots import shapes_in
from assay.train import Evaluation, Folder, Reinforce, Run, train
from assay_tasks import SortDigits

EXPERTS = "model.layers.1.mlp.experts."
ARGUMENTS = (*PROCESSED, "--enable-scale-out", "--worker-extension-cls", EXTENSION)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    place = tmp_path_factory.mktemp("experts")
    for family in ("mixtral", "qwen3_moe"):
        save_model(mixture(family), place / family)
    return place


@pytest.fixture(scope="module")
def mixtral(places):
    return load_model(places / "mixtral")


@pytest.fixture(scope="module")
def qwen(places):
    return load_model(places / "qwen3_moe")


@pytest.fixture(scope="module")
def fails(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fails") / "now"


@pytest.fixture(scope="module")
def exact_server(start, places, plugin, fails):
    """Mixtral in float32, which takes weights as files and over gloo."""
    return start("--dtype", "float32", *ARGUMENTS, *NCCL, variables=stood_in(plugin, fails), served=places / "mixtral")


@pytest.fixture(scope="module")
def rounded_server(start, places):
    """Qwen3-MoE in bfloat16."""
    variables = {**NEEDED, "PYTHONPATH": str(ROOT / "src")}
    return start("--dtype", "bfloat16", *ARGUMENTS, variables=variables, served=places / "qwen3_moe")


def test_each_version_is_the_learners_own_and_names_itself(exact_server, mixtral):
    engine, texts, told = VllmEngine(exact_server.settings(), mixtral), rows(), []
    versions = ((1, 0, SwapMode.DRAIN), (2, 5, SwapMode.DRAIN), (3, 6, SwapMode.KEEP))

    async def around():
        running = []
        for number, seed, mode in versions:
            if mode is SwapMode.KEEP:
                many = [request(f"kept {i}", texts[1], seed=i, max_new_tokens=900) for i in range(15)]
                running = [asyncio.create_task(engine.generate(one)) for one in many]
                await asyncio.sleep(0.2)
            await engine.swap(version(mixtral, number, seed), mode)
            made = await engine.generate(request("a", texts[0], seed=1))
            told.append((await engine.score(texts), made, await engine.checksums()))
        return [await task for task in running]

    kept = asyncio.run(around())
    for (scores, made, sums), (number, seed, _) in zip(told, versions, strict=True):
        new = version(mixtral, number, seed)
        assert gap(scores, exact(mixtral, new.payload, texts)) < 1e-4
        assert gap([made.logp_engine], behind(mixtral, new, texts[0], made)) < 1e-4
        assert [(s.version, s.start, s.end) for s in made.spans] == [(number, 0, 16)]
        assert sums == {n: t.digest for n, t in new.tensors.items() if "norm" in n or "embed" in n}
    assert gap(told[0][0], told[1][0]) > 0.1
    across = next(one for one in kept if [s.version for s in one.spans] == [2, 3])
    cut = across.spans[0].end
    (old,), (new,) = (behind(mixtral, version(mixtral, *which), texts[1], across) for which in ((2, 5), (3, 6)))
    assert gap([across.logp_engine[:cut]], [old[:cut]]) < 1e-4
    assert gap([across.logp_engine[cut + 1 :]], [new[cut + 1 :]]) < 1e-4  # the first one may have been scheduled before
    asyncio.run(engine.close())


def behind(model, manifest, prompt, made):
    """Log-probabilities of what was sampled, by transformers."""
    return [row[len(prompt) :] for row in exact(model, manifest.payload, [[*prompt, *made.ids]])]


def test_what_a_cpu_server_is_told_guards_from(exact_server, mixtral, places):
    """Past the engine: the very weights that it has, loaded again, are read in another order, and nothing is said."""
    engine, texts = VllmEngine(exact_server.settings(), mixtral), rows()
    wanted = exact(mixtral, {n: t.numpy() for n, t in mixtral.tensors.items()}, texts)
    load = {"method": "reload_weights", "kwargs": {"weights_path": str(places / "mixtral")}}

    async def around():
        await engine.swap(version(mixtral, 1))
        before = await engine.score(texts)
        answer = exact_server.post("/collective_rpc", load)
        return before, answer.status_code, await engine.score(texts)

    before, status, silent = asyncio.run(around())
    assert gap(before, wanted) < 1e-4
    assert status == 200 and gap(silent, wanted) > 0.5
    asyncio.run(engine.swap(version(mixtral, 2)))
    assert gap(asyncio.run(engine.score(texts)), wanted) < 1e-4
    asyncio.run(engine.close())


def test_a_server_reads_the_checkpoint_that_it_was_started_with_where_a_load_fails(
    exact_server, mixtral, places, tmp_path, monkeypatch
):
    engine, texts = VllmEngine(exact_server.settings(folder=str(tmp_path)), mixtral), rows()
    asyncio.run(engine.connect())
    monkeypatch.setattr("assay.runtime.vllm.snapshots.WEIGHTS", "nowhere.bin")
    with pytest.raises(EngineError, match="It serves version -1 again"):
        asyncio.run(engine.swap(version(mixtral, 1, 5)))
    wanted = exact(mixtral, {n: t.numpy() for n, t in mixtral.tensors.items()}, texts)
    assert gap(asyncio.run(engine.score(texts)), wanted) < 1e-4
    asyncio.run(engine.close())


def test_prompts_of_more_tokens_than_one_pass_takes(exact_server, mixtral):
    """Prefilled in parts they would end a CPU server's engine: vLLM turns the generator of a seeded request back."""
    engine, prompts = VllmEngine(exact_server.settings(), mixtral), rows(4, 900)

    async def around():
        await engine.swap(version(mixtral, 1))
        return await asyncio.gather(*(engine.generate(request(str(i), p, seed=i)) for i, p in enumerate(prompts)))

    assert [len(made.ids) for made in asyncio.run(around())] == [16] * 4
    asyncio.run(engine.close())


def test_what_is_written_is_what_transformers_writes(exact_server, mixtral, places, tmp_path):
    engine = VllmEngine(exact_server.settings(folder=str(tmp_path)), mixtral)
    asyncio.run(engine.swap(version(mixtral, 1)))
    assert shapes_in(next(tmp_path.iterdir())) == shapes_in(places / "mixtral")
    asyncio.run(engine.close())


def test_experts_arrive_without_files_too(exact_server, executable, places, mixtral, fails):
    """What fails in the middle leaves the version before, kernels and all."""
    steps, texts = trained(executable, exact_server.url, places / "mixtral", fails, "few"), rows()
    for name, number, seed in (("first", 1, 3), ("second", 2, 5), ("kept", 3, 6), ("server failed", 3, 6), ("after it", 5, 8)):
        (step,) = of(steps, name)
        assert (step["version"], step["spans"], bool(step["error"])) == (number, [number], name == "server failed")
        wanted = exact(mixtral, version(mixtral, number, seed).payload, texts)
        assert gap([np.array(row) for row in step["scores"]], wanted) < 1e-4, name
        assert step["told"] and set(step["told"].values()) == {name != "server failed"}  # against what should have come


# ---- proof of weights ----------------------------------------------------------------------------------------------------------


def test_a_healthy_server_is_proved_at_a_tiny_learning_rate(rounded_server, qwen):
    proof, found = asyncio.run(proved(VllmEngine(rounded_server.settings(), qwen), Trained(qwen), spared=0.25))
    assert found == [True] * 3
    assert proof.steady and proof.blind == ()


@pytest.mark.parametrize(
    ("fault", "healthy", "said"),
    [
        (before, REHEARSED, "it is one step stale|tensors differ"),
        (base, REHEARSED + 1, "version 0 gave|tensors differ"),
        (partial(part, name=EXPERTS + "gate_up_proj"), 1, f"in all of them: {EXPERTS}gate_up_proj did not arrive"),
        (partial(part, name=EXPERTS + "down_proj"), 1, f"in all of them: {EXPERTS}down_proj did not arrive"),
        (other, REHEARSED, "other weights|tensors differ"),
    ],
    ids=["stale", "base again", "experts' first half left out", "experts' second half left out", "another model"],
)
@pytest.mark.parametrize("checksums", [True, False])
def test_faults_of_the_weights_are_caught(rounded_server, qwen, fault, healthy, said, checksums, monkeypatch):
    async def nothing(self):
        return None

    if not checksums:
        monkeypatch.setattr(VllmEngine, "checksums", nothing)
    engine = Faulty(VllmEngine(rounded_server.settings(), qwen), fault, healthy)
    with pytest.raises(WeightProofError, match=said):
        asyncio.run(proved(engine, Trained(qwen), spared=0.25))


def test_a_run_on_the_server(rounded_server, places, tmp_path):
    """The whole loop: sampled there, trained here, every update proved."""
    run = Run(
        model=Folder(str(places / "qwen3_moe")),
        tasks=Rewarded(source=SortDigits(levels=(1, 2)), scorer=RandomReward()),
        stages=(
            Reinforce(steps=3, groups=2, group_size=4, objective=grpo(kl=0.0), learner=LearnerSettings(optimizer=AdamW(lr=LR))),
        ),
        sampling=Sampling(max_new_tokens=6),
        engine=rounded_server.settings(),
        evaluation=Evaluation(every=0, final_per_level=2),
    )
    assert train(run, tmp_path / "run").finished
    lines = [read for read in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines() if '"proof/state"' in read]
    assert len(lines) == 3 and all('"proof/state":1.0' in line.replace(" ", "") for line in lines)
