"""pass@k of answers whose reasoning is right as well (CoT-Pass@K), from a judge's votes on the reasoning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.core.errors import DataError, UnknownNameError
from assay.measure.accuracy_at_k import EvalTable, eval_items, tabulate

__all__ = ["VOTE_RULES", "CotPass", "cot_pass", "reasoned_items"]

VOTE_RULES = ("any", "all", "majority")
"""When the votes on an answer's reasoning call it right: one does, all do, more than half do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CotPass:
    """CoT-Pass@K beside pass@k.

    Attributes:
        tables: rule of `VOTE_RULES` to the table in which an answer passes only with right reasoning.
        right: answers that are right and whose reasoning was judged.
        given_right: rule to the share of these whose reasoning is right: P(reasoning right | answer right).
        unjudged: right answers on which the judge gave no vote; they are left out, and never count as wrong.
    """

    tables: Mapping[str, EvalTable]
    right: int
    given_right: Mapping[str, float]
    unjudged: int


def reasoned_items(items: Sequence[Mapping[str, Any]], rule: str, threshold: float = 1.0) -> list[dict[str, Any]]:
    """The items with value 1 where the answer is right and the votes on its reasoning say so by ``rule``, else 0.

    An answer that is right and has no votes is left out of its item.

    Args:
        items: as `assay.train.Policy.evaluate` gives, with ``reasoning``: for each answer a list of votes (bool), or None.
        rule: one of `VOTE_RULES`.
        threshold: an answer is right when its value reaches it.

    Raises:
        UnknownNameError: another rule.
        DataError: an item without ``reasoning``.

    >>> item = {"id": "a", "arm": "s", "level": 1, "values": [1, 1, 0], "reasoning": [[True, True], [True, False], None]}
    >>> [reasoned_items([item], rule)[0]["values"] for rule in VOTE_RULES]
    [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    if rule not in VOTE_RULES:
        raise UnknownNameError("rule for votes", rule, VOTE_RULES)
    return [_reasoned_item(item, rule, threshold) for item in items]


def cot_pass(items: Sequence[Mapping[str, Any]], threshold: float = 1.0, seed: int = 0) -> CotPass:
    """CoT-Pass@K (Wen et al. 2025, arXiv 2506.14245): pass@k with ``d``, the answers right in result and reasoning, for ``c``.

    ``1 - C(n - d, k) / C(n, k)``; ``d <= c``, so it is never above pass@k, and equal where the judge always says yes.

    Raises:
        DataError: as `reasoned_items`, or no item has an answer left.

    >>> item = {"id": "a", "arm": "s", "level": 1, "values": [1, 1, 0, 0], "reasoning": [[True], [False], None, None]}
    >>> found = cot_pass([item])
    >>> found.tables["all"].total.metrics["pass@2"].value, found.given_right["all"]
    (0.5, 0.5)
    """
    votes = [v for item in items for v in _votes(item, threshold)]
    judged = [v for v in votes if v]
    tables = {
        rule: tabulate(eval_items(i for i in reasoned_items(items, rule, threshold) if i["values"]), seed=seed)
        for rule in VOTE_RULES
    }
    shares = {rule: sum(_says(v, rule) for v in judged) / len(judged) if judged else 0.0 for rule in VOTE_RULES}
    return CotPass(tables=tables, right=len(judged), given_right=shares, unjudged=len(votes) - len(judged))


def _votes(item: Mapping[str, Any], threshold: float) -> list[Sequence[bool] | None]:
    """Of each right answer."""
    if "reasoning" not in item:
        raise DataError(f"evaluation item {item.get('id')!r} has no 'reasoning': let a judge vote on it first")
    pairs = zip(item["values"], item["reasoning"], strict=True)
    return [votes for value, votes in pairs if value >= threshold]


def _reasoned_item(item: Mapping[str, Any], rule: str, threshold: float) -> dict[str, Any]:
    _votes(item, threshold)
    kept = [
        (1.0 if value >= threshold and _says(votes or (), rule) else 0.0)
        for value, votes in zip(item["values"], item["reasoning"], strict=True)
        if value < threshold or votes
    ]
    return {"id": item["id"], "arm": item["arm"], "level": item["level"], "values": kept}


def _says(votes: Sequence[bool], rule: str) -> bool:
    if rule == "any":
        return any(votes)
    return all(votes) and bool(votes) if rule == "all" else 2 * sum(votes) > len(votes)
