"""What schedules promise, as a check that a user's own can be held to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from assay.core.canon import canonical
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import AssayError
from assay.core.fields import class_key
from assay.core.protocols import ScheduleSpec, State
from assay.core.seeds import generator
from assay.testing.contracts import ContractError, Report, require

__all__ = ["check_schedule"]

_FAR = 1_000_000
"""A step behind all that a run makes."""


def check_schedule(spec: ScheduleSpec, *, steps: int = 200) -> Report:
    """Holds a schedule to its laws, over steps with metrics high and low, and without any.

    It is frozen and comes back from a file as it was; it names its values, and what it gives lies between the least and the
    greatest of them at any step; ``at`` and ``advance`` are pure; its state, saved as JSON and loaded, goes on alike; a step
    without the metrics that it reads is no error, and these are metrics that two runs of one seed have alike.

    Args:
        spec: the schedule.
        steps: that are walked, three times with other metrics.

    Raises:
        ContractError: it breaks one of these.

    >>> from assay.guide import Ramp
    >>> print(*check_schedule(Ramp(points=((0, 0.8), (100, 1.2)))).passed, sep=", ")
    frozen, can be filed, within its values, pure, exact resume
    """
    subject = f"schedule {type(spec).__name__}"
    _check_settings(subject, spec)
    values = spec.values
    require(bool(values) and bool(np.isfinite(values).all()), subject, f"names the values {values}; name finite numbers")
    bad = [name for name in spec.reads if name.startswith(("time/", "verify/"))]
    require(not bad, subject, f"reads {bad}, which differ between two runs of one seed")
    seen: set[float] = set()
    for walk in range(3):
        state = spec.init()
        for step, metrics in enumerate(_metrics(spec, walk, steps)):
            seen.add(_value(subject, spec, step, state))
            _value(subject, spec, _FAR, state)
            state = _advance(subject, spec, state, metrics)
    return Report(
        subject=subject,
        passed=("frozen", "can be filed", "within its values", "pure", "exact resume"),
        numbers={"values seen": float(len(seen))},
    )


def _check_settings(subject: str, spec: ScheduleSpec) -> None:
    given: Any = spec
    parameters: Any = getattr(given, "__dataclass_params__", None)
    require(is_dataclass(given) and parameters.frozen, subject, "is no frozen dataclass, so that no run.toml can hold it")
    cls: Any = spec.__class__
    table = loads_toml(dumps_toml(to_dict(given)))
    back = from_dict(cls, {name: value for name, value in table.items() if name != class_key(cls)})
    require(back == given, subject, f"comes back from a file as {back}")


def _metrics(spec: ScheduleSpec, walk: int, steps: int) -> Iterator[dict[str, float]]:
    """Metrics of steps: of each a share in [0, 1], or a number of either sign, or nothing."""
    rng = generator("testing/schedule", 0, "walk", walk)
    for _ in range(steps):
        there = rng.random(len(spec.reads)) < 0.8
        drawn = rng.random(len(spec.reads)) if walk < 2 else 1e3 * rng.standard_normal(len(spec.reads))
        yield {name: float(x) for name, x, known in zip(spec.reads, drawn, there, strict=True) if known}


def _value(subject: str, spec: ScheduleSpec, step: int, state: State) -> float:
    """The value at a step, the same from a state that was saved."""
    low, high = min(spec.values), max(spec.values)
    saved, kept = _reload(subject, state), deepcopy(state)
    value = spec.at(step, state)
    require(bool(np.isfinite(value)), subject, f"gives {value} at step {step}")
    require(state == kept, subject, f"'at' changes the state, at step {step}")
    require(spec.at(step, state) == value, subject, f"'at' is not pure: asked twice at step {step}, it gives two values")
    slack = 1e-9 * max(abs(low), abs(high))
    require(
        low - slack <= value <= high + slack,
        subject,
        f"gives {value} at step {step}, and its values lie between {low:g} and {high:g}: name all in 'values'",
    )
    require(spec.at(step, saved) == value, subject, f"gives another value at step {step} from a saved state")
    return value


def _advance(subject: str, spec: ScheduleSpec, state: State, metrics: dict[str, float]) -> State:
    kept = deepcopy(state)
    try:
        new = spec.advance(state, metrics)
    except KeyError as error:
        raise ContractError(f"{subject}: a step may lack {error}, and 'advance' then fails; leave the state as it is") from None
    require(state == kept, subject, "'advance' changes the state that it is given; return another one")
    require(spec.advance(state, metrics) == new, subject, "'advance' is not pure: the same metrics lead to two states")
    require(spec.advance(_reload(subject, state), metrics) == new, subject, "'advance' goes elsewhere from a saved state")
    return new


def _reload(subject: str, state: State) -> State:
    """A state, written as JSON and read again."""
    try:
        return json.loads(canonical(state))
    except AssayError as error:
        raise ContractError(f"{subject}: its state is not plain: {error}") from error
