"""What one call of a tool may take: seconds, characters, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from assay.core.errors import ConfigError

__all__ = ["ToolLimits", "cut_text", "limits_of", "tool"]

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__assay_tool_limits__"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """What one call of a tool may take.

    Attributes:
        deadline: seconds; a call that takes longer is answered with an error that says so, and counts in ``tools/timeouts``.
            None: it has what a turn's calls have together, ``Run.environment_deadline``; one that hangs ends the rollout.
        characters: of its answer that the policy is shown; what is longer is cut, says so, and counts in ``tools/cut``.
        cost: of a call, in any unit: `ToolResult.cost`, which `assay.scorers.ToolCost` pays for.

    Raises:
        ConfigError: a number out of range.
    """

    deadline: float | None = None
    characters: int = 16_000
    cost: float = 0.0

    def __post_init__(self) -> None:
        if self.deadline is not None and not self.deadline > 0:
            raise ConfigError(f"ToolLimits.deadline={self.deadline}; give seconds above 0, or None")
        if self.characters < 1 or not 0.0 <= self.cost < float("inf"):
            raise ConfigError(
                f"ToolLimits(characters={self.characters}, cost={self.cost}); use at least 1 character and a cost of 0 or more"
            )


def tool(*, deadline: float | None = None, characters: int = 16_000, cost: float = 0.0) -> Callable[[F], F]:
    """Gives a function, or a class of tools, its limits: a decorator. Without it a function has the defaults of `ToolLimits`.

    Raises:
        ConfigError: a number out of range.

    >>> from assay.rollout.tool_limits import limits_of
    >>> @tool(deadline=2.0, cost=0.1)
    ... def half(number: float) -> float:
    ...     "Half of a number."
    ...     return number / 2
    >>> limits_of(half).cost, half(3.0)
    (0.1, 1.5)
    """
    limits = ToolLimits(deadline=deadline, characters=characters, cost=cost)

    def mark(function: F) -> F:
        setattr(function, _MARK, limits)
        return function

    return mark


def limits_of(function: Any, otherwise: ToolLimits | None = None) -> ToolLimits:
    """The limits that `tool` gave a function, else others, else the defaults."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, ToolLimits) else otherwise or ToolLimits()


def cut_text(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text and a word on what is missing, and how many characters are.

    >>> cut_text("abcdef", 4), cut_text("abc", 4)
    (('abcd ... (2 more characters are left out)', 2), ('abc', 0))
    """
    left = len(text) - most
    return (f"{text[:most]} ... ({left} more characters are left out)", left) if left > 0 else (text, 0)
