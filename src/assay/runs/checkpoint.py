"""Checkpoints: a fresh folder, digested, renamed, then ``LATEST`` advanced; the last few are kept."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assay.core.errors import CheckpointError
from assay.runs import storage

__all__ = ["file_digests", "latest", "load_state", "checkpoint_at", "save"]

KEEP = 2
DIGITS = 7
FORMAT = 2


def save(folder: Path, step: int, state: Mapping[str, Any], fill: Callable[[Path], None], keep: int = KEEP) -> Path:
    """Writes checkpoint ``step`` under ``folder/checkpoints`` and advances ``folder/LATEST``.

    Args:
        folder: the run folder.
        step: global step, the checkpoint's name.
        state: JSON-able state of everything but the learner.
        fill: writes the learner's files into the folder that it is given.
        keep: how many of the newest checkpoints stay, this one among them; 0 for all.

    Raises:
        StorageError: nothing changed; the previous checkpoint is intact.
    """
    path = folder / "checkpoints" / f"step_{step:0{DIGITS}d}"
    if path.exists() and latest_name(folder) == path.name:
        return path  # complete and current: the end of the last stage, or where a resume went on from
    with storage.storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with storage.fresh_folder(path) as beside:
        (beside / "learner").mkdir()
        fill(beside / "learner")
        storage.write_json(beside / "state.json", {"format": FORMAT, **state})
        storage.write_json(beside / "digests.json", file_digests(beside))
    storage.write_text(folder / "LATEST", path.name + "\n")
    for old in sorted(path.parent.glob("step_*"))[:-keep] if keep else ():
        if old.name < path.name:
            shutil.rmtree(old, ignore_errors=True)
    return path


def latest_name(folder: Path) -> str | None:
    """Name of the checkpoint that ``LATEST`` points to; None before the first."""
    pointer = folder / "LATEST"
    return pointer.read_text(encoding="utf-8", errors="replace").strip() if pointer.exists() else None


def latest(folder: Path) -> Path | None:
    """The newest complete checkpoint, verified against its digests; None before the first.

    Raises:
        CheckpointError: it is missing or damaged; names the file and the older checkpoint to go back to.
    """
    name = latest_name(folder)
    if name is None:
        _refuse_lost_pointer(folder)
        return None
    if not re.fullmatch(rf"step_\d{{{DIGITS},}}", name):
        raise CheckpointError(f"{folder / 'LATEST'} holds {name[:40]!r}, which names no checkpoint; {_others(folder, name)}")
    path = folder / "checkpoints" / name
    if not path.is_dir():
        raise CheckpointError(f"{folder / 'LATEST'} names {name!r}, but {path} does not exist; {_others(folder, name)}")
    return _verify_checkpoint(folder, path)


def checkpoint_at(folder: Path, step: int) -> Path:
    """The checkpoint of a step, verified against its digests.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    path = folder / "checkpoints" / f"step_{step:0{DIGITS}d}"
    if not path.is_dir():
        there = [str(int(p.name.removeprefix("step_"))) for p in sorted((folder / "checkpoints").glob("step_*"))]
        raise CheckpointError(
            f"run {folder} has no checkpoint of step {step}; it has {', '.join(there) or 'none'} "
            f"(--keep-checkpoints says how many are kept: the last {KEEP} where it does not)"
        )
    return _verify_checkpoint(folder, path)


def _verify_checkpoint(folder: Path, path: Path) -> Path:
    name = path.name
    try:
        wanted: dict[str, str] = dict(storage.read_json(path / "digests.json"))
    except (CheckpointError, TypeError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path} is damaged: {error}; {_others(folder, name)}") from None
    found = file_digests(path)
    wrong = sorted(k for k in wanted.keys() | found.keys() if wanted.get(k) != found.get(k) and k != "digests.json")
    if wrong:
        told = ", ".join(wrong)
        raise CheckpointError(f"checkpoint {path} is damaged: {told} differ from digests.json; {_others(folder, name)}")
    return path


def _refuse_lost_pointer(folder: Path) -> None:
    """A kill before the first ``LATEST`` leaves one checkpoint at most, and no finished run."""
    found = sorted(p.name for p in (folder / "checkpoints").glob("step_*"))
    if len(found) > 1 or (folder / "done.json").exists():
        raise CheckpointError(f"{folder / 'LATEST'} is missing, but the run has checkpoints; {_others(folder, '')}")


def load_state(path: Path, run: str, data: Mapping[str, str] | None = None, before: Callable[[], str] | None = None) -> Any:
    """The JSON state of a checkpoint.

    Args:
        path: the checkpoint.
        run: identity of the run that it must belong to.
        data: digests of the files that the run learns from, by name.
        before: gives the identity that checkpoints of before have; asked where the other is not theirs.

    Raises:
        CheckpointError: it belongs to another run, a file has changed, or it has another format.
    """
    state = storage.read_json(path / "state.json")
    if state.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {path} has format {state.get('format')}, this version of assay reads {FORMAT}")
    if state["run"] != run and (before is None or state["run"] != before()):
        raise CheckpointError(
            f"checkpoint {path} belongs to another run: its settings are not those of run.toml; put back the checkpoint or the "
            "run.toml that belong together (only steps may change, by 'assay resume --steps')"
        )
    for file, digest in (data or {}).items():
        if state.get("data", {}).get(file) != digest:
            raise CheckpointError(
                f"{file} is not the file that the run began with: put that one back to go on with checkpoint {path}, or start a "
                "new run on this one"
            )
    return state


def file_digests(folder: Path) -> dict[str, str]:
    """Relative path to blake2b of each file below ``folder``."""
    out: dict[str, str] = {}
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        out[file.relative_to(folder).as_posix()] = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    return out


def _others(folder: Path, name: str) -> str:
    others = [p.name for p in sorted((folder / "checkpoints").glob("step_*")) if p.name != name]
    if not others:
        return "no other checkpoint is there: start the run again"
    return f"write {others[-1]!r} into {folder / 'LATEST'} to go back to it"
