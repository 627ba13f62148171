"""Questions that are the same but for case, white space and the punctuation of sentences."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.curate.step import Chunk, Decision, SetStep, StepNotes

__all__ = ["Exact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(SetStep):
    """Of rows with one and the same question, one is kept: that whose content has the least digest.

    So the choice does not depend on the order of the rows. Questions are the same where case, white space and the punctuation of
    sentences alone differ: "What is 10+16?" and "what is 10 + 16 ?". Numbers, signs, operators, brackets and LaTeX count.
    Sameness is that of 128-bit digests.

    Attributes:
        conflicts: what happens to rows that ask the same and disagree in their gold: ``"keep"`` one of them, as of others, or
            ``"drop"`` all, since at least one of the golds is wrong.

    Raises:
        ConfigError: another word for ``conflicts``.
    """

    conflicts: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        if self.conflicts not in ("keep", "drop"):
            raise ConfigError(f"Exact.conflicts={self.conflicts!r}; use 'keep' or 'drop'")

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """Digests of questions and golds."""
        golds = [_gold_bytes(row.gold) for row in chunk.rows]
        return {
            "key": digests([_question(t).encode("utf-8", "surrogatepass") for t in chunk.texts.normal]),
            "gold": digests(golds)[:, 0],
        }

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """All but the first of each group, by content."""
        key, gold = seen.column("key"), seen.column("gold")
        order = np.lexsort((seen.rank, key[:, 1], key[:, 0]))
        order = order[seen.alive[order]]
        new = np.ones(len(order), np.bool_)
        new[1:] = (key[order[1:]] != key[order[:-1]]).any(1)
        group = np.cumsum(new) - 1
        first = order[np.flatnonzero(new)][group]
        differ = gold[order] != gold[first]
        torn = np.zeros(len(order), np.bool_)
        if self.conflicts == "drop":
            torn = (np.bincount(group, differ) > 0)[group] if len(order) else torn
        same = ~new & ~torn
        answers = {"answers_differ": differ[same]}
        found = [Decision("duplicate", seen.positions[order[same]], seen.positions[first[same]], answers)]
        if torn.any():
            found.append(Decision("answers differ", seen.positions[order[torn]], seen.positions[first[torn]]))
        return found


def digests(contents: Sequence[bytes]) -> NDArray[np.uint64]:
    """128 bits of blake2b of each ``[n, 2]``."""
    joined = b"".join(hashlib.blake2b(content, digest_size=16).digest() for content in contents)
    return np.frombuffer(joined, ">u8").astype(np.uint64).reshape(-1, 2)


def _gold_bytes(gold: Any) -> bytes:
    """A gold as bytes; text without its outer spaces."""
    return gold.strip().encode("utf-8", "surrogatepass") if isinstance(gold, str) else json.dumps(gold, sort_keys=True).encode()


_LAST_MARK = re.compile(r"(?<![.?:])\s*[?.:。？：]$|(?<=[^\W\d_]{2})!$")
_INNER_MARK = re.compile(r"(?<=[^\W\d_]{2})[,;:.?]+(?= )")
"""After a word of two letters or more: ``n!``, ``1,2`` and ``a ? b`` are parts of a question."""
_SPACED = re.compile(r"(?<=[\d)\]}]|\b[a-z]) ([+*/=<>^-]|[<>!=]=) (?=[\d(\[{\\.-]|[a-z]\b)|(?<=[\d)\]}]|\b[a-z]) (=)$")
"""An operator with spaces on both sides: with one alone it may be the sign of a number, as in ``1 -2``."""
_LOOSE_SPACE = re.compile(r" (?=[,;](?: |$))|(?<=[^\W\d_]{2}) (?=[?](?: |$))|(?<=[(\[{]) (?=[\w-])|(?<=\w) (?=[)\]}])")


def _question(normal: str) -> str:
    """A normalised question without spaces around operators and marks, and without the punctuation of its sentences."""
    text = _INNER_MARK.sub("", _LAST_MARK.sub("", _LOOSE_SPACE.sub("", normal)))
    return _SPACED.sub(lambda found: found[1] or found[2], text) or normal
