"""The stage of given answers with rewards: offline policy gradients, without a rollout of the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError, DataError, PlanError, UnknownNameError
from assay.core.fields import check_positive, later
from assay.core.protocols import Tokenizer
from assay.core.score import ROW_WEIGHT
from assay.core.seeds import generator
from assay.objective.objective import Objective
from assay.rollout.decode_text import AnswerReader
from assay.runtime.settings import LearnerSettings
from assay.train.method_names import refuse_name
from assay.train.offline_rows import OfflineRows, in_order
from assay.train.rewarded_rows import RewardedRow
from assay.train.row_sources import RowSource, check_source_rows, reads_engine, rows_in
from assay.train.stage import StageRows
from assay.train.until import Until

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.wiring import Wiring

__all__ = ["OfflineReinforce", "RewardedRows"]

_STREAM = "offline"
_KNOWN = ("group", "valid", "length", "truncated", "tokens", "value_ref")
"""Rollout columns that the stage's rows have."""


def _default() -> Objective:
    from assay.objective.methods import a_lol  # with modules that most commands need not load

    return a_lol()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineReinforce(OfflineRows):
    """A stage on given answers with rewards, in the stream ``offline``: A-LoL and its kin, weighted behaviour cloning.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves, in the forms of `RewardedRow`, each with its ``reward``. A file must stay as it is until the run has
            ended.
        values: rows of the same form with answers that the reference gave: their mean reward at a question is ``value_ref``
            there, and their mean over all questions where they have none of it. The data's own rows when empty.
        steps: optimiser steps.
        batch: rows per step.
        draw: ``order``: rows are walked in a seeded order, anew each epoch; ``advantage``: those above ``value_ref`` alone, each
            as often as its advantage ``reward - value_ref`` says (A-LoL's sampling).
        objective, learner: what is minimised, and how; the weights that the stage starts from are the reference.
        until: early end, by an evaluation; None runs all steps.

    Carries: A-LoL, R-LoL (arXiv 2305.14718). Its value is a head fitted to the reference's answers; here it is their mean.

    >>> OfflineReinforce(data=[{"prompt": "2+2=", "answer": "4", "reward": 1.0}], steps=10, batch=1).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    values: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 32
    draw: Literal["order", "advantage"] = "order"
    objective: Objective = field(default_factory=_default)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    until: Until | None = later(None)

    def __post_init__(self) -> None:
        refuse_name(self)
        check_positive(self, "steps", "batch")
        self.settle()
        object.__setattr__(self, "values", RowSource(data=self.values).data if self.values else "")
        if self.draw not in ("order", "advantage"):
            raise UnknownNameError("OfflineReinforce.draw", self.draw, ("order", "advantage"))

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "offline"

    @property
    def files(self) -> tuple[str, ...]:
        """The data and the reference's answers, where these are names."""
        return tuple(name for name in (self.data, self.values) if isinstance(name, str) and name)

    @property
    def source(self) -> RowSource:
        """The data, as rows."""
        return RowSource(data=self.data, stream=_STREAM, match="own")

    def rows(self, run: Run, tokenizer: Tokenizer) -> RewardedRows:
        """The rows."""
        return RewardedRows(run.seed, self, tokenizer)

    def check(self, run: Run) -> None:
        """Looks at the objective and at the rows.

        Raises:
            PlanError: a part of the objective does nothing with such rows, or reads what they do not have.
            ConfigError: less than a batch of rows, or none above the value.
            DataError: a row lacks its reward, or the writer's log-probabilities where the objective reads them.
        """
        check_offline(self)
        rows = rows_in(self.source)
        self.check_batch(rows)
        reader = reads_engine(self.objective, _STREAM)
        for row in (*rows, *_reference_rows(self)):
            if row.reward is None:
                raise DataError(f"{row.place} has no 'reward': give a number, or imitate the rows in a stage Imitate")
            if row.stream != _STREAM:
                raise DataError(f"{row.place}, field 'stream': {row.stream!r} in a stage OfflineReinforce; leave the field out")
        for row in rows:
            if reader and row.logprobs is None:
                raise DataError(
                    f"{row.place} has no 'logprobs', and {reader} compares the rows with who wrote them: give the writer's "
                    "log-probability of each token of the answer, or use a method that asks for none (a_lol, weighted_bc)"
                )
        if self.draw == "advantage" and not (_advantages(self, rows) > 0).any():
            raise ConfigError(
                "OfflineReinforce.draw='advantage': no row's reward is above the reference's value, so there is nothing to draw; "
                "give rows of better answers, or values=... of the reference's own"
            )

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> None:
        """Looks at every row's text and length."""
        check_source_rows([self.source], tokenizer, context)

    def training_texts(self) -> Iterator[tuple[str, str]]:
        """The questions."""
        yield from self.source.texts()

    def count_rows(self, run: Run) -> StageRows:
        """The rows, counted."""
        return StageRows(step=self.batch, pool=len(rows_in(self.source)), what="rewarded answers", batch=self.batch)

    def wire(self, wiring: Wiring, objective: Objective) -> OfflineReinforce:
        """Under a method for stored answers."""
        if not all(not t.streams or _STREAM in t.streams for t in objective.losses):
            raise ConfigError(
                f"{wiring.method.name} does not learn from answers with rewards alone (stage OfflineReinforce): name it in a "
                "stage of reinforcement learning, as recipe quickstart has one, or name a_lol, r_gold or weighted_bc here"
            )
        return replace(self, objective=objective, learner=wiring.learner(self.learner, objective, self.steps))


def check_offline(stage: OfflineReinforce) -> None:
    """Raises PlanError where a part of the objective acts on none of the stage's rows, or reads what they do not have."""
    for term in stage.objective.losses:
        if term.streams and _STREAM not in term.streams:
            raise PlanError(
                f"OfflineReinforce: {type(term).__name__} ({term.name!r}) acts on rows of {', '.join(term.streams)}, and the "
                "stage's are of the stream 'offline', so it would do nothing: use a_lol, r_gold or weighted_bc, add the "
                "stream to the term's streams, or train by it in a Reinforce stage"
            )
    if stage.objective.credit and _STREAM not in stage.objective.scalarise.streams:
        raise PlanError(
            "OfflineReinforce: the objective takes statistics of none of the stage's rows: add 'offline' to Scalarise.streams, "
            "or train by it in a Reinforce stage"
        )
    for part in (*stage.objective.credit, *stage.objective.losses):
        for name in part.rollout_columns:
            if name not in _KNOWN:
                raise PlanError(
                    f"OfflineReinforce: {type(part).__name__} reads {name!r} of each rollout, which the stage's rows do not "
                    "have: leave the part out, or train by it in a Reinforce stage"
                )


class RewardedRows:
    """The rows of a stage as batches: number ``i`` is a pure function of the run's seed and ``i``.

    Args:
        seed: of the run.
        stage: settings.
        tokenizer: of the model.
    """

    def __init__(self, seed: int, stage: OfflineReinforce, tokenizer: Tokenizer) -> None:
        self._seed, self._stage, self._reader = seed, stage, AnswerReader.of(tokenizer)
        self._rows = rows_in(stage.source)
        self._values = _values(stage, self._rows)
        self._share = np.maximum(_advantages(stage, self._rows), 0.0)

    def batch(self, step: int) -> Batch:
        """The rows of one step; those of a question are a group."""
        size = self._stage.batch
        if self._stage.draw == "advantage":
            drawn = generator("offline draw", self._seed, str(step)).choice(
                len(self._rows), size, p=self._share / self._share.sum()
            )
            wanted = [int(i) for i in drawn]
        else:
            wanted = in_order("offline", self._seed, len(self._rows), range(step * size, (step + 1) * size))
        rows = [self._rows[i] for i in wanted]
        number = {question: n for n, question in enumerate(dict.fromkeys(row.question for row in rows))}
        samples = [row.offline_sample(self._reader, _STREAM) for row in rows]
        table: dict[str, NDArray[Any]] = {
            "group": np.array([number[row.question] for row in rows], np.int64),
            "valid": np.ones(size, np.bool_),
            "length": np.array([int(x.mask.sum()) for x in samples], np.int64),
            "truncated": np.zeros(size, np.bool_),
            "components/reward": np.array([row.reward for row in rows], np.float64),
            "value_ref": self._values[wanted],
        }
        weights = np.array([row.weight for row in rows], np.float64)
        return pack_rows(list(enumerate(samples)), table | ({ROW_WEIGHT: weights} if (weights != 1.0).any() else {}))


def _reference_rows(stage: OfflineReinforce) -> tuple[RewardedRow, ...]:
    """The reference's answers; nothing where none are given."""
    return rows_in(RowSource(data=stage.values, stream=_STREAM, match="own")) if stage.values else ()


def _values(stage: OfflineReinforce, rows: tuple[RewardedRow, ...]) -> NDArray[np.float64]:
    """``[N]`` what the reference is paid at each row's question."""
    told = _reference_rows(stage) or rows
    at: dict[str, list[float]] = {}
    for row in told:
        at.setdefault(row.question, []).append(row.reward or 0.0)
    every = float(np.mean([r for of in at.values() for r in of]))
    return np.array([float(np.mean(at[row.question])) if row.question in at else every for row in rows], np.float64)


def _advantages(stage: OfflineReinforce, rows: tuple[RewardedRow, ...]) -> NDArray[np.float64]:
    return np.array([row.reward or 0.0 for row in rows], np.float64) - _values(stage, rows)
