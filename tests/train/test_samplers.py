"""Stages that say how their rollouts come about: the policy's own summaries, chunks, searches, games of two."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss, rollouts, session, spied, walk
from tiny_runs import SHAPE, in_child, kill_at, only_rl, reinforce, resumed, tiny, trained

from assay.cli.asked_model import RecordedRun
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.protocols import Environment, Obs, SamplerParts, SamplerSpec, Step
from assay.core.rollout import ASIDE, Sampling, Stop
from assay.core.task import Message, TaskView
from assay.objective import DropTruncated
from assay.objective.methods import dapo, rae
from assay.rollout import Branching, Chunks, KeepLast, PlayerSpec, Summarise
from assay.rollout.positions import context_after
from assay.train import evaluator, models
from assay.train.driver import train
from assay.train.opening import open_stage
from assay.train.policy import Policy
from assay.train.providers import PlayerRole
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.verify import ScoringPool
from assay_tasks import Heaps, KeyValue
from assay_tasks.heaps import best
from assay_tasks.keyvalue import Store

SHOWN = Summarise(context=12, share=0.9, most=2, instruction="?", shown="={summary}", limit=3)


class Talk(KeyValue):
    """Answers whatever is said, four times."""

    def environment(self, world: TaskView) -> Environment:
        return Answers(world)


class Answers(Store):
    async def step(self, action: str) -> Step:
        step = await super().step("?" + action[:2])
        return replace(step, obs=Obs((Message("tool", "=ab>"),)))


def running(sampler: SamplerSpec, new: int = 4, **changes: Any) -> Run:
    """Look-ups of several turns."""
    stage = {"steps": 3, "groups": 2, "group_size": 4, "sampler": sampler, **changes}
    model = models.Scratch(shape=replace(SHAPE, max_positions=96), seed=0)
    tasks = Talk(levels=(2,))
    sampling = Sampling(max_new_tokens=new, stop_ids=tuple(range(1, 30)))  # so that turns end soon
    return replace(only_rl(**stage), tasks=tasks, model=model, max_turns=6, sampling=sampling)


def filed(run: Run) -> Run:
    return from_dict(Run, loads_toml(dumps_toml(to_dict(run))))


def test_a_plain_sampler_is_not_filed() -> None:
    assert "sampler" not in to_dict(Reinforce())
    run = running(PlayerSpec(context=Chunks(head=1, tail=1), max_turns=3))
    assert filed(run) == run
    for spec in (PlayerSpec(context=SHOWN), PlayerSpec(context=KeepLast(n=2))):
        assert filed(running(spec)) == running(spec)


@pytest.mark.parametrize("context", [SHOWN, Chunks(head=1, tail=1, most=3), KeepLast(n=1)])
def test_rewritten_conversations_are_trained_token_for_token(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sampled token carries loss once, under the very distribution that it was sampled from."""
    seen = spied(monkeypatch)
    s = session(coin_toss(running(PlayerSpec(context=context))))
    before = s.parts.learner.state_digest()
    results = walk(s, 2)
    assert s.parts.learner.state_digest() != before
    for result, batch in zip(results, seen, strict=True):
        played = rollouts(result)
        assert int(batch.token("mask").sum()) == sum(r.length for r in played)
        assert len(batch) > len(played)
        assert result.metrics["engine/mismatch_k3"] < 1e-9
        advantage = batch.token("advantage") if "advantage" in batch.tokens else None
        assert advantage is None or all(
            len(np.unique(advantage[(batch.rows["rollout"][batch.row_of_token] == i) & batch.token("mask")])) <= 1
            for i in range(len(played))
        )


def test_an_evaluation_summarises_as_often_as_its_settings_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    most: list[int] = []
    true = evaluator.evaluate

    async def told(player: Any, *rest: Any) -> Any:
        most.append(player.manager.most)
        return await true(player, *rest)

    monkeypatch.setattr(evaluator, "evaluate", told)
    run = running(PlayerSpec(context=replace(SHOWN, most=2, most_evaluated=5)), steps=1)
    train(replace(coin_toss(run), evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False)), tmp_path / "run")
    assert set(most) == {5}
    assert session(coin_toss(run)).parts.player(run.sampling).manager.most == 2  # type: ignore[attr-defined]


def test_summaries_are_made_and_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spied(monkeypatch)
    s = session(coin_toss(running(PlayerSpec(context=SHOWN), objective=dapo(overlong=DropTruncated()))))
    (result,) = walk(s)
    asides = [c for r in rollouts(result) for c in r.calls if c.role == ASIDE]
    cut = [r for r in rollouts(result) if r.stop is Stop.LENGTH]
    assert asides
    assert cut
    (batch,) = seen
    assert batch.rollout("truncated").sum() == len(cut)
    assert sum(v for k, v in result.metrics.items() if k.endswith("dropped_truncated")) == len(cut)


@pytest.mark.slow
@pytest.mark.parametrize("context", [SHOWN, Chunks(head=1, tail=1, most=3)])
def test_a_killed_run_of_rewritten_conversations_goes_on_to_the_same_bits(context: Any, tmp_path: Path) -> None:
    run = replace(running(PlayerSpec(context=context), steps=4), checkpoint_every=2)
    whole = trained(run, tmp_path / "whole")
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(run, part))) == -9
    assert resumed(part, run) == whole


# ---- branches ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_branches_are_trained_once_and_the_run_goes_on_to_the_same_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = replace(running(Branching(tau=0.45), group_size=6, steps=4), checkpoint_every=2)
    seen = spied(monkeypatch)
    s = open_stage(coin_toss(run), run.stages[0], models.load_source(run.model, lambda run, folder: folder), pool(run), 0)
    results = walk(s, 2)
    for result, batch in zip(results, seen, strict=True):
        played = rollouts(result)
        calls = [c for r in played for c in r.calls]
        assert any(c.shared for c in calls)
        assert int(batch.token("mask").sum()) == sum(len(c.completion.ids) for c in calls if not c.shared)
        assert result.metrics["engine/mismatch_k3"] < 1e-9
    whole = trained(run, tmp_path / "whole")
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(run, part))) == -9
    assert resumed(part, run) == whole


def pool(run: Run) -> ScoringPool:
    return ScoringPool(coin_toss(run).tasks.verifier())


# ---- two roles --------------------------------------------------------------------------------------------------------


class Duo(Talk):
    """Two who answer in turn whatever the other says."""

    def environment(self, world: TaskView) -> Environment:
        return Pair(world)


class Pair(Answers):
    said = 0

    async def start(self) -> Obs:
        return replace(await super().start(), actor="red")

    async def step(self, action: str) -> Step:
        self.said += 1
        step = await super().step(action)
        return replace(step, obs=replace(step.obs, actor=("red", "blue")[self.said % 2]))


@pytest.mark.slow
def test_two_roles_are_groups_of_their_own_and_learn_from_one_episode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = spied(monkeypatch)
    run = replace(running(PlayerSpec(), steps=4), tasks=Duo(levels=(2,)), checkpoint_every=2)
    s = session(coin_toss(run))
    for result, batch in zip(walk(s, 2), seen, strict=True):
        played = rollouts(result)
        assert [g.key.rpartition("@")[2] for g in result.groups] == ["red", "blue"] * 2
        assert [len(g.rollouts) for g in result.groups[::2]] == [4, 4]
        assert all(0 < len(g.rollouts) <= 4 for g in result.groups[1::2])  # some end before blue has acted
        assert {r.episode for g in result.groups[::2] for r in g.rollouts} == {r.episode for r in played}
        assert int(batch.token("mask").sum()) == sum(r.length for r in played)
        assert len(np.unique(batch.rollout("group"))) == 4
        assert result.metrics["engine/mismatch_k3"] < 1e-9
    whole = trained(run, tmp_path / "whole")
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(run, part))) == -9
    assert resumed(part, run) == whole


def test_each_role_of_a_game_has_a_baseline_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `rae` by name is wired: the numbers of ``role`` follow the roles, and not the level that both share."""
    seen = spied(monkeypatch)
    run = replace(running(PlayerSpec(), steps=2), tasks=Duo(levels=(2,)))
    stage = replace(run.stages[0], objective=rae(), columns=(PlayerRole(),))
    (result,) = walk(session(coin_toss(replace(run, stages=(stage,)))))
    groups = {number: set() for number in set(seen[-1].rollout("role").tolist())}
    for number, group in zip(seen[-1].rollout("role").tolist(), seen[-1].rollout("group").tolist(), strict=True):
        groups[number].add(result.groups[group].key.rpartition("@")[2])
    assert sorted(map(sorted, groups.values())) == [["blue"], ["red"]]


@dataclass(frozen=True)
class Midway(PlayerSpec):
    """Begins each rollout behind the oracle's first move."""

    def build(self, parts: SamplerParts) -> Any:
        return Restarting(parts.source, super().build(parts))


@dataclass
class Restarting:
    source: Any
    player: Any

    async def collect(self, contexts: Any, n: int) -> Any:
        begun = [await context_after(self.source, c, [best(tuple(map(int, c.messages[0].content[1:-1])))]) for c in contexts]
        return await self.player.collect(begun, n)


def test_rollouts_that_begin_at_a_snapshot_are_judged_and_trained() -> None:
    run = replace(running(Midway(max_turns=9), steps=2), tasks=Heaps(levels=(2,)))
    s = open_stage(
        run, run.stages[0], models.load_source(run.model, lambda run, folder: folder), ScoringPool(run.tasks.verifier()), 0
    )
    (result,) = walk(s)
    played = rollouts(result)
    assert all(r.context.snapshot["turn"] == 1 and r.calls[0].role == "second" for r in played)
    assert {g.key.rpartition("@")[2] for g in result.groups} >= {"second"}
    assert all(score.valid for g in result.groups for score in g.scores)


# ---- evaluations ------------------------------------------------------------------------------------------------------


def test_a_trained_model_is_evaluated_in_the_contexts_of_its_training(tmp_path: Path) -> None:
    """Answers in chunks are longer than one call, in the run's own evaluations and in those asked for afterwards."""
    chunks = PlayerSpec(context=Chunks(head=1, tail=1, most=3))
    run = replace(tiny(), stages=(reinforce(steps=1, sampler=Branching(play=chunks)),), sampling=Sampling(max_new_tokens=4))
    folder = tmp_path / "run"
    trained(run, folder)
    own = [json.loads(line) for line in (folder / "evals.jsonl").read_text().splitlines()]
    assert max(len(a) for row in own for item in row["items"] for a in item["answers"]) == 8
    found = RecordedRun.of(folder)
    assert found is not None
    assert found.limits["player"] == chunks
    for player, longest in ((found.limits["player"], 8), (None, 4)):
        items = Policy(folder).evaluate(run.tasks, per_level=4, sampling=run.sampling, player=player)
        assert max(len(a) for item in items for a in item["answers"]) == longest
