"""Judgements of working in `benchmarks.judged_tasks`: what a judge is asked in each form, the truth by a program, the reward.

A judge first writes what each line should be, and ``y`` or ``n``; then, behind ``:``, the judgement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from assay.core import FrozenMap, Message, Rollout, Score, Task
from assay.scorers import flaw_reward, judge_reward
from assay.tasks import SingleTurn
from benchmarks.judged_tasks import DIGITS, Shifts, attempt, first_flaw, moved, sound_share, working, written

__all__ = ["FORMS", "Judgements", "beside", "best_of", "critique", "mark_of", "marks_of", "met"]


def beside(prompt: str, text: str) -> str:
    r"""Question and working as a judge reads them: each digit and its line, ``_`` for none; then the answer.

    >>> beside("491=", "7\n2\n=7")
    '47,92,1_=7'
    """
    digits = prompt.rstrip("=")
    lines, answer = working(text)
    size = max(len(digits), len(lines))
    pairs = [f"{_digit(digits[at : at + 1])}{_digit(lines[at] if at < len(lines) else '')}" for at in range(size)]
    return f"{','.join(pairs)}={_digit(answer)}"


def _digit(text: str) -> str:
    return text[0] if text[:1] in DIGITS and text else "_"


class Form(Protocol):
    """What a judge is asked for."""

    def ask(self, level: int, rng: np.random.Generator) -> tuple[str, str]: ...

    def reward(self, said: str, truth: str, level: int) -> float: ...


def critique(prompt: str, text: str) -> str:
    r"""A judge's word on each line, before it judges: what it should be, and ``y`` or ``n``.

    >>> critique("491=", "7\n3\n=7")
    '7y2n4n'
    """
    lines, right = working(text)[0], moved(prompt)
    size = max(len(lines), len(right))
    return "".join(f"{''.join(right[at : at + 1]) or '_'}{'yn'[lines[at : at + 1] != right[at : at + 1]]}" for at in range(size))


def _drawn(level: int, rng: np.random.Generator, right: bool = False) -> tuple[str, str]:
    """A question and an attempt; with ``right`` one whose answer is right."""
    noise = float(rng.choice([0.0, 0.3, 0.6, 0.9]))
    while True:
        prompt = Shifts().ask(level, rng)
        text = attempt(prompt, noise, rng)
        if not right or working(text)[1] == max(moved(prompt)):
            return prompt, text


class FirstFlaw:
    """The first wrong line of a solution whose answer is right, or ``-``; the reward is FAPO's (`assay.scorers.flaw_reward`)."""

    def ask(self, level: int, rng: np.random.Generator) -> tuple[str, str]:
        """One in four and more is sound."""
        prompt, text = _drawn(level, rng, right=True)
        at = first_flaw(prompt, text)
        return beside(prompt, text), f"{critique(prompt, text)}:{'-' if at is None else at}"

    def reward(self, said: str, truth: str, level: int) -> float:
        """By distance to the first error; -1 where it cannot be read."""
        if said != "-" and said not in DIGITS[: level + 1]:
            return -1.0
        predicted, wrong = (None if x == "-" else int(x) for x in (said, truth))
        return flaw_reward(predicted, wrong, level + 1)


class Mark:
    """How sound the working is, in tenths: ``T`` for all of it."""

    def ask(self, level: int, rng: np.random.Generator) -> tuple[str, str]:
        """The share of right lines."""
        prompt, text = _drawn(level, rng)
        return beside(prompt, text), f"{critique(prompt, text)}:{mark_of(prompt, text)}"

    def reward(self, said: str, truth: str, level: int) -> float:
        """1 for the mark."""
        return float(said == truth)


def mark_of(prompt: str, text: str) -> str:
    """Share of right lines in tenths, rounded down; ``T`` for all."""
    tenths = int(10 * sound_share(prompt, text))
    return "T" if tenths == 10 else str(tenths)


class Better:
    """Which of two attempts has more right lines: ``A``, ``B``, or ``=``."""

    def ask(self, level: int, rng: np.random.Generator) -> tuple[str, str]:
        """Two attempts at one question."""
        prompt, first = _drawn(level, rng)
        second = attempt(prompt, 0.5, rng)
        if rng.random() < 0.5:
            first, second = second, first
        gap = sound_share(prompt, first) - sound_share(prompt, second)
        said = "A" if gap > 0 else "B" if gap < 0 else "="
        return f"{beside(prompt, first)};{beside(prompt, second)}", f"{critique(prompt, first)};{critique(prompt, second)}:{said}"

    def reward(self, said: str, truth: str, level: int) -> float:
        """1 for the right one."""
        return float(said == truth)


class Verdict:
    """Whether a criterion is met: ``a`` all lines are right, ``l`` the last is, ``n`` there is a line for each digit."""

    def ask(self, level: int, rng: np.random.Generator) -> tuple[str, str]:
        """A criterion and an attempt, of which one in five lacks its last line."""
        prompt, text = _drawn(level, rng)
        if rng.random() < 0.2:
            text = written(working(text)[0][:-1])
        name = "aln"[rng.integers(3)]
        return f"{name}{beside(prompt, text)}", f"{critique(prompt, text)}:{int(met(name, prompt, text))}"

    def reward(self, said: str, truth: str, level: int) -> float:
        """1 for the right one."""
        return float(said == truth)


def met(name: str, prompt: str, text: str) -> bool:
    """Whether a criterion of `Verdict` is met."""
    lines, right = working(text)[0], moved(prompt)
    full = len(lines) == len(right)
    return {"a": lines == right, "l": full and lines[-1] == right[-1], "n": full}[name]


def marks_of(prompt: str, texts: Sequence[str]) -> list[int]:
    """Marks from 1, no line is right, to 9."""
    return [1 + round(8 * sound_share(prompt, text)) for text in texts]


def best_of(marks: str) -> int:
    """Index of the highest mark; of one alone the mark.

    >>> best_of("373"), best_of("5")
    (1, 5)
    """
    return int(marks) if len(marks) == 1 else max(range(len(marks)), key=lambda n: marks[n])


class Marks:
    """A mark from 1 to 9 for each of one to four attempts at a question; the reward is SPCT's (`assay.scorers.judge_reward`)."""

    def ask(self, level: int, rng: np.random.Generator) -> tuple[str, str]:
        """One attempt, or some of which one is strictly the best; the truth is their marks."""
        while True:
            prompt, first = _drawn(level, rng)
            texts = [first, *(attempt(prompt, 0.3, rng) for _ in range(rng.integers(4)))]
            shares = sorted(sound_share(prompt, t) for t in texts)
            if len(texts) == 1 or shares[-1] > shares[-2]:
                order: list[int] = rng.permutation(len(texts)).tolist()
                texts = [texts[n] for n in order]
                scores = "".join(str(n) for n in marks_of(prompt, texts))
                said = ";".join(critique(prompt, t) for t in texts)
                return ";".join(beside(prompt, t) for t in texts), f"{said}:{scores}"

    def reward(self, said: str, truth: str, level: int) -> float:
        """1 where the best is strictly on top, else -1."""
        if len(said) != len(truth) or not said.isdigit() or "0" in said:
            return -1.0
        return judge_reward([int(c) for c in said], best_of(truth))


FORMS: Mapping[str, Form] = {"flaw": FirstFlaw(), "mark": Mark(), "better": Better(), "verdict": Verdict(), "marks": Marks()}
"""Kinds of judgement by name."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The form's reward of what was said."""

    form: str

    @property
    def trusted(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return ("reward",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        said, truth = (text.rpartition(":")[2].strip() for text in (rollout.text, str(task.private["answer"])))
        return Score(components={"reward": FORMS[self.form].reward(said, truth, task.level)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements(SingleTurn):
    """Questions to a judge of one form, with the truth by a program; ``noise`` of a trace says another judgement of the form."""

    form: str = "flaw"
    levels: tuple[int, ...] = (4,)

    @property
    def name(self) -> str:
        """The form's."""
        return f"judge-{self.form}"

    @property
    def symbols(self) -> str:
        """What judgements are made of."""
        return f"yn{DIGITS}" + {"flaw": "-", "mark": "T", "better": "AB="}.get(self.form, "")

    @property
    def alphabet(self) -> str:
        """Of all forms."""
        return DIGITS + "=:,;_-TABalny>"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Attempts beside their question; the truth goes with it, behind ``>``, until `task` takes it off."""
        asked, truth = FORMS[self.form].ask(level, rng)
        return f"{asked}>{truth}"

    def solve(self, prompt: str) -> str:
        """The truth."""
        return prompt.partition(">")[2]

    def verifier(self) -> Any:
        """The form's reward."""
        return _Rule(self.form)

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """Without the truth in its prompt."""
        made = SingleTurn.task(self, arm, level, split, index)
        prompt: str = made.public["prompt"]
        return replace(made, public=FrozenMap({"prompt": f"{prompt.partition('>')[0]}>"}))

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The truth, each sign of it another one with probability ``noise``."""
        signs = [
            rng.choice(list(self.symbols)) if sign not in ":;" and rng.random() < noise else sign
            for sign in task.private["answer"]
        ]
        return (Message("assistant", "".join(signs)),)
