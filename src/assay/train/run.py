"""A run as a value: a tree of frozen dataclasses that says everything, and does nothing until `assay.train.driver` takes it.

A recipe is any function ``() -> Run``; a variation is `dataclasses.replace`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, PlanError, UnknownNameError, a_kind
from assay.core.protocols import BatchComposer, CurriculumSpec, Guidance, TaskSource
from assay.core.rollout import Sampling
from assay.core.sample import STREAMS
from assay.curate.evaluation import Matching
from assay.guide import Compose, Plain, SuccessVariance
from assay.objective.loss.wrap import unwrapped
from assay.objective.methods import dpo, grpo, nll
from assay.objective.objective import Objective
from assay.objective.plan import lagging
from assay.runtime.anchors import BASE, Anchor
from assay.runtime.engines import Auto, EngineSpec
from assay.runtime.settings import AdamW, LearnerSettings, Mesh
from assay.train.check import IndependentCheck
from assay.train.mismatch import MismatchCheck

if TYPE_CHECKING:
    from assay.guide import Recent

__all__ = [
    "ContaminationCheck",
    "Evaluation",
    "Imitate",
    "Levels",
    "ModelSource",
    "Prefer",
    "Reinforce",
    "Run",
    "Stage",
    "Until",
    "WarmUp",
]

Levels = tuple[int, ...] | Mapping[str, tuple[int, ...]]
"""Which levels of a task family: those of every arm, all when empty; or arm to its levels, and no other arm."""


class ModelSource(Protocol):
    """Where the starting weights come from: resolves to a model folder in Hugging Face format."""

    def describe(self) -> str: ...


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Held-out evaluation, on items and seeds that training never uses.

    Attributes:
        every: steps between evaluations during a stage; 0 evaluates at the ends only.
        per_level: items per level during a stage.
        final_per_level: items per level at the start and the end of a run.
        n: sampled attempts per item (temperature as in training); the greedy answer is always taken too.
        levels: levels to evaluate, of every arm, or arm by arm (`Levels`); all levels of the source when empty.
        threshold: an attempt passes when its primary component reaches this.
        kl_to_base: measure the divergence from the stage's starting weights on the sampled attempts.
    """

    every: int = 25
    per_level: int = 16
    final_per_level: int = 64
    n: int = 1
    levels: Levels = ()
    threshold: float = 1.0
    kl_to_base: bool = True

    def __post_init__(self) -> None:
        _settle_levels(self)
        for name in ("per_level", "final_per_level", "n"):
            if getattr(self, name) < 1:
                raise ConfigError(f"Evaluation.{name}={getattr(self, name)}; use at least 1")
        if self.every < 0:
            raise ConfigError(f"Evaluation.every={self.every}; use 0 for 'at the ends only' or a number of steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationCheck:
    """Before a run begins: are evaluation items among its training prompts?

    Looked for are the held-out tasks that the run evaluates on, and the questions in files. A held-out task counts as found
    where a prompt asks the same by its content; a held-out row of finite data also where it is the same but for case and white
    space, or a near-duplicate with the same numbers. An item of a file counts as found as in `assay curate`: the same, a shared
    run of words, or a near-duplicate. Prompts of finite data are all looked at, of a source without end the first of each level.

    Attributes:
        against: files or folders of evaluation rows: ``.jsonl``, ``.jsonl.gz``, ``.parquet``. They are read when the run begins;
            a resume reads them again where they have changed.
        mode: ``refuse`` such a run; ``report``: train all the same, and have the report say so; ``off``: do not look.
        sample: prompts looked at per (arm, level) of a source without end.
        matching: when an item of a file counts as found; its ``near`` and ``shingle`` hold for held-out rows too.

    Raises:
        ConfigError: another mode, or no sample.

    >>> ContaminationCheck(against=["aime.jsonl"]).against
    ('aime.jsonl',)
    """

    against: tuple[str, ...] = ()
    mode: Literal["refuse", "report", "off"] = "refuse"
    sample: int = 16
    matching: Matching = field(default_factory=Matching)

    def __post_init__(self) -> None:
        _positive(self, "sample")
        given: Any = self.against
        object.__setattr__(self, "against", (str(given),) if isinstance(given, str | Path) else tuple(map(str, given)))
        if self.mode not in ("refuse", "report", "off"):
            raise UnknownNameError("ContaminationCheck.mode", self.mode, ("refuse", "report", "off"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """A supervised stage on the task family's oracle traces.

    Attributes:
        steps: optimiser steps.
        batch: traces per step.
        demonstrations: size of the fixed pool of traces, equal parts per level; 0 draws fresh ones for ever.
        noise: probability that a trace is corrupted.
        levels: levels demonstrated, of every arm, or arm by arm (`Levels`); all when empty.
        gate: lowest held-out temperature-1 accuracy on the demonstrated levels at the end, of every arm by itself; below it
            the run stops with a `GateError`, because RL from almost no success collapses. Arms that ``Evaluation.levels`` leaves
            out need not pass: they are there to help others.
        objective, learner: what is minimised, and how.
    """

    steps: int = 600
    batch: int = 64
    demonstrations: int = 3000
    noise: float = 0.1
    levels: Levels = ()
    gate: float = 0.0
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        _settle_levels(self)
        _positive(self, "steps", "batch")
        if not 0.0 <= self.noise <= 1.0:
            raise ConfigError(f"WarmUp.noise={self.noise} is a probability; use a number in [0, 1]")
        if not 0.0 <= self.gate <= 1.0:
            raise ConfigError(f"WarmUp.gate={self.gate} is an accuracy; use a number in [0, 1]")

    @property
    def taught(self) -> Objective:
        """The objective as it is compiled."""
        return self.objective

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "warm-up"

    @property
    def updates(self) -> int:
        """Optimiser updates per step."""
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Imitate:
    """A supervised stage on given demonstrations: questions with answers, or whole conversations.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves, in the forms of `assay.train.Demonstration`. A file is read when the run begins and when it
            is resumed, and must stay as it is until the run has ended.
        steps: optimiser steps.
        batch: rows per step. They are walked in a seeded order, anew each epoch.
        learn: which tokens carry loss: ``assistant``: those of the answers and the tokens that end them; ``all``: those of the
            questions, of tools and of the chat template too.
        objective, learner: what is minimised, and how.

    >>> Imitate(data=[{"prompt": "2+2=", "completion": "4"}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    learn: Literal["assistant", "all"] = "assistant"
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        _positive(self, "steps", "batch")
        _settle_data(self)
        if self.learn not in ("assistant", "all"):
            raise UnknownNameError("Imitate.learn", self.learn, ("assistant", "all"))

    @property
    def taught(self) -> Objective:
        """The objective as it is compiled."""
        return self.objective

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "sft"

    @property
    def updates(self) -> int:
        """Optimiser updates per step."""
        return 1

    @property
    def levels(self) -> Levels:
        """None in particular: the tasks are for evaluation alone."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefer:
    """A stage on given preferences: answers that people or programs have judged.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves; `assay.objective.Preference` has their three forms. A file is read when the run begins and when it is
            resumed, and must stay as it is until the run has ended.
        steps: optimiser steps.
        batch: rows per step: pairs, or judged answers, or ranked lists. They are walked in a seeded order, anew each epoch.
        objective, learner: what is minimised, and how; the weights that the stage starts from are the reference.

    >>> Prefer(data=[{"prompt": "2+2=", "chosen": "4", "rejected": "5"}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    objective: Objective = field(default_factory=dpo)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        _positive(self, "steps", "batch")
        _settle_data(self)

    @property
    def taught(self) -> Objective:
        """The objective as it is compiled."""
        return self.objective

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "preferences"

    @property
    def updates(self) -> int:
        """Optimiser updates per step."""
        return 1

    @property
    def levels(self) -> Levels:
        """None in particular: the tasks are for evaluation alone."""
        return ()


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
        curriculum: chooses arm and level.
        guidance: how a task is posed.
        composer, replay: which groups are learned from.
        experts: have the task family's oracle play each context too: its attempt stands beside the policy's own, in the stream
            ``expert``, for the terms that read it.
        levels: levels to train on, of every arm, or arm by arm (`Levels`); all when empty.
        until: early end; None runs all steps.
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
    guidance: Guidance = field(default_factory=Plain)
    composer: BatchComposer = field(default_factory=Compose)
    replay: Recent | None = None
    experts: bool = False
    levels: Levels = ()
    until: Until | None = None

    def __post_init__(self) -> None:
        _settle_levels(self)
        _positive(self, "steps", "groups", "group_size", "epochs", "minibatches")
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


Stage = WarmUp | Imitate | Prefer | Reinforce


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A complete run.

    Attributes:
        name: goes into the run folder's name.
        seed: all randomness derives from it.
        model: starting weights.
        tasks: what to practise on, with its verifier.
        stages: in order.
        sampling: how attempts are drawn in training.
        evaluation: held-out evaluation.
        engine: what samples: chosen by the model and the machine, or by name.
        mesh: processes that share the learner.
        threads: intra-op threads of torch, of each.
        checkpoint_every: steps between checkpoints.
        rollouts_every: steps between sampled attempts in ``rollouts.jsonl``.
        max_turns: model calls per attempt in environments.
        reward_deadline: seconds that a verifier may take for one attempt.
        reward_workers: most processes in which a verifier that is not trusted judges at once; 1 for one that must be alone, as
            with a port or a device of its own.
        environment_deadline: seconds that an environment may take for one start or step.
        prove_weights: compare the sampler's weights with the learner's after each update.
        mismatch: when sampler and learner disagree too much on the tokens just sampled: an alarm, and where wanted the end.
        check: a second judge for a sample of the training attempts, who pays for none; None without one.
        contamination: are evaluation items among the training prompts? Such a run is refused, unless this says otherwise.
    """

    name: str = "run"
    seed: int = 0
    model: ModelSource
    tasks: TaskSource
    stages: tuple[Stage, ...]
    sampling: Sampling = field(default_factory=Sampling)
    evaluation: Evaluation = field(default_factory=Evaluation)
    engine: EngineSpec = field(default_factory=Auto)
    mesh: Mesh = field(default_factory=Mesh)
    threads: int = 1
    checkpoint_every: int = 100
    rollouts_every: int = 25
    max_turns: int = 8
    reward_deadline: float = 5.0
    reward_workers: int = 8
    environment_deadline: float = 30.0
    prove_weights: bool = True
    mismatch: MismatchCheck = field(default_factory=MismatchCheck)
    check: IndependentCheck | None = None
    contamination: ContaminationCheck = field(default_factory=ContaminationCheck)

    def __post_init__(self) -> None:
        _positive(self, "threads", "checkpoint_every", "rollouts_every", "max_turns", "reward_workers")
        if not isinstance(self.seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Run.seed={self.seed!r}; use a whole number")
        if not self.name or "/" in self.name:
            raise ConfigError(f"Run.name={self.name!r} names the run's folder; use a word without '/'")
        if not self.stages:
            raise ConfigError("Run.stages is empty; give at least one WarmUp, Imitate, Prefer or Reinforce stage")
        for name in ("reward_deadline", "environment_deadline"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"Run.{name}={getattr(self, name)} s; use a positive number of seconds")
        if not self.evaluation.every and any(isinstance(s, Reinforce) and s.until for s in self.stages):
            raise ConfigError("Reinforce.until is looked at when there is an evaluation, but Evaluation.every=0; give it steps")
        for stage in self.stages:
            check_levels(self.tasks, stage.levels, f"{type(stage).__name__}.levels")
        check_levels(self.tasks, self.evaluation.levels, "Evaluation.levels")

    @property
    def steps(self) -> int:
        """Steps over all stages."""
        return sum(stage.steps for stage in self.stages)


def learner_of(run: Run, stage: Stage) -> LearnerSettings:
    """The learner that a stage gets: its own settings, with the anchor ``base`` besides where the evaluation measures the
    divergence from the stage's start and no anchor of the stage stays there.
    """
    anchors = stage.learner.anchors
    if not run.evaluation.kl_to_base or any(a.is_start for a in anchors):
        return stage.learner
    return replace(stage.learner, anchors=(*anchors, Anchor(BASE)))


def anchor_models(run: Run) -> tuple[str, ...]:
    """The models that anchors of a run start from, each once."""
    return tuple(dict.fromkeys(a.model for stage in run.stages for a in stage.learner.anchors if a.model))


def check_levels(tasks: TaskSource, levels: Levels, place: str) -> None:
    """Raises ConfigError naming the nearest level when the source lacks one of ``levels``, UnknownNameError of an arm."""
    if isinstance(levels, Mapping):
        arms = tasks.arms()
        for arm, of_arm in levels.items():
            if arm not in arms:
                raise UnknownNameError(f"arm at {place} of {tasks.name!r}", arm, arms)
            _check_known(arms[arm], of_arm, f"{place}.{arm}", f"arm {arm!r} of task family {tasks.name!r}")
        return
    known = sorted({level for of_arm in tasks.arms().values() for level in of_arm})
    _check_known(known, levels, place, f"task family {tasks.name!r}")


def _check_known(known: Sequence[int], levels: Sequence[int], place: str, owner: str) -> None:
    for level in levels:
        if level not in known:
            close = min(known, key=lambda k: abs(k - level))
            raise ConfigError(f"{place}: {owner} has no level {level}; the nearest is {close}, known: {list(known)}")


def arms_of(tasks: TaskSource, levels: Levels) -> dict[str, tuple[int, ...]]:
    """The source's arms, restricted to ``levels``; arms without a level left are dropped.

    >>> from assay.tasks import Mixture, Reverse, SortDigits
    >>> both = Mixture(name="both", sources=(SortDigits(levels=(3, 4)), Reverse(levels=(3,))))
    >>> arms_of(both, (4,)), arms_of(both, {"reverse": (3,)})
    ({'sort': (4,)}, {'reverse': (3,)})
    """
    if isinstance(levels, Mapping):
        kept = {arm: tuple(x for x in of_arm if x in levels.get(arm, ())) for arm, of_arm in tasks.arms().items()}
    else:
        kept = {arm: tuple(x for x in of_arm if not levels or x in levels) for arm, of_arm in tasks.arms().items()}
    return {arm: of_arm for arm, of_arm in kept.items() if of_arm}


def _settle_levels(part: Any) -> None:
    """Makes a mapping of levels a frozen one.

    Raises:
        ConfigError: it names no arm, or an arm without levels.
    """
    levels: Levels = part.levels
    if isinstance(levels, Mapping):
        if not levels or not all(levels.values()):
            raise ConfigError(
                f"{type(part).__name__}.levels={dict(levels)}; give each arm its levels, or () for all levels of all"
            )
        object.__setattr__(part, "levels", FrozenMap({arm: tuple(of_arm) for arm, of_arm in levels.items()}))


def _settle_data(part: Any) -> None:
    """Makes a path text, and rows frozen ones.

    Raises:
        ConfigError: something else among the rows.
    """
    given: Any = part.data
    if isinstance(given, str | Path):
        object.__setattr__(part, "data", str(given))
        return
    rows: list[Any] = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore[reportUnknownArgumentType]
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ConfigError(
                f"{type(part).__name__}.data, row {i} is {a_kind(row)}; name a file of rows, or give a list of dicts"
            )
    object.__setattr__(part, "data", tuple(map(FrozenMap, rows)))


def _positive(part: object, *names: str) -> None:
    for name in names:
        value = getattr(part, name)
        if not isinstance(value, int) or value < 1:
            raise ConfigError(f"{type(part).__name__}.{name}={value!r}; use a whole number, at least 1")
