"""Memory that ran out: what the stage needs, part by part, and which settings would need less."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from assay.core.errors import OutOfMemoryError
from assay.runtime.settings import DecoderShape, HubShape
from assay.train.evaluate import held_out
from assay.train.memory import memory_of, savings, weights_in, weights_of
from assay.train.models import held_path
from assay.train.run import Run
from assay.train.stage import Stage

__all__ = ["advice", "add_advice", "format_bytes"]

_SHOWN = 4


@contextmanager
def add_advice(run: Run, stage: Stage, shape: DecoderShape | HubShape, folder: Path) -> Generator[None]:
    """Inside, an `OutOfMemoryError` says besides what the stage needs, part by part, and what would make it less.

    Args:
        run, stage: settings.
        shape: of the model.
        folder: of the run, which holds the weights.
    """
    try:
        yield
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{error}; {advice(run, stage, shape, folder)}") from error.__cause__


def advice(run: Run, stage: Stage, shape: DecoderShape | HubShape, folder: Path) -> str:
    """What a stage needs, the largest part first, and what would save most, by the arithmetic of ``assay explain``."""
    weights = weights_of(shape) if isinstance(shape, DecoderShape) else weights_in(folder / "start")
    plan = run.evaluation
    evaluated = max(plan.n, 1) * len(held_out(run.tasks, plan.levels, plan.final_per_level, plan.split))
    others = sum(weights_in(held_path(folder, a.model)).count for a in stage.learner.anchors if a.model)
    given = (run, stage, shape, weights, others, evaluated)
    found, less = memory_of(*given), savings(*given)[:_SHOWN]
    parts = sorted(((n, v) for n, v in found.parts.items() if v > found.total / 100), key=lambda p: -p[1])
    told = ", ".join(f"{name} {format_bytes(value)}" for name, value in parts)
    saved = ", ".join(f"{name} saves {format_bytes(value)}" for name, value in less)
    means = f"what would take less, in a new run: {saved}" if less else "take a smaller model, or a machine with more memory"
    return f"this stage needs about {format_bytes(found.total)} ({told}); {means}"


def format_bytes(count: int) -> str:
    """Bytes for people.

    >>> format_bytes(1_310_720), format_bytes(512)
    ('1.2 MiB', '512 B')
    """
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.1f} {units[0]}" if units[0] != "B" else f"{count} B"
