"""Start states: which episodes begin where."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Moment, Snapshots
from assay.core.task import Context
from assay.core.wire import context_from_wire, context_to_wire
from assay.guide import Plain, StartStates
from assay.guide.start_states import clusters_of
from assay.rollout.positions import states_between
from assay.testing import check_guidance
from assay_tasks import Heaps, KeyValue
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


def test_clusters_part_states_by_their_numbers() -> None:
    near, far = [{"heaps": [1, n], "turn": 1} for n in (1, 2, 1)], [{"heaps": [7, 7], "turn": 5}]
    assert clusters_of([*near, *far], 2) == [[0, 1, 2], [3]]
    assert clusters_of([near[0], near[0], near[0]], 2) == [[0, 1, 2]], "what is equal is not parted"
    assert clusters_of([*near, *far], 9) == [[0, 2], [1], [3]], "no more than there are different ones"
    assert clusters_of([{"a": 1.0}, {"a": True, "s": "x"}, {"a": (3, 4)}], 2) == [[0, 1], [2]]
    with pytest.raises(DataError, match="no number to cluster by"):
        clusters_of([{"text": "x"}], 2)


def test_each_cluster_is_met_as_often_however_many_states_it_has() -> None:
    states = (*({"heaps": (1, n), "turn": 1} for n in (1, 2, 1)), {"heaps": (7, 7), "turn": 5})
    task = replace(TASK, private=FrozenMap({"states": states}))
    spec = StartStates(probability=1.0, clusters=2)
    drawn = [spec.next(task, [], Moment(key=f"k{i}"))[0].context.snapshot["turn"] for i in range(2000)]
    assert abs(Counter(drawn)[5] / 2000 - 0.5) < 0.04
    even = [StartStates(probability=1.0).next(task, [], Moment(key=f"k{i}"))[0].context.snapshot["turn"] for i in range(2000)]
    assert abs(Counter(even)[5] / 2000 - 0.25) < 0.04


def test_a_horizon_is_of_episodes_behind_a_state_alone_and_survives_the_wire() -> None:
    for context in contexts(StartStates(probability=0.5, horizon=2), 40):
        assert context.max_turns == (None if context.snapshot is None else 2)
        assert context_from_wire(context_to_wire(context)) == context


def test_states_of_a_file_take_the_place_of_the_tasks_own(tmp_path: Path) -> None:
    start = Context(key="c", group="c", task=TASK.public_view(), messages=TASK.public_view().messages)
    states = asyncio.run(states_between(SOURCE, start, [best(TASK.private["states"][0]["heaps"]), "none", "a1"]))
    own = asyncio.run(states_between(SOURCE, start, ["a1", "a1"]))
    assert [s["turn"] for s in own] == [1, 2] and len(states) <= 1
    path = tmp_path / "states.jsonl"
    path.write_text(json.dumps({"prompt": TASK.public["prompt"], "states": own}) + "\n", encoding="utf-8")
    spec = StartStates(probability=1.0, data=str(path))
    check_guidance(spec, TASK)
    assert spec.files == (str(path),) and all(c.snapshot in own for c in contexts(spec, 50))
    other = SOURCE.task("heaps", 3, "train", 1)
    assert spec.next(other, [], Moment(key="k"))[0].context.snapshot is None
    path.with_name("bad.jsonl").write_text('{"prompt": "H1>"}\n', encoding="utf-8")
    for name, said in (("bad.jsonl", "line 1"), ("none.jsonl", "cannot be read")):
        with pytest.raises(DataError, match=said):
            StartStates(data=str(tmp_path / name)).next(TASK, [], Moment(key="k"))


def test_a_store_goes_on_behind_its_look_ups() -> None:
    source = KeyValue()
    task = source.task("keyvalue", 3, "train", 0)
    start = Context(key="c", group="c", task=task.public_view(), messages=task.public_view().messages)
    said = [m.content for m in source.trace(task, 0.0, np.random.default_rng(0)) if m.role == "assistant"]
    states = asyncio.run(states_between(source, start, said))
    assert [s["left"] for s in states] == [task.world["calls"] - n for n in (1, 2, 3)]

    async def play() -> None:
        table = source.environment(task.public_view())
        assert isinstance(table, Snapshots)
        shown = await table.restore(states[0])
        assert [m.content for m in shown.messages] == [states[0]["said"]] == [f"={said[1][1:]}>"]
        step = await table.step(said[1])
        assert step.obs.messages[0].content == states[1]["said"] and await table.snapshot() == states[1]
        assert (await table.step(task.private["answer"])).done

    asyncio.run(play())


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="clusters"):
        StartStates(clusters=-1)
    with pytest.raises(ConfigError, match="probability"):
        StartStates(probability=1.5)
    with pytest.raises(ConfigError, match="steps"):
        StartStates(steps=-1)
    with pytest.raises(DataError, match=r"private\['states'\]"):
        StartStates().next(replace(TASK, private=FrozenMap({})), [], Moment(key="k"))
