"""Evaluation items that stand whole in a longer text: as its sentences, between instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from assay.curate.phrase_frequency import AT_LEAST
from assay.curate.sentence_keys import ask_alike, has_own_content, key_of

__all__ = ["Whole"]

_PREFIX = 8
"""Characters of an item's key by which it is looked up."""
_LONG = 8
"""Words from which on an item is itself beside anything."""
_REPEATED = 3
"""What so many items of a file ask in the same words depends on something else that they show; none of them is looked for."""


class Whole:
    """Items, by the beginnings of their keys.

    Args:
        files: the file of each item.
        pieces: the pieces of each (`split_pieces`).
        template: a piece that more than this share of a file's items have, and ten or more, is a template's, and an item is
            looked for without it. 1 where all of an item is looked for.

    >>> whole = Whole(["e.jsonl"], [["what is 12+30"]])
    >>> list(whole.inside(["question", "what is 12+30", "think step by step"])), list(whole.inside(["what is 12+30 times 2"]))
    ([0], [])
    """

    def __init__(self, files: Sequence[str], pieces: Sequence[Sequence[str]], template: float = 1.0) -> None:
        self._by_key: dict[str, list[int]] = {}
        for number, of in enumerate(pieces):
            self._by_key.setdefault(key_of(of), []).append(number)
        own = _without_template(files, pieces, template)
        self._words = [" ".join(of) for of in own]
        self._keys = [key_of(of) for of in own]
        asked = Counter(zip(files, self._keys, strict=True))
        self._starts: dict[str, list[int]] = {}
        for number, (file, key) in enumerate(zip(files, self._keys, strict=True)):
            if asked[file, key] < _REPEATED and has_own_content(self._words[number]):
                self._starts.setdefault(key[:_PREFIX], []).append(number)
        self._sizes = sorted({len(start) for start in self._starts})

    def same(self, pieces: Sequence[str]) -> list[int]:
        """Items with the key of a text; a text without words has none."""
        return self._by_key.get(key_of(pieces), []) if pieces else []

    def inside(self, pieces: Sequence[str], template: Sequence[bool] = ()) -> Iterator[int]:
        """Items that a text asks whole, by their numbers: some of its pieces, one after another, are theirs and the others leave
        the question what it is.

        Args:
            pieces: of the text.
            template: which of them are a template's; none where it is empty.
        """
        if not pieces or not self._starts:
            return
        text, starts = "", list[int]()
        for piece in pieces:
            text += ("_" if text[-1:].isdigit() and piece[0].isdigit() else "") + key_of([piece])
            starts.append(len(text))
        ends = {end: number for number, end in enumerate(starts, 1)}
        starts = [0, *(end + (text[end : end + 1] == "_") for end in starts[:-1])]
        for first, start in enumerate(starts):
            for size in self._sizes:
                for item in self._starts.get(text[start : start + size], ()):
                    key = self._keys[item]
                    last = ends.get(start + len(key))
                    if last is not None and text.startswith(key, start):
                        others = (at for at in range(len(pieces)) if not first <= at < last and not (template and template[at]))
                        if self._itself(item, [pieces[at] for at in others]):
                            yield item

    def _itself(self, item: int, rest: Sequence[str]) -> bool:
        words = self._words[item]
        return words.count(" ") + 1 >= _LONG or ask_alike(rest, words)


def _without_template(files: Sequence[str], pieces: Sequence[Sequence[str]], share: float) -> list[list[str]]:
    """Of each item the pieces that are no template's; of one that has no others, all."""
    of_file = Counter(files)
    seen = Counter((file, piece) for file, of in zip(files, pieces, strict=True) for piece in dict.fromkeys(of))
    told = {(file, piece) for (file, piece), n in seen.items() if n >= AT_LEAST and n > share * of_file[file]}
    return [[p for p in of if (file, p) not in told] or list(of) for file, of in zip(files, pieces, strict=True)]
