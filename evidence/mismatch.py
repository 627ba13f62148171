"""How far sampler and learner are apart: pairs of engine and learner on small random models, and what corrections make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core import (
    Call,
    Completion,
    Context,
    Draw,
    Engine,
    Forward,
    FrozenMap,
    Group,
    Ids,
    Request,
    Rollout,
    Sample,
    Sampling,
    Score,
    Task,
    TokenColumn,
    derive,
    generator,
    ids_of,
    pack,
    pack_rows,
)
from assay.measure import agreement
from assay.objective import IcePop, Objective, PolicyGradient, SeqSum, Truncate, tis
from assay.runtime import AdamW, InProcess, LearnerSettings
from assay.testing import random_model
from assay.train import TokenObserver

if TYPE_CHECKING:
    from assay.runtime import HubModel, TorchLearner

__all__ = [
    "ANSWER",
    "CORRECTIONS",
    "FAMILIES",
    "MIXTURES",
    "PROMPTS",
    "Everything",
    "Pair",
    "sample_rollouts",
    "everything",
    "gradients",
    "learner_of",
    "model_of",
    "pair",
]

CONTEXT = 256

PROMPTS, ANSWER = 4, 3
"""Of the exact gradients: prompts, and tokens of every answer."""

_SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": CONTEXT,
}
_SHARED = {**_SIZES, "num_key_value_heads": 2}
FAMILIES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("qwen3", {**_SHARED, "head_dim": 32}),
    "llama": ("llama", _SHARED),
    "gemma2": ("gemma2", {**_SHARED, "head_dim": 32, "sliding_window": 32}),
    "gpt2": ("gpt2", {"n_embd": 128, "n_layer": 4, "n_head": 4, "n_positions": CONTEXT}),
    "mixtral": ("mixtral", {**_SHARED, "num_local_experts": 8, "num_experts_per_tok": 2}),
    "qwen3_moe": (
        "qwen3_moe",
        {**_SHARED, "head_dim": 32, "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 2},
    ),
}
"""Family to transformers' name of it and its sizes: about a million weights."""

MIXTURES = ("mixtral", "qwen3_moe")

CORRECTIONS: Mapping[str, PolicyGradient] = {
    "none": PolicyGradient(),
    "TIS, cap 2": PolicyGradient(weights=(Truncate(cap=2.0),)),
    "IcePop, 0.5 to 5": PolicyGradient(weights=(IcePop(low=0.5, high=5.0),)),
    "token weights, uncapped": PolicyGradient(weights=(Truncate(cap=float("inf")),)),
    "TIS of rollouts, cap 2": PolicyGradient(weights=(Truncate(cap=2.0, level="sequence_product"),)),
    "weights of rollouts, uncapped": PolicyGradient(weights=(Truncate(cap=float("inf"), level="sequence_product"),)),
}
"""What multiplies each token's loss; ``tis()`` and ``icepop()`` are the second and the third."""


def model_of(family: str) -> HubModel:
    """The random model of a family."""
    kind, sizes = FAMILIES[family]
    return random_model(kind, sizes)


def learner_of(model: HubModel, *, replay_routing: bool = False) -> TorchLearner:
    """A float32 learner that leaves its gradient as it is."""
    from assay.runtime import TorchLearner

    settings = LearnerSettings(optimizer=AdamW(lr=1e-6), clip_norm=0.0, anchors=(), replay_routing=replay_routing)
    return TorchLearner(model, settings, total_steps=1)


def sample_rollouts(
    engine: Engine, learner: TorchLearner, prompts: int, size: int, length: int, stream: str = "first"
) -> list[Group]:
    """Groups of rollouts at random prompts of eight tokens, sampled by an engine that was handed the learner's weights. A
    rollout is as good as the share of its tokens with an even id;
    """
    rng = generator("mismatch-prompts", 0)
    heads = [ids_of(rng.integers(2, 96, 8)) for _ in range(prompts)]
    asked = [
        Request(id=f"{p}/{i}", prompt=head, seed=derive("mismatch", 0, f"{p}/{i}"), sampling=Sampling(max_new_tokens=length))
        for p, head in enumerate(heads)
        for i in range(size)
    ]

    async def sample_all() -> list[Completion]:
        await engine.swap(learner.publish(engine.info().dtype, engine.info().digests))
        return list(await asyncio.gather(*map(engine.generate, asked)))

    done = asyncio.run(sample_all())
    return [_group(p, asked[p * size : (p + 1) * size], done[p * size : (p + 1) * size]) for p in range(prompts)]


def _group(number: int, asked: Sequence[Request], done: Sequence[Completion]) -> Group:
    public = FrozenMap({"prompt": "?"})
    task = Task(id=str(number), domain="noise", arm="noise", level=1, split="train", index=number, public=public)
    rollouts: list[Rollout] = []
    for request, completion in zip(asked, done, strict=True):
        call = Call(id=0, parent=None, prefix=request.prompt, completion=completion, text="")
        context = Context(key=request.id, group=str(number), task=task.public_view(), messages=())
        rollouts.append(Rollout(id=request.id, context=context, calls=(call,), stop=completion.stop, seed=request.seed))
    scores = tuple(Score(components={"reward": float(np.mean(np.equal(c.ids % 2, 0)))}) for c in done)
    return Group(key=str(number), task=task, draw=Draw("noise", 1, 1.0), rollouts=tuple(rollouts), scores=scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An engine against the learner on the same tokens.

    Attributes:
        engine, dtype, family: which.
        numbers: those of `agreement`, ``max``, ``low`` and ``high`` (largest distance in nats; extremes of learner over engine of
            a token), and of a mixture of experts that told of its routing ``router_agreement``; empty where it was not measured.
    """

    engine: str
    dtype: str
    family: str
    numbers: Mapping[str, float]


def pair(engine: Engine, learner: TorchLearner, groups: Sequence[Group]) -> dict[str, float]:
    """The numbers of a `Pair`."""
    batch = pack(list(groups))
    program = tis().compile(1)
    observer = TokenObserver(-1)
    before = learner.annotate(batch, Forward("logp_old"))
    mask = np.asarray(batch.token("mask"), np.bool_)
    drawn, own = (before.token(f"logp_{who}")[mask].astype(np.float64) for who in ("engine", "old"))
    found = agreement(drawn, own, before.rows["rollout"][before.row_of_token[mask]])
    gap = own - drawn
    found |= {"max": float(np.abs(gap).max()), "low": float(np.exp(gap.min())), "high": float(np.exp(gap.max()))}
    if "routed_experts" in engine.info().columns:
        learner.step(program.credit(before), program.plan, program, observer)
        found["router_agreement"] = observer.metrics()["engine/router_agreement"]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All that a small model can say behind some prompts: expectations are sums, and chance has no part.

    Attributes:
        rows: every prompt with every answer of `ANSWER` tokens, prompt by prompt.
        logp: of its tokens by the learner, in float32.
        engine: by an engine in bfloat16.
    """

    rows: Sequence[Ids]
    logp: Sequence[NDArray[np.float32]]
    engine: Sequence[NDArray[np.float32]]


def everything(family: str) -> tuple[HubModel, Everything]:
    """A model of a family whose vocabulary has eight tokens, and all that it can say."""
    kind, sizes = FAMILIES[family]
    model = random_model(kind, sizes, letters="012345")
    rng = generator("mismatch-everything", 0)
    size = model.tokenizer.size
    answers = np.stack(np.meshgrid(*[np.arange(size)] * ANSWER, indexing="ij"), -1).reshape(-1, ANSWER)
    rows = [ids_of([*head, *answer]) for head in rng.integers(2, size, (PROMPTS, 6)) for answer in answers]
    learner = learner_of(model)
    engine = InProcess(dtype="bfloat16").build(learner)
    return model, Everything(rows=rows, logp=learner.score(rows), engine=asyncio.run(engine.score(rows)))


def gradients(family: str) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """The exact policy gradient, all weights in one vector: of rollouts that the learner itself samples; and of an engine's in
    bfloat16 under each of `CORRECTIONS`. An answer's reward is the share of its tokens with an even id.
    """
    model, every = everything(family)
    own = _gradient(model, every, every.logp, CORRECTIONS["none"])
    return own, {name: _gradient(model, every, every.engine, policy) for name, policy in CORRECTIONS.items()}


def _gradient(
    model: HubModel, every: Everything, sampler: Sequence[NDArray[np.float32]], policy: PolicyGradient
) -> NDArray[np.float64]:
    """The sum over all answers of probability under the sampler, times advantage, times what the objective makes of it."""
    head, n = len(every.rows[0]) - ANSWER, len(every.rows) // PROMPTS
    reward = np.array([float(np.mean(np.equal(row[head:] % 2, 0))) for row in every.rows]).reshape(PROMPTS, n)
    own, drawn = (np.exp([x[head:].astype(np.float64).sum() for x in logp]).reshape(PROMPTS, n) for logp in (every.logp, sampler))
    worth = drawn * (reward - (own * reward).sum(1, keepdims=True))
    mask = np.arange(head + ANSWER) >= head
    rows = [
        (i, Sample(rollout=str(i), ids=row, mask=mask, columns={"logp_engine": TokenColumn("logp_engine", said, "engine")}))
        for i, (row, said) in enumerate(zip(every.rows, sampler, strict=True))
    ]
    table = {
        "group": np.repeat(np.arange(PROMPTS), n),
        "components/reward": worth.reshape(-1),
        "valid": np.ones(PROMPTS * n, np.bool_),
    }
    objective = Objective(policy=policy, aggregate=SeqSum())
    learner, program = learner_of(model), objective.compile(1)
    batch, wanted = pack_rows(rows, table), program.plan.forwards
    learner.step(program.credit(learner.annotate(batch, *wanted) if wanted else batch), program.plan, program)
    parts: list[Any] = [p.grad for p in learner.parameters.values()]
    return np.concatenate([part.detach().numpy().astype(np.float64).reshape(-1) for part in parts])
