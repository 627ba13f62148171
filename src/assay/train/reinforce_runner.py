"""A stage of reinforcement learning at work: what it has besides the parts of every stage, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from assay.core.errors import RewardError
from assay.core.group import Outcome
from assay.core.protocols import Curriculum, Guidance, Replay, Sampler
from assay.core.scoring import Scorer
from assay.core.seeds import derive
from assay.scorers import FromTasks
from assay.train.levels import arms_of
from assay.train.loop import step
from assay.train.rollout_metrics import rollout_metrics
from assay.train.runner import BaseRunner, StepResult
from assay.train.schedules import StageSchedules
from assay.train.support import sampling_of
from assay.train.tool_metrics import tool_metrics

if TYPE_CHECKING:
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
    """

    stage: Reinforce
    curriculum: Curriculum
    guidance: Guidance
    replay: Replay | None
    scorer: Scorer
    sampler: Sampler
    schedules: StageSchedules
    scheduled: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def of(cls, stage: Reinforce, parts: Parts) -> Self:
        """As the settings say."""
        run, step = parts.run, parts.step - parts.stage_step
        seed = derive("curriculum", run.seed, "stage", step) if step else run.seed
        return cls(
            parts=parts,
            stage=stage,
            curriculum=stage.curriculum.build(arms_of(run.tasks, stage.levels), seed),
            guidance=stage.guidance.build(run.seed),
            replay=stage.replay.build(run.seed) if stage.replay else None,
            scorer=stage.reward.build(),
            sampler=stage.sampler.build(parts.sampler_parts(sampling_of(run, stage))),
            schedules=StageSchedules(stage.schedules),
        )

    @property
    def group_size(self) -> int:
        """Rollouts of a context in this step."""
        return int(self.scheduled.get("group_size", self.stage.group_size))

    async def step(self) -> StepResult:
        """One rollout batch, with the scheduled settings of the step; they are in its metrics if there are schedules."""
        self._apply_schedules()
        before = self._drawn_state()
        try:
            result = await step(self)
        except RewardError:
            self._go_back(before)
            raise
        values = {f"schedule/{key}": float(value) for key, value in self.scheduled.items()}
        tools = tool_metrics(self.stage.sampler, result.groups)
        metrics = {**result.metrics, **self.scorer.metrics(), **tools, **values}
        return replace(result, metrics=metrics | rollout_metrics(self.stage.sampler, result.groups, metrics))

    def _drawn_state(self) -> dict[str, Any] | None:
        """What a step changes before its rollouts are scored; None where no reward of a user's can fail."""
        if self.parts.pool.abilities.trusted and type(self.scorer) is FromTasks:
            return None
        return deepcopy(
            {
                "curriculum": self.curriculum.state_dict(),
                "guidance": self.guidance.state_dict(),
                "scorer": self.scorer.state_dict(),
                "index": self.parts.index.state_dict(),
            }
        )

    def _go_back(self, before: dict[str, Any] | None) -> None:
        """To before the step: a reward that fails does so before anything is learned."""
        if before is None:
            return
        made, self.parts.index = type(self).of(self.stage, self.parts), self.stage.index.build(self.parts.run.seed)
        self.curriculum, self.guidance, self.scorer = made.curriculum, made.guidance, made.scorer
        self.curriculum.load_state_dict(before["curriculum"])
        self.guidance.load_state_dict(before["guidance"])
        self.scorer.load_state_dict(before["scorer"])
        self.parts.index.load_state_dict(before["index"])

    def _apply_schedules(self) -> None:
        """Sets the scheduled values of the step. A sampler has no state, so it can be built anew."""
        before, self.scheduled = self.scheduled, self.schedules.values(self.parts.stage_step)
        changed = {key: value for key, value in self.scheduled.items() if before.get(key) != value}
        if not changed.keys() & {"temperature", "max_new_tokens", "max_turns"}:
            return
        run = self.parts.run
        drawn = {key: self.scheduled[key] for key in ("temperature", "max_new_tokens") if key in self.scheduled}
        sampling: Any = replace(sampling_of(run, self.stage), **drawn)
        turns = int(self.scheduled.get("max_turns", run.max_turns))
        self.sampler = self.stage.sampler.build(replace(self.parts.sampler_parts(sampling), max_turns=turns))

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Advances the schedules."""
        self.schedules.observe(metrics)

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
        return {"practice": own, "scorer": self.scorer.state_dict(), **scheduled}

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
