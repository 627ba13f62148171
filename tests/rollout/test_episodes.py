"""Environments of several roles: one rollout for each, one episode, each token learned from once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from scripted import CLOSE, EOS, OPEN, Letters, Reply, Scripted, Worlds, posed

from assay.core import (
    Message,
    Rollout,
    Sampling,
    Stop,
    group_from_wire,
    group_to_wire,
    rollout_from_wire,
    rollout_to_wire,
    samples,
)
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Environment, Obs, Request, Step
from assay.core.rollout import ASIDE
from assay.core.score import Fault
from assay.rollout import Player, Summarise
from assay.rollout.positions import context_after
from assay.tasks.turns import actions_of, moves_of
from assay.testing import graded_group
from assay_tasks import Heaps


@dataclass
class Talk:
    """Two who speak in turn; each hears the other. Ends at ``stop``."""

    actors: tuple[str, ...] = ("red", "blue")
    fails: str = ""
    heard: list[str] = field(default_factory=list)

    async def start(self) -> Obs:
        return Obs((Message("tool", "go"),), actor=self.actors[0])

    async def step(self, action: str) -> Step:
        if action == self.fails:
            raise OSError("no")
        self.heard.append(action)
        actor = self.actors[len(self.heard) % len(self.actors)]
        return Step(obs=Obs((Message("tool", f"<{action}>"),), actor=actor), done=action == "stop")


def episode(
    reply: Callable[[Request], Reply], make: Callable[[], Environment] = Talk, n: int = 1, **changed: Any
) -> list[Rollout]:
    fields = {"sampling": Sampling(max_new_tokens=8), "seed": 5, "max_turns": 4, **changed}
    engine = Scripted(reply)
    player = Player(engine=engine, tokenizer=Letters(), source=Worlds(make), **fields)
    rollouts = asyncio.run(player.collect([posed()], n))
    firsts = [r.first for r in engine.requests if r.id.startswith("c/0#")]
    assert firsts == sorted(firsts)
    return rollouts


def says(*texts: Reply) -> Callable[[Request], Reply]:
    return lambda request: texts[int(request.id.rpartition("#")[2])]


def letters(text: str) -> list[int]:
    return [ord(c) for c in text]


OPENING = [*letters("1+1="), CLOSE]


def test_each_role_has_a_rollout_of_its_own_and_reads_what_it_was_shown() -> None:
    red, blue = episode(says("a", "b", "c", "stop"))
    assert [(r.id, r.role, r.episode, r.context.group, r.context.key) for r in (red, blue)] == [
        ("c/0/red", "red", "c/0", "c@red", "c"),
        ("c/0/blue", "blue", "c/0", "c@blue", "c"),
    ]
    assert [c.role for c in red.calls] == ["red", "blue", "red", "blue"]
    assert [c.shared for c in red.calls] == [False, True, False, True]
    assert [c.shared for c in blue.calls] == [True, False, True, False]
    assert red.calls[0].prefix.tolist() == [*OPENING, *letters("go"), CLOSE, OPEN]
    assert blue.calls[1].prefix.tolist() == [*OPENING, *letters("<a>"), CLOSE, OPEN]
    assert red.calls[2].prefix.tolist() == [*red.calls[0].tokens.tolist(), *letters("<b>"), CLOSE, OPEN]
    assert [c.parent for c in red.calls] == [None, None, 0, 1]
    assert (red.text, blue.text, red.length, blue.length, red.stop) == ("c", "stop", 4, 7, Stop.DONE)
    assert moves_of(red) == moves_of(blue) == [("red", "a"), ("blue", "b"), ("red", "c"), ("blue", "stop")]
    assert (actions_of(red), actions_of(blue)) == (["a", "c"], ["b", "stop"])


def test_each_token_is_learned_from_in_the_rollout_of_its_role() -> None:
    red, blue = episode(says("a", "b", "c", "stop"))
    assert [[*r.ids[r.mask].tolist()] for r in samples(red)] == [[ord("a"), EOS, ord("c"), EOS]]
    assert [[*r.ids[r.mask].tolist()] for r in samples(blue)] == [[ord("b"), EOS, *letters("stop"), EOS]]
    assert len(red.column("routing")) == red.length


def test_roles_survive_the_wire() -> None:
    for rollout in episode(says("a", "b", "c", "stop")):
        back = rollout_from_wire(rollout_to_wire(rollout))
        assert (back.role, back.episode, [c.shared for c in back.calls]) == (
            rollout.role,
            rollout.episode,
            [c.shared for c in rollout.calls],
        )
    task = Heaps().task("heaps", 2, "train", 0)
    assert "role" not in group_to_wire(graded_group(task, [1.0]))["rollouts"][0]
    assert group_from_wire(group_to_wire(graded_group(task, [1.0]))).rollouts[0].role == ""


def test_limits_end_the_episode_for_all_and_are_of_whose_turn_it_was() -> None:
    red, blue = episode(says("a", "0123456789"))
    assert (red.stop, blue.stop) == (Stop.DONE, Stop.LENGTH)
    assert [r.stop for r in episode(lambda r: "go", max_turns=2)] == [Stop.LENGTH] * 2
    assert [len(r.own) for r in episode(lambda r: "go", max_turns=2)] == [2, 2]


def test_a_context_may_allow_fewer_turns_than_the_sampler_and_never_more() -> None:
    for own, most, made in ((1, 4, 1), (9, 2, 2), (None, 2, 2)):
        player = Player(
            engine=Scripted(lambda r: "go"),
            tokenizer=Letters(),
            source=Worlds(Talk),
            sampling=Sampling(max_new_tokens=8),
            seed=5,
            max_turns=most,
        )
        rollouts = asyncio.run(player.collect([replace(posed(), max_turns=own)], 1))
        assert [(r.stop, len(r.own)) for r in rollouts] == [(Stop.LENGTH, made)] * 2


def test_three_roles() -> None:
    made = episode(says("a", "b", "c", "d", "stop"), lambda: Talk(("x", "y", "z")))
    assert [(r.role, [c.text for c in r.own]) for r in made] == [("x", ["a", "d"]), ("y", ["b", "stop"]), ("z", ["c"])]


def test_episodes_of_a_context_stand_in_order() -> None:
    assert [r.id for r in episode(says("a", "stop"), n=2)] == ["c/0/red", "c/0/blue", "c/1/red", "c/1/blue"]


def test_asides_are_of_the_role_that_speaks_to_itself() -> None:
    summing = Summarise(context=24, share=0.5, instruction="sum", shown="={summary}", limit=4)
    red, blue = episode(says("a", "b", "s", "c", "t", "stop"), manager=summing, max_turns=8)
    assert [(c.role, c.text) for c in red.calls] == [("red", "a"), ("blue", "b"), (ASIDE, "s"), ("red", "c"), ("blue", "stop")]
    assert [(c.role, c.text) for c in blue.calls] == [("red", "a"), ("blue", "b"), ("red", "c"), (ASIDE, "t"), ("blue", "stop")]
    assert [[c.id for c in r.calls] for r in (red, blue)] == [[0, 1, 2, 3, 4]] * 2
    assert sum(int(row.mask.sum()) for row in samples(red)) == red.length == 6
    assert (red.text, actions_of(blue)) == ("c", ["b", "stop"])


def test_an_environment_that_breaks_is_played_again_and_its_fault_is_nobodys() -> None:
    broken = [Talk(fails="b"), Talk()]
    again = episode(says("a", "b", "stop"), lambda: broken.pop(0))
    assert [[c.text for c in r.own] for r in again] == [["a", "stop"], ["b"]]
    twice = episode(says("a", "b"), lambda: Talk(fails="b"))
    assert [(r.stop, r.fault, r.error) for r in twice] == [
        (Stop.ERROR, Fault.INFRA, "environment step 2: OSError: no, twice")
    ] * 2


@pytest.mark.parametrize("actors", [("red", ""), ("", "red")])
def test_actors_are_named_always_or_never(actors: tuple[str, ...]) -> None:
    made = episode(says("a", "b", "c"), lambda: Talk(actors))
    assert {r.stop for r in made} == {Stop.ERROR}
    assert "name one in each Obs, or none at all" in (made[0].error or "")


def test_a_part_of_an_episode_does_not_branch() -> None:
    red, _ = episode(says("a", "b", "stop"))
    player = Player(engine=Scripted(says()), tokenizer=Letters(), source=Worlds(Talk), sampling=Sampling(), seed=5)
    with pytest.raises(
        DataError, match="c/0/red is the part of role 'red' in episode c/0; only a rollout of one actor can branch"
    ):
        asyncio.run(player.branch(red, 1, 1))


# ---- snapshots ------------------------------------------------------------------------------------------------------------


def test_a_context_behind_some_actions() -> None:
    task = next(
        t
        for i in range(30)
        if len((t := Heaps().task("heaps", 3, "test", i)).private["answer"]) and sum(map(int, t.public["prompt"][1:-1])) > 9
    )
    start = replace(posed(), task=task.public_view(), messages=task.public_view().messages)
    later = asyncio.run(context_after(Heaps(), start, [task.private["answer"]]))
    assert later.snapshot["turn"] == 1
    assert sum(later.snapshot["heaps"]) < sum(map(int, task.public["prompt"][1:-1]))
    assert asyncio.run(context_after(Heaps(), later, [])).snapshot == later.snapshot
    with pytest.raises(DataError, match="the episode is over behind action 1 of 2, 'no move'"):
        asyncio.run(context_after(Heaps(), start, ["no move", "a1"]))


def test_who_writes_no_snapshots() -> None:
    with pytest.raises(ConfigError, match="Talk writes no snapshots"):
        asyncio.run(context_after(Worlds(Talk), posed(), []))
    with pytest.raises(ConfigError, match="its environment has none"):
        asyncio.run(context_after(Worlds(), posed(), []))
