"""What was accepted and what steps took, written before anything is made of it: an exact account of an asynchronous run.

A checkpoint begins a new file, named by its step; a run that goes on from a checkpoint reads that one and all behind it. Each line is
a checksum and a JSON object, so a line that a kill cut off is noticed, and left out.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from assay.core.errors import CheckpointError
from assay.core.rollout import Rollout
from assay.core.wire import rollout_from_wire, rollout_to_wire

__all__ = ["AcceptedLog", "Taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a step learned from, and what it threw away before."""

    keys: tuple[str, ...]
    dropped: tuple[str, ...] = ()


class AcceptedLog:
    """Writes accepted groups and taken batches, and gives back those of an earlier process.

    Args:
        folder: for the files.
        step: of the checkpoint from which the run goes on; 0 at its beginning.

    Raises:
        CheckpointError: a line in the middle of a file is damaged.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._accepted: dict[str, tuple[int, list[Any]]] = {}
        self._taken: dict[int, list[Taken]] = {}
        files = [file for file in sorted(folder.glob("*.jsonl")) if int(file.stem) >= step]
        for file in files:
            self._read(file, last=file is files[-1])
        self._file = self._open(files[-1] if files else self._named(step))

    def _named(self, step: int) -> Path:
        return self._folder / f"{step:08d}.jsonl"

    def _open(self, file: Path) -> BinaryIO:
        return file.open("ab")

    def _read(self, file: Path, last: bool) -> None:
        good = 0
        for number, line in enumerate(file.read_bytes().splitlines(keepends=True), 1):
            checksum, _, body = line.partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
                if not last:
                    raise CheckpointError(f"{file}, line {number}: damaged, and later files need it; restore it from a copy")
                break
            good += len(line)
            self._remember(json.loads(body))
        if last:
            os.truncate(file, good)

    def _remember(self, record: Mapping[str, Any]) -> None:
        if "taken" in record:
            self._taken.setdefault(int(record["at"]), []).append(Taken(tuple(record["taken"]), tuple(record["dropped"])))
        else:
            self._accepted[record["key"]] = (int(record["oldest"]), record["rollouts"])

    # ---- what an earlier process wrote

    def accepted(self, key: str) -> tuple[int, tuple[Rollout, ...]] | None:
        """What was accepted under a key: publication that sampled the oldest token, and rollouts; given once."""
        if key not in self._accepted:
            return None
        oldest, rollouts = self._accepted.pop(key)
        return oldest, tuple(rollout_from_wire(wire) for wire in rollouts)

    def taken(self, version: int) -> Taken | None:
        """The next that a step took or threw away whose newest weights were those; each given once."""
        found = self._taken.get(version)
        return found.pop(0) if found else None

    # ---- what this process writes

    def write_accepted(self, key: str, oldest: int, rollouts: Sequence[Rollout]) -> None:
        """A group was accepted, whose oldest token was sampled by the weights of that publication."""
        self._write({"key": key, "oldest": oldest, "rollouts": [rollout_to_wire(r) for r in rollouts]})

    def write_taken(self, version: int, taken: Taken) -> None:
        """A step is about to learn from a batch."""
        self._write({"at": version, "taken": taken.keys, "dropped": taken.dropped})

    def _write(self, record: Mapping[str, Any]) -> None:
        body = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        self._file.write(b"%08x " % zlib.crc32(body) + body)
        self._file.flush()  # to the system: a kill loses nothing, a failure of power the end of the file

    def begin(self, step: int) -> None:
        """A checkpoint of that step is being written: what comes is not in it."""
        self._file.close()
        self._file = self._open(self._named(step))

    def remove_before(self, step: int) -> None:
        """Removes files that no checkpoint from that step on needs."""
        for file in self._folder.glob("*.jsonl"):
            if int(file.stem) < step:
                file.unlink()

    def close(self) -> None:
        """Nothing is written any more."""
        self._file.close()
