"""Sampler against learner on the same tokens: measured from the first step on, an alarm, and where wanted the end of a run."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_cases import DENSE, FAMILIES, exaggerated
from live import coin_toss, session, walk
from tiny_runs import only_rl

from assay.core.batch import pack_rows
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, MismatchError
from assay.core.protocols import Engine, Request
from assay.core.rollout import Sampling, ids_of
from assay.core.sample import Sample
from assay.guide import Compose, Recent
from assay.measure import EngineMismatch, diagnose, read_run
from assay.objective import grpo, icepop, reinforce, tis, visurf
from assay.objective.loss.mismatch import IcePop
from assay.objective.loss.policy import PolicyGradient
from assay.runtime import Auto, InProcess, LearnerSettings, Native, TorchLearner
from assay.testing.faults import WrongLogprobs
from assay.train import MismatchCheck, resume, train
from assay.train.mismatch import TokenObserver
from assay.train.run import Evaluation, Run

FAR = {"float32": 1e-4, "bfloat16": 0.2}


def pair(family: str, dtype: str) -> tuple[Any, Any]:
    """An engine's log-probabilities of what it sampled, and the learner's, at exaggerated weights."""
    learner = TorchLearner(exaggerated(family), LearnerSettings(), total_steps=1)
    engine = InProcess(dtype=dtype).build(learner)
    rng = np.random.default_rng(0)
    requests = [
        Request(id=str(i), prompt=ids_of(rng.integers(2, 96, 4 + i)), seed=i, sampling=Sampling(max_new_tokens=48))
        for i in range(6)
    ]

    async def work() -> list[Any]:
        return list(await asyncio.gather(*map(engine.generate, requests)))

    done = asyncio.run(work())
    scores = learner.score([np.concatenate([r.prompt, c.ids]) for r, c in zip(requests, done, strict=True)])
    own = np.concatenate([s[len(r.prompt) :] for s, r in zip(scores, requests, strict=True)])
    return np.concatenate([c.logp_engine for c in done]), own


@pytest.mark.parametrize(
    "family", [f if f in (*DENSE, "mixtral") else pytest.param(f, marks=pytest.mark.prove) for f in FAMILIES]
)
def test_a_float32_pair_agrees_in_every_family_and_a_bfloat16_pair_shows(family: str) -> None:
    drawn, own = pair(family, "float32")
    assert drawn.std() > 0.5, "weights must be far from uniform for this to say anything"
    assert np.abs(own - drawn).max() < 1e-4
    drawn, own = pair(family, "bfloat16")
    assert 1e-3 < np.abs(own - drawn).mean() < 0.1


# ---- in a run ---------------------------------------------------------------------------------------------------------------


def coin_run(**changes: Any) -> Run:
    """Every group has a signal, so that every row has a gradient."""
    return coin_toss(only_rl(steps=4, **changes))


@pytest.mark.parametrize("engine", [Auto(), InProcess(dtype="float32")], ids=str)
@pytest.mark.parametrize("objective", [reinforce(), tis()], ids=["live", "old"])
def test_a_float32_pair_is_measured_at_every_step_whoever_asks(engine: Any, objective: Any) -> None:
    """Both engines; `reinforce` asks for no log-probabilities of the learner's at all, `tis` does."""
    s = session(replace(coin_run(objective=objective), engine=engine))
    assert any(f.column == "logp_old" for f in s.parts.plan.forwards) == (objective == tis())
    for result in walk(s, 3):
        m = result.metrics
        assert 0.0 <= m["engine/mismatch_k3"] < 1e-8 and m["engine/mismatch_abs"] < 1e-5 and m["engine/max_ratio"] < 1 + 1e-4
        assert m["engine/ess"] == pytest.approx(1.0) and m["engine/ess_rollouts"] == pytest.approx(1.0)
        assert m["engine/alarm"] == 0.0
        assert ("policy/correction_clipped" in m) == (objective == tis())
        assert m.get("policy/correction_clipped", 0.0) == 0.0


def test_the_first_update_tells_what_a_pass_before_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same step measured by both ways, in bfloat16 so that there is something to measure."""
    run = replace(coin_run(objective=grpo(kl=0.0), group_size=8), engine=InProcess(dtype="bfloat16"))
    asked: list[str] = []
    annotate = TorchLearner.annotate

    def counted(self: TorchLearner, batch: Any, *forwards: Any) -> Any:
        asked.extend(f.column for f in forwards)
        return annotate(self, batch, *forwards)

    monkeypatch.setattr(TorchLearner, "annotate", counted)
    before, later = walk(session(run), 2)
    assert asked == ["logp_old"], "one pass, at the first step alone"
    s = session(run)
    s.parts.stage_step = 1  # so that no pass is made for it
    live = walk(s)[0]
    assert asked == ["logp_old"] and live.metrics["rows/skipped"] == 0
    for name in ("k1", "k3", "abs"):
        assert live.metrics[f"engine/mismatch_{name}"] == pytest.approx(before.metrics[f"engine/mismatch_{name}"], rel=1e-4)
    assert live.metrics["engine/ess_rollouts"] == pytest.approx(before.metrics["engine/ess_rollouts"], rel=1e-4)
    assert 1e-9 < later.metrics["engine/mismatch_k3"] < 1e-3


def test_replayed_and_expert_rows_are_no_mismatch() -> None:
    """Each beside fresh rollouts of a float32 pair, at a learning rate that moves the policy visibly."""
    fast = LearnerSettings(optimizer=replace(LearnerSettings().optimizer, lr=0.05))
    s = session(coin_run(learner=fast, replay=Recent(capacity=8), composer=Compose(replay_share=0.5), objective=tis()))
    results = walk(s, 3)
    assert results[-1].metrics["ess"] > 0 and results[-1].metrics["policy/age"] > 0, "no row was replayed"
    assert all(r.metrics["engine/mismatch_k3"] < 1e-8 for r in results)
    s = session(only_rl(steps=4, learner=fast, experts=True, objective=visurf()))
    results = walk(s, 3)
    assert all(r.metrics.get("engine/mismatch_k3", 0.0) < 1e-8 for r in results)


@pytest.mark.parametrize("kernel", [True, False])
def test_the_native_engine_in_bfloat16_is_proved_and_is_not_quite_the_learner(kernel: bool) -> None:
    results = walk(session(replace(coin_run(), engine=Native(dtype="bfloat16", kernel=kernel))), 3)
    assert [r.metrics["proof/state"] for r in results] == [1.0] * 3
    assert all(1e-9 < r.metrics["engine/mismatch_k3"] < 1e-3 and r.metrics["engine/alarm"] == 0.0 for r in results)


@pytest.mark.parametrize(("objective", "share"), [(tis(cap=1.2), 0.5), (icepop(low=0.9, high=5.0), 0.5)], ids=["tis", "icepop"])
def test_corrections_see_a_mismatch(objective: Any, share: float) -> None:
    """The fault is by turns e^.5 too likely and too unlikely: w is .61 and 1.65."""
    result = walk(session(coin_run(objective=objective), lambda engine: WrongLogprobs(engine, 0.5)))[0]
    assert result.metrics["policy/correction_clipped"] == pytest.approx(share, abs=0.15)
    assert result.metrics["engine/mismatch_abs"] == pytest.approx(0.5, abs=1e-3)
    assert result.metrics["engine/max_ratio"] == pytest.approx(np.exp(0.5), rel=1e-3)
    assert result.metrics["engine/ess"] < 0.9


def test_corrections_see_the_mismatch_of_bfloat16(tmp_path: Path) -> None:
    band = IcePop(low=0.999, high=1.001)
    plain = icepop()
    assert isinstance(plain.policy, PolicyGradient)
    narrow = replace(plain, policy=replace(plain.policy, weights=(band,)))
    run = replace(coin_run(objective=narrow), engine=InProcess(dtype="bfloat16"))
    result = walk(session(run))[0]
    assert 0.0 < result.metrics["policy/correction_clipped"] < 1.0
    assert result.metrics["engine/mismatch_k3"] > 1e-9 and result.metrics["engine/alarm"] == 0.0


def test_what_several_ranks_saw_is_put_together() -> None:
    """Of three the third shares its tokens with the second, so that its do not count."""
    told = TokenColumn("logp_engine", np.full(3, -1.0, np.float32), "engine")
    sample = Sample(rollout="", ids=ids_of([1, 2, 3]), mask=np.array([False, True, True]))
    row = pack_rows([(0, sample)], {"group": np.zeros(1, np.int64)}).with_tokens(told)
    ranks = [TokenObserver(-1) for _ in range(3)]
    for rank, gap in zip(ranks, (0.0, np.log(2.0), np.log(2.0)), strict=True):
        rank.observe(row, {"logp_new": torch.full((3,), -1.0 + gap)})
    shown: list[Any] = []
    for rank, speaks in zip(ranks, (True, True, False), strict=True):
        rank.exchange(lambda own: shown.append(own) or own, speaks)
    together = {name: functools.reduce(lambda a, b: a.merge(b), [own[name] for own in shown]) for name in shown[0]}
    for rank in ranks:
        rank.exchange(lambda own: together, True)
        assert rank.metrics()["engine/mismatch_abs"] == pytest.approx(np.log(2.0) / 2)
        assert rank.metrics()["engine/ess"] == pytest.approx(0.9)  # (1 + 1 + 2 + 2)^2 / (4 (1 + 1 + 4 + 4))


# ---- alarm and end ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """An engine that is off by some nats from a weight version on."""

    by: float = 0.1
    since: int = 0

    def build(self, learner: TorchLearner) -> Engine:
        return WrongLogprobs(Auto().build(learner), self.by, self.since)


def off(check: MismatchCheck, since: int = 0, **changes: Any) -> Run:
    run = coin_run(objective=reinforce())
    given: dict[str, Any] = {"engine": Off(since=since), "mismatch": check, "checkpoint_every": 100}
    return replace(run, evaluation=Evaluation(every=0, final_per_level=1), **(given | changes))


def events(folder: Path, what: str) -> list[tuple[int, str]]:
    path = folder / "events.jsonl"
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else ())
    return [(e["step"], e["message"]) for e in lines if e["kind"] == what]


def test_an_alarm_is_said_once_and_found_by_the_doctor(tmp_path: Path) -> None:
    train(off(MismatchCheck(), since=2), tmp_path / "run")
    ((step, said),) = events(tmp_path / "run", "mismatch")
    history = read_run(tmp_path / "run").history()
    assert history["engine/alarm"].values.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert step == 3 and "nats per token (k3; the bar for float32 is 1e-06)" in said
    (found,) = [f for f in diagnose(history) if f.rule == "EngineMismatch"]
    assert "nats per token" in found.sentence
    quiet = read_run(train(off(MismatchCheck(alarm=1.0), since=2), tmp_path / "quiet").folder).history()
    assert EngineMismatch()(quiet) is None and not events(tmp_path / "quiet", "mismatch")


def test_a_run_ends_before_its_first_update(tmp_path: Path) -> None:
    with pytest.raises(
        MismatchError, match=r"step 1: .*0\.00\d+ nats per token apart .*MismatchCheck.abort is 0.001\. .*float32.*tis"
    ):
        train(off(MismatchCheck(abort=1e-3)), tmp_path / "run")
    assert read_run(tmp_path / "run").history()["engine/mismatch_k3"].steps.tolist() == []
    assert "MismatchError" in events(tmp_path / "run", "error")[0][1]
    with pytest.raises(MismatchError, match="step 1"):
        resume(tmp_path / "run")  # nothing has changed


@pytest.mark.slow
def test_a_run_ends_behind_a_step_and_goes_on_with_another_bar(tmp_path: Path) -> None:
    """Nothing is lost: with the bar raised in run.toml it ends as one that was never stopped."""
    free = train(off(MismatchCheck(abort=1.0), since=2), tmp_path / "free")
    run = off(MismatchCheck(abort=1e-3), since=2)
    with pytest.raises(MismatchError, match="step 3"):
        train(run, tmp_path / "run")
    with pytest.raises(MismatchError, match="step 4"):
        resume(tmp_path / "run", run=run)  # one more step, and it is no better
    text = (tmp_path / "run" / "run.toml").read_text()
    (tmp_path / "run" / "run.toml").write_text(text.replace("abort = 0.001", "abort = 1.0"))
    assert resume(tmp_path / "run").digest == free.digest


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MismatchCheck(alarm=0.0), "alarm=0.0"),
        (lambda: MismatchCheck(abort=-1.0), "abort=-1.0.*None for never"),
        (lambda: MismatchCheck(alarm=0.01, abort=0.001), "before it alarms"),
        (lambda: MismatchCheck(ratio=1.0), "a factor above 1"),
        (lambda: MismatchCheck(alarm=float("nan")), "alarm=nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


def test_one_token_far_apart_alarms_although_the_mean_is_small() -> None:
    check = MismatchCheck()
    assert "by a factor of 6 on one token (bar 5)" in check.find_alarm(
        {"engine/mismatch_k3": 0.0, "engine/max_ratio": 6.0}, "bfloat16"
    )
    assert check.find_alarm({}, "float32") == ""
