"""Reward components that are each normalised by themselves (GDPO)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.baseline import Center
from assay.objective.credit.normalise import Scale
from assay.objective.reducers import F, Partials

__all__ = ["ComponentNorm", "components_of"]

_PREFIX = "components/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentNorm(CreditTerm):
    """Each reward component minus its own baseline over its own spread, then summed: ``A_i = sum_c w_c (r_ic - mu_qc) / sd_qc``.

    A component that hardly varies is not drowned by one that varies much (GDPO). It reads the components themselves, not the
    reward that they add up to: put no shaping before it.

    Attributes:
        weights: pairs of component and weight; all components of the batch, with weight 1, when empty.
        centre: `Center` of each component.
        scale: `Scale` of each component.
    """

    weights: tuple[tuple[str, float], ...] = ()
    centre: Center = field(default_factory=Center)
    scale: Scale = field(default_factory=Scale)

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if "ema" in (self.centre.baseline, self.scale.over):
            raise ConfigError(
                "ComponentNorm: running means of components are not kept; use a baseline and a scale of group or batch"
            )

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What tells the peers apart."""
        return (*self.centre.rollout_columns, *self.scale.rollout_columns)

    @property
    def scope(self) -> Scope:
        """The baseline's."""
        return self.centre.scope

    @property
    def min_group(self) -> int:
        """What both parts ask."""
        return max(self.centre.min_group, self.scale.min_group)

    @property
    def reduces(self) -> bool:
        """When a part does."""
        return self.centre.reduces or self.scale.reduces

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it reads the components themselves."""
        check_behind(
            self,
            before,
            ("shape", "return"),
            "it reads the components themselves, so that this would be lost: leave one of the two out",
        )

    def local(self, credit: Credit) -> Partials:
        """Both parts' statistics of each component."""
        out: dict[str, object] = {}
        for i, (_, part) in enumerate(self._parts(credit)):
            out |= {f"centre.{i}.{key}": value for key, value in self.centre.local(part).items()}
            out |= {f"scale.{i}.{key}": value for key, value in self.scale.local(part).items()}
        return out

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The weighted sum."""
        total, told = np.zeros(len(credit.reward)), credit
        for i, (weight, part) in enumerate(self._parts(credit)):
            centred = self.centre.apply(part, _of(stats, f"centre.{i}."), self.centre.init())
            total = total + weight * self.scale.apply(centred, _of(stats, f"scale.{i}."), self.scale.init()).advantage
            told = replace(told, metrics={**told.metrics, **centred.metrics})
        return told.with_advantage(total)

    def _parts(self, credit: Credit) -> Iterator[tuple[float, Credit]]:
        """Weight and record of each component."""
        for _, weight, values in components_of(credit, self.weights, "ComponentNorm"):
            yield weight, replace(credit, reward=values, advantage=values, tokens=None, steps=None)


def components_of(credit: Credit, weights: Sequence[tuple[str, float]], owner: str) -> Iterator[tuple[str, float, F]]:
    """Name, weight and ``[R]`` values of each reward component; all of them with weight 1 where none is named.

    Raises:
        UnknownNameError: the batch has no such component.
        DataError: a rollout that counts lacks a component.
    """
    found = {n.removeprefix(_PREFIX): a for n, a in credit.batch.rollouts.items() if n.startswith(_PREFIX)}
    valid = np.asarray(credit.batch.rollouts.get("valid", np.ones(len(credit.reward))), np.bool_)
    for name, weight in weights or [(n, 1.0) for n in sorted(found)]:
        if name not in found:
            raise UnknownNameError("reward component", name, found)
        values = np.where(valid, np.asarray(found[name], np.float64), 0.0)
        if np.isnan(values).any():
            raise DataError(
                f"{int(np.isnan(values).sum())} graded rollouts lack the reward component {name!r}: verifiers that are mixed "
                f"in one run must give the same names, or {owner}.weights must name those that all give"
            )
        yield name, weight, values


def _of(stats: Partials, prefix: str) -> Partials:
    return {name.removeprefix(prefix): value for name, value in stats.items() if name.startswith(prefix)}
