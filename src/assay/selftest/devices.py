"""One GPU: a learner there against one on the CPU, and an engine in bfloat16 against its learner."""

from __future__ import annotations

import numpy as np

from assay.core.rollout import ids_of
from assay.core.seeds import generator
from assay.runtime.engine.settings import InProcess
from assay.runtime.settings import LearnerSettings
from assay.selftest.agreement import compare_with_learner
from assay.selftest.selftest_part import NotAvailable, SelftestContext, SelftestFinding
from assay.selftest.small_models import SHAPE, decoder

__all__ = ["bfloat16", "bfloat16_on", "learner", "learner_on", "there"]

SAME, HALF = 1e-3, 0.5
"""Nats in one token: two devices in float32; bfloat16 against float32."""


def learner(context: SelftestContext) -> SelftestFinding:
    """The learner on the first CUDA device."""
    there(1)
    return learner_on("cuda")


def bfloat16(context: SelftestContext) -> SelftestFinding:
    """The engine in this process, in bfloat16 on the first CUDA device."""
    there(1)
    return bfloat16_on("cuda")


def learner_on(device: str) -> SelftestFinding:
    """Scores of the same rows by learners on a device and on the CPU.

    Args:
        device: ``cuda`` or ``cpu``.
    """
    from assay.runtime.learner.learner import TorchLearner

    rng, vocabulary = generator("selftest/rows", 0), decoder().shape.vocab_size
    rows = [ids_of(rng.integers(0, vocabulary, n)) for n in (8, 40, SHAPE.max_positions)]
    here, there = (TorchLearner(decoder(), LearnerSettings(device=name), total_steps=1).score(rows) for name in ("cpu", device))
    most = max(float(np.abs(a - b).max()) for a, b in zip(here, there, strict=True))
    failures = () if most <= SAME else (f"{most:.3g} nats in one token, above {SAME}",)
    return SelftestFinding(numbers={"device": device, "tokens": sum(map(len, rows)), "max_nats": most}, failures=failures)


def bfloat16_on(device: str) -> SelftestFinding:
    """An engine in bfloat16 against its learner in float32.

    Args:
        device: ``cuda`` or ``cpu``.
    """
    from assay.runtime.learner.learner import TorchLearner

    made = TorchLearner(decoder(), LearnerSettings(device=device), total_steps=1)
    return compare_with_learner(InProcess(dtype="bfloat16").build(made), made, HALF)


def there(wanted: int) -> None:
    """Looks for CUDA devices.

    Args:
        wanted: how many are needed.

    Raises:
        NotAvailable: PyTorch sees fewer.
    """
    from assay.runtime.machine import gpus

    found = gpus()
    if len(found) < wanted:
        raise NotAvailable(f"PyTorch sees {len(found)} CUDA device(s) here; this part needs {wanted}")
