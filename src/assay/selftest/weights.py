"""Weight sync: every update is proved to have arrived, and updates that do not arrive are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.core.errors import WeightProofError
from assay.runtime.engine.settings import EngineSpec, InProcess, Native
from assay.selftest.selftest_part import SelftestContext, SelftestFinding
from assay.selftest.small_models import SHAPE, FaultyEngine, decoder, practice
from assay.train.driver import train

__all__ = ["FAULTS", "in_process", "native", "check_sync", "vllm"]

FAULTS = ("StaleModel", "StaleTensor", "BaseWeights")
"""One version behind; one tensor behind; no update ever arrives."""
STEPS = 6


def native(context: SelftestContext) -> SelftestFinding:
    """Assay's own engine."""
    return check_sync(context, Native())


def in_process(context: SelftestContext) -> SelftestFinding:
    """Transformers beside the learner."""
    return check_sync(context, InProcess())


def vllm(context: SelftestContext) -> SelftestFinding:
    """A vLLM server, started for this."""
    from assay.selftest.vllm_server import served_model

    with served_model(decoder(), context.folder, SHAPE.max_positions, context.say) as settings:
        return check_sync(context, settings)


def check_sync(context: SelftestContext, engine: EngineSpec) -> SelftestFinding:
    """A short run whose updates must all be proved, then one for each fault, which the proof must stop.

    Args:
        context: where the runs are.
        engine: under test.
    """
    context.say(f"{STEPS} updates")
    train(practice(engine, STEPS), context.folder / "healthy", progress=False)
    proved = sum(m.get("proof/state") == 1.0 for m in _steps(context.folder / "healthy"))
    failures = [] if proved == STEPS else [f"{STEPS - proved} of {STEPS} updates are not proved to have arrived"]
    caught: list[str] = []
    for fault in FAULTS:
        context.say(f"planted: {fault}")
        try:
            train(practice(FaultyEngine(engine, fault), STEPS), context.folder / fault, progress=False)
            failures.append(f"planted {fault} was not found")
        except WeightProofError:
            caught.append(fault)
    return SelftestFinding(numbers={"updates": STEPS, "proved": proved, "caught": caught}, failures=tuple(failures))


def _steps(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(x)["metrics"] for x in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
