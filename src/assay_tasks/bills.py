"""Bills: lines that only a look-up tells, added up by a calculator; the smallest family that needs two tools in many turns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import Environment, Obs, Step, Verifier
from assay.core.rollout import ToolResult
from assay.core.seeds import generator
from assay.core.task import CALLS, Message, Task, TaskView
from assay.tasks.draws import TaskCoordinates, check_stream, checked_levels, redraw, slip
from assay.verify.exact import ExactMatch, FormatIs, Together
from assay_tasks.phases import SingleUse
from assay_tasks.toolcalls import ToolCalls

__all__ = ["Adder", "Bills", "LineOf", "MarkedTools"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bills:
    """What a bill comes to. The level is the number of its lines.

    The prompt ``Bkq>`` names the first line. What a line says stands in a table that only a look-up reads: its price, 1 to 99,
    and the next line. The policy calls ``?kq`` and the table answers ``=12xa>``, or ``=12.>`` where the line is the last. A
    calculator keeps a sum: ``#12`` adds 12 and is answered with the sum so far, ``=31>``. The policy ends with the sum. A call
    that is malformed, or of a line that the table lacks, is answered ``!>``. The table is a fixed function of first line and
    level, and lives in ``world``: nothing in the prompt tells how long the bill is.

    Attributes:
        levels: numbers of lines offered, 1 to 12.
        form: ``marks``: calls and answers as above, for a model that is trained from nothing; ``calls``: a question in words, and
            the same two tools, `LineOf` and `Adder`, in the form of the model's chat template.
        spare: calls beyond the necessary ones before the episode is ended.
        lies: share of the tools' answers that give another number, to the same call of a task always the same. The sum that
            counts stays that of the table: a control, under which calling tools earns nothing.
        seed: chooses another stream of tasks and other tables.
        test_share: share of contents that belong to the test split.

    Raises:
        ConfigError: a value out of range.

    >>> task = Bills().task("bills", 2, "train", 0)
    >>> task.public["prompt"], " ".join(m.content for m in Bills().trace(task, 0.0, np.random.default_rng(0)))
    ('Bib>', '?ib =90ui> #90 =90> ?ui =12.> #12 =102> 102')
    """

    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    form: Literal["marks", "calls"] = "marks"
    spare: int = 3
    lies: float = 0.0
    seed: int = 0
    test_share: float = 0.1

    def __post_init__(self) -> None:
        checked_levels("Bills", self.levels, 1, 12)
        check_stream("Bills", self.spare, self.test_share)
        if self.form not in ("marks", "calls"):
            raise ConfigError(f"Bills.form={self.form!r}; use 'marks' or 'calls'")
        if not 0.0 <= self.lies <= 1.0:
            raise ConfigError(f"Bills.lies={self.lies}; it is a share in [0, 1]")

    @property
    def name(self) -> str:
        """``bills``."""
        return "bills"

    @property
    def alphabet(self) -> str:
        """Letters, digits and the marks ``B > ? # = . !``; all that may be printed where calls are JSON."""
        return _LETTERS + _DIGITS + "B>?#=.!" if self.form == "marks" else "\n" + "".join(map(chr, range(32, 127)))

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
        facts = redraw(place, lambda: FrozenMap({"first": _key(rng), "lines": level}), self.test_share)
        lines = self._lines(facts["first"], level)
        return place.make_task(
            self.name,
            public=self._public(facts),
            world={"lines": lines, "calls": 2 * level + self.spare, "lies": self.lies},
            private={"answer": str(sum(price for price, _ in lines.values())), "solution": f"?{facts['first']}"},
        )

    def verifier(self) -> Verifier:
        """Exact match of the final answer, and a format of digits."""
        return Together((ExactMatch(), FormatIs("[0-9]{1,4}")))

    def environment(self, world: TaskView) -> Environment:
        """A table and a calculator for one episode."""
        if self.form == "marks":
            return MarkedTools(world)
        return ToolCalls(world, [LineOf(), Adder()], turns=world.world["calls"])

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's calls, the tools' answers and the final answer: each line is looked up, then its price added.

        Each look-up and the answer hold a slip (`assay.tasks.slip`) with probability ``noise``; the table answers what was really
        asked, and after a slip the oracle asks again. Additions hold none: they would stay in the sum.
        """
        turns: list[Message] = []
        lines: Mapping[str, tuple[int, str]] = task.world["lines"]
        total = 0
        for key, (price, _) in lines.items():
            for asked in dict.fromkeys((slip(key, noise, _LETTERS, rng), key)):  # after a slip, once more and right
                turns += self._turns("?", asked, _line(asked, task.world))
            total += price
            turns += self._turns("#", str(price), ToolResult(content=_reported_value(total, f"#{total}", task.world)))
        return (*turns, Message("assistant", slip(str(total), noise, _DIGITS, rng)))

    def _turns(self, mark: str, said: str, answer: ToolResult) -> tuple[Message, Message]:
        if self.form == "marks":
            return Message("assistant", mark + said), Message("tool", _show_result(answer))
        call = (
            {"name": "line", "arguments": {"key": said}} if mark == "?" else {"name": "add", "arguments": {"number": int(said)}}
        )
        return Message(CALLS, json.dumps([call])), Message("tool", answer.content)

    def _public(self, facts: FrozenMap) -> FrozenMap:
        if self.form == "marks":
            return FrozenMap({"prompt": f"B{facts['first']}>", "facts": facts})
        question = f"The first line of a bill is {facts['first']}. What does the bill come to?"
        return FrozenMap({"prompt": question, "facts": facts, "tools": [dict(tool.schema) for tool in (LineOf(), Adder())]})

    def _lines(self, first: str, level: int) -> dict[str, tuple[int, str]]:
        """Each line's price and the key of the next, ``.`` behind the last."""
        rng = generator("task/bills/lines", self.seed, str(level), first)
        keys = [first]
        while len(keys) < level:
            key = _key(rng)
            if key not in keys:
                keys.append(key)
        return {key: (int(rng.integers(1, 100)), after) for key, after in zip(keys, [*keys[1:], "."], strict=True)}


@dataclass(frozen=True, slots=True)
class LineOf:
    """The table: a line's key to its price and the key of the next line.

    >>> from asyncio import run
    >>> world = Bills().task("bills", 2, "train", 0).public_view()
    >>> [run(LineOf().call({"key": key}, world)).content for key in ("ib", "ui", "zz")]
    ['90ui', '12.', 'Error: there is no such line.']
    """

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        return _schema("line", "A line's price, and the key of the next line; a point behind the last.", "key", "string")

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        """What the line ``args["key"]`` of the world says."""
        return _line(str(args.get("key", "")), scope.world)


@dataclass(slots=True)
class Adder:
    """The calculator of one episode: it keeps a sum.

    Attributes:
        total: so far.

    >>> from asyncio import run
    >>> world, adder = Bills().task("bills", 2, "train", 0).public_view(), Adder()
    >>> [run(adder.call({"number": number}, world)).content for number in (12, 7)]
    ['12', '19']
    """

    total: int = 0

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        return _schema("add", "Adds a number to the sum so far, and tells the sum.", "number", "integer")

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        """The sum with ``args["number"]``, of at most five digits."""
        number = str(args.get("number", ""))
        if not re.fullmatch("[0-9]{1,5}", number):
            return ToolResult(content="Error: no number.", error=f"malformed number {number!r}: up to five digits")
        self.total += int(number)
        return ToolResult(content=_reported_value(self.total, f"#{self.total}", scope.world))


class MarkedTools(SingleUse):
    """The environment of one episode in the form of marks; sees the world, never the answer's own field.

    Attributes:
        tools: by the mark that an action begins with when it calls the tool, each with the name of its argument.

    Args:
        world: the task view; ``world["lines"]`` is the table, ``world["calls"]`` the most calls answered.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self.tools: Mapping[str, tuple[LineOf | Adder, str]] = {"?": (LineOf(), "key"), "#": (Adder(), "number")}
        self._world = world
        self._left: int = world.world["calls"]

    async def step(self, action: str) -> Step:
        """Answers a call, text that begins with ``?`` or ``#``; other text is the final answer. That and the last call end it."""
        self._enter("open", "step")
        if action[:1] not in self.tools:
            self._phase = "over"
            return Step(done=True)
        tool, argument = self.tools[action[:1]]
        result = await tool.call({argument: action[1:]}, self._world)
        self._left -= 1
        if not self._left:
            self._phase = "over"
        return Step(obs=Obs((Message("tool", _show_result(result)),)), done=not self._left, results=(result,))


def _schema(name: str, words: str, argument: str, kind: str) -> Mapping[str, Any]:
    arguments = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
    return {"name": name, "description": words, "parameters": {**arguments, "additionalProperties": False}}


def _key(rng: np.random.Generator) -> str:
    return "".join(_LETTERS[i] for i in rng.integers(0, len(_LETTERS), 2))


def _line(key: str, world: Mapping[str, Any]) -> ToolResult:
    lines: Mapping[str, tuple[int, str]] = world["lines"]
    if key not in lines:
        return ToolResult(content="Error: there is no such line.", error=f"there is no line {key!r}")
    price, after = lines[key]
    return ToolResult(content=_reported_value(price, f"?{key}", world) + after)


def _reported_value(value: int, call: str, world: Mapping[str, Any]) -> str:
    """The value, or where the tools lie another one: the same for the same call of a task."""
    if not world["lies"]:
        return str(value)
    rng = generator("task/bills/lies", 0, next(iter(world["lines"])), call)
    other = (value + int(rng.integers(1, 99)) - 1) % 99 + 1
    return str(other if rng.random() < world["lies"] else value)


def _show_result(result: ToolResult) -> str:
    return "!>" if result.error else f"={result.content}>"
