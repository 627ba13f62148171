"""The model of a run's best held-out evaluation: ``best/step_0000040`` in the run folder.

A model is kept at each evaluation that is better than all before it. Those before it stay until a checkpoint is written that is
at least as new as it, so that a run that is killed and goes on from an earlier checkpoint still has the best of what it goes on
from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from assay.core.util.folder_digest import seal_folder
from assay.runs import storage

__all__ = ["FILE", "best_model", "cut_best_models", "offer_best_model", "settle_best_models"]

FILE = "best.json"
"""In the folder of a kept model: its step, and its accuracies."""
_MODES = ("eval/greedy/all", "eval/sampled/all")
"""What is compared; the second where the first are the same. The earlier step wins where both are."""

_Entry = tuple[tuple[float, ...], int, Path]


def best_model(place: Path) -> Path | None:
    """The folder of the best model below ``RUN/best``; None where there is none."""
    found = list(_entries(place))
    return max(found)[2] if found else None


def offer_best_model(folder: Path, step: int, metrics: Mapping[str, float], save: Callable[[Path], None]) -> Path | None:
    """Keeps the model of an evaluation if it is better than all that are kept.

    Args:
        folder: of the run.
        step: global step of the evaluation.
        metrics: of the evaluation; without a greedy accuracy nothing is kept.
        save: writes the model into the folder that it is given.

    Returns:
        Where it is kept; None where it is not.

    Raises:
        StorageError: it cannot be written; those before it are as they were.
    """
    if _MODES[0] not in metrics:
        return None
    values = tuple(float(metrics.get(name, 0.0)) for name in _MODES)
    place = folder / "best" / f"step_{step:07d}"
    if place.exists() or any(kept >= values for kept, _, _ in _entries(folder / "best")):
        return None
    with storage.storage_errors(place):
        place.parent.mkdir(exist_ok=True)
    with storage.fresh_folder(place) as beside:
        save(beside)
        storage.write_json(beside / FILE, {"step": step, "metrics": dict(zip(_MODES, values, strict=True))})
        seal_folder(beside)
    return place


def settle_best_models(folder: Path, step: int) -> None:
    """Removes what is no longer the best now that there is a checkpoint of this step."""
    found = sorted(entry for entry in _entries(folder / "best") if -entry[1] <= step)
    for _, _, path in found[:-1]:
        shutil.rmtree(path, ignore_errors=True)


def cut_best_models(folder: Path, step: int) -> None:
    """Removes the models of evaluations later than the checkpoint that a run goes on from: they will be made again."""
    for path in (folder / "best").glob(".*.tmp"):
        shutil.rmtree(path, ignore_errors=True)
    for _, negative, path in list(_entries(folder / "best")):
        if -negative > step:
            shutil.rmtree(path, ignore_errors=True)


def _entries(place: Path) -> Iterator[_Entry]:
    """Accuracies, the negative step, and the folder of each kept model."""
    for path in place.glob("step_*"):
        if (path / FILE).exists():
            kept = storage.read_json(path / FILE)
            yield tuple(float(kept["metrics"][name]) for name in _MODES), -int(kept["step"]), path
