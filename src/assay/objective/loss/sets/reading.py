"""From a batch to scores: which tokens make up which element, and with what weight each enters its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import DataError
from assay.core.sample import STREAMS
from assay.objective.loss.sets.base import Scored
from assay.objective.loss.sets.confidence import CONFIDENCE
from assay.objective.reducers import F, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Reading", "read_scores"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """The tokens behind some scores.

    Attributes:
        here: ``[n]`` positions of the tokens in the batch.
        element: ``[n]`` which score each token belongs to.
        jacobian: ``[n]`` derivative of that score by the token's log-probability.
        scored: the scores.
    """

    here: NDArray[np.int64]
    element: NDArray[np.int64]
    jacobian: F
    scored: Scored


def read_scores(
    batch: Batch,
    here: NDArray[np.int64],
    *,
    mean: bool,
    anchors: tuple[tuple[str, float], ...],
    scale: float,
    discount: float,
    tail: float,
    segment: str,
    confident: bool = False,
) -> Reading:
    """The scores ``s = scale * sum_t c_t (logp_now - sum_a w_a logp_a)`` of a batch.

    Args:
        batch: the optimiser batch, or this rank's part of it.
        here: ``[n]`` the tokens that count.
        mean: divides by the element's tokens.
        anchors: names and weights of the anchor policies.
        scale: factor of the score.
        discount: ``c_t`` falls by this factor from one token of the element to the next.
        tail: ``c_t`` of the tokens that are further from the start than the group's shortest element is long.
        segment: token column whose values part a rollout into elements; the rollout is one element when empty.
        confident: computes `Scored.confidence`.

    Raises:
        DataError: a filter gave rollouts other weights than 0 and 1.
    """
    owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)[here]
    part = np.asarray(batch.token(segment)[here], np.int64) if segment else np.zeros_like(owner)
    order = _order(batch)
    standing = np.empty(len(order), np.int64)
    standing[order] = np.arange(len(order))
    keys, element = np.unique(np.stack([standing[owner], part], 1), axis=0, return_inverse=True)
    element = element.reshape(-1)
    members, k = order[keys[:, 0]], len(keys)
    _check_weights(batch, members)
    tokens = tally(element, np.ones(len(here)), k)
    group = np.unique(np.asarray(batch.rollout("group"), np.int64)[members], return_inverse=True)[1]
    share = np.full(len(here), scale)
    if mean:
        share /= tokens[element]
    if discount != 1 or tail != 1:
        place = _places(batch, here, element)
        share *= discount**place
        shortest = np.full(int(group.max(initial=-1)) + 1, np.inf)
        np.minimum.at(shortest, group, tokens)
        share *= np.where(place < shortest[group][element], 1.0, tail)
    own = np.asarray(batch.token("logp_now"), np.float64)[here]
    anchored = np.zeros_like(own)
    for name, weight in anchors:
        anchored += weight * _anchor(batch, name)[here]
    advantage = np.asarray(batch.token("advantage"), np.float64)[here]
    likely = own - np.asarray(batch.token(CONFIDENCE.column), np.float64)[here] if confident else np.zeros_like(own)
    scored = Scored(
        score=_tensor(tally(element, (own - anchored) * share, k)),
        anchored=_tensor(tally(element, anchored * share, k)),
        reward=_tensor(np.asarray(batch.rollout("reward"), np.float64)[members]),
        advantage=_tensor(tally(element, advantage, k) / tokens),
        group=_tensor(group),
        tokens=_tensor(tokens),
        confidence=_tensor(np.exp(tally(element, likely, k) / tokens)),
    )
    return Reading(here=here, element=element, jacobian=share, scored=scored)


def _order(batch: Batch) -> NDArray[np.int64]:
    """``[R]`` the rollouts in the order of the elements: as they stand, or by their ``place`` where the batch says one."""
    rollouts = len(batch.rollout("group"))
    return np.argsort(np.asarray(batch.rollouts.get("place", np.arange(rollouts)), np.int64), kind="stable")


def _check_weights(batch: Batch, members: NDArray[np.int64]) -> None:
    weight = np.asarray(batch.rollouts.get("keep", np.ones(len(batch.rollout("group")))), np.float64)[members]
    if (weight != 1).any():
        raise DataError(
            f"a filter of the credit chain gave rollouts the weight {float(weight[weight != 1][0])}, but a loss on scores counts "
            "each rollout once: use filters that only keep or drop"
        )


def _anchor(batch: Batch, name: str) -> F:
    """``[N]`` log-probabilities under a policy; the old policy of a replayed rollout is the one that sampled it."""
    values = np.asarray(batch.token(f"logp_{name}"), np.float64)
    replayed = np.repeat(batch.rows["stream"] == STREAMS.index("replay"), batch.lengths)
    return np.where(replayed, batch.token("logp_engine"), values) if name == "old" and replayed.any() else values


def _places(batch: Batch, here: NDArray[np.int64], element: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[n]`` how many tokens of the element were sampled before each; calls count in their order where the batch names them."""
    call = np.asarray(batch.token("call"))[here] if "call" in batch.tokens else np.zeros(len(here))
    order = np.lexsort((call, element))
    first = np.searchsorted(element[order], np.arange(int(element.max(initial=-1)) + 1))
    place = np.empty(len(here), np.int64)
    place[order] = np.arange(len(here)) - first[element[order]]
    return place


def _tensor(values: NDArray[np.float64] | NDArray[np.int64]) -> Tensor:
    import torch

    return torch.tensor(values)
