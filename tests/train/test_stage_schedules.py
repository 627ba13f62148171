"""Scheduled settings of a stage: what a step samples by, what is refused, exact resume, and all of it beside other parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss
from tiny_runs import SHAPE, in_child, kill_at, only_rl, reinforce, resumed, trained

from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import AssayError, ConfigError, UnknownNameError
from assay.core.protocols import Environment, Obs, State, Step
from assay.core.rollout import Annealing, Completion, Rollout, Sampling, Span, Stop, ids_of
from assay.core.sample import check_annealed
from assay.core.task import Message, TaskView
from assay.guide import Compose, Mixed, Piecewise, Ramp, Recent, Refill, ResampleOnCorrect, StepSchedule, WhenReached
from assay.objective.methods import areal, grpo
from assay.recipes import tools_scaling_inter
from assay.rollout import Branching, Chunks, PlayerSpec
from assay.runtime.settings import AdamW, LearnerSettings
from assay.runtime.vllm.settings import VllmSettings
from assay.train import models
from assay.train.driver import train
from assay.train.opening import open_stage
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Evaluation, Run
from assay.train.runner import StepResult
from assay.train.schedules import StageSchedules
from assay.train.session import Parts
from assay.verify import ScoringPool
from assay_tasks import KeyValue
from assay_tasks.keyvalue import Store


class Talk(KeyValue):
    """Answers whatever is said, and is never done."""

    def environment(self, view: TaskView) -> Environment:
        return Answers(view)


class Answers(Store):
    async def step(self, action: str) -> Step:
        step = await super().step("?" + action[:2])
        return replace(step, obs=Obs((Message("tool", "=ab>"),)), done=False)


def scheduled(steps: int = 4, **changes: Any) -> Run:
    """RL from fresh weights under coin-toss rewards, so that every step moves them."""
    schedules = changes.pop("schedules")
    stage = {"steps": steps, "groups": 2, "learner": LearnerSettings(optimizer=AdamW(lr=1e-2)), "schedules": schedules}
    return coin_toss(replace(only_rl(**(stage | changes)), checkpoint_every=2))


def talking(**changes: Any) -> Run:
    """The same where rollouts have turns."""
    sampling = Sampling(max_new_tokens=4, stop_ids=tuple(range(1, 30)))  # so that turns end soon
    model = models.Scratch(shape=replace(SHAPE, max_positions=96), seed=0)
    run = replace(scheduled(**changes), tasks=Talk(levels=(2,)), model=model, max_turns=6, sampling=sampling)
    return coin_toss(run)


def opened(run: Run) -> ReinforceRunner:
    model = models.load_source(run.model, lambda run, folder: folder)
    s = open_stage(run, run.stages[0], model, ScoringPool(run.tasks.verifier()))
    assert isinstance(s, ReinforceRunner)
    return s


def stepped(s: ReinforceRunner, steps: int, **told: list[float]) -> list[StepResult]:
    """Steps as a run makes them; ``told`` are further metrics of each."""

    async def work() -> list[StepResult]:
        if s.parts.stage_step == 0:
            await s.parts.calibrate()
        out: list[StepResult] = []
        for number in range(steps):
            out.append(await s.step())
            s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
            s.observe_metrics({**out[-1].metrics, **{f"eval/greedy/{k}": v[number] for k, v in told.items()}})
        return out

    return asyncio.run(work())


def rollouts(result: StepResult) -> list[Rollout]:
    return [r for g in result.groups for r in g.rollouts]


def series(folder: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [r["metrics"][name] for r in lines if name in r["metrics"]]


# ---- each setting -----------------------------------------------------------------------------------------------------


def test_tokens_are_drawn_and_scored_at_the_scheduled_temperature() -> None:
    s = opened(scheduled(schedules={"temperature": Ramp(points=((0, 0.5), (2, 1.0), (4, 2.0)))}))
    for result, value in zip(stepped(s, 6), (0.5, 0.75, 1.0, 1.5, 2.0, 2.0), strict=True):
        assert {c.completion.sampling.temperature for r in rollouts(result) for c in r.calls} == {value}
        assert result.metrics["schedule/temperature"] == value
        assert result.metrics["engine/mismatch_k3"] < 1e-9  # the learner scores at the same temperature
        assert result.metrics["grad/norm"] > 0


def test_answers_are_as_long_as_scheduled() -> None:
    s = opened(scheduled(schedules={"max_new_tokens": Piecewise(points=((0, 1), (1, 3), (3, 5)))}))
    for result, value in zip(stepped(s, 4), (1, 3, 3, 5), strict=True):
        limits = {c.completion.sampling.max_new_tokens for r in rollouts(result) for c in r.calls}
        assert limits == {value} and all(type(limit) is int for limit in limits)
        assert max(r.length for r in rollouts(result)) == value
        assert result.metrics["schedule/max_new_tokens"] == result.metrics["length/max"] == value


def test_a_ramp_of_a_whole_number_is_rounded() -> None:
    s = opened(scheduled(schedules={"max_new_tokens": Ramp(points=((0, 1), (3, 3)))}))
    assert [r.metrics["schedule/max_new_tokens"] for r in stepped(s, 4)] == [1, 2, 2, 3]  # of 1, 1.67, 2.33, 3


def test_groups_are_as_large_as_scheduled() -> None:
    s = opened(scheduled(schedules={"group_size": Piecewise(points=((0, 2), (2, 4)))}))
    for result, value in zip(stepped(s, 3), (2, 2, 4), strict=True):
        assert [len(g.rollouts) for g in result.groups] == [value, value]
        assert result.metrics["schedule/group_size"] == value


def test_rollouts_have_as_many_turns_as_scheduled() -> None:
    s = opened(talking(schedules={"max_turns": Piecewise(points=((0, 1), (1, 3), (2, 4)))}))
    for result, value in zip(stepped(s, 3), (1, 3, 4), strict=True):
        assert max(len(r.calls) for r in rollouts(result)) == value
        assert result.metrics["schedule/max_turns"] == value


def test_a_metric_moves_the_value_on() -> None:
    spec = WhenReached(metric="eval/greedy/all", at_least=0.5, values=(1, 3, 5), patience=2)
    s = opened(scheduled(schedules={"max_new_tokens": spec}))
    results = stepped(s, 6, all=[0.6, 0.5, 0.4, 0.9, 0.9, 0.0])
    assert [r.metrics["schedule/max_new_tokens"] for r in results] == [1, 1, 3, 3, 3, 5]


def test_evaluations_keep_the_settings_of_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Sampling] = []
    player = Parts.evaluation_player

    def spy(self: Parts, sampling: Sampling) -> Any:
        seen.append(sampling)
        return player(self, sampling)

    monkeypatch.setattr(Parts, "evaluation_player", spy)
    run = scheduled(schedules={"temperature": Ramp(points=((0, 0.5), (2, 0.7))), "max_new_tokens": Piecewise(points=((0, 2),))})
    train(replace(run, evaluation=Evaluation(every=2, per_level=1, final_per_level=1)), tmp_path / "run")
    assert {(s.temperature, s.max_new_tokens) for s in seen} == {(0.0, 5), (1.0, 5)}
    assert len(seen) == 2 * 3  # before, behind step 2, at the end


def test_a_stage_without_schedules_says_nothing_of_them() -> None:
    assert "schedules" not in to_dict(Reinforce())
    s = opened(coin_toss(only_rl(groups=2)))
    sampler = s.sampler
    (result,) = stepped(s, 1)
    assert s.sampler is sampler
    assert not [name for name in result.metrics if name.startswith("schedule/")]
    assert s.state_dict().keys() == {"practice", "scorer"}


def test_schedules_come_back_from_a_file() -> None:
    spec = {"temperature": Ramp(points=((0, 0.5), (2, 0.7))), "group_size": Piecewise(points=((0, 2),))}
    run = only_rl(schedules=spec)
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(run)))) == run


# ---- refused ----------------------------------------------------------------------------------------------------------

LESS = WhenReached(metric="reward/mean", at_least=0.5, values=(2, 4))


@pytest.mark.parametrize(
    ("schedules", "changes", "text"),
    [
        ({"temperature": Ramp(points=((0, 1.0), (5, 0.0)))}, {}, r"schedules\['temperature'\] reaches 0: at temperature 0"),
        (
            {"max_new_tokens": Piecewise(points=((0, 4), (9, 6)))},
            {},
            r"goes up to 6, above Run.sampling.max_new_tokens=5, .* raise",
        ),
        ({"max_new_tokens": Piecewise(points=((0, 2.5),))}, {}, "goes through 2.5; max_new_tokens is a whole number"),
        ({"max_new_tokens": Piecewise(points=((0, 0),))}, {}, "goes down to 0, and the least is 1"),
        ({"group_size": WhenReached(metric="a", at_least=1, values=(4, 8))}, {}, "goes up to 8, above Reinforce.group_size=4"),
        ({"group_size": Piecewise(points=((0, 1),))}, {}, "goes down to 1, and the objective's baseline needs 2"),
        ({"group_size": LESS}, {"filter": ResampleOnCorrect(keep=3)}, "goes down to 2, and ResampleOnCorrect keeps 3"),
        ({"max_turns": Piecewise(points=((0, 2),))}, {}, "are answered in one turn, so that it would do nothing; leave it out"),
        (
            {"max_new_tokens": Piecewise(points=((0, 3),))},
            {"sampler": PlayerSpec(context=Chunks(head=1, tail=2, most=2))},
            "goes down to 3, and a chunk with what Chunks carries needs 4",
        ),
    ],
)
def test_values_that_a_run_is_not_planned_for_are_refused(schedules: Any, changes: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        check_run(only_rl(schedules=schedules, **changes))


def test_a_horizon_grows_by_steps_as_published() -> None:
    """ScalingInter-RL on SciWorld: 10 rounds up to step 99, 20 up to 199, 30 from there on; and the recipe's horizon."""
    rounds = Piecewise(points=((0, 10), (100, 20), (200, 30)))
    assert [rounds.at(step, {}) for step in (0, 99, 100, 199, 200, 10_000)] == [10, 10, 20, 20, 30, 30]
    run = tools_scaling_inter(3)
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    check_run(run)
    horizon = stage.schedules["max_turns"]
    assert [horizon.at(step, {}) for step in (0, 79, 80, 159, 160, stage.steps)] == [8, 8, 16, 16, 24, 24]
    assert (run.max_turns, run.seed) == (24, 3)


def test_turns_are_bounded_by_the_run_and_said_in_one_place() -> None:
    up, own = Piecewise(points=((0, 7),)), Piecewise(points=((0, 2),))
    with pytest.raises(ConfigError, match=r"goes up to 7, above Run.max_turns=6"):
        check_run(talking(schedules={"max_turns": up}))
    with pytest.raises(
        ConfigError, match=r"sampler has max_turns=3 of its own: leave the sampler's out and give Run.max_turns=3"
    ):
        check_run(talking(schedules={"max_turns": own}, sampler=PlayerSpec(max_turns=3)))
    check_run(talking(schedules={"max_turns": own}))
    check_run(only_rl(schedules={"max_turns": own}, sampler=PlayerSpec(tools=(look_up,))))


def look_up(key: str) -> str:
    """Looks a key up.

    Args:
        key: what to look up.
    """
    return key


def test_unknown_settings_and_things_that_are_no_schedules_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"setting in Reinforce.schedules 'temprature': did you mean 'temperature'\?"):
        reinforce(schedules={"temprature": Piecewise(points=((0, 1.0),))})
    with pytest.raises(ConfigError, match=r"schedules\['temperature'\] is a float, no schedule; give a Piecewise"):
        reinforce(schedules={"temperature": 0.7})
    with pytest.raises(ConfigError, match=r"Reinforce.schedules is .*; give a mapping"):
        reinforce(schedules=(Piecewise(points=((0, 1.0),)),))


@dataclass(frozen=True, kw_only=True)
class Odd(StepSchedule):
    """Whatever a test says."""

    values: tuple[float, ...] = (1.0, 2.0)  # type: ignore[assignment]
    reads: tuple[str, ...] = ()  # type: ignore[assignment]
    gives: float = 1.0

    def at(self, step: int, state: State) -> float:
        return self.gives if step else 1.0


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Odd(values=()), r"its values are \(\); a schedule goes through finite numbers"),
        (Odd(values=(float("inf"),)), "goes through finite numbers"),
        (Odd(reads=("time/step",)), "reads 'time/step': seconds and counts of the pool differ"),
        (Odd(reads=("eval/greedy/al",)), "unknown evaluation metric 'eval/greedy/al'"),
    ],
)
def test_own_schedules_are_looked_at_too(spec: Odd, text: str) -> None:
    with pytest.raises(AssayError, match=text):
        check_run(only_rl(schedules={"temperature": spec}))


def test_a_metric_of_evaluations_needs_some() -> None:
    spec = WhenReached(metric="eval/greedy/all", at_least=0.5, values=(0.5, 1.0))
    run = replace(only_rl(schedules={"temperature": spec}), evaluation=Evaluation(every=0))
    with pytest.raises(ConfigError, match=r"reads 'eval/greedy/all', and Evaluation.every=0: give it a number of steps"):
        check_run(run)


def test_a_value_beyond_those_named_ends_the_run() -> None:
    s = opened(scheduled(schedules={"temperature": Odd(gives=3.0)}))
    stepped(s, 1)
    with pytest.raises(ConfigError, match=r"Odd gives 3.0 at step 1 of the stage, and its values lie between 1 and 2"):
        stepped(s, 1)


def test_a_metric_that_no_step_will_have_is_named_behind_the_first_that_learned() -> None:
    waiting = StageSchedules({"temperature": WhenReached(metric="rewad/mean", at_least=0.5, values=(0.5, 1.0))})
    waiting.observe({"reward/mean": 0.1})  # nothing was learned: not all metrics are there
    with pytest.raises(UnknownNameError, match=r"schedules\['temperature'\] waits: 'rewad/mean': did you mean 'reward/mean'\?"):
        waiting.observe({"reward/mean": 0.1, "loss/total": 1.0})


@pytest.mark.parametrize(
    ("metric", "near"),
    [("reward/meen", "reward/mean"), ("length/trunctated", "length/truncated"), ("signal/fracion", "signal/fraction")],
)
def test_a_misspelt_metric_of_a_known_kind_is_named_behind_the_first_step_that_learned(metric: str, near: str) -> None:
    waiting = StageSchedules({"temperature": WhenReached(metric=metric, at_least=0.5, values=(0.5, 1.0))})
    waiting.observe({near: 0.1})
    with pytest.raises(UnknownNameError, match=rf"waits: '{metric}': did you mean '{near}'\?"):
        waiting.observe({near: 0.1, "loss/total": 1.0})


@pytest.mark.parametrize(
    "metric", ["length/mean_right", "reward/component/correct", "reward/novelty", "fault/rate/a", "eval/greedy/all", "loss/total"]
)
def test_a_metric_that_a_step_happens_to_lack_is_waited_for(metric: str) -> None:
    waiting = StageSchedules({"temperature": WhenReached(metric=metric, at_least=2.0, values=(0.5, 1.0))})
    waiting.observe(
        {"length/mean": 3.0, "fault/rate": 0.0, "reward/mean": 0.0, "reward/component/corect": 0.0, "loss/total": 1.0}
    )
    assert waiting.values(1) == {"temperature": 0.5}


def test_a_recipe_is_tried_small_without_schedules_of_sizes() -> None:
    spec = {"temperature": Ramp(points=((0, 0.5), (2, 0.7))), "group_size": Piecewise(points=((0, 4),))}
    stage = reinforce(schedules=spec)
    assert dict(stage.shrink(2, 2).schedules) == {"temperature": spec["temperature"]}
    assert stage.smaller() == [] and reinforce().smaller()


# ---- annealed along rollouts --------------------------------------------------------------------------------------------


def annealed(**changes: Any) -> Run:
    run = scheduled(**{"schedules": {"annealing_decay": Ramp(points=((0, 2.0), (4, 6.0)))}, **changes})
    return replace(run, sampling=replace(run.sampling, annealing=Annealing(peak=1.4, least=0.3, start=1)))


@pytest.mark.slow
def test_tokens_are_scored_where_the_temperature_stood_that_falls_slower_step_by_step(tmp_path: Path) -> None:
    s = opened(annealed())
    for result, decay in zip(stepped(s, 3), (2.0, 3.0, 4.0), strict=True):
        calls = [c.completion for r in rollouts(result) for c in r.calls]
        assert {c.sampling.annealing.decay for c in calls if c.sampling.annealing} == {decay}
        for c in calls:
            np.testing.assert_array_equal(c.columns["temperature"].values, c.sampling.temperatures(0, len(c.ids)))
        assert result.metrics["schedule/annealing_decay"] == decay
        assert result.metrics["engine/mismatch_k3"] < 1e-9
    whole, part = trained(annealed(steps=6), tmp_path / "whole"), tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(annealed(steps=6), part))) == -9
    assert resumed(part, annealed(steps=6)) == whole


def test_a_decay_needs_an_annealing_and_is_above_0() -> None:
    with pytest.raises(ConfigError, match=r"Run\.sampling\.annealing=None: give it an Annealing"):
        check_run(scheduled(schedules={"annealing_decay": Ramp(points=((0, 2.0),))}))
    with pytest.raises(ConfigError, match="reaches 0; a decay is a number of tokens above 0"):
        check_run(annealed(schedules={"annealing_decay": Ramp(points=((0, 2.0), (5, 0.0)))}))


def test_an_engine_that_has_one_temperature_is_refused_before_a_run_and_one_that_hides_its_own_within() -> None:
    with pytest.raises(ConfigError, match=r"Run\.sampling\.annealing with VllmSettings.*engine=Auto"):
        check_run(replace(annealed(), engine=VllmSettings()))
    silent = Completion(
        ids=ids_of([3]),
        logp_engine=np.zeros(1, np.float32),
        spans=(Span(0, 0, 1),),
        stop=Stop.DONE,
        sampling=Sampling(annealing=Annealing()),
    )
    with pytest.raises(ConfigError, match="Loud was asked to anneal"):
        check_annealed(silent, "Loud")


# ---- resumed, and beside other parts -------------------------------------------------------------------------------------

BY_METRIC = {
    "temperature": WhenReached(metric="reward/mean", at_least=0.3, values=(0.8, 0.9, 1.0, 1.1, 1.2, 1.3)),
    "max_new_tokens": WhenReached(metric="length/mean", at_most=99.0, values=(2, 3, 4, 5), patience=2),
}


@pytest.mark.parametrize("write", [9, 16, *(pytest.param(i, marks=pytest.mark.prove) for i in range(4, 26, 3))])
def test_a_killed_run_goes_on_to_the_same_bits(write: int, tmp_path: Path) -> None:
    run = scheduled(8, schedules=BY_METRIC)
    whole = trained(run, tmp_path / "whole")
    values = series(tmp_path / "whole", "schedule/temperature")
    rewards = series(tmp_path / "whole", "reward/mean")
    reached = [sum(r >= 0.3 for r in rewards[:step]) for step in range(8)]
    assert values == [BY_METRIC["temperature"].values[min(n, 5)] for n in reached] and max(reached) >= 3
    assert series(tmp_path / "whole", "schedule/max_new_tokens") == [2, 2, 3, 3, 4, 4, 5, 5]
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(write), train(run, part))) == -9
    assert resumed(part, run) == whole


@pytest.mark.slow
def test_schedules_run_beside_refill_replay_and_lag(tmp_path: Path) -> None:
    run = scheduled(
        6,
        lag=1,
        objective=areal(),
        filter=Mixed(),
        refill=Refill(rounds=3),
        replay=Recent(capacity=8),
        composer=Compose(replay_share=0.25),
        schedules={**BY_METRIC, "group_size": Piecewise(points=((0, 2), (2, 4), (4, 3)))},
    )
    whole = trained(run, tmp_path / "whole")
    assert series(tmp_path / "whole", "schedule/group_size") == [2, 2, 4, 4, 3, 3]
    assert max(series(tmp_path / "whole", "policy/age")) > 0
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(run, part))) == -9
    assert resumed(part, run) == whole


@pytest.mark.slow
def test_schedules_run_beside_a_branching_sampler(tmp_path: Path) -> None:
    schedules: Mapping[str, Any] = {
        "temperature": BY_METRIC["temperature"],
        "max_turns": Piecewise(points=((0, 2), (2, 4))),
        "group_size": Piecewise(points=((0, 3), (2, 6))),
    }
    run = talking(group_size=6, sampler=Branching(tau=0.45), objective=grpo(), schedules=schedules)
    s = opened(run)
    for result, (size, turns) in zip(stepped(s, 3), ((3, 2), (3, 2), (6, 4)), strict=True):
        assert [len(g.rollouts) for g in result.groups] == [size, size]
        assert max(len(r.calls) for r in rollouts(result)) == turns
        assert result.metrics["engine/mismatch_k3"] < 1e-9
    whole = trained(run, tmp_path / "whole")
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(12), train(run, part))) == -9
    assert resumed(part, run) == whole


def test_an_older_checkpoint_begins_the_schedules_anew() -> None:
    s = opened(scheduled(schedules={"max_new_tokens": WhenReached(metric="a", at_least=0, values=(1, 2))}))
    state = {k: v for k, v in s.state_dict().items() if k != "schedules"}
    s.schedules.observe({"a": 1.0})
    assert s.schedules.values(0) == {"max_new_tokens": 2}
    s.load_state_dict(state)
    assert s.schedules.values(0) == {"max_new_tokens": 1}
