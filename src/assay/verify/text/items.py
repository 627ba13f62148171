"""Several items: as a set, where order and repetition do not matter, or as a list, where both do."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score

__all__ = ["ListMatch", "SetMatch", "items_in"]

_BULLET = re.compile(r"(?:[-*•+]|[0-9]{1,4}[.)])\s+")
_AND = re.compile(r"\s+(?:and|&)\s+", re.IGNORECASE)
_MOST_ANDS = 32
_BRACKETS = {"{": "}", "[": "]", "(": ")"}


@dataclass(frozen=True, slots=True)
class SetMatch(AnswerVerifier):
    """``correct`` is 1 when the items said are those of the gold, in any order; ``jaccard`` is what both share over what
    either has.

    The gold is a list. An answer is a JSON list, or items between brackets or none, separated by ``separator`` (by ``;`` where
    that is a comma and none stands in the answer), or one to a line with or without bullets and numbers. The last item, or the
    only one, may be two or more with ``and`` or ``&`` between, and have a full stop behind it: each way to read it is compared.
    An item said twice counts once.

    Attributes:
        casefold: ignore upper and lower case.
        separator: between items on one line.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        ConfigError: ``separator`` is empty.
        DataError: the gold is no list.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> score = SetMatch()(*task_and_rollout(["a", "b", "c"], "Answer: {c, A}"))
    >>> score.components["correct"], round(score.components["jaccard"], 3)
    (0.0, 0.667)
    """

    casefold: bool = True
    separator: str = ","
    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        _check(self.where, self.separator, "SetMatch")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "jaccard")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare as sets."""
        wanted = {_fold_item(x, self.casefold) for x in _list_items(gold)}
        readings = [{_fold_item(x, self.casefold) for x in found} for found in _readings(text, self.where, self.separator)]
        if not readings:
            return self.nothing("unparsed")
        jaccard = max(len(wanted & said) / len(wanted | said) if wanted | said else 1.0 for said in readings)
        right = wanted in readings
        return verdict_score("equal" if right else "different", {"correct": float(right), "jaccard": jaccard})


@dataclass(frozen=True, slots=True)
class ListMatch(AnswerVerifier):
    """``correct`` is 1 when the items said are those of the gold in its order; ``places`` is the share of places that agree.

    Written as for `SetMatch`. ``places`` counts the positions at which both have the same item, over the longer of the two.

    Attributes:
        casefold: ignore upper and lower case.
        separator: between items on one line.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        ConfigError: ``separator`` is empty.
        DataError: the gold is no list.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> dict(ListMatch()(*task_and_rollout([3, 1, 2], "[3, 2, 1]")).components)
    {'correct': 0.0, 'places': 0.3333333333333333}
    """

    casefold: bool = True
    separator: str = ","
    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        _check(self.where, self.separator, "ListMatch")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "places")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare place by place."""
        wanted = [_fold_item(x, self.casefold) for x in _list_items(gold)]
        readings = [[_fold_item(x, self.casefold) for x in found] for found in _readings(text, self.where, self.separator)]
        if not readings:
            return self.nothing("unparsed")
        places = max(_share(wanted, said) for said in readings)
        right = wanted in readings
        return verdict_score("equal" if right else "different", {"correct": float(right), "places": places})


def items_in(text: str, where: str = AnswerPlace.AUTO, separator: str = ",") -> list[str] | None:
    r"""The items that an answer lists, as text; None where it has no answer or says nothing.

    An empty list is said by empty brackets.

    >>> items_in("Answer: a, b"), items_in("- a, b\n- c"), items_in('["x, y", 2]'), items_in("[]"), items_in(" ")
    (['a', 'b'], ['a, b', 'c'], ['x, y', '2'], [], None)
    """
    place = answer_in(text, where)
    if not place:
        return None
    read = _json_list(place)
    if read is not None:
        return read
    lines = [line.strip() for line in place.splitlines() if line.strip()]
    if len(lines) > 1 and all(_BULLET.match(line) for line in lines):
        return [_BULLET.sub("", line, count=1).strip() for line in lines]
    if _BRACKETS.get(place[0]) == place[-1:] and len(place) > 1:
        place = place[1:-1].strip()
        lines = [line.strip() for line in place.splitlines() if line.strip()]
        if not place:
            return []
    if separator == "," and "," not in place:
        separator = ";"
    parts = [part for line in lines for part in line.removesuffix(separator).split(separator)]
    if len(parts) > 1:  # "a, b, and c"
        parts[-1] = parts[-1].strip().removeprefix("and ")
    items = [_BULLET.sub("", part.strip(), count=1).strip().strip("\"'`") for part in parts]
    return items if all(items) else None


def _share(wanted: Sequence[str], said: Sequence[str]) -> float:
    """The share of places at which both have the same item, over the longer of the two."""
    longest = max(len(wanted), len(said))
    return sum(a == b for a, b in zip(wanted, said, strict=False)) / longest if longest else 1.0


def _readings(text: str, where: str, separator: str) -> list[list[str]]:
    """The items as they stand, and with the last of them taken apart at its ``and``; none where there is no answer."""
    found = items_in(text, where, separator)
    if found is None:
        return []
    place = answer_in(text, where) or ""
    if not found or _json_list(place) is not None or "\n" in place:
        return [found]
    *head, last = found
    lasts = [last, *([last[:-1].rstrip()] if last.endswith(".") and last[:-1].strip() else [])]
    readings: list[list[str]] = []
    for tail in lasts:
        parts = _AND.split(tail)
        cuts = [[tail], parts, [parts[0], *_tail(parts[1:])], [*_tail(parts[:-1]), parts[-1]]]
        readings += [[*head, *cut] for cut in cuts if all(cut) and len(parts) <= _MOST_ANDS]
    return readings or [found]


def _tail(parts: list[str]) -> list[str]:
    """Several parts as one item again."""
    return [" and ".join(parts)] if parts else []


def _json_list(place: str) -> list[str] | None:
    if not place.startswith("["):
        return None
    try:
        read: Any = json.loads(place)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, list) or any(isinstance(x, list | dict) for x in cast("list[Any]", read)):
        return None
    return [x if isinstance(x, str) else json.dumps(x) for x in cast("list[Any]", read)]


def _list_items(gold: Any) -> Sequence[str]:
    if not isinstance(gold, list):
        raise DataError(f"the gold {gold!r} is no list of items; write it as one, as in ['a', 'b']")
    return [x if isinstance(x, str) else json.dumps(x) for x in cast("list[Any]", gold)]


def _fold_item(item: str, casefold: bool) -> str:
    item = " ".join(item.split())
    return item.casefold() if casefold else item


def _check(where: str, separator: str, name: str) -> None:
    option(AnswerPlace, where, f"{name}.where")
    if not separator.strip():
        raise ConfigError(f"{name}.separator={separator!r}; give what stands between two items, such as ','")
