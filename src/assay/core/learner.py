"""How a run learns: the loss program, the learner, and what may watch its passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.manifest import Manifest
from assay.core.plan import Forward, Plan
from assay.core.rollout import Ids

__all__ = ["CarriesHeads", "Learner", "LossProgram", "PassObserver", "PerturbsWeights", "Stats"]


class LossProgram(Protocol):
    """A compiled objective. ``live`` holds the gradient pass's tensors over the batch's ``N`` tokens by column name."""

    def credit(self, batch: Batch) -> Batch:
        """Once per rollout batch, no gradient: rewards to token columns such as ``advantage``."""
        ...

    def prepare(self, batch: Batch) -> Batch:
        """Before each optimiser step, no gradient: what needs the current policy; with two passes, scores from ``logp_now``."""
        ...

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        """``[B]`` rows whose loss or gradient can differ from zero."""
        ...

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
        """The micro-batch's share of the globally normalised loss (a scalar tensor) and metric sums."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What one optimiser step did.

    Attributes:
        metrics: named numbers.
        untrained: names of trained tensors whose gradient has been exactly 0 at every step so far that moved others, once there
            were several such steps.
    """

    metrics: Mapping[str, float]
    untrained: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbsWeights:
    """Weights that are visibly others in every tensor.

    Attributes:
        manifest: these weights.
        effects: of probe rows: name to the change of each token's log-probability, in nats, were that tensor alone as before;
            rows behind one another, their first tokens left out.
    """

    manifest: Manifest
    effects: Callable[[Sequence[Ids]], Mapping[str, NDArray[np.float32]]]


class PassObserver(Protocol):
    """Watches the gradient passes of an optimiser step, and changes nothing of them."""

    def observe(self, batch: Batch, live: Mapping[str, Any]) -> None:
        """Each micro-batch that this process computes, before its loss.

        Args:
            batch: its rows.
            live: as `LossProgram.micro` gets it: tensors over the ``N`` tokens of ``batch``, by column name.
        """
        ...

    def exchange(self, reduce: Callable[[Mapping[str, Any]], Mapping[str, Any]], counts: bool) -> None:
        """Behind a step that several processes share, on each of them: takes in what the others observed.

        Args:
            reduce: merges values of equal names over the processes, in their order; each has ``merge(other)``.
            counts: whether this process's observations count: of processes that share tokens, which all observe the same, one's.
        """
        ...


class Learner(Protocol):
    """Owns weights, optimiser and anchors."""

    @property
    def version(self) -> int:
        """Updates done, over all stages of a run; also of a learner that was closed."""
        ...

    @property
    def replays_routing(self) -> bool:
        """Whether passes send tokens to the experts that the engine chose for them."""
        ...

    @property
    def synchronize(self) -> Callable[[], None] | None:
        """Waits until the device has done what it was given; None where every call does."""
        ...

    def annotate(self, batch: Batch, forward: Forward, *more: Forward) -> Batch:
        """The batch with a token column for each of the forwards; those of one model may share a pass."""
        ...

    def step(self, batch: Batch, plan: Plan, loss: LossProgram, observer: PassObserver | None = None, rate: float = 1.0) -> Stats:
        """One optimiser update.

        Args:
            batch: rows, after credit.
            plan: what the objective asks for.
            loss: the compiled objective.
            observer: watches the gradient passes.
            rate: learning rate, as a multiple of the schedule's; 0 moves no weight.
        """
        ...

    def skip(self, updates: int) -> None:
        """Updates that were to be made and found nothing to learn from: a schedule goes on without them."""
        ...

    def score(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """``[len(row)]`` log-probabilities of each token given those before it, 0 first, by the policy or an anchor."""
        ...

    def publish(self, dtype: str = "float32", digests: str = "blake2b") -> Manifest:
        """The present weights as an engine takes them whose `EngineInfo` says this."""
        ...

    def perturbed_weights(self, dtype: str = "float32") -> AbstractContextManager[PerturbsWeights]:
        """Inside, `score` and the manifest have weights that differ visibly in every tensor; behind it all is as before."""
        ...

    def model(self) -> Any:
        """The present weights as a model that can be saved, and from which another learner can start."""
        ...

    def notes(self) -> Sequence[tuple[str, str]]:
        """What of it is not as one would expect: kinds and sentences for the journal."""
        ...

    def state_digest(self) -> str:
        """Digest of weights, optimiser state and anchors."""
        ...

    def save(self, folder: Path) -> None:
        """Writes all that `load` needs to go on exactly."""
        ...

    def load(self, folder: Path) -> None:
        """Restores what `save` wrote."""
        ...

    def close(self) -> None:
        """Ends what it started; `version` stays."""
        ...


@runtime_checkable
class CarriesHeads(Protocol):
    """A learner whose value heads may go on in the learner of the next stage."""

    def export_heads(self) -> Any:
        """Its heads; also of a learner that was closed."""
        ...

    def load_heads(self, heads: Any) -> None:
        """Takes over those of a learner before that are made alike."""
        ...
