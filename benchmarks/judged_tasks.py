"""The family of `benchmarks.judged`: digits moved one by one before the largest is named.

A line of working is wrong by itself, so that many right answers have a wrong line before them. A program knows which, so that a
judge's every word can be compared with the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from assay.core import FrozenMap, Message, Rollout, Score, Task
from assay.tasks import SingleTurn

__all__ = [
    "DIGITS",
    "Behind",
    "Boxes",
    "Chosen",
    "Shifts",
    "Tagged",
    "attempt",
    "first_flaw",
    "moved",
    "sound_share",
    "working",
    "written",
]

DIGITS = "0123456789"


def moved(prompt: str) -> list[str]:
    """The right working.

    >>> moved("491=")
    ['7', '2', '4']
    """
    return [str((int(d) + 3) % 10) for d in prompt.rstrip("=")]


def working(text: str) -> tuple[list[str], str]:
    """Lines before the answer, and the answer: what stands behind the last ``=``."""
    before, _, answer = text.rpartition("=")
    return [line for line in before.split("\n") if line], answer.strip()


def first_flaw(prompt: str, text: str) -> int | None:
    r"""The first line that is not as it should be, missing and needless ones included; None where all are right.

    >>> first_flaw("491=", "7\n2\n4\n=7"), first_flaw("491=", "7\n3\n4\n=7"), first_flaw("491=", "7\n2\n=7")
    (None, 1, 2)
    """
    lines, right = working(text)[0], moved(prompt)
    for at in range(max(len(lines), len(right))):
        if lines[at : at + 1] != right[at : at + 1]:
            return at
    return None


def sound_share(prompt: str, text: str) -> float:
    r"""Share of lines that are right.

    >>> sound_share("491=", "7\n3\n4\n=7")
    0.6666666666666666
    """
    lines, right = working(text)[0], moved(prompt)
    return sum(a == b for a, b in zip(lines, right, strict=False)) / max(len(lines), len(right))


@dataclass(frozen=True, slots=True)
class Behind:
    """``correct`` is 1 where what stands behind the last ``=`` is the answer."""

    @property
    def trusted(self) -> bool:
        """Runs in process."""
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """``correct``."""
        return ("correct",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """The verdict."""
        return Score(components={"correct": float(working(rollout.text)[1] == task.private["answer"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts(SingleTurn):
    r"""Each digit plus three, modulo 10, line by line; then the largest: ``491=`` asks for ``7``, ``2``, ``4``, ``=7``.

    A trace has each line wrong with probability ``noise``, and names the largest of what it wrote. ``private["anchor"]`` is such
    a trace, at probability 0.5.

    >>> Shifts().solve("491=")
    '7\n2\n4\n=7'
    """

    levels: tuple[int, ...] = (4,)
    title: ClassVar[str] = "shifts"

    @property
    def name(self) -> str:
        """``shifts``."""
        return self.title

    @property
    def symbols(self) -> str:
        """Digits."""
        return DIGITS

    @property
    def alphabet(self) -> str:
        """Digits, tags and marks."""
        return DIGITS + "=\nEH"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """So many digits."""
        return f"{''.join(DIGITS[n] for n in rng.integers(10, size=level))}="

    def solve(self, prompt: str) -> str:
        """All lines, and the answer."""
        return written(moved(prompt))

    def gold(self, prompt: str) -> str:
        """The largest."""
        return max(moved(prompt))

    def verifier(self) -> Behind:
        """Of the answer alone."""
        return Behind()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """With an anchor, drawn by the task's own digits."""
        made = SingleTurn.task(self, arm, level, split, index)
        prompt: str = made.public["prompt"]
        anchor = attempt(prompt, 0.5, np.random.default_rng([int(d) for d in prompt if d.isdigit()]))
        return replace(made, private=FrozenMap({**made.private, "anchor": anchor}))

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """Lines with slips."""
        return (Message("assistant", attempt(task.public["prompt"], noise, rng)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Shifts):
    """`Shifts` whose training tasks are those of some indices, over and over."""

    kept: tuple[int, ...] = (0,)

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The next one of those kept."""
        return super(Chosen, self).task(arm, level, split, self.kept[index % len(self.kept)] if split == "train" else index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged(Shifts):
    """`Shifts` behind a tag that is drawn evenly: ``E=7`` without working, or ``H`` with it, in which few lines are wrong.

    Without working a trace guesses where there are more than three digits.
    """

    levels: tuple[int, ...] = (2, 3, 4, 5)
    title: ClassVar[str] = "tagged"

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """One of the two forms."""
        prompt: str = task.public["prompt"]
        if rng.random() < 0.5:
            return (Message("assistant", f"H{attempt(prompt, noise / 3, rng)}"),)
        answer = max(moved(prompt)) if task.level <= 3 else DIGITS[rng.integers(10)]
        return (Message("assistant", f"E={answer}"),)


def written(lines: Sequence[str]) -> str:
    """Lines, and the largest behind ``=``."""
    return "\n".join([*lines, f"={max(lines)}"])


def attempt(prompt: str, noise: float, rng: np.random.Generator) -> str:
    """An attempt of which each line is another digit with probability ``noise``."""
    lines = [str((int(d) + rng.integers(1, 10)) % 10) if rng.random() < noise else d for d in moved(prompt)]
    return written(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes(Shifts):
    r"""Numbers put into two boxes one after another, and what is in one in the end: ``- a5``, ``- b2``, ``- a7``, ``a?``: ``=7``.

    The level is the number of events. A trace answers at once, ``=7``, after a glance, ``~7=7``, or after naming all that was
    put into the box, ``:57=7``; each digit is another one with probability ``noise``.

    >>> Boxes().solve("- a5\n- b2\n- a7\na?")
    ':57=7'
    """

    levels: tuple[int, ...] = (3, 4)
    title: ClassVar[str] = "boxes"

    @property
    def alphabet(self) -> str:
        """Digits, boxes and marks."""
        return DIGITS + "ab- \n?=~:"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Events in order, of which one at least is of the box asked for."""
        boxes = ["ab"[n] for n in rng.integers(2, size=level)]
        events = [f"- {box}{rng.integers(10)}" for box in boxes]
        return "\n".join([*events, f"{boxes[rng.integers(level)]}?"])

    def solve(self, prompt: str) -> str:
        """All that was put into the box, and the last."""
        *events, asked = prompt.split("\n")
        put = "".join(event[3] for event in events if event[2] == asked[0])
        return f":{put}={put[-1]}"

    def gold(self, prompt: str) -> str:
        """The last."""
        return self.solve(prompt)[-1]

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """Without an anchor."""
        return SingleTurn.task(self, arm, level, split, index)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """One of three forms."""
        put = self.solve(task.public["prompt"])[1:-2]
        said = [DIGITS[rng.integers(10)] if rng.random() < noise else d for d in put]
        shown = ("", f"~{said[-1]}", f":{''.join(said)}")[rng.integers(3)]
        return (Message("assistant", f"{shown}={said[-1]}"),)
