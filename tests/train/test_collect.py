"""How a step comes by its groups: rounds of guidance, filters, refill, single rows; what is observed; exact resume with each."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss, session, spied, walk
from tiny_runs import at_named, digest_of, in_child, only_rl, resumed, trained

from assay.core import Draw, Group, Outcome, Rollout, Score, Task
from assay.core.batch import Batch, pack
from assay.core.errors import ConfigError, GateError
from assay.core.protocols import Moment, Posed
from assay.core.score import Fault
from assay.guide import (
    Bell,
    Compose,
    DeferredReplay,
    Dump,
    FirstTasks,
    Ghpo,
    HardFocus,
    HistoryRows,
    InOrder,
    Mixed,
    PromptValue,
    Recent,
    Recompose,
    Refill,
    ResampleOnCorrect,
    RuleReasoner,
    Sec,
    Seele,
    SkipSolved,
    Stateless,
    SuccessWindow,
    Uniform,
    plain_context,
)
from assay.lab.controls import Rewarded
from assay.objective import grpo, ref_kl
from assay.runtime import Anchor, Every, LearnerSettings
from assay.runtime.settings import AdamW, Lora
from assay.train.driver import train
from assay.train.group_outcomes import outcomes_of
from assay.train.preflight import check_run
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Run


@dataclass(frozen=True)
class FullMarks:
    """Pays for anything, so that no group has a signal."""

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"correct": 1.0})


HINTED = Ghpo(text="{prompt}{hint}")


def watched(s: ReinforceRunner) -> list[list[Outcome]]:
    """From now on what the session's curriculum observes, step by step."""
    seen: list[list[Outcome]] = []
    observe = s.curriculum.observe

    def spy(outcomes: Sequence[Outcome]) -> None:
        seen.append(list(outcomes))
        observe(outcomes)

    s.curriculum.observe = spy  # type: ignore[method-assign]
    return seen


def hopeless(run: Run) -> Run:
    """No rollout is ever right: fresh weights know nothing of sorting, and levels are long."""
    return replace(run, tasks=replace(run.tasks, levels=(3,)))


# ---- what is observed -------------------------------------------------------------------------------------------------


def test_each_group_is_observed_once_with_the_advantages_that_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    s = session(coin_toss(only_rl(groups=6, composer=Compose(drop_zero_signal=True), group_size=2)))
    seen, batches = watched(s), spied(monkeypatch)
    (result,) = walk(s)
    (outcomes,) = seen
    assert [o.group.key for o in outcomes] == [g.key for g in result.groups] == [f"s0/{i}" for i in range(6)]
    assert {o.kept for o in outcomes} == {True, False}  # coins: some pairs agree
    for outcome in outcomes:
        assert outcome.kept == outcome.group.informative
        if outcome.kept:
            assert outcome.advantages is not None
            values = np.array(outcome.group.values)
            np.testing.assert_allclose(np.sign(outcome.advantages), np.sign(values - values.mean()))
        else:
            assert outcome.advantages is None and set(outcome.magnitudes) == {0.0}
    learned = {a for o in outcomes if o.advantages is not None for a in np.round(o.advantages, 9).tolist()}
    assert learned == set(np.round(batches[0].rollout("advantage"), 9).tolist())


def test_outcomes_without_a_batch_or_without_names_say_what_is_known() -> None:
    s = session(coin_toss(only_rl()))
    (result,) = walk(s)
    groups = list(result.groups)
    assert all(not o.kept and o.advantages is None for o in outcomes_of(groups, None))
    batch = pack(groups)
    assert all(o.kept and o.advantages is None for o in outcomes_of(groups, batch))  # before credit
    nameless = replace(batch, rollouts={name: column for name, column in batch.rollouts.items() if name != "id"})
    assert all(o.kept and o.advantages is None for o in outcomes_of(groups, nameless))


# ---- refill and filters -----------------------------------------------------------------------------------------------


def test_a_refill_draws_until_enough_are_kept_cuts_the_rest_and_observes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    s = session(coin_toss(only_rl(groups=6, group_size=2, filter=Mixed(), refill=Refill(rounds=8, draws=4))))
    seen, batches = watched(s), spied(monkeypatch)
    (result,) = walk(s)
    graded, rounds = len(result.groups), int(result.metrics["filter/rounds"])
    assert rounds > 1 and graded == 4 * rounds
    assert result.metrics["filter/kept"] == 6.0
    assert batches[0].counts.prompts == 6 and batches[0].counts.rollouts == 12
    assert [o.group.key for o in seen[0]] == [f"s0/{i}" for i in range(graded)]
    assert sum(o.kept for o in seen[0]) == 6 <= sum(o.group.informative for o in seen[0])


@pytest.mark.slow
def test_a_refill_that_cannot_fill_ends_and_trains_on_what_there_is() -> None:
    never = replace(
        only_rl(groups=3, filter=Mixed(), refill=Refill(rounds=2)), tasks=Rewarded(source=only_rl().tasks, scorer=FullMarks())
    )
    s = session(never)
    before = dict(s.parts.publish_weights().tensors)
    (result,) = walk(s)
    assert result.metrics["filter/rounds"] == 2.0 and result.metrics["filter/graded"] == 6.0
    assert result.metrics["filter/kept"] == 0.0
    assert dict(s.parts.publish_weights().tensors) == before  # nothing to learn from
    walk(s)
    ((kind, said),) = s.parts.news  # for the journal, once
    assert kind == "refill" and "after 2 rounds 0 of 6 groups passed Mixed()" in said


@pytest.mark.slow
def test_a_refill_that_must_fill_stops_the_run_and_says_why(tmp_path: Path) -> None:
    run = only_rl(groups=3, filter=SuccessWindow(low=0.4, high=0.6), refill=Refill(rounds=2, short="stop"))
    run = replace(run, tasks=Rewarded(source=run.tasks, scorer=FullMarks()))
    with pytest.raises(
        GateError, match=r"step 1: after 2 rounds 0 of 6 groups passed SuccessWindow.*3 are wanted.*short='train'"
    ):
        train(run, tmp_path / "run")
    assert "GateError" in (tmp_path / "run" / "events.jsonl").read_text()


def test_a_refill_that_adapts_draws_as_many_as_should_fill_what_is_missing_by_what_all_steps_kept() -> None:
    s = session(coin_toss(only_rl(groups=6, group_size=2, filter=Mixed(), refill=Refill(rounds=8, adapt=0.5))))
    drawn, draw = list[int](), s.curriculum.draw

    def spy(n: int) -> list[Draw]:
        drawn.append(n)
        return draw(n)

    s.curriculum.draw = spy  # type: ignore[method-assign]
    share, sizes = None, list[int]()
    for result in walk(s, steps=3):
        kept = at = 0
        for _ in range(int(result.metrics["filter/rounds"])):
            assert s.stage.refill is not None
            size = s.stage.refill.tasks_to_draw(6 - kept, 6, share)
            mixed = sum(group.informative for group in result.groups[at : at + size])
            share = mixed / size if share is None else 0.5 * share + 0.5 * mixed / size
            kept, at = kept + mixed, at + size
            sizes.append(size)
        assert len(result.groups) == at and result.metrics["filter/share"] == pytest.approx(share)
    assert drawn == sizes and len(set(sizes)) > 2
    assert s.refill is not None and s.refill.state_dict() == {"share": share}


def test_a_refill_without_a_filter_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no filter: give filter=Mixed"):
        check_run(only_rl(refill=Refill()))


def test_what_could_never_keep_enough_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"keep=4 of Reinforce\.group_size=2 rollouts: every group would be left out"):
        check_run(only_rl(group_size=2, filter=ResampleOnCorrect(keep=4)))
    check_run(only_rl(group_size=2, filter=ResampleOnCorrect(keep=4), guidance=Seele(rounds=2)))
    with pytest.raises(ConfigError, match=r"draws at most 3 contexts, and Reinforce\.groups=4 are wanted"):
        check_run(only_rl(groups=4, filter=Mixed(), refill=Refill(rounds=3, draws=1)))


def test_selection_learns_from_some_rollouts_and_observes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    s = session(coin_toss(only_rl(groups=4, group_size=8, filter=ResampleOnCorrect(keep=4))))
    seen, batches = watched(s), spied(monkeypatch)
    walk(s)
    assert set(np.bincount(batches[0].rollout("group")).tolist()) == {4}
    for outcome in seen[0]:
        assert len(outcome.group.rollouts) == 8
        if outcome.advantages is not None:
            assert np.isfinite(outcome.advantages).sum() == 4


# ---- guidance in rounds -----------------------------------------------------------------------------------------------


def test_a_ladder_learns_from_the_last_group_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    s = session(hopeless(only_rl(groups=2, group_size=2, guidance=HINTED)))
    seen, batches = watched(s), spied(monkeypatch)
    (result,) = walk(s)
    by_task = [[g for g in result.groups if g.key.startswith(f"s0/{i}")] for i in range(2)]
    for groups in by_task:
        hints = [len(g.rollouts[0].context.messages[-1].content) for g in groups]
        assert hints == sorted(hints) and len(groups) > 1
    assert {o.group.key for o in seen[0] if o.kept} == {groups[-1].key for groups in by_task}
    assert batches[0].counts.prompts == 2 and batches[0].counts.rollouts == 4


def test_rounds_with_one_key_make_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    s = session(coin_toss(only_rl(groups=2, group_size=2, guidance=Seele(rounds=3))))
    batches = spied(monkeypatch)
    (result,) = walk(s, 1)
    assert [len(g.rollouts) for g in result.groups] == [6, 6]
    assert batches[0].counts.prompts == 2
    assert result.metrics["guidance/share"] >= 0.0


@dataclass(frozen=True)
class Uneven(Stateless):
    """Three rollouts of one context, one of another, in groups of their own."""

    twice: bool = False

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        one = replace(plain_context(task, f"{moment.key}/a"), group=moment.key if self.twice else f"{moment.key}/a")
        if self.twice:
            return (Posed(context=one),) if len(history) < 2 else ()
        return () if history else (Posed(context=one, n=3), Posed(context=plain_context(task, f"{moment.key}/b"), n=1))


def test_contexts_may_want_other_numbers_of_rollouts() -> None:
    (result,) = walk(session(coin_toss(only_rl(groups=2, guidance=Uneven()))))
    assert [(g.key, len(g.rollouts)) for g in result.groups] == [("s0/0/a", 3), ("s0/0/b", 1), ("s0/1/a", 3), ("s0/1/b", 1)]


def test_a_context_that_comes_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"posed the context 's0/0/a' twice"):
        walk(session(coin_toss(only_rl(groups=1, guidance=Uneven(twice=True)))))


@dataclass(frozen=True)
class Endless(Stateless):
    """Poses a task again, however often it was attempted; ``until`` rounds, or without end."""

    until: int = 1 << 30

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        rounds = len(history)
        return (Posed(context=plain_context(task, f"{moment.key}/{rounds}"), n=2),) if rounds < self.until else ()


def test_a_guidance_without_an_end_stops_the_run_and_is_named() -> None:
    run = coin_toss(only_rl(groups=1, guidance=Endless()))
    with pytest.raises(ConfigError, match=r"Endless\.next posed task '.+' in 64 rounds of step 1 and does not come to an end"):
        walk(session(run))
    (result,) = walk(session(replace(run, stages=(replace(run.stages[0], guidance=Endless(until=64)),))))  # type: ignore[type-var]
    assert len(result.groups) == 64


# ---- single rows ------------------------------------------------------------------------------------------------------


def test_one_task_over_and_over_is_a_group_each_time() -> None:
    (result, again) = walk(session(coin_toss(only_rl(groups=4, index=FirstTasks(n=1), curriculum=Uniform()))), 2)
    assert {g.task.index for r in (result, again) for g in r.groups} == {0}
    assert len({g.key for g in result.groups}) == 4


def test_drawn_rows_are_the_rows_that_are_played() -> None:
    (result,) = walk(session(coin_toss(only_rl(groups=6, curriculum=HistoryRows(pool=2)))))
    assert sorted(g.row for g in result.groups) == [("sort", level, i) for level in (1, 2, 3) for i in range(2)]
    assert all(g.draw.index == g.task.index for g in result.groups)


# ---- a first look -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvenIndex:
    """Right where the task's index is even, whatever is answered."""

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"correct": float(task.index % 2 == 0)})


def test_tasks_that_the_greedy_answer_solves_are_not_rolled_out() -> None:
    run = replace(
        only_rl(groups=6, screen=SkipSolved(), index=InOrder()), tasks=Rewarded(source=only_rl().tasks, scorer=EvenIndex())
    )
    s = session(run)
    seen = watched(s)
    (result,) = walk(s)
    drawn = {name: n for name, n in result.metrics.items() if name.startswith("screen/")}
    assert drawn["screen/drawn"] == 6.0 and 0.0 < drawn["screen/left_out"] < 6.0
    assert len(result.groups) == 6 - drawn["screen/left_out"] == len(seen[0])
    assert all(g.task.index % 2 for g in result.groups)  # greedy answers stand in no group
    assert len({g.key for g in result.groups}) == len(result.groups)


def test_a_step_whose_tasks_are_all_solved_learns_nothing_and_goes_on() -> None:
    run = replace(only_rl(groups=4, screen=SkipSolved()), tasks=Rewarded(source=only_rl().tasks, scorer=FullMarks()))
    s = session(run)
    version = s.parts.version
    first, second = walk(s, 2)
    assert first.groups == second.groups == first.outcomes == () and second.metrics["screen/left_out"] == 4.0
    assert s.parts.version == version  # nothing was published


def test_a_fault_of_the_greedy_answer_solves_nothing_and_a_bound_beyond_1_is_refused() -> None:
    task = only_rl().tasks.task("sort", 1, "train", 0)
    assert SkipSolved().keep_task(task, Score(components={}, fault=Fault.INFRA))
    assert SkipSolved().keep_task(task, Score(components={"correct": 0.4})) and not SkipSolved().keep_task(
        task, Score(components={"correct": 1.0})
    )
    with pytest.raises(ConfigError, match="solved=2"):
        SkipSolved(solved=2.0)


# ---- exact resume -----------------------------------------------------------------------------------------------------

PARTS: dict[str, dict[str, Any]] = {
    "SEC": {"curriculum": Sec(alpha=0.5)},
    "DUMP, refill": {"curriculum": Dump(window=8), "filter": Mixed(), "refill": Refill(rounds=3)},
    "adaptive refill": {"curriculum": Uniform(), "filter": Mixed(), "refill": Refill(rounds=3, adapt=0.5)},
    "RuleReasoner, one task": {"curriculum": RuleReasoner(), "index": FirstTasks(n=2)},
    "rows by history": {"curriculum": HistoryRows(pool=2, epochs=2, keep=2)},
    "bell": {"curriculum": Bell(pool=4, sigma=2.0)},
    "PCL": {"curriculum": PromptValue(pool=4)},
    "hard focus, screen": {"curriculum": HardFocus(pool=2, warm=1, sizes=(3, 2), batches=(1, 1)), "screen": SkipSolved()},
    "GHPO": {"guidance": HINTED},
    "SEELE": {"guidance": Seele(rounds=2)},
    "RoRecomp": {"group_size": 4, "composer": Recompose(), "replay": DeferredReplay(capacity=4, batch=2)},
    "RoC, replay": {
        "group_size": 6,
        "filter": ResampleOnCorrect(keep=4),
        "replay": Recent(capacity=8),
        "composer": Compose(replay_share=0.25),
    },
}


ALWAYS = ("SEC", "DUMP, refill", "GHPO", "RoC, replay")
"""One of each kind of part: what draws levels, draws again, guides, and replays; the others are proofs."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ALWAYS else pytest.mark.prove) for n in PARTS])
def test_killed_and_resumed_it_ends_with_the_same_digest(name: str, tmp_path: Path) -> None:
    run = replace(coin_toss(only_rl(**PARTS[name])), checkpoint_every=2)
    whole = trained(run, tmp_path / "whole")

    def work() -> None:
        points = 0

        def die() -> None:
            nonlocal points
            points += 1
            if points == 5:  # behind the checkpoint of step 2, or of step 4
                os.kill(os.getpid(), signal.SIGKILL)

        at_named("append:metrics", die)
        train(run, tmp_path / "killed")

    assert in_child(work) == -signal.SIGKILL
    assert resumed(tmp_path / "killed") == whole == digest_of(tmp_path / "killed")
    seen, again = ((tmp_path / place / "row_history.jsonl").read_text() for place in ("whole", "killed"))
    assert seen == again and seen.count("\n") == run.steps


# ---- other distributions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.6, 1.5])
def test_sampler_and_learner_agree_at_any_temperature(temperature: float) -> None:
    run = coin_toss(only_rl(objective=grpo(kl=0.1), epochs=2))
    s = session(replace(run, sampling=replace(run.sampling, temperature=temperature)))
    (result, again) = walk(s, 2)
    for found in (result, again):
        assert abs(found.metrics["engine/mismatch_k3"]) < 1e-9
        assert found.metrics["grad/norm"] > 0.0
    cold = walk(session(run))[0]
    assert cold.metrics["entropy/mean"] != result.metrics["entropy/mean"]


def test_adapters_agree_with_the_sampler_at_another_temperature() -> None:
    run = coin_toss(only_rl(learner=LearnerSettings(optimizer=AdamW(lr=1e-3), adapter=Lora(rank=2))))
    for found in walk(session(replace(run, sampling=replace(run.sampling, temperature=0.6))), 2):
        assert abs(found.metrics["engine/mismatch_k3"]) < 1e-9 and found.metrics["grad/norm"] > 0.0


@dataclass(frozen=True)
class OwnPrompt(Stateless):
    """The privileged prompt is the prompt: a teacher that is the policy itself says the same."""

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        plain = plain_context(task, moment.key)
        return () if history else (Posed(context=replace(plain, privileged=plain.messages)),)


@pytest.mark.parametrize("temperature", [0.6, 1.5])
def test_a_privileged_anchor_reads_at_the_temperature_of_the_sampler(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    own = LearnerSettings(optimizer=AdamW(lr=1e-3), anchors=(Anchor("privileged", refresh=Every(steps=1), privileged=True),))
    run = coin_toss(only_rl(objective=ref_kl(teacher="privileged"), learner=own, guidance=OwnPrompt()))
    s = session(replace(run, sampling=replace(run.sampling, temperature=temperature)))
    seen: list[Batch] = []
    prepare = s.parts.program.prepare

    def remembered(batch: Batch, *rest: Any) -> Any:
        seen.append(batch)
        return prepare(batch, *rest)

    s.parts.program.prepare = remembered  # type: ignore[method-assign]
    walk(s)
    (batch,) = seen
    mask = batch.token("mask")
    np.testing.assert_allclose(batch.token("logp_privileged")[mask], batch.token("logp_engine")[mask], atol=2e-6)


def test_greedy_rollouts_are_refused() -> None:
    run = only_rl()
    with pytest.raises(ConfigError, match="no group would have a signal"):
        check_run(replace(run, sampling=replace(run.sampling, temperature=0.0)))
