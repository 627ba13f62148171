"""Which part of a conversation the policy goes on with."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.core.protocols import AskPolicy, Conversation

__all__ = ["KeepAll", "KeepLast"]


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

    >>> KeepLast(n=1).kept(["user", "assistant", "tool", "assistant", "tool"])
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
        kept = self.kept(roles)
        return conversation.keep(kept) if len(kept) < len(roles) else None

    def kept(self, roles: list[str]) -> tuple[int, ...]:
        """Indices of the opening and of the last ``n`` turns."""
        starts = [i for i, role in enumerate(roles) if role == "assistant"]
        if len(starts) <= self.n:
            return tuple(range(len(roles)))
        return (*range(starts[0]), *range(starts[-self.n], len(roles)))
