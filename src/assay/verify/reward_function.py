"""A plain Python function as a verifier, held to its contract."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, cast

import numpy as np

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, RewardError, a_kind
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import TOOLS, Task

__all__ = ["RewardFunction", "View", "copy_of", "finite", "prompt_of", "row_of"]

_ATOMS = frozenset({str, int, float, bool, NoneType, bytes})

View = tuple[str, str, dict[str, Any]]
"""Prompt, completion and row."""


@dataclass(frozen=True, slots=True)
class RewardFunction:
    """``fn(prompt, completion, row)`` as a verifier; gives the component ``reward``, or those that ``fn`` names.

    ``prompt`` is the text of the opening conversation, ``completion`` the text of the last call, ``row`` the user's own row
    (for other task families: the public, world and private parts as one dict). The function returns a finite number, also as a
    numpy scalar or a tensor of one element, or a dict of finite numbers by component name; of several components one is the
    task's own metric, and is called ``correct`` or ``reward``. Anything else raises `RewardError`; run it in a `ScoringPool`,
    which also survives a function that hangs or kills its process.

    Each call gets its own copy of the row, so that what it does to it is not seen with the next answer; the fields that it
    changed stand in ``info["changed"]`` of the verdict.

    Attributes:
        fn: the function.
        batched: ``fn(prompts, completions, rows)`` takes lists and returns one value per item.
        floor: the lowest value that it gives: -1 for a reward in [-1, 1]. An answer that hangs or kills its judge twice scores
            this. One number for all components, or one per component, which names them. Lower values are counted
            (``verify/below_floor``).

    Raises:
        ConfigError: ``fn`` cannot be called, or ``floor`` is not finite.

    >>> f = RewardFunction(lambda prompt, completion, row: float(completion == row["answer"]))
    >>> f.values(["1+1="], ["2"], [{"answer": "2"}])
    [{'reward': 1.0}]
    """

    fn: Callable[..., Any]
    batched: bool = False
    floor: float | Mapping[str, float] = 0.0

    def __post_init__(self) -> None:
        if not callable(self.fn):  # pyright: ignore[reportUnnecessaryComparison]
            raise ConfigError(f"RewardFunction.fn is {a_kind(self.fn)}; pass a function of (prompt, completion, row)")
        floors = self.floor.values() if isinstance(self.floor, Mapping) else (self.floor,)
        if not all(map(math.isfinite, floors)):
            raise ConfigError(f"RewardFunction.floor is {self.floor}; give the lowest value that the function returns")
        if isinstance(self.floor, Mapping):
            object.__setattr__(self, "floor", FrozenMap(self.floor))

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives: those that ``floor`` names, else ``reward``, for a function that returns plain numbers."""
        return tuple(self.floor) if isinstance(self.floor, Mapping) else ("reward",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one attempt.

        Raises:
            RewardError: the function broke its contract.
        """
        return self.score_views([self.view(task, rollout)])[0]

    def view(self, task: Task, rollout: Rollout) -> View:
        """What the function sees of an attempt: prompt, completion and row."""
        return prompt_of(task), rollout.text, row_of(task)

    def score_views(self, views: Sequence[View]) -> list[Score]:
        """Judge several attempts: in one call when ``batched``.

        Raises:
            RewardError: the function broke its contract.
        """
        prompts, completions, rows = zip(*views, strict=True)
        own = [copy_of(row) for row in rows]
        found = self._values(prompts, completions, own, rows)
        pairs = zip(found, (_changed(row, mine) for row, mine in zip(rows, own, strict=True)), strict=True)
        return [Score(components=values, info=FrozenMap({"changed": names} if names else {})) for values, names in pairs]

    def values(
        self, prompts: Sequence[str], completions: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, float]]:
        """Components per item; the rows stay as they are.

        Raises:
            RewardError: a value of the wrong type, not finite, or the wrong number of values.
        """
        return self._values(prompts, completions, [copy_of(row) for row in rows], rows)

    def _values(
        self, prompts: Sequence[str], completions: Sequence[str], own: Sequence[Any], rows: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, float]]:
        """`values` with the copies that the function is given."""
        if not self.batched:
            given = zip(prompts, completions, own, rows, strict=True)
            return [_components(self.fn(prompt, text, mine), row) for prompt, text, mine, row in given]
        return self._batch(self.fn(list(prompts), list(completions), list(own)), rows)

    def _batch(self, returned: object, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        if _is_tensor(returned):
            returned = cast("Any", returned).tolist()
        if not isinstance(returned, list | tuple | np.ndarray):
            raise RewardError(
                f"a batched reward function must return a list of {len(rows)} numbers, got {a_kind(returned)}: {returned!r}"
            )
        many = cast("Sequence[Any]", returned)
        if len(many) != len(rows):
            raise RewardError(
                f"the reward function returned {len(many)} values for {len(rows)} completions; return one per completion"
            )
        return [_components(value, row) for value, row in zip(many, rows, strict=True)]


def copy_of(value: Any) -> Any:
    """A copy of plain data, lists and dicts anew; what is neither is copied as its type says.

    >>> row = {"tests": [[1], [2]]}
    >>> copy_of(row)["tests"][0].append(9)
    >>> row
    {'tests': [[1], [2]]}
    """
    kind = cast("type[Any]", type(value))
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {name: v if type(v) in _ATOMS else copy_of(v) for name, v in value.items()}
    if kind is list:
        return [v if type(v) in _ATOMS else copy_of(v) for v in value]
    return copy.deepcopy(value)


def _changed(row: Mapping[str, Any], mine: Any) -> str:
    """The fields in which a row differs from what it was, by name."""
    try:
        names = {*row, *mine}
        return ", ".join(sorted(str(n) for n in names if n not in row or n not in mine or bool(row[n] != mine[n])))
    except Exception:  # foreign values may not compare: numpy arrays of the function's own, say
        return "fields that do not compare with what they were"


def prompt_of(task: Task) -> str:
    """The opening conversation as text: the prompt, or the turns joined by newlines; declared tools are no part of it."""
    return "\n".join(m.content for m in task.exposed().messages if m.role != TOOLS)


def row_of(task: Task) -> dict[str, Any]:
    """What a reward function sees of a task: the user's row, else all its parts as one dict."""
    if "row" in task.private:
        return plain(task.private["row"])
    return plain({**task.public, **task.world, **task.private})


def _components(value: object, row: Mapping[str, Any]) -> dict[str, float]:
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        if not named:
            raise RewardError(f"the reward function returned no component for row {row!r}; return a number or a dict of numbers")
        return {str(name): finite(v, row) for name, v in named.items()}
    return {"reward": finite(value, row)}


def finite(value: Any, row: Mapping[str, Any]) -> float:
    """What a reward function returned, as a number.

    Raises:
        RewardError: it is no finite number; names the row.
    """
    number = _unwrapped(value)
    if not isinstance(number, numbers.Real):
        raise RewardError(f"the reward function returned {a_kind(value)} ({value!r}) for row {row!r}; return a number")
    try:
        number = float(number)
    except OverflowError:
        raise RewardError(f"the reward function returned a number beyond 1e308 for row {row!r}; return a finite number") from None
    if not math.isfinite(number):
        raise RewardError(f"the reward function returned {number} for row {row!r}; return a finite number")
    return number


def _unwrapped(value: Any) -> object:
    """The Python number in a numpy scalar, an array without dimensions, or a tensor of one element; any other value as it is."""
    if isinstance(value, np.generic | np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return array.item() if array.ndim == 0 else array
    if _is_tensor(value):
        return value.item() if value.numel() == 1 else value
    return value


def _is_tensor(value: Any) -> bool:
    """Whether it is a tensor of torch, which is not imported for that; not the class itself."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in ("item", "numel", "tolist"))
