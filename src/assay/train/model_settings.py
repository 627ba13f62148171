"""Settings that follow from a model's size and kind, the rows and the machine: a pure function, without torch.

Learning rates are of AdamW in reinforcement learning. Up to 30M weights they are those that this repository's own recipes were
measured with (`docs/evidence/quickstart.md`, the recipe ``traces``); from 600M on they are what is usual there, 1e-6 to 2e-6; in
between they are interpolated on logarithmic scales. An adapter takes ten times the rate of full training: Schulman et al. 2025,
"LoRA Without Regret".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast

from assay.core.errors import ConfigError
from assay.core.fields import check_positive
from assay.core.rollout import Sampling
from assay.runtime.anchors import Anchor
from assay.runtime.engine.settings import EngineSpec, pick_engine
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Lora
from assay.train.memory import memory_of
from assay.train.model_facts import ModelFacts
from assay.train.models import Folder
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.verify.workers.cpu import cores, memory

if TYPE_CHECKING:
    from assay.core.protocols import TaskSource

__all__ = ["GivenSettings", "MachineFacts", "ModelSettings", "RowFacts", "learning_rate", "pick_settings", "this_machine"]

Device = Literal["cpu", "cuda"]

_RATES = ((0.34e6, 5e-4), (30e6, 1e-4), (600e6, 2e-6), (7e9, 1e-6))
"""Numbers of weights and the learning rates of full training there."""
_ADAPTER = 10.0
"""How many times as high an adapter's rate is."""
_LARGEST_FULL = 2e9
"""Weights from which on only an adapter is trained, whatever the memory."""
_LARGEST_REFERENCE = 200e6
"""Weights up to which a frozen copy of the start is kept to measure the divergence; an adapter's start costs nothing."""
_SMALL = 20e6
"""Weights up to which a CPU takes batches like those of a GPU, and one thread."""
_ANSWERS: Mapping[str, int] = {"base": 256, "chat": 512, "thinking": 2048}
"""Most tokens of an answer by kind of model."""
_SHARE = 0.75
"""Share of the memory that an estimate may fill: it holds within a factor of 1.5 at worst (`assay.train.memory`)."""
_EVALUATED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What a run computes on.

    Attributes:
        device: of the learner and of an engine in its process.
        memory: bytes of that device.
        cores: that this process may use.
    """

    device: Device = "cpu"
    memory: int
    cores: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFacts:
    """What the rows say.

    Attributes:
        prompts: different training prompts; 0 where unknown.
        longest: tokens of the longest prompt; 0 where unknown.
        answer: tokens of the longest answer; 0 where not every row has one.
        turns: rollouts may have several turns, up to the model's context.
    """

    prompts: int = 0
    longest: int = 0
    answer: int = 0
    turns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSettings:
    """What a person says instead; None is for "as derived".

    Attributes:
        learning_rate, max_new_tokens, groups, group_size, precision, micro_tokens, threads: as of `ModelSettings`.
        lora: True or False, a rank, or a `Lora`.
        engine: what samples.

    Raises:
        ConfigError: a number that is no size.
    """

    learning_rate: float | None = None
    max_new_tokens: int | None = None
    groups: int | None = None
    group_size: int | None = None
    precision: str | None = None
    micro_tokens: int | None = None
    threads: int | None = None
    lora: Lora | bool | int | None = None
    engine: EngineSpec | None = None

    def __post_init__(self) -> None:
        names = ("max_new_tokens", "groups", "group_size", "micro_tokens", "threads")
        check_positive(self, *(name for name in names if getattr(self, name) is not None))
        if self.learning_rate is not None and not (math.isfinite(self.learning_rate) and self.learning_rate >= 0):
            raise ConfigError(f"learning_rate={self.learning_rate}; use a number, at least 0")
        rank = self.lora
        if isinstance(rank, int) and not isinstance(rank, bool):
            object.__setattr__(self, "lora", Lora(rank=rank, alpha=2.0 * rank))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings of one model on one machine.

    Attributes:
        device: ``auto`` in what is written, so that the run goes on elsewhere.
        precision: ``bf16`` on CUDA, ``fp32`` on a CPU.
        learning_rate: of AdamW.
        lora: the adapter that is trained; None for all weights.
        reference: keep a frozen copy of the start, and measure the divergence from it.
        checkpointing, micro_tokens: so that a micro-batch fits.
        engine: what samples; None leaves it to `Auto`.
        threads: of torch.
        context: longest prompt plus answer, in tokens.
        max_new_tokens: of an answer.
        groups, group_size: prompts of a step, and rollouts of each.
        warmup: steps in which the rate rises, at most a twentieth of the stage.
        memory: bytes that this takes, about.
        fits: it is at most three quarters of the machine's.
    """

    device: str = "auto"
    precision: str
    learning_rate: float
    lora: Lora | None
    reference: bool
    checkpointing: bool
    micro_tokens: int
    engine: EngineSpec
    threads: int
    context: int
    max_new_tokens: int
    groups: int
    group_size: int
    warmup: int = 5
    memory: int = 0
    fits: bool = True

    def overridden(self, given: GivenSettings) -> ModelSettings:
        """With what a person gave, and nothing else derived anew."""
        names = ("learning_rate", "max_new_tokens", "groups", "group_size", "precision", "micro_tokens", "threads", "engine")
        changes = {name: value for name in names if (value := getattr(given, name)) is not None}
        if given.lora is not None:
            changes["lora"] = _adapter_given(given.lora)
        return replace(self, **changes)

    def learner(self, steps: int) -> LearnerSettings:
        """For a stage of so many steps: a short warm-up, and a decay in the second half."""
        return LearnerSettings(
            optimizer=AdamW(lr=self.learning_rate),
            schedule=LearningRateSchedule(kind="linear", warmup=min(self.warmup, steps // 20), start=0.5, floor=0.1),
            precision=self.precision,
            adapter=self.lora,
            checkpointing=self.checkpointing,
            device=self.device,
            micro_tokens=self.micro_tokens,
            anchors=(Anchor(),) if self.reference else (),
        )


def this_machine(device: str = "auto") -> MachineFacts:
    """The device that a learner would compute on here, with its memory.

    Args:
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.

    >>> this_machine("cpu").device
    'cpu'
    """
    if device != "cpu" and find_spec("torch") is not None:
        from assay.core.util.threads import with_torch

        with_torch("assay.runtime.machine")
        from assay.runtime.machine import gpu_memory

        if found := gpu_memory():
            return MachineFacts(device="cuda", memory=found, cores=cores())
    return MachineFacts(device="cpu", memory=memory(), cores=cores())


def learning_rate(count: int, adapter: bool = False) -> float:
    """AdamW's rate for a model of so many weights; see the module's text.

    >>> [learning_rate(n) for n in (340_000, 50_000_000, 600_000_000, 7_000_000_000)], learning_rate(7_000_000_000, adapter=True)
    ([0.0005, 5.1e-05, 2e-06, 1e-06], 1e-05)
    """
    points = [(math.log(n), math.log(rate)) for n, rate in _RATES]
    at = min(max(math.log(max(count, 1)), points[0][0]), points[-1][0])
    (x0, y0), (x1, y1) = next((a, b) for a, b in pairwise(points) if at <= b[0])
    rate = math.exp(y0 + (y1 - y0) * (at - x0) / (x1 - x0)) * (_ADAPTER if adapter else 1.0)
    return float(f"{min(rate, _RATES[0][1]):.1e}")


def answer_length(facts: ModelFacts, rows: RowFacts) -> int:
    """Most tokens of an answer: by the model's kind, at most half its context or what the longest prompt leaves of it.

    A model without a chat template answers at once, so that four times the longest known answer is enough.
    """
    context, most = facts.shape.max_positions, _ANSWERS[facts.kind]
    if facts.kind == "base" and rows.answer:
        most = min(most, max(16, 4 * rows.answer))
    most = max(1, min(most, context // 2))
    left = context - rows.longest
    return left if most > left >= max(1, most // 4) else most


def pick_settings(
    facts: ModelFacts, machine: MachineFacts, rows: RowFacts | None = None, given: GivenSettings | None = None
) -> ModelSettings:
    """The settings of a model on a machine; the same facts always give the same settings.

    What takes less memory is tried in this order until the estimate of `assay.train.memory` fits: fewer rollouts at once, smaller
    micro-batches, recomputed layers, an adapter instead of all weights.

    Args:
        facts: of the model.
        machine: device and memory.
        rows: what is known of the data.
        given: what a person said instead.

    Returns:
        Settings; where nothing fits, the smallest, with ``fits`` False.

    >>> from assay.runtime.settings import DecoderShape
    >>> from assay.train.memory import weights_of
    >>> small = DecoderShape()
    >>> found = pick_settings(ModelFacts(shape=small, weights=weights_of(small)), MachineFacts(memory=8 << 30))
    >>> found.precision, found.learning_rate, found.lora, found.max_new_tokens
    ('fp32', 0.0005, None, 64)
    """
    rows, given = rows or RowFacts(), given or GivenSettings()
    found: ModelSettings | None = None
    for found in _candidates(facts, machine, rows, given):
        found = replace(found, memory=_needed_bytes(found, facts, machine))
        if found.memory <= _SHARE * machine.memory:
            return found
    return replace(cast("ModelSettings", found), fits=False)


def _candidates(facts: ModelFacts, machine: MachineFacts, rows: RowFacts, given: GivenSettings) -> Iterator[ModelSettings]:
    """Settings that take less and less memory."""
    new = given.max_new_tokens or answer_length(facts, rows)
    whole = facts.shape.max_positions
    context = whole if rows.turns or not rows.longest else min(whole, -(-(rows.longest + new) // 64) * 64)
    small = machine.device == "cuda" or facts.count <= _SMALL
    groups = given.groups or min(16 if small else 8, rows.prompts or 16)
    precision = given.precision or ("bf16" if machine.device == "cuda" else "fp32")
    make = partial(
        ModelSettings,
        precision=precision,
        threads=given.threads or (1 if small else min(8, machine.cores)),
        context=context,
        max_new_tokens=new,
        groups=groups,
        group_size=given.group_size or 8,
    )
    for lora in _adapters(facts, given):
        reference = lora is not None or facts.count <= _LARGEST_REFERENCE
        rate = learning_rate(facts.count, lora is not None) if given.learning_rate is None else given.learning_rate
        for checkpointing, micro, batch in _sizes(context, machine, given):
            yield make(
                learning_rate=rate,
                lora=lora,
                reference=reference,
                checkpointing=checkpointing,
                micro_tokens=micro,
                engine=given.engine or _engine(facts, machine, lora, batch, context),
            )


def _adapters(facts: ModelFacts, given: GivenSettings) -> tuple[Lora | None, ...]:
    if given.lora is None:
        return (Lora(),) if facts.count > _LARGEST_FULL else (None, Lora())
    return (_adapter_given(given.lora),)


def _adapter_given(lora: Lora | bool | int) -> Lora | None:
    return lora if isinstance(lora, Lora) else Lora() if lora else None


def _sizes(context: int, machine: MachineFacts, given: GivenSettings) -> Iterator[tuple[bool, int, int]]:
    """Whether layers are computed again, tokens of a micro-batch (never fewer than a row may have), and rollouts at once: few
    at once make sampling many times slower, and computing layers again makes a gradient pass a third slower.
    """
    most = 8192 if machine.device == "cuda" else 4096
    sizes = [given.micro_tokens] if given.micro_tokens else [n for n in (8192, 4096, 2048, 1024) if context <= n <= most]
    for batches in ((256, 64), (16,)):
        for checkpointing in (False, True):
            yield from ((checkpointing, n, batch) for batch in batches for n in sizes or [context])


def _engine(facts: ModelFacts, machine: MachineFacts, lora: Lora | None, batch: int, context: int) -> EngineSpec:
    """The native engine where it can serve on a CPU, else transformers' module, with caches bounded by what the rows need."""
    own = machine.device == "cpu" and lora is None and isinstance(facts.shape, DecoderShape)
    return pick_engine(own=own, batch=batch, context=context if context < facts.shape.max_positions else 0)


class _NoTasks:
    """Stands for tasks where only sizes are asked for."""

    name = "rows"

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        return {"rows": (1,)}


def _needed_bytes(settings: ModelSettings, facts: ModelFacts, machine: MachineFacts) -> int:
    """Bytes of a run with these settings, on that machine's device."""
    learner = replace(settings.learner(1), device=machine.device)
    stage = Reinforce(steps=1, groups=settings.groups, group_size=settings.group_size, learner=learner)
    run = Run(
        model=Folder("."),
        tasks=cast("TaskSource", _NoTasks()),
        stages=(stage,),
        sampling=Sampling(max_new_tokens=settings.max_new_tokens),
        evaluation=Evaluation(kl_to_base=settings.reference),
        engine=settings.engine,
    )
    shape: Any = replace(facts.shape, max_positions=settings.context)
    return memory_of(run, stage, shape, facts.weights, 0, _EVALUATED).total
