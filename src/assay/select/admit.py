"""Which arms of a family a model shall practise: those on which it sometimes succeeds before it has learned anything.

From almost no success RL has nothing to reinforce, and from nearly always success it has little left to teach. So an arm enters
training where the model's accuracy at its lowest level, sampled at temperature 1, is between two bounds; below them it is warmed
up first, if an oracle can show it; all others are for evaluation only, and the report says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.import_path import filed_as
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.measure import wilson
from assay.runs.storage import write_json
from assay.tasks import TaskMixture
from assay.testing.streams import first_task
from assay.train.policy import Policy
from assay.train.run import Run
from assay.train.stage import Stage
from assay.train.stages import WarmUp

__all__ = ["Admission", "ArmAdmission", "ArmVerdict", "admission", "judge_arms"]


@filed_as("assay.lab.admitting:Verdict")
class ArmVerdict(StrEnum):
    """What becomes of an arm."""

    TRAIN = "train"
    WARM = "warm up first"
    EASY = "evaluation only: too easy"
    HARD = "evaluation only: too hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAdmission:
    """One arm before the training.

    Attributes:
        arm: its name.
        part: the domain that it belongs to: a part of the suite, else the family.
        level: its lowest, at which it was measured.
        accuracy, low, high: share of right answers at temperature 1, and its 95 % Wilson interval.
        n: rollouts that were judged, each at a task of its own.
        verdict: what becomes of it.
        sure: whether every accuracy within the interval has the same verdict. If not, measure more tasks.
    """

    arm: str
    part: str
    level: int
    accuracy: float
    low: float
    high: float
    n: int
    verdict: ArmVerdict
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What a model may practise of a family.

    Attributes:
        model, tasks: what was measured on what.
        least, most: bounds of the accuracy that admits.
        warmed: whether the model has had its warm-up: then no arm is to be warmed up again.
        arms: in the family's order.
    """

    model: str
    tasks: str
    least: float
    most: float
    warmed: bool
    arms: tuple[ArmAdmission, ...]

    def of(self, *verdicts: ArmVerdict) -> tuple[str, ...]:
        """The arms with one of these verdicts."""
        return tuple(a.arm for a in self.arms if a.verdict in verdicts)

    @property
    def parts(self) -> Mapping[str, Mapping[ArmVerdict, int]]:
        """Each domain with how many of its arms have each verdict."""
        counts = {
            part: Counter(a.verdict for a in self.arms if a.part == part) for part in dict.fromkeys(a.part for a in self.arms)
        }
        return {part: {verdict: of[verdict] for verdict in ArmVerdict} for part, of in counts.items()}

    @property
    def only_evaluated(self) -> tuple[str, ...]:
        """Domains of which no arm is practised: they are for evaluation only."""
        return tuple(part for part, of in self.parts.items() if not of[ArmVerdict.TRAIN] and not of[ArmVerdict.WARM])

    def admit(self, run: Run, warm_up: WarmUp | None = None) -> Run:
        """The run with nothing practised but what is admitted; all that it evaluates it still does.

        Arms to be warmed up are, on their lowest levels, in a stage before the first of RL; its gate stops the run where one of
        them stays under the lower bound. The other arms that are practised are shown beside them, where an oracle can, or they
        would be forgotten meanwhile.

        Args:
            run: its tasks are those that were measured.
            warm_up: settings of that stage but for its levels; 400 steps of fresh traces and a gate at the lower bound where it
                is None.

        Raises:
            ConfigError: the run has other arms, practises by RL nothing that is admitted, or has no stage of RL.
        """
        if sorted(run.tasks.arms()) != sorted(a.arm for a in self.arms):
            raise ConfigError(f"the admission is of {self.tasks!r}, the run's tasks are {run.tasks.name!r} with other arms")
        kept = {*self.of(ArmVerdict.TRAIN, ArmVerdict.WARM)}
        stages = [self._narrow_arms(run, stage, kept) if _is_rl(stage) else stage for stage in run.stages]
        first = next((i for i, stage in enumerate(stages) if _is_rl(stage)), None)
        if first is None:
            raise ConfigError(
                f"run {run.name!r} has no stage that samples answers to its tasks and learns from them, as Reinforce does, "
                "so there is nothing that arms could be admitted to"
            )
        oracles, practised = _oracles(run.tasks), _practice_arms(stages)
        shown = {a.arm: (a.level,) for a in self.arms if a.arm in practised and oracles[a.arm]}
        if practised & {*self.of(ArmVerdict.WARM)}:
            base = WarmUp(steps=400, demonstrations=0, gate=self.least) if warm_up is None else warm_up
            stages.insert(first, replace(base, levels=shown))
        return replace(run, stages=tuple(stages))

    def write(self, path: Path) -> None:
        """Writes it as JSON, for `read`."""
        write_json(path, to_dict(self))

    @classmethod
    def read(cls, path: str | Path) -> Admission:
        """What `write` wrote.

        Raises:
            DataError: the file cannot be read, or holds something else.
        """
        try:
            found: Any = from_dict(cls, json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, ConfigError) as error:
            raise DataError(f"cannot read an admission from {path}: {error}") from None
        return found

    def _narrow_arms(self, run: Run, stage: Stage, kept: set[str]) -> Stage:
        """A stage of RL with the admitted ones of its arms."""
        asked = run.tasks.arms()
        levels = (
            stage.levels
            if isinstance(stage.levels, Mapping)
            else {arm: tuple(x for x in of if not stage.levels or x in stage.levels) for arm, of in asked.items()}
        )
        left = {arm: of for arm, of in levels.items() if arm in kept and of}
        if not left:
            raise ConfigError(
                f"the model {self.model} is admitted to none of the arms that run {run.name!r} practises: its accuracy at their "
                f"lowest levels is outside {self.least} to {self.most}; use other tasks or another model"
            )
        return stage.on_levels(left)


def admission(
    model: str | Path,
    tasks: TaskSource,
    *,
    n: int = 64,
    least: float = 0.1,
    most: float = 0.6,
    warmed: bool = False,
    sampling: Sampling | None = None,
    seed: int = 0,
) -> Admission:
    """Asks a model every arm's lowest level, and says which it shall practise.

    The questions are of the training split, so that a choice made by them says nothing about the held-out ones.

    Args:
        model: a model folder in Hugging Face format, or a run folder.
        tasks: the family or suite.
        n: questions of each arm, one answer each; fewer where the level has no more.
        least, most: bounds of the accuracy that admits, both included.
        warmed: the model has had its warm-up: what it still fails is for evaluation only.
        sampling: limits of an answer; the temperature is always 1.
        seed: of the sampling noise.

    Raises:
        ConfigError: bounds that are not ascending shares, or no questions.
        RewardError: an arm on which no rollout got a verdict; names it.
    """
    if not 0.0 <= least < most <= 1.0:
        raise ConfigError(f"admission(least={least}, most={most}); give two accuracies, 0 <= least < most <= 1")
    if n < 1:
        raise ConfigError(f"admission(n={n}); ask at least 1 question of each arm")
    drawn = None if sampling is None else replace(sampling.whole, temperature=1.0)
    levels = {arm: of[:1] for arm, of in tasks.arms().items()}
    items = Policy(model).evaluate(tasks, n=1, per_level=n, levels=levels, sampling=drawn, seed=seed, split="train")
    arms = judge_arms(items, tasks, least=least, most=most, warmed=warmed)
    return Admission(model=str(model), tasks=tasks.name, least=least, most=most, warmed=warmed, arms=arms)


def judge_arms(
    items: Sequence[Mapping[str, Any]], tasks: TaskSource, *, least: float = 0.1, most: float = 0.6, warmed: bool = False
) -> tuple[ArmAdmission, ...]:
    """The verdicts on the arms by what `assay.train.Policy.evaluate` found at their lowest levels.

    Raises:
        RewardError: an arm without a verdict.
    """
    part = {arm: name for name, families in _parts(tasks).items() for of in families.values() for arm in of}
    shown = {arm: not warmed and oracle for arm, oracle in _oracles(tasks).items()}
    out: list[ArmAdmission] = []
    for arm, levels in tasks.arms().items():
        values = [value for item in items if item["arm"] == arm and item["level"] == levels[0] for value in item["values"]]
        if not values:
            raise RewardError(
                f"no rollout of {arm!r} of {tasks.name!r} got a verdict: its verifier failed; try 'assay tasks check'"
            )
        found = wilson(sum(value >= 1.0 for value in values), len(values))
        verdicts = [_verdict(x, least, most, shown[arm]) for x in (found.value, found.low, found.high)]
        out.append(
            ArmAdmission(
                arm=arm,
                part=part[arm],
                level=levels[0],
                accuracy=found.value,
                low=found.low,
                high=found.high,
                n=len(values),
                verdict=verdicts[0],
                sure=len(set(verdicts)) == 1,
            )
        )
    return tuple(out)


def _verdict(accuracy: float, least: float, most: float, shown: bool) -> ArmVerdict:
    if accuracy > most:
        return ArmVerdict.EASY
    if accuracy >= least:
        return ArmVerdict.TRAIN
    return ArmVerdict.WARM if shown else ArmVerdict.HARD


def _is_rl(stage: Stage) -> bool:
    """Whether a stage samples answers to the run's tasks and learns from them."""
    return stage.samples and stage.uses_tasks


def _practice_arms(stages: Sequence[Stage]) -> set[str]:
    """Arms of the stages of RL, whose levels are told arm by arm."""
    return {arm for s in stages if _is_rl(s) and isinstance(s.levels, Mapping) for arm in s.levels}


def _parts(tasks: TaskSource) -> Mapping[str, Mapping[str, Sequence[str]]]:
    if isinstance(tasks, TaskMixture) and tasks.parts is not None:
        return tasks.members()
    if isinstance(tasks, TaskMixture):
        return {source.name: {source.name: tuple(source.arms())} for source in tasks.sources}
    return {tasks.name: {tasks.name: tuple(tasks.arms())}}


def _oracles(tasks: TaskSource) -> Mapping[str, bool]:
    """Each arm with whether an oracle can demonstrate its lowest level."""
    rng = np.random.default_rng(0)
    return {arm: tasks.trace(first_task(tasks, arm, levels[0]), 0.0, rng) is not None for arm, levels in tasks.arms().items()}
