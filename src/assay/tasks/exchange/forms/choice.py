"""Multiple choice: MMLU, MMLU-Pro, ARC, CommonsenseQA, OpenBookQA, MedQA, AQuA, RACE, HellaSwag, SciQ, GPQA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from assay.core.canon import digest, plain
from assay.core.seeds import generator
from assay.tasks.exchange.forms.route import Asked, Form, Route, Unsupported, first_text, texts_in

__all__ = ["FORMS", "LETTERS", "lettered", "options_shown"]

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
_NEAREST = "'choice', with 'options' as a list of texts and 'answer' as a letter, an index from 0 or the text of one"


def lettered(options: Mapping[str, str], answer: str) -> dict[str, Any]:
    """The gold of `assay.verify.Choice`."""
    return {"answer": answer, "options": dict(options)}


def options_shown(question: str, options: Mapping[str, str]) -> bool:
    """Whether a question shows its options: each label with its text behind it."""
    return all(re.search(rf"(?<![A-Za-z]){k}\)?[).:\]]*\s*{re.escape(v.strip())}", question) for k, v in options.items())


def with_options(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Options in one field, what is right in another, as a letter, an index from 0, a label or a text."""
    field = next((name for name in _OPTIONS if isinstance(row.get(name), list | tuple | Mapping)), "")
    gold_field = next((name for name in _GOLDS if row.get(name) not in (None, "")), "")
    if not field or "reward_model" in row or (field == "answers" and not gold_field):  # several right texts, then
        return None
    labels, options = _options(row[field])
    if not gold_field:
        raise Unsupported(f"{field!r} has {len(options)} options, and no field says which is right", _NEAREST)
    letter = _letter(plain(row[gold_field]), labels, list(options.values()))
    if not letter:
        raise Unsupported(f"{gold_field!r} is {row[gold_field]!r}, which names none of the {len(options)} options", _NEAREST)
    question = "" if asked.question else first_text(row, *_ASKED)
    context = first_text(row, *_CONTEXT) if "question" in row else ""
    behind = "" if options_shown(asked.question or question, options) else _listed(options)
    return Route(
        form="multiple choice",
        verifier="choice",
        answer=lettered(options, letter),
        question=question,
        before=f"{context}\n\n" if context else "",
        behind=behind,
        uses=(field, gold_field, *_ASKED, *_CONTEXT),
    )


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
        answer=lettered(options, letter),
        question="" if asked.question else question,
        behind=_listed(options),
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


def _letter(gold: Any, labels: list[str], texts: list[str]) -> str:
    """The letter that a gold stands for; "" where it stands for none."""
    if isinstance(gold, list) and len(cast("list[Any]", gold)) == 1:
        gold = cast("list[Any]", gold)[0]
    if isinstance(gold, int) and not isinstance(gold, bool):
        place = gold if 0 <= gold < len(texts) else -1
        return LETTERS[place] if place >= 0 else ""
    if not isinstance(gold, str):
        return ""
    said = gold.strip()
    bare = said.strip("().:[]* ")
    if bare.upper() in [label.upper() for label in labels]:
        return LETTERS[[label.upper() for label in labels].index(bare.upper())]
    folded = [" ".join(t.casefold().split()) for t in texts]
    if " ".join(said.casefold().split()) in folded:
        return LETTERS[folded.index(" ".join(said.casefold().split()))]
    if bare.isdecimal() and int(bare) < len(texts):
        return LETTERS[int(bare)]
    labelled = _LABELLED.fullmatch(said)
    if labelled and labelled[1].upper() in [label.upper() for label in labels]:
        return LETTERS[[label.upper() for label in labels].index(labelled[1].upper())]
    return ""


def _listed(options: Mapping[str, str]) -> str:
    return "\n" + "\n".join(f"{letter}. {text}" for letter, text in options.items())


FORMS: tuple[Form, ...] = (with_options, with_distractors, without_options)
