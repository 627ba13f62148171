"""Whether levels grow harder, as the solver measures it."""

from __future__ import annotations

from assay.core.protocols import TaskSource


def efforts(source: TaskSource, arm: str, n: int = 30) -> list[float]:
    """The mean effort of the solver at each level."""
    return [sum(source.task(arm, level, "train", i).private["effort"] for i in range(n)) / n for level in source.arms()[arm]]


def grows(source: TaskSource, arm: str, factor: float = 1.5, n: int = 30) -> None:
    """Refuse levels of which one is easier than the one before, or the last not clearly harder than the first."""
    found = efforts(source, arm, n)
    assert found == sorted(found) and found[-1] >= factor * found[0], (arm, found)
