"""The stage of reinforcement learning, and what ends it early."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.fields import check_positive, later
from assay.core.import_path import filed_as
from assay.core.protocols import BatchComposer, CurriculumSpec, GroupFilter, GuidanceSpec, IndexPolicySpec, SamplerSpec
from assay.core.sample import STREAMS
from assay.core.scoring import ScorerSpec
from assay.guide import Compose, InOrder, Plain, Refill, ResampleOnCorrect, SuccessVariance
from assay.objective.loss.wrap import unwrapped
from assay.objective.methods import grpo
from assay.objective.objective import Objective
from assay.objective.plan import lagging
from assay.rollout.spec import PlayerSpec
from assay.runtime.settings import AdamW, LearnerSettings
from assay.train.columns import ColumnProvider
from assay.train.levels import Levels, settle_levels
from assay.train.naming import refuse_name
from assay.verify.scorers import FromTasks

if TYPE_CHECKING:
    from assay.guide import Recent

__all__ = ["Reinforce", "Until"]


@filed_as("assay.train.run:Until")
@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Ends a stage early when a metric of an evaluation reaches a bound.

    Attributes:
        metric: ``eval/greedy/all``, ``eval/sampled/all``, or either with ``level_L`` for ``all``; where there are several arms
            also ``eval/MODE/ARM/all`` and ``eval/MODE/ARM/level_L``.
        at_least: bound.

    Raises:
        UnknownNameError: a metric that no evaluation gives.
    """

    metric: str = "eval/greedy/all"
    at_least: float = 1.0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"eval/(greedy|sampled)/(.+/)?(all|level_\d+)", self.metric):
            known = [f"eval/{mode}/{cell}" for mode in ("greedy", "sampled") for cell in ("all", "level_L")]
            raise UnknownNameError("evaluation metric", self.metric, known)


@filed_as("assay.train.run:Reinforce")
@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce:
    """A stage of reinforcement learning with verifiable rewards.

    Attributes:
        steps: rollout batches.
        groups: contexts per step; a guidance that poses a task in several contexts makes more groups.
        group_size: attempts per context.
        epochs, minibatches: optimiser steps per rollout batch: each epoch walks over whole groups in ``minibatches`` parts.
        lag: rollout batches between the weights that sample and those that learn: what a sampler that works beside its learner
            would leave it with, made reproducible. 0 samples with the newest.
        objective, learner: what is minimised, and how.
        curriculum: chooses arm and level, and where it likes the very task.
        guidance: how a task is posed.
        composer, replay: how the groups learned from make a batch.
        columns: providers of columns that the objective reads and no verifier gives (`assay.train.columns`); those that need no
            choice come by themselves.
        experts: have the task family's oracle play each context too: its attempt stands beside the policy's own, in the stream
            ``expert``, for the terms that read it.
        levels: levels to train on, of every arm, or arm by arm (`Levels`); all when empty.
        until: early end; None runs all steps.
        index: which task of a stream comes next, where the curriculum leaves it open.
        filter: which graded rollouts are learned from; None for all.
        refill: draw again within a step until the filter has kept ``groups`` groups; None draws once.
        reward: what scores attempts; the tasks' own verifier. Evaluations are by that verifier, whatever rewards training.
        sampler: how rollouts come about, and in which contexts.
    """

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
    replay: Recent | None = None
    experts: bool = False
    levels: Levels = ()
    until: Until | None = None
    index: IndexPolicySpec = later(InOrder())
    filter: GroupFilter | None = later(None)
    refill: Refill | None = later(None)
    reward: ScorerSpec = later(FromTasks())
    columns: tuple[ColumnProvider, ...] = later(())
    sampler: SamplerSpec = later(PlayerSpec())

    def __post_init__(self) -> None:
        refuse_name(self)
        settle_levels(self)
        check_positive(self, "steps", "groups", "group_size", "epochs", "minibatches")
        if self.group_size < self.objective.min_group:
            raise ConfigError(
                f"Reinforce.group_size={self.group_size}, but the objective's baseline needs at least {self.objective.min_group} "
                "attempts of a context: raise group_size or choose a baseline without a group"
            )
        if self.lag < 0:
            raise ConfigError(
                f"Reinforce.lag={self.lag}; use 0 to sample with the newest weights, or a number of rollout batches"
            )
        if self.minibatches > self.groups:
            raise ConfigError(
                f"Reinforce.minibatches={self.minibatches} exceeds groups={self.groups}; a mini-batch holds whole groups"
            )

    def check_refill(self) -> None:
        """Raises ConfigError for a refill without a filter (nothing could be missing), and for a filter or a refill that could
        never keep enough. Not at construction, as `check_replay`.
        """
        if self.refill is not None and self.filter is None:
            raise ConfigError(
                "Reinforce.refill draws again until the filter has kept enough, and there is no filter: give filter=Mixed() "
                "(DAPO's dynamic sampling), SuccessWindow(), ..., or leave the refill out"
            )
        if not isinstance(self.guidance, Plain):  # it may give more groups, and more rollouts of each
            return
        if isinstance(self.filter, ResampleOnCorrect) and self.filter.keep > self.group_size:
            raise ConfigError(
                f"ResampleOnCorrect.keep={self.filter.keep} of Reinforce.group_size={self.group_size} rollouts: every group "
                "would be left out; roll out about twice as many as are kept"
            )
        if self.refill is not None and 0 < self.refill.draws * self.refill.rounds < self.groups:
            raise ConfigError(
                f"Refill(rounds={self.refill.rounds}, draws={self.refill.draws}) draws at most "
                f"{self.refill.draws * self.refill.rounds} contexts, and Reinforce.groups={self.groups} are wanted: "
                "raise one of them"
            )

    def check_replay(self) -> None:
        """Raises ConfigError when a replay is asked for that is not there, or is there and never read.

        Not at construction: a command line changes one field after the other.
        """
        if not isinstance(self.composer, Compose):
            return
        share = self.composer.replay_share
        if share and self.replay is None:
            raise ConfigError(f"Reinforce.composer.replay_share={share}, but there is no replay: give replay=Recent(...)")
        policy = self.objective.policy
        ratio = getattr(unwrapped(policy) if policy else None, "ratio", None)
        if share and (ratio is None or ratio.level == "none"):
            raise ConfigError(
                f"Reinforce.composer.replay_share={share}: replayed attempts come from older weights, and the objective's policy "
                "term has no ratio to correct for it; use a method with one (grpo, dapo, ...) or leave the replay out"
            )
        if self.replay is not None and not share:
            raise ConfigError("Reinforce.replay is never read: set composer=Compose(replay_share=...), or leave the replay out")

    def check_streams(self) -> None:
        """Raises ConfigError when experts are asked for and never read, when something learns from experts alone and has none, or
        when nothing learns from any rows that the stage brings.
        """
        objective = self.objective
        credit, losses = objective.credit if objective.pays else (), objective.losses
        read = {
            *objective.scalarise.streams,
            *(s for t in credit for s in t.streams),
            *(s for t in losses for s in t.streams or STREAMS),
        }
        alone = [type(t).__name__ for t in (*credit, *losses) if t.streams == ("expert",)]
        brought = {"on_policy", "replay", "expert"}
        if isinstance(self.composer, Compose) and not any(brought & set(t.streams or STREAMS) for t in losses):
            raise ConfigError(
                f"Reinforce: the objective's terms act on rows of {sorted({s for t in losses for s in t.streams})} alone, which "
                "this stage never has: give a composer that brings them, or use a method for sampled attempts"
            )
        if self.experts and "expert" not in read:
            raise ConfigError(
                f"Reinforce.experts=True, but no part of the objective reads the stream 'expert' (they read {sorted(read)}): use "
                "a method that does (rl_plus, visurf, ...), or False"
            )
        if alone and not self.experts:
            raise ConfigError(
                f"{' and '.join(alone)} of the objective learns from expert attempts alone, and Reinforce.experts=False brings "
                "none: use Reinforce(experts=True)"
            )

    @property
    def taught(self) -> Objective:
        """The objective as it is compiled; with a `lag`, what becomes of it for attempts that older weights sampled.

        Raises:
            ConfigError: there is a lag, and the method has nothing to correct for it.
        """
        if not self.lag:
            return self.objective
        try:
            return lagging(self.objective)
        except PlanError as error:
            raise ConfigError(f"Reinforce.lag={self.lag}: {error}, or set lag=0") from None

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "rl"

    @property
    def updates(self) -> int:
        """Optimiser updates per step, where every mini-batch has something to learn from."""
        return self.epochs * self.minibatches
