"""Several constraints on one text as a verifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from assay.core.config import from_dict
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerVerifier, verdict_score
from assay.verify.constraints import form, languages, lengths, wording
from assay.verify.constraints.base import Constraint

__all__ = ["CONSTRAINTS", "Instructions", "constraint_of", "describe_constraints"]

CONSTRAINTS: Mapping[str, type[Constraint]] = {
    "words": lengths.Words,
    "sentences": lengths.Sentences,
    "paragraphs": lengths.Paragraphs,
    "paragraph_start": lengths.ParagraphStart,
    "characters": lengths.Characters,
    "keywords": wording.Keywords,
    "keyword_frequency": wording.KeywordFrequency,
    "forbidden": wording.Forbidden,
    "letter_frequency": wording.LetterFrequency,
    "capital_words": wording.CapitalWords,
    "upper_case": wording.UpperCase,
    "lower_case": wording.LowerCase,
    "no_commas": wording.NoCommas,
    "script": wording.Script,
    "language": languages.Language,
    "title": form.Title,
    "bullets": form.Bullets,
    "numbered_list": form.NumberedList,
    "highlights": form.Highlights,
    "sections": form.Sections,
    "placeholders": form.Placeholders,
    "json": form.JsonFormat,
    "quoted": form.Quoted,
    "starts_with": form.StartsWith,
    "ends_with": form.EndsWith,
    "postscript": form.Postscript,
    "two_responses": form.TwoResponses,
    "repeat_prompt": form.RepeatPrompt,
    "one_of": form.OneOf,
}
"""Each constraint by the name that a gold calls it."""


@dataclass(frozen=True, slots=True)
class Instructions(AnswerVerifier):
    """``correct`` is 1 when a text keeps every constraint; ``fraction = kept / constraints`` is the share that it keeps.

    The gold is a list of constraints, each a table with its name and settings:
    ``[{"constraint": "words", "count": 50, "relation": "at_most"}, {"constraint": "no_commas"}]``. Names are those of
    `CONSTRAINTS`. An empty text keeps none: saying nothing is no way to be without commas. ``info["failed"]`` names what it
    broke.

    With ``loose`` there are loose verdicts too: a constraint counts as kept if the text keeps it, or the text without its first
    line, its last line, or both, each also without asterisks. An introduction, a farewell and bold print are so forgiven. IFEval
    reports accuracy both ways, by prompt (``correct``, ``loose``) and by instruction (``fraction``, ``loose_fraction``).

    Attributes:
        rules: constraints on every task, before those of its gold.
        loose: give the loose verdicts too.

    Raises:
        DataError: no constraint, an unknown one, or wrong settings; names the nearest.

    Source: IFEval (arXiv 2311.07911).

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = [{"constraint": "no_commas"}, {"constraint": "words", "count": 3}]
    >>> dict(Instructions()(*task_and_rollout(gold, "One, two")).components)
    {'correct': 0.0, 'fraction': 0.0}
    >>> dict(Instructions()(*task_and_rollout(gold, "One two")).components)
    {'correct': 0.0, 'fraction': 0.5}
    """

    rules: tuple[Constraint, ...] = ()
    loose: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction", "loose", "loose_fraction") if self.loose else ("correct", "fraction")

    @property
    def needs_gold(self) -> bool:
        """Whether each task brings its own constraints."""
        return not self.rules

    def rule(self, gold: Any, text: str) -> Score:
        """Check each constraint."""
        given = cast("list[Any]", [] if gold is None and self.rules else gold)
        if not isinstance(given, list) or not all(isinstance(spec, dict) for spec in given) or not (given or self.rules):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"the gold {gold!r} is no list of constraints, such as [{{'constraint': 'no_commas'}}]")
        rules = [*self.rules, *map(constraint_of, given)]
        if not text.strip():
            return self.nothing("unparsed")
        failed = [rule for rule in rules if not rule.holds(text)]
        kept = 1.0 - len(failed) / len(rules)
        components = {"correct": float(not failed), "fraction": kept}
        if self.loose:
            texts = _forgiving(text)
            held = sum(rule not in failed or any(map(rule.holds, texts)) for rule in rules)
            components |= {"loose": float(held == len(rules)), "loose_fraction": held / len(rules)}
        return verdict_score("broken" if failed else "kept", components, failed=[rule.describe() for rule in failed])


def _forgiving(text: str) -> list[str]:
    """IFEval's other readings of a text: without its first line, its last, both, and all without asterisks."""
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [kept for kept in (*cut, *(one.replace("*", "") for one in cut)) if kept.strip()]


def constraint_of(spec: Mapping[str, Any]) -> Constraint:
    """The constraint that a table describes.

    Raises:
        DataError: an unknown name or wrong settings.

    >>> constraint_of({"constraint": "words", "count": 3}).describe()
    'Write at least 3 words.'
    """
    if "constraint" not in spec:
        raise DataError(f"{dict(spec)!r}: there is no 'constraint'; give its name: one of {', '.join(sorted(CONSTRAINTS))}")
    name = str(spec["constraint"])
    if name not in CONSTRAINTS:
        raise DataError(f"{dict(spec)!r}: {UnknownNameError('constraint', name, CONSTRAINTS)}")
    if {"kind", "class"} & spec.keys():  # words by which configurations name classes; data may not
        raise DataError(f"constraint {dict(spec)!r}: 'kind' and 'class' are no settings; the name stands under 'constraint'")
    try:
        return from_dict(CONSTRAINTS[name], {k: v for k, v in spec.items() if k != "constraint"})
    except ConfigError as error:
        raise DataError(f"constraint {dict(spec)!r}: {error}") from None


def describe_constraints(gold: list[Mapping[str, Any]]) -> str:
    """The constraints of a gold in words, a sentence each: for a prompt.

    >>> describe_constraints([{"constraint": "no_commas"}, {"constraint": "words", "count": 3}])
    'Do not use any commas. Write at least 3 words.'
    """
    return " ".join(constraint_of(spec).describe() for spec in gold)
