"""Expressions over given numbers that shall have a given value: countdown, and 24."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score

__all__ = ["Countdown"]

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([-+*/()]))")
_SAME = str.maketrans({"×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "∕": "/", "−": "-", "–": "-", "[": "(", "]": ")"})
_LATEX = re.compile(r"\\(times|cdot|div|left|right|\(|\)|[,;! ])")
_OF_LATEX = {"times": "*", "cdot": "*", "div": "/"}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}
_SLACK = 200
"""Characters an expression may have besides 20 for each number: it needs no more."""

Number = int | Fraction


@dataclass(frozen=True, slots=True)
class Countdown(AnswerVerifier):
    """``correct`` is 1 when an expression over the given numbers has the target as its value; ``valid`` is 1 when it is one over
    these numbers at all.

    The gold is ``{"numbers": [3, 3, 8, 8], "target": 24}``; with ``"distance": 2`` a value is right that is at most so far from
    the target. An expression consists of the numbers, ``+ - * /`` (also ``× · ÷ −`` and their LaTeX) and brackets, and may be
    followed by ``=`` and its value. Each number counts as often as it is given. Nothing else is read: no powers, no signs before
    a number, no decimals, no digits put together, no functions, no names. The text is never evaluated as code: it is parsed in
    linear time, numbers that are not given are refused before anything is computed, and arithmetic is exact.

    Attributes:
        every: each number must be used; otherwise some may be left out.
        whole: no step may leave the whole numbers, as where ``7/2`` is no division.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold has no numbers or no target.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"numbers": [3, 3, 8, 8], "target": 24}
    >>> [Countdown()(*task_and_rollout(gold, said)).primary for said in ("8 / (3 - 8/3)", "3 * 8", "3 * 8 = 25", "12 + 12",
    ...     "3**3 - 3")]
    [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> Countdown(every=True)(*task_and_rollout(gold, "3 * 8")).info["why"]
    'not used: 3, 8'
    """

    every: bool = False
    whole: bool = False
    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "Countdown.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "valid")

    def rule(self, gold: Any, text: str) -> Score:
        """Read the expression, look whether it uses the numbers, and compute it."""
        numbers, target, distance = _numbers_of(gold)
        place = answer_in(text, self.where) or ""
        parsed = _postfix(place, _SLACK + 20 * len(numbers))
        if parsed is None:
            return self.nothing("unparsed")
        postfix, said = parsed
        why = self._describe_misuse(Counter(x for x in postfix if isinstance(x, int)), Counter(numbers))
        value = None if why else _value(postfix, self.whole)
        if value is None:
            return self.nothing("invalid", why=why or ("a step is no whole number" if self.whole else "it divides by 0"))
        if said is not None and said != value:
            return self.nothing("invalid", why=f"its value is {value}, not {said}")
        right = abs(value - target) <= distance
        return verdict_score("equal" if right else "different", {"correct": float(right), "valid": 1.0}, value=str(value))

    def _describe_misuse(self, used: Counter[int], given: Counter[int]) -> str:
        """What is wrong with the numbers that an expression uses; empty where nothing is."""
        if used - given:
            return f"not given, or not so often: {_list_numbers(used - given)}"
        return f"not used: {_list_numbers(given - used)}" if self.every and given - used else ""


def _list_numbers(numbers: Counter[int]) -> str:
    return ", ".join(map(str, sorted(numbers.elements())))


def _numbers_of(gold: Any) -> tuple[list[int], int, int]:
    table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
    numbers, target, distance = table.get("numbers"), table.get("target"), table.get("distance", 0)
    given = cast("list[Any]", numbers) if isinstance(numbers, list) else []
    if not given or not all(_whole(n) and n >= 0 for n in given) or not _whole(target) or not _whole(distance) or distance < 0:
        raise DataError(f"the gold {gold!r} needs 'numbers', a list of whole numbers from 0, and a 'target', a whole number")
    return given, cast("int", target), distance


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _postfix(text: str, most: int) -> tuple[list[int | str], int | None] | None:
    """An expression with operators behind their operands, and the value said behind ``=``; None where it is none."""
    text = text.strip()
    if text.startswith("**") and text.endswith("**"):
        text = text[2:-2]
    text = text.strip("$` ").rstrip(".")
    if len(text) > most:
        return None
    text = _LATEX.sub(lambda m: _OF_LATEX.get(m[1], m[1] if m[1] in "()" else " "), text).translate(_SAME)
    left, equals, right = text.partition("=")
    tokens = _tokens(left.strip())
    if tokens is None or (equals and not re.fullmatch(r"\s*-?\s*[0-9]{1,40}\s*", right)):
        return None
    postfix = _to_postfix(tokens)
    return None if postfix is None else (postfix, int(right.replace(" ", "")) if equals else None)


def _tokens(text: str) -> list[int | str] | None:
    out: list[int | str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or len(found[1] or "") > 40:
            return None
        out.append(int(found[1]) if found[1] else found[2])
        at = found.end()
    return out


def _to_postfix(tokens: Sequence[int | str]) -> list[int | str] | None:
    """Shunting yard; each token is put down and taken up once."""
    out: list[int | str] = []
    waiting: list[str] = []
    operand = True  # whether a number or an opening bracket is due
    for token in tokens:
        if operand != (isinstance(token, int) or token == "("):
            return None
        if isinstance(token, int):
            out.append(token)
            operand = False
        elif token == "(":
            waiting.append(token)
        elif token == ")":
            while waiting and waiting[-1] != "(":
                out.append(waiting.pop())
            if not waiting:
                return None
            waiting.pop()
        else:
            while waiting and _RANK.get(waiting[-1], 0) >= _RANK[token]:
                out.append(waiting.pop())
            waiting.append(token)
            operand = True
    if operand or "(" in waiting:
        return None
    return out + waiting[::-1]


_APPLY: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": Fraction,
}


def _value(postfix: Sequence[int | str], whole: bool) -> Number | None:
    """Its value; None where it divides by 0, or leaves the whole numbers and must not."""
    stack: list[Number] = []
    for token in postfix:
        if isinstance(token, int):
            stack.append(token)
            continue
        b, a = stack.pop(), stack.pop()
        if token == "/" and not b:
            return None
        found = _APPLY[token](a, b)
        if whole and found.denominator != 1:
            return None
        stack.append(found)
    return stack[0]
