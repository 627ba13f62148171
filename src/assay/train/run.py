"""A run as a value: a tree of frozen dataclasses that says everything, and does nothing until `assay.train.driver` takes it.

A recipe is any function ``() -> Run``; a variation is `dataclasses.replace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from assay.clients.judge import Judge
from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.fields import check_positive, later
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.curate.evaluation import Matching
from assay.runtime.engine.settings import Auto, EngineSpec
from assay.runtime.settings import Mesh
from assay.train.cycle import Cycle, with_cycles
from assay.train.independent_check import IndependentCheck
from assay.train.levels import Levels, check_levels, settle_levels
from assay.train.method_names import names_in
from assay.train.mismatch import MismatchCheck
from assay.train.stage import Stage

__all__ = ["ContaminationCheck", "Evaluation", "ModelSource", "Run", "Stage", "anchor_models"]

if TYPE_CHECKING:
    Stages = tuple[Stage, ...]
else:  # files and command lines may give a cycle too, which a run holds as the stages that it stands for
    Stages = tuple[Stage | Cycle, ...]

_FILED = {"WarmUp": "warmup", "Imitate": "imitate", "Prefer": "prefer", "Reinforce": "reinforce", "Until": "until"}
"""Parts that files know by a name in this module (`assay.core.import_path.filed_as`), and the modules that have them."""


def __getattr__(name: str) -> object:
    if name not in _FILED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"assay.train.{_FILED[name]}"), name)


class ModelSource(Protocol):
    """Where the starting weights come from: resolves to a model folder in Hugging Face format."""

    def describe(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Held-out evaluation, on items and seeds that training never uses.

    Attributes:
        every: steps between evaluations during a stage; 0 evaluates at the ends only.
        per_level: items per level during a stage.
        final_per_level: items per level at the start and the end of a run.
        n: sampled rollouts per item (temperature as in training); the greedy answer is always taken too.
        levels: levels to evaluate, of every arm, or arm by arm (`Levels`); all levels of the source when empty.
        threshold: a rollout passes when its primary component reaches this.
        kl_to_base: measure the divergence from the stage's starting weights on the sampled rollouts, where these are drawn at
            temperature 1 from all of the vocabulary.
        split: ``test``, or ``train`` where no task is held out: accuracies are then of the training tasks.
    """

    every: int = 25
    per_level: int = 16
    final_per_level: int = 64
    n: int = 1
    levels: Levels = ()
    threshold: float = 1.0
    kl_to_base: bool = True
    split: Literal["test", "train"] = later("test")

    def __post_init__(self) -> None:
        settle_levels(self)
        if self.split not in ("test", "train"):
            raise UnknownNameError("Evaluation.split", self.split, ("test", "train"))
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
    space, or a near-duplicate with the same numbers. An item of a file counts as found as in `assay curate`: the same, whole in
    a prompt, a shared run of words, or a near-duplicate. What many prompts share is a template's and counts for nothing. Prompts
    of finite data are all looked at, of a source without end the first of each level.

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
        check_positive(self, "sample")
        given: Any = self.against
        object.__setattr__(self, "against", (str(given),) if isinstance(given, str | Path) else tuple(map(str, given)))
        if self.mode not in ("refuse", "report", "off"):
            raise UnknownNameError("ContaminationCheck.mode", self.mode, ("refuse", "report", "off"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A complete run.

    Attributes:
        name: goes into the run folder's name.
        seed: all randomness derives from it.
        model: starting weights.
        tasks: what to practise on, with its verifier.
        stages: in order; a `assay.train.Cycle` stands for its own.
        sampling: how rollouts are drawn in training.
        evaluation: held-out evaluation.
        engine: what samples: chosen by the model and the machine, or by name.
        mesh: processes that share the learner.
        threads: intra-op threads of torch, of each.
        checkpoint_every: steps between checkpoints.
        keep_checkpoints: how many of the newest checkpoints stay in the run folder; 0 for all.
        rollouts_every: steps between those whose rollouts are recorded: some in ``rollouts.jsonl``, all in ``rollouts/``.
        max_turns: model calls per rollout in environments, unless a stage's sampler says otherwise.
        reward_deadline: seconds that a verifier may take for one rollout.
        reward_workers: processes in which a verifier that is not trusted, as every user's reward, judges at once; 1 for one that
            must be alone, as with a port or a device of its own.
        reward_errors: what an error of a user's reward does, raised twice on an answer: ``stop`` ends the run with its step's
            checkpoint, ``count`` masks the rollout as a fault and goes on. Lost connections never end a run by themselves.
        reward_in_flight: calls of an asynchronous reward at the same time.
        reward_attempts: tries of such a call whose connection fails.
        reward_memory: GiB that each of those processes may have; None for a share of the machine's (`ScoringPool`).
        environment_deadline: seconds that an environment may take for one start or step.
        pictures: what a model of text does with tasks that show pictures: ``refuse`` ends the run at the first one,
            ``placeholder`` has it read their placeholders. Rollouts name the pictures all the same.
        prove_weights: compare the engine's weights with the learner's after each update.
        mismatch: how much engine and learner may differ on the tokens just sampled before an alarm, or before the run stops.
        check: a second verifier for a sample of the training rollouts, which never adds to a reward; None for none.
        judges: models behind servers that scorers may ask, by their names.
        rollouts_kept: rollouts of a recorded step that ``rollouts/`` keeps, at most; 0 for none.
        keep_best: keep the model of the best held-out evaluation in the run folder, as ``best/``: of greedy answers, of samples
            where these are alike, of the earliest where both are.
        contamination: are evaluation items among the training prompts? Such a run is refused, unless this says otherwise.
    """

    name: str = "run"
    seed: int = 0
    model: ModelSource
    tasks: TaskSource
    stages: Stages
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
    judges: tuple[Judge, ...] = later(())
    reward_memory: float | None = later(None)
    rollouts_kept: int = later(512)
    reward_errors: Literal["stop", "count"] = later("stop")
    reward_in_flight: int = later(64)
    reward_attempts: int = later(4)
    keep_best: bool = later(False)
    keep_checkpoints: int = later(2)
    pictures: Literal["refuse", "placeholder"] = later("refuse")

    def __post_init__(self) -> None:
        check_positive(self, "threads", "checkpoint_every", "rollouts_every", "max_turns", "reward_workers")
        check_positive(self, "reward_in_flight", "reward_attempts")
        if self.reward_errors not in ("stop", "count"):
            raise UnknownNameError("Run.reward_errors", self.reward_errors, ("stop", "count"))
        if self.pictures not in ("refuse", "placeholder"):
            raise UnknownNameError("Run.pictures", self.pictures, ("refuse", "placeholder"))
        if not isinstance(self.seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Run.seed={self.seed!r}; use a whole number")
        if not isinstance(self.rollouts_kept, int) or self.rollouts_kept < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Run.rollouts_kept={self.rollouts_kept!r}; use a number of rollouts, or 0 to keep none")
        if not isinstance(self.keep_checkpoints, int) or self.keep_checkpoints < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Run.keep_checkpoints={self.keep_checkpoints!r}; use a number of checkpoints, or 0 to keep all")
        if not self.name or "/" in self.name:
            raise ConfigError(f"Run.name={self.name!r} names the run's folder; use a word without '/'")
        object.__setattr__(self, "stages", with_cycles(self.stages))
        if not self.stages:
            raise ConfigError("Run.stages is empty; give at least one WarmUp, Texts, Imitate, Prefer or Reinforce stage")
        for at, stage in enumerate(self.stages):
            if not hasattr(stage, "open"):
                raise ConfigError(
                    f"Run.stages[{at}] is {a_kind(stage)}, no stage; give a WarmUp, Texts, Imitate, Prefer or Reinforce"
                )
        for name in ("reward_deadline", "environment_deadline"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"Run.{name}={getattr(self, name)} s; use a positive number of seconds")
        if self.reward_memory is not None and not self.reward_memory > 0:
            raise ConfigError(f"Run.reward_memory={self.reward_memory} GiB; use a positive number, or leave it out")
        if not self.evaluation.every and (ending := next((s for s in self.stages if s.until), None)):
            name = type(ending).__name__
            raise ConfigError(f"{name}.until is looked at when there is an evaluation, but Evaluation.every=0; give it steps")
        object.__setattr__(self, "judges", tuple(self.judges))
        if len({judge.name for judge in self.judges}) < len(self.judges):
            raise ConfigError(f"Run.judges={[j.name for j in self.judges]}; scorers ask for judges by name, so give each its own")
        for stage in self.stages:
            check_levels(self.tasks, stage.levels, f"{type(stage).__name__}.levels")
        check_levels(self.tasks, self.evaluation.levels, "Evaluation.levels")

    @classmethod
    def read_table(cls, table: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Run]) -> Run:
        """A run from a file, whose stages may name a method with its settings in the place of an objective.

        >>> from assay.core import from_dict
        >>> stage = {"kind": "assay.train.run:Reinforce", "objective": {"kind": "ppo", "kl": 0.0}}
        >>> model, tasks = {"kind": "assay.train.models:Scratch"}, {"kind": "assay.tasks.sort:SortDigits"}
        >>> from_dict(Run, {"model": model, "tasks": tasks, "stages": [stage]}).stages[0].learner.heads[0].name
        'values'
        """
        plain, named = names_in(table)
        if not named:
            return read(plain)
        from assay.train.wiring import wire_run

        return wire_run(read(plain), named)[0]

    @property
    def steps(self) -> int:
        """Steps over all stages."""
        return sum(stage.steps for stage in self.stages)


def anchor_models(run: Run) -> tuple[str, ...]:
    """The models that anchors of a run start from, each once."""
    return tuple(dict.fromkeys(a.model for stage in run.stages for a in stage.learner.anchors if a.model))
