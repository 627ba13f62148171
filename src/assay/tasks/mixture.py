"""Several families as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.import_path import filed_as
from assay.core.optional_protocols import row_places
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.task import Message, Task, TaskView
from assay.core.util.renamed import RenamedMembers
from assay.guide.balanced_arms import Balanced
from assay.guide.cell_curricula import CellRule
from assay.guide.curriculum import Frontier
from assay.verify.routing import Routed

__all__ = ["TaskMixture"]


@filed_as("assay.tasks.mixture:Mixture")
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMixture(RenamedMembers):
    """The arms of several families side by side; a curriculum chooses among all of them.

    Each task is the family's own, and goes to the family's own verifier and environment.

    Attributes:
        name: of the mixture.
        sources: families whose arms have different names.
        parts: each domain with the names of its families, where they shall count alike however many arms they have: `balanced`
            draws from the domains equally often, and `in_turn` takes one of each after the other. None for no such domains.

    Raises:
        ConfigError: no families, an arm that two of them have, families that hold out different shares, or parts in which not
            every family stands once.

    >>> from assay_tasks import Reverse, SortDigits
    >>> both = TaskMixture(name="both", sources=(SortDigits(levels=(3,)), Reverse(levels=(3, 4))))
    >>> dict(both.arms()), both.task("reverse", 3, "train", 0).public["prompt"]
    ({'sort': (3,), 'reverse': (3, 4)}, 'Rabh>')
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"balanced": "balance_parts"}

    name: str
    sources: tuple[TaskSource, ...]
    parts: Mapping[str, tuple[str, ...]] | None = None
    _home: Mapping[str, TaskSource] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        home: dict[str, TaskSource] = {}
        for source in self.sources:
            for arm in source.arms():
                if arm in home:
                    raise ConfigError(
                        f"mixture {self.name!r}: the families {home[arm].name!r} and {source.name!r} both have the arm {arm!r}; "
                        "leave one of them out"
                    )
                home[arm] = source
        if not home:
            raise ConfigError(f"mixture {self.name!r} needs at least one family, got none")
        shares = {source.name: _share(source) for source in self.sources}
        if len(set(shares.values())) > 1:
            raise ConfigError(f"mixture {self.name!r}: its families hold out different shares: {shares}; set one test_share")
        object.__setattr__(self, "_home", home)
        if self.parts is not None:
            object.__setattr__(self, "parts", FrozenMap({part: tuple(names) for part, names in self.parts.items()}))
            self._check_parts()

    def _check_parts(self) -> None:
        named = sorted(name for names in (self.parts or {}).values() for name in names)
        if named != sorted(source.name for source in self.sources) or not all((self.parts or {}).values()):
            raise ConfigError(
                f"mixture {self.name!r}: its parts name {named}, its families are {sorted(s.name for s in self.sources)}; put "
                "each family in one part"
            )

    @property
    def test_share(self) -> float:
        """Share of contents that belong to the test split."""
        return _share(self.sources[0])

    @property
    def alphabet(self) -> str:
        """Every character that prompts and answers use, sorted.

        Raises:
            ConfigError: a family does not say which it uses.
        """
        known: dict[str, str] = {s.name: getattr(s, "alphabet", "") for s in self.sources}
        silent = [name for name, alphabet in known.items() if not alphabet]
        if silent:
            raise ConfigError(f"mixture {self.name!r}: the families {silent} name no alphabet; give the model one")
        return "".join(sorted({c for alphabet in known.values() for c in alphabet}))

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The arms of all families, each with its levels."""
        return {arm: source.arms()[arm] for arm, source in self._home.items()}

    def members(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Each part with its families, and these with their arms; without parts, one that is called like the mixture."""
        by_name = {source.name: tuple(source.arms()) for source in self.sources}
        parts = {self.name: tuple(by_name)} if self.parts is None else self.parts
        return {part: {name: by_name[name] for name in names} for part, names in parts.items()}

    def balance_parts(self, rule: CellRule | None = None, shares: Mapping[str, float] | None = None) -> Balanced:
        """A curriculum that draws from all parts equally often, and within one from all its families.

        Args:
            rule: weighs the levels and arms of a family among each other; `Frontier` where it is None.
            shares: weight of a part beside the others', 1 where it is not named.

        Raises:
            UnknownNameError: a share of a part that there is not.
        """
        members = {
            part: tuple(member for name, arms in families.items() for member in _arms_named(name, arms))
            for part, families in self.members().items()
        }
        return Balanced(parts=members, rule=Frontier() if rule is None else rule, shares={} if shares is None else shares)

    def source(self, arm: str) -> TaskSource:
        """The family that an arm belongs to.

        Raises:
            UnknownNameError: none has it.
        """
        if arm not in self._home:
            raise UnknownNameError(f"arm of {self.name}", arm, self._home)
        return self._home[arm]

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The family's task.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
        """
        return self.source(arm).task(arm, level, split, index)

    def row_place(self, task: Task) -> str:
        """Where a task stands in a user's rows (`assay.tasks.Rows.row_place`); "" for other families."""
        return row_places(self.source(task.arm))(task)

    def verifier(self) -> Verifier:
        """Each family's own."""
        routes: dict[str, Verifier] = {}
        for source in self.sources:
            own = source.verifier()
            apart = own.routes if isinstance(own, Routed) and own.by == "arm" and own.default is None else None
            routes |= {arm: own if apart is None else apart[arm] for arm in source.arms()}
        return Routed(FrozenMap(routes))

    def environment(self, world: TaskView) -> Environment | None:
        """A fresh world of the family."""
        return self.source(world.arm).environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The family's oracle."""
        return self.source(task.arm).trace(task, noise, rng)


def _arms_named(name: str, arms: tuple[str, ...]) -> tuple[str, ...]:
    """A family as `Balanced` names it: by its name where its arms begin with that, else arm by arm."""
    return (name,) if all(arm == name or arm.startswith(f"{name}/") for arm in arms) else arms


def _share(source: TaskSource) -> float:
    return float(getattr(source, "test_share", 0.1))
