"""New weights that travel to samplers as what changed: the same numbers, also where bytes are damaged or a sampler is new."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from live import coin_toss
from test_async_runs import asynchronously, events_of, spawner, steps_of  # noqa: F401  the fixture makes samplers threads
from thread_samplers import ThreadSpawner
from tiny_runs import digest_of, only_rl

from assay.asynchronous import NewWeights, SamplerEnd, WeightDelta
from assay.core.manifest import Manifest
from assay.runtime import Native
from assay.runtime.settings import AdamW, LearnerSettings, Lora
from assay.train.driver import train
from assay.train.replay import replay_run
from assay.train.run import Run


def in_bfloat16(lr: float = 1e-6, steps: int = 5) -> Run:
    return replace(
        coin_toss(only_rl(steps=steps, learner=LearnerSettings(optimizer=AdamW(lr=lr)))), engine=Native(dtype="bfloat16")
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", "damaged", "another base", "a new sampler"])
def test_a_run_whose_weights_come_as_what_changed_ends_as_in_one_process(
    fault: str,
    spawner: ThreadSpawner,  # noqa: F811
    tmp_path: Path,
) -> None:
    run, deltas = in_bfloat16(), list[WeightDelta]()

    def there(name: str, epoch: int, message: object) -> Iterable[object]:
        if isinstance(message, NewWeights) and isinstance(message.weights, WeightDelta):
            delta = message.weights
            deltas.append(delta)
            if len(deltas) == 3 and fault == "damaged":
                return (NewWeights(replace(delta, payload={n: d[:-3] for n, d in delta.payload.items()})),)
            if len(deltas) == 3 and fault == "another base":
                return (NewWeights(replace(delta, base="f" * 16)),)
        return (message,)

    def back(name: str, epoch: int, message: object) -> Iterable[object]:
        if fault == "a new sampler" and len(deltas) >= 4 and (name, epoch) == ("sampler-1", 0):
            return (SamplerEnd("it was killed by signal 9"),)
        return (message,)

    spawner.there, spawner.back = there, back
    train(run, tmp_path / "one", progress=False)
    train(asynchronously(run, eta=0, updates="delta"), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one") and len(deltas) >= 8
    asked = events_of(tmp_path / "more", "sampler") if fault else []
    assert bool(asked) == bool(fault)
    assert all(("is sent all weights: " in e) == (fault in ("damaged", "another base")) for e in asked)
    sizes = [step["async/weight_bytes"] for step in steps_of(tmp_path / "more")]
    whole = sum(2 * math.prod(t.shape) for t in deltas[0].manifest.tensors.values())
    assert all(0 < size < 0.05 * whole for size in sizes)


@dataclass(frozen=True)
class Gone:
    """Weights whose owner died, or whose place in memory went to newer ones."""

    manifest: Manifest
    nbytes: int = 0

    def arrays(self) -> None: ...


@pytest.mark.parametrize("updates", ["full", "delta"])
def test_weights_that_are_lost_come_again(updates: str, spawner: ThreadSpawner, tmp_path: Path) -> None:  # noqa: F811
    """From the copy of what was published last; without one another sampler begins, with weights of its own."""
    run, lost = in_bfloat16(steps=4), list[str]()

    def there(name: str, epoch: int, message: object) -> Iterable[object]:
        if isinstance(message, NewWeights) and message.weights.manifest.version == 2 and not lost:
            lost.append(name)
            return (NewWeights(Gone(message.weights.manifest)),)
        return (message,)

    spawner.there = there
    train(run, tmp_path / "one", progress=False)
    train(asynchronously(run, eta=0, updates=updates, full_every=1), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    (said,) = events_of(tmp_path / "more", "sampler")
    assert said.startswith(f"{lost[0]} was replaced" if updates == "full" else f"{lost[0]} is sent all weights")
    assert said.endswith("the arrays of version 2 are gone")


@pytest.mark.slow
def test_an_adapter_travels_as_what_changed_too(tmp_path: Path) -> None:
    """The transformers engine's numbers depend on how rows are batched, in their last bits: the digest is not compared."""
    run = coin_toss(only_rl(steps=3, learner=LearnerSettings(adapter=Lora(rank=2), optimizer=AdamW(lr=1e-2))))
    train(asynchronously(run, samplers=1, eta=0, updates="delta", full_every=2), tmp_path / "run", progress=False)
    assert all(step["engine/mismatch_k3"] < 1e-9 for step in steps_of(tmp_path / "run"))
    assert replay_run(tmp_path / "run").equal
