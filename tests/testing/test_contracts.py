"""The contract checks find what they claim to find: each promise is broken once."""

import asyncio
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest

from assay.core.canon import FrozenMap, digest
from assay.core.errors import ConfigError, DataError
from assay.core.group import Draw
from assay.core.protocols import Environment, Obs, Step
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.seeds import content_split
from assay.core.task import Message, Task, TaskView
from assay.guide import SuccessVariance, Uniform
from assay.testing import (
    ContractError,
    Report,
    check_curriculum,
    check_environment,
    check_task_source,
    check_verifier,
    rollout_of,
)
from assay.verify import ExactMatch
from assay_tasks import KeyValue, SortDigits
from assay_tasks.keyvalue import Store

CALLS = {"n": 0}


@pytest.fixture
def one_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what has nothing to do with hash seeds: the tasks that a fresh interpreter would make are made in this one."""
    monkeypatch.setattr(
        "assay.testing.sources.digest_elsewhere", lambda blob, places: digest([pickle.loads(blob).task(*p) for p in places])
    )


@dataclass(frozen=True)
class Base:
    """A sound family, which the others below break in one place each."""

    inner: SortDigits = field(default_factory=lambda: SortDigits(levels=(3, 4)))
    name = "base"

    def arms(self) -> Any:
        return self.inner.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        return self.inner.task(arm, level, split, index)

    def verifier(self) -> Any:
        return self.inner.verifier()

    def environment(self, world: TaskView) -> Environment | None:
        return None

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> Any:
        return self.inner.trace(task, noise, rng)


class Impure(Base):
    def task(self, arm, level, split, index):
        CALLS["n"] += 1
        return self.inner.task(arm, level, split, CALLS["n"] % 7)


class Flaky(Base):
    def task(self, arm, level, split, index):
        CALLS["n"] += 1
        return replace(self.inner.task(arm, level, split, index), id=f"t{CALLS['n']}")


class Hashed(Base):
    """Python's own hash decides the task, so another interpreter sees others."""

    def task(self, arm, level, split, index):
        return replace(self.inner.task(arm, level, split, index), id=str(hash(f"{level}/{split}/{index}")))


class Mislabelled(Base):
    def task(self, arm, level, split, index):
        task = self.inner.task(arm, level, "train", index)
        return replace(task, split=split)


class Renamed(Base):
    def task(self, arm, level, split, index):
        return replace(self.inner.task(arm, level, split, index), id="always")


class Leaky(Base):
    def task(self, arm, level, split, index):
        task = self.inner.task(arm, level, split, index)
        return replace(task, world=FrozenMap({"notes": [{"answer": task.private["answer"]}]}))


class WrongGold(Base):
    def trace(self, task, noise, rng):
        return (Message("assistant", task.private["answer"][::-1] + "0"),)


class Faulty(Base):
    def verifier(self):
        return lambda task, rollout: Score(components={}, fault=Fault.VERIFIER)


@dataclass(frozen=True)
class Judge:
    rule: Callable[[Task, Rollout], float]

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"correct": float(self.rule(task, rollout))})


@dataclass(frozen=True)
class Here(Judge):
    """Asked in this process, where it may count."""

    trusted = True


class Lenient(Base):
    def verifier(self):
        return Judge(lambda t, r: len(r.text) == len(t.private["answer"]) and r.text.isdigit())


class PrefixOnly(Base):
    def verifier(self):
        return Judge(lambda t, r: t.private["answer"].startswith(r.text))


class Silent(Base):
    """Rewards a rollout without any call, which no text reveals."""

    def verifier(self):
        return Judge(lambda t, r: not r.calls or r.text == t.private["answer"])


class Raises(Base):
    def verifier(self):
        return Judge(lambda t, r: int(r.text) == int(t.private["answer"]))


class Empty(Base):
    def arms(self):
        return {"sort": ()}


class Unsorted(Base):
    def arms(self):
        return {"sort": (4, 3)}


class Exhausted(Base):
    def task(self, arm, level, split, index):
        raise DataError("nothing here")


@pytest.mark.usefixtures("one_interpreter")
@pytest.mark.parametrize(
    ("family", "finding"),
    [
        (Impure, "says"),
        (Flaky, "is not pure"),
        (Mislabelled, "its content hashes to 'train'"),
        (Renamed, "are both called 'always'"),
        (Leaky, r"shows the private fields \['answer'\]"),
        (WrongGold, "scores 0.0, not 1"),
        (Faulty, "is a fault"),
        (Lenient, "the wrong answer .* scores 1.0"),
        (PrefixOnly, "the wrong answer '' to task"),
        (Silent, "silence is rewarded"),
        (Raises, "raised ValueError on task"),
        (Empty, "offers nothing"),
        (Unsorted, "not ascending"),
        (Exhausted, "has no task at all: train of sort/3: nothing here"),
    ],
)
def test_each_broken_promise_is_found(family: type[Base], finding: str) -> None:
    with pytest.raises(ContractError, match=finding):
        check_task_source(family(), n=6)


def test_a_family_that_reads_the_hash_seed_is_found() -> None:
    with pytest.raises(ContractError, match="PYTHONHASHSEED: they differ"):
        check_task_source(Hashed(), n=6)


def test_a_sound_family_passes_and_the_report_reads_well() -> None:
    report = check_task_source(Base(), n=4)
    assert report.skipped == ()
    assert "pass  the oracle scores 1" in report.lines()
    assert "      tasks: 16" in report.lines()
    assert Report(subject="x", passed=(), skipped=("y: why",)).lines() == ("skip  y: why",)


class NoOracle(Base):
    def task(self, arm, level, split, index):
        if split == "train" and level == 4:
            raise DataError("no row")
        return replace(self.inner.task(arm, level, split, index), private=FrozenMap())

    def trace(self, task, noise, rng):
        return None

    def verifier(self):
        return Judge(lambda t, r: 0.0)


class AnswersOnly(Base):
    def trace(self, task, noise, rng):
        return None


@pytest.mark.usefixtures("one_interpreter")
def test_what_cannot_be_checked_is_said() -> None:
    skipped = check_task_source(NoOracle(), n=2).skipped
    assert [s.split(":")[0] for s in skipped] == [
        "train of sort/4",
        "the oracle scores 1",
        "no constant answer is right too often",
    ]
    assert check_task_source(AnswersOnly(), n=4).skipped == ()

    class Local(Base):
        pass

    (skipped,) = check_task_source(Local(), n=2).skipped
    assert "cannot be pickled" in skipped
    Scripted = type("Scripted", (Base,), {"__module__": "__main__", "__reduce__": lambda self: (Base, ())})
    (skipped,) = check_task_source(Scripted(), n=2).skipped
    assert "defined in the script itself" in skipped


class Counted(Base):
    """Counts how often its tasks are made and judged."""

    def __init__(self, fails_at: int = 10**6) -> None:
        super().__init__()
        self.fails_at, self.made, self.judged = fails_at, Counter[str](), Counter[str]()

    def task(self, arm, level, split, index):
        task = self.inner.task(arm, level, split, index)
        self.made[task.id] += 1
        return task

    def verifier(self):
        def rule(task: Task, rollout: Rollout) -> float:
            self.judged[task.id] += 1
            return float(rollout.text == task.private["answer"]) if task.index < self.fails_at else 0.0

        return Here(rule)

    def __reduce__(self):
        return (Base, ())


@pytest.mark.usefixtures("one_interpreter")
def test_of_many_tasks_few_are_looked_at_closely() -> None:
    source = Counted()
    report = check_task_source(source, n=20, closely=8)  # two levels and two splits: the first two of each
    assert (report.numbers["tasks"], report.numbers["tasks looked at closely"]) == (80, 8)
    assert report.skipped == () and set(report.passed) >= set(check_task_source(Base(), n=4).passed)
    close = {t for t in source.made if int(t.rpartition("/")[2]) < 2}
    assert {t: n for t, n in source.made.items() if n > 1} == dict.fromkeys(close, 2)
    assert {t for t, n in source.judged.items() if n > 1} == close and len(source.judged) == 80
    with pytest.raises(ContractError, match=r"scores 0\.0, not 1"):  # every oracle is judged
        check_task_source(Counted(fails_at=19), n=20, closely=8)
    with pytest.raises(ConfigError, match="closely=0"):
        check_task_source(Base(), closely=0)


class Several(Base):
    """Any answer of a list is right; the oracle gives the first, which another task's list may hold too."""

    def __init__(self, second: str, lenient: bool = False) -> None:
        super().__init__()
        self.second, self.lenient = second, lenient

    def task(self, arm, level, split, index):
        task = self.inner.task(arm, level, split, index)
        return replace(task, private=FrozenMap({"answer": [f"<{index}>", self.second.format(index)]}))

    def trace(self, task, noise, rng):
        return (Message("assistant", task.private["answer"][0]),)

    def verifier(self):
        return Judge(lambda t, r: r.text in t.private["answer"] or (self.lenient and r.text.startswith("<")))

    def __reduce__(self):
        return (Several, (self.second, self.lenient))


class Nothing(Several):
    """The right answer is the empty list, always."""

    def task(self, arm, level, split, index):
        return replace(self.inner.task(arm, level, split, index), private=FrozenMap({"answer": []}))

    def trace(self, task, noise, rng):
        return (Message("assistant", "none of them"),)

    def verifier(self):
        return Judge(lambda t, r: r.text == "none of them")

    def __reduce__(self):
        return (Nothing, (self.second,))


@pytest.mark.slow
@pytest.mark.usefixtures("one_interpreter")
def test_equal_empty_lists_are_no_different_answers() -> None:
    assert "another task's answer is wrong" not in check_task_source(Nothing(""), n=4, constant=1.0).passed


@pytest.mark.slow
@pytest.mark.usefixtures("one_interpreter")
def test_lists_of_right_answers_are_compared_where_they_share_none() -> None:
    compared = "another task's answer is wrong"
    assert compared not in check_task_source(Several("<all>"), n=4).passed
    assert compared in check_task_source(Several("<{}, too>"), n=4).passed
    with pytest.raises(ContractError, match="the wrong answer '<1>' to task"):
        check_task_source(Several("<{}, too>", lenient=True), n=4)


class Dies(Base):
    def __reduce__(self):
        return (eval, ("1/0",))


def test_a_source_that_fails_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "12345")
    with pytest.raises(ContractError, match=r"fails in a fresh interpreter: (.|\n)*ZeroDivisionError"):
        check_task_source(Dies(), n=2)
    assert os.environ["PYTHONHASHSEED"] == "12345"


# ---- environments


@dataclass(frozen=True)
class World2(KeyValue):
    """The key-value family with another store."""

    store: Any = None

    def environment(self, world: TaskView) -> Any:
        return self.store(world)


class Loose:
    """An environment without single use, whose flaws can be chosen."""

    def __init__(self, world: TaskView) -> None:
        self.steps = 0

    async def start(self) -> Obs:
        return Obs()

    async def step(self, action: str) -> Step:
        self.steps += 1
        return Step(obs=Obs((Message("tool", "!>"),)), done=self.steps > 5)


class Once(Loose):
    started = False

    async def start(self) -> Obs:
        if self.started:
            raise DataError("single use")
        self.started = True
        return Obs()


class Endless(Once):
    async def step(self, action: str) -> Step:
        return Step()


class Strict(Once):
    async def step(self, action: str) -> Step:
        if not action:
            raise ValueError("say something")
        return Step(done=True)


class Random(Once):
    async def step(self, action: str) -> Step:
        CALLS["n"] += 1
        return Step(obs=Obs((Message("tool", str(CALLS["n"])),)))


class Other(Once):
    over = False

    async def step(self, action: str) -> Step:
        if self.over:
            raise DataError("over")
        self.over = self.steps > 3
        self.steps += 1
        return Step(obs=Obs((Message("tool", "=??>"),)), done=self.over)


@pytest.mark.parametrize(
    ("store", "finding"),
    [
        (Loose, "a second start was not refused"),
        (Once, "a step after the end was not refused"),
        (Endless, "still open after 64 times ''"),
        (Strict, "action '' raised ValueError"),
        (Random, "two runs with the same actions differ"),
        (lambda world: None, "has none"),
    ],
)
def test_each_flaw_of_an_environment_is_found(store: Any, finding: str) -> None:
    source = World2(store=store)
    with pytest.raises(ContractError, match=finding):
        check_environment(source, source.task("keyvalue", 1, "train", 0))


class Parses(Other):
    """Expects a number in every action that has a digit in its first half, as the oracle's last one has."""

    async def step(self, action: str) -> Step:
        if action.startswith("-"):
            int(action[1:2] + "?")
        return await super().step(action)


class Slow(Other):
    """Does not come back from a number of thirty digits before it is released."""

    released = Event()

    async def step(self, action: str) -> Step:
        if "9" * 30 in action:
            self.released.wait(60)
        return await super().step(action)


@pytest.mark.parametrize(
    ("store", "finding"),
    [
        (
            Parses,
            r"raised ValueError on the action '-1': .* it is '\d+' of the oracle, with negative numbers\. A policy will say it",
        ),
        (Slow, r"did not answer the action '9{30}' within 2 s: it is '\d+' of the oracle, with very large numbers"),
    ],
)
def test_an_environment_that_breaks_on_an_action_a_little_wrong_is_found(store: Any, finding: str) -> None:
    source, Slow.released = Numbers(store=store), Event()
    with pytest.raises(ContractError, match=finding):
        check_environment(source, source.task("keyvalue", 1, "train", 0), deadline=2.0)
    Slow.released.set()


@dataclass(frozen=True)
class Numbers(World2):
    """An oracle that says one number and nothing else."""

    def trace(self, task, noise, rng) -> Any:
        return (Message("assistant", task.private["answer"]),)


class Sometimes(Store):
    """Names an actor at the start alone."""

    async def start(self) -> Obs:
        return replace(await super().start(), actor="red")


class Forgets(Store):
    """Its snapshot does not say how many calls are left."""

    async def snapshot(self) -> Any:
        return {}

    async def restore(self, snapshot: Any) -> Obs:
        return await self.start()

    async def step(self, action: str) -> Step:
        step = await super().step(action)
        return replace(step, obs=Obs((Message("tool", f"{self._left} left"),)))


class Opaque(Forgets):
    async def snapshot(self) -> Any:
        return {"at": object()}


class Disturbed(Forgets):
    async def snapshot(self) -> Any:
        self._left -= 1
        return {"left": self._left}


@pytest.mark.parametrize(
    ("store", "finding"),
    [
        (Sometimes, "names an actor at some turns and none at others"),
        (Forgets, "goes on from its own snapshot behind 1 actions otherwise"),
        (Opaque, "its snapshot is not plain"),
        (Disturbed, "goes on otherwise once it wrote a snapshot behind 0 actions"),
    ],
)
def test_each_flaw_of_roles_and_snapshots_is_found(store: Any, finding: str) -> None:
    source = World2(store=store)
    with pytest.raises(ContractError, match=finding):
        check_environment(source, source.task("keyvalue", 2, "train", 0))


@pytest.mark.usefixtures("one_interpreter")
def test_an_environment_that_contradicts_the_oracle_is_found() -> None:
    with pytest.raises(ContractError, match=r"the environment shows .*, the oracle's trace says"):
        check_task_source(World2(store=Other), n=2)


class Mute(KeyValue):
    def trace(self, task, noise, rng):
        return None


@pytest.mark.usefixtures("one_interpreter")
def test_an_environment_without_an_oracle_is_still_checked() -> None:
    source = Mute()
    assert "single use" in check_environment(source, source.task("keyvalue", 1, "train", 0)).passed
    assert "environment: ends" in check_task_source(source, n=2).passed


# ---- verifiers


def one(answer: str = "4") -> Task:
    public, private = FrozenMap({"prompt": "2+2="}), FrozenMap({"answer": answer})
    return Task(id="t", domain="d", arm="a", level=1, split=content_split(public), index=0, public=public, private=private)


class NoTest(Base):
    def task(self, arm, level, split, index):
        if split == "test" and level == 4:
            raise DataError("no row")
        return self.inner.task(arm, level, split, index)


class Few(Base):
    """Three questions at each level and split."""

    def task(self, arm, level, split, index):
        return replace(self.inner.task(arm, level, split, index % 3), index=index)


class Counting(Base):
    """The id counts how often tasks are asked for; the task is else the same."""

    asked = 0

    def task(self, arm, level, split, index):
        type(self).asked += 1
        public = FrozenMap({**self.inner.task(arm, level, split, index).public, "asked": self.asked})
        return replace(self.inner.task(arm, level, split, index), public=public)


class Hangs(Base):
    def verifier(self):
        def rule(task: Task, rollout: Rollout) -> float:
            if rollout.text == "I do not know.":
                time.sleep(60)
            return float(rollout.text == task.private["answer"])

        return Judge(rule)


@pytest.mark.usefixtures("one_interpreter")
def test_a_level_without_a_held_out_task_is_refused_and_few_questions_are_counted() -> None:
    with pytest.raises(ContractError, match=r"a declared level has nothing to evaluate on: test of sort/4: no row"):
        check_task_source(NoTest(), n=2)
    said = list[str]()
    report = check_task_source(Few(), n=8, say=said.append)
    assert tuple(said) == report.passed
    assert {k: v for k, v in report.numbers.items() if "different" in k} == {
        f"different questions of sort/{level} in {split}, of 8 tasks": 3 for level in (3, 4) for split in ("train", "test")
    }
    with pytest.raises(ContractError, match=r"gave task 'sort/.*' twice, with another public: .*'asked': 1.*, then .*'asked': 3"):
        check_task_source(Counting(), n=2)


@pytest.mark.usefixtures("one_interpreter")
def test_a_verifier_that_hangs_ends_the_check_with_the_answer() -> None:
    with pytest.raises(ContractError, match=r"gave no verdict within 0\.3 s on task 'sort/.*', answer 'I do not know\.'"):
        check_task_source(Hangs(), n=1, deadline=0.3)


def test_check_verifier() -> None:
    cases = [(one(), rollout_of(one(), "4"), 1.0), (one(), rollout_of(one(), "5"), 0.0)]
    report = check_verifier(ExactMatch(), cases)
    assert (report.subject, dict(report.numbers)) == ("verifier ExactMatch", {"cases": 2, "values": 2})
    flips = iter([0.0, 1.0] * 9)

    class Lying:
        names = ("style",)

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"correct": 1.0})

    broken: list[tuple[Any, str]] = [
        (ExactMatch(), "there is no case"),
        (Judge(lambda t, r: 0.5), "gave 0.5 for task 't', answer '4' .stop done.; 1.0 is right"),
        (Judge(lambda t, r: next(flips)), "is not pure"),
        (lambda t, r: 1.0, "returned a float"),
        (lambda t, r: Score(components={}, fault=Fault.INFRA), "gave a fault"),
        (Lying(), r"declares \('style',\) but gave \['correct'\]"),
        (Judge(lambda t, r: 1 / 0), "raised ZeroDivisionError"),
    ]
    for verifier, finding in broken:
        with pytest.raises(ContractError, match=finding):
            check_verifier(verifier, [] if finding == "there is no case" else cases)


# ---- curricula


class Tampered:
    """A uniform curriculum with one method replaced."""

    def __init__(self, **methods: Any) -> None:
        self.methods = methods

    def build(self, arms: Any, seed: int) -> Any:
        built = Uniform().build(arms, seed)
        for name, method in self.methods.items():
            setattr(built, name, partial(method, built, getattr(built, name)))
        return built


@pytest.mark.parametrize(
    ("methods", "finding"),
    [
        ({"draw": lambda b, o, n: o(n)[1:]}, "draws, 2000 were asked for"),
        ({"draw": lambda b, o, n: [Draw("x", 1, 0.5)] * n}, "which was not offered"),
        ({"draw": lambda b, o, n: [replace(d, propensity=0.0) for d in o(n)]}, "is no probability"),
        ({"draw": lambda b, o, n: [replace(d, propensity=0.3) for d in o(n)]}, "standard errors off its propensity"),
        ({"draw": lambda b, o, n: [replace(d, level=1) for d in o(n)]}, "standard errors off"),
        ({"draw": lambda b, o, n: [replace(d, level=1, propensity=1.0) for d in o(n)]}, None),
        ({"state_dict": lambda b, o: {"x": object()}}, "its state is not plain"),
        ({"load_state_dict": lambda b, o, s: None}, "the draws differ"),
        ({"metrics": lambda b, o: {"curriculum/x": float("nan")}}, r"metrics \['curriculum/x'\] are not finite"),
    ],
)
def test_each_flaw_of_a_curriculum_is_found(methods: Any, finding: str | None) -> None:
    if finding is None:  # a curriculum that always draws one cell is lawful
        assert check_curriculum(Tampered(**methods), {"a": (1, 2)}, draws=2000).passed
        return
    with pytest.raises(ContractError, match=finding):
        check_curriculum(Tampered(**methods), {"a": (1, 2)}, draws=2000)


def test_going_back_to_an_old_state_is_checked() -> None:
    class Sticky:
        """Loads its state only once."""

        def build(self, arms: Any, seed: int) -> Any:
            built = SuccessVariance().build(arms, seed)
            load, drawn = built.load_state_dict, {"n": 0}
            draw = built.draw

            def count(n: int) -> Any:
                drawn["n"] += 1
                return draw(n)

            built.draw = count
            built.load_state_dict = lambda s: None if drawn["n"] else load(s)
            return built

    with pytest.raises(ContractError, match="going back to an older state"):
        check_curriculum(Sticky(), {"a": (1, 2)}, draws=500)


def test_attempts_of_several_calls_extend_each_other() -> None:
    rollout = rollout_of(one(), "?a", "b")
    assert [c.parent for c in rollout.calls] == [None, 0]
    assert rollout.calls[1].prefix.tolist() == [ord(c) for c in "2+2=?a"]
    assert asyncio.iscoroutinefunction(Loose.start)
