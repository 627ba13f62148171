"""The schedules of a stage: which settings they may change, their checks before a run, and their values at a step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError, a_kind, nearest
from assay.core.protocols import ScheduleSpec, State
from assay.guide import ResampleOnCorrect
from assay.measure.metrics import GROUP_METRICS
from assay.rollout.chunks import Chunks
from assay.rollout.spec import PlayerSpec
from assay.train.levels import arms_of
from assay.train.until import check_evaluation_metric

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run
    from assay.train.stage import Stage

__all__ = ["SCHEDULED", "StageSchedules", "check_schedules", "describe_schedules", "settle_schedules"]

SCHEDULED = ("temperature", "max_new_tokens", "max_turns", "group_size", "annealing_decay")
"""The settings that a schedule may change."""

FRACTIONAL = ("temperature", "annealing_decay")
"""Those that are no whole numbers, and have no upper bound."""


def settle_schedules(stage: Reinforce) -> None:
    """Freezes the mapping of a stage's schedules.

    Raises:
        UnknownNameError: it names a setting that has no schedule.
        ConfigError: something in it is no schedule.
    """
    given: Any = stage.schedules
    if not isinstance(given, Mapping):
        raise ConfigError(f"Reinforce.schedules is {a_kind(given)}; give a mapping, as in {{'temperature': Ramp(points=...)}}")
    object.__setattr__(stage, "schedules", FrozenMap(stage.schedules))
    for key, spec in stage.schedules.items():
        if key not in SCHEDULED:
            raise UnknownNameError("setting in Reinforce.schedules", key, SCHEDULED)
        if not isinstance(spec, ScheduleSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"Reinforce.schedules[{key!r}] is {a_kind(spec)}, no schedule; give a Piecewise, Ramp, WhenFlat or WhenReached"
            )


# ---- before a run -----------------------------------------------------------------------------------------------------


def check_schedules(run: Run, stage: Reinforce) -> None:
    """Checks the schedules of a stage. Memory and contexts are planned for the settings of the run and of the stage, so no
    schedule may exceed them.

    Raises:
        ConfigError: a value out of range, a setting that would not be read, or a metric that no step could have; with a fix.
        UnknownNameError: a metric that no evaluation gives.
    """
    for key, spec in stage.schedules.items():
        place = f"Reinforce.schedules[{key!r}]"
        _check_range(run, stage, key, spec, place)
        _check_metrics(run, spec, place)
    if "max_turns" in stage.schedules:
        _check_turns(run, stage)


def _check_range(run: Run, stage: Reinforce, key: str, spec: ScheduleSpec, place: str) -> None:
    """Raises ConfigError for a value that the setting cannot have."""
    values = spec.values
    if not values or not all(map(math.isfinite, values)):
        raise ConfigError(f"{place}: its values are {values}; a schedule goes through finite numbers, at least one")
    if key == "annealing_decay" and run.sampling.annealing is None:
        raise ConfigError(f"{place}, and Run.sampling.annealing=None: give it an Annealing, whose decay this is")
    if key in FRACTIONAL:
        if key == "annealing_decay" and min(values) <= 0:
            raise ConfigError(f"{place} reaches {min(values):g}; a decay is a number of tokens above 0")
        if min(values) <= 0:
            raise ConfigError(
                f"{place} reaches {min(values):g}: at temperature 0 every rollout of a context is the same, and no group has a "
                "signal; use temperatures above 0"
            )
        return
    if broken := [value for value in values if value != int(value)]:
        raise ConfigError(f"{place} goes through {broken[0]:g}; {key} is a whole number, so give whole numbers")
    least, why = _lower_bound(stage, key)
    if min(values) < least:
        raise ConfigError(f"{place} goes down to {min(values):g}, and {why} {least}: give values of at least {least}")
    most, owner = _upper_bound(run, stage, key)
    if max(values) > most:
        raise ConfigError(
            f"{place} goes up to {max(values):g}, above {owner}={most}, for which memory and contexts are planned: raise {owner} "
            f"to {max(values):g}, or lower the schedule"
        )


def _lower_bound(stage: Reinforce, key: str) -> tuple[int, str]:
    """The least value of a setting, and the reason."""
    if key == "group_size":
        found = [(1, "the least group has"), (stage.objective.min_group, "the objective's baseline needs")]
        if isinstance(stage.filter, ResampleOnCorrect):
            found.append((stage.filter.keep, "ResampleOnCorrect keeps"))
        return max(found, key=lambda pair: pair[0])
    context = getattr(stage.sampler.player, "context", None)
    if key == "max_new_tokens" and isinstance(context, Chunks) and context.most > 1:
        return context.head + context.tail + 1, "a chunk with what Chunks carries needs"
    return 1, "the least is"


def _upper_bound(run: Run, stage: Reinforce, key: str) -> tuple[int, str]:
    """The greatest value of a setting, and the field that says it."""
    return {
        "max_new_tokens": (run.sampling.max_new_tokens, "Run.sampling.max_new_tokens"),
        "max_turns": (run.max_turns, "Run.max_turns"),
        "group_size": (stage.group_size, "Reinforce.group_size"),
    }[key]


def _check_metrics(run: Run, spec: ScheduleSpec, place: str) -> None:
    """Raises ConfigError for a metric that no two runs have alike, or that comes from evaluations that there are not."""
    for metric in spec.reads:
        if metric.startswith(("time/", "verify/")):
            raise ConfigError(
                f"{place} reads {metric!r}: seconds and counts of the pool differ between two runs of one seed, so that a run "
                "could not be resumed exactly; use another metric"
            )
        if metric.startswith("eval/"):
            check_evaluation_metric(metric)
            if not run.evaluation.every:
                raise ConfigError(f"{place} reads {metric!r}, and Evaluation.every=0: give it a number of steps")


def _check_turns(run: Run, stage: Reinforce) -> None:
    """Raises ConfigError for a schedule of turns that nothing would read."""
    if stage.sampler.max_turns is not None:
        raise ConfigError(
            f"Reinforce.schedules['max_turns'], and the stage's sampler has max_turns={stage.sampler.max_turns} of its own: "
            f"leave the sampler's out and give Run.max_turns={stage.sampler.max_turns}, the most that the schedule may reach"
        )
    player = stage.sampler.player
    if isinstance(player, PlayerSpec) and player.tools:
        return
    tasks = [run.tasks.task(arm, levels[0], "train", 0) for arm, levels in arms_of(run.tasks, stage.levels).items()]
    if tasks and all(run.tasks.environment(task.public_view()) is None for task in tasks):
        raise ConfigError(
            f"Reinforce.schedules['max_turns']: tasks of {run.tasks.name!r} are answered in one turn, so that it would do "
            "nothing; leave it out, or give the stage's sampler tools"
        )


def describe_schedules(stage: Stage) -> dict[str, str]:
    """The schedules of a stage in words, by setting."""
    specs: Mapping[str, ScheduleSpec] = getattr(stage, "schedules", {})
    return {key: f"{type(spec).__name__}: {spec.describe()}" for key, spec in specs.items()}


def _is_misspelt(name: str, kind: str) -> bool:
    """Whether a name is nearly one that every family has; names of arms and components, which some steps lack, pass."""
    known = [n.removeprefix(f"{kind}/") for n in GROUP_METRICS if n.startswith(f"{kind}/")]
    return name.count("/") == 1 and nearest(name.removeprefix(f"{kind}/"), known) is not None


# ---- in a run ---------------------------------------------------------------------------------------------------------


@dataclass
class StageSchedules:
    """The schedules of a stage with their states.

    Attributes:
        specs: setting to its schedule.
        states: setting to the schedule's state.
    """

    specs: Mapping[str, ScheduleSpec]
    states: dict[str, State] = field(init=False)

    def __post_init__(self) -> None:
        self.states = {key: spec.init() for key, spec in self.specs.items()}

    def values(self, step: int) -> dict[str, float]:
        """Setting to its value at a step of the stage, counted from 0; whole where the setting is.

        Raises:
            ConfigError: a schedule gives a value that lies beyond those that it named; the run was planned for these.
        """
        return {key: self._value(key, spec, step) for key, spec in self.specs.items()}

    def _value(self, key: str, spec: ScheduleSpec, step: int) -> float:
        value = spec.at(step, self.states[key])
        low, high = min(spec.values), max(spec.values)
        slack = 1e-9 * max(abs(low), abs(high))  # rounding between two points
        if not low - slack <= value <= high + slack:
            raise ConfigError(
                f"Reinforce.schedules[{key!r}]: {type(spec).__name__} gives {value} at step {step} of the stage, and its values "
                f"lie between {low:g} and {high:g}: name all in `values`, or keep `at` within them"
            )
        value = min(max(value, low), high)
        return value if key in FRACTIONAL else round(value)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Advances the states by the metrics of a finished step, and of the evaluation after it if there was one.

        Raises:
            UnknownNameError: a step that learned has no metric of the kind that a schedule waits for, or the name is nearly one
                that every family has, so that no step ever will.
        """
        for key, spec in self.specs.items():
            read = {name: float(metrics[name]) for name in spec.reads if name in metrics}
            for name in spec.reads:
                self._check_known(key, name, metrics)
            self.states[key] = spec.advance(self.states[key], read)

    def _check_known(self, key: str, name: str, metrics: Mapping[str, float]) -> None:
        """A step may lack a metric that had nothing to measure, but not all of its kind, the word before the first slash."""
        kinds = {known.partition("/")[0] for known in metrics}
        kind = name.partition("/")[0]
        if name in metrics or name in GROUP_METRICS or kind == "eval" or "loss/total" not in metrics:
            return
        if kind not in kinds or _is_misspelt(name, kind):
            known = [
                n for n in {**metrics, **dict.fromkeys(GROUP_METRICS)} if not n.startswith(("time/", "verify/", "schedule/"))
            ]
            raise UnknownNameError(f"metric, for which Reinforce.schedules[{key!r}] waits:", name, known)

    def state_dict(self) -> dict[str, State]:
        """JSON-able states, by setting."""
        return {key: dict(state) for key, state in self.states.items()}

    def load_state_dict(self, state: Mapping[str, State]) -> None:
        """Restores `state_dict`; a schedule that it does not have begins anew."""
        self.states = {key: dict(state[key]) if key in state else spec.init() for key, spec in self.specs.items()}
