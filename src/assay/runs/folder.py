"""Which files make a folder a run's: a new one is claimed, one that could not begin is released, leftovers go."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assay.core.config import dumps_toml, to_dict
from assay.core.errors import ConfigError
from assay.core.rowfile import rows_beside
from assay.runs import lock, storage
from assay.runs.best_model import cut_best_models
from assay.runs.rollout_files import RolloutFiles

__all__ = ["SETTINGS", "RunFiles", "check_unused", "failed_at_first", "release_folder", "remove_leftovers", "write_settings"]

SETTINGS = "run.toml"
"""The settings of a run; a folder that has it can be resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """What a kind of run writes into its folder before its first checkpoint.

    Attributes:
        claim: files that a run has before it has done anything; without `SETTINGS` they are leftovers of a killed process.
        before: files that it may have besides before its first checkpoint.
        folders: folders likewise.
    """

    claim: tuple[str, ...] = (SETTINGS,)
    before: tuple[str, ...] = ()
    folders: tuple[str, ...] = ("checkpoints",)


def check_unused(folder: Path, files: RunFiles) -> None:
    """Raises ConfigError when ``folder`` holds a run, or anything else that a new run would write beside, or can be no folder."""
    _check_place(folder)
    if (folder / SETTINGS).exists():
        raise ConfigError(f"{folder} holds a run already: go on with it by 'assay resume {folder}', or choose another folder")
    leftovers = {lock.LOCK, *files.claim, *_rows_in(folder)}
    leftovers |= {f".{name}.tmp" for name in leftovers}
    if folder.exists() and (not folder.is_dir() or any(p.name not in leftovers for p in folder.iterdir())):
        raise ConfigError(f"{folder} is not an empty folder; choose another one")


def _check_place(folder: Path) -> None:
    """Refuses a path that no folder can have: below a file, with too long a name, or on a file system that cannot be written."""
    reason = ""
    try:
        folder.stat()
    except FileNotFoundError:
        above = next((p for p in folder.absolute().parents if p.exists()), Path("/"))
        if os.statvfs(above).f_flag & os.ST_RDONLY:
            reason = os.strerror(errno.EROFS)
    except PermissionError:
        pass  # said when it is to be made
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    if reason:
        raise ConfigError(f"{folder} is no place for a run: {reason}; choose another folder")


def failed_at_first(folder: Path) -> bool:
    """Whether a run ended with an error before its first evaluation was whole, so that nothing is lost with it."""
    try:
        if (folder / "metrics.jsonl").exists() or (folder / "LATEST").exists():
            return False
        return '"kind": "error"' in (folder / "events.jsonl").read_text(encoding="utf-8")
    except (OSError, ValueError):  # no such file, or a path that can be none
        return False


def release_folder(folder: Path, files: RunFiles, made: Sequence[Path] = ()) -> None:
    """Frees a folder whose run could never begin, unless it has a checkpoint: what the run had put there goes with it.

    Args:
        folder: of the run.
        files: what such a run writes.
        made: folders that were not there before, the innermost first: those that are then empty go too.
    """
    if (folder / "LATEST").exists():
        return
    for name in (*files.claim, *files.before, *_rows_in(folder)):
        storage.remove(folder / name)
    for name in files.folders:
        shutil.rmtree(folder / name, ignore_errors=True)
    if folder in made and [p.name for p in folder.iterdir()] == [lock.LOCK]:
        storage.remove(folder / lock.LOCK)
    for path in made:
        with suppress(OSError):  # something else stands there by now
            path.rmdir()


def write_settings(folder: Path, settings: object) -> None:
    """Writes a spec as `SETTINGS`, and beside it the rows of parts that have many; those of settings of before go.

    Args:
        folder: a run folder.
        settings: a frozen dataclass, as `assay.core.to_dict` takes it.

    Raises:
        ConfigError: a part of it cannot be named.
        StorageError: the disk is full.
    """
    with rows_beside(folder, storage.write_bytes) as store:
        text = dumps_toml(to_dict(settings))
    storage.write_text(folder / SETTINGS, text)
    for path in (*folder.glob("rows-*.jsonl"), *folder.glob("rows-*.npz")):
        if path.with_suffix(".jsonl").name not in store.names:
            storage.remove(path)


def remove_leftovers(folder: Path, checkpoint: Path | None) -> None:
    """Removes what a killed process left half written, and checkpoints, best models and rollouts later than it."""
    for pattern in (".*.tmp", "checkpoints/.*.tmp"):
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    RolloutFiles(folder).cut(int(checkpoint.name.removeprefix("step_")) if checkpoint else -1)
    cut_best_models(folder, int(checkpoint.name.removeprefix("step_")) if checkpoint else -1)
    for path in folder.glob("checkpoints/step_*"):
        if checkpoint is None or path.name > checkpoint.name:
            shutil.rmtree(path, ignore_errors=True)


def _rows_in(folder: Path) -> list[str]:
    """Files of rows, and those of a process that was killed over one."""
    return [path.name.removeprefix(".").removesuffix(".tmp") for of in ("rows-*", ".rows-*.tmp") for path in folder.glob(of)]
