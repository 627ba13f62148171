"""Thoughts before answers: the tags around them, and what is behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from assay.core.errors import ConfigError
from assay.core.util.renamed import RenamedMembers

__all__ = ["Thinking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking(RenamedMembers):
    r"""The tags between which a model thinks. Verifiers and environments read what stands behind them; tokens stay as sampled.

    The answer is what follows the last closing tag. A thought that is opened and never closed leaves no answer: the empty text,
    never a guess.

    Attributes:
        open, close: the tags.
        required: a turn without a thought has no answer.

    Raises:
        ConfigError: an empty tag, or two equal ones.

    >>> Thinking().split("<think>7 + 5 is 12</think>\n\n12")
    ('7 + 5 is 12', '12')
    >>> Thinking().split("<think>7 + 5 is"), Thinking().split("12"), Thinking(required=True).split("12")
    (('7 + 5 is', ''), (None, '12'), (None, ''))
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"begun": "thought_start", "taught": "format_answer"}

    open: str = "<think>"
    close: str = "</think>"
    required: bool = False

    def __post_init__(self) -> None:
        if not self.open or not self.close or self.open == self.close:
            raise ConfigError(f"Thinking(open={self.open!r}, close={self.close!r}): give two different tags, none of them empty")

    def thought_start(self, opener: str) -> str:
        r"""The part of a template's ``opener`` that belongs to the turn's thought: from its opening tag on; nothing without one.

        >>> Thinking().thought_start("<|assistant|>\n<think>\n")
        '<think>\n'
        """
        at = opener.rfind(self.open)
        return opener[at:] if at >= 0 else ""

    def split(self, text: str) -> tuple[str | None, str]:
        """The thought, None without one, and the answer, without white space before it.

        Args:
            text: a whole turn, with what the template had `begun`.
        """
        head, closed, answer = text.rpartition(self.close)
        if self.open in (answer if closed else text):  # opened and not closed
            return text.partition(self.open)[2].strip(), ""
        if not closed:
            return None, "" if self.required else text
        return head.replace(self.open, "", 1).strip(), answer.lstrip()

    def format_answer(self, answer: str, begun: str = "") -> str:
        r"""An answer as it is demonstrated: behind an empty thought where it would be read as part of one, or not at all.

        Args:
            answer: what an oracle says, with or without a thought.
            begun: what the template has `begun`.

        >>> Thinking().format_answer("12"), Thinking().format_answer("12", "<think>\n")
        ('12', '</think>\n\n12')
        >>> Thinking().format_answer("<think>7 + 5</think>12", "<think>\n")  # the tag stands there already
        '7 + 5</think>12'
        """
        if begun and answer.lstrip().startswith(self.open):
            answer = answer.lstrip()[len(self.open) :].lstrip()
        if self.split(begun + answer)[1] or not answer.strip():
            return answer
        return f"{'' if begun else self.open}{self.close}\n\n{answer}"
