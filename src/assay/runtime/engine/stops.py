"""Texts that end an answer, looked for in the last tokens of those rows that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["StopWatch"]


class StopWatch:
    """Tells whether the token that was just sampled completes one of some texts, across the borders of tokens.

    A token that says anything has at least a byte of a text, so only as many of the last tokens are read as the longest text has
    bytes, and two more, where a cut character or a space that tokenizers drop at the start of a text does no harm.

    Args:
        decode: ids to text.
        stops: the texts.
        begun: ids of the answer so far.

    >>> watch = StopWatch(lambda ids: "".join(map(chr, ids)), ("ab",), [ord("a")])
    >>> watch.push(ord("c")), watch.push(ord("a")), watch.push(ord("b"))
    (False, False, True)
    """

    __slots__ = ("_decode", "_ids", "_stops", "_width")

    def __init__(self, decode: Callable[[list[int]], str], stops: Sequence[str], begun: Sequence[int]) -> None:
        self._decode, self._stops = decode, tuple(stops)
        self._width = max(len(s.encode("utf-8", "surrogatepass")) for s in stops) + 2
        self._ids: list[int] = []
        for token in begun:
            self.push(token)

    def push(self, token: int) -> bool:
        """Whether ``token``, behind those before, completes a text."""
        known = self._decode(self._ids)
        text = self._decode([*self._ids, token])
        if text == known and not self._decode([token]):  # a special token: it says nothing, and parts nothing
            return False
        before = len(known.rstrip("\ufffd"))  # the first bytes of a character are no text yet
        self._ids = [*self._ids, token][-self._width :]
        return any(text.find(s, max(0, before - len(s) + 1)) >= 0 for s in self._stops)
