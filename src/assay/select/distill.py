"""Distillation: a teacher answers training tasks, the family's verifier judges, and the right answers become rows to imitate."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

from assay.core.canon import digest, plain
from assay.core.errors import ConfigError, DataError, EngineError, RewardError, UnknownNameError
from assay.core.protocols import Step, TaskSource
from assay.core.rollout import Rollout, Stop
from assay.core.score import Score
from assay.core.task import Task
from assay.core.util.event_loop import run_async
from assay.core.util.jsonl import object_of
from assay.core.util.renamed import RenamedMembers, refuse_old_keywords
from assay.curate.rows import dump_line
from assay.rollout.environments import EnvironmentFailure, ask_environment, open_environment
from assay.runs.storage import write_text
from assay.select.teachers import Teacher
from assay.train.evaluate import held_out
from assay.train.levels import Levels, check_levels
from assay.verify import ScoringPool

__all__ = ["Distillation", "Distilled"]

Turn = list[Any]
"""Role, text, and the thought before it, None for none."""

_SECONDS = 30.0
"""What an environment has for a step that it has taken before."""
_ENOUGH = 8
"""So many answers, most of them without a verdict, mean that the verifier is broken and not the answers."""
_COUNTS = ("asked", "right", "repeated", "wrong", "cut_off", "unanswered", "unjudged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled(RenamedMembers):
    """What came of a distillation.

    Attributes:
        out: the file of rows.
        rows: how many it has.
        tasks: tasks that were asked.
        solved: those with a right answer.
        again: those without one that had one without an answer or a verdict; the same command asks them again.
        counts: how many were ``asked``: they were ``right`` (``repeated`` of these said what one before said), ``wrong``,
            ``cut_off``, ``unanswered`` (the teacher or an environment failed), or ``unjudged`` (the verifier failed).
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"attempts": "counts"}

    out: Path
    rows: int
    tasks: int
    solved: int
    again: int
    counts: Mapping[str, int]


@refuse_old_keywords({"attempts": "answers"})
@dataclass(frozen=True, kw_only=True)
class Distillation:
    """Answers of a teacher to training tasks, judged: those that are right, as rows that `assay.train.Imitate` reads.

    Only tasks of the split ``train`` are asked. An answer that was cut off is not kept. One that the teacher could not make, or
    that the verifier could not judge, counts as neither right nor wrong.

    What was answered is kept beside the file, in ``OUT.work``: a distillation that was stopped or killed goes on with what is
    missing, one with more tasks asks the further ones, and ``keep``, ``prefer`` and ``thoughts`` can be changed without asking
    anything.

    Attributes:
        teacher: who answers.
        tasks: the family.
        levels: which, of every arm or arm by arm; all when empty.
        per_level: different tasks of each arm and level; a level that has fewer gives all.
        answers: answers to each task.
        keep: most right answers kept of each task, all different.
        prefer: which: ``first`` ones, or the ``shortest``, thoughts included.
        threshold: an answer is right from this value of the verifier's on.
        thoughts: keep thoughts, between the teacher's tags.
        at_once: tasks that are asked at the same time; behind each such block the work is saved.
        deadline: seconds for one verdict.
    """

    teacher: Teacher
    tasks: TaskSource
    levels: Levels = ()
    per_level: int = 64
    answers: int = 4
    keep: int = 1
    prefer: Literal["first", "shortest"] = "first"
    threshold: float = 1.0
    thoughts: bool = True
    at_once: int = 32
    deadline: float = 5.0

    def __post_init__(self) -> None:
        for name in ("per_level", "answers", "keep", "at_once"):
            if getattr(self, name) < 1:
                raise ConfigError(f"Distillation.{name}={getattr(self, name)}; use at least 1")
        if not self.deadline > 0:
            raise ConfigError(f"Distillation.deadline={self.deadline}; use a positive number of seconds")
        if self.prefer not in ("first", "shortest"):
            raise UnknownNameError("Distillation.prefer", self.prefer, ("first", "shortest"))
        check_levels(self.tasks, self.levels, "Distillation.levels")

    def run(self, out: str | Path, tell: Callable[[int, int, int], None] = lambda done, of, solved: None) -> Distilled:
        """Asks what has not been answered yet, and writes the rows.

        Args:
            out: the file; replaced whole at the end, where it is of an earlier distillation.
            tell: hears how many tasks are done, of how many, and how many of them are solved.

        Raises:
            ConfigError: the file is not of a distillation, or of one by another teacher or other settings, or another process
                writes it; or the teacher refuses all requests.
            DataError: no task to train on, or one that the teacher cannot read.
            EngineError: nothing of a whole block was answered. What had been is kept.
            RewardError: the verifier gave no verdict on most answers of a block; likewise.
        """
        path = Path(out)
        if path.suffix != ".jsonl":
            raise ConfigError(f"{path} is written as JSON lines; name a file that ends in .jsonl")
        wanted = held_out(self.tasks, self.levels, self.per_level, "train")
        with _work(path, self._settings()) as work:
            run_async(self._ask([t for t in wanted if work.missing(t)], wanted, work, tell))
            records = [work.done[t.content] for t in wanted if t.content in work.done]
        lines = [dump_line(row).decode() for record in records for row in self._rows(record)]
        write_text(path, "".join(lines))
        counts = Counter[str]()
        for record in records:
            counts.update(record["counts"])
        return Distilled(
            out=path,
            rows=len(lines),
            tasks=len(records),
            solved=sum(bool(r["right"]) for r in records),
            again=sum(r["again"] for r in records),
            counts={name: counts[name] for name in _COUNTS},
        )

    def _settings(self) -> dict[str, Any]:
        """What answers and verdicts depend on."""
        said = {"tasks": self.tasks.name, "attempts": self.answers, "threshold": self.threshold}
        return plain({"teacher": dict(self.teacher.describe()), **said})

    async def _ask(
        self, open_tasks: Sequence[Task], wanted: Sequence[Task], work: _Work, tell: Callable[[int, int, int], None]
    ) -> None:
        try:
            with ScoringPool(self.tasks.verifier(), self.deadline, refuse=False) as pool:
                for start in range(0, len(open_tasks), self.at_once):
                    block = open_tasks[start : start + self.at_once]
                    for record in await self._block(block, pool):
                        work.add(record)
                    work.sync()
                    done = len(wanted) - len(open_tasks) + start + len(block)
                    tell(done, len(wanted), sum(bool(work.done[t.content]["right"]) for t in wanted if t.content in work.done))
        finally:
            await self.teacher.close()

    async def _block(self, tasks: Sequence[Task], pool: ScoringPool) -> list[dict[str, Any]]:
        made = await self.teacher.ask(self.tasks, tasks, self.answers)
        missed = [trial for of in made for trial in of if isinstance(trial, str)]
        if len(missed) == len(tasks) * self.answers:
            raise EngineError(f"the teacher answered nothing of {len(missed)} attempts; the first: {missed[0]}")
        attempted = [(t, r) for t, of in zip(tasks, made, strict=True) for r in of if isinstance(r, Rollout)]
        ended = [(task, rollout) for task, rollout in attempted if rollout.stop is not Stop.LENGTH]
        scores = pool.score(ended) if ended else {}
        unjudged = [score for score in scores.values() if not score.valid]
        if len(scores) >= _ENOUGH and 2 * len(unjudged) > len(scores):
            why = unjudged[0].info.get("error", f"a {unjudged[0].fault.value} fault")
            raise RewardError(f"no verdict on {len(unjudged)} of {len(scores)} answers; the first failure: {why}")
        return [await self._record(task, of, scores) for task, of in zip(tasks, made, strict=True)]

    async def _record(self, task: Task, trials: Sequence[Rollout | str], scores: Mapping[str, Score]) -> dict[str, Any]:
        """What is kept of a task."""
        counts, right = Counter[str](asked=len(trials)), dict[str, dict[str, Any]]()
        for trial in trials:
            found = await self._judge_trial(trial, scores)
            if isinstance(found, str):
                counts[found] += 1
                continue
            counts["right"] += 1
            counts["repeated"] += digest(found["turns"]) in right
            right.setdefault(digest(found["turns"]), found)
        messages = [[m.role, m.content, None] for m in task.public_view().messages]
        again = not right and counts["unanswered"] + counts["unjudged"] > 0
        head = {"task": task.id, "arm": task.arm, "level": task.level, "content": task.content}
        return {**head, "messages": messages, "counts": dict(counts), "right": list(right.values()), "again": again}

    async def _judge_trial(self, trial: Rollout | str, scores: Mapping[str, Score]) -> dict[str, Any] | str:
        """The turns of an attempt and its value, where it is right; else what it counts as."""
        if isinstance(trial, str):
            return "unanswered"
        if trial.stop is Stop.LENGTH:
            return "cut_off"
        score = scores[trial.id]
        if not score.valid:
            return "unjudged"
        if score.primary < self.threshold or not trial.calls or not all(call.text.strip() for call in trial.calls):
            return "wrong"
        try:
            return {"turns": await _turns(self.tasks, trial), "value": score.primary}
        except EnvironmentFailure:
            return "unanswered"

    def _rows(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a task."""
        spelled = [
            {"messages": [self._message(turn) for turn in (*record["messages"], *found["turns"])], "value": found["value"]}
            for found in record["right"]
        ]
        if self.prefer == "shortest":
            spelled.sort(key=lambda row: sum(len(m["content"]) for m in row["messages"]))
        head = {name: record[name] for name in ("task", "arm", "level")}
        return [{**row, **head} for row in _different(spelled)[: self.keep]]

    def _message(self, turn: Turn) -> dict[str, str]:
        role, text, thought = turn
        tags = self.teacher.thinking if thought and self.thoughts else None
        return {"role": role, "content": f"{tags.open}\n{thought}\n{tags.close}\n\n{text}" if tags else text}


async def _turns(source: TaskSource, rollout: Rollout) -> list[Turn]:
    """What was said behind the opening. An environment is asked once more: it answers equal actions with equal words.

    Raises:
        Broken: it did not answer this time.
    """
    world, shown = await open_environment(partial(source.environment, rollout.context.task), rollout.context, _SECONDS)
    turns: list[Turn] = [[m.role, m.content, None] for m in shown.messages]
    for number, call in enumerate(rollout.calls, 1):
        turns.append(["assistant", call.text, call.thought])
        if world is not None and number < len(rollout.calls):
            step = await ask_environment(partial(world.step, call.text), Step, number, _SECONDS)
            turns += [[m.role, m.content, None] for m in step.obs.messages]
    return turns


def _different(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that say the same, as answers may without their thoughts."""
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(digest(row["messages"]), row)
    return list(first.values())


# ---- what survives a kill ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Work:
    """The file beside the rows: settings in its first line, then a record for each task."""

    file: BinaryIO
    done: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def missing(self, task: Task) -> bool:
        found = self.done.get(task.content)
        return found is None or found["again"]

    def add(self, record: dict[str, Any]) -> None:
        self.done[record["content"]] = record
        self.file.write(dump_line(record))

    def sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def _work(out: Path, settings: Mapping[str, Any]) -> Generator[_Work]:
    """The work of an earlier process, or none yet; held by one process at a time."""
    path = out.with_name(f"{out.name}.work")
    if out.exists() and not path.exists():
        raise ConfigError(f"{out} is there already, and not of a distillation ({path} is missing); name a new file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"another process distils into {out}; wait for it, or name another file") from None
        file.seek(0)
        whole = file.read()
        whole = whole[: whole.rfind(b"\n") + 1]  # a line that a kill tore is asked anew
        file.truncate(len(whole))
        work, lines = _Work(file), whole.splitlines()
        if not lines:
            file.write(dump_line({"distillation": settings}))
            work.sync()
        elif (before := _read(path, 1, lines[0]).get("distillation")) != settings:
            raise ConfigError(
                f"{path} is the work of another distillation: {_describe_change(before, settings)}; "
                "name another file, or remove that one"
            )
        for number, line in enumerate(lines[1:], 2):
            record = _read(path, number, line)
            work.done[record["content"]] = record
        yield work


def _read(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return object_of(line)
    except DataError as error:
        raise DataError(f"{path}, line {number}: {error}; the file is damaged: remove it, and all is asked anew") from None


def _describe_change(before: Any, now: Mapping[str, Any]) -> str:
    """What differs, in words."""
    if not isinstance(before, dict):
        return "its first line says no settings"
    names = [name for name in now if before.get(name) != now[name]]  # pyright: ignore[reportUnknownMemberType]
    return "; ".join(f"{name} was {before.get(name)} and is {now[name]}" for name in names)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
