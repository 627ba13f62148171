"""Rows behind the privileged prompts of their rollouts: what a teacher reads who knows more than the policy was shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import DataError

__all__ = ["behind_privilege"]


def behind_privilege(batch: Batch, model: str) -> Batch:
    """The batch with each row's prompt replaced by its privileged one; all that follows the prompt stays as it was.

    Loss tokens are the same, in the same order; only their positions differ. Token columns are 0 on the new prompts.

    Args:
        batch: with the row columns ``prompt`` (``[B]`` tokens of the prompt) and ``privileged`` (``[B, P]`` ids, -1 behind the
            end), as `assay.core.batch.pack` makes them of rollouts with privileged contexts.
        model: who reads it, for messages.

    Raises:
        DataError: a row has no privileged prompt.
    """
    given = batch.rows.get("privileged")
    known = np.zeros((len(batch), 1), np.bool_) if given is None else given >= 0
    if given is None or not known[:, 0].all():
        row = int(np.flatnonzero(~known[:, 0])[0])
        raise DataError(
            f"the anchor {model!r} reads rollouts behind their privileged prompts, and row {row} of {len(batch)} has none: pose "
            "tasks in contexts with Context.privileged, as the guidance Privileged does, and leave out rows of other origin"
        )
    owner = batch.row_of_token
    place = np.arange(len(owner)) - batch.offsets[:-1][owner]
    tail = place >= batch.rows["prompt"][owner]
    row = np.concatenate([np.nonzero(known)[0], owner[tail]])
    order = np.argsort(row, kind="stable")

    def join_front(front: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([front.astype(values.dtype), values[tail]])[order]

    blank = int(known.sum())
    tokens = {
        name: replace(c, values=join_front(given[known] if name == "ids" else np.zeros((blank, *c.trailing)), c.values))
        for name, c in batch.tokens.items()
    }
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(batch)))]).astype(np.int64)
    return replace(batch, offsets=offsets, tokens=tokens)
