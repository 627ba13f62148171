"""What a run found out about its rows, as measurements that curation reads: learning curves and pass rates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from assay.core.errors import DataError
from assay.core.task import Task
from assay.runs.row_history import FILE, RowCurves, RowHistory
from assay.runs.storage import write_text
from assay.train.record import load_run
from assay.train.run import Run

__all__ = ["row_measurements", "write_measurements"]


def row_measurements(folder: Path, epochs: int = 0, run: Run | None = None) -> Iterator[dict[str, Any]]:
    """One entry for each row that a run practised, as `assay.curate.ProbeFile` and `assay.curate.Passes` read them.

    Args:
        folder: of a run of reinforcement learning.
        epochs: of `assay.runs.RowHistory.curves`.
        run: the run as a value, when its parts cannot be loaded by name.

    Yields:
        ``id``, where the row has one of its own, or ``prompt``; ``history``, its mean reward in each epoch, None where it was not
        met; ``passed`` of ``n`` rollouts in the last epoch that met it; ``arm``, ``level``, and ``run``, the folder's name.

    Raises:
        CheckpointError: the folder holds no run.
        DataError: the run has no history of rows, or too short a one.
    """
    found = load_run(folder, run)
    history = RowHistory.read(folder)
    if history is None:
        raise DataError(
            f"{folder} has no history of rows ({FILE}): it has done no step of reinforcement learning yet, or was trained before "
            "runs wrote one; train it again, or name a file of measurements"
        )
    try:
        curves = history.curves(epochs)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from None
    return _entries(folder, found, curves)


def _entries(folder: Path, run: Run, curves: RowCurves) -> Iterator[dict[str, Any]]:
    values = np.where(np.isnan(curves.history), -1.0, curves.history.round(6)).tolist()
    for (arm, level, index), curve, passed, n in zip(curves.places, values, curves.passed, curves.rollouts, strict=True):
        if n:  # else no rollout of it had a verdict: it was not measured
            named = _name_of(run.tasks.task(arm, level, "train", index))
            measured = {"history": [None if x < 0 else x for x in curve], "passed": int(passed), "n": int(n)}
            yield {**named, "arm": arm, "level": level, **measured, "run": folder.name}


def _name_of(task: Task) -> dict[str, Any]:
    """By what a row is found again: its own id, else its question."""
    row: Any = task.private.get("row")
    own = row.get("id") if row is not None else None
    if own is not None:
        return {"id": own}
    if isinstance(task.public.get("prompt"), str):
        return {"prompt": task.public["prompt"]}
    return {"prompt": [{"role": m.role, "content": m.content} for m in task.public_view().messages]}


def write_measurements(folder: Path, place: Path, epochs: int = 0, run: Run | None = None) -> Path:
    """Writes `row_measurements` as JSON lines, unless the file is there and says the same.

    Returns:
        ``place``.

    Raises:
        CheckpointError, DataError: as `row_measurements`.
        StorageError: the disk is full.
    """
    text = "".join(
        json.dumps(entry, ensure_ascii=False, sort_keys=True) + "\n" for entry in row_measurements(folder, epochs, run)
    )
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, text)
    return place
