"""When a batch of verdicts is refused: training on it would be blind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from assay.core.errors import EngineError, RewardError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.reward_function import row_of
from assay.verify.user_reward import abstained
from assay.verify.workers.connections import BLOCKED, UNREACHED
from assay.verify.workers.dispatch import JudgingEnd, JudgingOutcome

__all__ = ["failure_text", "refuse_blindness", "refuse_hanging"]

RAISE_DEADLINE = "on_rows(..., reward_deadline=30), Run.reward_deadline, or --reward-deadline 30"
"""How the deadline of a reward is raised."""
_HANGS = 3
"""So many different answers that hang, before the verifier ever answered, mean that it is broken and not the answers."""


def refuse_hanging(items: Sequence[tuple[Task, Rollout]], outcomes: Mapping[int, JudgingOutcome], deadline: float) -> None:
    """Refuses a verifier that has only hung so far.

    Args:
        items: the batch.
        outcomes: the first outcomes, by place in the batch.
        deadline: seconds for one verdict.

    Raises:
        RewardError: each of the first answers hung, and they are of several texts; shows the first row.
    """
    if any(o.end is not JudgingEnd.HUNG for o in outcomes.values()):
        return
    answers = {(items[i][0].id, items[i][1].text) for i in outcomes}
    if len(answers) >= _HANGS:
        first = min(outcomes)
        raise RewardError(
            f"the reward function gave no verdict within {deadline:g} s on its first {len(answers)} different answers; "
            f"make it faster or raise the deadline ({RAISE_DEADLINE}). "
            f"First row: {row_of(items[first][0])!r}{_printed_text(outcomes[first].score)}"
        )


def refuse_blindness(items: Sequence[tuple[Task, Rollout]], verdicts: Sequence[Score]) -> None:
    """Refuses a batch of which more than half has no verdict.

    Raises:
        RewardError: shows the first failure. Where the function's service gave no answer, an `EngineError` is its cause: no code
            is to be mended.
    """
    ended = [s.fault is Fault.POLICY and "ended" in s.info for s in verdicts]  # not what the verifier itself calls so
    enough = sum(ended) >= _HANGS  # an answer or two may hang or kill their judge; most answers of a batch do not
    silent = [not s.valid or (floored and enough) for s, floored in zip(verdicts, ended, strict=True)]
    failed = [(item, score) for item, score, none in zip(items, verdicts, silent, strict=True) if none]
    if len(failed) < len(items):  # that a function has no verdict on some is what it says of them
        failed = [(item, score) for item, score in failed if not abstained(score)]
    if 2 * len(failed) <= len(items):
        return
    if all(score.info.get("verdict") == UNREACHED for _, score in failed):
        raise _unreached_error([score for _, score in failed], len(items))
    raise RewardError(
        f"no verdict on {len(failed)} of {len(items)} answers: {_what_happened([s for _, s in failed])}; "
        f"training on the rest would be blind. The first failure:\n{failure_text(*failed[0])}{_late(s for _, s in failed)}"
    )


def _unreached_error(scores: Sequence[Score], items: int) -> RewardError:
    """What is said where a function's service is down: in one line, since the lines of its client tell nothing more."""
    first = scores[0].info
    why, place = str(first["error"]).partition("\n")[0], _own_place(str(first.get("traceback", "")))
    error = RewardError(
        f"the service of the reward function gave no answer on {len(scores)} of {items} answers; training on the rest would be "
        f"blind. The first failure: {why}{place}. Start the service again, or wait until it answers; the reward itself did not "
        f"fail{_late(scores)}"
    )
    error.__cause__ = EngineError(why)
    return error


_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def _own_place(lines: str) -> str:
    r"""The line of the function that an error came from, behind what is said of it; empty where it is not known.

    >>> _own_place('Traceback (most recent call last):\n  File "mine/reward.py", line 13, in judge')
    ' (reward.py, line 13)'
    """
    found = _LINE.search(lines.rpartition("Traceback (most recent call last)")[2])
    return f" ({Path(found[1]).name}, line {found[2]})" if found else ""


def _what_happened(scores: Sequence[Score]) -> str:
    """In what ways a function gave no verdict."""
    if all(map(abstained, scores)):
        return "the reward function returned None, which says that it has none (a 'return' that is missing returns None too)"
    stopped = [s for s in scores if s.fault is not Fault.VERIFIER]
    ways = ["failed"] * (len(stopped) < len(scores)) + ["hung, ended its process, or did not reach its service"] * bool(stopped)
    return f"the reward function {', or '.join(ways)}"


def _late(scores: Iterable[Score]) -> str:
    """What to do about calls that ran out their deadline, where some did."""
    errors = [error for score in scores if "no verdict within" in (error := str(score.info.get("error", "")))]
    if not errors:
        return ""
    told = f"\n{len(errors)} of them ran out the deadline: {RAISE_DEADLINE} gives each call more"
    if blocked := sum(BLOCKED in error for error in errors):
        told += (
            f". {blocked} of these waited for the event loop, which other calls of the function kept busy: make a client, such "
            "as httpx.AsyncClient(), once and keep it, not in every call, and compute in a plain function; fewer calls at once "
            "(Run.reward_in_flight) help too"
        )
    return told


def failure_text(item: tuple[Task, Rollout], score: Score) -> str:
    """A failure with the lines of the function, the row and the answer."""
    detail = str(score.info.get("traceback", score.info.get("error", "no detail"))).rstrip()
    row = repr(row_of(item[0]))
    shown = "" if row in detail else f"row: {row}\n"
    return f"{detail}\n{shown}completion: {item[1].text!r}{_printed_text(score)}"


def _printed_text(score: Score) -> str:
    return f"\nprinted: {score.info['printed']}" if "printed" in score.info else ""
