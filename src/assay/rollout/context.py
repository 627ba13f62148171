"""Which part of a conversation the policy goes on with."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.core.protocols import AskPolicy, Conversation
from assay.core.task import Message

__all__ = ["HideOlder", "KeepAll", "KeepLast"]


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Nothing changes; a conversation that outgrows the engine's context ends with stop ``length``.

    >>> import asyncio
    >>> asyncio.run(KeepAll().rewrite(None, None)) is None
    True
    """

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> None:
        """None: the conversation stays."""


@dataclass(frozen=True, slots=True)
class KeepLast:
    """The opening and the last ``n`` turns.

    The opening is everything before the first assistant message. A turn is an assistant message with what the environment
    answered to it. Each call whose conversation lost a turn starts a training row of its own.

    Raises:
        ConfigError: ``n`` below 1.

    >>> KeepLast(n=1).kept_turns(["user", "assistant", "tool", "assistant", "tool"])
    (0, 3, 4)
    """

    n: int = 1

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"KeepLast.n={self.n}; keep at least 1 turn, or use KeepAll()")

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None:
        """The conversation without older turns; an answer that was cut off stays so."""
        if conversation.cuts:
            return None
        roles = [message.role for message, _ in conversation.turns()]
        kept = self.kept_turns(roles)
        return conversation.keep(kept) if len(kept) < len(roles) else None

    def kept_turns(self, roles: list[str]) -> tuple[int, ...]:
        """Indices of the opening and of the last ``n`` turns."""
        starts = [i for i, role in enumerate(roles) if role == "assistant"]
        if len(starts) <= self.n:
            return tuple(range(len(roles)))
        return (*range(starts[0]), *range(starts[-self.n], len(roles)))


@dataclass(frozen=True, slots=True)
class HideOlder:
    """One fixed text stands for all that the environment answered but its last ``n`` messages (WebAgent-R1).

    What the policy said stays. When a new page arrives, the one before it is no longer shown; each call whose conversation
    changed starts a training row of its own, so that it is learned under the very tokens it was sampled behind.

    Attributes:
        n: newest messages of the environment that are shown.
        placeholder: what stands for an older one, in characters that the tokenizer has.

    Raises:
        ConfigError: ``n`` below 1, or no text.

    Source: WebAgent-R1 (arXiv 2505.16421): dynamic context compression, with ``n=1``.

    >>> HideOlder(n=1).hidden_turns(["user", "assistant", "tool", "assistant", "tool", "assistant", "tool"])
    (2, 4)
    """

    n: int = 1
    placeholder: str = "(an older page, no longer shown)"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"HideOlder.n={self.n}; show at least the newest message, or use KeepAll()")
        if not self.placeholder:
            raise ConfigError("HideOlder.placeholder is empty; give the text that stands for what is no longer shown")

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None:
        """The conversation with placeholders; an answer that was cut off stays so."""
        if conversation.cuts:
            return None
        messages = [message for message, _ in conversation.turns()]
        hidden = [i for i in self.hidden_turns([m.role for m in messages]) if messages[i].content != self.placeholder]
        if not hidden:
            return None
        return conversation.replace_messages({i: Message(messages[i].role, self.placeholder) for i in hidden})

    def hidden_turns(self, roles: list[str]) -> tuple[int, ...]:
        """Indices of the environment's messages but the last ``n``, behind the policy's first turn."""
        first = roles.index("assistant") if "assistant" in roles else len(roles)
        return tuple(i for i, role in enumerate(roles) if i > first and role != "assistant")[: -self.n]
