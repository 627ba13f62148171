"""What tasks of several turns share: the turns of an attempt, and names in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.core.rollout import ASIDE, Rollout, Stop

__all__ = ["actions_of", "listed"]


def actions_of(rollout: Rollout) -> list[str]:
    """What the policy said in each turn that it finished, from the first to the last call; asides are none."""
    texts: list[str] = []
    at = len(rollout.calls) - 1 if rollout.calls else None
    while at is not None:
        call = rollout.calls[at]
        if call.completion.stop is Stop.DONE and call.role != ASIDE:
            texts.append(call.text)
        at = call.parent
    return texts[::-1]


def listed(names: Mapping[str, Any] | list[str] | tuple[str, ...]) -> str:
    """Names in a row, the last behind "and".

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    every = list(names)
    return f"{', '.join(every[:-1])} and {every[-1]}" if len(every) > 1 else "".join(every)
