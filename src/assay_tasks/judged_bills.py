"""Bills whose look-ups may bring another line: the policy judges each answer before it goes on (ReSeek's action)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import Environment, Obs, Step
from assay.core.rollout import ToolResult
from assay.core.seeds import generator
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import checked_levels, slip
from assay_tasks.bills import Adder, Bills
from assay_tasks.phases import SingleUse

__all__ = ["JudgedBills", "JudgingTools", "SameLine"]

YES, NO = "y", "n"
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBills(Bills):
    """`Bills` with a table that sometimes answers with a line that was not asked for, and a turn that says whether it is of use.

    The table answers ``?kq`` with key, price and next line, ``=kq12xa>``; where a key is looked up for the first time, with
    probability ``useless`` with those of a line that is none of the bill's. The next turn must judge: ``y``, and the line is
    added, ``#12``, or ``n``, and it is looked up again; each is answered ``.>``. A turn out of this order is answered ``!>``.
    What was found stays in the conversation either way.

    Attributes:
        levels: numbers of lines offered, 1 to 6.
        spare: turns beyond five a line before the episode is ended.
        useless: share of first look-ups that bring another line, by the task and the key.

    Raises:
        ConfigError: a value out of range, or the form of calls, which it lacks.

    >>> task = JudgedBills(useless=0.0).task("judged_bills", 1, "train", 0)
    >>> " ".join(m.content for m in JudgedBills().trace(task, 0.0, np.random.default_rng(0)))
    '?ym =ym49.> y .> #49 =49> 49'
    """

    levels: tuple[int, ...] = (1, 2, 3, 4)
    useless: float = 0.3

    def __post_init__(self) -> None:
        super(JudgedBills, self).__post_init__()
        checked_levels("JudgedBills", self.levels, 1, 6)
        if self.form != "marks" or self.lies:
            raise ConfigError(
                f"JudgedBills(form={self.form!r}, lies={self.lies}): it has the form of marks and useless lines alone"
            )
        if not 0.0 <= self.useless < 1.0:
            raise ConfigError(f"JudgedBills.useless={self.useless}; it is a share in [0, 1)")

    @property
    def name(self) -> str:
        """``judged_bills``."""
        return "judged_bills"

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th task of a stream, as `Bills.task`."""
        plain = super(JudgedBills, self).task(arm, level, split, index)
        world = {**plain.world, "calls": 5 * level + self.spare, "useless": self.useless}
        return replace(plain, world=FrozenMap(world))

    def environment(self, world: TaskView) -> Environment:
        """A table, a judgement and a calculator for one episode."""
        return JudgingTools(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's look-ups, judgements and additions, the answers, and the sum.

        Each judgement but a third one of a line is wrong with probability ``noise``: a line of use is looked up again, another's
        price is added. The final answer holds a slip with the same probability.
        """
        turns: list[Message] = []
        lines: Mapping[str, tuple[int, str]] = task.world["lines"]
        total = 0
        for key in lines:
            found, says, asked = "", NO, 0
            while says == NO:
                found = _look_up(key, asked > 0, task.world)
                says = (NO, YES)[asked == 2 or (found[:2] == key) != (rng.random() < noise)]
                turns += [Message("assistant", f"?{key}"), Message("tool", f"={found}>")]
                turns += [Message("assistant", says), Message("tool", ".>")]
                asked += 1
            price = int(re.findall("[0-9]+", found)[0])
            total += price
            turns += [Message("assistant", f"#{price}"), Message("tool", f"={total}>")]
        return (*turns, Message("assistant", slip(str(total), noise, _DIGITS, rng)))


class JudgingTools(SingleUse):
    """The environment of one episode; sees the world, never the answer's own field.

    Args:
        world: the exposed task; ``world["lines"]`` is the table, ``world["calls"]`` the most turns answered.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self._world, self._adder = world, Adder()
        self._left: int = world.world["calls"]
        self._asked: set[str] = set()
        self._next = "?"  # what must come: a look-up, a judgement, or any of look-up, addition and answer

    async def step(self, action: str) -> Step:
        """Answers a look-up, a judgement or an addition; other text is the final answer. That and the last turn end it."""
        self._enter("open", "step")
        if action[:1] not in ("?", "#") and action not in (YES, NO):
            self._phase = "over"
            return Step(done=True)
        shown, results = await self._answer(action)
        self._left -= 1
        if not self._left:
            self._phase = "over"
        return Step(obs=Obs((Message("tool", shown),)), done=not self._left, results=results)

    async def _answer(self, action: str) -> tuple[str, tuple[ToolResult, ...]]:
        kind = "judge" if action in (YES, NO) else action[0]
        if kind != self._next and (self._next != "any" or kind == "judge"):
            return "!>", (ToolResult(content="", error=f"{action!r} out of order"),)
        if kind == "judge":
            self._next = "any" if action == YES else "?"
            return ".>", ()
        if kind == "#":
            result = await self._adder.call({"number": action[1:]}, self._world)
            return ("!>" if result.error else f"={result.content}>"), (result,)
        key = action[1:]
        if key not in self._world.world["lines"]:
            return "!>", (ToolResult(content="", error=f"there is no line {key!r}"),)
        found = _look_up(key, key in self._asked, self._world.world)
        self._asked.add(key)
        self._next = "judge"
        return f"={found}>", (ToolResult(content=found),)


@dataclass(frozen=True, slots=True)
class SameLine:
    """Whether a look-up brought the line that was asked for; implements `assay.train.judge_rewards.Relevance`.

    >>> SameLine()(JudgedBills().task("judged_bills", 1, "train", 0), "?kq", "kq12.")
    1.0
    """

    def __call__(self, task: Task, asked: str, found: str) -> float:
        """1 where the answer begins with the key, else 0."""
        return float(found[:2] == asked[1:3])


def _look_up(key: str, again: bool, world: Mapping[str, Any]) -> str:
    """What the table answers to a key, looked up for the first time or ``again``: key, price and next line."""
    lines: Mapping[str, tuple[int, str]] = world["lines"]
    price, after = lines[key]
    rng = generator("task/judged_bills/useless", 0, next(iter(lines)), key)
    if again or rng.random() >= world["useless"]:
        return f"{key}{price}{after}"
    other = key
    while other in lines:
        other = "".join(_LETTERS[i] for i in rng.integers(0, len(_LETTERS), 2))
    return f"{other}{int(rng.integers(1, 100))}{''.join(_LETTERS[i] for i in rng.integers(0, len(_LETTERS), 2))}"
