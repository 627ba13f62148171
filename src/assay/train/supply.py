"""Columns that the loop itself finds out where an objective asks for them.

To add one, write what finds it and give it a name in `ATTEMPTS` or `TOKENS`.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.group import Group
from assay.core.rollout import ids_of
from assay.core.score import Score
from assay.objective.credit.transform import ConfidenceBonus, confidence
from assay.train.evaluate import greedy
from assay.train.grade import grade
from assay.train.session import Session, player_of

__all__ = ["ATTEMPTS", "TOKENS", "with_columns", "with_tokens"]


async def with_columns(s: Session, groups: list[Group]) -> list[Group]:
    """The groups with what the plan's attempts lack and the loop can find out; what the verifier gave all of them stays."""
    for name in s.plan.attempts:
        given = all(name in x.columns for g in groups for x in g.scores if x.valid)
        if name in ATTEMPTS and not given:
            groups = await ATTEMPTS[name](s, groups)
    return groups


def with_tokens(s: Session, batch: Batch) -> Batch:
    """The batch with the token columns that the plan asks for and the loop can find out."""
    made = [TOKENS[name](batch) for name in s.plan.columns if name in TOKENS and name not in batch.tokens]
    return batch.with_tokens(*made) if made else batch


async def greedy_reward(s: Session, groups: Sequence[Group]) -> list[Group]:
    """``greedy``: the reward of the policy's greedy answer in the same context, an attempt that is not learned from (ReMax).

    Where that attempt has no verdict its group has no baseline: its attempts get the same fault, and are counted with them.
    """
    contexts = [replace(g.rollouts[0].context, key=f"{g.rollouts[0].context.key}/greedy") for g in groups]
    player = player_of(s, greedy(s.run.sampling))
    rollouts = await player.collect(contexts, 1)
    graded = grade(s.pool, [(g.task, c) for g, c in zip(groups, contexts, strict=True)], rollouts)
    return [_compared(s, g, a.scores[0]) for g, a in zip(groups, graded, strict=True)]


def _compared(s: Session, group: Group, best: Score) -> Group:
    if not best.valid:
        return replace(group, scores=tuple(replace(x, components={}, fault=best.fault) for x in group.scores))
    reward = s.stage.objective.scalarise.reward(best.components)
    return replace(group, scores=tuple(replace(x, columns={**x.columns, "greedy": reward}) for x in group.scores))


async def prompt_confidence(s: Session, groups: Sequence[Group]) -> list[Group]:
    """``prompt_confidence``: how sure the policy is of the least likely tokens of the prompt itself (ARM of ProGRPO)."""
    fraction = next((t.fraction for t in s.stage.objective.credit if isinstance(t, ConfidenceBonus)), 0.2)
    prefixes = [next((c.prefix for r in g.rollouts for c in r.calls), ids_of([])) for g in groups]
    found = [confidence(x[1:].astype(np.float64), fraction) for x in s.learner.score(prefixes)]
    return [
        replace(g, scores=tuple(replace(x, columns={**x.columns, "prompt_confidence": c}) for x in g.scores))
        for g, c in zip(groups, found, strict=True)
    ]


def states(batch: Batch) -> TokenColumn:
    """``state``: a number for what stood before a call since the one before, the prompt or the environment's last answer (GiGPO).

    Equal texts have equal numbers; tokens that were not sampled have 0.
    """
    ids, call = batch.token("ids"), batch.token("call")
    values = np.zeros(len(ids), np.int64)
    for a, b in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
        edges = [a, *(a + 1 + np.flatnonzero(np.diff(call[a:b]))).tolist(), b]
        shown = b""
        for start, end in pairwise(edges):
            if call[start] < 0:
                shown = ids[start:end].astype("<i4").tobytes()
            else:
                values[start:end] = 1 + zlib.crc32(shown)
    return TokenColumn("state", values, "rollout")


ATTEMPTS: Mapping[str, Callable[[Session, Sequence[Group]], Awaitable[list[Group]]]] = {
    "greedy": greedy_reward,
    "prompt_confidence": prompt_confidence,
}
"""Column of the attempts to what finds it."""

TOKENS: Mapping[str, Callable[[Batch], TokenColumn]] = {"state": states}
"""Token column to what finds it."""
