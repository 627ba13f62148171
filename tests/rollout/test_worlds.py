"""Environments that raise, hang, or answer differently when played again: whose fault it is, and what is kept."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from scripted import CLOSE, OPEN, SHORT, Echo, Letters, Saved, Scripted, Worlds, posed, says

from assay.core import Fault, Obs, Rollout, Stop, derive, samples
from assay.core.errors import ConfigError, EngineError
from assay.core.protocols import Environment, Step
from assay.rollout import KeepLast, Player
from assay.verify import ScoringPool
from assay_tasks import SortDigits

SOON = 0.01
"""A deadline that only `Moody` hangs miss: every other answer is ready when the event loop looks at the clock."""


@dataclass
class Moody(Echo):
    """At the action ``at`` (or ``start``) does what ``mood`` says; else echoes, with ``accent`` around it."""

    at: str = ""
    mood: str = ""
    accent: str = ""

    async def start(self) -> Obs:
        if self.at == "start":
            await self.misbehave()
        return await super().start()

    async def step(self, action: str) -> Step:
        if self.at == action:
            await self.misbehave()
        step = await super().step(action)
        message = replace(step.obs.messages[0], content=self.accent + step.obs.messages[0].content)
        return replace(step, obs=Obs((message,)), done=step.done or (self.mood == "done early" and self.at == action))

    async def misbehave(self) -> None:
        match self.mood:
            case "raise":
                raise OSError("the world broke")
            case "wrong setting":
                raise ConfigError("no such room")
            case "time out by itself":
                raise TimeoutError("its own clock")
            case "cancel by itself":
                lost = asyncio.ensure_future(asyncio.Event().wait())
                lost.cancel()
                await lost
            case "hang":
                await asyncio.Event().wait()
            case "hang and answer late":
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
            case "hang and fail late":
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise OSError("too late") from None
            case _:
                pass


class Nothing(Echo):
    """Forgets to answer."""

    async def step(self, action: str) -> Step:
        return None  # type: ignore[return-value]


def in_turn(*worlds: Environment) -> Worlds:
    """The first world, then the next, ...; the last for ever. A world is used once: repeated ones are copied."""
    left = list(worlds)

    def make() -> Environment:
        return left.pop(0) if len(left) > 1 else replace(left[0])

    return Worlds(make)


def player(engine: Scripted, source: Worlds, **changed: object) -> Player:
    fields = {"engine": engine, "tokenizer": Letters(), "source": source, "sampling": SHORT, "seed": 5, "deadline": SOON}
    return Player(**{**fields, **changed})


def play(engine: Scripted, source: Worlds, n: int = 1, **changed: object) -> list[Rollout]:
    contexts = changed.pop("contexts", [posed()])
    return asyncio.run(player(engine, source, **changed).collect(contexts, n))


def script() -> Scripted:
    return Scripted(says("a", "b", "stop"))


def tokens(rollout: Rollout) -> list[list[int]]:
    return [c.tokens.tolist() for c in rollout.calls]


# ---- once -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manager", [None, KeepLast(1)])
@pytest.mark.parametrize("at", ["start", "a", "b", "stop"])
@pytest.mark.parametrize("mood", ["raise", "hang", "cancel by itself", "time out by itself", "hang and answer late"])
def test_a_world_that_fails_once_is_replaced_and_nothing_is_sampled_anew(mood: str, at: str, manager: object) -> None:
    changed = {} if manager is None else {"manager": manager}
    (calm,) = play(script(), Worlds(Echo), **changed)
    engine = script()
    (rollout,) = play(engine, in_turn(Moody(at=at, mood=mood), Echo()), **changed)
    assert (rollout.stop, rollout.fault, rollout.error, rollout.id) == (Stop.DONE, Fault.NONE, None, "c/0")
    assert (tokens(rollout), [c.results for c in rollout.calls]) == (tokens(calm), [c.results for c in calm.calls])
    assert [r.id for r in engine.requests] == ["c/0#0", "c/0#1", "c/0#2"]
    assert [r.first for r in engine.requests] == [0, 2, 4]
    assert rollout.seed == derive("rollout", 5, "c", 0)


def test_a_source_that_fails_once_is_asked_again() -> None:
    made: list[str] = []

    def make() -> Echo:
        made.append("world")
        if len(made) == 1:
            raise RuntimeError("no sandbox")
        return Echo()

    (rollout,) = play(script(), Worlds(make))
    assert (rollout.stop, len(made)) == (Stop.DONE, 2)


def test_a_snapshot_is_restored_again() -> None:
    class Lost(Saved):
        async def restore(self, snapshot: object) -> Obs:
            raise OSError("no disk")

    (rollout,) = play(Scripted(says("stop")), in_turn(Lost(), Saved()), contexts=[posed(snapshot=3)])
    assert rollout.stop is Stop.DONE
    assert rollout.calls[0].prefix.tolist() == [*map(ord, "1+1="), CLOSE, *map(ord, "at 3"), CLOSE, OPEN]


# ---- again ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mood", "words"),
    [
        ("raise", "OSError: the world broke"),
        ("wrong setting", "ConfigError: no such room"),
        ("time out by itself", "TimeoutError: its own clock"),
        ("cancel by itself", "CancelledError: "),
    ],
)
def test_a_world_that_raises_again_is_an_infra_fault(mood: str, words: str) -> None:
    engine = script()
    (rollout,) = play(engine, in_turn(Moody(at="b", mood=mood)))
    assert (rollout.stop, rollout.fault, rollout.error) == (Stop.ERROR, Fault.INFRA, f"environment step 2: {words}, twice")
    assert ([c.text for c in rollout.calls], len(engine.requests)) == (["a", "b"], 2)


@pytest.mark.parametrize("mood", ["hang", "hang and answer late", "hang and fail late"])
def test_no_answer_twice_to_the_same_action_is_the_policys_fault(mood: str) -> None:
    engine = script()
    (rollout,) = play(engine, in_turn(Moody(at="b", mood=mood)))
    wanted = (Stop.ERROR, Fault.POLICY, "environment step 2: no answer within 0.01 s, twice")
    assert (rollout.stop, rollout.fault, rollout.error) == wanted
    assert ([c.text for c in rollout.calls], len(engine.requests)) == (["a", "b"], 2)
    (row,) = samples(rollout)
    assert int(row.mask.sum()) == rollout.length == 4  # it is trained on, the floor as its reward


def test_a_start_that_hangs_is_nobodys_action() -> None:
    (rollout,) = play(script(), in_turn(Moody(at="start", mood="hang")))
    wanted = (Stop.ERROR, Fault.INFRA, "environment start: no answer within 0.01 s, twice", ())
    assert (rollout.stop, rollout.fault, rollout.error, rollout.calls) == wanted


def test_an_answer_of_another_kind_is_a_failure() -> None:
    (rollout,) = play(script(), Worlds(Nothing))
    assert (rollout.fault, rollout.error) == (
        Fault.INFRA,
        "environment step 1: its answer must be of type Step, not NoneType, twice",
    )


STEP = "environment step "


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (("b", "hang"), ("b", "raise"), f"{STEP}2: no answer within 0.01 s; played again, {STEP}2: OSError: the world broke"),
        (("b", "raise"), ("b", "hang"), f"{STEP}2: OSError: the world broke; played again, {STEP}2: no answer within 0.01 s"),
        (("a", "hang"), ("b", "hang"), f"{STEP}1: no answer within 0.01 s; played again, {STEP}2: no answer within 0.01 s"),
        (("b", "hang"), ("a", "hang"), f"{STEP}2: no answer within 0.01 s; played again, {STEP}1: no answer within 0.01 s"),
    ],
)
def test_two_different_failures_are_an_infra_fault(first: tuple[str, str], second: tuple[str, str], words: str) -> None:
    worlds = [Moody(at=at, mood=mood) for at, mood in (first, second)]
    (rollout,) = play(script(), in_turn(*worlds))
    assert (rollout.stop, rollout.fault, rollout.error) == (Stop.ERROR, Fault.INFRA, words)
    assert [c.text for c in rollout.calls] == ["a", "b"]  # what was sampled stays


def test_a_fresh_world_that_answers_differently_is_an_infra_fault() -> None:
    engine = script()
    (rollout,) = play(engine, in_turn(Moody(at="stop", mood="raise"), Moody(accent="!")))
    assert (rollout.stop, rollout.fault) == (Stop.ERROR, Fault.INFRA)
    first, _, second = rollout.error.partition("; ")
    assert first == "environment step 3: OSError: the world broke"
    assert second.startswith("the environment answered differently when played again: rollout c/0, call 1 played again")
    assert ([c.text for c in rollout.calls], len(engine.requests)) == (["a", "b", "stop"], 3)


def test_a_fresh_world_that_ends_too_early_answers_differently_too() -> None:
    (rollout,) = play(script(), in_turn(Moody(at="b", mood="raise"), Moody(at="a", mood="done early")))
    assert (rollout.stop, rollout.fault) == (Stop.ERROR, Fault.INFRA)
    assert rollout.error.endswith("played again: rollout c/0 ended with call 0, and went on before")
    assert [c.text for c in rollout.calls] == ["a", "b"]


def test_a_fresh_world_with_a_longer_opening_answers_differently_and_is_no_wrong_setting() -> None:
    (rollout,) = play(Scripted(says("a", "b"), context=40), in_turn(Moody(at="a", mood="raise"), Echo(hello="x" * 30)))
    assert (rollout.stop, rollout.fault) == (Stop.ERROR, Fault.INFRA)
    assert "answered differently when played again" in rollout.error


def test_a_wrong_setting_of_a_start_ends_everything() -> None:
    with pytest.raises(ConfigError, match="no such room"):
        play(script(), in_turn(Moody(at="start", mood="wrong setting")))

    def make() -> Echo:
        raise ConfigError("no such house")

    with pytest.raises(ConfigError, match="no such house"):
        play(script(), Worlds(make))


# ---- company ----------------------------------------------------------------------------------------------------------


def test_siblings_do_not_notice() -> None:
    worlds = [Echo(), Moody(at="b", mood="hang"), Echo(), Moody(at="b", mood="hang")]
    rollouts = play(script(), in_turn(*worlds), n=3)
    assert [(r.stop, r.fault) for r in rollouts] == [
        (Stop.DONE, Fault.NONE),
        (Stop.ERROR, Fault.POLICY),
        (Stop.DONE, Fault.NONE),
    ]
    assert tokens(rollouts[0]) == tokens(rollouts[2])


def speak(answers: dict[str, str]) -> Scripted:
    """Answers by context, then ``stop``."""
    return Scripted(lambda r: answers[r.id[0]] if r.id.endswith("#0") else "stop")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("abc", Fault.INFRA),  # three actions, no answer to any: the worlds are broken
        ("aab", Fault.POLICY),  # two actions may well hang
        ("abcd", Fault.POLICY),  # d is answered, so worlds do answer
    ],
)
def test_worlds_that_answer_nothing_at_all_are_at_fault_themselves(said: str, fault: Fault) -> None:
    class OnlyD(Echo):
        async def step(self, action: str) -> Step:
            if action in "abc":
                await asyncio.Event().wait()
            return await super().step(action)

    keys = "pqrs"[: len(said)]
    rollouts = play(speak(dict(zip(keys, said, strict=True))), Worlds(OnlyD), contexts=[posed(k) for k in keys])
    assert [r.fault for r in rollouts[:3]] == [fault] * 3
    assert rollouts[0].error.endswith("; no environment of 3 rollouts answered any action" if fault is Fault.INFRA else "twice")
    assert [r.stop for r in rollouts[3:]] == [Stop.DONE] * (len(said) - 3)


def test_an_engine_that_fails_does_not_wait_for_a_world_that_hangs() -> None:
    cancelled: list[str] = []

    class Patient(Echo):
        async def step(self, action: str) -> Step:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(action)
                raise
            return await super().step(action)

    engine = Scripted(lambda r: EngineError("request q/0#1: out of memory") if r.id == "q/0#1" else "a")
    worlds = [Patient(), Echo(), Echo()]
    with pytest.raises(EngineError, match="q/0#1: out of memory"):
        play(engine, Worlds(lambda: worlds.pop(0)), contexts=[posed("p"), posed("q")], deadline=3600.0)
    assert cancelled == ["a"]
    assert [r.id for r in engine.requests] == ["p/0#0", "q/0#0", "q/0#1"]
    assert len(worlds) == 1  # p does not begin again in a fresh one


# ---- the score ------------------------------------------------------------------------------------------


def graded(mood: str, at: str) -> Callable[[], object]:
    def score() -> object:
        source = SortDigits()
        task = source.task("sort", 3, "train", 0)
        (rollout,) = play(
            Scripted(says("a")), in_turn(Moody(at=at, mood=mood)), contexts=[replace(posed(), task=task.public_view())]
        )
        with ScoringPool(source.verifier()) as pool:
            return pool.score([(task, rollout)])[rollout.id]

    return score


def test_the_floor_for_the_policys_fault_and_no_score_for_the_worlds() -> None:
    floored, masked = graded("hang", "a")(), graded("raise", "a")()
    assert (floored.fault, set(floored.components.values()), floored.valid) == (Fault.POLICY, {0.0}, True)
    assert tuple(floored.components) == SortDigits().verifier().names
    assert floored.info["error"] == "environment step 1: no answer within 0.01 s, twice"
    assert (masked.fault, dict(masked.components), masked.valid) == (Fault.INFRA, {}, False)
