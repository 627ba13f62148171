"""Levels of a task family: those that a stage or an evaluation names, checked and applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import TaskSource

__all__ = ["Levels", "arms_of", "check_levels", "settle_levels", "taken_and_known"]

Levels = tuple[int, ...] | Mapping[str, tuple[int, ...]]
"""Which levels of a task family: those of every arm, all when empty; or arm to its levels, and no other arm."""


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

    >>> from assay.tasks import TaskMixture
    >>> from assay_tasks import Reverse, SortDigits
    >>> both = TaskMixture(name="both", sources=(SortDigits(levels=(3, 4)), Reverse(levels=(3,))))
    >>> arms_of(both, (4,)), arms_of(both, {"reverse": (3,)})
    ({'sort': (4,)}, {'reverse': (3,)})
    """
    if isinstance(levels, Mapping):
        kept = {arm: tuple(x for x in of_arm if x in levels.get(arm, ())) for arm, of_arm in tasks.arms().items()}
    else:
        kept = {arm: tuple(x for x in of_arm if not levels or x in levels) for arm, of_arm in tasks.arms().items()}
    return {arm: of_arm for arm, of_arm in kept.items() if of_arm}


def taken_and_known(tasks: TaskSource, levels: Levels, per_level: int, split: str) -> tuple[int, int | None]:
    """How many tasks an evaluation takes, and how many there are; None for a source without end.

    Args:
        tasks: the source.
        levels: those evaluated.
        per_level: most tasks of each arm and level; 0 for all that there are.
        split: which tasks.
    """
    size: Callable[[str, int, str], int] | None = getattr(tasks, "size", None)
    cells = [(arm, level) for arm, of_arm in arms_of(tasks, levels).items() for level in of_arm]
    if size is None:
        return per_level * len(cells), None
    counts = [size(arm, level, split) for arm, level in cells]
    return sum(min(n, per_level) if per_level else n for n in counts), sum(counts)


def settle_levels(part: Any) -> None:
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
