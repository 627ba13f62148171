"""Other trainers' reward functions as verifiers, each called as its own trainer calls it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, cast

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.interop.signature import parameters_of
from assay.interop.values import list_values, score_value, settle
from assay.verify.reward_function import copy_of, prompt_of, row_of
from assay.verify.user_reward import Pending, is_async

__all__ = ["GOLD_NAMES", "ForeignReward", "OpenRlhfReward", "RubricReward", "TrlReward", "VerlReward", "gold_of", "numbers_in"]

GOLD_NAMES = ("answer", "ground_truth", "solution", "gold", "label", "target", "reference")
"""Columns in which data sets keep the right answer; a function that asks for one of them gets the gold."""

Pair = tuple[Task, Rollout]


@dataclass(frozen=True)
class ForeignReward(ABC):
    """Base of the adapters: gives the component ``reward``, what the function's own trainer would learn from.

    Attributes:
        fn: the function, or the rubric.
        gold: a further column that holds the gold, where its name is none of `GOLD_NAMES`.
        chat: hand over conversations, lists of messages, instead of text; None: where the task is one.
    """

    fn: Any
    gold: str | None = None
    chat: bool | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("reward",)

    @property
    def batched(self) -> bool:
        """Whether the function judges several rollouts in one call."""
        return False

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            RewardError: the function broke its contract.
            DataError: the task lacks a column that the function needs.
        """
        return self.many([(task, rollout)])[0]

    def many(self, items: Sequence[Pair]) -> list[Score]:
        """Judge several rollouts: in one call where the function takes several.

        Raises:
            RewardError: the function broke its contract.
            DataError: a task lacks a column that the function needs.
        """
        if self.batched:
            found = self.start_batch(items)
            return settle(found.result()) if isinstance(found, Pending) else found
        begun = (self.start(item) for item in items)
        return [settle(found.result()) if isinstance(found, Pending) else found for found in begun]

    @property
    def concurrent(self) -> bool:
        """Whether the function is an ``async def`` that judges one rollout."""
        return not self.batched and is_async(self.fn)

    def views(self, items: Sequence[Pair]) -> list[Pair]:
        """The rollouts with their tasks."""
        return list(items)

    def start(self, view: Pair) -> Score | Pending[Score]:
        """Calls the function for one rollout."""
        found = self.start_batch([view])
        return Pending(found.awaitable, lambda value: found.read(value)[0]) if isinstance(found, Pending) else found[0]

    @abstractmethod
    def start_batch(self, views: Sequence[Pair]) -> list[Score] | Pending[list[Score]]:
        """Calls the function for several rollouts; for one alone where it is not ``batched``."""
        ...

    def columns(self, task: Task) -> dict[str, Any]:
        """The task's row, and its gold under ``gold`` too."""
        row = row_of(task)
        if self.gold is not None and self.gold not in row and (found := gold_of(task)) is not None:
            row[self.gold] = found
        return row

    def _keywords(self, function: Callable[..., Any], offered: dict[str, Any], golds: Any, what: str) -> dict[str, Any]:
        """Of what is offered, what the function takes; the gold stands for columns of its usual names."""
        known = parameters_of(function)
        for name in known.names:
            if name in GOLD_NAMES and name not in offered and golds is not None:
                offered[name] = golds
        lacking = [name for name in known.required if name not in offered]
        if lacking:
            raise DataError(
                f"{what} needs the columns {lacking}, and there are {sorted(offered)}; add them to the rows, or say which of "
                "them holds the gold (--gold)"
            )
        return known.select_accepted(offered)

    def _prompt(self, task: Task, chat: bool | None) -> Any:
        turns = task.public_view().messages
        conversation = "messages" in task.public if chat is None else chat
        return [{"role": m.role, "content": m.content} for m in turns] if conversation else prompt_of(task)

    def _completion(self, task: Task, rollout: Rollout, chat: bool | None) -> Any:
        conversation = "messages" in task.public if chat is None else chat
        return [{"role": "assistant", "content": rollout.text}] if conversation else rollout.text


@dataclass(frozen=True)
class VerlReward(ForeignReward):
    """verl's ``compute_score(data_source, solution_str, ground_truth, extra_info=None, ...)``: a number or a dict with ``score``.

    ``data_source`` is the row's, else the task's domain; ``ground_truth`` the row's ``reward_model["ground_truth"]``, else its
    gold. Other values of a dict stand in ``info["extra"]``.

    Attributes:
        batch: ``(data_sources, solution_strs, ground_truths, extra_infos)``, lists in and a list out.

    >>> VerlReward(lambda data_source, solution_str, ground_truth, extra_info=None: 1.0).names
    ('reward',)
    """

    batch: bool = False

    @property
    def batched(self) -> bool:
        """As ``batch`` says."""
        return self.batch

    def start_batch(self, views: Sequence[Pair]) -> list[Score] | Pending[list[Score]]:
        each = [self._of(item) for item in views]
        keywords = {f"{name}s": [one[name] for one in each] for name in each[0]} if self.batch else each[0]

        def read(value: Any) -> list[Score]:
            values = list_values(value, len(views), "the reward", self.fn) if self.batch else [value]
            return [self._one(one, row_of(task)) for one, (task, _) in zip(values, views, strict=True)]

        return _read_results(self.fn(**self._keywords(self.fn, keywords, None, "the reward function")), read)

    def _of(self, item: Pair) -> dict[str, Any]:
        task, rollout = item
        row = self.columns(task)
        gold = row[self.gold] if self.gold in row else gold_of(task)
        if gold is None:
            raise DataError(f"task {task.id!r} has no gold for ground_truth; there are {sorted(row)}; say which it is (--gold)")
        return {
            "data_source": row.get("data_source", task.domain),
            "solution_str": rollout.text,
            "ground_truth": gold,
            "extra_info": {"num_turns": len(rollout.calls), "rollout_reward_scores": {}, **(row.get("extra_info") or {})},
        }

    def _one(self, value: Any, row: Mapping[str, Any]) -> Score:
        if not isinstance(value, Mapping):
            return score_value(value, row, self.fn)
        named = dict(cast("Mapping[str, Any]", value))
        if "score" not in named:
            raise RewardError(f"the reward function returned a dict without 'score': {named!r}")
        return score_value(named.pop("score"), row, self.fn, extra=numbers_in(named))


@dataclass(frozen=True)
class TrlReward(ForeignReward):
    """TRL's ``reward_func(prompts, completions, **columns)``: a list of numbers, None where there is no verdict.

    The columns are those of the rows, a list each; ``completion_ids`` are what the rollouts sampled, ``trainer_state`` is None,
    ``log_extra`` and ``log_metric`` drop what they are told. A column that only some tasks have is None for the others.

    >>> TrlReward(lambda completions, **columns: [1.0 for _ in completions]).names
    ('reward',)
    """

    @property
    def batched(self) -> bool:
        """It always does."""
        return True

    def start_batch(self, views: Sequence[Pair]) -> list[Score] | Pending[list[Score]]:
        items = views
        rows = [self.columns(task) for task, _ in items]
        reserved = {"prompt", "completion", "completion_ids", "messages"}
        offered: dict[str, Any] = {
            name: [row.get(name) for row in rows] for name in dict.fromkeys(n for r in rows for n in r) if name not in reserved
        }
        offered |= {
            "prompts": [self._prompt(task, self.chat) for task, _ in items],
            "completions": [self._completion(task, rollout, self.chat) for task, rollout in items],
            "completion_ids": [[int(i) for call in rollout.calls for i in call.completion.ids] for _, rollout in items],
            "trainer_state": None,
            "log_extra": _drop,
            "log_metric": _drop,
        }
        golds = [gold_of(task) for task, _ in items]
        keywords = self._keywords(self.fn, offered, golds if any(g is not None for g in golds) else None, "the reward function")

        def read(value: Any) -> list[Score]:
            values = list_values(value, len(items), "the list of rewards", self.fn)
            return [score_value(one, row, self.fn) for one, row in zip(values, rows, strict=True)]

        return _read_results(self.fn(**keywords), read)


@dataclass(frozen=True)
class OpenRlhfReward(ForeignReward):
    """OpenRLHF's ``reward_func(queries, prompts, labels, ...)``: a tensor or list, or a dict with ``rewards``.

    A query is the prompt and the completion, a label the gold. ``scores`` and ``extra_logs`` of a dict stand in ``info``.

    >>> OpenRlhfReward(lambda queries, prompts, labels: [1.0 for _ in queries]).names
    ('reward',)
    """

    @property
    def batched(self) -> bool:
        """It always does."""
        return True

    def start_batch(self, views: Sequence[Pair]) -> list[Score] | Pending[list[Score]]:
        items = views
        prompts = [prompt_of(task) for task, _ in items]
        offered: dict[str, Any] = {
            "queries": [prompt + rollout.text for prompt, (_, rollout) in zip(prompts, items, strict=True)],
            "prompts": prompts,
            "labels": [gold_of(task) if self.gold is None else self.columns(task).get(self.gold) for task, _ in items],
        }
        found = self.fn(**self._keywords(self.fn, offered, None, "the reward function"))
        return _read_results(found, lambda value: self._read(value, items))

    def _read(self, found: Any, items: Sequence[Pair]) -> list[Score]:
        """The verdicts in what the function gave."""
        logs: list[dict[str, float]] = [{}] * len(items)
        if isinstance(found, Mapping):
            named = cast("Mapping[str, Any]", found)
            if "rewards" not in named:
                raise RewardError(f"the reward function returned a dict without 'rewards': {sorted(named)}")
            parts: dict[str, Any] = {"score": named.get("scores"), **(named.get("extra_logs") or {})}
            lists = {name: list_values(v, len(items), f"{name!r}", self.fn) for name, v in parts.items() if v is not None}
            logs = [numbers_in({name: values[i] for name, values in lists.items()}) for i in range(len(items))]
            found = named["rewards"]
        values = list_values(found, len(items), "the list of rewards", self.fn)
        return [score_value(v, row_of(t), self.fn, extra=log) for v, (t, _), log in zip(values, items, logs, strict=True)]


@dataclass(frozen=True)
class RubricReward(ForeignReward):
    """A rubric of ``verifiers``, any object with ``funcs`` and ``weights``, or one function of such a rubric.

    Each function takes, by name, what it wants of prompt, completion, answer, state, task and info, of the row's columns, and of
    the rubric's ``class_objects``. The reward is the weighted sum; single values stand in ``info["extra"]``. What a function
    raises is a fault here; their trainer logs it and counts 0. Conversations are the rule: give ``chat=False`` for text.

    Raises:
        ConfigError: a function judges a group at once, or weights and functions differ in number.

    >>> RubricReward(lambda completion, answer: 1.0).names
    ('reward',)
    """

    def __post_init__(self) -> None:
        functions, weights = self.functions, self.weights
        if not functions or len(functions) != len(weights):
            raise ConfigError(f"the rubric has {len(functions)} functions and {len(weights)} weights; give one weight to each")
        for function in functions:
            grouped = {"states", "prompts", "completions", "answers", "tasks", "infos"} & set(parameters_of(function).names)
            if grouped:
                raise ConfigError(
                    f"{_name(function)} of the rubric judges a group at once (it takes {sorted(grouped)}); a rollout has no "
                    "verdict of its own there, so leave it out"
                )

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The functions, in order."""
        return list(self.fn.funcs) if hasattr(self.fn, "funcs") else [self.fn]

    @property
    def weights(self) -> list[float]:
        """One per function; all 1 where the rubric has none."""
        return list(getattr(self.fn, "weights", None) or [1.0] * len(self.functions))

    def start_batch(self, views: Sequence[Pair]) -> list[Score]:
        return [self._judge(task, rollout) for task, rollout in views]

    def _judge(self, task: Task, rollout: Rollout) -> Score:
        row, gold = self.columns(task), gold_of(task)
        chat = True if self.chat is None else self.chat
        own: dict[str, Any] = {
            "prompt": self._prompt(task, chat),
            "completion": self._completion(task, rollout, chat),
            "answer": gold,
            "task": row.get("task", task.domain),
            "info": row.get("info") or {},
        }
        state = copy_of({**row, **own, "trajectory": []})  # the functions of a rubric share it, and nothing else
        values: dict[str, float] = {}
        total = 0.0
        for function, weight in zip(self.functions, self.weights, strict=True):
            offered = {**copy_of(row), **getattr(self.fn, "class_objects", {}), **copy_of(own), "state": state}
            keywords = self._keywords(function, offered, copy_of(gold), _name(function))
            score = score_value(settle(function(**keywords)), row, function)
            if not score.valid:
                return score
            values[_name(function)] = score.components["reward"]
            total += weight * score.components["reward"]
        return score_value(total, row, extra=values)


def _read_results(value: Any, read: Callable[[Any], list[Score]]) -> list[Score] | Pending[list[Score]]:
    """The verdicts in what a function returned, or what is to be awaited for them."""
    return Pending(value, read) if isawaitable(value) else read(value)


def gold_of(task: Task) -> Any:
    """The right answer as plain data: ``private["answer"]``, else the row's under one of `GOLD_NAMES`; None without one."""
    if "answer" in task.private:
        return plain(task.private["answer"])
    row = row_of(task)
    model = row.get("reward_model")
    if isinstance(model, Mapping) and "ground_truth" in model:
        return cast("Mapping[str, Any]", model)["ground_truth"]
    return next((row[name] for name in GOLD_NAMES if name in row), None)


def numbers_in(values: Mapping[str, Any]) -> dict[str, float]:
    """Of named values, those that are numbers."""
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _drop(*_: object, **__: object) -> None:
    """What ``log_extra`` and ``log_metric`` do outside of a trainer."""
