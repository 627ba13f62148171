"""Rollouts kept by their rows: which, how many, when they join, and the same after a resume."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from live import coin_toss, session, spied, walk
from tiny_runs import only_rl

from assay.core.batch import Batch
from assay.core.errors import AssayError
from assay.core.group import Group
from assay.core.sample import STREAMS
from assay.guide import Compose, FirstTasks, Recent
from assay.lab.controls import RandomReward, Rewarded
from assay.objective.methods import grpo, reinforce
from assay.testing import check_stage, graded_group
from assay.train import RowReplay
from assay.train.preflight import check_run
from assay.train.row_replay import RowReplayBuffer
from assay.train.run import Run
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(1, 2, 3))


def group(*rewards: float, index: int = 0, key: str = "g") -> Group:
    return graded_group(TASKS.task("sort", 3, "train", index), list(rewards), key=key)


def filled(**changes: Any) -> RowReplayBuffer:
    """A replay of two steps at one row: right and wrong, then wrong alone."""
    replay = RowReplay(**({"keep": "pairs"} | changes)).build(0)
    replay.put([group(1.0, 0.0, key="a")], 0)
    replay.put([group(0.0, 0.0, key="b")], 1)
    return replay


def rewards(found: list[Group]) -> list[list[float]]:
    return [[x.primary for x in g.scores] for g in found]


def test_a_group_gets_what_it_lacks() -> None:
    replay = filled()
    assert rewards(replay.recall([group(0.0, 0.0, key="c")], 2)) == [[1.0]]
    assert rewards(replay.recall([group(1.0, 1.0, key="c")], 2)) == [[0.0]]
    assert rewards(replay.recall([group(1.0, 0.0, key="c")], 2)) == []
    assert rewards(replay.recall([group(0.0, index=1, key="c")], 2)) == [], "another row"
    (found,) = replay.recall([group(0.0, key="c")], 2)
    assert found.key == "c" and {r.context.group for r in found.rollouts} == {"c"}


def test_always_and_so_many_of_each_kind() -> None:
    replay = filled(when="always", join=2)
    assert rewards(replay.recall([group(1.0, 0.0, key="c")], 2)) == [[1.0, 0.0, 0.0]]
    assert rewards(filled(keep="failure", when="always", join=1).recall([group(0.0, key="c")], 2)) == [[0.0]]


def test_what_is_old_or_too_much_is_dropped() -> None:
    assert len(filled()) == 4 and len(filled(per_row=1)) == 2 and len(filled(keep="success")) == 1
    old = filled(max_age=2)
    assert rewards(old.recall([group(0.0, key="c")], 2)) == [[1.0]] and not old.recall([group(0.0, key="c")], 3)
    old.put([], 4)
    assert len(old) == 0
    one = sum(len(c.tokens) for c in group(1.0).rollouts[0].calls)
    kept = filled(tokens=2 * one)
    assert len(kept) == 2 and {k.step for k in kept._kept} == {1}, "the newest stay"
    assert kept.sample(5) == []


def test_a_state_that_was_written_goes_on_the_same() -> None:
    replay, other = filled(), RowReplay(keep="pairs").build(0)
    other.load_state_dict(json.loads(json.dumps(replay.state_dict())))
    asked = [group(0.0, 0.0, key="c")]
    (one,), (two,) = replay.recall(asked, 2), other.recall(asked, 2)
    assert one.rollouts[0].id == two.rollouts[0].id and len(other) == 4
    assert one.rollouts[0].calls[0].tokens.tolist() == two.rollouts[0].calls[0].tokens.tolist()


def replaying(replay: Any, **changes: Any) -> Run:
    return only_rl(**{"replay": replay, "index": FirstTasks(n=2), "levels": (1,), "objective": grpo(), **changes})


def test_replayed_rollouts_share_the_baseline_of_their_row(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = spied(monkeypatch)
    s = session(coin_toss(replaying(RowReplay(keep="success", when="always", join=1, least=0.5))))
    results = walk(s, 3)
    assert "sources/replay" not in results[0].metrics and results[-1].metrics["sources/replay"] >= 1.0
    last: Batch = batches[-1]
    stream, owner = last.rows["stream"], last.rows["rollout"]
    old, new = owner[stream == STREAMS.index("replay")], owner[stream == STREAMS.index("on_policy")]
    group_of = last.rollout("group")
    assert len(old) and set(group_of[old]) <= set(group_of[new])
    tokens = last.token("mask") & np.isin(owner[last.row_of_token], old)
    assert np.isfinite(last.token("logp_engine")[tokens]).all()
    assert (last.token("weight_version")[tokens] < last.token("weight_version").max()).all()


def test_the_stage_resumes_exactly() -> None:
    stage = replaying(RowReplay(keep="pairs", when="always"), groups=2, group_size=2).stages[0]
    check_stage(stage, tasks=Rewarded(source=TASKS, scorer=RandomReward()))


def test_what_makes_no_sense_is_refused() -> None:
    for make, said in (
        (lambda: RowReplay(keep="best"), r"RowReplay\.keep"),  # type: ignore[arg-type]
        (lambda: RowReplay(when="often"), r"RowReplay\.when"),  # type: ignore[arg-type]
        (lambda: RowReplay(join=0), r"RowReplay\.join"),
        (lambda: RowReplay(join=5), "exceeds per_row=4"),
        (lambda: check_run(replaying(RowReplay(), objective=reinforce())), "no ratio to correct for it; use a method with one"),
        (lambda: check_run(replaying(RowReplay(), composer=Compose(replay_share=0.5))), "at their rows alone; use 0"),
        (lambda: check_run(replaying(Recent())), "never read"),
    ):
        with pytest.raises(AssayError, match=said):
            make()
    check_run(replaying(RowReplay()))
    assert replace(RowReplay(), keep="failure").kinds == ("failure",)
