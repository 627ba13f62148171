"""One of several options, named by its letter or by its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer import AnswerPlace, AnswerVerifier, answer_in, denied, option, ruled

__all__ = ["Choice"]

_ALONE = re.compile(r"[*_`$(\[{ ]*([A-Za-z])[*_`$)\]}.:, ]*")
_LETTER = re.compile(r"(?<![A-Za-z0-9'’])(?:\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Z])(?=[).:,*_`/&\s]|$))")
_LABEL = re.compile(r"[*_`$(\[{ ]*([A-Za-z])[*_`$)\]}]*[.:)] *(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Choice(AnswerVerifier):
    """``correct`` is 1 when the option that the text settles on is the gold.

    The gold is a letter, ``"B"``, or ``{"answer": "B", "options": {"A": "red", "B": "blue"}}``; a list of options is lettered
    from A, and the gold may then be the text of an option. With options, an answer may be the text of one as well as its
    letter, and a letter that no option has is no answer.

    Read is, in this order: the place that ``where`` names, if it is a letter alone (``B``, ``(b)``, ``**B.**``), a letter with
    its option's text behind it, or the text of an option; then, where the text names its answer (a tag, a box, a mark), a label
    with which that begins; then the last letter in it that stands as a label: ``(B)``, ``[B]``, or a capital
    before a mark or white space. The word ``I`` and the article ``A`` before a word in
    small letters are no labels. A place that names two options at once (``A or B``, ``A and B``), or denies the last one
    (``not B``), is ``unparsed``.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no option.

    >>> from assay.verify.attempts import posed
    >>> [Choice()(*posed("B", said)).primary for said in ("(B)", "First A. Then: Answer: b", "A or B", "C")]
    [1.0, 1.0, 0.0, 0.0]
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "Choice.where")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare the option chosen with the gold."""
        right, options = _gold(gold)
        place = answer_in(text, self.where)
        chosen = None if place is None else _chosen(place, options, named=place != text.strip())
        if chosen is None:
            return self.nothing("unparsed")
        return ruled("equal" if chosen == right else "different", {"correct": float(chosen == right)}, chosen=chosen)


def _gold(gold: Any) -> tuple[str, dict[str, str]]:
    """The right letter, and the folded text of each option by letter."""
    options: dict[str, str] = {}
    if isinstance(gold, dict):
        table = cast("dict[str, Any]", gold)
        given = table.get("options")
        if "answer" not in table or not isinstance(given, dict | list) or not given:
            raise DataError(f"the gold {gold!r} of a choice needs 'answer' and 'options': a table or a list that is not empty")
        if isinstance(given, list):
            given = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", cast("list[Any]", given), strict=False))
        options = {k.upper(): _folded(str(v)) for k, v in cast("dict[str, Any]", given).items()}
        gold = table["answer"]
    letter = str(gold).strip().upper()
    if options and letter not in options:
        letters = [k for k, v in options.items() if v == _folded(str(gold))]
        letter = letters[0] if len(letters) == 1 else ""
    if not re.fullmatch("[A-Z]", letter):
        raise DataError(f"the gold {gold!r} of a choice is neither a letter nor the text of one option; known: {sorted(options)}")
    return letter, options


def _chosen(place: str, options: dict[str, str], named: bool) -> str | None:
    """The letter that a place settles on; None where it names none, or two.

    In a place that the text itself names as its answer, a label at the very beginning is the answer and the rest explains it.
    """
    alone = _ALONE.fullmatch(place)
    if alone:
        return _known(alone[1].upper(), options)
    said = _folded(place)
    texts = [letter for letter, text in options.items() if text == said]
    if texts:
        return texts[0] if len(texts) == 1 else None
    labelled = _LABEL.fullmatch(place)
    if labelled and options.get(labelled[1].upper()) == _folded(labelled[2]):
        return labelled[1].upper()
    found = [m for m in _LETTER.finditer(place) if not _word(m, place)]
    found = [m for m in found if _known(_name(m), options)]
    if not found:
        return None
    first = named and found[0].start() <= len(place) - len(place.lstrip("*_`$ "))
    pair = found[:2] if first else found[-2:]
    if _name(pair[0]) != _name(pair[-1]) and _joined(place[pair[0].end() : pair[-1].start()]):
        return None
    chosen = pair[0] if first else pair[-1]
    return None if denied(place[: chosen.start()]) else _name(chosen)


def _known(letter: str, options: dict[str, str]) -> str | None:
    return letter if not options or letter in options else None


def _name(found: re.Match[str]) -> str:
    return next(g for g in found.groups() if g).upper()


def _word(found: re.Match[str], place: str) -> bool:
    """Whether a lone capital is the article A or the pronoun I."""
    if found[3] not in ("A", "I"):
        return False
    return re.match(r"\s+[a-z]", place[found.end() : found.end() + 9]) is not None and not re.match(
        r"\s+(?:is|or|and)\b", place[found.end() : found.end() + 9]
    )


def _joined(between: str) -> bool:
    """Whether what stands between two letters makes them one answer."""
    return len(between) < 12 and re.fullmatch(r"[\s).:,*_`]*(?:or|and|and/or|/|&|,)?[\s(*_`]*", between) is not None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .*_`$")
