"""How deep agents call agents of their own, by the headers in which some clients say who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Lanes"]

_NAMES = (
    ("x-claude-code-agent-id", "x-claude-code-parent-agent-id", 1),  # the main agent says nothing
    ("x-session-id", "x-parent-session-id", 0),  # opencode: the main session has no parent
)


@dataclass(slots=True)
class Lanes:
    """The agents of one run that have named themselves; those that say nothing count as the main one.

    >>> lanes = Lanes()
    >>> lanes.depth({}), lanes.depth({"x-claude-code-agent-id": "a"})
    (0, 1)
    >>> lanes.depth({"x-claude-code-agent-id": "b", "x-claude-code-parent-agent-id": "a"})
    2
    """

    _known: dict[str, int] = field(default_factory=dict[str, int])

    def depth(self, headers: Mapping[str, str]) -> int:
        """0 for the main agent, 1 for those that it calls, and so on."""
        for name, parent, alone in _NAMES:
            if lane := headers.get(name, ""):
                above = headers.get(parent, "")
                found = self._known.get(above, 0) + 1 if above and above != lane else alone
                self._known[lane] = max(found, self._known.get(lane, 0))
                return self._known[lane]
        return 0
