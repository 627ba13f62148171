"""One verdict in this process, with every failure of the verifier as a typed fault."""

from __future__ import annotations

import traceback

from assay.core.canon import FrozenMap
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task

__all__ = ["broken", "failed_attempt", "judge"]


def judge(verifier: Verifier, task: Task, rollout: Rollout) -> Score:
    """The verdict; what the verifier raises becomes a ``verifier`` fault whose ``info`` holds the traceback, never a 0.

    An attempt that ended in an infrastructure error is an ``infra`` fault and is not shown to the verifier.
    """
    lost = failed_attempt(rollout)
    if lost is not None:
        return lost
    try:
        score = verifier(task, rollout)
    except Exception as error:  # a verifier is foreign code: whatever it raises is its fault
        return broken(error)
    if not isinstance(score, Score):  # pyright: ignore[reportUnnecessaryIsInstance]
        return broken(TypeError(f"the verifier returned a {type(score).__name__}: {score!r}; it must return a Score"))
    return score


def failed_attempt(rollout: Rollout) -> Score | None:
    """An ``infra`` fault for a rollout whose generation failed, else None."""
    if rollout.stop is not Stop.ERROR:
        return None
    return Score(components={}, fault=Fault.INFRA, info=FrozenMap({"error": rollout.error or "generation failed"}))


def broken(error: BaseException) -> Score:
    """A ``verifier`` fault with the error's message and traceback."""
    try:
        text, message = "".join(traceback.format_exception(error)), f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ raises
        text = message = type(error).__name__
    return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": message, "traceback": text}))
