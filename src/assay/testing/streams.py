"""What an arm's stream of tasks is, in one line: pinned in a file, a change of it is seen."""

from __future__ import annotations

from typing import Any, cast

from assay.core.canon import digest, plain
from assay.core.errors import DataError
from assay.core.protocols import TaskSource
from assay.core.task import Task

__all__ = ["first_task", "stream_digest", "example_levels"]

_FIGURES = 9
"""Significant figures of a float that count: the last ones may differ between the mathematics libraries of two machines."""


def stream_digest(source: TaskSource, arm: str, size: int = 8) -> str:
    """Digest of an arm's first tasks at its lowest, middle and highest level: words, facts, world, answer, all.

    The tasks are of the training split, but at a level that has none there. The digest is the same on every machine and under
    every PYTHONHASHSEED; floats count to 9 significant figures.

    Args:
        source: the family.
        arm: one of its arms.
        size: bytes of the digest; it has twice as many letters.

    >>> from assay_tasks import SortDigits
    >>> stream_digest(SortDigits(), "sort") == stream_digest(SortDigits(), "sort")
    True
    >>> stream_digest(SortDigits(), "sort") == stream_digest(SortDigits(seed=1), "sort")
    False
    """
    tasks = [first_task(source, arm, level) for level in example_levels(source.arms()[arm])]
    return digest(_round_value(plain(tasks)), size)


def example_levels(levels: tuple[int, ...]) -> tuple[int, ...]:
    """The lowest, the middle and the highest of some levels, each once.

    >>> example_levels((1, 2, 3, 4)), example_levels((3, 5)), example_levels((7,))
    ((1, 3, 4), (3, 5), (7,))
    """
    return tuple(dict.fromkeys((levels[0], levels[len(levels) // 2], levels[-1])))


def first_task(source: TaskSource, arm: str, level: int) -> Task:
    """The first training task; the first of the test split at a level whose few questions are all of that one."""
    try:
        return source.task(arm, level, "train", 0)
    except DataError:
        return source.task(arm, level, "test", 0)


def _round_value(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_FIGURES}g}")
    if isinstance(value, dict):
        return {k: _round_value(v) for k, v in cast("dict[str, Any]", value).items()}
    return [_round_value(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value
