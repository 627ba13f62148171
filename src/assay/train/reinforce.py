"""The stage of reinforcement learning: its settings and what they answer. A step is in `assay.train.loop`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from assay.asynchronous.settings import Asynchronous
from assay.core.canon import FrozenMap
from assay.core.fields import later
from assay.core.import_path import filed_as
from assay.core.optional_protocols import TaskScreen
from assay.core.protocols import (
    BatchComposer,
    CurriculumSpec,
    GroupFilter,
    GuidanceSpec,
    IndexPolicySpec,
    SamplerSpec,
    ScheduleSpec,
    Tokenizer,
)
from assay.core.scoring import ScorerSpec
from assay.core.task import Task
from assay.guide import Compose, InOrder, Plain, Refill, SuccessVariance, replays_apart
from assay.guide.balanced_arms import narrow_curriculum
from assay.objective.methods import grpo
from assay.objective.objective import Objective
from assay.rollout.spec import PlayerSpec
from assay.runtime.settings import AdamW, LearnerSettings
from assay.scorers import FromTasks
from assay.train.balance import BalanceLosses
from assay.train.columns import ColumnProvider
from assay.train.lag import objective_under_lag
from assay.train.levels import Levels, settle_levels
from assay.train.method_names import refuse_name
from assay.train.row_sources import RowSource
from assay.train.runner import StageRunner
from assay.train.schedules import settle_schedules
from assay.train.source_stage import SourceStage
from assay.train.stage import Stage
from assay.train.stage_rows import StageRows
from assay.train.step_size import check_sizes, count_rollout_rows, half_group_size, reduced_sizes
from assay.train.until import Until

if TYPE_CHECKING:
    from assay.guide import DeferredReplay, Recent
    from assay.train.interleave import Interleaved
    from assay.train.row_replay import RowReplay
    from assay.train.run import Run
    from assay.train.session import Parts
    from assay.train.wiring import Wiring

__all__ = ["Reinforce", "Until"]


@filed_as("assay.train.run:Reinforce")
@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce(SourceStage):
    """A stage of reinforcement learning with verifiable rewards.

    Attributes:
        steps: rollout batches.
        groups: contexts per step; a guidance that poses a task in several contexts makes more groups.
        group_size: rollouts per context.
        epochs, minibatches: optimiser steps per rollout batch: each epoch walks over whole groups in ``minibatches`` parts.
        lag: rollout batches between the weights that sample and those that learn: staleness, made reproducible; 0 for none.
        objective, learner: the loss, and how it is minimised.
        curriculum: draws arm and level, and optionally the task itself.
        guidance: how a task becomes prompts.
        composer, replay: how groups become a batch.
        columns: providers of columns that no verifier gives (`assay.train.columns`); those without settings are automatic.
        experts: the task family's oracle plays each context too; its rollout joins the group in the stream ``expert``.
        levels: levels to train on, of every arm, or arm by arm (`Levels`); all when empty.
        until: early end; None runs all steps.
        index: which task of a stream comes next, if the curriculum leaves it open.
        filter: which graded rollouts are learned from; None for all.
        refill: draw again within a step until the filter has kept ``groups`` groups; None draws once.
        screen: which drawn tasks are rolled out, by the policy's greedy answer; None for all.
        reward: what scores rollouts; by default the tasks' verifier. Evaluations always use that verifier.
        sampler: how rollouts are sampled, and with which context manager and tools.
        schedules: for ``temperature``, ``max_new_tokens``, ``max_turns``, ``group_size`` and ``annealing_decay``: values that
            change by step, or by a metric. The run's and the stage's own values are upper bounds of all that are whole numbers.
            Evaluations always use the run's own values.
        asynchronous: sampling beside learning, in processes of its own; None samples in this process, between updates.
        sources: rows of a user's own, learned from beside the rollouts.
        balance: weighs the objective's terms by how their losses have gone; None leaves their coefficients alone.
        imitate: supervised updates between those of RL: `assay.train.ImitateFailures`, `assay.train.ImitateByGradient`.
    """

    samples: ClassVar[bool] = True
    uses_tasks: ClassVar[bool] = True

    steps: int = 500
    groups: int = 32
    group_size: int = 8
    epochs: int = 1
    minibatches: int = 1
    lag: int = 0
    objective: Objective = field(default_factory=grpo)
    learner: LearnerSettings = field(default_factory=lambda: LearnerSettings(optimizer=AdamW()))
    curriculum: CurriculumSpec = field(default_factory=SuccessVariance)
    guidance: GuidanceSpec = field(default_factory=Plain)
    composer: BatchComposer = field(default_factory=Compose)
    replay: Recent | RowReplay | DeferredReplay | None = None
    experts: bool = False
    levels: Levels = ()
    until: Until | None = None
    index: IndexPolicySpec = later(InOrder())
    filter: GroupFilter | None = later(None)
    refill: Refill | None = later(None)
    screen: TaskScreen | None = later(None)
    reward: ScorerSpec = later(FromTasks())
    columns: tuple[ColumnProvider, ...] = later(())
    sampler: SamplerSpec = later(PlayerSpec())
    schedules: Mapping[str, ScheduleSpec] = later(FrozenMap())
    asynchronous: Asynchronous | None = later(None)
    sources: tuple[RowSource, ...] = later(())
    imitate: Interleaved | None = later(None)
    balance: BalanceLosses | None = later(None)

    def __post_init__(self) -> None:
        refuse_name(self)
        settle_levels(self)
        settle_schedules(self)
        check_sizes(self)

    @property
    def effective_objective(self) -> Objective:
        """The objective as it is compiled; with a `lag`, what becomes of it for rollouts that older weights sampled.

        Raises:
            ConfigError: rollouts are older than the weights, and the method has nothing to correct for it.
        """
        return objective_under_lag(self.objective, self.lag, self.asynchronous.eta if self.asynchronous else 0)

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "rl"

    @property
    def updates(self) -> int:
        """Optimiser updates per step, where every mini-batch has something to learn from, and rollouts that were put off come."""
        return self.epochs * self.minibatches + int(replays_apart(self.composer))

    def open(self, parts: Parts) -> StageRunner:
        """The stage at work."""
        from assay.train.reinforce_runner import ReinforceRunner

        return ReinforceRunner.of(self, parts)

    @property
    def row_sources(self) -> tuple[RowSource, ...]:
        """Rows of a user's own, whatever they are for."""
        return (*self.sources, self.imitate.source) if self.imitate else self.sources

    @property
    def scored_models(self) -> tuple[str, ...]:
        """Those that the scorer asks for."""
        return tuple(self.reward.models)

    def check(self, run: Run) -> None:
        """Looks at the settings, as `assay.train.reinforce_checks` says."""
        from assay.train.reinforce_checks import check_stage

        check_stage(run, self)

    def check_task(self, run: Run, task: Task, tokenizer: Tokenizer, contexts: tuple[int, int]) -> None:
        """Looks at the task's privileged prompt, where a teacher reads it."""
        from assay.train.reinforce_checks import check_privileged

        check_privileged(run, self, task, tokenizer, contexts[1])

    @property
    def sampled(self) -> tuple[int, int]:
        """Contexts of a step, and rollouts of each."""
        return self.groups, self.group_size

    def count_rows(self, run: Run) -> StageRows:
        """A row for each rollout, at most."""
        return count_rollout_rows(self, run)

    def smaller(self) -> list[tuple[str, Reinforce]]:
        """Half as many rollouts of a context."""
        return [(f"group_size={half}", replace(self, group_size=half))] if (half := half_group_size(self)) else []

    def shrink(self, groups: int, size: int) -> Reinforce:
        """With fewer and smaller groups, and without schedules of sizes, which would exceed what is tried."""
        return replace(self, **reduced_sizes(self, groups, size))

    def on_levels(self, levels: Mapping[str, tuple[int, ...]]) -> Reinforce:
        """With a curriculum that names no arm which is not practised."""
        return replace(self, levels=levels, curriculum=narrow_curriculum(self.curriculum, levels))

    def wire(self, wiring: Wiring, objective: Objective) -> Stage:
        """Under a method; one that learns from demonstrations makes another stage of it."""
        return wiring.reinforce(self, objective)
