"""One verdict in this process, with every failure of the verifier as a typed fault."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from pathlib import Path

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError, RewardLengthError, a_kind
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.abilities import abilities_of, measured
from assay.verify.workers.fork import in_worker

__all__ = ["WHOLE_CALL", "broken_score", "check_score", "failed_rollout", "judge"]

WHOLE_CALL = "whole call"
"""``info["verdict"]`` of a fault of a call that judged several answers: a call for each of them would hide it."""

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
"""Where assay's own files are."""

_LONG = 8000
"""Characters of an error's message, and of its traceback, that are kept."""


def judge(verifier: Verifier, task: Task, rollout: Rollout) -> Score:
    """The verdict; what the verifier raises becomes a ``verifier`` fault whose ``info`` holds the traceback, never a 0.

    So does a verdict of several components of which none is ``correct`` or ``reward``: nothing would say how good the answer
    is. A rollout that ended in an error is a fault too (`failed_rollout`), and is not shown to the verifier.
    """
    if rollout.stop is Stop.ERROR:  # only then ask for the floor: one made of many parts takes longer to say it than to judge
        lost = failed_rollout(rollout, abilities_of(verifier).floors)
        assert lost is not None
        return lost
    try:
        score = verifier(task, rollout)
    except Exception as error:  # a verifier is foreign code: whatever it raises is its fault
        if isinstance(error, MemoryError) and in_worker():  # which ends: what it has kept would fail the next answers too
            raise
        return broken_score(error)
    if not isinstance(score, Score):  # pyright: ignore[reportUnnecessaryIsInstance]
        return broken_score(TypeError(f"the verifier returned {a_kind(score)}: {score!r}; it must return a Score"))
    return check_score(score)


LARGEST = 1e30
"""Largest size of a component: squares of a group's values must stay within 64-bit numbers."""


def check_score(score: Score) -> Score:
    """The score itself, or a ``verifier`` fault in the place of a verdict without a main component (`Score.primary`), or with a
    number beyond `LARGEST`.
    """
    if not score.valid:
        return score
    if max(map(abs, score.components.values()), default=0.0) > LARGEST:
        huge = {name: value for name, value in score.components.items() if abs(value) > LARGEST}
        return broken_score(
            RewardError(
                f"the verdict has {huge}: beyond {LARGEST:g} in size a group's mean and spread are lost to rounding, and nothing "
                "is learned; scale the reward to about 1"
            )
        )
    if measured(score.components):
        return score
    return broken_score(
        RewardError(
            f"the verdict has the components {list(score.components)}, and none of them says how good the answer is; "
            "name the task's own metric 'correct' or 'reward'"
        )
    )


def failed_rollout(rollout: Rollout, floor: Mapping[str, float]) -> Score | None:
    """The score of a rollout whose generation failed, else None.

    Where that is the policy's doing (what it said exceeded a limit of its environment), the score is ``floor``, component by
    component; else it is an ``infra`` fault without components.
    """
    if rollout.stop is not Stop.ERROR:
        return None
    own = rollout.fault is Fault.POLICY
    return Score(
        components=dict(floor) if own else {},
        fault=Fault.POLICY if own else Fault.INFRA,
        info=FrozenMap({"error": rollout.error or "generation failed"}),
    )


def broken_score(error: BaseException) -> Score:
    """A ``verifier`` fault with the error's message and traceback, the middle of which is left out where they are long."""
    try:
        text, message = "".join(_own_lines(error).format()), f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ raises
        text = message = type(error).__name__
    kind = {"verdict": WHOLE_CALL} if isinstance(error, RewardLengthError) else {}
    return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": _cut(message), "traceback": _cut(text), **kind}))


def _own_lines(error: BaseException) -> traceback.TracebackException:
    """The traceback of an error, from the first line that is not assay's on: how a function was called tells its author nothing.

    A broken contract is told without lines, since none of the function's was running then.
    """
    told = traceback.TracebackException.from_exception(error)
    own = next((n for n, frame in enumerate(told.stack) if not frame.filename.startswith(_PACKAGE)), None)
    if own is not None:
        told.stack = traceback.StackSummary.from_list(told.stack[own:])
    elif isinstance(error, RewardError):
        told.stack = traceback.StackSummary.from_list([])
    return told


def _cut(text: str) -> str:
    """A text of some screens at most."""
    left_out = len(text) - _LONG
    return text if left_out <= 0 else f"{text[: _LONG // 2]}\n... {left_out} characters left out ...\n{text[-_LONG // 2 :]}"
