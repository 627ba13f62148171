"""A ranking of candidates, measured by MRR, average precision and NDCG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, option, verdict_score
from assay.verify.text.items import items_in

__all__ = ["RankMetric", "Ranking", "average_precision", "ndcg", "reciprocal_rank"]


class RankMetric(StrEnum):
    """The metric that ``correct`` repeats: ``mrr``, ``ap`` (whose mean over tasks is MAP), or ``ndcg``."""

    MRR = "mrr"
    AP = "ap"
    NDCG = "ndcg"


@dataclass(frozen=True, slots=True)
class Ranking(AnswerVerifier):
    """How good an order of candidates is: ``mrr`` is 1 over the rank of the first relevant one, ``ap`` the mean precision at
    the relevant ranks, ``ndcg`` the discounted gain over the best one possible, ``top_k`` whether a relevant one is among the
    first ``k``.

    The gold is ``{"gains": {"a": 2, "b": 0, ...}}``, a gain of each candidate (relevant above 0), or ``{"candidates": [...],
    "relevant": [...]}``. An answer lists every candidate once, as for `assay.verify.ListMatch` or with ``>`` between; anything
    else (a candidate missing, repeated or unknown) is ``invalid`` and all its components are 0.

    Attributes:
        metric: what ``correct`` repeats (`RankMetric`).
        k: for ``top_k``.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        ConfigError: ``k`` below 1.
        UnknownNameError: ``metric`` or ``where`` is unknown.
        DataError: the gold has no relevant candidate, a negative gain, or is of another form.

    Source: RLocator (arXiv 2305.05586), in part.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> score = Ranking()(*task_and_rollout({"candidates": ["a", "b", "c", "d"], "relevant": ["a", "c"]}, "a, b, c, d"))
    >>> score.components["mrr"], round(score.components["ap"], 3)
    (1.0, 0.833)
    """

    metric: RankMetric = RankMetric.AP
    k: int = 1
    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(RankMetric, self.metric, "Ranking.metric")
        option(AnswerPlace, self.where, "Ranking.where")
        if self.k < 1:
            raise ConfigError(f"Ranking.k={self.k}; use at least 1")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "mrr", "ap", "ndcg", "top_k")

    def rule(self, gold: Any, text: str) -> Score:
        """Measure the order."""
        gains = _gains(gold)
        order = self._order(text, gains)
        if order is None:
            return self.nothing("unparsed")
        if len(order) != len(gains) or set(order) != set(gains):
            return self.nothing("invalid")
        ranked = [gains[name] for name in order]
        values = {"mrr": reciprocal_rank(ranked), "ap": average_precision(ranked), "ndcg": ndcg(ranked)}
        top = float(any(g > 0 for g in ranked[: self.k]))
        verdict = "equal" if ranked == sorted(ranked, reverse=True) else "different"
        return verdict_score(verdict, {"correct": values[self.metric], **values, "top_k": top})

    def _order(self, text: str, gains: Mapping[str, float]) -> list[str] | None:
        order = items_in(text, self.where, ",")
        if order is not None and len(order) == 1 and order[0] not in gains:
            order = items_in(text, self.where, ">")
        return None if order is None else [" ".join(name.split()) for name in order]


def reciprocal_rank(gains: Sequence[float]) -> float:
    """1 over the rank of the first gain above 0; 0 where there is none.

    >>> reciprocal_rank([0, 0, 1, 0])
    0.3333333333333333
    """
    return next((1.0 / rank for rank, gain in enumerate(gains, 1) if gain > 0), 0.0)


def average_precision(gains: Sequence[float]) -> float:
    """Mean, over the gains above 0, of the share of such gains down to that rank; 0 where there is none.

    >>> average_precision([1, 0, 1, 0])
    0.8333333333333333
    """
    ranks = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
    return math.fsum(n / rank for n, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def ndcg(gains: Sequence[float]) -> float:
    """Discounted gain, each divided by ``log2(rank + 1)``, over that of the gains in descending order; 0 where there is none.

    >>> ndcg([3, 2, 1]), round(ndcg([0, 1]), 4)
    (1.0, 0.6309)
    """
    best = _discount_gains(sorted(gains, reverse=True))
    return min(1.0, _discount_gains(gains) / best) if best > 0 else 0.0


def _discount_gains(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _gains(gold: Any) -> dict[str, float]:
    table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
    if table.keys() == {"gains"} and isinstance(table["gains"], dict):
        gains = {" ".join(str(k).split()): v for k, v in cast("dict[str, Any]", table["gains"]).items()}
    elif table.keys() == {"candidates", "relevant"} and all(isinstance(v, list) for v in table.values()):
        relevant = {" ".join(str(x).split()) for x in cast("list[Any]", table["relevant"])}
        names = [" ".join(str(x).split()) for x in cast("list[Any]", table["candidates"])]
        gains = {name: float(name in relevant) for name in names}
        if not relevant <= gains.keys() or len(gains) < len(names):
            raise DataError(f"the gold {gold!r}: every relevant name must be a candidate, and every candidate named once")
    else:
        raise DataError(f"the gold {gold!r} of a ranking needs 'gains', or 'candidates' and 'relevant'")
    wrong = [g for g in gains.values() if isinstance(g, bool) or not isinstance(g, int | float) or not 0 <= g < math.inf]
    if wrong or not any(gains.values()):
        raise DataError(f"the gold {gold!r}: gains are finite numbers that are not negative, and one is above 0; found {wrong}")
    return gains
