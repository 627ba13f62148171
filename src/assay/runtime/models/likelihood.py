"""A model that reads texts: how likely each token is, and how sure the model was there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.errors import DataError
from assay.core.rollout import Ids
from assay.runtime.kernels.typed import array_of, tensor_of
from assay.runtime.learner.anchor_models import decoder_of
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.models.any_model import AnyModel

__all__ = ["LikelihoodReader", "TextLikelihood"]


@dataclass(frozen=True, slots=True, eq=False)
class TextLikelihood:
    """What a model says of one text, at temperature 1, in nats.

    Attributes:
        logp: ``[tokens - 1]`` log-probability of each token given those before it, from the second one on.
        entropy: ``[tokens - 1]`` entropy of the distribution that each was drawn from.
    """

    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]


class LikelihoodReader:
    """Reads texts without changing the model: assay's own decoder or any of transformers, with its adapter.

    Args:
        model: its weights are copied.
        most: tokens that pass through it together.

    Raises:
        ConfigError: a model that no learner could train, because it keeps no row apart; says why.

    >>> from assay.runtime import DecoderShape, char_tokenizer, init_model
    >>> model = init_model(DecoderShape(vocab_size=14), char_tokenizer("0123456789"), seed=0)
    >>> [len(found.logp) for found in LikelihoodReader(model).read([model.tokenizer.encode("123"), model.tokenizer.encode("45")])]
    [2, 1]
    """

    def __init__(self, model: AnyModel, most: int = 8192) -> None:
        self._decoder = decoder_of(model)
        self._decoder.requires_grad_(False)
        self._most = most

    def read(self, rows: Sequence[Ids]) -> list[TextLikelihood]:
        """Each text by itself, in their order.

        Args:
            rows: ``[tokens]`` each, two or more.

        Raises:
            DataError: a text of less than two tokens, of more than the model has positions, or of unknown ids.
        """
        shape = self._decoder.shape
        for number, row in enumerate(rows):
            if not 2 <= len(row) <= shape.max_positions:
                raise DataError(f"text {number} has {len(row)} tokens; the model reads 2 to {shape.max_positions}")
            if int(row.min()) < 0 or int(row.max()) >= shape.vocab_size:
                raise DataError(f"text {number} has ids from {row.min()} to {row.max()}, the vocabulary {shape.vocab_size}")
        found: list[TextLikelihood] = []
        start = 0
        while start < len(rows):
            stop, tokens = start + 1, len(rows[start])
            while stop < len(rows) and tokens + len(rows[stop]) <= self._most:
                tokens += len(rows[stop])
                stop += 1
            found += self._together(rows[start:stop])
            start = stop
        return found

    def _together(self, rows: Sequence[Ids]) -> list[TextLikelihood]:
        offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        where = np.setdiff1d(np.arange(offsets[-1], dtype=np.int64), offsets[:-1])
        device = self._decoder.device
        ids, at = (tensor_of(part).to(device) for part in (np.concatenate(rows).astype(np.int64), where))
        with torch.no_grad():
            logp, entropy = map(array_of, self._decoder.columns(ids, pack_offsets(offsets).to(device), at, entropy=True))
        entropy = np.maximum(entropy, 0.0)  # a certain token may have one of -1e-9
        cuts = (offsets - np.arange(len(offsets)))[1:-1]  # each row has one place less than it has tokens
        return [TextLikelihood(a, b) for a, b in zip(np.split(logp, cuts), np.split(entropy, cuts), strict=True)]
