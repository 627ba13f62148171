"""Parts of a suite practised equally often, however many arms each of them has."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.group import Outcome
from assay.core.protocols import CurriculumSpec
from assay.guide.cell_curricula import CellBook, CellRule, Memory, Standing
from assay.guide.curriculum import Frontier

__all__ = ["Balanced", "narrow_curriculum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced(CellRule):
    """Parts are drawn equally often, in each its members, and in each of these the cells as another curriculum weighs them.

    A family of 72 arms beside one of 5 would else be most of the practice. Parts or members of which no arm is practised are
    left out, and the others share what they would have had.

    Attributes:
        parts: each part with its members: arms, or families, which stand for all their arms ``family/...``.
        rule: weighs the cells of a member among each other.
        shares: weight of a part beside the others', more than 0; 1 for a part that is not named.

    Raises:
        ConfigError: no parts, one without members, a member that stands twice, a share that is not positive.
        UnknownNameError: a share of a part that there is not.

    >>> from assay.guide import Uniform
    >>> spec = Balanced(parts={"math": ("sums",), "logic": ("knots/a", "knots/b")}, rule=Uniform())
    >>> c = spec.build({"sums/x": (1, 2), "sums/y": (1,), "knots/a": (1,), "knots/b": (1,)}, seed=0)
    >>> dict(zip(c.cells, c.propensities.round(3).tolist()))
    {('knots/a', 1): 0.25, ('knots/b', 1): 0.25, ('sums/x', 1): 0.167, ('sums/x', 2): 0.167, ('sums/y', 1): 0.167}
    """

    parts: Mapping[str, tuple[str, ...]]
    rule: CellRule = field(default_factory=Frontier)
    shares: Mapping[str, float] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", FrozenMap({part: tuple(members) for part, members in self.parts.items()}))
        object.__setattr__(self, "shares", FrozenMap(self.shares))
        members = [member for of_part in self.parts.values() for member in of_part]
        if not members or not all(self.parts.values()):
            raise ConfigError(f"Balanced.parts={dict(self.parts)}; name at least one part, and the members of each")
        twice = sorted({member for member in members if members.count(member) > 1})
        if twice:
            raise ConfigError(f"Balanced.parts name {twice} twice; each arm or family belongs to one part")
        for part, share in self.shares.items():
            if part not in self.parts:
                raise UnknownNameError("part at Balanced.shares", part, self.parts)
            if not 0.0 < share < float("inf"):
                raise ConfigError(
                    f"Balanced.shares.{part}={share}; a share is a positive number. Leave out what is not practised"
                )

    @property
    def memory(self) -> Memory:
        """The rule's."""
        return self.rule.memory

    @property
    def signal_name(self) -> str:
        """The rule's."""
        return self.rule.signal_name

    def signal(self, outcome: Outcome) -> Sequence[float]:
        """The rule's."""
        return self.rule.signal(outcome)

    def part(self, arm: str) -> tuple[str, str]:
        """The part that an arm belongs to, and as which member: the arm itself before its family.

        Raises:
            ConfigError: it belongs to none.
        """
        homes = {member: part for part, members in self.parts.items() for member in members}
        member = arm if arm in homes else arm.partition("/")[0]
        if member not in homes:
            raise ConfigError(f"Balanced.parts name neither the arm {arm!r} nor its family; put it in one of {list(self.parts)}")
        return homes[member], member

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` weights whose sum in a part is its share, in equal parts over its members that are practised."""
        out = np.array(self.rule.weights(standing), np.float64)
        at: dict[tuple[str, str], list[int]] = {}
        homes = {arm: self.part(arm) for arm in dict.fromkeys(arm for arm, _ in standing.cells)}
        for i, (arm, _) in enumerate(standing.cells):
            at.setdefault(homes[arm], []).append(i)
        at = {home: cells for home, cells in at.items() if out[cells].sum() > 0.0}
        for (part, _), cells in at.items():
            beside = sum(other == part for other, _ in at)
            out[cells] *= self.shares.get(part, 1.0) / (beside * out[cells].sum())
        return out

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> CellBook:
        """The curriculum with its state.

        Raises:
            ConfigError: an arm that belongs to no part, or arms that the rule refuses.
        """
        for arm in arms:
            self.part(arm)
        self.rule.build(arms, seed)
        return CellBook(self, arms, seed)


def narrow_curriculum(spec: CurriculumSpec, arms: Container[str]) -> CurriculumSpec:
    """A curriculum that names no other arms than these; one that names none is itself.

    >>> narrow_curriculum(Frontier(start={"sort": 3, "reverse": 2}), ("sort",)).start
    FrozenMap({'sort': 3})
    """
    if isinstance(spec, Frontier):
        return replace(spec, start=FrozenMap({arm: level for arm, level in spec.start.items() if arm in arms}))
    if isinstance(spec, Balanced):
        return replace(spec, rule=cast(CellRule, narrow_curriculum(spec.rule, arms)))
    return spec
