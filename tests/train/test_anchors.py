"""Runs whose columns come from anchors, by settings alone: moving references, teachers from folders, self-taught policies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import SHAPE, at_named, in_child, only_rl, reinforce, resumed, tiny, trained, warm_up

from assay.cli.sizes import derive
from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.plan import Plan
from assay.core.protocols import LossProgram, Stats
from assay.guide import Compose, Privileged, Recent
from assay.lab.controls import RandomReward, Rewarded
from assay.objective import Distill, Jsd, Kl, Objective, OneOf, Token, Where
from assay.objective.methods import (
    gkd,
    grpo,
    iw_opd,
    kd_estimator,
    kd_topk,
    nlpo,
    opd,
    opd_advantage,
    opd_clipped,
    ppo,
    pro_rl,
    ref_kl,
    sdft,
    sdpo,
)
from assay.runtime import Anchor, Ema, Every, LearnerSettings, ValueHead, save_model
from assay.runtime.settings import AdamW
from assay.tasks import Rows
from assay.train import models
from assay.train.driver import train
from assay.train.evaluator import kl_to_base
from assay.train.loop import step as rl_step
from assay.train.models import Scratch
from assay.train.opening import open_stage
from assay.train.preflight import check_run
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Evaluation, Run
from assay.verify import ScoringPool
from assay_tasks import SortDigits

LARGE = replace(SHAPE, hidden_size=48, num_layers=1)
TEACHER = Anchor("teacher", model="TEACHER")


def settings(*anchors: Anchor, **changes: Any) -> LearnerSettings:
    return LearnerSettings(**{"optimizer": AdamW(lr=3e-3), "anchors": anchors, **changes})


def teacher(folder: Path, seed: int = 3, shape: Any = LARGE, **changes: Any) -> str:
    """A model folder with random weights, sharpened so that it has opinions; returns its path."""
    made = models.load_source(Scratch(shape=shape, seed=seed, **changes), lambda run, place: place)
    tensors = {n: t * 8 if n == "model.norm.weight" else t for n, t in made.tensors.items()}
    save_model(replace(made, tensors=tensors), folder)
    return str(folder)


def two_arms() -> Rows:
    signs, pairs = {"plus": "+", "less": "-"}, [(a, b) for a in range(9) for b in range(9)]
    rows = [{"prompt": f"{a}{signs[arm]}{b}=", "answer": str(a + b), "arm": arm} for arm in signs for a, b in pairs]
    return Rows(rows, name="sums")


def rl(**changes: Any) -> Run:
    """RL from fresh weights, which never solve a task: tossed coins pay them."""
    return replace(only_rl(**changes), tasks=Rewarded(source=SortDigits(levels=(1, 2, 3)), scorer=RandomReward()))


def opened(run: Run) -> Any:
    model = models.load_source(run.model, lambda run, folder: folder)
    return open_stage(run, run.stages[0], model, ScoringPool(run.tasks.verifier()), 0)


def metrics(folder: Path) -> dict[int, dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {r["step"]: r["metrics"] for r in map(json.loads, lines)}


def watched(s: ReinforceRunner) -> list[Batch]:
    """Batches as the loss saw them, as the session goes on."""
    seen: list[Batch] = []
    prepare = s.parts.program.prepare

    def remembered(batch: Batch) -> Batch:
        seen.append(batch)
        return prepare(batch)

    s.parts.program.prepare = remembered  # type: ignore[method-assign]
    return seen


# ---- every method that reads an anchor trains ------------------------------------------------------------------------

CRITIC = (ValueHead(),)
OWN = Anchor("privileged", refresh=Every(steps=1), privileged=True)
BY_SETTINGS: Mapping[str, tuple[Objective, LearnerSettings]] = {
    "kl to a reference that is reset": (grpo(kl=0.1), settings(Anchor(refresh=Every(steps=2)))),
    "kl to an average": (grpo(kl=0.0) + Kl("k2", anchor="ema", coef=0.1), settings(Anchor("ema", refresh=Ema(decay=0.9)))),
    "pro_rl": (pro_rl(kl=0.1), settings(Anchor(refresh=Every(steps=3)))),
    "nlpo": (nlpo(least=5), settings(Anchor(), Anchor("mask", refresh=Every(steps=2)), heads=CRITIC)),
    "opd": (opd(), settings(TEACHER)),
    "opd_clipped": (opd_clipped(), settings(TEACHER)),
    "opd_advantage": (opd_advantage(), settings(TEACHER)),
    "iw_opd": (iw_opd(), settings(TEACHER)),
    "ref_kl": (ref_kl(), settings(TEACHER)),
    "kd_estimator": (kd_estimator("k2"), settings(TEACHER)),
    "kd_topk": (kd_topk(k=5), settings(TEACHER)),
    "kd_topk reverse": (kd_topk("reverse", rest="tail", k=5), settings(TEACHER)),
    "gkd": (gkd(), settings(TEACHER)),
    "sdpo": (sdpo(0.5), settings(OWN)),
    "sdpo averaged": (sdpo(), settings(replace(OWN, refresh=Ema(decay=0.9)))),
    "sdft": (sdft(k=5), settings(OWN)),
    "opsd": (ref_kl(teacher="privileged"), settings(OWN)),
}


def run_of(objective: Objective, learner: LearnerSettings, folder: Path, **changes: Any) -> Run:
    if any(a.model for a in learner.anchors):
        path = teacher(folder / "teacher")
        learner = replace(learner, anchors=tuple(replace(a, model=path) if a.model else a for a in learner.anchors))
    if any(a.privileged for a in learner.anchors):
        changes = {"guidance": Privileged(text="{solution};{prompt}"), **changes}
    run = rl(**{"steps": 3, "objective": objective, "learner": learner, **changes})
    return replace(run, evaluation=Evaluation(every=0, per_level=2, final_per_level=2))


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_SETTINGS)
def test_a_method_that_reads_an_anchor_trains_by_settings_alone(name: str, tmp_path: Path) -> None:
    run = run_of(*BY_SETTINGS[name], tmp_path)
    assert derive(run).stages[0].plan == run.stages[0].objective.plan(1, run.stages[0].learner.offers)
    assert train(run, tmp_path / "run").finished
    found = metrics(tmp_path / "run")
    assert all(np.isfinite(found[k]["loss/total"]) for k in range(1, 4))
    assert any(found[k]["grad/norm"] > 1e-4 for k in range(1, 4))


@pytest.mark.prove
def test_a_student_comes_closer_to_its_teacher(tmp_path: Path) -> None:
    """The teacher is a finished run's model, which writes digits; the student begins with fresh weights."""
    schooled = replace(tiny(), stages=(warm_up(steps=20),), evaluation=Evaluation(every=0, final_per_level=2))
    assert train(schooled, tmp_path / "school").finished
    learner = settings(Anchor("teacher", model=str(tmp_path / "school")), optimizer=AdamW(lr=3e-3))
    for name, objective in {"opd": opd(), "gkd": gkd(1.0), "topk": kd_topk(rest="tail", k=12)}.items():
        gap = Kl("k2", anchor="teacher", coef=1e-9, label="gap")
        run = rl(steps=25, groups=8, objective=objective + gap, learner=learner)
        assert train(replace(run, evaluation=schooled.evaluation), tmp_path / name).finished
        found = [m["gap/kl_teacher"] for k, m in metrics(tmp_path / name).items() if k]
        assert np.mean(found[-3:]) < 0.5 * np.mean(found[:3]), name


# ---- versions --------------------------------------------------------------------------------------------------------


def test_a_reference_that_is_reset_is_read_at_its_version() -> None:
    """Two updates a batch, a reset after three: amid the second batch, whose second update reads the new one."""
    learner = settings(Anchor(refresh=Every(steps=3)))
    s = opened(rl(objective=grpo(kl=0.1), learner=learner, minibatches=2))
    seen = watched(s)
    for _ in range(3):
        asyncio.run(rl_step(s))
    assert [b.tokens["logp_ref"].version for b in seen] == [0, 0, 0, 3, 3, 3]
    gaps = [np.abs(b.token("logp_ref") - b.token("logp_old")).max() for b in seen]
    assert gaps[0] == gaps[1] == 0 < gaps[2]
    fresh = s.parts.learner.annotate(seen[3], *(f for f in s.parts.plan.forwards if f.column == "logp_ref"))
    assert fresh.tokens["logp_ref"].version == 6


def test_right_behind_a_reset_the_reference_is_the_policy() -> None:
    s = opened(rl(objective=grpo(kl=0.1), learner=settings(Anchor(refresh=Every(steps=2))), epochs=2))
    seen = watched(s)
    for _ in range(2):
        asyncio.run(rl_step(s))
    assert [b.tokens["logp_ref"].version for b in seen] == [0, 0, 2, 2]
    assert np.array_equal(seen[2].token("logp_ref"), seen[2].token("logp_old"))
    stats: list[Mapping[str, float]] = []
    made = s.parts.learner.step

    def counted(batch: Batch, plan: Plan, loss: LossProgram, observer: Any) -> Stats:
        found = made(batch, plan, loss, observer)
        stats.append(found.metrics)
        return found

    s.parts.learner.step = counted  # type: ignore[method-assign]
    asyncio.run(rl_step(s))
    assert abs(stats[0]["kl/kl_ref"]) < 1e-9 < stats[1]["kl/kl_ref"]


def test_the_divergence_from_the_start_does_not_move_with_the_reference(tmp_path: Path) -> None:
    found: list[list[float]] = []
    for i, anchors in enumerate([(Anchor(),), (Anchor(refresh=Every(steps=1)),), ()]):
        run = run_of(grpo(kl=0.0), settings(*anchors), tmp_path)
        assert train(run, tmp_path / str(i)).finished
        found.append([m["kl/base"] for m in metrics(tmp_path / str(i)).values() if "kl/base" in m])
        assert derive(run).memory.anchors == 4 * derive(run).parameters * max(1, len(anchors) + (i == 1))
    assert found[0] == found[1] == found[2]
    assert found[0][0] == 0 < abs(found[0][-1])
    silent = replace(run, evaluation=replace(run.evaluation, kl_to_base=False))
    assert derive(silent).memory.anchors == 0
    assert train(silent, tmp_path / "silent").finished


def test_the_divergence_is_measured_from_the_start_of_its_stage() -> None:
    run = tiny()
    run = replace(run, stages=(run.stages[0], replace(run.stages[1], learner=settings(Anchor(refresh=Every(steps=1))))))
    model = models.load_source(run.model, lambda run, folder: folder)
    pool = ScoringPool(run.tasks.verifier())
    first = open_stage(run, run.stages[0], model, pool, 0)
    first.parts.learner.version = 5  # type: ignore[attr-defined]
    s = open_stage(run, run.stages[1], model, pool, 5, first.parts)
    assert s.parts.learner.anchors.versions == {"ref": 5, "base": 5}  # type: ignore[attr-defined]
    assert kl_to_base(s.parts, []) == 0.0


# ---- teachers --------------------------------------------------------------------------------------------------------


def by_arm(folder: Path, objective: Objective, **changes: Any) -> Run:
    anchors = tuple(Anchor(arm, model=teacher(folder / arm, seed)) for arm, seed in (("plus", 3), ("less", 4)))
    run = rl(**{"steps": 3, "objective": objective, "learner": settings(*anchors), "groups": 8, **changes})
    return replace(run, tasks=two_arms(), evaluation=Evaluation(every=0, final_per_level=2))


def test_each_arm_has_its_teacher(tmp_path: Path) -> None:
    s = opened(by_arm(tmp_path, opd(teachers=("plus", "less"), by="arm")))
    seen = watched(s)
    asyncio.run(rl_step(s))
    (batch,) = seen
    arm = np.repeat(batch.per_row("arm"), batch.lengths)
    assert set(arm) == {"plus", "less"}
    here, own = batch.token("mask"), s.parts.program.objective.terms[0].prepare  # type: ignore[attr-defined]
    plus, less = batch.token("logp_plus"), batch.token("logp_less")
    opinion = own(batch, np.ones(len(arm)), s.parts.program._ranks("x"))["opinion"]  # type: ignore[attr-defined]
    mine = np.where(arm == "plus", plus, less) - batch.token("logp_engine")
    np.testing.assert_allclose(opinion[here], mine[here], atol=1e-6)
    assert np.abs(plus - less)[here].max() > 1e-2


def test_each_arm_has_its_teacher_over_the_vocabulary(tmp_path: Path) -> None:
    terms = tuple(Where(Distill(Jsd(name), label=name), (OneOf((name,), by="arm"),)) for name in ("plus", "less"))
    run = by_arm(tmp_path, Objective(terms=terms, aggregate=Token()))
    assert train(run, tmp_path / "run").finished
    found = metrics(tmp_path / "run")[1]
    assert min(found["loss/plus"], found["loss/less"]) > 1e-3
    unknown = replace(run.stages[0], objective=opd(teachers=("plus", "minus"), by="arm"))
    with pytest.raises(PlanError, match=r"no model 'minus': did you mean 'plus'|no model 'minus'"):
        check_run(replace(run, stages=(unknown,)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alphabet": "0123456789"}, r"Anchor\('teacher', model=.*its tokenizer knows 12 ids, the policy's 98"),
        ({"alphabet": "".join(map(chr, range(126, 31, -1))) + "\n"}, "gives other ids to the same texts"),
        ({"shape": replace(LARGE, max_positions=8)}, "exceeds the anchors' shortest context of 8"),
    ],
)
def test_a_teacher_that_does_not_fit_is_refused_before_anything_runs(changes: Any, message: str, tmp_path: Path) -> None:
    path = teacher(tmp_path / "t", **changes)
    run = rl(objective=opd(), learner=settings(Anchor("teacher", model=path)))
    with pytest.raises(ConfigError, match=message):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()
    assert not (tmp_path / "run" / "start").exists()
    missing = rl(objective=opd(), learner=settings(Anchor("teacher", model=str(tmp_path / "none"))))
    with pytest.raises(ConfigError, match="none does not exist"):
        train(missing, tmp_path / "run")


def test_explain_counts_anchors_and_refuses_what_training_would(tmp_path: Path) -> None:
    from assay.cli.preflight import check

    small = rl(objective=opd(), learner=settings(Anchor("teacher", model=teacher(tmp_path / "t"))))
    count, found = replace(LARGE, vocab_size=98).parameters, derive(small)
    assert found.memory.anchors == 4 * (count + found.parameters)  # the teacher, and the base of the divergence
    assert check(small)
    other = teacher(tmp_path / "o", alphabet="".join(map(chr, range(126, 31, -1))) + "\n")
    with pytest.raises(ConfigError, match="other ids to the same texts"):
        check(rl(objective=opd(), learner=settings(Anchor("teacher", model=other))))


# ---- privileged prompts ----------------------------------------------------------------------------------------------


def test_the_policy_behind_the_solution_teaches_the_policy_without() -> None:
    """The column is what the policy itself gives to the same tokens behind the privileged prompt."""
    changes: dict[str, Any] = {"replay": Recent(capacity=8), "composer": Compose(replay_share=0.5)}
    s = opened(rl(objective=sdpo(0.5), learner=settings(OWN), guidance=Privileged(text="{solution};{prompt}"), **changes))
    seen = watched(s)
    for _ in range(2):
        before = s.parts.learner.publish()
        asyncio.run(rl_step(s))
        s.parts.step += 1
        batch = seen[-1]
        assert batch.tokens["logp_privileged"].version == before.version
    policy = opened(s.parts.run)  # the weights before the last step are gone; the first step's are the start's
    first = seen[0]
    for row in range(len(first)):
        a, b = first.offsets[row], first.offsets[row + 1]
        secret = first.rows["privileged"][row]
        secret, prompt = secret[secret >= 0], int(first.rows["prompt"][row])
        tail = first.token("ids")[a:b][prompt:]
        assert policy.parts.tokenizer.decode(secret).endswith(
            ";" + policy.parts.tokenizer.decode(first.token("ids")[a : a + prompt])
        )
        scored = policy.parts.learner.score([np.concatenate([secret, tail]).astype(np.int32)])[0][len(secret) :]
        here = first.token("mask")[a:b][prompt:]
        np.testing.assert_allclose(first.token("logp_privileged")[a:b][prompt:][here], scored[here], atol=2e-6)
    assert "replay" in {("on_policy", "expert", "replay", "offline", "preference")[k] for k in seen[1].rows["stream"]}


def test_privileged_prompts_that_are_missing_or_do_not_fit_are_refused(tmp_path: Path) -> None:
    run = rl(objective=sdpo(), learner=settings(OWN))
    with pytest.raises(
        ConfigError, match=r"Anchor\('privileged'\) reads rollouts behind.*Plain\(\) poses it without.*guidance=Priv"
    ):
        train(run, tmp_path / "run")
    long = rl(objective=sdpo(), learner=settings(OWN), guidance=Privileged(text="{solution}" + 30 * "x" + "{prompt}"))
    with pytest.raises(ConfigError, match=r"privileged prompt of \d+ tokens.*shortest context of model and anchors, 32"):
        train(long, tmp_path / "run")
    odd = rl(objective=sdpo(), learner=settings(OWN), guidance=Privileged(text="{solution}é{prompt}"))
    with pytest.raises(DataError, match="privileged prompt: the tokenizer's alphabet lacks 'é'"):
        train(odd, tmp_path / "run")
    with pytest.raises(ConfigError, match="given rows have no privileged prompts"):
        check_run(replace(tiny(), stages=(warm_up(learner=settings(OWN)),)))
    with pytest.raises(PlanError, match=r"no model 'privileged'.*Anchor\('privileged'"):
        check_run(rl(objective=sdpo()))
    s = opened(run)  # built past the checks
    with pytest.raises(DataError, match=r"has none: pose tasks in contexts with Context.privileged"):
        asyncio.run(rl_step(s))


def test_a_mask_that_moves_amid_a_batch_is_refused() -> None:
    def run(refresh: Any, **changes: Any) -> Run:
        return rl(objective=nlpo(least=5), learner=settings(Anchor(), Anchor("mask", refresh=refresh), heads=CRITIC), **changes)

    check_run(run(Every(steps=3)))
    check_run(run(Every(steps=4), epochs=2))
    for refresh in (Every(steps=3), Ema(decay=0.9)):
        with pytest.raises(ConfigError, match=r"'mask' with .* moves amid the 2 updates.*'logp_kept_old'.*a multiple of 2 steps"):
            check_run(run(refresh, epochs=2))


# ---- resume ----------------------------------------------------------------------------------------------------------


def many(folder: Path) -> Run:
    """Everything that moves: a reset reference, an average, a teacher, a self-taught policy and a critic, in two RL stages."""
    path = str(folder / "teacher")
    anchors = (Anchor(refresh=Every(steps=3)), Anchor("ema", refresh=Ema(decay=0.8)), Anchor("teacher", model=path), OWN)
    taught = ppo(kl=0.01) + Kl("k2", anchor="ema", coef=0.1, label="near") + Kl("k2", anchor="teacher", coef=0.1, label="taught")
    taught = replace(taught, terms=(*taught.terms, *sdpo().terms))
    learner = settings(*anchors, heads=(ValueHead(tau=0.5),))
    stage = reinforce(
        steps=5,
        objective=taught,
        learner=learner,
        minibatches=2,
        guidance=Privileged(text="{solution};{prompt}"),
        replay=Recent(capacity=8),
        composer=Compose(replay_share=0.25),
    )
    run = replace(rl(), stages=(stage, replace(stage, steps=4)), checkpoint_every=2)
    return replace(run, evaluation=Evaluation(every=0, final_per_level=2))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    place = tmp_path_factory.mktemp("many")
    teacher(place / "teacher")
    return place, trained(many(place), place / "whole")


@pytest.mark.parametrize(
    "moment",
    [
        "renamed:step_0000004",
        pytest.param("filled:start", marks=pytest.mark.prove),
        pytest.param("synced:step_0000005", marks=pytest.mark.prove),
        pytest.param("filled:step_0000007", marks=pytest.mark.prove),
    ],
)
def test_a_run_with_moving_anchors_is_gone_on_with_exactly(moment: str, reference: tuple[Path, str], tmp_path: Path) -> None:
    """Also where its teacher's folder is gone, or holds other weights, by then."""
    place, digest = reference
    run = many(place)

    def work() -> None:
        at_named(moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, tmp_path / "run")

    assert in_child(work) == -signal.SIGKILL
    if moment == "filled:start":
        assert resumed(tmp_path / "run") == digest
        return
    hidden = place / "hidden"
    (place / "teacher").rename(hidden)
    try:
        assert resumed(tmp_path / "run") == digest
    finally:
        hidden.rename(place / "teacher")


# ---- heads go on -----------------------------------------------------------------------------------------------------


def test_alike_value_heads_go_on_in_the_next_stage(tmp_path: Path) -> None:
    heads = (ValueHead(tau=0.5), ValueHead(name="gone"), ValueHead(name="other", form="bernoulli"))
    stage = reinforce(steps=2, objective=ppo(), learner=settings(Anchor(), heads=heads))
    then = (
        ValueHead(tau=0.25),
        ValueHead(name="new"),
        ValueHead(name="other", low=-1.0, form="bernoulli"),
        ValueHead(name="gone", tau=0.5),
    )
    run = replace(rl(), stages=(stage, replace(stage, learner=settings(Anchor(), heads=then))))
    model = models.load_source(run.model, lambda run, folder: folder)
    pool = ScoringPool(run.tasks.verifier())
    first = open_stage(run, run.stages[0], model, pool, 0)
    for _ in range(2):
        asyncio.run(rl_step(first))
    second = open_stage(run, run.stages[1], model, pool, 2, first.parts)
    old, new = ({n: v.numpy() for n, v in s.parts.learner.tensors()["heads"].items()} for s in (first, second))  # type: ignore[attr-defined]
    for name in ("values/weight", "values/bias", "values/target/weight", "gone/weight"):
        assert np.array_equal(old[name], new[name]), name
    assert np.abs(old["values/weight"]).max() > 0
    assert not np.array_equal(new["values/weight"], new["values/target/weight"])
    assert np.array_equal(new["gone/target/weight"], old["gone/weight"])
    assert not new["new/weight"].any()
    assert not second.parts.learner.tensors()["heads_optimizer"]  # type: ignore[attr-defined]
