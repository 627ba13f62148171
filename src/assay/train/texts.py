"""The stage of plain texts: the language-model objective over documents, for mid-training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError, DataError
from assay.core.fields import check_positive, later
from assay.core.protocols import BeginsTexts, Tokenizer
from assay.core.rollout import Ids, ids_of
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.objective.methods import nll
from assay.objective.objective import Objective
from assay.runtime.settings import LearnerSettings
from assay.train.char_coverage import spelling_of
from assay.train.data import rows_of
from assay.train.given_checks import DEMONSTRATED, check_imitation
from assay.train.method_names import refuse_name
from assay.train.offline_rows import OfflineRows, in_order, short
from assay.train.stage_rows import StageRows, TokenCounts
from assay.train.until import Until

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["TextRows", "Texts", "texts_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts(OfflineRows):
    """A stage on plain texts: every token is predicted from those before it (mid-training, continued pre-training).

    A text stands between what the tokenizer puts in front of one (``bos_token``, where it has one) and its end token.

    Attributes:
        data: a file of rows (JSON lines, CSV, Parquet), a folder of them, ``hub:OWNER/NAME@REVISION:FILES``, or the rows
            themselves, each with its text under ``text``. A file is read when the run begins and when it is resumed, and must
            stay as it is until the run has ended.
        steps: optimiser steps.
        batch: rows per step. They are walked in a seeded order, anew each epoch.
        max_tokens: longest row.
        packed: put the texts of an epoch, in their order, behind one another and cut that into rows of ``max_tokens``: no token
            of an epoch is left out, and none is padding. A row's tokens see the texts before them in the row. Where False each
            text is a row of its own, and a longer one several.
        objective, learner: what is minimised, and how.
        until: early end, by an evaluation; None runs all steps.

    >>> Texts(data=[{"text": "To be, or not to be."}], steps=10, batch=1, max_tokens=16).updates
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    steps: int = 100
    batch: int = 8
    max_tokens: int = 1024
    packed: bool = True
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    until: Until | None = later(None)

    def __post_init__(self) -> None:
        refuse_name(self)
        check_positive(self, "steps", "batch")
        if self.max_tokens < 2:
            raise ConfigError(
                f"Texts.max_tokens={self.max_tokens}; use at least 2: the first token of a row has nothing before it"
            )
        self.settle()

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "texts"

    def rows(self, run: Run, tokenizer: Tokenizer) -> TextRows:
        """The texts, in tokens."""
        return TextRows(self, tokenizer, run.seed)

    def check(self, run: Run) -> None:
        """Looks at the objective and at the texts."""
        check_imitation(self)
        texts_of(self)

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> TokenCounts:
        """Looks at every text, and whether rows fit the model and are enough for a batch."""
        if self.max_tokens > context:
            raise ConfigError(f"Texts.max_tokens={self.max_tokens}, but the model's context holds {context} tokens; lower it")
        missing_in = spelling_of(tokenizer)
        for place, text in texts_of(self):
            if missing := missing_in(text):
                raise DataError(
                    f"{place}, {short(text)}: the model's tokenizer lacks {', '.join(map(repr, missing))}, so it would learn to "
                    "write something else: use a model that has them (Scratch.alphabet), or leave the row out"
                )
        rows = self.rows(run, tokenizer)
        if self.batch > rows.count:
            raise ConfigError(
                f"Texts.batch={self.batch}, but the texts make {rows.count} rows of up to {self.max_tokens} tokens; use at most "
                "so many, or a smaller max_tokens"
            )
        return TokenCounts(rows.tokens, rows.learned)

    def training_texts(self) -> Sequence[tuple[str, str]]:
        """All of them."""
        return texts_of(self)

    def count_rows(self, run: Run) -> StageRows:
        """The texts, counted."""
        return StageRows(step=self.batch, pool=len(texts_of(self)), what="texts", batch=0 if self.packed else self.batch)


class TextRows:
    """The texts of a stage as batches of rows: row ``i`` of the walk is a pure function of the seed and ``i``.

    Args:
        stage: settings.
        tokenizer: of the model.
        seed: of the run.

    Attributes:
        count: rows of an epoch.
        tokens, learned: tokens of an epoch, ends included, and those that carry loss: all but the first of each row.

    Raises:
        ConfigError, DataError: as `texts_of`.
    """

    def __init__(self, stage: Texts, tokenizer: Tokenizer, seed: int) -> None:
        self._stage, self._seed = stage, seed
        front = tokenizer.bos_ids if isinstance(tokenizer, BeginsTexts) else ()
        self._texts: list[Ids] = [ids_of([*front, *tokenizer.encode(text), tokenizer.eos]) for _, text in texts_of(stage)]
        self.tokens = sum(map(len, self._texts))
        most = stage.max_tokens
        if stage.packed:
            # A last row of one token would have nothing to predict: it is left out.
            self.count = self.tokens // most + (self.tokens % most > 1)
            self.learned = min(self.tokens, self.count * most) - self.count
            self._epoch = lru_cache(maxsize=2)(self._order_tokens)
        else:
            self._pieces = [(i, at) for i, ids in enumerate(self._texts) for at in range(0, len(ids) - 1, most)]
            self.count = len(self._pieces)
            self.learned = sum(len(self._piece(place)) - 1 for place in self._pieces)

    def batch(self, step: int) -> Batch:
        """The rows of one step."""
        size = self._stage.batch
        wanted = range(step * size, (step + 1) * size)
        found = map(self._pack_row, wanted) if self._stage.packed else map(self._piece, self._walk(wanted))
        samples = [_sample(f"texts/{i}", ids) for i, ids in zip(wanted, found, strict=True)]
        return pack_rows(list(enumerate(samples)), {"group": np.arange(size)})

    def _walk(self, wanted: range) -> Iterator[tuple[int, int]]:
        return (self._pieces[i] for i in in_order("texts", self._seed, self.count, wanted))

    def _piece(self, place: tuple[int, int]) -> Ids:
        text, at = place
        return self._texts[text][at : at + self._stage.max_tokens]

    def _pack_row(self, number: int) -> Ids:
        epoch, row = divmod(number, self.count)
        most = self._stage.max_tokens
        return self._epoch(epoch)[row * most : (row + 1) * most]

    def _order_tokens(self, epoch: int) -> Ids:
        """All tokens of an epoch, text behind text in its order."""
        order: list[int] = generator("texts", self._seed, "epoch", epoch).permutation(len(self._texts)).tolist()
        return ids_of(np.concatenate([self._texts[i] for i in order]))


def texts_of(stage: Texts) -> tuple[tuple[str, str], ...]:
    """Places and texts of a stage's rows.

    Raises:
        ConfigError: no data.
        DataError: a row without a text, or with an empty one; names it.
    """
    return tuple((place, _text(place, row)) for place, row in rows_of(stage))


def _text(place: str, row: Mapping[str, Any]) -> str:
    text: Any = row.get("text")
    if not isinstance(text, str) or not text.strip():
        said = f"has the fields {', '.join(sorted(row)) or 'none'}" if text is None else f"has {text!r:.60} for a text"
        raise DataError(f"{place} {said}; give each row its text under 'text', and leave empty ones out")
    return text


def _sample(name: str, ids: Ids) -> Sample:
    """A row all of whose tokens but the first carry loss."""
    mask = np.arange(len(ids)) > 0
    return Sample(rollout=name, ids=ids, mask=mask, stream=DEMONSTRATED)
