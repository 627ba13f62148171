"""The model of a run at one of its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.config import from_dict, loads_toml
from assay.core.errors import CheckpointError
from assay.core.util.threads import sleeping
from assay.runs import checkpoint, storage

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["checkpoint_place", "restore_model", "weights_of_run"]


def checkpoint_place(path: Path) -> tuple[Path, int] | None:
    """The run folder and the step that ``RUN@STEP`` or ``RUN/checkpoints/step_N`` names; None where ``path`` is neither.

    A folder whose own name ends in ``@STEP`` is meant itself.

    >>> checkpoint_place(Path("runs/none@40")) is None
    True
    """
    name, at, step = path.name.rpartition("@")
    run = path.with_name(name) if name else path
    if at and step.isdecimal() and not path.exists() and (run / "run.toml").exists():
        return run, int(step)
    begins, _, number = path.name.partition("step_")
    run = path.parent.parent
    if not begins and number.isdecimal() and path.parent.name == "checkpoints" and (run / "run.toml").exists():
        return run, int(number)
    return None


def weights_of_run(place: Path, step: int | None) -> tuple[AnyModel, Path, int]:
    """The model of a run at a step, the folder of what lies beneath its adapter, and the step.

    Args:
        place: a run folder.
        step: None for the end of the run, or the newest checkpoint of one that was stopped.

    Raises:
        CheckpointError: no such checkpoint, or a damaged one.
    """
    with sleeping():
        from assay.runtime.models.hf import load_model

    done = place / "done.json"
    if done.exists() and step in (None, int(storage.read_json(done)["step"])):
        return load_model(place / "model"), place / "model", int(storage.read_json(done)["step"])
    path = checkpoint.latest(place) if step is None else checkpoint.checkpoint_at(place, step)
    if path is None:
        raise CheckpointError(
            f"run {place} has no checkpoint yet, so no weights of its own: go on with it by 'assay resume {place}'"
        )
    return restore_model(place, path)


def restore_model(place: Path, path: Path) -> tuple[AnyModel, Path, int]:
    """The model of a checkpoint: what its learner trained, on the weights that its stage began with.

    Raises:
        DataError: the weights are damaged.
    """
    with sleeping():
        from assay.runtime.models.exported import with_weights
        from assay.runtime.models.hf import load_model
        from assay.runtime.settings import Lora

    state = storage.read_json(path / "state.json")
    index, step = int(state["stage"]), int(state["session"]["step"])
    table: Mapping[str, Any] = loads_toml((place / "run.toml").read_text(encoding="utf-8"))
    learner: Mapping[str, Any] = table["stages"][index].get("learner", {})
    adapter = from_dict(Lora, learner["adapter"]) if isinstance(learner.get("adapter"), Mapping) else None
    kept = place / "bases" / f"stage_{index}"
    start = kept if index and adapter is not None else place / "start"
    return with_weights(load_model(start), path / "learner" / "weights.safetensors", adapter), start, step
