"""A learner whose updates are as small as real ones, and engines between it and a server that do to weights what faults do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from assay.core.manifest import manifest_of
from assay.core.seeds import generator
from assay.runtime import LearnerSettings, Lora, TorchLearner
from assay.train.proof import WeightProof, probe_rows

LR = 1e-6
PART = "model.layers.1.mlp.down_proj.weight"


class Trained:
    """A learner whose every step moves every weight by about the learning rate."""

    def __init__(self, model: Any, adapter: Lora | None = None) -> None:
        self.model, self.version = model, 0
        self.settings = LearnerSettings(adapter=adapter)
        self.learner = TorchLearner(model, self.settings, total_steps=99)

    def manifest(self) -> Any:
        return replace(self.learner.publish(), version=self.version).round_to("bfloat16")

    def step(self, lr: float = LR) -> Any:
        rng = generator("trained", self.version)
        self.version += 1
        with torch.no_grad():
            for parameter in self.learner.parameters.values():
                signs = rng.choice(np.float32([-1.0, 1.0]), tuple(parameter.shape))
                parameter.add_(torch.from_numpy(signs) * lr)
        return self.manifest()


class Faulty:
    """The engine, but for what a fault does to the weights that it is handed from some swap on."""

    def __init__(self, engine: Any, fault: Any, healthy: int) -> None:
        self.engine, self.fault, self.healthy, self.swaps = engine, fault, healthy, 0
        self.seen: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    async def swap(self, manifest: Any, mode: Any = "drain") -> None:
        self.swaps += 1
        now = {name: np.array(array) for name, array in manifest.payload.items()}
        self.seen.append((manifest.version, now))
        arrays = self.fault(self.seen, now) if self.swaps > self.healthy else now
        dtypes = {name: info.dtype for name, info in manifest.tensors.items()}
        made = manifest_of(manifest.version, arrays)
        told = {name: replace(info, dtype=dtypes[name]) for name, info in made.tensors.items()}
        await self.engine.swap(replace(made, tensors=told), mode)


def before(seen: Any, now: Any) -> Any:
    return seen[-2][1]


def base(seen: Any, now: Any) -> Any:
    return seen[0][1]


def part(seen: Any, now: Any, name: str = PART) -> Any:
    """One linear layer, of which a CPU server's checksums tell nothing, stays as it was."""
    return now | {name: seen[0][1][name]}


def other(seen: Any, now: Any) -> Any:
    """Another model's weights: every tensor's rows in another order."""
    return {name: np.ascontiguousarray(array[::-1]) for name, array in now.items()}


REHEARSED = 3
"""Swaps of a healthy start: the weights, those of the rehearsal, the weights again."""


async def proved(engine: Any, made: Trained, steps: int = 3, spared: float = 0.0) -> tuple[WeightProof, list[bool]]:
    proof = WeightProof(probe_rows(made.model.shape.vocab_size, 64, 0, rows=8, length=32), spared=spared)
    await engine.swap(made.manifest())
    await proof.calibrate(made.manifest(), engine, made.learner)
    found: list[bool] = []
    for _ in range(steps):
        manifest = made.step()
        await engine.swap(manifest)
        found.append(await proof.check(manifest, engine, made.learner))
    return proof, found
