"""Multiple choice: MMLU, MMLU-Pro, ARC, CommonsenseQA, OpenBookQA, MedQA, AQuA, RACE, HellaSwag, SciQ, GPQA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from assay.core.canon import digest, plain
from assay.core.seeds import generator
from assay.tasks.exchange.forms.option_base import OptionNumber, base_of
from assay.tasks.exchange.forms.route import Asked, Form, Route, Unsupported, first_text, texts_in

__all__ = ["FORMS", "LETTERS", "choice_gold", "option_number", "options_shown"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_OPTIONS = ("choices", "options", "endings", "answer_choices", "answers")
_GOLDS = (
    "answer",
    "answerKey",
    "answer_key",
    "answer_idx",
    "answer_index",
    "correct_answer_index",
    "correct",
    "correct_option",
    "label",
    "gold",
    "target",
)
_ASKED = ("question", "question_stem", "problem", "ctx", "query")
_CONTEXT = ("article", "passage", "context")
_LABELLED = re.compile(r"\s*\(?([A-Za-z0-9])\s*[).:]\s*(.*)", re.DOTALL)
_NEAREST = "'choice', with 'options' as a list of texts and 'answer' as a letter, a number or the text of one"


def choice_gold(options: Mapping[str, str], answer: str) -> dict[str, Any]:
    """The gold of `assay.verify.Choice`."""
    return {"answer": answer, "options": dict(options)}


def options_shown(question: str, options: Mapping[str, str]) -> bool:
    """Whether a question shows its options: each label with its text behind it."""
    return all(re.search(rf"(?<![A-Za-z]){k}\)?[).:\]]*\s*{re.escape(v.strip())}", question) for k, v in options.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Options of a row, and what says which is right.

    Attributes:
        labels: that the row itself uses.
        texts: of the options.
        gold: what is right, as it stands.
        gold_field: where it stands; "" where nowhere.
        question: in the row; "" where none was found.
        uses: fields that were read.
    """

    labels: list[str]
    texts: list[str]
    gold: Any
    gold_field: str
    question: str
    uses: tuple[str, ...]

    @property
    def number(self) -> OptionNumber | None:
        """The gold as a number that counts options; None where it is none, or a label or an option's text."""
        gold = self.gold
        said = gold.strip("().:[]* ") if isinstance(gold, str) else ""
        if isinstance(gold, bool) or not (isinstance(gold, int) or said.isdecimal()):
            return None
        is_text = str(gold).strip() in [t.strip() for t in self.texts]
        if isinstance(gold, str) and (is_text or said in self.labels):
            return None
        known = "subject" in self.uses or "endings" in self.uses
        return OptionNumber(value=int(said or gold), options=len(self.texts), is_text=is_text, from_zero=known)


def option_number(row: Mapping[str, Any]) -> OptionNumber | None:
    """The number by which a row names its right option; None for any other row.

    >>> option_number({"question": "Even?", "choices": ["one", "two"], "label": 2}).options
    2
    """
    try:
        found = _in_one_field(row) or _in_columns(row, None)
    except Unsupported:
        return None
    return None if found is None else found.number


def with_options(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Options in one field, what is right in another, as a letter, a number, a label or a text."""
    found = _in_one_field(row)
    return None if found is None else _choice(found, row, asked)


def with_columns(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Each option in a column of its own: A, B, C, D as CMMLU and C-Eval have them, option_a, opa as MedMCQA has them."""
    found = _in_columns(row, asked.gold)
    return None if found is None else _choice(found, row, asked)


def _choice(found: _Options, row: Mapping[str, Any], asked: Asked) -> Route:
    options = dict(zip(LETTERS, found.texts, strict=False))
    if not found.gold_field:
        raise Unsupported(f"{found.uses[0]!r} has {len(options)} options, and no field says which is right", _NEAREST)
    number, base = found.number, asked.option_base
    if number is not None and base is None:
        base = base_of([number])
        if base is None and number.fits:
            raise Unsupported(
                f"{found.gold_field!r} is {found.gold!r}, which names one option counted from 0, another counted from 1, and "
                "no row of its file tells which is meant",
                "'choice', with the number of the first option given (--option-base 0 or 1)",
            )
    letter = _letter(found.gold, found.labels, found.texts, base or 0)
    if not letter:
        reason = f"{found.gold_field!r} is {found.gold!r}, which names none of the {len(options)} options"
        raise Unsupported(reason + (", which count from 1" if base else ""), _NEAREST)
    context = first_text(row, *_CONTEXT) if "question" in row else ""
    question = "" if asked.question else found.question
    return Route(
        form="multiple choice",
        verifier="choice",
        answer=choice_gold(options, letter),
        question=question,
        before=f"{context}\n\n" if context else "",
        behind="" if options_shown(asked.question or question, options) else _list_options(options),
        uses=(*(name for name in found.uses if name != "subject"), *_CONTEXT),
    )


def _in_one_field(row: Mapping[str, Any]) -> _Options | None:
    field = next((name for name in _OPTIONS if isinstance(row.get(name), list | tuple | Mapping)), "")
    gold_field = next((name for name in _GOLDS if row.get(name) not in (None, "")), "")
    if not field or "reward_model" in row or (field == "answers" and not gold_field):  # several right texts, then
        return None
    labels, options = _options(row[field])
    gold = plain(row[gold_field]) if gold_field else None
    if isinstance(gold, list) and len(cast("list[Any]", gold)) == 1:
        gold = cast("list[Any]", gold)[0]
    known = ("subject",) if "subject" in row else ()
    uses = (field, gold_field, *_ASKED, *known)
    return _Options(
        labels=labels,
        texts=list(options.values()),
        gold=gold,
        gold_field=gold_field,
        question=first_text(row, *_ASKED),
        uses=uses,
    )


def _in_columns(row: Mapping[str, Any], gold: Any) -> _Options | None:
    columns = _columns(row)
    names = {name.strip().casefold(): name for name in row}
    fields = (names[n.casefold()] for n in (*_GOLDS, "cop") if n.casefold() in names)
    gold_field = next((name for name in fields if row[name] not in (None, "")), "")
    gold = row[gold_field] if gold_field else gold
    bare = gold.strip("().:[]* ").upper() if isinstance(gold, str) else ""
    letter = len(bare) == 1 and bare in LETTERS
    texts = [str(row[name]).strip() for name in columns.values()]
    if len(columns) < 2 or not (letter or (len(columns) > 2 and not all(re.fullmatch(r"[-+]?[\d.,]+", t) for t in texts))):
        return None  # numbers in columns may be anything
    if gaps := [k for k in LETTERS[: LETTERS.index(max(columns)) + 1] if k not in columns]:
        raise Unsupported(f"its options stand in the columns {', '.join(columns.values())}, without {', '.join(gaps)}", _NEAREST)
    question = next((names[n] for n in _ASKED if n in names and isinstance(row[names[n]], str)), "")
    return _Options(
        labels=list(columns),
        texts=list(_options(texts)[1].values()),
        gold=plain(gold),
        gold_field=gold_field or ("answer" if gold is not None else ""),
        question=str(row[question]) if question else "",
        uses=(*columns.values(), gold_field, question),
    )


def _columns(row: Mapping[str, Any]) -> dict[str, str]:
    """Name of the column of each option, by its letter, in their order: those of the prefix that has the most."""
    by_prefix: dict[str, dict[str, str]] = {}
    for name, value in row.items():
        found = _COLUMN.fullmatch(name.strip())
        if found and isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            by_prefix.setdefault(found[1].casefold(), {}).setdefault(found[2].upper(), name)
    best = max(by_prefix.values(), key=len, default=dict[str, str]())
    return {letter: best[letter] for letter in sorted(best)}


_COLUMN = re.compile(r"(?i)((?:option|choice|op)?[ _]?)([a-j])")


def with_distractors(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """The right text in one field and each wrong one in its own, as GPQA and SciQ have them; in an order of their own."""
    wrong = [name for name in row if re.fullmatch(r"(?i)(incorrect answer|distractor)[ _]?\d", name)]
    right = next((name for name in ("Correct Answer", "correct_answer") if row.get(name)), "")
    texts = [str(row[name]).strip() for name in (right, *wrong) if name and row.get(name)]
    if not right or len(texts) < 2:
        return None
    if len({t.casefold() for t in texts}) < len(texts):
        raise Unsupported(f"two of its options are the same text: {texts!r}", _NEAREST)
    question = asked.question or first_text(row, "Question", "question")
    order = generator("import/options", 0, index=digest([question, sorted(texts)])).permutation(len(texts))
    options = {LETTERS[place]: texts[int(i)] for place, i in enumerate(order)}
    letter = next(k for k, v in options.items() if v == texts[0])
    return Route(
        form="multiple choice",
        verifier="choice",
        answer=choice_gold(options, letter),
        question="" if asked.question else question,
        behind=_list_options(options),
        uses=(right, *wrong, "Question"),
    )


def without_options(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """A row that says which option is right, and shows none: MMLU has a subject and an index, others name their field so."""
    fields = [name for name in _PLACES if row.get(name) not in (None, "")]
    index = isinstance(asked.gold, int) and not isinstance(asked.gold, bool) and 0 <= asked.gold < len(LETTERS)
    if not fields and not (index and "subject" in row):
        return None
    gold = row[fields[0]] if fields else asked.gold
    if isinstance(gold, str) and re.search(rf"(?:^|[\s(]){re.escape(gold.strip('(). '))}[).:]", asked.question):
        return None  # the question shows them
    raise Unsupported(f"its gold {gold!r} names an option, and the row has no options", _NEAREST)


_PLACES = ("answerKey", "answer_key", "answer_idx", "answer_index", "correct_answer_index", "correct_option")
"""Fields that hold the place of an option."""


def _options(given: Any) -> tuple[list[str], dict[str, str]]:
    """The labels that the row itself uses, and the texts by letter."""
    given = plain(given)
    if isinstance(given, dict):
        table = cast("dict[str, Any]", given)
        texts, labels = texts_in(table.get("text")), texts_in(table.get("label"))
        if texts is None or labels is None or len(labels) != len(texts):
            labels, texts = list(table), texts_in(list(table.values()))
    else:
        many = cast("list[Any]", given)
        if many and all(isinstance(o, dict) and {"label", "text"} <= set(cast("dict[str, Any]", o)) for o in many):
            labels, texts = [str(o["label"]) for o in many], [str(o["text"]) for o in many]
        else:
            labels, texts = [], texts_in(many)
    if not texts or len(texts) < 2 or len(texts) > len(LETTERS):
        raise Unsupported(f"the options {given!r:.200} are no list of 2 to {len(LETTERS)} texts", _NEAREST)
    parts = [_LABELLED.fullmatch(t) for t in texts]
    if all(p is not None and p[1].upper() == LETTERS[i] for i, p in enumerate(parts)):  # "A)21" of AQuA
        texts = [p[2] for p in parts if p is not None]
    if len({" ".join(t.casefold().split()) for t in texts}) < len(texts):
        raise Unsupported(f"two of its options are the same text: {texts!r:.200}", _NEAREST)
    return labels or list(LETTERS[: len(texts)]), dict(zip(LETTERS, texts, strict=False))


def _letter(gold: Any, labels: list[str], texts: list[str], base: int) -> str:
    """The letter that a gold stands for; "" where it stands for none. Numbers count options from ``base``."""
    if isinstance(gold, int) and not isinstance(gold, bool):
        return LETTERS[gold - base] if 0 <= gold - base < len(texts) else ""
    if not isinstance(gold, str):
        return ""
    said = gold.strip()
    bare = said.strip("().:[]* ")
    if bare.upper() in [label.upper() for label in labels]:
        return LETTERS[[label.upper() for label in labels].index(bare.upper())]
    folded = [" ".join(t.casefold().split()) for t in texts]
    if " ".join(said.casefold().split()) in folded:
        return LETTERS[folded.index(" ".join(said.casefold().split()))]
    if bare.isdecimal() and 0 <= int(bare) - base < len(texts):
        return LETTERS[int(bare) - base]
    labelled = _LABELLED.fullmatch(said)
    if labelled and labelled[1].upper() in [label.upper() for label in labels]:
        return LETTERS[[label.upper() for label in labels].index(labelled[1].upper())]
    return ""


def _list_options(options: Mapping[str, str]) -> str:
    return "\n" + "\n".join(f"{letter}. {text}" for letter, text in options.items())


FORMS: tuple[Form, ...] = (with_options, with_columns, with_distractors, without_options)
