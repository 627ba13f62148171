"""One arm of a family measured: how fast its tasks are made, what they ask of a solver, how often one answer is right, how many
different ones there are.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from assay.core import DataError, Task, TaskSource, canonical, digest
from assay.runs import write_json
from assay.testing import example_levels, first_task, stream_digest

__all__ = ["Drawn", "Measured", "Sizes", "draw_tasks", "measure", "measure_or_load", "questions"]

_EVERY = 50
"""Of so many tasks drawn one is of the test split: those take ten draws each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured. Each number of tasks has a bound in CPU-seconds besides, for arms that are slow.

    Attributes:
        tasks, seconds: at a level, for its mean effort.
        timed: least CPU-seconds over which the speed of a level is measured.
        answers: tasks among which the commonest gold of the lowest and the middle level is sought.
        draws, draw_seconds: at the lowest level, to count different questions.
    """

    tasks: int = 200
    seconds: float = 0.5
    timed: float = 0.1
    answers: int = 500
    draws: int = 100_000
    draw_seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Many tasks of one level, told apart.

    Attributes:
        tasks: how many were drawn, of both splits.
        distinct: different questions (`Task.content`) among them.
        once: those that came exactly once. None did: the level has no others, but for a share of about 1 / ``tasks``.
        both: questions that came in both splits.
        repeats: questions that read, to the letter, like another one; None where a prompt does not hold the question, because
            it is what the policy is to find out.
        cpu_seconds: that drawing them took.
    """

    tasks: int
    distinct: int
    once: int
    both: int
    repeats: int | None
    cpu_seconds: float = field(default=0.0, compare=False)

    @property
    def whole(self) -> bool:
        """Whether these are all the questions that the level has."""
        return self.once == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was found of an arm.

    Attributes:
        arm, levels: its name and all its levels.
        rate: tasks per CPU-second at the lowest, the middle and the highest level: a whole `Task` with words and answer.
        effort: each level to the mean number of steps of the arm's solver; {} where tasks do not tell.
        commonest: the lowest and the middle level to the share of tasks whose gold is the commonest.
        drawn: at the lowest level.
        cpu_seconds: that all of this took but for the drawing.
        stream: digest of the stream of tasks (`assay.testing.stream_digest`) that it holds for.
        sizes: how much was measured.
    """

    arm: str
    levels: tuple[int, ...]
    rate: Mapping[int, float]
    effort: Mapping[int, float]
    commonest: Mapping[int, float]
    drawn: Drawn
    cpu_seconds: float
    stream: str
    sizes: Sizes = field(default_factory=Sizes)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Measured:
        """The record of one that was written as JSON."""
        by_level: dict[str, Any] = {
            name: {int(level): value for level, value in record[name].items()} for name in ("rate", "effort", "commonest")
        }
        fixed: dict[str, Any] = {
            "levels": tuple(record["levels"]),
            "drawn": Drawn(**record["drawn"]),
            "sizes": Sizes(**record["sizes"]),
        }
        return cls(**{**record, **by_level, **fixed})


def measure_or_load(source: TaskSource, arm: str, folder: Path, sizes: Sizes) -> Measured:
    """`measure`, or its record in ``folder`` where there is one of the same stream and sizes."""
    path = folder / f"{arm.replace('/', '-')}.json"
    if path.exists():
        found = Measured.of(json.loads(path.read_text(encoding="utf-8")))
        if (found.stream, found.levels, found.sizes) == (stream_digest(source, arm), source.arms()[arm], sizes):
            return found
    found = measure(source, arm, sizes, questions(source, arm, folder, sizes))
    write_json(path, asdict(found))
    return found


def questions(source: TaskSource, arm: str, folder: Path, sizes: Sizes) -> Drawn:
    """`draw_tasks` at the arm's lowest level, or its record in ``folder``: unlike speeds, their number depends on no machine."""
    path = folder / f"{arm.replace('/', '-')}-questions.json"
    level = source.arms()[arm][0]
    of = {"stream": stream_digest(source, arm), "level": level, "draws": sizes.draws, "draw_seconds": sizes.draw_seconds}
    if path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["of"] == of:
            return Drawn(**record["drawn"])
    found = draw_tasks(source, arm, level, sizes.draws, sizes.draw_seconds)
    write_json(path, {"of": of, "drawn": asdict(found)})
    return found


def measure(source: TaskSource, arm: str, sizes: Sizes, asked: Drawn | None = None) -> Measured:
    """Measures an arm in this process; ``asked`` are its questions, where they are known.

    >>> from assay_tasks import Reverse
    >>> found = measure(Reverse(levels=(3, 5)), "reverse", Sizes(tasks=20, answers=50, draws=9000))
    >>> found.effort, found.drawn.distinct, found.drawn.whole
    ({3: 3.0, 5: 5.0}, 512, True)
    """
    levels = source.arms()[arm]
    asked = asked or draw_tasks(source, arm, levels[0], sizes.draws, sizes.draw_seconds)
    began = time.process_time()
    told, rate, effort, commonest = example_levels(levels), dict[int, float](), dict[int, float](), dict[int, float]()
    for level in levels:
        tasks, rate_here = _time_draws(source, arm, level, sizes, sizes.timed if level in told else 0.0)
        if level in told:
            rate[level] = rate_here
        efforts = [t.private["effort"] for t in tasks if "effort" in t.private]
        if efforts:
            effort[level] = sum(efforts) / len(efforts)
        if level in told[:2]:
            commonest[level] = _commonest(_more(source, tasks, sizes))
    return Measured(
        arm=arm,
        levels=levels,
        rate=rate,
        effort=effort,
        commonest=commonest,
        drawn=asked,
        sizes=sizes,
        cpu_seconds=round(time.process_time() - began, 2),
        stream=stream_digest(source, arm),
    )


def draw_tasks(source: TaskSource, arm: str, level: int, most: int, seconds: float) -> Drawn:
    """Draws tasks until there are ``most`` or ``seconds`` of CPU time are over, and counts the different ones.

    Kept of a question are 16 bytes: among 10^5 of them two have the same by chance once in 10^9 times.
    """
    seen: dict[str, Counter[int]] = {"train": Counter(), "test": Counter()}
    began, words, hidden = time.process_time(), dict[int, int](), False
    n, repeats = 0, set[int]()
    for task in _stream(source, arm, level):
        key = _short(task.content)
        seen[task.split][key] += 1
        hidden = hidden or "digest" in task.question
        if not hidden and words.setdefault(_short(digest([m.content for m in task.public_view().messages])), key) != key:
            repeats.add(key)
        n += 1
        if n >= most or time.process_time() - began > seconds:
            break
    both = seen["train"].keys() & seen["test"].keys()
    together = seen["train"] + seen["test"]
    once = sum(k == 1 for k in together.values())
    took = round(time.process_time() - began, 2)
    told = None if hidden else len(repeats)
    return Drawn(tasks=n, distinct=len(together), once=once, both=len(both), repeats=told, cpu_seconds=took)


def _stream(source: TaskSource, arm: str, level: int) -> Iterator[Task]:
    """The training stream, in between that of tests; one alone where the level has no task of the other."""
    at, splits = {"train": 0, "test": 0}, ["train", "test"]
    for n in count():
        split = splits[n % _EVERY == _EVERY - 1 if len(splits) > 1 else 0]
        try:
            task = source.task(arm, level, split, at[split])
        except DataError:
            if len(splits) == 1:
                raise
            splits.remove(split)
            continue
        at[split] += 1
        yield task


def _time_draws(source: TaskSource, arm: str, level: int, sizes: Sizes, least: float) -> tuple[list[Task], float]:
    """The first tasks of a level, at most ``sizes.tasks``, and how many are made per CPU-second over ``least`` seconds or more.

    The first one is made before, for what it loads.
    """
    split = first_task(source, arm, level).split
    tasks, began, took, n = list[Task](), time.process_time(), 0.0, 0
    while (n < sizes.tasks or took < least) and took <= sizes.seconds:
        task = source.task(arm, level, split, n)
        n, took = n + 1, time.process_time() - began
        if n <= sizes.tasks:
            tasks.append(task)
    return tasks, n / max(took, 1e-9)


def _more(source: TaskSource, tasks: list[Task], sizes: Sizes) -> list[Task]:
    """The tasks and those that follow, up to ``sizes.answers``."""
    first, end = tasks[0], time.process_time() + sizes.seconds
    more = list(tasks)
    while len(more) < sizes.answers and time.process_time() < end:
        more.append(source.task(first.arm, first.level, first.split, len(more)))
    return more


def _commonest(tasks: list[Task]) -> float:
    golds = Counter(canonical(t.private.get("answer")) for t in tasks)
    return golds.most_common(1)[0][1] / len(tasks)


def _short(text: str) -> int:
    return int(text[:32], 16)
