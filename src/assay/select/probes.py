"""Probes of a model in a folder, for the steps of curation that read measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.rollout import ids_of
from assay.core.seeds import generator
from assay.curate import Row, donod
from assay.train.models import model_folder

if TYPE_CHECKING:
    from assay.runtime.models.features import Prober
    from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["GradientProbe", "UpdateProbe", "VectorProbe"]


@dataclass(frozen=True, kw_only=True)
class _ModelProbe:
    """A model that reads questions as plain text.

    Attributes:
        model: folder of any causal language model in Hugging Face format, also one with an adapter, or a run folder.
        before: text in front of every question, such as a system prompt.
        block: weight of the last layer whose gradients are taken; None: the last matrix of its MLP.
    """

    model: Path
    before: str = ""
    block: str | None = None

    @cached_property
    def _loaded(self) -> tuple[Prober, HubTokenizer]:
        from assay.runtime import load_model
        from assay.runtime.models.features import Prober

        found = load_model(model_folder(self.model))
        return Prober(found, self.block), found.tokenizer

    def _gradient(self, row: Row) -> tuple[NDArray[np.float64], int] | None:
        """Of the gold's log-likelihood, with the gold's number of tokens; None for a row whose gold is no text."""
        if not isinstance(row.gold, str) or not row.gold:
            return None
        prober, tokenizer = self._loaded
        prompt = ids_of([*tokenizer.bos_ids, *tokenizer.encode(self.before + row.question)])
        answer = tokenizer.encode(row.gold)
        return prober.gradient(prompt, answer).astype(np.float64), len(answer)


@dataclass(frozen=True, kw_only=True)
class VectorProbe(_ModelProbe):
    """Token vectors for `assay.curate.AngleOrder`: what enters the last layer's MLP, of the question and of what is before it."""

    def __call__(self, rows: Sequence[Row]) -> list[Mapping[str, Any] | None]:
        """Vectors of each row."""
        prober, tokenizer = self._loaded
        begin, before = tokenizer.bos_ids, tokenizer.encode(self.before)
        a, b = len(begin), len(begin) + len(before)
        found: list[Mapping[str, Any] | None] = []
        for row in rows:
            vectors = prober.vectors(ids_of([*begin, *before, *tokenizer.encode(row.question)]))
            found.append({"before": vectors[a:b], "question": vectors[b:]})
        return found


@dataclass(frozen=True, kw_only=True)
class UpdateProbe(_ModelProbe):
    """Norms for `assay.curate.Donod`: what one step of gradient descent on a row alone does to the block.

    The step follows the mean negative log-likelihood of the gold's tokens. Rows whose gold is no text have no measurement.

    Attributes:
        rate: size of the step.

    Raises:
        ConfigError: a rate that is not positive.
    """

    rate: float = 1e-3

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ConfigError(f"UpdateProbe.rate={self.rate}; use more than 0")

    def __call__(self, rows: Sequence[Row]) -> list[Mapping[str, Any] | None]:
        """Norms of each row."""
        weight = self._loaded[0].weight.astype(np.float64)
        found: list[Mapping[str, Any] | None] = []
        for row in rows:
            gradient = self._gradient(row)
            don, nod = (0.0, 0.0) if gradient is None else donod(weight, weight + self.rate * gradient[0] / gradient[1])
            found.append(None if gradient is None else {"don": don, "nod": nod})
        return found


@dataclass(frozen=True, kw_only=True)
class GradientProbe(_ModelProbe):
    """Gradients for `assay.curate.Influential`: of the gold's log-likelihood by the block, projected to a few random directions.

    Products of projected gradients are those of the whole ones in the mean over directions. Rows whose gold is no text have no
    measurement. `entries` measures validation items for a file.

    Attributes:
        width: directions.
        seed: of the directions.

    Raises:
        ConfigError: no directions.
    """

    width: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ConfigError(f"GradientProbe.width={self.width}; use 1 or more")

    @cached_property
    def _directions(self) -> NDArray[np.int8]:
        """``[width, size of the block]`` of -1 and 1."""
        size = self._loaded[0].weight.size
        return generator("curate/directions", self.seed).integers(0, 2, (self.width, size), dtype=np.int8) * 2 - 1

    def __call__(self, rows: Sequence[Row]) -> list[Mapping[str, Any] | None]:
        """The projected gradient of each row."""
        found: list[Mapping[str, Any] | None] = []
        for row in rows:
            gradient = self._gradient(row)
            found.append(None if gradient is None else {"gradient": self._project_gradient(gradient[0])})
        return found

    def entries(self, rows: Sequence[Row]) -> list[dict[str, list[float]]]:
        """The measurements of validation items as JSON values, a line each of a file for `assay.curate.Influential.validation`.

        Raises:
            DataError: an item whose gold is no text.
        """
        measured = self(rows)
        missing = [row.id for row, entry in zip(rows, measured, strict=True) if entry is None]
        if missing:
            raise DataError(f"validation item {missing[0]} has no gold text; its likelihood has no gradient")
        return [{"gradient": entry["gradient"].tolist()} for entry in measured if entry is not None]

    def _project_gradient(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        flat = gradient.reshape(-1)
        return np.array([direction @ flat for direction in self._directions]) / np.sqrt(self.width)
