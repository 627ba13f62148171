"""What sampled tokens say: where an answer ends, what its text is, and which part of it is thought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from assay.core.protocols import ChatTokenizer, Tokenizer
from assay.core.rollout import Completion, Ids, Sampling, Stop
from assay.core.thinking import Thinking
from assay.core.util.renamed import RenamedMembers

__all__ = ["AnswerReader", "decode_with_special", "end_ids", "text_of", "with_stop"]


def end_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids that end an answer, where nobody names others."""
    return tokenizer.stop_ids if isinstance(tokenizer, ChatTokenizer) else (tokenizer.eos,)


def with_stop(sampling: Sampling, tokenizer: Tokenizer) -> Sampling:
    """``sampling`` that ends at the tokenizer's end tokens, unless it names stop tokens itself."""
    return sampling if sampling.stop_ids else replace(sampling, stop_ids=end_ids(tokenizer))


def text_of(tokenizer: Tokenizer, said: Ids, completion: Completion) -> str:
    """The text of a turn, without the stop token or the stop text that ended it.

    Args:
        tokenizer: of the policy.
        said: the turn's ids so far, those of ``completion`` last.
        completion: the last call's.
    """
    if completion.stop is not Stop.DONE or not len(completion.ids):
        return tokenizer.decode(said)
    if int(completion.ids[-1]) in completion.sampling.stop_ids:
        return tokenizer.decode(said[:-1])
    text = tokenizer.decode(said)
    if not completion.sampling.stop:
        return text
    before = len(tokenizer.decode(said[:-1]).rstrip("\ufffd"))  # a text that ended the turn was completed by its last token
    found = [at for s in completion.sampling.stop if (at := text.find(s, max(0, before - len(s) + 1))) >= 0]
    return text[: min(found)] if found else text


def decode_with_special(tokenizer: Tokenizer, ids: Ids) -> str:
    """Text of ids with the special ones written out, as ``<|im_end|>``: what a model reads and writes, for people. A tokenizer
    without a ``backend`` decodes in its own way.

    >>> from assay.runtime import char_tokenizer
    >>> import numpy as np
    >>> t = char_tokenizer("0123456789=")
    >>> decode_with_special(t, np.array([*t.encode("12=").tolist(), t.eos]))
    '12=<eos>'
    """
    backend: Any = getattr(tokenizer, "backend", None)
    if backend is None:
        return tokenizer.decode(ids)
    return str(backend.decode([int(i) for i in ids if 0 <= i < tokenizer.size], skip_special_tokens=False))


@dataclass(frozen=True, slots=True)
class AnswerReader(RenamedMembers):
    """Reads turns: thought and answer.

    Attributes:
        tokenizer: of the policy.
        thinking: the tags of its thoughts; None: a turn is read as it is.
        thought_start: what the chat template has begun of each turn's thought.

    >>> from assay.runtime import char_tokenizer
    >>> AnswerReader.of(char_tokenizer("0123456789+=")).format_answer("42")
    '42'
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"begun": "thought_start", "taught": "format_answer"}

    tokenizer: Tokenizer
    thinking: Thinking | None = None
    thought_start: str = ""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> AnswerReader:
        """As the tokenizer's chat settings say."""
        thinking = tokenizer.thinking if isinstance(tokenizer, ChatTokenizer) else None
        if thinking is None:
            return cls(tokenizer)
        assert isinstance(tokenizer, ChatTokenizer)
        return cls(tokenizer, thinking, thinking.thought_start(tokenizer.opener))

    def read(self, opening: Ids, said: Ids, completion: Completion) -> tuple[str | None, str]:
        """Thought, None without one, and answer of a turn.

        Args:
            opening: what stands before the turn: some templates begin no thought behind a tool's answer.
            said, completion: as in `text_of`.
        """
        text = text_of(self.tokenizer, said, completion)
        if self.thinking is None:
            return None, text
        begun = self.thought_start if self.thought_start and self._ends(opening) else ""
        return self.thinking.split(begun + text)

    def _ends(self, opening: Ids) -> bool:
        """Whether a prompt ends with what the template begins of a thought."""
        last = opening[-len(self.thought_start.encode()) - 2 :]  # a token has a byte at least
        return self.tokenizer.decode(last).rstrip().endswith(self.thought_start.rstrip())

    def format_answer(self, answer: str, opening: Ids | None = None) -> str:
        """A turn as it is demonstrated: behind an empty thought where it would else be read as one, or not at all.

        Args:
            answer: what is said, with or without a thought.
            opening: what stands before the turn, as in `read`; None: the template opens it as it does each first answer.
        """
        if self.thinking is None:
            return answer
        begun = self.thought_start if self.thought_start and (opening is None or self._ends(opening)) else ""
        return self.thinking.format_answer(answer, begun)
