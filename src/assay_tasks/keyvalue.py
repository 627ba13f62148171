"""Look-ups in a key-value store: the smallest family that needs a tool and several turns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.protocols import Environment, Obs, Step, Tool, Verifier
from assay.core.rollout import ToolResult
from assay.core.seeds import generator
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import TaskCoordinates, check_stream, checked_levels, redraw, slip
from assay.verify.exact import ExactMatch, FormatIs, Together
from assay_tasks.phases import SingleUse

__all__ = ["KeyValue", "LookUp", "Store"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """Follow a key through a store to its number. The level is the number of look-ups.

    The prompt ``K2ab>`` names the hops and the first key. The policy calls ``?ab``, the store answers ``=xq>``; the policy
    calls ``?xq``, the store answers ``=47>``; the policy says ``47``. A call that is malformed or names an unknown key is
    answered ``!>``. The store is a fixed function of the prompt, so equal prompts are equal tasks; it lives in ``world``.

    Attributes:
        levels: numbers of look-ups offered, 1 to 9.
        spare: calls beyond the necessary ones before the episode is ended.
        seed: chooses another stream of tasks and another store.
        test_share: share of contents that belong to the test split.

    Raises:
        ConfigError: a value out of range.

    >>> task = KeyValue().task("keyvalue", 2, "train", 0)
    >>> [m.content for m in KeyValue().trace(task, 0.0, np.random.default_rng(0))]
    ['?dq', '=cq>', '?cq', '=31>', '31']
    """

    levels: tuple[int, ...] = (1, 2, 3)
    spare: int = 2
    seed: int = 0
    test_share: float = 0.1

    def __post_init__(self) -> None:
        checked_levels("KeyValue", self.levels, 1, 9)
        check_stream("KeyValue", self.spare, self.test_share)

    @property
    def name(self) -> str:
        """``keyvalue``."""
        return "keyvalue"

    @property
    def alphabet(self) -> str:
        """Letters, digits and the marks ``K > ? = !``."""
        return _LETTERS + _DIGITS + "K>?=!"

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's one arm with its levels."""
        return {self.name: self.levels}

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th task of a stream; a pure function of the settings and these four.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
        """
        place = TaskCoordinates(self.name, arm, level, split, index)
        place.check(self)

        rng = place.generator(self.seed)
        public = redraw(place, lambda: FrozenMap({"prompt": f"K{level}{_key(rng)}>"}), self.test_share)
        first = public["prompt"][2:-1]
        keys, value = self._chain(first, level)
        world = FrozenMap({"store": dict(zip(keys, [*keys[1:], value], strict=True)), "calls": level + self.spare})
        return place.make_task(
            self.name,
            public=public,
            world=world,
            private={"answer": value, "solution": f"?{first}"},
        )

    def verifier(self) -> Verifier:
        """Exact match of the final answer, and a format of two digits."""
        return Together((ExactMatch(), FormatIs("[0-9]{2}")))

    def environment(self, world: TaskView) -> Environment:
        """A store for one episode."""
        return Store(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's calls, the store's answers and the final answer.

        Each call and the answer hold a slip (`assay.tasks.slip`) with probability ``noise``; the store answers what was really
        asked, and after a slip the oracle asks again.
        """
        store: Mapping[str, str] = task.world["store"]
        turns: list[Message] = []
        key = task.private["solution"][1:]
        while key in store:
            asked = dict.fromkeys((slip(key, noise, _LETTERS, rng), key))  # after a slip, once more and right
            for word in asked:
                turns += [Message("assistant", f"?{word}"), Message("tool", _value(word, store).content)]
            key = store[key]
        return (*turns, Message("assistant", slip(task.private["answer"], noise, _DIGITS, rng)))

    def _chain(self, first: str, hops: int) -> tuple[list[str], str]:
        rng = generator("task/keyvalue/store", self.seed, str(hops), first)
        keys = [first]
        while len(keys) < hops:
            key = _key(rng)
            if key not in keys:
                keys.append(key)
        return keys, "".join(map(str, rng.integers(0, 10, 2)))


@dataclass(frozen=True, slots=True)
class LookUp:
    """The store's tool: a key to its value.

    A key that is malformed or unknown is answered ``!>``, and the result's ``error`` says what was wrong.

    >>> from asyncio import run
    >>> world = KeyValue().task("keyvalue", 1, "train", 0).public_view()
    >>> [run(LookUp().call({"key": key}, world)).content for key in ("oa", "zz")]
    ['=80>', '!>']
    """

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        key = {"type": "string", "pattern": "^[a-z]{2}$", "description": "two letters"}
        arguments = {"type": "object", "properties": {"key": key}, "required": ["key"], "additionalProperties": False}
        return {"name": "look_up", "description": "The value of a key: another key, or the number.", "parameters": arguments}

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        """The value of ``args["key"]`` in the store of the world."""
        return _value(str(args.get("key", "")), scope.world["store"])


class Store(SingleUse):
    """The environment of one episode; sees the world, never the answer's own field. Its snapshot is how many calls are left, and
    what it answered last.

    Attributes:
        tools: by the mark that an action begins with when it calls the tool.

    Args:
        world: the task view; ``world["store"]`` maps keys to values, ``world["calls"]`` is the most calls answered.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self.tools: Mapping[str, Tool] = {"?": LookUp()}
        self._world = world
        self._left: int = world.world["calls"]
        self._said = ""

    async def snapshot(self) -> Any:
        """Calls that are left, and the last answer, empty before any."""
        return {"left": self._left, "said": self._said}

    async def restore(self, snapshot: Any) -> Obs:
        """Goes on there, and shows that answer again."""
        await super().start()
        self._left, self._said = int(snapshot["left"]), str(snapshot["said"])
        return Obs((Message("tool", self._said),) if self._said else ())

    async def step(self, action: str) -> Step:
        """Answers a call, text that begins with ``?``; other text is the final answer. That and the last call end the episode."""
        self._enter("open", "step")
        tool = self.tools.get(action[:1])
        if tool is None:
            self._phase = "over"
            return Step(done=True)
        result = await tool.call({"key": action[1:]}, self._world)
        self._left, self._said = self._left - 1, result.content
        if not self._left:
            self._phase = "over"
        return Step(obs=Obs((Message("tool", result.content),)), done=not self._left, results=(result,))


def _key(rng: np.random.Generator) -> str:
    return "".join(_LETTERS[i] for i in rng.integers(0, len(_LETTERS), 2))


def _value(key: str, store: Mapping[str, str]) -> ToolResult:
    if not re.fullmatch("[a-z]{2}", key):
        return ToolResult(content="!>", error=f"malformed call {f'?{key}'!r}: a call is ? and two letters")
    if key not in store:
        return ToolResult(content="!>", error=f"unknown key {key!r}")
    return ToolResult(content=f"={store[key]}>")
