"""A stage of reinforcement learning at work: what it has besides the parts of every stage, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from assay.core.errors import RewardError
from assay.core.group import Outcome
from assay.core.protocols import Curriculum, Guidance, Replay, Sampler
from assay.core.rollout import Sampling
from assay.core.scoring import Scorer
from assay.measure.metrics import throughput
from assay.train.async_collect import AsyncCollector
from assay.train.draw_state import build_curriculum, copy_draw_state, optional_parts, restore_draw_state, show_metrics
from assay.train.loop import step
from assay.train.refill_rounds import RefillRounds
from assay.train.rollout_metrics import rollout_metrics
from assay.train.row_replay import RecallsRows
from assay.train.runner import BaseRunner, StepResult
from assay.train.schedules import StageSchedules
from assay.train.source_batch import SourceRows
from assay.train.support import sampling_of
from assay.train.tool_metrics import tool_metrics

if TYPE_CHECKING:
    from assay.train.balance import LossBalance
    from assay.train.interleave import InterleaveRunner
    from assay.train.reinforce import Reinforce
    from assay.train.session import Parts

__all__ = ["ReinforceRunner"]


@dataclass
class ReinforceRunner(BaseRunner):
    """A stage of reinforcement learning at work; a step is `assay.train.loop.step`.

    Attributes:
        parts: what it shares with every other stage.
        stage: its settings.
        curriculum: chooses what to practise.
        guidance: poses it.
        replay: groups kept for later steps; None without one.
        scorer: gives the rewards.
        sampler: contexts to rollouts.
        schedules: of the settings that change, with their states.
        scheduled: setting to its value in the current step; empty without schedules.
        screened: tasks that the stage's screen left out in the current step.
        balance: weighs the objective's terms; None without.
        interleaved: supervised updates between its own; None without.
        sources: rows of the stage's sources that were read so far.
        refill: rounds in which a step draws; None without.
    """

    stage: Reinforce
    curriculum: Curriculum
    guidance: Guidance
    replay: Replay | None
    scorer: Scorer
    sampler: Sampler
    schedules: StageSchedules
    scheduled: Mapping[str, float] = field(default_factory=dict[str, float])
    async_collector: AsyncCollector | None = None
    screened: int = 0
    refill: RefillRounds | None = None
    interleaved: InterleaveRunner | None = None
    balance: LossBalance | None = None
    sources: dict[int, SourceRows] = field(default_factory=dict[int, SourceRows])

    @classmethod
    def of(cls, stage: Reinforce, parts: Parts) -> Self:
        """As the settings say."""
        run = parts.run
        made = cls(
            parts=parts,
            stage=stage,
            curriculum=build_curriculum(stage, parts),
            guidance=stage.guidance.build(run.seed),
            replay=stage.replay.build(run.seed) if stage.replay else None,
            scorer=stage.reward.build(),
            sampler=stage.sampler.build(parts.sampler_parts(sampling_of(run, stage))),
            schedules=StageSchedules(stage.schedules),
            balance=stage.balance.build(parts.program.objective) if stage.balance else None,
            refill=RefillRounds(stage.refill) if stage.refill else None,
            async_collector=AsyncCollector.of(stage, parts) if stage.asynchronous else None,
        )
        made.interleaved = stage.imitate.build(made) if stage.imitate else None
        return made

    @property
    def group_size(self) -> int:
        """Rollouts of a context in this step."""
        return int(self.scheduled.get("group_size", self.stage.group_size))

    @property
    def brings_rows(self) -> bool:
        """Whether steps learn from rows of a user's, or from earlier rollouts of their rows."""
        return bool(self.stage.sources) or isinstance(self.replay, RecallsRows)

    def source_rows(self, number: int) -> SourceRows:
        """The rows of one of the stage's sources, read once."""
        if number not in self.sources:
            self.sources[number] = SourceRows.of(self.stage.sources[number])
        return self.sources[number]

    async def step(self) -> StepResult:
        """One rollout batch, with the scheduled settings of the step; they are in its metrics if there are schedules."""
        self._apply_schedules()
        before = copy_draw_state(self)
        self.parts.program.scales = used = self.balance.weights() if self.balance else {}
        try:
            result = await self.advance()
        except RewardError:
            restore_draw_state(self, before)
            raise
        values = {f"schedule/{key}": float(value) for key, value in self.scheduled.items()}
        metrics = {**result.metrics, **self.scorer.metrics(), **tool_metrics(self.stage.sampler, result.groups), **values}
        if self.balance:
            self.balance.observe(metrics, used)
            metrics |= {f"balance/{name}": weight for name, weight in used.items()}
        if self.async_collector:
            rate = throughput(metrics.get("tokens/sampled", 0.0), metrics["time/step"])  # sampling is no part of the step
            metrics |= self.async_collector.metrics() | {"time/tokens_per_second": rate}
        return replace(result, metrics=metrics | rollout_metrics(self.stage.sampler, result.groups, metrics))

    async def advance(self) -> StepResult:
        """What a step does: samples and learns."""
        return await (self.interleaved.advance() if self.interleaved else step(self))

    def _apply_schedules(self) -> None:
        """Sets the scheduled values of the step. A sampler has no state, so it can be built anew."""
        before, self.scheduled = self.scheduled, self.schedules.values(self.parts.stage_step)
        changed = {key: value for key, value in self.scheduled.items() if before.get(key) != value}
        if changed.keys() - {"group_size"}:
            parts = replace(self.parts.sampler_parts(self.sampling), max_turns=self.max_turns)
            self.sampler = self.stage.sampler.build(parts)

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn in this step."""
        return sampling_of(self.parts.run, self.stage, self.scheduled)

    @property
    def max_turns(self) -> int:
        """Answers of a rollout at most in this step."""
        return int(self.scheduled.get("max_turns", self.parts.run.max_turns))

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Advances the schedules, and tells a curriculum that reads metrics."""
        self.schedules.observe(metrics)
        show_metrics(self.curriculum, metrics)
        if self.interleaved:
            self.interleaved.observe_metrics(metrics)

    async def prepare_evaluation(self) -> None:
        """Nothing: every step publishes."""

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Tells curriculum and guidance what became of each graded group of a step."""
        self.curriculum.observe(outcomes)
        self.guidance.observe(outcomes)

    def metrics(self) -> dict[str, float]:
        """Numbers of curriculum and guidance."""
        return {**self.curriculum.metrics(), **self.guidance.metrics()}

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state of curriculum, guidance, replay, scorer and schedules."""
        own = {
            "curriculum": self.curriculum.state_dict(),
            "guidance": self.guidance.state_dict(),
            "replay": self.replay.state_dict() if self.replay is not None else None,
        }
        scheduled = {"schedules": self.schedules.state_dict()} if self.schedules.specs else {}
        queued = {"async": self.async_collector.state_dict(self.parts.step)} if self.async_collector else {}
        woven = {name: part.state_dict() for name, part in optional_parts(self)}
        return {"practice": own, "scorer": self.scorer.state_dict(), **scheduled, **queued, **woven}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        own: dict[str, Any] = state["practice"]
        self.curriculum.load_state_dict(own["curriculum"])
        self.guidance.load_state_dict(own.get("guidance", {}))
        if self.replay is not None:
            self.replay.load_state_dict(own["replay"])
        if "scorer" in state:  # not in checkpoints of before there were scorers
            self.scorer.load_state_dict(state["scorer"])
        self.schedules.load_state_dict(state.get("schedules", {}))
        if self.async_collector:
            self.async_collector.load_state_dict(state["async"])
        for name, part in optional_parts(self):
            part.load_state_dict(state.get(name, {}))  # a refill had no state before its rounds could adapt

    def on_checkpoint(self) -> None:
        """Forgets what the saved steps have learned from."""
        if self.async_collector:
            self.async_collector.commit(self.parts.step)
