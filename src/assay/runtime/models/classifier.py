"""A sequence-classification model of transformers at work: one number for a conversation, as preference reward models give it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch

from assay.core.errors import ConfigError
from assay.core.task import Message

__all__ = ["SequenceClassifier"]


class SequenceClassifier:
    """A model with one output, in inference mode. Rows of equal length are run together, so that nothing is padded and a score
    does not depend on what else is scored.

    Args:
        folder: model and tokenizer in Hugging Face format, such as a ``LlamaForSequenceClassification``.
        device: ``auto``, ``cpu``, ``cuda``, ...
        batch: most rows at once.
        max_tokens: most tokens of a row; what is more is cut off in front.

    Raises:
        ConfigError: the folder holds no such model, or one with several outputs.
    """

    def __init__(self, folder: Path, device: str = "auto", batch: int = 16, max_tokens: int = 4096) -> None:
        from transformers import AutoModelForSequenceClassification

        from assay.runtime.models.hub_files import quietly
        from assay.runtime.text.transformers_ids import auto_tokenizer

        where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        try:
            self._tokenizer: Any = auto_tokenizer(folder)
            with quietly():
                made: Any = cast(Any, AutoModelForSequenceClassification).from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"{folder} holds no sequence-classification model with its tokenizer: {error}") from error
        if made.config.num_labels != 1:
            raise ConfigError(f"{folder} gives {made.config.num_labels} numbers; a reward model has one output (num_labels=1)")
        self._model: Any = made.to(where).eval()
        self._device, self._batch, self._most = where, batch, max_tokens

    def scores(self, conversations: Sequence[Sequence[Message]]) -> list[float]:
        """One number per conversation, raw.

        Args:
            conversations: the last turn is what is scored. With the tokenizer's chat template where it has one, else the contents
                behind one another.
        """
        rows = [self._ids(messages) for messages in conversations]
        out = [0.0] * len(rows)
        order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
        start = 0
        while start < len(order):
            size = len(rows[order[start]])
            part = [n for n in order[start : start + self._batch] if len(rows[n]) == size]
            ids = torch.tensor([rows[n] for n in part], device=self._device)
            with torch.inference_mode():
                found = self._model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
            for n, value in zip(part, found[:, 0].float().tolist(), strict=True):
                out[n] = value
            start += len(part)
        return out

    def _ids(self, messages: Sequence[Message]) -> list[int]:
        if getattr(self._tokenizer, "chat_template", None):
            turns = [{"role": m.role, "content": m.content} for m in messages]
            ids: Any = self._tokenizer.apply_chat_template(turns, tokenize=True, return_dict=False)
        else:
            ids = self._tokenizer("".join(m.content for m in messages))["input_ids"]
        return [int(i) for i in ids][-self._most :] or [0]
