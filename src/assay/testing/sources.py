"""What a family of tasks promises, checked on samples of every cell."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import TaskSource, Verifier
from assay.core.rollout import Rollout
from assay.core.seeds import content_split
from assay.core.task import CALLS, Task
from assay.tasks.gold_text import task_gold_text
from assay.tasks.one_answer import has_one_answer, leaves_open, oracle_answer
from assay.testing.contracts import ContractError, Report, check_environment, guard, most_common, require, verdict, wait_for
from assay.testing.source_comparisons import describe_difference, digest_elsewhere, ends_with, keys_of, tag_calls
from assay.verify.abilities import ability_of
from assay.verify.answer_templates import PLACE
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["check_task_source"]

SPLITS = ("train", "test")

_AROUND_IT = "the answer beside another one, denied, or inside a longer text is wrong"
_AS_TRACED = "environment: answers the oracle as its trace says"
_PARTIAL = "; for partial credit give 'correct' too, which is 1 for a right answer alone (docs/add/verifier.md, Partial credit)"

_REPORTED = (
    "partial credit: training learns from 'correct', and 'reward' is only reported; declare "
    "'weighted_sum: ClassVar[bool] = True' in the verifier to learn from 'reward'"
)

JUNK = ("", " ", "\n", "junk", "\x00\ud7ff", "None", "0", "1", "-1", "A", "yes", "[]", "9" * 300, "I do not know.")
"""Answers that no task asks for, but for those whose gold is one of them."""

AROUND = ("{other} or {answer}", "{answer} or {other}", "not {answer}", "{other} {answer} {other}")
"""Wrong answers in which the right one stands: two at once, a denial, and the right one inside a longer text."""

STRANGERS = 0.3
"""Largest share of tasks on which the answer to another of the same arm and level may be right: small graphs, for example, often
have a colouring in common. Counted where the private answer is a table."""


def check_task_source(
    source: TaskSource,
    *,
    n: int = 16,
    floor: float = 0.0,
    constant: float = 0.6,
    closely: int | None = None,
    deadline: float = 5.0,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Holds a family to its protocol on ``n`` tasks of each arm, level and split.

    Of every task: it says what was asked for (arm, level, split, index); splits by content without overlap; its private part is
    not in its `World`; the oracle's clean trace scores 1. Of those looked at closely besides: pure (the same call, the same task;
    also under another PYTHONHASHSEED; the same verdict again); junk, the empty answer and the prompt score the floor, and so does
    another task's answer, where the private answer is no table: with one, any answer with some property may be right, also by
    chance; no constant answer is right too often; an environment answers the oracle as its trace says.

    Args:
        source: the family.
        n: tasks per cell.
        floor: primary value of a wrong answer.
        constant: largest share of tasks that one constant answer may solve.
        closely: about how many tasks are looked at closely, the first ones of every cell in equal parts, and at least one; None
            for all. With it a check of many tasks costs little more than to make and solve them.
        deadline: seconds for one verdict of a verifier that is not ``trusted``; it is asked in a process of its own.
        say: hears of each promise as soon as it has held.

    Returns:
        What was checked, what could not be, how many tasks there were, the share of the best constant answer, and how many
        different questions there are in each arm, level and split that has fewer than ``n``.

    Raises:
        ConfigError: ``closely`` is less than 1.
        ContractError: a promise is broken; names the task.
    """
    if closely is not None and closely < 1:
        raise ConfigError(f"check_task_source(closely={closely}); look at 1 task at least, or give None for all")
    verifier = source.verifier()
    with guard(verifier, deadline) as pool:
        check = _Check(source, f"task family {source.name}", n, floor, closely, say, verifier, pool)
        check.collect()
        check.splits()
        check.privacy()
        check.hash_seed()
        check.gold()
        check.wrong(constant)
        check.environment()
    return Report(subject=check.subject, passed=tuple(check.passed), skipped=tuple(check.skipped), numbers=check.numbers)


@dataclass(slots=True)
class _Check:
    source: TaskSource
    subject: str
    n: int
    floor: float
    closely: int | None
    say: Callable[[str], None] | None
    verifier: Verifier
    pool: ScoringPool | None
    tasks: list[Task] = field(default_factory=list[Task])
    passed: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    best: dict[str, float] = field(default_factory=dict[str, float])  # the oracle's reward, where it is not the task's metric

    def check_held(self, *names: str) -> None:
        """Promises that held."""
        self.passed += names
        if self.say is not None:
            for name in names:
                self.say(name)

    @property
    def close(self) -> list[Task]:
        """The tasks to look at closely: those of the first indices."""
        return [t for t in self.tasks if self._is_close(t.index)]

    def _is_close(self, index: int) -> bool:
        if self.closely is None:
            return True
        cells = sum(map(len, self.source.arms().values())) * len(SPLITS)
        return index < max(1, self.closely // cells)

    def collect(self) -> None:
        arms = self.source.arms()
        require(bool(arms) and all(arms.values()), self.subject, f"offers nothing: {dict(arms)}")
        for arm, levels in arms.items():
            require(list(levels) == sorted(set(levels)), self.subject, f"levels of arm {arm!r} are not ascending: {levels}")
            for level in levels:
                self._cell(arm, level)
        self.check_held("tasks are pure", "tasks say what was asked for")
        self.numbers["tasks"] = len(self.tasks)
        if self.closely is not None:
            self.numbers["tasks looked at closely"] = len(self.close)

    def _cell(self, arm: str, level: int) -> None:
        empty: list[str] = []
        for split in SPLITS:
            try:
                found = [self.source.task(arm, level, split, i) for i in range(self.n)]
            except DataError as error:
                empty.append(f"{split} of {arm}/{level}: {error}")
                continue
            for i, task in enumerate(found):
                said, asked = (task.arm, task.level, task.split, task.index), (arm, level, split, i)
                require(said == asked, self.subject, f"task {task.id!r} says {said}, asked for was {asked}")
                again = self.source.task(arm, level, split, i) if self._is_close(i) else task
                if task != again:
                    raise ContractError(
                        f"{self.subject}: is not pure: {asked} gave task {task.id!r} twice{describe_difference(task, again)}"
                    )
            self.tasks += found
            if (different := len({task.content for task in found})) < self.n:
                self.numbers[f"different questions of {arm}/{level} in {split}, of {self.n} tasks"] = different
        require(len(empty) < len(SPLITS), self.subject, f"has no task at all: {'; '.join(empty)}")
        if empty and empty[0].startswith("test "):
            require(not self._holds_out(), self.subject, f"a declared level has nothing to evaluate on: {empty[0]}")
        self.skipped += empty

    def _holds_out(self) -> bool:
        """Whether the family has held-out tasks at all: rows that are all to train on, or all to evaluate on, have not."""
        return float(getattr(self.source, "test_share", 0.1)) > 0

    def splits(self) -> None:
        share = float(getattr(self.source, "test_share", 0.1))
        contents: dict[str, set[str]] = {split: set() for split in SPLITS}
        content_of: dict[str, str] = {}
        for task in self.tasks:
            own = content_split(task.question, share)
            require(
                own == task.split,
                self.subject,
                f"task {task.id!r} is of split {task.split!r}, its content hashes to {own!r}; where the public part is changed "
                "after the split was decided, keep what it was decided by as public['facts']",
            )
            contents[task.split].add(task.content)
            same = content_of.setdefault(task.id, task.content) == task.content
            require(same, self.subject, f"two tasks with different contents are both called {task.id!r}")
        both = contents["train"] & contents["test"]
        require(not both, self.subject, f"{len(both)} contents are in both splits")
        self.check_held("split by content", "no content in both splits", "ids name contents")

    def privacy(self) -> None:
        for task in self.tasks:
            world = task.public_view()
            require(not hasattr(world, "private"), self.subject, f"the world of task {task.id!r} has a private part")
            seen = keys_of(world.public) | keys_of(world.world)
            leaked = sorted(set(task.private) & seen)
            require(not leaked, self.subject, f"the world of task {task.id!r} shows the private fields {leaked}")
        self.check_held("private parts stay private")

    def hash_seed(self) -> None:
        name = "same tasks under another PYTHONHASHSEED"
        try:
            blob = pickle.dumps(self.source)
        except Exception as error:  # lambdas and local classes: pickle raises several types
            self.skipped.append(f"{name}: the source cannot be pickled ({error})")
            return
        if type(self.source).__module__ == "__main__":
            self.skipped.append(f"{name}: the source's class is defined in the script itself")
            return
        places = [(t.arm, t.level, t.split, t.index) for t in self.close]
        require(
            digest_elsewhere(blob, places) == digest(self.close),
            self.subject,
            f"{name}: they differ; use assay.core.seeds, never hash()",
        )
        self.check_held(name)

    def gold(self) -> None:
        for task in self.tasks:
            said = self._gold(task)
            if said is None:
                continue
            rollout = rollout_of(task, *said)
            score = verdict(self.verifier, task, rollout, again=self._is_close(task.index), pool=self.pool)
            require(
                score.valid, self.subject, f"the oracle's answer {said[-1]!r} to task {task.id!r} is a fault: {dict(score.info)}"
            )
            require(
                score.primary == 1.0,
                self.subject,
                f"the oracle's answer {said[-1]!r} to task {task.id!r} scores {score.primary}, not 1",
            )
            self.answers[task.id] = said[-1]
            if {"correct", "reward"} <= score.components.keys():
                self.best[task.id] = score.components["reward"]
        if self.best:
            name = "partial credit: training learns from 'reward', evaluations count 'correct'"
            self.skipped += [] if self._learned else [_REPORTED]
            self.check_held(*((name,) if self._learned else ()))
        if self.answers:
            self.check_held("the oracle scores 1")
        else:
            self.skipped.append("the oracle scores 1: the family has neither traces nor answers")

    def _gold(self, task: Task) -> list[str] | None:
        trace = self.source.trace(task, 0.0, np.random.default_rng(0))
        if trace is not None:
            return [m.content for m in trace if m.role == "assistant"]
        text = task_gold_text(task)
        return None if text is None else [text]

    def wrong(self, constant: float) -> None:
        strangers, compared, hedged = list[bool](), 0, 0
        undeclared: dict[str, None] = {}
        after = dict(zip((t.id for t in self.tasks), self.tasks[1:], strict=False))
        for task in self.close:
            own, following = self.answers.get(task.id), after.get(task.id)
            for text in {*JUNK, task.public_view().messages[-1].content} - {own}:
                if not ends_with(own, text):
                    self._at_floor(task, rollout_of(task, text))
            if own and following and self.answers.get(following.id, own) != own and self._differ(following, task):
                other, compared = rollout_of(task, self.answers[following.id]), compared + 1
                if isinstance(task.private.get("answer"), Mapping):
                    strangers.append(self._primary(task, other) > self.floor)
                else:
                    self._at_floor(task, other)
                hedged += self._try_around(task, following)
                if self._one_turn and leaves_open(self.source, task):
                    undeclared[task.arm] = None
            if own is None:
                continue
            require(
                self._primary(task, rollout_of(task)) <= self.floor,
                self.subject,
                f"silence is rewarded on task {task.id!r}",
            )
        self.check_held("junk scores the floor", "another task's answer scores the floor")
        if strangers:
            share = sum(strangers) / len(strangers)
            self.numbers["share of tasks on which another task's answer is right"] = share
            require(share <= STRANGERS, self.subject, f"another task's answer is right on {share:.0%} of the tasks")
        if compared:
            self.check_held("another task's answer is wrong")
        if hedged:
            self.check_held(_AROUND_IT)
        if undeclared:
            who = f"{', '.join(list(undeclared)[:3])}{' and others' if len(undeclared) > 3 else ''}"
            self.skipped.append(f"{_AROUND_IT}: declare 'unique: ClassVar[bool] = True', or False, for {who}")
        self._constants(constant)

    def _try_around(self, task: Task, following: Task) -> int:
        """Tries answers in which the right one stands, where no other is right; returns how many."""
        if not self._one_turn or not has_one_answer(self.source, task):
            return 0
        answer, form = oracle_answer(self.source, task, self.answers[task.id])
        other, _ = oracle_answer(self.source, following, self.answers[following.id])
        if "\n" in answer:  # the patterns are of one line; a verifier may read the lines of an answer one by one
            return 0
        for pattern in AROUND:
            text = form.replace(PLACE, pattern.replace("{other}", other).replace(PLACE, answer))
            value = self._primary(task, rollout_of(task, text))
            require(
                value < 1.0,
                self.subject,
                f"the answer {text[-80:]!r} to task {task.id!r} scores {value:g} as {answer[:60]!r} alone does: its verifier "
                "accepts what contains the answer; compare the answer's place alone, as Numeric(where=form.place) does, or, if "
                "several answers are right, declare 'unique = False' in its Problem",
            )
        return len(AROUND)

    @property
    def _one_turn(self) -> bool:
        return self.source.environment(self.tasks[0].public_view()) is None

    def _differ(self, one: Task, other: Task) -> bool:
        """Whether two tasks of one cell have different answers; lists, which may hold several right ones, share none."""
        cell = (one.arm, one.level) == (other.arm, other.level)
        own, others = one.private.get("answer"), other.private.get("answer")
        shared = isinstance(own, tuple) and isinstance(others, tuple) and any(x in own for x in cast("tuple[Any, ...]", others))
        return cell and own != others and not shared

    def _at_floor(self, task: Task, rollout: Rollout) -> None:
        value = self._primary(task, rollout)
        partial = "" if value >= 1.0 else _PARTIAL
        require(
            value <= self.floor,
            self.subject,
            f"the wrong answer {rollout.text[:60]!r} to task {task.id!r} scores {value}{partial}",
        )

    def _primary(self, task: Task, rollout: Rollout) -> float:
        score = verdict(self.verifier, task, rollout, pool=self.pool)
        if self._learned and task.id in self.best and score.valid and score.primary < 1.0:
            own, best = score.components.get("reward", 0.0), self.best[task.id]
            require(
                own < best,
                self.subject,
                f"the wrong answer {rollout.text[:60]!r} to task {task.id!r} has the reward {own:g}, and the oracle's {best:g}: "
                "training learns from 'reward', which must be largest where the answer is right",
            )
        return score.primary if score.valid else self.floor

    @property
    def _learned(self) -> bool:
        """Whether training learns from ``reward``, and not from ``correct``."""
        return bool(ability_of(self.verifier, "weighted_sum"))

    def _constants(self, most: float) -> None:
        tasks = [t for t in self.close if t.id in self.answers]
        if len(tasks) < 8:
            self.skipped.append("no constant answer is right too often: fewer than 8 tasks with a known answer")
            return
        best = most_common(list(self.answers.values()))
        share = sum(self._primary(t, rollout_of(t, best)) > self.floor for t in tasks) / len(tasks)
        self.numbers["share of tasks solved by the best constant answer"] = share
        require(
            share <= most,
            self.subject,
            f"always answering {best!r} solves {share:.0%} of the tasks (at most {most:.0%} are allowed)",
        )
        self.check_held("no constant answer is right too often")

    def environment(self) -> None:
        task = self.tasks[0]
        if self.source.environment(task.public_view()) is None:
            return
        report = check_environment(self.source, task)
        self.check_held(*(f"environment: {name}" for name in report.passed))
        self.numbers |= report.numbers
        answered = [self._play_task(task) for task in self.close]
        if any(answered):
            self.check_held(_AS_TRACED)
        else:
            self.skipped.append(f"{_AS_TRACED}: the family has no trace")

    def _play_task(self, task: Task) -> bool:
        """Plays the oracle's trace, where there is one."""
        trace = self.source.trace(task, 0.0, np.random.default_rng(0))
        environment = self.source.environment(task.public_view())
        if trace is None or environment is None:
            return False

        async def play() -> list[str]:
            shown = [m.content for m in (await environment.start()).messages]
            for turn in trace:
                if turn.role in ("assistant", CALLS):
                    said = turn.content if turn.role == "assistant" else tag_calls(turn.content)
                    shown += [m.content for m in (await environment.step(said)).obs.messages]
            return shown

        wanted, shown = [m.content for m in trace if m.role not in ("assistant", CALLS)], wait_for(play())
        require(
            shown == wanted, self.subject, f"task {task.id!r}: the environment shows {shown}, the oracle's trace says {wanted}"
        )
        return True
