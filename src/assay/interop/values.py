"""What foreign reward functions return, as scores; awaited where they are asynchronous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError, RewardLengthError, a_kind
from assay.core.score import Score
from assay.verify.reward_function import finite
from assay.verify.user_reward import abstention, describe_function, settle

__all__ = ["list_values", "score_value", "settle"]


def list_values(value: Any, n: int, what: str, fn: Any) -> list[Any]:
    """One value per item from a list, tuple, array or tensor; a single item's may stand alone.

    Raises:
        RewardLengthError: another number of values.
        RewardError: no sequence.
    """
    plain: Any = value.tolist() if hasattr(value, "tolist") else value
    if n == 1 and not isinstance(plain, list | tuple):
        return [plain]
    if not isinstance(plain, list | tuple):
        raise RewardError(
            f"{what} is {a_kind(value)} ({value!r}); return one number per completion, {n} here. The function is "
            f"{describe_function(fn)}"
        )
    many = cast("Sequence[Any]", plain)
    if len(many) != n:
        raise RewardLengthError(
            f"{what} has {len(many)} value{'s' * (len(many) != 1)} for {n} completions; return one for each. The function is "
            f"{describe_function(fn)}"
        )
    return list(many)


def score_value(value: Any, row: Mapping[str, Any], fn: Any = None, **info: Any) -> Score:
    """The score for one number; None, which says that the function has no verdict on this item, is a ``verifier`` fault.

    Raises:
        RewardError: no finite number.
    """
    if value is None:
        return abstention()
    kept = {name: number for name, number in info.items() if number}
    return Score(components={"reward": finite(_alone(value), row, fn)}, info=FrozenMap(kept))


def _alone(value: Any) -> Any:
    """The number in a tensor of one element; any other value as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "numel", lambda: 0)() == 1 else value
