"""Rows whose answer a verifier can check: it accepts the gold, and independent solvers agree with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from assay.core.errors import ConfigError, DataError
from assay.curate.row_index import Joined
from assay.curate.rows import Fields
from assay.curate.step import Chunk, RowStep, Verdict, drop, keep

__all__ = ["Case", "Grader", "SolversAgree", "VerifierAccepts"]


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to be judged.

    Attributes:
        question: as it was written.
        gold: the row's gold answer.
        answer: what somebody answered.
        row: the row's other fields.
    """

    question: str
    gold: Any
    answer: str
    row: Mapping[str, Any]


class Grader(Protocol):
    """Judges answers; `assay.verify` has many, behind pools that survive what they do."""

    def __call__(self, cases: Sequence[Case]) -> Sequence[float | str | None]:
        """A value in [0, 1] for each case; where there is no verdict None, or the reason in words."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierAccepts(RowStep):
    """Drops rows whose gold answer their verifier does not accept: training on them would punish right answers.

    The gold is given as a model would give it, in several ways; one accepted is enough.

    Attributes:
        grader: the verifier.
        templates: ways to give an answer, with ``{answer}`` in them.

    Raises:
        ConfigError: a template without ``{answer}``.
    """

    costly: ClassVar[bool] = True
    grader: Grader
    templates: tuple[str, ...] = ("{answer}", "\\boxed{{answer}}")

    def __post_init__(self) -> None:
        wrong = [t for t in self.templates if "{answer}" not in t]
        if wrong or not self.templates:
            raise ConfigError(f"VerifierAccepts.templates: {wrong or 'none'}; write {{answer}} where the answer belongs")

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row; a template is tried on the rows that the ones before did not settle."""
        verdicts: list[Verdict | None] = [drop("no gold answer") if row.gold is None else None for row in chunk.rows]
        waiting = [i for i, row in enumerate(chunk.rows) if row.gold is not None]
        values: dict[int, list[float | str | None]] = {i: [] for i in waiting}
        for template in self.templates:
            cases = [_case(chunk, i, template.replace("{answer}", _answer(chunk.rows[i].gold))) for i in waiting]
            for i, value in zip(waiting, _grade_cases(self.grader, cases), strict=True):
                values[i].append(value)
            waiting = [i for i in waiting if not _accepted(values[i][-1])]
        for i in waiting:
            judged = any(isinstance(v, float | int) for v in values[i])
            reason = "verifier refuses its gold" if judged else "no verdict on its gold"
            verdicts[i] = drop(reason, gold=_answer(chunk.rows[i].gold), values=values[i])
        return verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class SolversAgree(RowStep):
    """Drops rows on whose gold too few independent solvers agree: the gold may be wrong, or the question unclear.

    Attributes:
        grader: says whether a solver's answer equals the gold.
        solvers: names of solvers, and the files with their answers: rows of ``id`` or question, and ``answer`` or ``answers``.
        least: how many solvers must agree, each with at least one of its answers.
        fields: where an entry without an ``id`` holds its question.

    Raises:
        ConfigError: no solvers, or fewer than ``least``.
    """

    costly: ClassVar[bool] = True
    grader: Grader
    solvers: tuple[tuple[str, Path], ...]
    least: int = 1
    fields: Fields = field(default_factory=Fields)

    def __post_init__(self) -> None:
        if not 1 <= self.least <= len(self.solvers):
            raise ConfigError(f"SolversAgree: {self.least} of {len(self.solvers)} solvers must agree; use 1 to all of them")

    @property
    def files(self) -> tuple[Path, ...]:
        """The solvers' answers."""
        return tuple(path for _, path in self.solvers)

    def prepare(self, scratch: Path) -> list[Joined]:
        """An index of each solver's answers."""
        return [Joined(scratch / f"{i}.sqlite", [path], self.fields, _answers) for i, (_, path) in enumerate(self.solvers)]

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row, with how many solvers agree as its score."""
        agree: list[list[str]] = [[] for _ in chunk.rows]
        for (name, _), joined in zip(self.solvers, ready, strict=True):
            said = [(i, text) for i, lists in enumerate(joined.of(chunk.rows)) for texts in lists for text in texts]
            values = _grade_cases(self.grader, [_case(chunk, i, text) for i, text in said])
            for i in sorted({i for (i, _), value in zip(said, values, strict=True) if _accepted(value)}):
                agree[i].append(name)
        return [
            keep(solvers=len(names))
            if len(names) >= self.least
            else drop("solvers disagree", {"solvers": len(names)}, agree=names)
            for names in agree
        ]


def _answer(gold: Any) -> str:
    """A gold as a model would answer: of several right ones the first, of an object its ``answer``."""
    if isinstance(gold, list) and gold:
        return _answer(cast("list[Any]", gold)[0])
    if isinstance(gold, dict) and "answer" in gold:
        return _answer(cast("dict[str, Any]", gold)["answer"])
    return gold if isinstance(gold, str) else json.dumps(gold)


def _case(chunk: Chunk, i: int, answer: str) -> Case:
    row = chunk.rows[i]
    return Case(row.question, row.gold, answer, row.data)


def _grade_cases(grader: Grader, cases: Sequence[Case]) -> Sequence[float | str | None]:
    values: Sequence[float | str | None] = grader(cases) if cases else ()
    if len(values) != len(cases):
        raise DataError(f"a grader gave {len(values)} values for {len(cases)} answers; give one for each")
    return values


def _accepted(value: float | str | None) -> bool:
    return isinstance(value, float | int) and value >= 1


def _answers(entry: Mapping[str, Any]) -> list[str]:
    """The answers of a solver's entry."""
    said: Any = entry.get("answers", [entry["answer"]] if "answer" in entry else None)
    several = cast("list[Any]", said) if isinstance(said, list) else None
    if several is None or not all(isinstance(answer, str) for answer in several):
        raise DataError(f"'answer' or 'answers' is {said!r:.80}; give text, or a list of texts")
    return several
