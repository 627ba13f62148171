"""The special tokens that a tokenizer puts around plain text, read from its post-processor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tokenizers import Tokenizer

from assay.core.errors import ConfigError

__all__ = ["SpecialTokens", "special_tokens_of"]

_Ids = tuple[tuple[int, ...], tuple[int, ...]]
_OFFSETS_ONLY = ("ByteLevel",)
"""Kinds of post-processors that change offsets alone."""


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids around the ids of one plain text, as ``tokenizer(text)`` of transformers writes them.

    Attributes:
        before: what stands in front of them: a ``<s>``, or GLM's ``[gMASK]<sop>``.
        after: what stands behind them, such as an end of text.
        before_text, after_text: both as texts.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    before_text: str = ""
    after_text: str = ""


def special_tokens_of(tokenizer: Tokenizer) -> SpecialTokens:
    """What a tokenizer adds to a single text.

    Raises:
        ConfigError: its post-processor is of a kind that is not known here, or writes the text twice, or several add tokens.

    >>> from tokenizers import Tokenizer, models, processors
    >>> tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "a": 1}))
    >>> tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    >>> special_tokens_of(tokenizer)
    SpecialTokens(before=(0,), after=(), before_text='<s>', after_text='')
    """
    processor = cast(Any, tokenizer).post_processor
    if processor is None:
        return SpecialTokens()
    before, after = _read(json.loads(processor.__getstate__()))
    texts = ("".join(tokenizer.id_to_token(i) or "" for i in ids) for ids in (before, after))
    return SpecialTokens(before, after, *texts)


def _read(plan: Mapping[str, Any]) -> _Ids:
    """Ids in front of a text and behind it."""
    kind = plan["type"]
    if kind == "TemplateProcessing":
        return _of_template(plan)
    if kind in ("BertProcessing", "RobertaProcessing"):
        return (int(plan["cls"][1]),), (int(plan["sep"][1]),)
    if kind == "Sequence":
        inner = [found for found in map(_read, cast("Sequence[Mapping[str, Any]]", plan["processors"])) if any(found)]
        if len(inner) > 1:
            raise ConfigError(f"tokenizer.json: {len(inner)} post-processors add special tokens; write one TemplateProcessing")
        return inner[0] if inner else ((), ())
    if kind in _OFFSETS_ONLY:
        return (), ()
    raise ConfigError(f"tokenizer.json: a post-processor of type {kind!r} is not known here; use TemplateProcessing")


def _of_template(plan: Mapping[str, Any]) -> _Ids:
    ids: Mapping[str, Any] = plan["special_tokens"]
    sides: list[list[int]] = [[]]
    for piece in cast("Sequence[Mapping[str, Any]]", plan["single"]):
        if "Sequence" in piece:
            sides.append([])
        else:
            sides[-1] += map(int, ids[piece["SpecialToken"]["id"]]["ids"])
    if len(sides) != 2:
        raise ConfigError(
            f"tokenizer.json: its post-processor writes a text {len(sides) - 1} times; mend 'single' of its TemplateProcessing"
        )
    return tuple(sides[0]), tuple(sides[1])
