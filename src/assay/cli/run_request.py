"""How a run was asked for, kept beside it: so that parts and functions in a user's own files are found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay.cli.recipe import settle
from assay.cli.train_options import TrainOptions
from assay.cli.user_files import module_of
from assay.core.errors import CheckpointError, ConfigError, DataError, UnknownNameError, nearest
from assay.runs import storage
from assay.train.checkpoint_weights import checkpoint_place
from assay.train.driver import load_run
from assay.train.run import Run

__all__ = ["RUNS", "Record", "made_again", "missing", "named_run", "recorded_run", "run_folder"]

RUNS = Path("runs")
"""Where runs without a folder of their own go, and 'assay runs list' looks."""

_LISTED = "'assay runs list' shows the runs that there are"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """``recipe.json`` of a run folder.

    Attributes:
        recipe, args: the words of the command line.
        files: files of the user that it imported; they are imported again before the run is read.
        unchanged: options among the words that say what the recipe says too, by name; a list of runs leaves them out.
    """

    recipe: str
    args: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default=())
    unchanged: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Record | None:
        """The record of a run folder; None for a run started from Python.

        Raises:
            CheckpointError: it is damaged.
        """
        path = folder / "recipe.json"
        if not path.exists():
            return None
        found: Any = storage.read_json(path)
        try:
            same = tuple(found.get("unchanged", ()))
            return cls(recipe=str(found["recipe"]), args=tuple(found["args"]), files=tuple(found["files"]), unchanged=same)
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged ({error!r}); remove it, or restore the folder from a copy") from None

    def write(self, folder: Path) -> None:
        """Writes it: before ``run.toml``, so that a folder which can be resumed finds the user's files."""
        storage.write_json(folder / "recipe.json", asdict(self))


def run_folder(path: Path, known_by: Sequence[str] = ("run.toml", "metrics.jsonl")) -> Path:
    """``path``, or where it is a name that `assay runs list` prints the folder below ``runs``, if it is a run folder: one that
    holds any of the files ``known_by``.

    Raises:
        DataError: it is not; names the nearest run beside it.
    """
    path = named_run(path)
    if any((path / name).exists() for name in known_by):
        return path
    missing(path)
    if inside := runs_in(path):
        raise DataError(f"{path} is no run folder, it holds {len(inside)} runs; name one: {', '.join(map(str, inside[:8]))}")
    what = "is no run folder: it has no run.toml" if path.exists() else "does not exist"
    raise DataError(f"{path} {what}; {_LISTED}")


def runs_in(path: Path) -> list[Path]:
    """The runs of a folder that holds several, as of ``--seeds``; none where it is a run itself."""
    return [] if (path / "run.toml").exists() else sorted(found.parent for found in path.glob("*/run.toml"))


def named_run(path: Path) -> Path:
    """``path``; where nothing is there, but below ``runs``, that."""
    listed = RUNS / path
    return listed if not path.exists() and listed.is_dir() else path


def missing(path: Path) -> None:
    """Raises where ``path`` does not exist and can only be a run.

    Raises:
        UnknownNameError: a run beside it has a name much like it.
        DataError: it would lie in a folder of runs.
    """
    if path.exists() or checkpoint_place(path) is not None:
        return
    name, at, step = path.name.rpartition("@")
    beside = [p.parent.name for p in path.parent.glob("*/run.toml")]
    if at and step.isdecimal() and nearest(name, beside):
        raise UnknownNameError(f"run in {path.parent}", name, beside)
    if nearest(path.name, beside):
        raise UnknownNameError(f"run in {path.parent}", path.name, beside)
    if beside or path.parent.name == "runs":
        raise DataError(f"{path} does not exist; {_LISTED}")


def recorded_run(folder: Path) -> Run:
    """The run of a folder.

    Raises:
        CheckpointError: no run folder.
        ConfigError: a part cannot be loaded.
    """
    return made_again(folder) or load_run(folder)


def made_again(folder: Path) -> Run | None:
    """The run as its recipe gives it, where ``run.toml`` cannot say all of it, as with functions inside a recipe; else None.

    The user's files are imported first.

    Raises:
        CheckpointError, ConfigError: as `recorded_run`.
    """
    record = Record.read(folder)
    for file in record.files if record else ():
        if Path(file).exists():  # one that was moved may still be found on PYTHONPATH
            module_of(file)
    try:
        load_run(folder)
    except ConfigError:
        if record is None or not record.files:
            raise
        own, run = settle(TrainOptions, record.recipe, record.args, "assay resume")
        return own.apply_to(run)
    return None
