"""From a step's records to the lines of the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any

from assay.core.batch import Batch
from assay.core.canon import plain
from assay.core.group import Group, Outcome
from assay.core.protocols import Tokenizer
from assay.core.rollout import Rollout
from assay.core.sample import extends
from assay.core.score import Score
from assay.core.task import Message, Task
from assay.measure.metrics import batch_metrics, group_metrics, throughput
from assay.rollout.decode_text import decode_with_special

__all__ = ["gold_text", "kept_rollouts", "pool_metrics", "rollout_records", "shorten", "step_metrics"]

GROUPS_SHOWN, ATTEMPTS_SHOWN, OVERPAID_SHOWN = 4, 2, 8

MOST_CHARACTERS, MOST_REASON = 8000, 500
"""Of a text, and of why a rollout has no verdict, in the files of all rollouts."""


def step_metrics(
    groups: Sequence[Group],
    batch: Batch | None,
    stats: Mapping[str, float],
    curriculum: Mapping[str, float],
    seconds: Mapping[str, float],
) -> dict[str, float]:
    """Every number of a step under its name in ``metrics.jsonl``."""
    out = group_metrics(groups)
    # a step that found nothing to learn from has wasted all that it sampled
    out |= {"waste/rows_filtered": 1.0} if batch is None else batch_metrics(batch)
    out |= stats
    out |= curriculum
    spent = dict(seconds)
    inside = sum(v for k, v in (spent | dict(stats)).items() if k in WORK)
    spent["time/other"] = max(0.0, spent["time/step"] - inside)
    spent["time/tokens_per_second"] = throughput(out.get("tokens/sampled", 0.0), spent.get("time/generate", 0.0))
    return out | spent


WORK = ("time/generate", "time/wait", "time/forward", "time/forward_backward", "time/optimizer")
"""What a step is for; the rest of its time is the framework's."""


def pool_metrics(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, float]:
    """``verify/NAME`` of everything that a scoring pool counted since ``before``; what did not happen is left out.

    >>> pool_metrics({"hung": 3, "retried": 4}, {"retried": 4})
    {'verify/hung': 3.0}
    """
    return {f"verify/{name}": float(n - before.get(name, 0)) for name, n in sorted(now.items()) if n > before.get(name, 0)}


def kept_rollouts(
    groups: Sequence[Group],
    outcomes: Sequence[Outcome],
    tokenizer: Tokenizer,
    second: Mapping[str, Score],
    most: int,
    row_place: Callable[[Task], str] = lambda task: "",
) -> list[dict[str, Any]]:
    """Rollouts for `assay.runs.RolloutFiles`: all of a step, or of as many of its groups, spread over the step, as ``most``
    rollouts make; texts longer than `MOST_CHARACTERS` without their middle.

    Args:
        groups: graded rollouts.
        outcomes: of the same groups: the advantages after credit.
        tokenizer: makes text of them.
        second: what a second judge said, by rollout id.
        most: rollouts, at most.
        row_place: where a task stands in the user's rows; "" elsewhere.
    """
    advantages = {
        r.id: float(a)
        for outcome in outcomes
        if outcome.advantages is not None
        for r, a in zip(outcome.group.rollouts, outcome.advantages, strict=True)
        if isfinite(a)
    }
    total, every = sum(len(group.rollouts) for group in groups), len(groups)
    fit = every if total <= most else max(1, most * every // total)
    chosen = [groups[i * every // fit] for i in range(fit)]
    found = islice(((g, r, s) for g in chosen for r, s in zip(g.rollouts, g.scores, strict=True)), most)
    return [
        {
            **_record(group, rollout, score, tokenizer, second),
            "group": group.key,
            "prompt": shorten(show_messages(rollout.context.messages)),
            "gold": gold_text(group.task),
            **({"row": row} if (row := row_place(group.task)) else {}),
            "advantage": advantages.get(rollout.id),
            "reason": str(score.info.get("error", ""))[:MOST_REASON],
            "raw": [shorten(text) for text in _raw(rollout, tokenizer)],
        }
        for group, rollout, score in found
    ]


def gold_text(task: Task) -> str:
    """What a right answer to a task is, for a reader: its ``answer``, else its ``solution``, else all that is private."""
    private = task.private
    gold = next((private[name] for name in ("answer", "solution") if private.get(name) is not None), private)
    return shorten(gold if isinstance(gold, str) else json.dumps(plain(gold), ensure_ascii=False) if gold else "")


def show_messages(messages: Sequence[Message]) -> str:
    """A conversation for a reader: a single message as it is, of several each behind its role, with an empty line between.

    >>> print(show_messages((Message("system", "Be brief."), Message("user", "2+2?"))))
    [system] Be brief.
    <BLANKLINE>
    [user] 2+2?
    """
    return messages[0].content if len(messages) == 1 else "\n\n".join(f"[{m.role}] {m.content}" for m in messages)


def shorten(text: str) -> str:
    """A text, without its middle where that is longer than `MOST_CHARACTERS`.

    >>> len(shorten("1" * 9000)), shorten("12")
    (8031, '12')
    """
    left = len(text) - MOST_CHARACTERS
    half = MOST_CHARACTERS // 2
    return text if left <= 0 else f"{text[:half]}\n… {left:,} characters left out …\n{text[-half:]}"


def rollout_records(groups: Sequence[Group], tokenizer: Tokenizer, second: Mapping[str, Score]) -> list[dict[str, Any]]:
    """Rollouts for ``rollouts.jsonl``: the first two of each of the first four groups, and up to eight that the reward takes for
    right and the second judge does not. ``text`` is what was judged (of several turns all that was said), ``thought`` what the
    last turn thought, ``answer`` what was graded in place of a call's text, ``pictures`` the digests of what the last turn was
    shown.

    Args:
        groups: graded rollouts.
        tokenizer: makes text of them.
        second: what the second judge said, by rollout id; its components stand under ``check``.
    """
    shown = {r.id for group in groups[:GROUPS_SHOWN] for r in group.rollouts[:ATTEMPTS_SHOWN]}
    shown |= set(_overpaid(groups, second)[:OVERPAID_SHOWN])
    return [
        _record(group, rollout, score, tokenizer, second, whole=True)
        for group in groups
        for rollout, score in zip(group.rollouts, group.scores, strict=True)
        if rollout.id in shown
    ]


def _record(
    group: Group, rollout: Rollout, score: Score, tokenizer: Tokenizer, second: Mapping[str, Score], whole: bool = False
) -> dict[str, Any]:
    """A rollout as both files have it; texts are shortened unless the ``whole`` is wanted."""
    cut = str if whole else shorten
    thought = rollout.calls[-1].thought if rollout.calls else None
    return {
        "id": rollout.id,
        "task": group.task.id,
        "arm": group.task.arm,
        "level": group.task.level,
        "prompt": cut("".join(m.content for m in rollout.context.messages)),
        "text": cut(_spoken_text(rollout.calls, tokenizer)),
        "stop": rollout.stop.value,
        "components": dict(score.components),
        "fault": score.fault.value,
        "length": rollout.length,
        "tag": rollout.context.tag,
        **({"pictures": [m.digest for m in shown]} if (shown := rollout.calls[-1].media if rollout.calls else ()) else {}),
        **({"thought": cut(thought)} if thought is not None else {}),
        **({"answer": cut(rollout.answer)} if rollout.answer is not None else {}),
        **({"calls": calls} if (calls := _agent_calls(rollout, tokenizer, cut)) else {}),
        **({"check": dict(second[rollout.id].components)} if rollout.id in second else {}),
    }


def _raw(rollout: Rollout, tokenizer: Tokenizer) -> tuple[str, str]:
    """The tokens that the policy read first, and all that follow them in its last call, as text with special tokens."""
    if not rollout.own:
        return "", ""
    first, last = rollout.own[0].prefix, rollout.own[-1].tokens
    goes_on = len(last) >= len(first) and bool((last[: len(first)] == first).all())
    start = len(first) if goes_on else len(rollout.own[-1].prefix)
    return decode_with_special(tokenizer, first), decode_with_special(tokenizer, last[start:])


def _agent_calls(rollout: Rollout, tokenizer: Tokenizer, cut: Callable[[str], str]) -> list[dict[str, Any]]:
    """Each call of an agent, which makes its own prompts: what it sent beyond an earlier call's tokens, and the answer.

    Nothing for other rollouts, whose prompts follow from the task.
    """
    if rollout.answer is None and not any(call.history for call in rollout.calls):
        return []
    known = {call.id: call for call in rollout.calls}
    told: list[dict[str, Any]] = []
    for call in rollout.calls:
        before = known.get(call.parent) if call.parent is not None else None
        goes_on = before is not None and extends(call, before)
        sent = call.prefix[len(before.tokens) :] if before is not None and goes_on else call.prefix
        told.append({"prompt": cut(tokenizer.decode(sent)), "text": cut(call.text), "history": call.history})
    return told


def _overpaid(groups: Sequence[Group], second: Mapping[str, Score]) -> list[str]:
    """Rollouts that the reward takes for right and the second judge does not."""
    judged = [
        (r.id, paid.primary, second[r.id].primary)
        for group in groups
        for r, paid in zip(group.rollouts, group.scores, strict=True)
        if r.id in second and paid.valid and second[r.id].valid
    ]
    return [name for name, paid, found in judged if paid >= 0.5 > found]


def _spoken_text(calls: Sequence[Any], tokenizer: Tokenizer) -> str:
    """What was said after the prompt, tool answers included, of a linear conversation; the last call's text of any other tree."""
    if not calls:
        return ""
    first, last = calls[0], calls[-1]
    whole = last.tokens
    if len(calls) > 1 and len(whole) > len(first.prefix) and bool((whole[: len(first.prefix)] == first.prefix).all()):
        return tokenizer.decode(whole[len(first.prefix) :])
    return last.text
