"""The folder in which a curation keeps what it has done so far, so that one that was killed goes on.

Every part is written beside its place and renamed into it: it is there whole, or not at all.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.curate.step import Decision, Verdict

__all__ = ["StoredNotes", "WorkFolder", "write_whole"]


class WorkFolder:
    """Parts on disk, by stage and number.

    Args:
        folder: made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, stage: str, part: int) -> bool:
        """Whether a part was finished."""
        return self.place(stage, part).exists()

    def place(self, stage: str, part: int) -> Path:
        """The folder of a part."""
        return self.folder / stage / f"{part:06}"

    @contextmanager
    def making(self, stage: str, part: int) -> Generator[Path]:
        """A folder to fill; when the block ends without an error it is the part."""
        place = self.place(stage, part)
        fresh = place.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)  # of a process that was killed
        fresh.mkdir(parents=True)
        yield fresh
        os.replace(fresh, place)

    def scratch(self, step: int) -> Path:
        """A folder of a step's own."""
        place = self.folder / "scratch" / str(step)
        place.mkdir(parents=True, exist_ok=True)
        return place

    def count(self, stage: str) -> int:
        """How many parts of a stage are finished, from 0 without a gap."""
        part = 0
        while self.has(stage, part):
            part += 1
        return part

    def clear(self) -> None:
        """Throws every part away."""
        for place in self.folder.iterdir():
            if place.is_dir():
                shutil.rmtree(place)
            elif place.name != "lock":
                place.unlink()

    @contextmanager
    def alone(self) -> Generator[None]:
        """Refuses a second process in the same folder.

        Raises:
            ConfigError: another one works here.
        """
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigError(
                    f"another curation is writing to {self.folder.parent}; wait for it, or name another folder"
                ) from None
            yield


@contextmanager
def write_whole(path: Path) -> Generator[Path]:
    """A path to write to; renamed to ``path`` when the block ends without an error."""
    fresh = path.with_name(path.name + ".new")
    yield fresh
    os.replace(fresh, path)


# ---- verdicts and decisions -------------------------------------------------------------------------------------------


def put_verdicts(folder: Path, step: int, name: str, positions: NDArray[np.int64], verdicts: Sequence[Verdict | None]) -> None:
    """Keeps the verdicts of a step on a chunk.

    Raises:
        DataError: evidence or scores that are not JSON, or a score with a name that is taken; names the step.
    """
    drops: list[list[Any]] = []
    scores: list[list[Any]] = []
    for position, verdict in zip(positions.tolist(), verdicts, strict=True):
        if verdict is None:
            continue
        if verdict.reason:
            drops.append([position, verdict.reason, verdict.evidence])
        if verdict.scores:
            _check_scores(name, verdict.scores)
            scores.append([position, verdict.scores])
    (folder / f"{step}.verdicts.json").write_text(_json(name, {"drops": drops, "scores": scores}), encoding="ascii")


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"the step {name!r} gave evidence or scores that are not JSON: {error}") from None


def verdicts_in(folder: Path, step: int) -> dict[str, list[list[Any]]]:
    """The verdicts that were kept: ``drops`` and ``scores``."""
    return json.loads((folder / f"{step}.verdicts.json").read_text(encoding="ascii"))


def put_arrays(folder: Path, step: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Keeps what a step noted of a chunk."""
    for name, array in arrays.items():
        np.save(folder / f"{step}.{name}.npy", array)


def put_decisions(folder: Path, name: str, decisions: Sequence[Decision]) -> None:
    """Keeps what a step decided.

    Raises:
        DataError: details that are not JSON, or a score with a name that is taken; names the step.
    """
    for number, decision in enumerate(decisions):
        _check_scores(name, decision.scores)
        arrays = {f"evidence.{name}": values for name, values in decision.evidence.items()}
        arrays |= {f"scores.{name}": values for name, values in decision.scores.items()}
        if decision.of is not None:
            arrays["of"] = decision.of
        np.savez(folder / f"{number}.npz", allow_pickle=False, rows=decision.rows, **arrays)
        if decision.details:
            (folder / f"{number}.details.json").write_text(_json(name, list(decision.details)), encoding="ascii")
    (folder / "reasons.json").write_text(json.dumps([d.reason for d in decisions]), encoding="ascii")


def _check_scores(name: str, scores: Mapping[str, Any]) -> None:
    if "id" in scores:
        raise DataError(f"the step {name!r} gave a score called 'id', which is the row's own; name it otherwise")


def decisions_in(folder: Path) -> list[Decision]:
    """What a step decided."""
    found: list[Decision] = []
    for number, reason in enumerate(json.loads((folder / "reasons.json").read_text(encoding="ascii"))):
        with np.load(folder / f"{number}.npz") as arrays:
            parts: dict[str, dict[str, NDArray[Any]]] = {"evidence": {}, "scores": {}}
            for name in arrays.files:
                kind, _, rest = name.partition(".")
                if rest:
                    parts[kind][rest] = arrays[name]
            of = arrays["of"] if "of" in arrays.files else None
            path = folder / f"{number}.details.json"
            details = tuple(json.loads(path.read_text(encoding="ascii"))) if path.exists() else ()
            found.append(Decision(reason, arrays["rows"], of, parts["evidence"], parts["scores"], details))
    return found


@dataclass(frozen=True, slots=True)
class StoredNotes:
    """What a step noted, on disk: the `Seen` of a pipeline.

    Attributes:
        folders: of the chunks of its pass, in order.
        step: its number.
        positions, alive, rank: as in `Seen`.
    """

    folders: Sequence[Path]
    step: int
    positions: NDArray[np.int64]
    alive: NDArray[np.bool_]
    rank: NDArray[np.int64]

    def column(self, name: str) -> NDArray[Any]:
        """All chunks' arrays of a name, one after another."""
        return np.concatenate(list(self.parts(name)))

    def parts(self, name: str) -> Iterator[NDArray[Any]]:
        """The chunks' arrays of a name, mapped from disk."""
        for folder in self.folders:
            path = folder / f"{self.step}.{name}.npy"
            array = np.load(path, mmap_mode="r") if path.stat().st_size > 4096 else np.load(path)
            yield array
