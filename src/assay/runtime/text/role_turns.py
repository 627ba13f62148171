"""Conversations to ids turn by turn, each written by itself; and what whoever writes turns must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol

from tokenizers import AddedToken

from assay.core.errors import ConfigError, DataError
from assay.core.task import CALLS, TOOLS, Message
from assay.runtime.text.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from assay.runtime.text.tokenizer import ChatTemplate

__all__ = ["BareTurns", "Codec", "RoleTurns", "TurnWriter"]


@dataclass(frozen=True, slots=True)
class Codec:
    """What a tokenizer offers to those who write turns.

    Attributes:
        plain: ids of text in which no control token is read.
        template: ids of a template's text, control tokens and all.
        added: the tokenizer's added tokens by id.
        text: text of ids, control tokens and all.
        special: what the tokenizer puts around plain text.
    """

    plain: Callable[[str], list[int]]
    template: Callable[[str], list[int]]
    added: Mapping[int, AddedToken]
    text: Callable[[list[int]], str]
    special: SpecialTokens


class TurnWriter(Protocol):
    """Writes conversations."""

    @property
    def end(self) -> int:
        """The id that ends an assistant's turn."""
        ...

    @property
    def opener(self) -> str:
        """What is written before the assistant's words."""
        ...

    def render(self, messages: Sequence[Message], answer: bool) -> list[int]: ...

    def follow(self, history: Sequence[Message], messages: Sequence[Message], answer: bool) -> list[int]: ...

    def calls(self, history: Sequence[Message], message: Message) -> list[int]:
        """The assistant's turn of calls behind a conversation, with its end."""
        ...


class RoleTurns:
    """Turns that are written each by itself: append-only whatever comes.

    A conversation begins with the special tokens that the tokenizer puts in front of plain text, unless the template writes them.

    Args:
        template: how.
        codec: of the tokenizer.
        end: the end-of-sequence id, which ends an assistant's turn.
        system: opens every conversation without a system turn.

    Raises:
        ConfigError: the template holds what the tokenizer lacks.
    """

    def __init__(self, template: ChatTemplate, codec: Codec, end: int, system: str = "") -> None:
        self._template, self._plain, self.end, self._system = template, codec.plain, end, system
        self.opener = template.parts("assistant")[0]
        self._around: dict[str, tuple[list[int], list[int]]] = {}
        for field in fields(template):
            before, after = template.parts(field.name)
            try:
                self._around[field.name] = (codec.template(before), codec.template(after))
            except DataError as error:
                raise ConfigError(f"ChatTemplate.{field.name}: {error}") from error
        own = any(before[: len(codec.special.before)] == list(codec.special.before) for before, _ in self._around.values())
        self.begin: tuple[int, ...] = () if own else codec.special.before

    def render(self, messages: Sequence[Message], answer: bool) -> list[int]:
        """Whole turns in order."""
        opens = self._system and messages and messages[0].role != "system"
        turns = [Message("system", self._system), *messages] if opens else messages
        return [*self.begin, *self._write_ids(turns, answer)]

    def follow(self, history: Sequence[Message], messages: Sequence[Message], answer: bool) -> list[int]:
        """The end of a turn, and those behind it: the history does not matter."""
        return [self.end, *self._write_ids(messages, answer)]

    def calls(self, history: Sequence[Message], message: Message) -> list[int]:
        """Refused: such a template writes none.

        Raises:
            ConfigError: always.
        """
        return self._write_ids([message], False)

    def _write_ids(self, messages: Sequence[Message], answer: bool) -> list[int]:
        out: list[int] = []
        for message in messages:
            if message.role in (TOOLS, CALLS):
                raise ConfigError(
                    f"a ChatTemplate writes no messages of role {message.role!r}: name a template that does, as "
                    "Chat(template='tools'), or describe them in the task's prompt"
                )
            if message.role not in self._around:
                self._template.parts(message.role)  # refuses it
            before, after = self._around[message.role]
            out += [*before, *self._plain(message.content), *after]
            if message.role == "assistant":
                out.append(self.end)
        return [*out, *self._around["assistant"][0]] if answer else out


class BareTurns(RoleTurns):
    """A tokenizer that brings no chat template: one user's text, with an answer or without, and nothing else.

    Args:
        where: the folder, for errors; the others as in `RoleTurns`.
    """

    def __init__(self, template: ChatTemplate, codec: Codec, end: int, where: str, system: str = "") -> None:
        super().__init__(template, codec, end)
        self._where, self._after = where, codec.special.after_text
        if system:
            raise ConfigError(f"Chat.system={system!r}: {self._lacking('a system prompt')}")

    def _lacking(self, what: str) -> str:
        return (
            f"{self._where} has no chat template, so {what} cannot be written; name one that is built in, "
            "Chat(template='chatml') or Chat(template='dialogue'), or give a ChatTemplate(...)"
        )

    def render(self, messages: Sequence[Message], answer: bool) -> list[int]:
        """A text, and an answer to it.

        Raises:
            ConfigError: any other conversation, or the tokenizer ends plain text with tokens behind which no answer can stand.
        """
        roles = [m.role for m in messages]
        fits = roles == ["user", "assistant"][: len(roles)] and not (answer and len(roles) > 1)
        if not fits and TOOLS not in roles and CALLS not in roles:  # these have a refusal of their own
            raise ConfigError(self._lacking(f"a conversation of {', '.join(roles)}"))
        if self._after:
            raise ConfigError(
                f"{self._where} has no chat template, and its tokenizer writes {self._after!r} behind every text, so an answer "
                "would stand behind an end: say how prompts are written by Chat(template='dialogue') or a ChatTemplate(...), or "
                "take that token out of the post-processor in tokenizer.json"
            )
        return super().render(messages, answer)

    def follow(self, history: Sequence[Message], messages: Sequence[Message], answer: bool) -> list[int]:
        """Nothing can follow.

        Raises:
            ConfigError: something should.
        """
        if messages or answer:
            raise ConfigError(self._lacking(f"a conversation of {', '.join(m.role for m in (*history, *messages))}"))
        return [self.end]
