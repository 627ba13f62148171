"""Planted faults: an engine that serves other weights than the trained ones must stop the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_runs import manifest_for, reinforce, tiny

from assay.core.errors import WeightProofError
from assay.core.manifest import Manifest
from assay.core.protocols import Engine
from assay.core.rollout import Ids
from assay.lab.controls import RandomReward, Rewarded
from assay.runs.journal import Journal
from assay.runtime.settings import AdamW, LearnerSettings
from assay.testing.faults import BaseWeights, StaleModel, StaleTensor, WrongTiedHead
from assay.train import models
from assay.train.callbacks import Callbacks
from assay.train.opening import open_stage
from assay.train.proof import WeightProof, _gap, _little, _Published
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Run
from assay.train.run_log import RunLog
from assay.train.run_progress import Progress
from assay.train.stage_driver import StageDriver
from assay.verify import ScoringPool
from assay_tasks import SortDigits

NORM = "model.layers.1.input_layernorm.weight"
FAULTS: dict[str, Callable[[Engine], Any]] = {
    "one tensor stale": lambda engine: StaleTensor(engine, NORM),
    "whole model one step stale": StaleModel,
    "base weights served": BaseWeights,
    "wrong tied head": WrongTiedHead,
}


def rl_run(lr: float) -> Run:
    """RL alone, under coin-toss rewards: every group has a signal, so every step changes the weights."""
    run = replace(tiny(), tasks=Rewarded(source=SortDigits(levels=(1, 2, 3)), scorer=RandomReward()))
    stage = reinforce(steps=4, learner=LearnerSettings(optimizer=AdamW(lr=lr)))
    return replace(run, stages=(stage,), checkpoint_every=100)


class Nudged:
    """A learner whose every step surely moves every weight by about ``lr``: the proof must not depend on rewards."""

    def __init__(self, s: ReinforceRunner, lr: float) -> None:
        self.s, self.lr, self.version = s, lr, 0
        self.arrays = {n: np.array(a) for n, a in (s.parts.publish_weights().payload or {}).items()}

    def step(self) -> Manifest:
        rng = np.random.default_rng(self.version)
        self.version += 1
        self.arrays = {n: (a + self.lr * rng.choice([-1.0, 1.0], a.shape)).astype(np.float32) for n, a in self.arrays.items()}
        return manifest_for(self.s.parts.engine, self.version, self.arrays)


def session(tmp_path: Path, lr: float = 1e-3) -> tuple[Run, Any]:
    run = rl_run(lr)
    model = models.load_source(run.model, lambda run, folder: folder)
    return run, open_stage(run, run.stages[0], model, ScoringPool(run.tasks.verifier()), 0)


async def proved_steps(s: ReinforceRunner, engine: Engine, proof: WeightProof, lr: float, steps: int = 4) -> list[bool]:
    """Updates of a nudged learner, each published, swapped in and proved."""
    from assay.runtime.learner.learner import TorchLearner
    from assay.runtime.models.model import with_arrays

    model = models.load_source(s.parts.run.model, lambda run, folder: folder)
    nudged = Nudged(s, lr)
    await proof.calibrate(s.parts.publish_weights(), engine, s.parts.learner)
    found: list[bool] = []
    for _ in range(steps):
        manifest = nudged.step()
        learner = TorchLearner(with_arrays(model, nudged.arrays), LearnerSettings(), total_steps=1)
        await engine.swap(manifest)
        found.append(await proof.check(manifest, engine, learner))
    return found


def test_a_healthy_engine_is_proved(tmp_path: Path) -> None:
    _, s = session(tmp_path)
    assert s.parts.proof is not None
    assert asyncio.run(proved_steps(s, s.parts.engine, s.parts.proof, lr=1e-3)) == [True] * 4
    assert 0.0 <= s.parts.proof.noise < 1e-4


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("lr", [1e-3, 1e-6])
def test_checksums_catch_every_fault(tmp_path: Path, fault: str, lr: float) -> None:
    _, s = session(tmp_path)
    proof = replace_probes(s, probes=False)
    with pytest.raises(WeightProofError, match=r"tensors differ .*(weight)"):
        asyncio.run(proved_steps(s, FAULTS[fault](s.parts.engine), proof, lr))


@pytest.mark.parametrize(("fault", "lr"), [(f, 1e-2) for f in FAULTS] + [("whole model one step stale", 1e-6)])
def test_probes_alone_catch_faults_of_the_whole_model(tmp_path: Path, fault: str, lr: float) -> None:
    """At lr 1e-6 no absolute threshold sees a stale engine: it is caught because its log-probabilities did not move at all."""
    _, s = session(tmp_path)
    proof = replace_probes(s, checksums=False)
    with pytest.raises(WeightProofError, match=r"stale|other weights"):
        asyncio.run(proved_steps(s, FAULTS[fault](s.parts.engine), proof, lr))


def test_rounding_of_trained_weights_is_no_fault_and_more_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise measured on fresh weights is smaller than what trained ones show."""
    _, s = session(tmp_path)
    proof, score = replace_probes(s, checksums=False), s.parts.engine.score

    def off_by(gap: float) -> bool:
        async def noisy(rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
            return [x + np.float32(gap) for x in await score(rows)]

        monkeypatch.setattr(s.parts.engine, "score", noisy)
        return asyncio.run(proof.check(s.parts.publish_weights(), s.parts.engine, s.parts.learner))

    asyncio.run(proof.calibrate(s.parts.publish_weights(), s.parts.engine, s.parts.learner))
    assert proof.noise < 2e-6
    assert off_by(2e-5)
    with pytest.raises(WeightProofError, match="other weights"):
        off_by(1e-4)


class Unseen:
    """Digests of some tensors only, as engines give that repack the others."""

    def __init__(self, engine: Any, names: set[str]) -> None:
        self.engine, self.names = engine, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    async def checksums(self) -> dict[str, str]:
        return {n: d for n, d in (await self.engine.checksums()).items() if n in self.names}


@pytest.mark.parametrize("names", [set(), pytest.param({NORM}, marks=pytest.mark.prove)])
def test_perturbed_weights_show_each_tensor_that_never_arrives(tmp_path: Path, names: set[str]) -> None:
    """However small the updates are: a healthy engine passes, with no tensor out of sight, and is as it was afterwards."""
    _, s = session(tmp_path)
    proof, before = replace_probes(s), s.parts.learner.state_digest()
    assert asyncio.run(proved_steps(s, Unseen(s.parts.engine, names), proof, lr=1e-6)) == [True] * 4
    assert (proof.blind, proof.steady, s.parts.learner.state_digest()) == ((), True, before)
    for name in sorted(s.parts.publish_weights().tensors):
        engine = Unseen(StaleTensor(session(tmp_path)[1].parts.engine, name), names)
        asyncio.run(engine.swap(s.parts.publish_weights()))
        with pytest.raises(WeightProofError, match=rf"in all of them: {name} did not arrive|tensors differ"):
            asyncio.run(proved_steps(s, engine, replace_probes(s), lr=1e-6))


def test_an_engine_back_at_its_base_is_known_again(tmp_path: Path) -> None:
    """After a sleep, say: at this learning rate it differs by less than the noise, and not by nothing from the step before."""
    _, s = session(tmp_path)
    proof = replace_probes(s, checksums=False, perturb=False)
    with pytest.raises(WeightProofError, match="bit for bit those that version 1 gave: it serves version 1 again"):
        asyncio.run(proved_steps(s, BaseWeights(s.parts.engine, healthy=3), proof, lr=3e-7))


def test_an_engine_that_repeats_nothing_to_the_bit_is_not_proved_by_probes(tmp_path: Path) -> None:
    _, s = session(tmp_path)
    proof, score, rng = replace_probes(s, checksums=False), s.parts.engine.score, np.random.default_rng(0)

    class Unsteady(Unseen):
        async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
            return [x + np.float32(rng.normal() * 1e-6) for x in await score(rows)]

    assert asyncio.run(proved_steps(s, Unsteady(s.parts.engine, set()), proof, lr=1e-6)) == [False] * 4
    assert not proof.steady


class FaintTensor:
    """A learner in whose perturbed weights one tensor leaves next to nothing on the probes."""

    def __init__(self, learner: Any, name: str) -> None:
        self.learner, self.name = learner, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    @contextmanager
    def perturbed_weights(self, dtype: str) -> Generator[Any]:
        with self.learner.perturbed_weights(dtype) as other:

            def effects(rows: Sequence[Ids]) -> dict[str, NDArray[np.float32]]:
                return {n: x * np.float32(1e-9 if n == self.name else 1.0) for n, x in other.effects(rows).items()}

            yield SimpleNamespace(manifest=other.manifest, effects=effects)


def test_a_tensor_that_no_witness_sees_is_named_and_nothing_counts_as_proved(tmp_path: Path) -> None:
    """Too faint when perturbed and without a checksum. Its checksum alone is enough."""
    _, s = session(tmp_path)
    s.parts.learner = FaintTensor(s.parts.learner, NORM)  # type: ignore[assignment]
    s.parts.proof = replace_probes(s)
    assert asyncio.run(proved_steps(s, Unseen(s.parts.engine, set()), s.parts.proof, lr=1e-3)) == [False] * 4
    assert s.parts.proof.blind == (NORM,)
    noted = f"no witness tells whether {NORM} arrive in the engine: weights count as unproven"
    assert ("proof", noted) in s.parts.notes()
    _, s = session(tmp_path)
    s.parts.learner = FaintTensor(s.parts.learner, NORM)  # type: ignore[assignment]
    seen = replace_probes(s)
    assert asyncio.run(proved_steps(s, Unseen(s.parts.engine, {NORM}), seen, lr=1e-3)) == [True] * 4
    assert seen.blind == ()


def published(tensors: Sequence[str], tokens: Sequence[float], version: int = 1) -> _Published:
    """A version with one digest per tensor and log-probabilities of one probe row, whose first token has none."""
    row = np.array([np.nan, *tokens], np.float32)
    return _Published(version, {f"t{i}": digest for i, digest in enumerate(tensors)}, [row])


@pytest.mark.parametrize(
    ("tensors", "tokens", "little"),
    [
        ("bbbb", [2, 2, 2, 2], False),  # all changed
        ("bbaa", [2, 2, 1, 1], False),  # half of both
        ("baaa", [2, 2, 2, 2], True),  # few tensors, all tokens
        ("bbbb", [2, 1, 1, 1], True),  # all tensors, few tokens
        ("aaaa", [1, 1, 1, 1], True),
    ],
)
def test_a_change_is_small_where_either_share_is(tensors: str, tokens: list[float], little: bool) -> None:
    assert _little(published(tensors, tokens, 2), published("aaaa", [1, 1, 1, 1])) is little


@pytest.mark.parametrize(("tensors", "tokens"), [("baaa", [2, 2, 2, 2]), ("bbbb", [2, 1, 1, 1])])
def test_an_engine_that_answers_a_small_change_alike_is_neither_stale_nor_proved(tensors: str, tokens: list[float]) -> None:
    """Either share alone makes the change small; where both are large the same answers are a fault."""
    served = [np.array([np.nan, 1, 1, 1, 1], np.float32)]
    proof = WeightProof(rows=[], noise=1.0)  # so that the size of the difference tells nothing
    first = published("aaaa", [1, 1, 1, 1])
    proof._remember(first, served)
    proof._due = first
    assert proof._compare_probes(published(tensors, tokens, 2), served) is False
    with pytest.raises(WeightProofError, match="it is one step stale"):
        proof._compare_probes(published("bbbb", [2, 2, 2, 2], 2), served)


def test_without_a_witness_the_state_is_unproven(tmp_path: Path) -> None:
    _, s = session(tmp_path)
    proof = WeightProof(rows=[], probes=False, checksums=False)
    assert asyncio.run(proved_steps(s, BaseWeights(s.parts.engine), proof, 1e-3)) == [False] * 4


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_stops_at_the_fault(tmp_path: Path, fault: str) -> None:
    run, s = session(tmp_path)
    s.parts.engine = FAULTS[fault](s.parts.engine)
    s.sampler = replace(s.sampler, engine=s.parts.engine)  # type: ignore[type-var]
    log = RunLog(Journal(tmp_path))
    driver = StageDriver(run, tmp_path, log, Callbacks(()), Progress(), saved={})
    with pytest.raises(WeightProofError):
        asyncio.run(driver.drive(0, s))
    log.close()
    assert s.parts.step < run.steps


def replace_probes(s: ReinforceRunner, **changes: bool) -> WeightProof:
    assert s.parts.proof is not None
    return WeightProof(rows=s.parts.proof.rows, **changes)


def test_a_few_tokens_of_a_mixture_may_be_far_off_and_all_of_them_not() -> None:
    apart = [np.array([0.0, 0.1, 0.2, 3.0, 0.3], np.float32)]
    nothing = [np.zeros(5, np.float32)]
    assert _gap(apart, nothing, 0.0) == 3.0
    assert _gap(apart, nothing, 0.25) == pytest.approx(0.3)  # one of the four tokens behind the first
    assert np.isnan(_gap([np.array([0.0, np.nan, 0.1, 0.1, 0.1], np.float32)], nothing, 0.5))
