"""What tasks of several turns share: the turns of a rollout, and names in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.core.rollout import ASIDE, Rollout, Stop

__all__ = ["actions_of", "list_names", "moves_of"]


def actions_of(rollout: Rollout) -> list[str]:
    """What the policy said in each turn that it finished, from the first to its last call; asides are none."""
    texts: list[str] = []
    at = next((call.id for call in reversed(rollout.own)), None)
    while at is not None:
        call = rollout.calls[at]
        if call.completion.stop is Stop.DONE and call.role != ASIDE:
            texts.append(call.text)
        at = call.parent
    return texts[::-1]


def moves_of(rollout: Rollout) -> list[tuple[str, str]]:
    """Role and text of each turn that was finished, of all roles of an episode, in the order of play."""
    return [(c.role, c.text) for c in rollout.calls if c.completion.stop is Stop.DONE and c.role != ASIDE]


def list_names(names: Mapping[str, Any] | list[str] | tuple[str, ...]) -> str:
    """Names in a row, the last behind "and".

    >>> list_names(["a", "b", "c"]), list_names(["a"])
    ('a, b and c', 'a')
    """
    every = list(names)
    return f"{', '.join(every[:-1])} and {every[-1]}" if len(every) > 1 else "".join(every)
