"""What a verifier may have besides ``__call__``, as one record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, a_kind
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.core.util.renamed import refuse_old_keywords

__all__ = ["Abilities", "abilities_of", "ability_of", "measured", "scale_of"]


def _no_work() -> None:
    pass


def _nothing_started() -> Mapping[str, Any] | None:
    return None


def _no_other(answers: int) -> Verifier | None:
    return None


@refuse_old_keywords({"beside": "for_workers"})
@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a verifier declares of itself; the defaults are those of one that declares nothing.

    A verifier declares them by an attribute or property ``abilities``, or each by an attribute or method of its own of that name
    (``trusted: ClassVar[bool] = True``). `abilities_of` reads both.

    Attributes:
        names: components that it gives; a main one among them is ``correct``, ``reward``, or the only one.
        floor: lowest value of each component, by name, or one number for all. A rollout that hangs its judge, or that broke off
            because of what the policy said, scores this.
        trusted: it neither hangs nor crashes on any text, so it may run in the training process.
        by_text: its verdict on a task depends on nothing but how a rollout ended and its last text.
        weighted_sum: its component ``reward``, a weighted sum of the others or partial credit, is what a stage learns from, and
            not ``correct``, which evaluations count.
        deadline: most seconds that one verdict may take; None for the pool's own.
        at_once: the verdict that needs no worker, or None, where only some rollouts need one.
        key: names a question: rollouts with the same key have the same verdict, and one of them is judged.
        prepare: imports in the fork server what every worker needs.
        ready: raises at once what would fail on every rollout, such as a missing package.
        isolation: what contains the programs that it starts, as plain values; None where it starts none.
        for_workers: the same verifier for a worker beside which others judge, so many in all; None where one worker is enough.

    Raises:
        ConfigError: a floor that is no finite number, or a deadline that is not positive.

    >>> Abilities(names=("correct", "style"), floor={"style": -1.0}).floor_of("style")
    -1.0
    """

    names: tuple[str, ...] = ()
    floor: float | Mapping[str, float] = 0.0
    trusted: bool = False
    by_text: bool = False
    weighted_sum: bool = False
    deadline: float | None = None
    at_once: Callable[[Task, Rollout], Score | None] | None = None
    key: Callable[[Task, Rollout], Hashable] | None = None
    prepare: Callable[[], None] = field(default=_no_work)
    ready: Callable[[], None] = field(default=_no_work)
    isolation: Callable[[], Mapping[str, Any] | None] = field(default=_nothing_started)
    for_workers: Callable[[int], Verifier | None] = field(default=_no_other)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        floor: Any = self.floor
        values = list(cast("Mapping[str, Any]", floor).values()) if isinstance(floor, Mapping) else [floor]
        if not all(isinstance(v, int | float) and abs(v) < float("inf") for v in values):
            raise ConfigError(f"Abilities.floor={floor!r}; give the lowest value as a finite number, or one per component")
        if isinstance(floor, Mapping):
            object.__setattr__(self, "floor", FrozenMap(cast("Mapping[str, Any]", floor)))
        if self.deadline is not None and not self.deadline >= 0:
            raise ConfigError(f"Abilities.deadline={self.deadline!r}; use seconds, or None for the pool's own")

    @property
    def measured(self) -> bool:
        """Whether one of the components is the main one."""
        return measured(self.names)

    @property
    def components(self) -> tuple[str, ...]:
        """The components that it gives: ``names``, or ``reward`` where they say nothing of use."""
        return self.names if self.measured else ("reward",)

    @property
    def floors(self) -> dict[str, float]:
        """The floor of each component."""
        return {name: self.floor_of(name) for name in self.components}

    @property
    def named_floors(self) -> dict[str, float]:
        """The floor of each of ``names``; none where it names none."""
        return {name: self.floor_of(name) for name in self.names}

    def floor_of(self, name: str) -> float:
        """The floor of a component: where the floors are named and this one is not, the lowest of them."""
        floor = self.floor
        if isinstance(floor, Mapping):
            return float(floor.get(name, min(floor.values(), default=0.0)))
        return float(floor)


def abilities_of(verifier: Verifier) -> Abilities:
    """What a verifier declares.

    Raises:
        ConfigError: an ability is not of the form that `Abilities` says; names the class and the ability.

    >>> from assay.verify import ExactMatch
    >>> abilities_of(ExactMatch()).floors, abilities_of(ExactMatch()).trusted
    ({'correct': 0.0}, True)
    """
    declared: Any = getattr(verifier, "abilities", None)
    if isinstance(declared, Abilities):
        return declared
    kind = type(verifier).__name__
    if declared is not None:
        raise ConfigError(f"{kind}.abilities is {a_kind(declared)}; give an Abilities(...)")
    if hasattr(verifier, "beside"):
        raise ConfigError(f"{kind}.beside is called for_workers now; rename it")
    found: dict[str, Any] = {}
    for ability in fields(Abilities):
        value = getattr(verifier, ability.name, None)
        if value is None:
            continue
        if ability.name in _CALLED and not callable(value):
            raise ConfigError(
                f"{kind}.{ability.name} is {a_kind(value)}, and a scoring pool calls what has this name; rename it, or give the "
                "class an attribute 'abilities' with all that it declares"
            )
        found[ability.name] = value
    return Abilities(**found)


def ability_of(verifier: Verifier, name: str) -> Any:
    """One ability as it is declared, unchecked, which costs less than all: what is made of others asks its parts again and again.

    >>> from assay.verify import ExactMatch
    >>> ability_of(ExactMatch(), "trusted"), ability_of(ExactMatch(), "deadline")
    (True, None)
    """
    declared: Any = getattr(verifier, "abilities", None)
    return getattr(declared if isinstance(declared, Abilities) else verifier, name, getattr(_NOTHING, name))


def scale_of(verifier: Verifier) -> Abilities:
    """Its components and floors alone."""
    return Abilities(names=ability_of(verifier, "names"), floor=ability_of(verifier, "floor"))


def measured(names: Collection[str]) -> bool:
    """Whether one of these components is the main one: ``correct``, ``reward``, or the only one."""
    return len(names) == 1 or "correct" in names or "reward" in names


_NOTHING = Abilities()
_CALLED = frozenset({"at_once", "key", "prepare", "ready", "isolation", "for_workers"})
