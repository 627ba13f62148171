"""What two texts have in common: normalised words, and hashes of runs of them, for thousands of texts at once.

Hashes only propose: whatever is dropped for likeness has first been compared word by word.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, MissingExtraError

__all__ = [
    "HashedTexts",
    "among",
    "bands_for",
    "distinct",
    "jaccard",
    "normal",
    "numbers",
    "own_similarity",
    "runs",
    "shingles",
    "sketch_library",
    "sorted_unique",
    "table_mask",
    "windows",
    "words_differ",
]

U64 = NDArray[np.uint64]
Index = NDArray[np.int64]

_R = 0x9E3779B97F4A7C15 | 1
_RADIX = np.uint64(_R)
_INVERSE = np.uint64(pow(_R, -1, 1 << 64))
_STEP = np.uint64(0xD6E8FEB86659FD93)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SLOTS = 64
"""MinHash values per text."""
_NUMBER = re.compile(r"\d+")
_MISS = 1e-3
"""Largest probability with which bands may overlook a pair at the threshold."""
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
"""Scripts that are written without spaces: each of their characters counts as a word."""


def normal(text: str) -> str:
    r"""A text as it is compared: composed (NFC), lower-case, words separated by one space.

    Characters of scripts that have no spaces between words become words of their own.

    >>> normal("  What is\n 2 + 2 ? "), normal("1加2")
    ('what is 2 + 2 ?', '1 加 2')
    """
    if not text.isascii():
        text = _WIDE.sub(r" \g<0> ", unicodedata.normalize("NFC", text))
    return " ".join(text.lower().split())


def numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text, sorted: questions made from one pattern differ in them.

    >>> numbers("12 + 7 and 7")
    ('12', '7', '7')
    """
    return tuple(sorted(_NUMBER.findall(text)))


def words_differ(a: str, b: str) -> bool:
    """Whether two normalised texts of one pattern ask different things: between what both begin and what both end with, each has
    words of its own, and the two have less than half of them in common. A word put in or left out is no difference.

    >>> words_differ("spell cat backwards", "spell horse backwards"), words_differ("spell cat", "spell cat please")
    (True, False)
    """
    mine, its = a.split(" "), b.split(" ")
    size = min(len(mine), len(its))
    begin = next((i for i in range(size) if mine[i] != its[i]), size)
    end = next((i for i in range(size - begin) if mine[-1 - i] != its[-1 - i]), size - begin)
    one, other = frozenset(mine[begin : len(mine) - end]), frozenset(its[begin : len(its) - end])
    return bool(one) and bool(other) and jaccard(one, other) < 0.5


def runs(text: str, n: int) -> list[str]:
    """Every run of ``n`` words of a normalised text, in order; none where it has fewer.

    >>> runs("a b c", 2)
    ['a b', 'b c']
    """
    words = text.split(" ")
    return [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]


def shingles(text: str, k: int) -> frozenset[str]:
    """The set of runs of ``k`` words of a normalised text; of a shorter one, the text itself.

    >>> sorted(shingles("a b a b", 2)), sorted(shingles("a", 2))
    (['a b', 'b a'], ['a'])
    """
    return frozenset(runs(text, k)) or frozenset((text,))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Size of the intersection over the size of the union.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    both = len(a & b)
    return both / (len(a) + len(b) - both)


def own_similarity(a: frozenset[str], b: frozenset[str], common: frozenset[str]) -> float:
    """Jaccard similarity of two sets of shingles, common ones left out that both have: a template's, and no text's own.

    The more are common the less alike two texts are, and never more than `jaccard` says.

    >>> own_similarity(frozenset("abcd"), frozenset("abce"), frozenset()), own_similarity(
    ...     frozenset("abcd"), frozenset("abce"), frozenset("ab")
    ... )
    (0.6, 0.3333333333333333)
    """
    both = a & b
    told = sum(shingle in common for shingle in both) if common else 0
    either = len(a) + len(b) - len(both) - told
    return (len(both) - told) / either if either else 1.0


def bands_for(threshold: float, slots: int = _SLOTS) -> tuple[int, int]:
    """How many bands of how many MinHash values find a pair at ``threshold`` with probability of at least 0.999.

    The widest bands that do, since wide ones propose fewer pairs in vain; bands of one value where none does.

    Returns:
        (bands, values in each).

    >>> bands_for(0.8), bands_for(0.5)
    ((16, 4), (32, 2))
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"a similarity threshold of {threshold}; use a share in (0, 1]")
    wide = [r for r in range(1, slots + 1) if (1 - threshold**r) ** (slots // r) <= _MISS]
    rows = max(wide, default=1)
    return slots // rows, rows


_AT_ONCE = 256
"""Texts whose words are hashed together: few enough for a processor's cache."""
_NO_HASH = np.empty(0, np.uint64)


def _hashed_words(texts: Sequence[str]) -> tuple[U64, Index]:
    """A hash of each word of some texts, and how many words have ended with each text."""
    data = np.frombuffer(("\n".join(texts) + "\n").encode("utf-8", "surrogatepass"), np.uint8)
    line_ends = data == 10
    ends = np.flatnonzero(line_ends | (data == 32))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    sums, inverse = _sums(data)
    with np.errstate(over="ignore"):
        hashes = _mix_bits((sums[ends] - sums[starts]) * inverse[starts])
    return hashes, np.flatnonzero(line_ends[ends]) + 1


class HashedTexts:
    """Normalised texts with the hashes of their words, computed for all of them together.

    Args:
        normal: texts as `normal` gives them.

    >>> texts = HashedTexts([normal("One two THREE"), normal("one  two four")])
    >>> hashes, rows, first = texts.runs(2)
    >>> rows.tolist(), first.tolist(), bool(hashes[0] == hashes[2])
    ([0, 0, 1, 1], [0, 1, 0, 1], True)
    """

    def __init__(self, normal: Sequence[str]) -> None:
        self.normal = normal
        self._bands: dict[tuple[int, float], U64] = {}
        self._shingles: dict[int, tuple[U64, Index, Index]] = {}

    def __len__(self) -> int:
        return len(self.normal)

    @cached_property
    def _words(self) -> tuple[U64, Index]:
        """A hash of each word, and where in it each text begins ``[n + 1]``."""
        blocks = [_hashed_words(self.normal[at : at + _AT_ONCE]) for at in range(0, len(self.normal), _AT_ONCE)]
        before = np.cumsum([0, *(len(hashes) for hashes, _ in blocks)])
        ends = [last + first for (_, last), first in zip(blocks, before, strict=False)]
        return np.concatenate([_NO_HASH, *(hashes for hashes, _ in blocks)]), np.concatenate([np.zeros(1, np.int64), *ends])

    def _from(self, index: Index, stop: Index, n: int) -> U64:
        """Hashes of the words from ``index`` on, ``n`` of them or up to ``stop``."""
        words, _ = self._words
        found = np.zeros(len(index), np.uint64)
        with np.errstate(over="ignore"):
            for k in range(n):
                there = index + k
                inside = there < stop
                of = words[there] if inside.all() else np.where(inside, words[np.where(inside, there, 0)], np.uint64(0))
                found = found * _STEP + of
            return _mix_bits(found)

    def _spread(self, counts: Index) -> tuple[Index, Index]:
        """For ``counts`` things in each text: whose each is, and its number in its text."""
        rows = np.repeat(np.arange(len(self), dtype=np.int64), counts)
        before = np.cumsum(counts) - counts
        return rows, np.arange(len(rows), dtype=np.int64) - before[rows]

    def runs(self, n: int) -> tuple[U64, Index, Index]:
        """Every run of ``n`` words.

        Returns:
            its hash, the text that it stands in, and the number of its first word there; each ``[runs]``.
        """
        _, begin = self._words
        rows, first = self._spread(np.maximum(np.diff(begin) - n + 1, 0))
        return self._from(begin[rows] + first, begin[rows + 1], n), rows, first

    def shingles(self, k: int) -> tuple[U64, Index, Index]:
        """Every run of ``k`` words; of a shorter text, all of its words.

        Returns:
            its hash, the text that it stands in, and the number of its first word there; each ``[shingles]``.
        """
        if k not in self._shingles:
            _, begin = self._words
            rows, first = self._spread(np.maximum(np.diff(begin) - k + 1, 1))
            self._shingles[k] = self._from(begin[rows] + first, begin[rows + 1], k), rows, first
        return self._shingles[k]

    def bands(self, k: int, threshold: float, without: U64 | None = None) -> U64:
        """MinHash values of the sets of ``k``-word shingles, hashed by band: texts that share one may be alike.

        Args:
            k: words in a shingle.
            threshold: similarity at which two texts have to share a band.
            without: hashes of shingles that are left out, sorted; where a text has no others, none is.

        Returns:
            ``[n, bands]``, as many as `bands_for` says.

        Raises:
            MissingExtraError: the MinHash library is not installed.
        """
        if without is not None and len(without):
            return self._band_hashes(k, threshold, without)
        if (k, threshold) not in self._bands:
            self._bands[k, threshold] = self._band_hashes(k, threshold, np.empty(0, np.uint64))
        return self._bands[k, threshold]

    def _band_hashes(self, k: int, threshold: float, without: U64) -> U64:
        bands, width = bands_for(threshold)
        hashes, rows, _ = self.shingles(k)
        own = ~among(without, hashes)
        own |= np.bincount(rows[own], minlength=len(self))[rows] == 0
        counts = np.bincount(rows[own], minlength=len(self))
        values = _sketches(hashes[own], np.concatenate([[0], np.cumsum(counts)]))
        found = np.empty((len(self), bands), np.uint64)
        with np.errstate(over="ignore"):
            for band in range(bands):
                key = np.full(len(self), np.uint64(band))
                for slot in range(band * width, (band + 1) * width):
                    key = _mix_bits(key * _STEP + values[:, slot])
                found[:, band] = key
        return found


def windows(data: NDArray[np.uint8], sizes: Index, k: int) -> tuple[U64, Index, Index]:
    """Every piece of ``k`` bytes of texts that stand one after another.

    Args:
        data: the texts' bytes.
        sizes: bytes of each text ``[n]``.
        k: bytes of a piece.

    Returns:
        hash, number of its text, and first byte in it, of each piece.
    """
    ends = np.cumsum(sizes)
    counts = np.maximum(sizes - k + 1, 0)
    rows = np.repeat(np.arange(len(sizes), dtype=np.int64), counts)
    places = np.arange(len(rows), dtype=np.int64) - (np.cumsum(counts) - counts)[rows]
    begin = (ends - sizes)[rows] + places
    sums, inverse = _sums(data)
    with np.errstate(over="ignore"):
        return _mix_bits((sums[begin + k] - sums[begin]) * inverse[begin]), rows, places


def table_mask(entries: int) -> np.uint64:
    """The low bits that tell so many hashes apart well enough in a table: 2 ** 24 places at most."""
    return np.uint64((1 << min(24, max(10, entries.bit_length() + 2))) - 1)


def among(ascending: U64, hashes: U64) -> NDArray[np.bool_]:
    """Which hashes stand in a sorted list.

    >>> among(np.array([1, 5], np.uint64), np.array([5, 2], np.uint64)).tolist()
    [True, False]
    """
    if not len(ascending):
        return np.zeros(len(hashes), np.bool_)
    return ascending[np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)] == hashes


def distinct(rows: Index, hashes: U64) -> tuple[Index, U64]:
    """Each hash once for each row that has it, by rows.

    >>> [column.tolist() for column in distinct(np.array([1, 0, 1]), np.array([7, 7, 7], np.uint64))]
    [[0, 1], [7, 7]]
    """
    order = np.lexsort((hashes, rows))
    rows, hashes = rows[order], hashes[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (rows[1:] != rows[:-1]) | (hashes[1:] != hashes[:-1])
    return rows[new], hashes[new]


def _sums(data: NDArray[np.uint8]) -> tuple[U64, U64]:
    """Running sums of bytes times powers of a radix, and the inverse powers: what a piece's hash is made of."""
    power, inverse = _powers(len(data) + 1)
    sums = np.zeros(len(data) + 1, np.uint64)
    with np.errstate(over="ignore"):
        np.cumsum((data.astype(np.uint64) + np.uint64(1)) * power[:-1], out=sums[1:])
    return sums, inverse


def sketch_library() -> Any:
    """The library of MinHash values.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("rensa")
    except ImportError:
        raise MissingExtraError("rensa", "curate") from None


def _sketches(hashes: U64, offsets: Index) -> U64:
    """MinHash values ``[n, 64]`` of the sets of hashes between offsets ``[n + 1]``."""
    if len(offsets) == 1:
        return np.empty((0, _SLOTS), np.uint64)  # the library refuses an empty table
    # it hands its values out as lists: slower than the sketch itself, and still a few microseconds for each text
    matrix = sketch_library().RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets.astype(np.uint64), _SLOTS, 1)
    return np.array(matrix.to_rows(), np.uint64)


def _mix_bits(x: U64) -> U64:
    """Every bit of the input spread over every bit of the output."""
    x = (x ^ (x >> np.uint64(31))) * _MIX
    return x ^ (x >> np.uint64(29))


_known: tuple[U64, U64] = (np.ones(1, np.uint64), np.ones(1, np.uint64))


def _powers(count: int) -> tuple[U64, U64]:
    """The first powers of the radix and of its inverse, modulo 2**64."""
    global _known
    if len(_known[0]) < count:
        size = max(count, 2 * len(_known[0]))
        with np.errstate(over="ignore"):
            _known = (_geometric(_RADIX, size), _geometric(_INVERSE, size))
    return _known[0][:count], _known[1][:count]


def _geometric(base: np.uint64, size: int) -> U64:
    factors = np.full(size, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


def sorted_unique(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of an array of numbers, ascending and flat, as `numpy.unique` gives them: since numpy 2.3 that keeps a
    table of hashes, which takes a hundred times as long as sorting does.

    >>> sorted_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate([np.ones(min(1, len(ordered)), np.bool_), ordered[1:] != ordered[:-1]])]
