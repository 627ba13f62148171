"""Start states: which episodes begin where."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Moment, Snapshots
from assay.guide import Plain, StartStates
from assay.testing import check_guidance
from assay_tasks import Heaps
from assay_tasks.heaps import best

SOURCE = Heaps()
TASK = SOURCE.task("heaps", 3, "train", 0)


def contexts(guidance: StartStates, count: int = 400, step: int = 0) -> list[Any]:
    return [guidance.next(TASK, [], Moment(key=f"k{i}", step=step))[0].context for i in range(count)]


def test_it_keeps_the_contract() -> None:
    check_guidance(StartStates(), TASK)


def test_probability_0_is_the_plain_task_and_1_always_a_state() -> None:
    plain = [Plain().next(TASK, [], Moment(key=f"k{i}"))[0].context for i in range(400)]
    assert contexts(StartStates(probability=0.0)) == plain
    assert all(c.snapshot in TASK.private["states"] and c.tag == "state" for c in contexts(StartStates(probability=1.0)))


def test_states_are_drawn_evenly_and_as_often_as_said() -> None:
    drawn = [c.snapshot for c in contexts(StartStates(probability=0.5), 4000)]
    begun = [s for s in drawn if s is not None]
    assert 0.47 < len(begun) / 4000 < 0.53
    shares = [sum(s == state for s in begun) / len(begun) for state in TASK.private["states"]]
    assert len(shares) > 1 and all(abs(share - 1 / len(shares)) < 0.05 for share in shares)


def test_only_early_episodes_begin_at_states() -> None:
    spec = StartStates(probability=1.0, steps=10)
    assert all(c.snapshot is not None for c in contexts(spec, 20, step=9))
    assert all(c.snapshot is None for c in contexts(spec, 20, step=10))


def test_a_state_and_the_recorded_move_give_the_next_state() -> None:
    async def play() -> None:
        states = TASK.private["states"]
        for now, then in pairwise(states):
            table = SOURCE.environment(TASK.public_view())
            assert isinstance(table, Snapshots)
            await table.restore(now)
            await table.step(best(tuple(now["heaps"])))
            assert await table.snapshot() == {"heaps": list(then["heaps"]), "turn": then["turn"]}

    asyncio.run(play())


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="probability"):
        StartStates(probability=1.5)
    with pytest.raises(ConfigError, match="steps"):
        StartStates(steps=-1)
    with pytest.raises(DataError, match=r"private\['states'\]"):
        StartStates().next(replace(TASK, private=FrozenMap({})), [], Moment(key="k"))
