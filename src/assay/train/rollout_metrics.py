"""What a stage's sampler and context manager report of the rollouts of a step."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import isfinite
from typing import Any

from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.protocols import SamplerSpec
from assay.core.rollout_metrics import ReportsRollouts

__all__ = ["rollout_metrics"]


def rollout_metrics(sampler: SamplerSpec, groups: Sequence[Group], known: Container[str]) -> dict[str, float]:
    """The numbers of those parts that report any (`assay.core.ReportsRollouts`); what is not finite is left out.

    Args:
        sampler: of the stage.
        groups: graded, of a step.
        known: names that the step has already.

    Raises:
        ConfigError: a name that the step has already, or a value that is no number; names the part.
    """
    out: dict[str, float] = {}
    rollouts = [r for group in groups for r in group.rollouts]
    for part in (sampler, getattr(sampler.player, "context", None)):
        if not isinstance(part, ReportsRollouts):
            continue
        for name, value in part.rollout_metrics(rollouts).items():
            place = f"{type(part).__name__}.rollout_metrics gives {name!r}"
            if name in known or name in out:
                raise ConfigError(f"{place}, which the step has already; choose a name of your own, such as 'context/{name}'")
            if number := _number(value, place):
                out[name] = number[0]
    return out


def _number(value: Any, place: str) -> tuple[float, ...]:
    """The value, or nothing where it is not finite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{place} as {value!r}; give a number") from None
    return (number,) if isfinite(number) else ()
