"""Which turns of a conversation the policy goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.core.task import Message

__all__ = ["KeepAll", "LastTurns"]


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Nothing is dropped; a conversation that outgrows the engine's context ends with stop ``length``.

    >>> from assay.core import Message
    >>> KeepAll().keep([(Message("user", "2+2?"), 4), (Message("assistant", "4"), 2)], budget=5)
    (0, 1)
    """

    def keep(self, turns: Sequence[tuple[Message, int]], budget: int) -> Sequence[int]:
        """All indices of ``turns``."""
        return tuple(range(len(turns)))


@dataclass(frozen=True, slots=True)
class LastTurns:
    """The opening and the last ``n`` turns.

    The opening is everything before the first assistant message. A turn is an assistant message with what the environment
    answered to it. Each call whose conversation lost a turn starts a training row of its own.

    Raises:
        ConfigError: ``n`` below 1.

    >>> from assay.core import Message
    >>> talk = [(Message(role, "."), 1) for role in ("user", "assistant", "tool", "assistant", "tool")]
    >>> LastTurns(1).keep(talk, budget=100)
    (0, 3, 4)
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"LastTurns.n={self.n}; keep at least 1 turn, or use KeepAll()")

    def keep(self, turns: Sequence[tuple[Message, int]], budget: int) -> Sequence[int]:
        """Indices of the opening and of the last ``n`` turns; ``budget`` (tokens) does not matter."""
        starts = [i for i, (message, _) in enumerate(turns) if message.role == "assistant"]
        if len(starts) <= self.n:
            return tuple(range(len(turns)))
        return (*range(starts[0]), *range(starts[-self.n], len(turns)))
