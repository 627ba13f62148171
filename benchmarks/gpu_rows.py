"""What `benchmarks/gpu.py` measures of assay: decoding, training, whole steps of the loop. Each function gives a row's numbers.

Times are those of the clock on the wall, taken when the device has done all that it was given; the first repeat warms up and is
left out.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from assay.core import Batch, Ids, Plan, Request, Sampling, derive, generator, ids_of, pack_rows, supervised_sample
from assay.guide import Uniform
from assay.objective import Token, grpo
from assay.runtime import (
    AdamW,
    DecoderShape,
    HubTokenizer,
    InProcess,
    LearnerSettings,
    Model,
    TorchLearner,
    TransformersEngine,
    hub_of,
    init_model,
)
from assay.tasks import Rows
from assay.train import Evaluation, Reinforce, Run, Scratch, StageRunner, memory_of, open_stage, weights_of
from assay.verify import ScoringPool
from evidence.gpu import SHAPES, WORK, Row, Work, training_flops

PAD, EOS = "<pad>", "<eos>"
FIRST = 0x100
"""Character of the first id behind padding and the end of a text."""
LR = 1e-6


# ---- the same work for both sides


def tokenizer_of(size: int) -> Tokenizer:
    """One character per id, as many as the head has rows, so that every sampled id is text."""
    letters = (chr(c) for c in range(FIRST, 0x110000) if not 0xD800 <= c < 0xE000)
    vocabulary = {PAD: 0, EOS: 1, **{c: i for i, c in zip(range(2, size), letters, strict=False)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    cast(Any, tokenizer).add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (PAD, EOS)])
    return tokenizer


def model_of(shape: DecoderShape) -> Model:
    """Random weights, each matrix of the layers N(0, 1 / inputs)."""
    return init_model(shape, HubTokenizer(tokenizer_of(shape.vocab_size), eos=1), 0, init="fan_in")


def prompts(shape: DecoderShape, count: int, length: int) -> list[Ids]:
    """Random ones."""
    rng = generator("gpu-prompts", 0)
    return [ids_of(rng.integers(2, shape.vocab_size, length)) for _ in range(count)]


def texts(shape: DecoderShape, work: Work) -> list[str]:
    """A prompt for every group of every step of a row, twice as many as needed: some are held out."""
    tokenizer = HubTokenizer(tokenizer_of(shape.vocab_size), eos=1)
    return [tokenizer.decode(p) for p in prompts(shape, 2 * work.groups * (work.repeats + 1) + 16, work.prompt)]


def reward(completion: str) -> float:
    """A number in [0, 1) that no two attempts share by design: every row carries a gradient."""
    return zlib.crc32(completion.encode()) % 10007 / 10007


def seconds(device: str) -> float:
    """The time, once the device has done its work."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def fresh(device: str) -> None:
    """Begins to count the most memory in use."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()


def peak_bytes(device: str) -> int | None:
    """The most bytes of tensors on the device since `fresh`; None on a CPU, which does not tell."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else None


# ---- decoding


def decode(row: Row, device: str) -> dict[str, Any]:
    """Attempts at random prompts, all of one length, until their last token."""
    shape, work = SHAPES[row.size], WORK[row.size]
    module = hub_of(model_of(shape)).module(torch.bfloat16, device)
    fresh(device)
    engine = TransformersEngine(
        module, work.prompt + work.answer, max_batch=work.batch, dtype="bfloat16", device=device, compile=row.kind != "decode"
    )
    posed, times, tokens = prompts(shape, work.batch, work.prompt), list[float](), list[int]()
    for repeat in range(work.repeats + 1):
        begin = seconds(device)
        tokens.append(_decode_tokens(engine, posed, work.answer, repeat))
        times.append(seconds(device) - begin)
    return {
        "seconds": times[1:],
        "tokens": tokens[1:],
        "warm_up_seconds": times[0],
        "memory_used": peak_bytes(device),
        "compiler": _compiler() if row.kind != "decode" else {},
    }


def _decode_tokens(engine: TransformersEngine, posed: list[Ids], answer: int, repeat: int) -> int:
    sampling = Sampling(max_new_tokens=answer)
    asked = [
        Request(id=str(i), prompt=p, seed=derive("gpu-decode", repeat, index=i), sampling=sampling) for i, p in enumerate(posed)
    ]

    async def all_of_them() -> int:
        return sum(len(c.ids) for c in await asyncio.gather(*map(engine.generate, asked)))

    return asyncio.run(all_of_them())


def _compiler() -> dict[str, int]:
    """What the compiler says it did: graphs, breaks between them, and how often CUDA graphs were left out."""
    counters: Any = cast(Any, torch)._dynamo.utils.counters
    return {
        "graphs": int(counters["stats"]["unique_graphs"]),
        "breaks": sum(int(n) for n in counters["graph_break"].values()),
        "without_cuda_graphs": int(counters["inductor"]["cudagraph_skips"]),
    }


# ---- training


@dataclass(frozen=True, slots=True)
class LikelihoodLoss:
    """The least loss program: the passes are what is measured."""

    def credit(self, batch: Batch) -> Batch:
        """Nothing."""
        return batch

    def prepare(self, batch: Batch) -> Batch:
        """Nothing."""
        return batch

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        """All rows."""
        return np.ones(len(batch), np.bool_)

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Negative log-likelihood."""
        return -live["logp_new"].sum() / batch.counts.tokens, {}


def train(row: Row, device: str) -> dict[str, Any]:
    """Steps of the learner on rows of one length, bf16 products over fp32 weights."""
    shape, work = SHAPES[row.size], WORK[row.size]
    head = work.length // 8
    rows = [
        (i, supervised_sample(str(i), [(ids[:head], False), (ids[head:], True)]))
        for i, ids in enumerate(prompts(shape, work.rows, work.length))
    ]
    batch = pack_rows(rows, {"group": np.arange(work.rows)})
    fresh(device)
    settings = replace(learner_settings(work, device), compile=row.kind != "train")
    learner = TorchLearner(model_of(shape), settings, total_steps=work.repeats + 1)
    passes, steps = list[float](), list[float]()
    for _ in range(work.repeats + 1):
        begin = seconds(device)
        metrics = learner.step(batch, Plan(), LikelihoodLoss()).metrics
        steps.append(seconds(device) - begin)
        passes.append(metrics["time/forward_backward"])
    return {
        "seconds": passes[1:],
        "step_seconds": steps[1:],
        "tokens": [work.rows * work.length] * work.repeats,
        "flops": training_flops(shape, [work.length] * work.rows, work.rows * (work.length - head)),
        "memory_used": peak_bytes(device),
        "compiler": _compiler() if row.kind != "train" else {},
    }


def learner_settings(work: Work, device: str) -> LearnerSettings:
    """AdamW without decay, gradients clipped at 1, fp32 weights under bf16 autocast, no layer computed twice."""
    return LearnerSettings(
        optimizer=AdamW(lr=LR), precision="bf16", device=device, micro_tokens=work.micro, anchors=(), clip_norm=1.0
    )


# ---- whole steps


def pay_answer(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """`reward` as `Rows` calls it."""
    return reward(completion)


def run_of(row: Row, device: str) -> Run:
    """GRPO without a reference, one update a step."""
    shape, work = SHAPES[row.size], WORK[row.size]
    return Run(
        name="gpu",
        model=Scratch(shape=shape),
        tasks=Rows([{"prompt": t} for t in texts(shape, work)], reward=pay_answer),
        stages=(
            Reinforce(
                steps=work.repeats + 1,
                groups=work.groups,
                group_size=work.group_size,
                curriculum=Uniform(),
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                learner=learner_settings(work, device),
            ),
        ),
        sampling=Sampling(max_new_tokens=work.answer),
        evaluation=Evaluation(every=0, kl_to_base=False),
        engine=InProcess(
            max_batch=work.rollouts,
            dtype="bfloat16",
            compile=row.kind != "step",
            context=work.prompt + work.answer,
        ),
        reward_deadline=60.0,
    )


def step(row: Row, device: str) -> dict[str, Any]:
    """Steps of `assay.train.loop` as a run makes them, proof of weights included; no evaluation, no checkpoint, no journal."""
    run, shape = run_of(row, device), SHAPES[row.size]
    stage = cast(Reinforce, run.stages[0])
    with ScoringPool(run.tasks.verifier(), run.reward_deadline, workers=run.reward_workers) as pool:
        fresh(device)
        session = open_stage(run, stage, model_of(shape), pool, 0)
        times, metrics = asyncio.run(_steps(session, device))
    predicted = memory_of(run, stage, shape, weights_of(shape), 0, 0)
    later = metrics[1:]
    parts = sorted({name for m in later for name in m if name.startswith("time/")})
    return {
        "seconds": times[1:],
        "warm_up_seconds": times[0],
        "tokens": [int(m["tokens/sampled"]) for m in later],
        "parts": {name: [m.get(name, 0.0) for m in later] for name in parts},
        "proved": [m["proof/state"] for m in metrics],
        "mismatch": {name: value for name, value in metrics[0].items() if name.startswith("engine/")},
        "memory_used": peak_bytes(device),
        "memory_predicted": predicted.total,
        "memory_parts": asdict(predicted),
        "compiler": _compiler() if row.kind != "step" else {},
    }


async def _steps(s: StageRunner, device: str) -> tuple[list[float], list[Mapping[str, float]]]:
    if s.parts.proof:
        await s.parts.proof.calibrate(s.parts.publish_weights(), s.parts.engine, s.parts.learner)
    times, metrics = list[float](), list[Mapping[str, float]]()
    for _ in range(s.parts.stage.steps):
        begin = seconds(device)
        found = await s.step()
        times.append(seconds(device) - begin)
        metrics.append(found.metrics)
        s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
    return times, metrics


MEASURES: Mapping[str, Callable[[Row, str], dict[str, Any]]] = {
    "decode": decode,
    "decode-compiled": decode,
    "train": train,
    "train-compiled": train,
    "step": step,
    "step-compiled": step,
}
