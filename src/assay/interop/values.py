"""What foreign reward functions return, as scores; awaited where they are asynchronous."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError, a_kind
from assay.core.score import Fault, Score
from assay.verify.reward_function import finite

__all__ = ["listed", "scored", "settled"]


def settled(value: Any) -> Any:
    """The value itself, or what an awaitable gives, from any thread and also while an event loop runs in this one."""
    if not inspect.isawaitable(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(value))
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, _awaited(value)).result()


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def listed(value: Any, n: int, what: str) -> list[Any]:
    """One value per item from a list, tuple, array or tensor; a single item's may stand alone.

    Raises:
        RewardError: another number of values, or no sequence.
    """
    plain: Any = value.tolist() if hasattr(value, "tolist") else value
    if n == 1 and not isinstance(plain, list | tuple):
        return [plain]
    if not isinstance(plain, list | tuple):
        raise RewardError(f"{what} is {a_kind(value)} ({value!r}); return one number per completion, {n} here")
    many = cast("Sequence[Any]", plain)
    if len(many) != n:
        raise RewardError(f"{what} has {len(many)} values for {n} completions; return one per completion")
    return list(many)


def scored(value: Any, row: Mapping[str, Any], **info: Any) -> Score:
    """The score for one number; None, which says that the function has no verdict on this item, is a ``verifier`` fault.

    Raises:
        RewardError: no finite number.
    """
    if value is None:
        words = "the reward function gave None: no verdict on this item"
        return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": words, "verdict": "none"}))
    kept = {name: number for name, number in info.items() if number}
    return Score(components={"reward": finite(_alone(value), row)}, info=FrozenMap(kept))


def _alone(value: Any) -> Any:
    """The number in a tensor of one element; any other value as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "numel", lambda: 0)() == 1 else value
