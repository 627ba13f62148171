"""A stage at work: what a run asks of it step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from assay.core.group import Group, Outcome
from assay.core.util.renamed import refuse_renamed
from assay.train.independent_check import IndependentVerdicts

if TYPE_CHECKING:
    from assay.train.session import Parts

__all__ = ["BaseRunner", "StageRunner", "StepResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step leaves for the journal: named numbers, the graded groups, what a second judge found in them, what became of
    them, and the rows that were kept for later stages.
    """

    metrics: Mapping[str, float]
    groups: tuple[Group, ...] = field(default=(), repr=False)
    found: IndependentVerdicts = field(default_factory=IndependentVerdicts, repr=False)
    outcomes: tuple[Outcome, ...] = field(default=(), repr=False)
    collected: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


class StageRunner(Protocol):
    """A stage at work."""

    @property
    def parts(self) -> Parts:
        """What it shares with every other stage."""
        ...

    async def step(self) -> StepResult:
        """Advances the stage by one step."""
        ...

    def evaluate_at(self, step: int) -> bool:
        """Whether a held-out evaluation is due behind a step of the stage, counted from 1; at the stage's end there is one."""
        ...

    async def prepare_evaluation(self) -> None:
        """Has the engine serve the present weights."""
        ...

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Observes the metrics of a finished step, with those of the evaluation after it if there was one."""
        ...

    def on_checkpoint(self) -> None:
        """A checkpoint of the last step is whole."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on besides `parts`, JSON-able."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`; the mapping may hold more."""
        ...


@dataclass
class BaseRunner:
    """A runner without state of its own, whose steps do not publish: all that is left to say is ``step``."""

    parts: Parts

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_renamed(cls, {"saved": "on_checkpoint"})

    def evaluate_at(self, step: int) -> bool:
        """As often as the run says."""
        every = self.parts.run.evaluation.every
        return every > 0 and step % every == 0

    async def prepare_evaluation(self) -> None:
        """Publishes the weights."""
        await self.parts.publish()

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Nothing: no step depends on them."""

    def on_checkpoint(self) -> None:
        """Nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing."""
