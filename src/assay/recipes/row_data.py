"""The rows of a run and what judges them, as tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import TaskSource
from assay.recipes.prompt_lengths import LongPrompts, fit_prompts
from assay.tasks import Rows, TaskMixture, family, judged_rows
from assay.tasks.exchange.reading import check_exact
from assay.tasks.rewards import Metric, Reward
from assay.tasks.row_splits import TEST_ROWS, Split, number_rows_apart, read_splits, train_and_test
from assay.tasks.row_table import with_prompts
from assay.train.levels import Levels
from assay.train.run import Evaluation

if TYPE_CHECKING:
    from assay.core.protocols import Tokenizer

__all__ = ["Data", "RowData", "RowJudge", "fit_rows", "tasks_of_rows"]

Data = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Mapping[str, Any]] | str | Path] | str | Path
"""Rows, rows by the names of their splits, or where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowData:
    """Rows as they are trained and evaluated on.

    Attributes:
        train: rows; where ``test`` is None, a share of them may be held out.
        test: rows that are held out.
        elsewhere: evaluated are other tasks than rows.
        numbered: whether none was left out, so that each has the number that it has in its file.
        given: the rows before any was left out, by what an error says first of one; empty where they are those above.
    """

    train: Sequence[Mapping[str, Any]]
    test: Sequence[Mapping[str, Any]] | None = None
    elsewhere: bool = False
    numbered: bool = True
    given: Sequence[tuple[str, Split]] = ()

    @property
    def parts(self) -> Sequence[tuple[str, Split]]:
        """What it holds, by what an error says first of one of the rows."""
        return ("", self.train), (TEST_ROWS, self.test or ())

    @classmethod
    def of(cls, rows: Data, evaluate: Data | TaskSource | None, split: str | Sequence[str] | None) -> RowData:
        found = read_splits(rows) if isinstance(rows, str | Path) else rows
        if isinstance(found, Mapping):
            train, test = train_and_test(found, split)
        elif split is not None:
            raise ConfigError(
                f"split={split!r}, but the rows come in no splits; give a mapping from names to rows, or leave it out"
            )
        else:
            train, test = found, ()
        train, test = with_prompts(train), with_prompts(test)
        if evaluate is None:
            return cls(train=train, test=test if len(test) else None)
        if isinstance(evaluate, TaskSource) or (isinstance(evaluate, str) and not _is_file(evaluate)):
            return cls(train=train, elsewhere=True)
        other = read_splits(evaluate) if isinstance(evaluate, str | Path) else evaluate
        if isinstance(other, Mapping):
            first, second = train_and_test({**other, "train": ()} if "train" not in other else other)
            other = second if len(second) else first
        if not len(other):
            raise ConfigError("evaluate holds no rows; give some, the name of a suite, or leave it out")
        return cls(train=train, test=with_prompts(other))


def _is_file(text: str) -> bool:
    return text.startswith("hub:") or "." in Path(text).name or Path(text).exists()


def fit_rows(
    data: RowData, tokenizer: Tokenizer, context: int, new: int, mode: LongPrompts, advice: Callable[[int], str]
) -> RowData:
    """The rows whose prompts fit; says what became of others."""
    limits = tokenizer, context, new, mode, advice
    train, said = fit_prompts(data.train, *limits)
    try:
        test, also = fit_prompts(data.test, *limits) if data.test is not None else (None, "")
    except DataError as error:
        raise DataError(f"{TEST_ROWS}{error}") from None
    for what, text in (("training", said), ("evaluation", also)):
        if text:
            warnings.warn(f"{what} rows: {text}", UserWarning, stacklevel=4)  # the line that calls on_rows
    numbered = len(train) == len(data.train) and len(test or ()) == len(data.test or ())
    return replace(data, train=train, test=test, numbered=numbered, given=data.given or data.parts)


@dataclass(frozen=True, slots=True)
class RowJudge:
    """How answers to rows are judged."""

    reward: Reward | None
    metric: Metric | None
    weights: Sequence[float]


def tasks_of_rows(data: RowData, judged: RowJudge, evaluate: Any, test_share: float) -> tuple[TaskSource, Levels, Evaluation]:
    """The tasks, the levels to train on (all when empty), and how the run is evaluated.

    Raises:
        DataError: a row is wrong; names its number among those that were given.
    """
    with number_rows_apart(data.given or data.parts, lambda rows: _rows(rows, judged, test_share=0.0)):
        return _tasks(data, judged, evaluate, test_share)


def _tasks(data: RowData, judged: RowJudge, evaluate: Any, test_share: float) -> tuple[TaskSource, Levels, Evaluation]:
    plan = Evaluation(every=20, final_per_level=128)
    if data.elsewhere:
        other: TaskSource = family(evaluate) if isinstance(evaluate, str) else evaluate
        mine = _rows(data.train, judged, tests=0, numbered=data.numbered)
        both = TaskMixture(name="rows", sources=(mine, other))
        return both, mine.arms(), replace(plan, levels=other.arms())
    if data.test is not None:
        source = _rows((*data.train, *data.test), judged, tests=len(data.test), numbered=data.numbered)
        return source, _trained_levels(source), plan
    source = _rows(data.train, judged, test_share=test_share, numbered=data.numbered)
    cells = [(arm, level) for arm, levels in source.arms().items() for level in levels]
    if all(sum(source.size(arm, level, split) for arm, level in cells) for split in ("train", "test")):
        return source, (), plan
    return _rows(data.train, judged, test_share=0.0, numbered=data.numbered), (), replace(plan, split="train")


def _rows(rows: Sequence[Mapping[str, Any]], judged: RowJudge, **settings: Any) -> Rows:
    if judged.reward is None and judged.metric is None and any(isinstance(row, Mapping) and "verifier" in row for row in rows):  # pyright: ignore[reportUnnecessaryIsInstance]
        return judged_rows(rows, **settings)
    if judged.reward is None:
        check_exact(enumerate(rows, 1))
    return Rows(rows, reward=judged.reward, metric=judged.metric, weights=judged.weights, **settings)


def _trained_levels(source: Rows) -> Levels:
    """The levels with training rows, where some have none; else ()."""
    found = {arm: tuple(n for n in levels if source.size(arm, n, "train")) for arm, levels in source.arms().items()}
    if found == dict(source.arms()):
        return ()
    return cast("Levels", {arm: levels for arm, levels in found.items() if levels})
