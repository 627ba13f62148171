"""From a step's records to the lines of the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.core.batch import Batch
from assay.core.group import Group
from assay.core.protocols import Tokenizer
from assay.core.score import Score
from assay.measure.metrics import batch_metrics, group_metrics, throughput

__all__ = ["pool_metrics", "rollout_records", "step_metrics"]

GROUPS_SHOWN, ATTEMPTS_SHOWN, OVERPAID_SHOWN = 4, 2, 8


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


WORK = ("time/generate", "time/forward", "time/forward_backward", "time/optimizer")
"""What a step is for; the rest of its time is the framework's."""


def pool_metrics(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, float]:
    """``verify/NAME`` of everything that a scoring pool counted since ``before``; what did not happen is left out.

    >>> pool_metrics({"hung": 3, "retried": 4}, {"retried": 4})
    {'verify/hung': 3.0}
    """
    return {f"verify/{name}": float(n - before.get(name, 0)) for name, n in sorted(now.items()) if n > before.get(name, 0)}


def rollout_records(groups: Sequence[Group], tokenizer: Tokenizer, second: Mapping[str, Score]) -> list[dict[str, Any]]:
    """Attempts for ``rollouts.jsonl``: the first two of each of the first four groups, and up to eight that the reward takes for
    right and the second judge does not. ``text`` is what was judged (of several turns all that was said), ``thought`` what the
    last turn thought.

    Args:
        groups: graded attempts.
        tokenizer: makes text of them.
        second: what the second judge said, by rollout id; its components stand under ``check``.
    """
    shown = {r.id for group in groups[:GROUPS_SHOWN] for r in group.rollouts[:ATTEMPTS_SHOWN]}
    shown |= set(_overpaid(groups, second)[:OVERPAID_SHOWN])
    return [
        {
            "id": rollout.id,
            "task": group.task.id,
            "arm": group.task.arm,
            "level": group.task.level,
            "prompt": "".join(m.content for m in rollout.context.messages),
            "text": _spoken(rollout.calls, tokenizer),
            "stop": rollout.stop.value,
            "components": dict(score.components),
            "fault": score.fault.value,
            "length": rollout.length,
            "tag": rollout.context.tag,
            **({"thought": rollout.calls[-1].thought} if rollout.calls and rollout.calls[-1].thought is not None else {}),
            **({"check": dict(second[rollout.id].components)} if rollout.id in second else {}),
        }
        for group in groups
        for rollout, score in zip(group.rollouts, group.scores, strict=True)
        if rollout.id in shown
    ]


def _overpaid(groups: Sequence[Group], second: Mapping[str, Score]) -> list[str]:
    """Attempts that the reward takes for right and the second judge does not."""
    judged = [
        (r.id, paid.primary, second[r.id].primary)
        for group in groups
        for r, paid in zip(group.rollouts, group.scores, strict=True)
        if r.id in second and paid.valid and second[r.id].valid
    ]
    return [name for name, paid, found in judged if paid >= 0.5 > found]


def _spoken(calls: Sequence[Any], tokenizer: Tokenizer) -> str:
    """What was said after the prompt, tool answers included, of a linear conversation; the last call's text of any other tree."""
    if not calls:
        return ""
    first, last = calls[0], calls[-1]
    whole = last.tokens
    if len(calls) > 1 and len(whole) > len(first.prefix) and bool((whole[: len(first.prefix)] == first.prefix).all()):
        return tokenizer.decode(whole[len(first.prefix) :])
    return last.text
