"""The rules of Nim: what a move leaves, and the move that wins."""

from __future__ import annotations

import re

import numpy as np

from assay.core.errors import DataError
from assay.core.task import Task, TaskView

__all__ = ["HEAPS", "Stones", "answer_move", "apply_move", "best", "heaps_of", "show_heaps"]

HEAPS = "abcde"
"""Names of the heaps, in order."""

Stones = tuple[int, ...]
"""How many stones each heap has."""


def best(heaps: Stones) -> str:
    """A move that wins, or takes one stone of the largest heap where none does."""
    total = int(np.bitwise_xor.reduce(heaps))
    for i, stones in enumerate(heaps):
        if total and stones ^ total < stones:
            return f"{HEAPS[i]}{stones - (stones ^ total)}"
    return f"{HEAPS[heaps.index(max(heaps))]}1"


def apply_move(heaps: Stones, move: str) -> Stones | None:
    """The heaps behind a move; None where it is none."""
    if not re.fullmatch("[a-e][1-7]", move) or (i := HEAPS.index(move[0])) >= len(heaps) or int(move[1]) > heaps[i]:
        return None
    return (*heaps[:i], heaps[i] - int(move[1]), *heaps[i + 1 :])


def answer_move(heaps: Stones, move: str, split: str) -> Stones | None:
    """The heaps before the next turn, behind the opponent's move too where it is no role; None where the move is none."""
    left = apply_move(heaps, move)
    return apply_move(left, best(left)) if left and any(left) and split != "train" else left


def show_heaps(heaps: Stones, mark: str) -> str:
    """The heaps behind a mark, as a prompt and an answer of the table show them."""
    return f"{mark}{''.join(map(str, heaps))}>"


def heaps_of(task: Task | TaskView) -> Stones:
    """The heaps of a task's prompt.

    Raises:
        DataError: it has none; names the task.
    """
    prompt = task.public["prompt"]
    if not re.fullmatch("H[0-7]{1,5}>", prompt):
        raise DataError(f"task {task.id!r}: {prompt!r} is no table of Heaps")
    return tuple(map(int, prompt[1:-1]))
