"""Prefixes of stored right answers (PrefixRL), and the quarters of a solution as rows of their own (SPARKLE)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.seeds import derive, uniforms
from assay.core.task import Prefill, Task
from assay.guide.guidance import Stateless, plain_context, solution_of
from assay.guide.hints import check_text, hinted_context

__all__ = ["Quarters", "TracePrefix"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePrefix(Stateless):
    """PrefixRL: a task with a stored right answer is posed behind one of a few fixed first parts of it, or plainly.

    Rollouts go on from ``x + y[:h]``, with ``h = c |y|`` and ``c`` uniform in ``share``. Traces are rows of ``assay
    distill``: right answers of any policy, such as the base's own by rejection. Each trace has a few
    cuts, drawn once and evenly from ``share`` of its tokens, and a task is posed plainly or behind one of them with equal
    chances: with three cuts, prefixed to plain is three to one. The prefix begins the answer and is not
    learned from; all rollouts of a group have the same one. Tasks without a trace are posed plainly.

    Source: PrefixRL (arXiv 2601.18795).

    Attributes:
        traces: JSON lines with ``messages``: the prompt's, and the answer as the last one.
        cuts: of each trace.
        share: ``(low, high)`` of its tokens, between which cuts are drawn.
        seed: chooses other cuts and draws, pure functions of seed, prompt and key.

    Raises:
        ConfigError: a value out of range.

    >>> cuts = TracePrefix(traces="traces.jsonl").cuts_of("1+1=")
    >>> len(cuts), all(0.4 <= cut <= 0.8 for cut in cuts)
    (3, True)
    """

    traces: str = field(metadata={"arg": {"metavar": "FILE"}})
    cuts: int = 3
    share: tuple[float, float] = (0.4, 0.8)
    seed: int = 0

    def __post_init__(self) -> None:
        low, high = self.share
        if not 0.0 <= low <= high <= 1.0 or self.cuts < 1 or not self.traces:
            raise ConfigError(
                f"TracePrefix(traces={self.traces!r}, cuts={self.cuts}, share={self.share}): name a file of traces, at least one "
                "cut, and 0 <= low <= high <= 1"
            )

    @property
    def files(self) -> tuple[str, ...]:
        """What it reads; looked for before a run begins."""
        return (self.traces,)

    def cuts_of(self, prompt: str) -> tuple[float, ...]:
        """The cuts of a prompt's trace, as shares of its tokens."""
        low, high = self.share
        drawn = uniforms(np.array([derive("guidance/cuts", self.seed, "", prompt)], np.uint64), 0, self.cuts)[0]
        return tuple(low + (high - low) * float(x) for x in drawn)

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the file cannot be read, or holds something else.
        """
        if history:
            return ()
        plain = plain_context(task, moment.key)
        prompt = "\n".join(m.content for m in plain.messages)
        answer = _answers(self.traces).get(prompt)
        chance = float(uniforms(np.array([derive("guidance/trace", self.seed, "", moment.key)], np.uint64), 0, 1)[0, 0])
        which = int(chance * (self.cuts + 1))
        if answer is None or which == self.cuts:
            return (Posed(context=plain),)
        return (Posed(context=plain_context(task, moment.key, Prefill(answer, self.cuts_of(prompt)[which]))),)


@cache
def _answers(path: str) -> Mapping[str, str]:
    """Prompt to the first right answer to it."""
    out: dict[str, str] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"TracePrefix.traces={path!r} cannot be read ({error}); write it with 'assay distill'") from error
    for number, line in enumerate(lines, 1):
        try:
            *asked, said = json.loads(line)["messages"]
            out.setdefault("\n".join(_content(m) for m in asked), _content(said))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}, line {number}: a trace is an object with 'messages', the answer last ({error})") from error
    return out


def _content(message: Mapping[str, Any]) -> str:
    text = message["content"]
    if not isinstance(text, str):
        raise TypeError(f"content is {type(text).__name__}, not text")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarters(Stateless):
    """SPARKLE's second stage: a task is posed plainly, or with one to all of the parts of its solution before the answer.

    The solution's units (paragraphs) are cut into ``parts`` runs, the k-th ending at ``floor(k n / parts)``. Which of the
    ``parts + 1`` contexts a task gets is drawn evenly; a solution of fewer units has fewer. The last one shows
    the whole solution, as published: a fifth of the rows is nearly free; ``whole=False`` leaves it out.

    Source: Beyond Accuracy (SPARKLE, 2025), its stage on partial solutions.

    Attributes:
        parts: of the solution.
        unit: text between its units; empty for characters.
        whole: also pose the task with all of it.
        text: the last user turn, with ``{prompt}`` and ``{hint}``; empty: the answer itself begins with the parts.
        seed: chooses other draws, a pure function of seed and key.

    Raises:
        ConfigError: no part, or another text.

    >>> [len(Quarters(unit="").first_parts("abcdefg", k)) for k in range(5)]
    [0, 1, 3, 5, 7]
    """

    parts: int = 4
    unit: str = "\n\n"
    whole: bool = True
    text: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.parts < 1 + (not self.whole):
            raise ConfigError(f"Quarters.parts={self.parts} leaves nothing to give; use at least 2, or 1 with the whole")
        check_text(self, self.text)

    def first_parts(self, solution: str, k: int) -> str:
        """The first ``k`` parts."""
        units = solution.split(self.unit) if self.unit else list(solution)
        return self.unit.join(units[: k * len(units) // self.parts])

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the task has no user turn, or neither a solution nor an answer that is text.
        """
        if history:
            return ()
        solution = solution_of(task, "a partial solution")
        steps = list(dict.fromkeys(self.first_parts(solution, k) for k in range(self.parts + self.whole)))
        where = float(uniforms(np.array([derive("guidance/quarters", self.seed, "", moment.key)], np.uint64), 0, 1)[0, 0])
        hint = steps[int(where * len(steps))]
        if not hint:
            return (Posed(context=plain_context(task, moment.key)),)
        if self.text:
            return (Posed(context=hinted_context(task, moment.key, hint, self.text)),)
        return (Posed(context=plain_context(task, moment.key, Prefill(hint))),)
