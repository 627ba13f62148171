"""Values of spans, as a verifier of steps gives them, to token columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import RESERVED, Array, TokenColumn
from assay.core.errors import DataError
from assay.core.rollout import Rollout
from assay.core.score import Score, SpanScore

__all__ = ["SEGMENT", "span_columns"]

SEGMENT = "segment"
"""The column that numbers the spans of a rollout."""


def span_columns(rollouts: Sequence[tuple[Rollout, Score]], owner: NDArray[np.int64], sampled: Array) -> dict[str, TokenColumn]:
    """A column for each name of a span, and one that says which span a token belongs to; none where no verdict has spans.

    A span's value stands at its last token; other tokens have 0. In ``segment`` the tokens up to a span's last one share a
    number, and so do those behind the last span of a call: a run of equal numbers is a step.

    Args:
        rollouts: rollouts with their scores.
        owner: ``[N]`` rollout of each token.
        sampled: ``[N]`` call that sampled a token that carries loss, -1 on other tokens.

    Raises:
        DataError: a span is named like a column that every row has, or lies outside its call's completion; names the rollout.
    """
    judged = [(i, rollout, score.spans) for i, (rollout, score) in enumerate(rollouts) if score.valid and score.spans]
    if not judged:
        return {}
    columns = {name: np.zeros(len(owner)) for name in sorted({s.name for _, _, spans in judged for s in spans})}
    if taken := sorted(columns.keys() & (RESERVED | {SEGMENT})):
        raise DataError(f"a verifier named spans {taken}: every row has columns of these names; call them something else")
    segment = np.zeros(len(owner), np.int64)
    for index, rollout, spans in judged:
        for number in sorted({s.call for s in spans}):
            here = np.flatnonzero((owner == index) & (sampled == number))
            of_call = [s for s in spans if s.call == number]
            _check(rollout, of_call)
            if len(here) == 0:  # sampled by another policy
                continue
            ends = np.unique([s.end for s in of_call])
            segment[here] = number * (len(owner) + 1) + np.searchsorted(ends, np.arange(len(here)), "right")
            for span in of_call:
                columns[span.name][here[span.end - 1]] += span.value
    made = [TokenColumn(name, values, "verifier") for name, values in columns.items()]
    return {c.name: c for c in (*made, TokenColumn(SEGMENT, segment, "verifier"))}


def _check(rollout: Rollout, spans: Sequence[SpanScore]) -> None:
    for span in spans:
        tokens = len(rollout.calls[span.call].completion.ids) if 0 <= span.call < len(rollout.calls) else 0
        if not 0 <= span.start < span.end <= tokens:
            raise DataError(
                f"rollout {rollout.id}: the span {span.name!r} covers tokens [{span.start}, {span.end}) of call {span.call}, "
                f"which has {tokens}; give 0 <= start < end <= tokens of a call that there is"
            )
