"""How difficult the questions of one puzzle's file are, compared with one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.core.errors import DataError
from assay.tasks.problem import Facts
from assay_tasks.puzzles.spec import Spec

__all__ = ["Size", "difficulty", "size_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What PuzzleClone measures of a question.

    Attributes:
        length: characters of its text.
        conditions: constraints and clues.
        symbols: unknowns.
        scale: size of its parameters, from 0 to 1, mean over them.
    """

    length: float
    conditions: float
    symbols: float
    scale: float


def difficulty(sizes: Sequence[Size]) -> list[float]:
    """The score of each question of one file, from 0 to 1, rounded to 3 places: PuzzleClone (arXiv 2508.15180).

    The mean of four terms: text length, conditions and symbols, each scaled to 0 at the file's least and 1 at its greatest, and
    the scale as it is. A term that is the same for all counts .5. Below .5 is normal, from .5 on hard. Scores of two files cannot
    be compared, since each is scaled by itself.

    >>> three = [Size(length=n, conditions=c, symbols=3, scale=s) for n, c, s in ((100, 4, 0.6), (300, 2, 0.1), (200, 6, 0.9))]
    >>> difficulty(three)
    [0.4, 0.4, 0.725]
    """
    columns = [_scale_values([getattr(size, name) for size in sizes]) for name in ("length", "conditions", "symbols")]
    scale = [size.scale for size in sizes]
    columns.append(scale if len(set(scale)) > 1 else [0.5] * len(scale))
    return [round(sum(terms) / 4, 3) for terms in zip(*columns, strict=True)]


def size_of(spec: Spec, questions: Sequence[Facts]) -> list[Size]:
    """What is measured of a file's questions; parameters are scaled by their least and greatest values among these.

    Raises:
        DataError: no questions.
    """
    if not questions:
        raise DataError(f"{spec.name}: there are no questions to measure; draw some")
    scales = [
        [1 - x for x in column] if name in spec.easier else column
        for name in spec.parameters
        if (column := _column([facts[name] for facts in questions]))
    ]
    return [
        Size(
            length=len(spec.word(facts, 0)),
            conditions=len(spec.constraints) + len(facts.get("clues", ())),
            symbols=len(spec.model(facts).domains),
            scale=sum(column[i] for column in scales) / len(scales) if scales else 0.5,
        )
        for i, facts in enumerate(questions)
    ]


def _column(values: Sequence[Any]) -> list[float]:
    """A parameter's values, or the lengths of its lists, from 0 to 1; none where it is words."""
    sizes = [len(v) if isinstance(v, list | tuple) else v for v in values]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return _scale_values(sizes) if all(isinstance(v, int) for v in sizes) else []


def _scale_values(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(v - low) / (high - low) for v in values] if high > low else [0.5] * len(values)
