"""The text of an answer while it is sampled: what cannot change any more, token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.core.protocols import Tokenizer
from assay.core.rollout import Completion, Ids
from assay.rollout.decode_text import text_of

__all__ = ["TextStream", "before_call"]

_TAG = "<tool_call>"
_BEGINNINGS = ("{", "[", "<|python_tag|>")
"""What a turn begins with that may be a call of a tool as a whole: `assay.rollout.tool_calls.calls_of` reads such turns."""


class TextStream:
    r"""Turns tokens into text as they come. Characters of which bytes are missing, and what may be the beginning of a stop text,
    are held back until the next tokens say what they are.

    Args:
        tokenizer: of the model.
        stops: texts that end the answer, which are no part of it.
        bound: given all text so far, how many of its characters may be said before the answer is whole; all when None.

    >>> from assay.runtime import char_tokenizer
    >>> t = char_tokenizer("abc.")
    >>> from assay.publish.service.text_stream import TextStream
    >>> stream = TextStream(t, ("..",))
    >>> stream.push(t.encode("ab.")), stream.push(t.encode("c")), stream.push(t.encode(".."))
    ('ab', '.c', '')
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = (), bound: Callable[[str], int] | None = None) -> None:
        self._tokenizer, self._stops, self._bound = tokenizer, tuple(stops), bound
        self._ids: list[int] = []
        self._said = 0

    def push(self, ids: Ids) -> str:
        """The text that can be said now, behind what was said before."""
        self._ids += ids.tolist()
        text = self._tokenizer.decode(self._ids)
        safe = len(text.rstrip("\ufffd"))
        for stop in self._stops:
            safe = min(safe, _before(text, stop))
        if self._bound is not None:
            safe = min(safe, self._bound(text))
        return self._say(text[:safe])

    def end(self, completion: Completion) -> tuple[str, str]:
        """What was held back, and the whole answer."""
        text = text_of(self._tokenizer, completion.ids, completion)
        return self._say(text), text

    def _say(self, text: str) -> str:
        new, self._said = text[self._said :], max(self._said, len(text))
        return new


def before_call(text: str) -> int:
    """How much of a turn is surely said in front of a call of a tool.

    >>> before_call("I add. <tool_c"), before_call('{"name": "add"'), before_call("Four.")
    (7, 0, 5)
    """
    begun = text.lstrip()
    if not begun or any(begun.startswith(b) or b.startswith(begun) for b in _BEGINNINGS):
        return 0
    return _before(text, _TAG)


def _before(text: str, wanted: str) -> int:
    """Where ``wanted`` stands or may be beginning in a text; its length where neither."""
    at = text.find(wanted)
    if at >= 0:
        return at
    begun = next((n for n in range(min(len(wanted) - 1, len(text)), 0, -1) if text.endswith(wanted[:n])), 0)
    return len(text) - begun
