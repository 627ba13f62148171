"""Samples from weights of some batches ago: their age, what they are compared with, proof, evaluation and resume."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_runs import in_child, manifest_for, only_rl, reinforce, resumed, trained

from assay.core.batch import Batch
from assay.core.errors import CheckpointError, ConfigError, EngineError, WeightProofError
from assay.core.manifest import Manifest, manifest_of
from assay.core.protocols import EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Ids, Sampling
from assay.guide import Compose, Recent
from assay.lab.controls import RandomReward, Rewarded
from assay.objective.methods import areal, cispo, grpo, pacs, scale_rl
from assay.objective.methods import reinforce as reinforce_method
from assay.runs import storage
from assay.runtime import NativeEngine, StaleEngine
from assay.runtime.settings import AdamW, LearnerSettings
from assay.testing.faults import StaleModel, StaleTensor
from assay.train import evaluator, loop, models
from assay.train.driver import train
from assay.train.opening import open_stage
from assay.train.proof import WeightProof
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Run
from assay.verify import ScoringPool
from assay_tasks import SortDigits


def lagging(lag: int = 2, **changes: Any) -> Run:
    """RL under coin-toss rewards: every step has something to learn from, and moves the weights."""
    practice = reinforce(**{"steps": 7, "lag": lag, "learner": LearnerSettings(optimizer=AdamW(lr=1e-2)), **changes})
    tasks = Rewarded(source=SortDigits(levels=(1, 2, 3)), scorer=RandomReward())
    return replace(only_rl(), tasks=tasks, stages=(practice,), checkpoint_every=2)


def opened(run: Run) -> Any:
    model = models.load_source(run.model, lambda run, folder: folder)
    return open_stage(run, run.stages[0], model, ScoringPool(run.tasks.verifier()), 0)


def series(folder: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [r["metrics"][name] for r in lines if name in r["metrics"]]


# ---- age ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lag", "ages"), [(0, [0] * 7), (1, [0] + [1] * 6), (2, [0, 1] + [2] * 5)])
def test_samples_are_as_old_as_the_run_says(tmp_path: Path, lag: int, ages: list[int]) -> None:
    assert train(lagging(lag), tmp_path / "run").finished
    assert series(tmp_path / "run", "policy/age") == ages
    assert series(tmp_path / "run", "proof/state") == [1.0] * 7


def test_age_counts_updates_and_lag_counts_batches(tmp_path: Path) -> None:
    train(lagging(1, steps=4, minibatches=2), tmp_path / "run")
    assert series(tmp_path / "run", "policy/age") == [0, 2, 2, 2]


def test_a_stage_begins_with_the_weights_that_it_starts_from(tmp_path: Path) -> None:
    first, second = lagging(2, steps=3).stages[0], lagging(1, steps=3).stages[0]
    train(replace(lagging(), stages=(first, second)), tmp_path / "run")
    assert series(tmp_path / "run", "policy/age") == [0, 1, 2, 0, 1, 1]


def test_replayed_rows_are_older(tmp_path: Path) -> None:
    train(lagging(1, replay=Recent(capacity=8, informative=False), composer=Compose(replay_share=0.5)), tmp_path / "run")
    ages = series(tmp_path / "run", "policy/age")
    assert ages[0] == 0 and all(age > 1 for age in ages[2:])


def test_steps_without_an_update_publish_nothing(tmp_path: Path) -> None:
    class EveryOther(Compose):
        __slots__ = ()

        def compose(self, groups: Any, replay: Any, step: int, experts: Any = ()) -> Batch | None:
            return None if step % 2 else super().compose(groups, replay, step)

    train(lagging(1, composer=EveryOther()), tmp_path / "run")
    assert series(tmp_path / "run", "policy/age") == [0, 1, 1, 1]


def test_what_rows_say_of_their_age_stands() -> None:
    s = opened(lagging(2))
    batch, _, _ = batches_of(lagging(2), steps=1)[0]
    s.parts.version = 5
    theirs = batch.with_rollouts(lag=np.full_like(batch.rollout("lag"), 9))
    assert loop.with_staleness(s, theirs).token("staleness").max() == 0 and set(
        loop.with_staleness(s, theirs).rollout("lag").tolist()
    ) == {9}
    bare = replace(batch, tokens={n: c for n, c in batch.tokens.items() if n not in ("weight_version", "staleness")})
    assert loop.with_staleness(s, bare) is bare


# ---- what old samples are compared with ----------------------------------------------------------------------------------


def batches_of(run: Run, steps: int = 3) -> list[tuple[Batch, dict[str, float], ReinforceRunner]]:
    """Each step's batch as the learner got it, with the step's metrics."""
    s = opened(run)
    seen: list[Batch] = []
    update = loop.update

    def noting(s: ReinforceRunner, batch: Batch) -> Any:
        seen.append(batch)
        return update(s, batch)

    async def walk() -> list[dict[str, float]]:
        await s.parts.serve()
        out: list[dict[str, float]] = []
        if s.parts.proof:
            await s.parts.proof.calibrate(s.parts.publish_weights(), s.parts.engine, s.parts.learner)
        for _ in range(steps):
            out.append(dict((await loop.step(s)).metrics))
            s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "update", noting)
        metrics = asyncio.run(walk())
    return [(batch, found, s) for batch, found in zip(seen, metrics, strict=True)]


@pytest.mark.parametrize("objective", [grpo(kl=0.0), grpo(), cispo()], ids=["grpo", "grpo with kl", "cispo"])
def test_a_ratio_is_to_the_policy_that_sampled(objective: Any) -> None:
    steps = batches_of(lagging(2, objective=objective))
    assert all(
        "logp_old" in s.parts.plan.columns and not any(f.column == "logp_old" for f in s.parts.plan.forwards) for _, _, s in steps
    )
    for age, (batch, metrics, _) in enumerate(steps):
        np.testing.assert_array_equal(batch.token("logp_old"), batch.token("logp_engine"))
        mask = batch.token("mask")
        assert set(batch.token("staleness")[mask].tolist()) == {age} and set(batch.rollout("lag").tolist()) == {age}
        assert "ess" not in metrics  # nothing was computed for it
        assert ("engine/mismatch_k3" in metrics) == (age == 0)  # the update's own pass tells, while nothing is old
    moved = [metrics["policy/kl_old"] for _, metrics, _ in steps]
    assert moved[0] < 1e-9 and min(moved[1:]) > 1e-6, "stale samples pass for the present policy's"


def test_without_a_lag_the_present_policy_stands_in_for_the_old() -> None:
    steps = batches_of(lagging(0))
    assert all("logp_old" not in batch.tokens and metrics["policy/kl_old"] == 0.0 for batch, metrics, _ in steps)


def test_the_ratio_is_new_over_behaviour() -> None:
    """Recomputed by hand from the learner's log-probabilities before the third step's update, which is two updates old."""
    run = lagging(2, objective=replace(grpo(kl=0.0), credit=()))
    s = opened(run)

    async def walk() -> tuple[float, float]:
        await s.parts.serve()
        for _ in range(2):
            await loop.step(s)
            s.parts.step += 1
        found: list[Batch] = []
        update = loop.update

        def by_hand(s: ReinforceRunner, batch: Batch) -> Any:
            rows = [batch.token("ids")[a:b] for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]
            present = np.concatenate(s.parts.learner.score(rows))
            gap = (present.astype(np.float64) - batch.token("logp_engine"))[batch.token("mask") & (spread(batch) != 0)]
            found.append(batch)
            kl.append(float((np.exp(gap) - 1 - gap).mean()))
            return update(s, batch)

        kl: list[float] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "update", by_hand)
            result = await loop.step(s)
        return result.metrics["policy/kl_old"], kl[0]

    def spread(batch: Batch) -> NDArray[Any]:
        return np.repeat(batch.rollout("components/correct")[batch.rows["rollout"]], batch.lengths)

    s.parts.proof = None
    said, computed = asyncio.run(walk())
    assert computed > 1e-6
    assert said == pytest.approx(computed, rel=1e-3)


def test_a_correction_keeps_the_learners_policy_as_the_old() -> None:
    """Decoupled PPO: trust region around the learner's policy at the batch's start, the age corrected by ``pi_old/pi_engine``."""
    steps = batches_of(lagging(2, objective=areal()))
    for age, (batch, metrics, s) in enumerate(steps):
        assert [f.column for f in s.parts.plan.forwards] == ["logp_old"]
        gap = np.abs(batch.token("logp_old") - batch.token("logp_engine"))[batch.token("mask")]
        assert gap.max() < 1e-4 if age == 0 else gap.max() > 1e-3
        assert metrics["policy/kl_old"] == pytest.approx(0.0, abs=1e-9)  # one update: the old policy is the present one
        assert ("engine/mismatch_k3" in metrics) == (age == 0)  # of other weights a gap is no mismatch
        assert 0 < metrics["ess"] <= 1.0


def test_a_ratio_to_the_engine_stays_one() -> None:
    assert lagging(2, objective=scale_rl()).stages[0].effective_objective == scale_rl()


def test_the_age_of_tokens_serves_methods_that_ask_for_it() -> None:
    steps = batches_of(lagging(2, objective=areal(loglinear=True)))
    assert [metrics["policy/age"] for _, metrics, _ in steps] == [0, 1, 2]


@pytest.mark.parametrize("objective", [reinforce_method(), pacs()], ids=["reinforce", "pacs"])
def test_a_method_that_cannot_correct_is_refused(tmp_path: Path, objective: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"Reinforce.lag=2: rollouts come from older weights, .* use a method with one .*, or set lag=0"
    ):
        train(lagging(2, objective=objective), tmp_path / "run")


def test_a_negative_lag_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Reinforce.lag=-1; use 0 to sample with the newest weights"):
        reinforce(lag=-1)


# ---- proof ----------------------------------------------------------------------------------------------------------------


class Lying:
    """Says the version that is due, and serves the weights of the swap before: more stale than the lag."""

    def __init__(self, engine: Any, sums: bool) -> None:
        self.engine, self.sums, self.version, self.waiting = engine, sums, 0, None

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        self.version = manifest.version
        await self.engine.swap(self.waiting or manifest, mode)
        self.waiting = manifest

    async def checksums(self) -> Any:
        return await self.engine.checksums() if self.sums else None

    def info(self) -> EngineInfo:
        return replace(self.engine.info(), version=self.version)

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        return await self.engine.score(rows)

    async def generate(self, request: Request) -> Completion:
        return await self.engine.generate(request)

    async def abort(self, ids: Sequence[str]) -> None:
        await self.engine.abort(ids)


async def published(s: ReinforceRunner, engine: Any, updates: int = 6, lr: float = 1e-2) -> list[tuple[int, bool]]:
    """The version served after each of some updates, and whether it was proved, with a learner that moves every weight."""
    from assay.runtime.learner.learner import TorchLearner
    from assay.runtime.models.model import with_arrays

    model = models.load_source(s.parts.run.model, lambda run, folder: folder)
    arrays = {n: np.array(a) for n, a in (s.parts.publish_weights().payload or {}).items()}
    assert s.parts.proof is not None
    await engine.swap(s.parts.publish_weights())
    await s.parts.proof.calibrate(s.parts.publish_weights(), engine, s.parts.learner)
    found: list[tuple[int, bool]] = []
    for version in range(1, updates + 1):
        rng = np.random.default_rng(version)
        arrays = {n: (a + lr * rng.choice([-1.0, 1.0], a.shape)).astype(np.float32) for n, a in arrays.items()}
        manifest = manifest_for(engine, version, arrays)
        await engine.swap(manifest)
        learner = TorchLearner(with_arrays(model, arrays), LearnerSettings(), total_steps=1)
        found.append((engine.info().version, await s.parts.proof.check(manifest, engine, learner)))
    return found


def proving(**changes: Any) -> Any:
    s = opened(lagging(2))
    assert s.parts.proof is not None
    s.parts.proof = WeightProof(rows=s.parts.proof.rows, lag=2, perturb=False, **changes)
    return s


@pytest.mark.parametrize("witness", ["probes", "checksums"])
def test_a_healthy_lag_is_proved(witness: str) -> None:
    s = proving(**{witness: False})
    assert asyncio.run(published(s, s.parts.engine)) == [(v, True) for v in (0, 0, 1, 2, 3, 4)]


@pytest.mark.parametrize("lag", [1, 3])
def test_another_lag_than_the_runs_is_caught(lag: int) -> None:
    s = proving()
    with pytest.raises(
        WeightProofError, match=r"serves weight version \d, the learner published \d, with \d due at Reinforce.lag=2"
    ):
        asyncio.run(published(s, StaleEngine(native(s), lag)))


def native(s: ReinforceRunner) -> NativeEngine:
    lagged = s.parts.stale
    assert lagged is not None and isinstance(lagged.engine, NativeEngine)
    return lagged.engine


@pytest.mark.parametrize("lr", [1e-2, 1e-6])
def test_an_engine_older_than_the_lag_is_caught_by_its_checksums(lr: float) -> None:
    s = proving(probes=False)
    with pytest.raises(WeightProofError, match=r"after update 1 the sampler's tensors differ"):
        asyncio.run(published(s, StaleEngine(Lying(native(s), True), 2), lr=lr))


@pytest.mark.parametrize(("lr", "said"), [(1e-2, "other weights"), (3e-8, "one step stale")])
def test_an_engine_older_than_the_lag_is_caught_by_probes_alone(lr: float, said: str) -> None:
    """However small the updates: what is served does not move when it is due to."""
    s = proving()
    with pytest.raises(WeightProofError, match=said):
        asyncio.run(published(s, StaleEngine(Lying(native(s), False), 2), lr=lr))


@pytest.mark.parametrize("fault", [StaleModel, lambda e: StaleTensor(e, "model.layers.1.input_layernorm.weight")])
def test_faults_of_the_swap_are_caught_behind_a_lag(fault: Any) -> None:
    s = proving()
    with pytest.raises(WeightProofError):
        asyncio.run(published(s, StaleEngine(fault(native(s)), 2)))


# ---- evaluation -----------------------------------------------------------------------------------------------------------


def test_evaluation_uses_the_newest_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy answers held out are those of the trained model; every rollout in training is older than it."""
    versions: list[set[int]] = []
    evaluate = evaluator.evaluate

    async def noting(*given: Any) -> Any:
        found = await evaluate(*given)
        versions.append({span.version for a in found for r in a.rollouts for c in r.calls for span in c.completion.spans})
        return found

    monkeypatch.setattr(evaluator, "evaluate", noting)
    run = lagging(2, steps=4)
    train(replace(run, evaluation=replace(run.evaluation, every=2)), tmp_path / "run")
    assert versions == [{0}, {0}, {2}, {2}, {4}, {4}]
    assert series(tmp_path / "run", "policy/age") == [0, 1, 2, 2]


def test_an_engine_that_does_not_go_back_behind_an_evaluation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    s = proving()
    monkeypatch.setattr(StaleEngine, "present", lambda self: _Stays(self))

    async def walk() -> None:
        await published(s, s.parts.engine)
        async with s.parts.present():
            pass

    with pytest.raises(WeightProofError, match="serves weight version 6, the learner published 6, with 4 due"):
        asyncio.run(walk())


class _Stays:
    def __init__(self, engine: StaleEngine) -> None:
        self.engine = engine

    async def __aenter__(self) -> None:
        await self.engine.engine.swap(self.engine._published[-1])  # pyright: ignore[reportPrivateUsage]

    async def __aexit__(self, *error: object) -> None:
        return None


# ---- resume ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        4,
        pytest.param(0, marks=pytest.mark.prove),
        pytest.param(2, marks=pytest.mark.prove),
        pytest.param(6, marks=pytest.mark.prove),
    ],
)
def test_a_lagged_run_resumes_to_the_bit(tmp_path: Path, step: int) -> None:
    run = lagging(2, epochs=2)

    def killed() -> None:
        seen = count()

        def hook(point: str) -> None:
            if point == "done:LATEST" and next(seen) == step // 2:
                os.kill(os.getpid(), signal.SIGKILL)

        storage.on_write = hook
        train(run, tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")
    assert series(tmp_path / "run", "policy/age") == series(tmp_path / "whole", "policy/age") == [0, 2, 4, 4, 4, 4, 4]


def test_lost_or_damaged_waiting_weights_are_told(tmp_path: Path) -> None:
    engine = StaleEngine(native(opened(lagging(2))), 2)
    with pytest.raises(CheckpointError, match=r"lagged.safetensors is missing: the weights that wait"):
        engine.load(tmp_path)
    (tmp_path / "lagged.safetensors").write_bytes(b"junk")
    with pytest.raises(CheckpointError, match=r"lagged.safetensors is no safetensors file"):
        engine.load(tmp_path)


# ---- the engine -----------------------------------------------------------------------------------------------------------


def test_what_a_lagged_engine_refuses() -> None:
    s = opened(lagging(2))
    with pytest.raises(ConfigError, match=r"Lagged: lag=0; use at least 1"):
        StaleEngine(native(s), 0)
    full = s.parts.publish_weights()
    delta = manifest_of(1, {"model.norm.weight": np.ones(32, np.float32)}, base=full.digest)
    engine = StaleEngine(native(s), 2)

    async def both() -> None:
        with pytest.raises(EngineError, match="newest weights before any were published"):
            async with engine.present():
                pass
        with pytest.raises(EngineError, match="is a delta manifest on weights that will be gone: publish full ones"):
            await engine.swap(delta)
        with pytest.raises(EngineError, match="is a full manifest without arrays"):
            await engine.swap(replace(full, payload=None))

    asyncio.run(both())


def test_waiting_weights_are_copies_and_requests_go_through() -> None:
    s = opened(lagging(1))
    engine = s.parts.stale
    assert engine is not None
    arrays = {n: np.array(a) for n, a in (s.parts.publish_weights().payload or {}).items()}
    first = manifest_for(engine, 0, arrays)
    request = Request(id="a", prompt=s.parts.tokenizer.encode("S1"), seed=1, sampling=Sampling(max_new_tokens=3))

    async def walk() -> Completion:
        await engine.swap(first)
        second = manifest_for(engine, 1, arrays)
        await engine.swap(second)
        for array in arrays.values():
            array += 1.0  # the learner goes on
        await engine.swap(manifest_for(engine, 2, arrays))
        wanted = {n: t.digest for n, t in second.tensors.items()}
        served = await engine.checksums() or {}
        assert {n: served[n] for n in wanted} == wanted
        await engine.abort(["nobody"])
        return await engine.generate(request)

    assert [span.version for span in asyncio.run(walk()).spans] == [1]
