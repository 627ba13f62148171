"""One of several options, named by its letter or by its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.text.options import fold, option_in

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True)
class Choice(AnswerVerifier):
    r"""``correct`` is 1 when the option that the text settles on is the gold.

    The gold is a letter, ``"B"``, or ``{"answer": "B", "options": {"A": "red", "B": "blue"}}``; a list of options is lettered
    from A, and the gold may then be the text of an option. With options, an answer may be the text of one as well as its
    letter, and a letter that no option has is no answer.

    Read is what the text calls its answer: the last tag or box, which is a letter (``B``, ``(b)``, ``**B.**``,
    ``\text{B}``), a letter with its option's text behind it, or the text of an option; else the last statement of an answer
    ("the answer is (B)", "Answer: b", "I would choose B over A"), else the last verdict or conclusion ("B is correct", "so
    B", a letter by itself at the end), else the only option that it names. What it says of other options beside that is no
    answer, wherever it stands. ``unparsed`` is a text that names several and calls none its answer, one that calls two so
    (``A or B``, ``A and B``), one that denies the only one (``not B``, ``B is wrong``), and one that only speaks of it (``B is in
    England``, ``Let B be the center``) or puts another option's text behind it (``(B) Paris``). The word ``I`` and the article
    ``A`` are no letters.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no option.

    Source: AlphaMed (arXiv 2505.17952), in part.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> [Choice()(*task_and_rollout("B", said)).primary for said in ("(B)", "First A. Then: Answer: b", "A or B", "C")]
    [1.0, 1.0, 0.0, 0.0]
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "Choice.where")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare the option chosen with the gold."""
        right, options = _gold(gold)
        chosen = _chosen_letter(text, self.where, options)
        if chosen is None:
            return self.nothing("unparsed")
        return verdict_score("equal" if chosen == right else "different", {"correct": float(chosen == right)}, chosen=chosen)


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
        options = {k.upper(): fold(str(v)) for k, v in cast("dict[str, Any]", given).items()}
        gold = table["answer"]
    letter = str(gold).strip().upper()
    if options and letter not in options:
        letters = [k for k, v in options.items() if v == fold(str(gold))]
        letter = letters[0] if len(letters) == 1 else ""
    if not re.fullmatch("[A-Z]", letter):
        raise DataError(f"the gold {gold!r} of a choice is neither a letter nor the text of one option; known: {sorted(options)}")
    return letter, options


def _chosen_letter(text: str, where: str, options: dict[str, str]) -> str | None:
    """The letter that a text settles on; None where it names none, or two."""
    places = (AnswerPlace.TAG, AnswerPlace.BOX) if where == AnswerPlace.AUTO else (where,)
    named = where != AnswerPlace.LINE and where != AnswerPlace.WHOLE
    for place in places:
        found = answer_in(text, place)
        if found is not None:
            return option_in(found, options, named=named)
    if where != AnswerPlace.AUTO:
        return None
    said = text.rpartition("</think>")[2]
    return option_in(said if said.strip() else text, options, named=False)
