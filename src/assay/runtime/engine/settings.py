"""Which engine samples: plain values, importable without torch, that build it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from assay.core.errors import ConfigError
from assay.core.fields import later

if TYPE_CHECKING:
    from assay.core.protocols import Engine
    from assay.runtime.distributed.mesh import AnyLearner
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.models.hub_model import HubModel

__all__ = [
    "Auto",
    "DescribedEngineSpec",
    "EngineFootprint",
    "EngineSpec",
    "InProcess",
    "LocalEngineSpec",
    "ModelEngineSpec",
    "Movable",
    "Native",
    "ServerEngineSpec",
    "engine_for",
    "pick_engine",
]


class EngineSpec(Protocol):
    """Builds the engine that samples for a learner."""

    def build(self, learner: AnyLearner) -> Engine:
        """An engine with copies of the learner's present weights, those apart that nobody trains."""
        ...


@runtime_checkable
class ModelEngineSpec(EngineSpec, Protocol):
    """One that can also serve a model which another process trains."""

    def load(self, model: AnyModel, device: str = "cpu") -> Engine:
        """An engine of a model, in this process, without a learner.

        Args:
            model: its weights, until others are published.
            device: ``cpu`` or ``cuda``, for engines that compute on either.
        """
        ...


@runtime_checkable
class Movable(EngineSpec, Protocol):
    """One that may be elsewhere when a run goes on: a server under another address."""

    def anywhere(self) -> EngineSpec:
        """The same without where it is, how weights get there and how long that may take: what a resume may not change."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFootprint:
    """What the memory of an engine in this process is told from.

    Attributes:
        max_batch: most rollouts decoded at once.
        weight: bytes of a weight, of keys and values too.
        packed: bytes of a weight that is held once more, in the order in which a compiled decode path reads it.
        context: longest prompt plus answer, in tokens.
        recall: most bytes of states that are kept for the gradient pass.
    """

    max_batch: int
    weight: int
    packed: int
    context: int
    recall: int = 0


@runtime_checkable
class LocalEngineSpec(EngineSpec, Protocol):
    """One whose engine has its weights and caches in this process; any other's memory is its own affair."""

    def footprint(self, positions: int, *, own: bool, adapter: bool, cuda: bool) -> EngineFootprint:
        """Of an engine for a model.

        Args:
            positions: of the model's context.
            own: the model is assay's own decoder.
            adapter: only an adapter is trained.
            cuda: the learner computes on a CUDA device.
        """
        ...

    def smaller(self) -> Sequence[tuple[str, EngineSpec]]:
        """Settings that take less memory, each with what to write for them."""
        ...


@runtime_checkable
class DescribedEngineSpec(LocalEngineSpec, Protocol):
    """One that is told of, with the memory that a run will take, before a run's first step."""

    def describe(self, *, cuda: bool) -> str:
        """What it computes in, and how many rollouts at once.

        Args:
            cuda: it computes on a CUDA device.
        """
        ...


@runtime_checkable
class ServerEngineSpec(ModelEngineSpec, Movable, Protocol):
    """One that asks a server, which several processes of a run may do, each a server of its own."""

    def at(self, url: str) -> ServerEngineSpec:
        """The same at another address; where it is when empty."""
        ...

    def in_folder(self, folder: str) -> ServerEngineSpec:
        """The same with weights for the server written to ``folder``; itself where its settings name a folder."""
        ...


_FLOAT, _HALF = 4, 2  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """`Native` where assay's own decoder has the architecture and all its weights are trained on a CPU, else `InProcess`."""

    @property
    def tells_support(self) -> bool:
        """Whether tokens can carry the ids that they were drawn from (`assay.core.rollout.Sampling.keep_support`)."""
        return True

    def build(self, learner: AnyLearner) -> Engine:
        """As `EngineSpec.build`."""
        return (Native() if learner.native else InProcess()).build(learner)

    def load(self, model: AnyModel, device: str = "cpu") -> Engine:
        """As `ModelEngineSpec.load`: `Native` for assay's own decoder on a CPU, else `InProcess`."""
        from assay.runtime.models.model import Model

        chosen = Native() if isinstance(model, Model) and device == "cpu" else InProcess()
        return chosen.load(model, device)

    def footprint(self, positions: int, *, own: bool, adapter: bool, cuda: bool) -> EngineFootprint:
        """As `LocalEngineSpec.footprint`: of the one that would be chosen, and what either of them may hold."""
        chosen = InProcess() if cuda or not own or adapter else Native()
        found = chosen.footprint(positions, own=own, adapter=adapter, cuda=cuda)
        native = Native().footprint(positions, own=own, adapter=adapter, cuda=cuda)
        return replace(found, weight=_HALF if cuda else _FLOAT, packed=native.packed, recall=native.recall)

    def smaller(self) -> list[tuple[str, EngineSpec]]:
        """As `LocalEngineSpec.smaller`."""
        return [("Native(recall=0)", Native(recall=0)), ("Run.engine=InProcess(max_batch=32)", InProcess(max_batch=32))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """assay's own engine, `assay.runtime.NativeEngine`: small decoders of the Llama and Qwen3 families on a CPU.

    Attributes:
        max_batch: most rollouts that run at once.
        dtype: ``float32``, or ``bfloat16`` for rounded weights and products of bfloat16 with float32 sums: faster where the
            processor has such products, and the distribution that samples is not quite the one that is trained.
        kernel: decode with the library that is compiled for this processor on first use, where there is a C++ compiler;
            else with PyTorch, several times slower.
        recall: MiB of states of sampled tokens that are kept until the gradient pass, which then computes them no second time:
            same results, bit by bit, and a fifth less of a step. What does not fit is computed again. Only
            where both sides are compiled and in float32; 0 keeps nothing.
    """

    max_batch: int = 512
    dtype: str = later("float32")
    kernel: bool = later(True)
    recall: int = later(512)

    def __post_init__(self) -> None:
        if self.recall < 0:
            raise ConfigError(f"Native.recall={self.recall}; use a number of MiB, or 0 to keep nothing")
        if self.dtype not in ("float32", "bfloat16"):
            raise ConfigError(f"Native.dtype={self.dtype!r}; use 'float32' or 'bfloat16'")

    @property
    def tells_support(self) -> bool:
        """Whether tokens can carry the ids that they were drawn from (`assay.core.rollout.Sampling.keep_support`)."""
        return True

    def build(self, learner: AnyLearner) -> Engine:
        """As `EngineSpec.build`.

        Raises:
            ConfigError: another architecture, or an adapter.
        """
        from assay.runtime.engine.native import NativeEngine

        model: Any = learner.model()
        if not learner.native:
            what = "an adapter" if learner.settings.adapter else getattr(model.shape, "architecture", "what this learner trains")
            raise ConfigError(f"Run.engine=Native() cannot serve {what}; use InProcess(), or Auto() to have it chosen")
        recall = self.recall << 20 if learner.policy.follows and learner.settings.precision == "fp32" else 0
        engine = NativeEngine(
            model, max_batch=self.max_batch, dtype=self.dtype, kernel=self.kernel, recall=recall, digests="mixed"
        )
        learner.policy.follow(engine.activation_cache)
        return engine

    def load(self, model: AnyModel, device: str = "cpu") -> Engine:
        """As `ModelEngineSpec.load`, on the CPU.

        Raises:
            ConfigError: another architecture.
        """
        from assay.runtime.engine.native import NativeEngine
        from assay.runtime.models.model import Model

        if not isinstance(model, Model):
            raise ConfigError(f"Native() cannot serve {model.shape.architecture}; use InProcess(), or Auto() to have it chosen")
        return NativeEngine(model, max_batch=self.max_batch, dtype=self.dtype, kernel=self.kernel, digests="mixed")

    def footprint(self, positions: int, *, own: bool, adapter: bool, cuda: bool) -> EngineFootprint:
        """As `LocalEngineSpec.footprint`; states are kept by the compiled decode path alone."""
        size = _HALF if self.dtype == "bfloat16" else _FLOAT
        return EngineFootprint(
            max_batch=self.max_batch,
            weight=_FLOAT,
            packed=size if self.kernel and own and not adapter else 0,
            context=positions,
            recall=self.recall << 20 if self.kernel and self.dtype == "float32" else 0,
        )

    def smaller(self) -> list[tuple[str, EngineSpec]]:
        """As `LocalEngineSpec.smaller`."""
        return [*_half_batch(self), ("Native(recall=0)", replace(self, recall=0))]


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcess:
    """Any causal language model of transformers beside the learner, `assay.runtime.TransformersEngine`.

    Weights that an adapter leaves frozen are the learner's own tensors; what is trained is copied.

    Attributes:
        max_batch: most rollouts that run at once.
        dtype: ``float32``, ``bfloat16``, or ``auto``: bfloat16 on CUDA, float32 on a CPU.
        compile: compile the step of one token: worth its minute on CUDA and in long runs alone.
        context: longest prompt plus answer, which bounds what keys and values take; the model's own bound where this is 0.
        routing: of a mixture of experts, tell of the experts that each token went to, so that the learner's routing can be
            compared (``engine/router_agreement``); to a learner that replays it this is told anyway.
    """

    max_batch: int = 256
    dtype: str = "auto"
    compile: bool = False
    context: int = 0
    routing: bool = False

    def __post_init__(self) -> None:
        if self.context < 0:
            raise ConfigError(f"InProcess.context={self.context}; use a number of tokens, or 0 for the model's own bound")
        if self.dtype not in ("auto", "float32", "bfloat16"):
            raise ConfigError(f"InProcess.dtype={self.dtype!r}; use 'auto', 'float32' or 'bfloat16'")

    def describe(self, *, cuda: bool) -> str:
        """As `DescribedEngineSpec.describe`."""
        dtype = self.dtype if self.dtype != "auto" else "bfloat16" if cuda else "float32"
        return f"InProcess in {dtype}, at most {self.max_batch} at once"

    def context_for(self, positions: int) -> int:
        """The context of an engine whose model has so many positions."""
        return min(positions, self.context or positions)

    @property
    def tells_support(self) -> bool:
        """Whether tokens can carry the ids that they were drawn from (`assay.core.rollout.Sampling.keep_support`)."""
        return True

    def footprint(self, positions: int, *, own: bool, adapter: bool, cuda: bool) -> EngineFootprint:
        """As `LocalEngineSpec.footprint`."""
        half = self.dtype == "bfloat16" or (self.dtype == "auto" and cuda)
        return EngineFootprint(
            max_batch=self.max_batch, weight=_HALF if half else _FLOAT, packed=0, context=self.context_for(positions)
        )

    def smaller(self) -> list[tuple[str, EngineSpec]]:
        """As `LocalEngineSpec.smaller`."""
        return _half_batch(self)

    def build(self, learner: AnyLearner) -> Engine:
        """As `EngineSpec.build`."""
        from assay.runtime.models.hub_model import hub_of

        return self.serve(hub_of(learner.model()), learner)

    def load(self, model: AnyModel, device: str = "cpu") -> Engine:
        """As `ModelEngineSpec.load`."""
        from assay.runtime.models.hub_model import hub_of

        return self.serve(hub_of(model), device=device)

    def serve(self, model: HubModel, learner: AnyLearner | None = None, device: str = "cpu") -> Engine:
        """An engine of a model, beside a learner on its device, or by itself."""
        import torch

        from assay.runtime.engine.hub_engine import TransformersEngine

        device = learner.policy.device.type if learner else device
        routed = self.routing or (learner is not None and learner.settings.replay_routing)
        dtype = self.dtype if self.dtype != "auto" else "bfloat16" if device == "cuda" else "float32"
        module = model.module(getattr(torch, dtype), device)
        if learner and model.adapter is not None:
            _share(module, learner)
        return TransformersEngine(
            module,
            self.context_for(model.shape.max_positions),
            max_batch=self.max_batch,
            dtype=dtype,
            device=device,
            trained=set(model.adapter.tensors) if model.adapter is not None else None,
            compile=self.compile,
            decode=model.tokenizer.decode,
            columns=("entropy", "routed_experts") if routed else ("entropy",),
            digests="blake2b" if (device, dtype) == ("cpu", "float32") else "mixed",
        )


def engine_for(model: AnyModel) -> Engine:
    """The engine for a model that nobody trains."""
    from assay.runtime.engine.native import NativeEngine
    from assay.runtime.models.model import Model

    return NativeEngine(model) if isinstance(model, Model) else InProcess().serve(model)


def pick_engine(*, own: bool, batch: int, context: int = 0) -> EngineSpec:
    """The engine that suits a model.

    Args:
        own: assay's own decoder, all of whose weights are trained on a CPU.
        batch: most rollouts at once.
        context: bound of prompt plus answer; 0 for the model's own. `Native` needs none.

    >>> pick_engine(own=True, batch=256), pick_engine(own=False, batch=64).max_batch
    (Auto(), 64)
    """
    if own:
        return Auto() if batch == 256 else Native(max_batch=batch)
    return InProcess(max_batch=batch, context=context)


def _half_batch(spec: Native | InProcess) -> list[tuple[str, EngineSpec]]:
    most = spec.max_batch // 2
    return [(f"{type(spec).__name__}(max_batch={most})", replace(spec, max_batch=most))] if most else []


def _share(module: Any, learner: AnyLearner) -> None:
    """Lets the engine read frozen weights where the learner has them, in the same precision."""
    theirs = learner.policy.weights()
    for name, parameter in module.named_parameters():
        mine = theirs[name]
        if name not in learner.parameters and mine.dtype == parameter.dtype and mine.shape == parameter.shape:
            parameter.data = mine.data
