"""JSON in an answer: found, read strictly, compared with a value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, cast

from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.language import OR, denied

__all__ = ["Exact", "JsonMatch", "NoJson", "alike", "json_in", "read_json", "same_json"]

_FENCE = re.compile(r"^[ \t]{0,3}```([^\n`]*)$", re.MULTILINE)
_JOINED = re.compile(rf"[\]}}][\s$*_`,]{{0,4}}{OR}[\s$*_`]{{0,4}}\Z", re.IGNORECASE)
"""What leads from a value to another one that may stand in its place."""
_NEAR = 40
_DEPTH = 100
_DEEP = f"nested deeper than {_DEPTH} levels"
_DIGITS = 400
_PLACES = 64
"""So many bracketed places are tried, from the last on."""


class NoJson(ValueError):
    """A text has no JSON value that is read strictly; says why."""


@dataclass(frozen=True, slots=True)
class JsonMatch(AnswerVerifier):
    """``correct`` is 1 when the JSON value of the answer equals the gold.

    The gold is any JSON value. Objects are equal whatever the order of their keys, numbers by value (``1`` and ``1.0``), and
    ``true`` is not ``1``. The value is found and read as `json_in` says.

    Attributes:
        unordered: lists are equal whatever the order of their items.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> JsonMatch()(*task_and_rollout({"a": 1, "b": [True]}, 'So: {"b": [true], "a": 1.0}')).primary
    1.0
    """

    unordered: bool = False
    where: AnswerPlace = AnswerPlace.WHOLE

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "JsonMatch.where")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare the values."""
        try:
            said = json_in(answer_in(text, self.where) or "")
        except NoJson as error:
            return self.nothing("unparsed", why=str(error))
        right = same_json(gold, said, unordered=self.unordered)
        return verdict_score("equal" if right else "different", {"correct": float(right)})


class Exact(Decimal):
    """A number as it is written, which prints as it is written."""

    def __repr__(self) -> str:
        return str(self)


def json_in(text: str, *, exact: bool = False) -> Any:
    r"""The JSON value that a text gives, read strictly.

    It is the whole text; or the last fenced block, if there is one; or the last object or list in the text, unless it is denied
    ("not [1]") or one of two ("[1] or [2]"). Refused are keys that an object has twice, NaN and infinities, numbers beyond the
    range of doubles, and what is nested deeper than 100 levels.

    Args:
        text: what is read.
        exact: numbers with a point or an exponent come as the decimals that they are (`Exact`), and not as the nearest doubles.

    Raises:
        NoJson: none, or a malformed one.

    >>> json_in('Result: {"a": [1]} I hope.'), json_in("```json\n3\n```"), json_in(" null ")
    ({'a': [1]}, 3, None)
    """
    fences = list(_FENCE.finditer(text))
    if len(fences) % 2:  # the last block was left open, or one before; pairs count from the front
        fences.pop()
    if fences:
        return read_json(text[fences[-2].end() : fences[-1].start()], exact=exact)
    try:
        return read_json(text, exact=exact)
    except NoJson as error:
        failure = error
    for strings in (True, False):  # a stray quotation mark must not hide what follows
        for start, end in _bracket_spans(text, strings):
            try:
                found = read_json(text[start:end], exact=exact)
            except NoJson as error:
                failure = error
                continue
            if denied(text[:start]):
                raise NoJson("a value that the text denies")
            if _JOINED.search(text[max(0, start - _NEAR) : start]):
                raise NoJson("two values, joined by 'or'")
            return found
    raise failure


def same_json(a: Any, b: Any, *, unordered: bool = False) -> bool:
    """Whether two JSON values are equal: numbers by value, truth values only with truth values.

    >>> same_json({"a": [1, 2]}, {"a": [2, 1.0]}), same_json([1, 2], [2, 1.0], unordered=True), same_json(1, True)
    (False, True, False)
    """
    if unordered:
        return _key(a) == _key(b)
    return alike(a, b, lambda x, y: isinstance(x, bool) == isinstance(y, bool) and x == y)


def alike(a: Any, b: Any, leaf: Callable[[Any, Any], bool]) -> bool:
    """Whether two JSON values have the same shape, and leaves that are equal by ``leaf``; however deep they are.

    >>> alike([1, {"a": 2}], [1.2, {"a": 2.3}], lambda x, y: int(x) == int(y))
    True
    """
    pairs: list[tuple[Any, Any]] = [(a, b)]
    while pairs:
        x, y = pairs.pop()
        if isinstance(x, dict) and isinstance(y, dict):
            one, other = cast("dict[str, Any]", x), cast("dict[str, Any]", y)
            if one.keys() != other.keys():
                return False
            pairs += [(one[k], other[k]) for k in one]
        elif isinstance(x, list) and isinstance(y, list):
            these, those = cast("list[Any]", x), cast("list[Any]", y)
            if len(these) != len(those):
                return False
            pairs += zip(these, those, strict=True)
        elif not leaf(x, y):
            return False
    return True


def _key(value: Any) -> Any:
    """A form in which equal values are equal, whatever the order of lists."""
    if isinstance(value, dict):
        return ("object", tuple(sorted((k, _key(v)) for k, v in cast("dict[str, Any]", value).items())))
    if isinstance(value, list):
        return ("list", tuple(sorted((_key(v) for v in cast("list[Any]", value)), key=repr)))
    return (type(value).__name__, value) if isinstance(value, bool | str | None) else ("number", Fraction(value))


def read_json(text: str, *, exact: bool = False) -> Any:
    """A text that is one JSON value and nothing else, read as strictly as `json_in`.

    Args:
        text: what is read.
        exact: as for `json_in`.

    Raises:
        NoJson: it is not; says why.
    """
    try:
        value = json.loads(
            text.strip(" \t\r\n"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_int,
            parse_float=_exact if exact else _float,
        )
    except NoJson:
        raise
    except RecursionError:
        raise NoJson(_DEEP) from None
    except ValueError as error:
        raise NoJson(str(error)) from None
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        level = [x for v in level if isinstance(v, dict | list) for x in _inside(cast("Any", v))]
        if not level:
            return value
    raise NoJson(_DEEP)


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise NoJson("an object has a key twice")
    return made


def _refuse_constant(name: str) -> Any:
    raise NoJson(f"{name} is no JSON")


def _float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise NoJson("a number is beyond the range of doubles")
    return value


def _exact(digits: str) -> Exact:
    """The decimal; a double's digits where it has more than anybody writes."""
    value, read = _float(digits), Exact(digits)
    return read if len(digits) <= _DIGITS and (not read or abs(read.adjusted()) <= _DIGITS) else Exact(repr(value))


def _int(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise NoJson("a number has more than 400 digits")
    return int(digits)


def _bracket_spans(text: str, strings: bool) -> list[tuple[int, int]]:
    """Where the outermost closed brackets stand, the last first; with ``strings``, brackets inside strings do not count."""
    open_at: list[tuple[str, int]] = []
    closed: list[tuple[int, int]] = []
    tokens = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|[][{}]' if strings else r"[][{}]")
    for found in tokens.finditer(text):
        mark = found.group()
        if mark in "{[":
            open_at.append((mark, found.start()))
        elif mark in "}]" and open_at and open_at[-1][0] == "{["["}]".index(mark)]:
            start = open_at.pop()[1]
            while closed and closed[-1][0] > start:
                closed.pop()
            closed.append((start, found.end()))
    return closed[: -_PLACES - 1 : -1]
