"""A number, compared exactly or within a tolerance."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Any

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.core.util.renamed import refuse_renamed
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.language import OR, denied, denied_behind, doubted, is_reason
from assay.verify.text.numerals import after_hashes, plain_numbers

__all__ = ["Closeness", "Numeric", "Percent", "number_of"]

_RUN = re.compile(
    r"(?<![\w.])(?P<sign>[-+−]?)(?P<whole>[0-9][0-9.,_]*|\.[0-9][0-9.,_]*)(?P<power>[eE][-+−]?[0-9]+(?:\.[0-9]+)?)?"
    r"(?:\s?/\s?(?P<under>[0-9][0-9.,/]*))?(?P<percent>\s?\\?%)?"
)
_PLAIN = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?")
_WHOLE = re.compile("[0-9]+")
_OR = re.compile(rf"[ $*(]{{0,4}}{OR}[ $*]{{0,4}}", re.IGNORECASE)
_OR_BEHIND = re.compile(rf"[ $*(]{{0,4}}{OR}[ $*]{{0,4}}[-+−]?[0-9]", re.IGNORECASE)
"""Behind a letter of a script without spaces a number is not found by itself."""
_INSIDE = re.compile(r"(?:\^\{?|\}\{|√\s*\(?|(?:\\?(?:sqrt|log|ln|sin|cos|tan|exp)|\\sqrt\[\d+\])(?:_\{?\d+\}?)?\s*[({]?\s*)\Z")
"""What stands before a number that is part of a formula: an exponent, a denominator, a root, a function."""
_TERM = re.compile(r"(?:[0-9)}\]]\s?(?:[+×*·⋅÷]|[xX]|\\times|\\cdot|\\div)\s?|\)\()[$€£(]?\Z")
_FACTOR_OF = re.compile(
    r"[⁰¹²³⁴-⁹⁻]|\+(?!\s?[0-9])|i(?![A-Za-z0-9_])|\s+or\s+(?:more|less|fewer|greater|higher|lower|above|below)\b"
    r"|\s+and\s+(?:a|one|two|three)[\s-]+(?:half|halves|third|quarter)|\s?(?:[xX×*·⋅]|\\times|\\cdot)\s?[0-9]"
)
"""What stands around a number that is a term of a sum or a factor of a product: before it, and behind."""
_MINUS = re.compile(r"\b(?:minus|negative)\s+\Z", re.IGNORECASE)
_SUBTRACTED = re.compile(r"(?:[\d)}\]]|(?<![A-Za-z])[A-Za-z])\s+minus\s+\Z", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:more|less|fewer|greater|smaller|larger|higher|lower)\s+than\s+[$€£]?\Z|"
    r"(?:\b(?:half(?:\s+of)?|twice|thrice|double|triple|(?:square|cube|root|factorial|logarithm)\s+of)|"
    r"(?:\A|\b(?:is|are|was|be)\s)\s*(?:just\s+|well\s+)?(?:over|under|above|below|up\s+to))\s+[$€£]?\Z|"
    r"(?<![-=])(?:[<>≤≥≦≧]|\\[lg]eq?(?:slant)?(?![a-z])|\\[lg]t(?![a-z]))\s*[=$({]?\s*\Z|\A\s*[-−–]\s+\Z",
    re.IGNORECASE,
)
"""What makes a number a bound, and a dash that may be a sign or a bullet."""
_TAGGED = re.compile(r"<[^<>]{1,40}>\s*\Z")
_RANGE = re.compile(r"(?P<between>[ ]{0,2}(?:[-−–—]|to|through|until)[ ]{0,2}[$€£]?)|\s+and\s+[$€£]?")
_BETWEEN = re.compile(r"\bbetween\s+[$€£]?\Z", re.IGNORECASE)
_FACTOR = re.compile(r"\s+(hundred|dozen|thousand|million|billion|trillion)s?\b(?!-)|[kK](?![\w.])", re.IGNORECASE)
_FACTORS = {"hundred": 100, "dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ASIDE = re.compile(r"\s*\((?P<aside>[^()]{1,200})\)[\s.*_]*\Z")
_DIGITS, _POWER = 400, 400
_NEAR = 80
"""Characters around a number in which it may be denied."""
_LEAST = Fraction(1, 10**6)
"""Added to the size of a gold, so that one of 0 has a distance too."""


class Percent(StrEnum):
    """What ``50%`` is: the ``fraction`` 0.5, the ``number`` 50, or no number at all (``refuse``)."""

    FRACTION = "fraction"
    NUMBER = "number"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Numeric(AnswerVerifier):
    r"""``correct`` is 1 when the last number of the answer is within tolerance of the gold: ``|x - gold| <= absolute + relative
    |gold|``.

    Numbers are read and compared as exact fractions: no rounding, no NaN, no infinity. Read are ``-1,234.50``, ``1e-3``,
    ``1.5 \times 10^{3}``, ``3/4``, ``3 1/2`` and ``50%``, in ASCII or full-width digits. With ``auto``, a number behind ``####``
    on a line of its own is the answer, whatever follows it. A last number that is none of these (``1.2.3``, ``1,2``, more than
    400 digits, an exponent beyond 400, an exponent, denominator, root or logarithm of a formula) is ``unparsed``, and no earlier
    one counts in its place; so are one that is denied (``not 5``), a bound (``more than 5``), the end of a range (``4-5``), two
    different numbers with ``or`` between, and several in a tag, a box or behind a mark, which is for the answer alone. ``minus``
    and ``negative`` in front, ``thousand`` to ``trillion`` behind, are read; a reason in brackets at the end is not. Other words
    and units around the number are ignored unless ``alone``.

    Attributes:
        absolute, relative: tolerances, 0 for equality.
        percent: what a percent sign means, in the gold too (`Percent`).
        alone: nothing but the number may stand in the answer, white space, ``$`` and a last full stop aside.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        ConfigError: a tolerance that is negative or not finite.
        UnknownNameError: ``percent`` or ``where`` is unknown.
        DataError: the gold is no number.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> [Numeric(relative=0.01)(*task_and_rollout(100, said)).primary for said in ("about 99 m", "98.99", "1e2", "nan")]
    [1.0, 0.0, 1.0, 0.0]
    """

    absolute: float = 0.0
    relative: float = 0.0
    percent: Percent = Percent.FRACTION
    alone: bool = False
    where: AnswerPlace = AnswerPlace.AUTO

    def __init_subclass__(cls) -> None:
        super(Numeric, cls).__init_subclass__()
        refuse_renamed(cls, {"graded": "grade_number"})

    def __post_init__(self) -> None:
        for name in ("absolute", "relative"):
            value = getattr(self, name)
            if not 0.0 <= value < float("inf"):
                raise ConfigError(f"Numeric.{name}={value}; a tolerance is a finite number that is not negative")
        option(Percent, self.percent, "Numeric.percent")
        option(AnswerPlace, self.where, "Numeric.where")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare within tolerance."""
        wanted = number_of(repr(gold) if isinstance(gold, float) else str(gold), self.percent, alone=True)
        if wanted is None or isinstance(gold, bool):
            raise DataError(f"the gold {gold!r} is no number; give one as 3, 0.25 or '3/4'")
        place, named = _place(text, self.where)
        said = None if place is None else number_of(place, self.percent, alone=self.alone, single=named)
        if said is None:
            return self.nothing("unparsed")
        slack = _exact(self.absolute) + _exact(self.relative) * abs(wanted)
        right = abs(said - wanted) <= slack
        return verdict_score("equal" if right else "different", self.grade_number(right, said, wanted))

    def grade_number(self, right: bool, said: Fraction, wanted: Fraction) -> dict[str, float]:
        """The components of a number that was read.

        Args:
            right: within tolerance.
            said, wanted: the number and the gold.
        """
        return {"correct": float(right)}


@dataclass(frozen=True, slots=True)
class Closeness(Numeric):
    """`Numeric` with a second component: ``closeness`` says how far a number is from the gold, in [0, 1].

    With x the number and y the gold it is ``1 - min(|x - y|, 1) / 2 - min(|x - y| / (|y| + 1e-6), 1) / 2``: half of it is lost
    within a distance of 1, the other half within the size of the gold. ``correct`` counts as success, so that coming near is
    never taken for being right; weights of the objective choose what is paid.

    Source: the graded reward of RandomCalculation (arXiv 2507.10532).

    >>> from assay.verify.rollouts import task_and_rollout
    >>> [round(Closeness()(*task_and_rollout(10, said)).components["closeness"], 3) for said in ("10", "10.5", "12", "0", "ten")]
    [1.0, 0.725, 0.4, 0.0, 0.0]
    """

    @property
    def names(self) -> tuple[str, ...]:
        """``correct`` and ``closeness``."""
        return ("correct", "closeness")

    def grade_number(self, right: bool, said: Fraction, wanted: Fraction) -> dict[str, float]:
        """Both components."""
        distance = abs(said - wanted)
        lost = min(distance, Fraction(1)) / 2 + min(distance / (abs(wanted) + _LEAST), Fraction(1)) / 2
        return {"correct": float(right), "closeness": float(1 - lost)}


def _place(text: str, where: str) -> tuple[str | None, bool]:
    """As `assay.verify.answer_in`, and whether it is a tag, a box or a mark; where nothing else is named, the line of the last
    ``####`` is the answer.
    """
    found = answer_in(text, where)
    if where != AnswerPlace.AUTO:
        return found, where in (AnswerPlace.TAG, AnswerPlace.BOX, AnswerPlace.MARK)
    if found != text.strip():
        return found, True
    return after_hashes(text) or found, False


def number_of(text: str, percent: str = Percent.FRACTION, *, alone: bool = False, single: bool = False) -> Fraction | None:
    """The last number of a text; None where there is none, the last one is malformed or denied, or it is one of two.

    Args:
        text: with the number.
        percent: what a percent sign means.
        alone: nothing but the number may stand in the text.
        single: no other number may stand in the text.

    >>> number_of("1,234.5 kg"), number_of("a 3/4 b"), number_of("1.2.3"), number_of("5 m", alone=True)
    (Fraction(2469, 2), Fraction(3, 4), None, None)
    """
    text = _without_aside(plain_numbers(text))
    every = _results(text) if single else []
    found = deque(every or _RUN.finditer(text), maxlen=2)
    last = found[-1] if found else None
    if last is None or (last["percent"] and percent == Percent.REFUSE):
        return None
    before, behind = text[max(0, last.start() - _NEAR) : last.start()], text[last.end() : last.end() + _NEAR]
    bound = _BOUND.search(before) and not _TAGGED.search(before)
    if _INSIDE.search(before) or _TERM.search(before) or bound or (len(found) > 1 and _spans(text, found[0], last)):
        return None
    if denied(before) or doubted(before) or denied_behind(behind) or _FACTOR_OF.match(behind) or _OR_BEHIND.match(behind):
        return None
    around = text[: last.start()] + text[last.end() :]
    if alone and around.strip(" \t\r\n$"):
        return None
    value = _value(last, percent)
    if any(_value(other, percent) != value for other in every):
        return None
    if len(found) > 1 and _OR.fullmatch(text[found[0].end() : last.start()]) and _value(found[0], percent) != value:
        return None  # two numbers are no answer
    return None if value is None else _worded_number(value, before, behind)


def _without_aside(text: str) -> str:
    """A text without the reason that stands in brackets at its end, behind a number."""
    aside = _ASIDE.search(text, max(0, len(text) - 250)) if "(" in text else None
    if aside is None or not is_reason(aside["aside"]) or _RUN.search(text, 0, aside.start()) is None:
        return text
    return text[: aside.start()]


def _spans(text: str, first: re.Match[str], last: re.Match[str]) -> bool:
    """Whether two numbers are the ends of a range: ``4-5``, ``from 4 to 5``, ``between 4 and 5``."""
    link = _RANGE.fullmatch(text, first.end(), last.start())
    return link is not None and (
        link["between"] is not None or _BETWEEN.search(text, max(0, first.start() - 20), first.start()) is not None
    )


def _worded_number(value: Fraction, before: str, behind: str) -> Fraction | None:
    """A number with the sign and the factor that words beside it name; None where they make a part of a formula of it."""
    minus, factor = _MINUS.search(before), _FACTOR.match(behind)
    if (minus and _SUBTRACTED.search(before)) or (factor and factor[1] is None):
        return None
    return value * (-1 if minus else 1) * (_FACTORS[factor[1].lower()] if factor else 1)


def _results(text: str) -> list[re.Match[str]]:
    """The numbers that a text gives as its result: of a chain of equations those of its last member, and of every member that is
    a number alone; the terms of a sum are none.
    """
    found = list(_RUN.finditer(text))
    ends = [at for at, letter in enumerate(text) if letter == "="]
    if not ends:
        return found
    members = [[m for m in found if begin <= m.start() < end] for begin, end in pairwise([-1, *ends, len(text)])]
    *before, last = members
    return [m for member in before if len(member) == 1 for m in member] + last if last else found


def _value(found: re.Match[str], percent: str) -> Fraction | None:
    whole = found["whole"].rstrip(",._")
    power = (found["power"] or "").replace("−", "-")
    under = (found["under"] or "1").rstrip(".,")
    if max(len(whole), len(under)) > _DIGITS or not _PLAIN.fullmatch(whole) or not _WHOLE.fullmatch(under):
        return None
    if len(power) > 6 or "." in power or abs(int(power[1:] or 0)) > _POWER or not int(under):
        return None
    value = Fraction(whole.replace(",", "") + power) / int(under)
    if found["percent"] and percent == Percent.FRACTION:
        value /= 100
    return -value if found["sign"] in ("-", "−") else value


def _exact(tolerance: float) -> Fraction:
    """A tolerance as it is written: 0.1 is a tenth."""
    return Fraction(repr(float(tolerance)))
