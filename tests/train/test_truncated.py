"""RL from a truncated sampler: within the supports where nothing corrects, and refused where neither is possible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss, session, spied, walk
from tiny_runs import in_child, kill_at, only_rl, resumed, trained

from assay.core.errors import ConfigError, DataError
from assay.core.ragged import SUPPORT, flat_of
from assay.core.rollout import Sampling
from assay.guide import Compose, Recent
from assay.objective import dapo, grpo, tis
from assay.objective.methods import gkd, ref_kl, reinforce
from assay.runtime.anchors import Anchor, Every
from assay.runtime.settings import AdamW, LearnerSettings
from assay.runtime.vllm.settings import VllmSettings
from assay.train.driver import train
from assay.train.preflight import check_run
from assay.train.run import Run
from assay.train.support import keeps_support, sampling_of, support_note

WAYS = [{"top_k": 3}, {"top_p": 0.8}, {"min_p": 0.2}, {"top_k": 4, "top_p": 0.9, "temperature": 0.7}]


def running(way: dict[str, Any], **changes: Any) -> Run:
    run = coin_toss(only_rl(**changes))
    return replace(run, sampling=replace(run.sampling, **way))


@pytest.mark.parametrize("way", WAYS)
def test_engine_and_learner_agree_at_each_update(way: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio at equal weights is 1: what is sampled is what is trained."""
    seen = spied(monkeypatch)
    s = session(running(way, objective=grpo()))
    before = s.parts.learner.state_digest()
    for result, batch in zip(walk(s, 3), seen, strict=True):
        assert result.metrics["engine/mismatch_k3"] < 1e-9
        assert result.metrics["engine/max_ratio"] < 1 + 1e-5
        lengths, _ = flat_of(batch.token(SUPPORT))
        assert (lengths[batch.token("mask")] > 0).all()
    assert s.parts.learner.state_digest() != before


def test_without_the_supports_the_two_are_other_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same run whose learner is not told."""
    monkeypatch.setattr("assay.runtime.learner.forwards.SUPPORT", "nobody's")
    (result,) = walk(session(running({"top_k": 3})))
    assert result.metrics["engine/mismatch_k3"] > 1e-2


def test_methods_that_read_others_at_the_sampled_tokens_train_within(monkeypatch: pytest.MonkeyPatch) -> None:
    own = LearnerSettings(optimizer=AdamW(lr=1e-3), anchors=(Anchor("ref", refresh=Every(steps=1)),))
    seen = spied(monkeypatch)
    walk(session(running({"top_p": 0.8}, objective=ref_kl(teacher="ref"), learner=own)), 2)
    for batch in seen:
        mask = batch.token("mask")
        np.testing.assert_allclose(batch.token("logp_ref")[mask], batch.token("logp_engine")[mask], atol=2e-6)
    for objective in (dapo(), reinforce()):
        (result,) = walk(session(running({"top_p": 0.8}, objective=objective)))
        assert result.metrics["engine/mismatch_k3"] < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("way", [{"top_k": 3}, {"top_p": 0.8}])
def test_a_killed_run_with_replay_goes_on_to_the_same_bits(way: dict[str, Any], tmp_path: Path) -> None:
    more = {"objective": grpo(), "replay": Recent(capacity=8), "composer": Compose(replay_share=0.25), "steps": 4}
    run = replace(running(way, **more), checkpoint_every=2)
    whole = trained(run, tmp_path / "whole")
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(run, part))) == -9
    assert resumed(part, run) == whole


def test_an_objective_that_corrects_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spied(monkeypatch)
    run = running({"top_p": 0.8}, objective=tis())
    check_run(run)
    assert sampling_of(run, run.stages[0]) == run.sampling
    (result,) = walk(session(run))
    assert result.metrics["grad/norm"] > 0.0
    assert SUPPORT not in seen[0].tokens
    assert not [name for name in result.metrics if name.startswith("engine/mismatch")]  # they differ by design
    assert "the objective corrects" in support_note(run, run.stages[0])
    told = replace(run, sampling=replace(run.sampling, keep_support=True))  # unless its run says so
    assert keeps_support(told.sampling, told.stages[0])
    (result,) = walk(session(told))
    assert result.metrics["engine/mismatch_k3"] < 1e-9


def test_where_neither_is_possible_it_is_refused() -> None:
    for way, name in ((WAYS[0], "top_k=3"), (WAYS[1], "top_p=0.8"), (WAYS[2], "min_p=0.2")):
        run = running(way, objective=grpo())
        check_run(run)
        with pytest.raises(ConfigError, match=rf"Run\.sampling\.{name} in a run with RL: .*VllmSettings does not tell which"):
            check_run(replace(run, engine=VllmSettings()))
    check_run(replace(running(WAYS[0], objective=tis()), engine=VllmSettings()))


def test_statistics_of_the_whole_vocabulary_are_refused() -> None:
    learner = LearnerSettings(anchors=(Anchor("teacher"),))
    run = running(WAYS[0], objective=gkd(), learner=learner)
    with pytest.raises(ConfigError, match=r"within the ids that they were drawn from, and the objective reads .* of the whole"):
        check_run(run)


def test_runs_without_truncation_and_other_stages_keep_nothing() -> None:
    run = only_rl()
    assert not keeps_support(run.sampling, run.stages[0]) and not support_note(run, run.stages[0])
    assert "score within them" in support_note(running(WAYS[0], objective=grpo()), running(WAYS[0]).stages[0])


def test_keeping_what_is_not_left_out_is_refused() -> None:
    with pytest.raises(DataError, match="keep_support=True, and every token can be drawn"):
        Sampling(keep_support=True)
    assert Sampling(top_k=2, keep_support=True).whole == Sampling()


def test_an_engine_that_keeps_silent_is_found() -> None:
    @dataclass
    class Silent:
        engine: Any

        def __getattr__(self, name: str) -> Any:
            return getattr(self.engine, name)

        async def generate_all(self, requests: Any) -> Any:
            return [replace(done, columns={}) for done in await self.engine.generate_all(requests)]

    s = session(running(WAYS[0], objective=grpo()), wrap=Silent)
    with pytest.raises(ConfigError, match="Silent was asked for the ids that each token is drawn from, and tells none"):
        walk(s)
