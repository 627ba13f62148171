"""What the loop finds out for objectives that ask: expert rollouts, greedy baselines, states, values of steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss, session, spied, walk
from tiny_runs import SHAPE, only_rl, warm_up

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.rollout import Rollout, Sampling
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score, SpanScore
from assay.core.task import Task
from assay.guide import Compose, Prefix, Recent
from assay.objective.methods import (
    areal,
    calib_rl,
    gigpo,
    grpo,
    grpo_process,
    gui_g1,
    progrpo,
    reinforce,
    remax,
    rl_plus,
    visurf,
    weighted_bc,
)
from assay.runtime.settings import AdamW, LearnerSettings
from assay.train import models
from assay.train.driver import resume, train
from assay.train.preflight import check_run
from assay.train.providers import TurnState
from assay.train.run import Evaluation, Run
from assay_tasks import KeyValue, SortDigits

EXPERT = STREAMS.index("expert")


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """The batches that the learner is given."""
    return spied(monkeypatch)


# ---- experts --------------------------------------------------------------------------------------------------------------


def with_experts(**changes: Any) -> Run:
    return only_rl(**{"objective": rl_plus(length=5, own=4), "experts": True, "steps": 2, **changes})


def test_an_expert_stands_in_each_group_and_is_right(batches: list[Batch]) -> None:
    result = walk(session(with_experts()))[0]
    batch, tasks = batches[0], [g.task for g in result.groups]
    expert = batch.rows["rollout"][batch.rows["stream"] == EXPERT]
    assert batch.rollout("group")[expert].tolist() == list(range(len(tasks)))
    assert batch.rollout("components/correct")[expert].tolist() == [1.0] * len(tasks)
    assert batch.counts.prompts == len(tasks) and batch.counts.rollouts == 5 * len(tasks)
    assert len(result.groups[0].rollouts) == 4, "curriculum, journal and replay see the policy's own rollouts"
    token = np.repeat(batch.rows["stream"], batch.lengths) == EXPERT
    assert np.isnan(batch.token("logp_engine")[token & batch.token("mask")]).all()
    assert np.isfinite(batch.token("logp_engine")[~token]).all()
    assert np.isfinite(result.metrics["loss/total"]) and result.metrics["loss/expert"] != 0.0


def test_experts_raise_the_likelihood_of_their_answers() -> None:
    """The policy never succeeds by itself here; what it learns comes from the expert."""
    s = session(with_experts(steps=12))
    walk(s)
    first, last = (r.metrics["loss/expert"] for r in (walk(s)[0], walk(s, 10)[-1]))
    assert last < first < 0.0  # -A r: the ratio to an uninformed writer grows with the probability of the expert's tokens


@pytest.mark.parametrize("objective", [visurf(), calib_rl()])
def test_experts_under_other_methods(objective: Any, batches: list[Batch]) -> None:
    result = walk(session(coin_toss(with_experts(objective=objective))), 2)[-1]
    assert (batches[0].rows["stream"] == EXPERT).any()
    assert np.isfinite(result.metrics["loss/total"])


def test_experts_use_the_environment(batches: list[Batch]) -> None:
    walk(session(tools(objective=visurf(), experts=True)))
    batch = batches[0]
    rows = batch.rows["stream"] == EXPERT
    assert batch.rollout("components/correct")[batch.rows["rollout"][rows]].tolist() == [1.0] * int(rows.sum())
    token = np.repeat(rows, batch.lengths)
    assert batch.token("call")[token].max() >= 1, "it asked its tool and then answered"


def test_a_probability_that_no_sampler_gave_is_not_invented() -> None:
    everyone = replace(areal(), policy=replace(areal().policy, streams=("on_policy", "expert")))
    with pytest.raises(PlanError, match=r"no sampler wrote the rows of \['expert'\]"):
        check_run(with_experts(objective=everyone))


def test_experts_of_groups_that_are_left_out_go_too(batches: list[Batch]) -> None:
    run = with_experts(composer=Compose(drop_zero_signal=True, replay_share=0.25), replay=Recent(capacity=8))
    result = walk(session(coin_toss(run)), 2)[-1]
    kept = sum(g.informative for g in result.groups)
    streams = batches[-1].rows["stream"]
    assert int((streams == EXPERT).sum()) == kept
    assert batches[-1].drawn.prompts - batches[-1].counts.prompts == len(result.groups) - kept
    assert (streams == STREAMS.index("replay")).any()


def test_runs_with_experts_resume_exactly(tmp_path: Path) -> None:
    def run(steps: int) -> Run:
        stage = with_experts(steps=steps, learner=LearnerSettings(optimizer=AdamW(lr=1e-3)))
        return replace(stage, checkpoint_every=2, evaluation=Evaluation(every=0, final_per_level=2))

    whole = train(run(4), tmp_path / "whole")
    train(run(2), tmp_path / "halves")
    resume(tmp_path / "halves", steps=4)
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "halves")]
    assert whole.finished and weights[0] == weights[1]


def test_experts_that_nobody_reads_and_readers_without_experts_are_refused() -> None:
    with pytest.raises(ConfigError, match="no part of the objective reads the stream 'expert'"):
        check_run(with_experts(objective=grpo()))
    with pytest.raises(ConfigError, match=r"PolicyGradient of the objective learns from expert rollouts alone.*experts=True"):
        check_run(with_experts(experts=False))
    with pytest.raises(ConfigError, match="AlignExpert of the objective learns from expert rollouts alone"):
        check_run(with_experts(objective=calib_rl(), experts=False))


def test_a_family_without_oracle_and_forced_beginnings_have_no_expert() -> None:
    @dataclass(frozen=True)
    class Mute(SortDigits):
        def trace(self, task: Any, noise: float, rng: Any) -> Any:
            return None

    with pytest.raises(ConfigError, match=r"has no oracle, so Reinforce\.experts=True has nobody to ask"):
        walk(session(replace(with_experts(), tasks=Mute(levels=(1, 2)))))
    with pytest.raises(ConfigError, match="guidance forces the first tokens"):
        walk(session(with_experts(guidance=Prefix(probability=1.0, share=(0.9, 1.0)))))


# ---- the greedy answer ----------------------------------------------------------------------------------------------------


def test_the_greedy_answer_is_the_baseline(batches: list[Batch]) -> None:
    run = replace(only_rl(objective=remax()), stages=(warm_up(steps=25), only_rl(objective=remax(), steps=2).stages[0]))
    s = session(replace(run, stages=run.stages[1:]))
    result = walk(s)[0]
    wanted = [x.columns["greedy"] for g in result.groups for x in g.scores]
    batch = batches[0]
    assert batch.rollout("greedy").tolist() == wanted
    np.testing.assert_allclose(batch.rollout("advantage"), batch.rollout("components/correct") - wanted)
    assert len(batch) == 16, "the greedy rollout itself is not learned from"


def test_a_column_that_the_verifier_gives_is_not_found_out_again(batches: list[Batch]) -> None:
    @dataclass(frozen=True)
    class Knows:
        inner: Any
        names = ("correct",)
        trusted = True

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            assert not rollout.context.key.endswith("/greedy")
            return replace(self.inner(task, rollout), columns={"greedy": 0.25})

    run = only_rl(objective=remax())
    walk(session(replace(run, tasks=Judged(source=run.tasks, wrap=Knows))))
    assert set(batches[0].rollout("greedy").tolist()) == {0.25}


def test_a_stage_that_no_term_would_learn_from_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"act on rows of \['offline'\] alone, which this stage never has"):
        check_run(only_rl(objective=weighted_bc()))


def test_a_greedy_answer_without_verdict_takes_its_group_along(batches: list[Batch]) -> None:
    @dataclass(frozen=True)
    class Fails:
        inner: Any
        names = ("correct",)
        trusted = True

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            if rollout.context.key.endswith("/greedy") and task.index % 2:
                raise OSError("no answer key")
            return self.inner(task, rollout)

    run = only_rl(objective=remax(), groups=6)
    result = walk(session(replace(run, tasks=Judged(source=run.tasks, wrap=Fails))))[0]
    lost = [g for g in result.groups if g.task.index % 2]
    assert 0 < len(lost) < 6
    assert all(x.fault is Fault.VERIFIER for g in lost for x in g.scores)
    assert batches[0].counts.prompts == 6 - len(lost)


def test_the_policy_says_how_sure_it_is_of_the_prompt(batches: list[Batch]) -> None:
    s = session(only_rl(objective=progrpo()))
    untouched = s.parts.learner.score
    result = walk(s)[0]
    for g in result.groups:
        logp = np.sort(untouched([g.rollouts[0].calls[0].prefix], "ref")[0][1:])
        wanted = float(np.exp(logp[: int(np.ceil(0.2 * len(logp)))].mean()))
        assert [x.columns["prompt_confidence"] for x in g.scores] == pytest.approx([wanted] * 4, rel=1e-5)
    assert batches[0].rollout("prompt_confidence").min() > 0.0


# ---- states and steps -----------------------------------------------------------------------------------------------------


def tools(**changes: Any) -> Run:
    return replace(
        only_rl(steps=3, **changes),
        model=models.Scratch(shape=replace(SHAPE, max_positions=64)),
        tasks=KeyValue(levels=(1, 2)),
        sampling=Sampling(max_new_tokens=5),
        evaluation=Evaluation(every=0, final_per_level=2),
    )


def test_steps_from_one_state_share_its_number(batches: list[Batch]) -> None:
    result = walk(session(coin_toss(tools(objective=gigpo(), experts=False))))[0]
    batch = batches[0]
    state, mask = batch.token("state"), batch.token("mask")
    assert (state[mask] > 0).all() and not state[~mask].any()
    first = {}
    for row, group in zip(np.split(np.arange(len(state)), batch.offsets[1:-1]), batch.per_row("group").tolist(), strict=True):
        first.setdefault(group, set()).add(int(state[row][mask[row]][0]))
    assert all(len(found) == 1 for found in first.values()), "rollouts at one prompt begin in one state"
    assert len({x for found in first.values() for x in found}) == len(first)
    assert np.isfinite(result.metrics["loss/total"])


def test_a_second_call_stands_in_what_the_environment_answered() -> None:
    columns = {"ids": [1, 2, 9, 5, 8, 1, 2, 9, 6, 7], "call": [-1, -1, 0, -1, 1, -1, -1, 0, -1, 1]}

    class Two:
        offsets = np.array([0, 5, 10])

        def token(self, name: str) -> Any:
            return np.array(columns[name])

    found = TurnState().column(Two()).values.tolist()  # type: ignore[arg-type]
    assert found[2] == found[7] != found[4] != found[9]
    assert [found[i] for i in (0, 1, 3, 5, 6, 8)] == [0] * 6


@dataclass(frozen=True)
class Judged:
    """A family under a verifier around its own."""

    source: Any
    wrap: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def verifier(self) -> Any:
        return self.wrap(self.source.verifier())


@dataclass(frozen=True)
class Steps:
    """Pays 1 for an even token, at that token, and says how hard the task is."""

    inner: Any
    names = ("correct",)
    trusted = True

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        ids = rollout.calls[0].completion.ids
        spans = tuple(SpanScore(0, i, i + 1, "process_reward", float(t % 2 == 0)) for i, t in enumerate(ids.tolist()))
        return replace(self.inner(task, rollout), spans=spans, columns={"difficulty": 0.5 * task.level})


@pytest.mark.parametrize("objective", [grpo_process(), gui_g1(length=5)])
def test_what_a_verifier_says_beside_the_reward_is_learned_from(objective: Any, batches: list[Batch]) -> None:
    run = only_rl(objective=objective)
    result = walk(session(replace(run, tasks=Judged(source=run.tasks, wrap=Steps))))[0]
    batch = batches[0]
    assert batch.rollout("difficulty").tolist() == (0.5 * batch.rollout("level")).tolist()
    mask = batch.token("mask")
    assert (batch.token("process_reward")[mask] == (batch.token("ids")[mask] % 2 == 0)).all()
    assert np.isfinite(result.metrics["loss/total"])


def test_a_column_that_nobody_gives_is_named() -> None:
    with pytest.raises(DataError, match=r"reads the column 'difficulty' of each rollout.*columns=\{'difficulty': \.\.\.\}"):
        walk(session(only_rl(objective=gui_g1(length=5))))


def test_methods_that_ask_for_nothing_get_nothing(batches: list[Batch]) -> None:
    walk(session(only_rl(objective=reinforce())))
    assert not {"greedy", "state", "segment"} & {*batches[0].rollouts, *batches[0].tokens}
