"""Which characters of a text a model could never write."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from unicodedata import normalize

from assay.core.errors import DataError
from assay.core.protocols import Tokenizer

__all__ = ["spelling_of"]


def spelling_of(tokenizer: Tokenizer) -> Callable[[str], list[str]]:
    """A function from a text to those of its characters, white space aside, that do not come back from the tokenizer.

    A tokenizer that knows no such character may refuse it, leave it out, or write another one for all it does not know.
    """

    @cache
    def lacking(character: str) -> bool:
        try:
            spelled = normalize("NFKC", tokenizer.decode(tokenizer.encode(character)))
        except DataError:
            return True
        return not character.isspace() and normalize("NFKC", character) not in spelled

    def missing(text: str) -> list[str]:
        return [c for c in dict.fromkeys(text) if lacking(c)]

    return missing
