"""A plain Python function as a verifier, held to its contract."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from types import NoneType
from typing import Any, cast

import numpy as np

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, RewardError, RewardLengthError, a_kind
from assay.core.fields import later
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import TOOLS, Task
from assay.verify.user_reward import Pending, abstention, describe_function, is_async, settle

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
    task's own metric, and is called ``correct`` or ``reward``. None, alone or for a component, says that the function has no
    verdict: no score, never a 0. Anything else raises `RewardError`; run it in a `ScoringPool`, which also survives a function
    that hangs or kills its process. An ``async def`` is awaited, in a pool many calls at once.

    Each call gets its own copy of the row, so that what it does to it is not seen with the next answer; the fields that it
    changed stand in ``info["changed"]`` of the verdict.

    Attributes:
        fn: the function; also a partial, a method, or an object that can be called.
        batched: ``fn(prompts, completions, rows)`` takes lists and returns one value per item.
        floor: the lowest value that it gives: -1 for a reward in [-1, 1]. An answer that hangs or kills its judge twice scores
            this. One number for all components, or one per component, which names them. Lower values are counted
            (``verify/below_floor``).
        takes: parameters that ``fn`` is called with by name: of ``prompt``, ``completion``, ``row``, and the row's fields;
            ``"**"`` for all of them. None for prompt, completion and row by position.

    Raises:
        ConfigError: ``fn`` cannot be called, ``floor`` is not finite, or ``takes`` stands beside ``batched``.

    >>> f = RewardFunction(lambda prompt, completion, row: float(completion == row["answer"]))
    >>> f.values(["1+1="], ["2"], [{"answer": "2"}])
    [{'reward': 1.0}]
    """

    fn: Callable[..., Any]
    batched: bool = False
    floor: float | Mapping[str, float] = 0.0
    takes: tuple[str, ...] | None = later(None)

    def __post_init__(self) -> None:
        if self.takes is not None and self.batched:
            raise ConfigError("RewardFunction.takes names what a function of one rollout takes; leave it out, or batched")
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

    @property
    def concurrent(self) -> bool:
        """Whether the function is an ``async def`` that judges one rollout."""
        return not self.batched and is_async(self.fn)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            RewardError: the function broke its contract.
        """
        return self.score_views([self.view(task, rollout)])[0]

    def view(self, task: Task, rollout: Rollout) -> View:
        """What the function sees of a rollout: prompt, completion and row."""
        return prompt_of(task), rollout.text, row_of(task)

    def views(self, items: Sequence[tuple[Task, Rollout]]) -> list[View]:
        """What the function sees of rollouts; those of a task share its row, and pickle writes a shared row once."""
        rows: dict[int, dict[str, Any]] = {}
        out: list[View] = []
        for task, rollout in items:
            if id(task) not in rows:
                rows[id(task)] = row_of(task)
            out.append((prompt_of(task), rollout.text, rows[id(task)]))
        return out

    def score_views(self, views: Sequence[View]) -> list[Score]:
        """Judge several rollouts: in one call when ``batched``.

        Raises:
            RewardError: the function broke its contract.
        """
        if self.batched:
            found = self.start_batch(views)
            return settle(found.result()) if isinstance(found, Pending) else found
        begun = (self.start(view) for view in views)
        return [settle(found.result()) if isinstance(found, Pending) else found for found in begun]

    def start(self, view: View) -> Score | Pending[Score]:
        """Calls the function for one rollout.

        Raises:
            RewardError: the function broke its contract.
        """
        if self.batched:
            found = self.start_batch([view])
            return Pending(found.awaitable, lambda value: found.read(value)[0]) if isinstance(found, Pending) else found[0]
        prompt, completion, row = view
        own = copy_of(row)

        def read(value: Any) -> Score:
            return _score_values(_components(value, row, self.fn), row, own)

        value = (
            self.fn(prompt, completion, own) if self.takes is None else self.fn(**self._named_arguments(prompt, completion, own))
        )
        return Pending(value, read) if isawaitable(value) else read(value)

    def start_batch(self, views: Sequence[View]) -> list[Score] | Pending[list[Score]]:
        """Calls a ``batched`` function for several rollouts, any other for one after the other.

        Raises:
            RewardError: the function broke its contract.
        """
        if not self.batched:
            return self.score_views(views)
        prompts, completions, rows = zip(*views, strict=True)
        own = [copy_of(row) for row in rows]

        def read(value: Any) -> list[Score]:
            found = self._batch(value, rows)
            return [_score_values(values, row, mine) for values, row, mine in zip(found, rows, own, strict=True)]

        value = self.fn(list(prompts), list(completions), own)
        return Pending(value, read) if isawaitable(value) else read(value)

    def values(
        self, prompts: Sequence[str], completions: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, float]]:
        """Components per item, none where the function has no verdict; the rows stay as they are.

        Raises:
            RewardError: a value of the wrong type, not finite, or the wrong number of values.
        """
        views = [
            (prompt, text, cast("dict[str, Any]", row)) for prompt, text, row in zip(prompts, completions, rows, strict=True)
        ]
        return [dict(score.components) for score in self.score_views(views)]

    def _named_arguments(self, prompt: str, completion: str, row: dict[str, Any]) -> dict[str, Any]:
        """What ``fn`` takes by name.

        Raises:
            RewardError: the row has no such field.
        """
        assert self.takes is not None
        offered = {**row, "prompt": prompt, "completion": completion, "row": row}
        lacking = [name for name in self.takes if name not in offered and name != "**"]
        if lacking:
            raise RewardError(
                f"the reward function takes {lacking[0]!r}, and the row has only {sorted(row)}; add the field to the row, or "
                f"take the row itself: {row!r}. It is {describe_function(self.fn)}"
            )
        return offered if "**" in self.takes else {name: offered[name] for name in self.takes}

    def _batch(self, returned: object, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        if _is_tensor(returned):
            returned = cast("Any", returned).tolist()
        if not isinstance(returned, list | tuple | np.ndarray):
            raise RewardError(
                f"a batched reward function must return a list of {len(rows)} numbers, got {a_kind(returned)}: {returned!r}. It "
                f"is {describe_function(self.fn)}"
            )
        many = cast("Sequence[Any]", returned)
        if len(many) != len(rows):
            raise RewardLengthError(
                f"the reward function returned {len(many)} value{'s' * (len(many) != 1)} for {len(rows)} completions; return one "
                f"for each. It is {describe_function(self.fn)}; the first row is {rows[0]!r}"
            )
        return [_components(value, row, self.fn) for value, row in zip(many, rows, strict=True)]


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


def _changed_fields(row: Mapping[str, Any], mine: Any) -> str:
    """The fields in which a row differs from what it was, by name."""
    try:
        names = {*row, *mine}
        return ", ".join(sorted(str(n) for n in names if n not in row or n not in mine or bool(row[n] != mine[n])))
    except Exception:  # foreign values may not compare: numpy arrays of the function's own, say
        return "fields that do not compare with what they were"


def prompt_of(task: Task) -> str:
    """The opening conversation as text: the prompt, or the turns joined by newlines; declared tools are no part of it."""
    return "\n".join(m.content for m in task.public_view().messages if m.role != TOOLS)


def row_of(task: Task) -> dict[str, Any]:
    """What a reward function sees of a task: the user's row, else all its parts as one dict."""
    if "row" in task.private:
        return plain(task.private["row"])
    return plain({**task.public, **task.world, **task.private})


def _score_values(values: dict[str, float], row: Mapping[str, Any], own: Any) -> Score:
    """The verdict of named numbers; with the fields of the row that the function changed."""
    if not values:
        return abstention()
    names = _changed_fields(row, own)
    return Score(components=values, info=FrozenMap({"changed": names} if names else {}))


def _components(value: object, row: Mapping[str, Any], fn: Any) -> dict[str, float]:
    """The numbers that a function returned, by name; those that are None are left out."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        if not named:
            raise RewardError(
                f"the reward function returned no component for row {row!r}; return a number or a dict of numbers. It is "
                f"{describe_function(fn)}"
            )
        return {str(name): finite(v, row, fn, f" as {str(name)!r}") for name, v in named.items() if v is not None}
    return {"reward": finite(value, row, fn)}


def finite(value: Any, row: Mapping[str, Any], fn: Any = None, place: str = "") -> float:
    """What a reward function returned, as a number.

    Args:
        value: what it returned.
        row: of the data.
        fn: the function, for the error; None where it is not known.
        place: which of several values this is.

    Raises:
        RewardError: it is no finite number; names the function, the value and the row.
    """
    number = _unwrap_number(value)
    who = "" if fn is None else f". It is {describe_function(fn)}"
    if not isinstance(number, numbers.Real):
        raise RewardError(
            f"the reward function returned {a_kind(value)} ({value!r}){place} for row {row!r}; return a number{who}"
        )
    try:
        number = float(number)
    except OverflowError:
        raise RewardError(
            f"the reward function returned a number beyond 1e308{place} for row {row!r}; return a finite number{who}"
        ) from None
    if not math.isfinite(number):
        raise RewardError(f"the reward function returned {number}{place} for row {row!r}; return a finite number{who}")
    return number


def _unwrap_number(value: Any) -> object:
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
