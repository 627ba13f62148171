"""What was accepted and what steps took, written before anything is made of it: an exact account of an asynchronous run.

A checkpoint begins a new file, named by its step; a run that goes on from a checkpoint reads that one and all behind it. Each
line is a checksum and a JSON object, so a line that a kill cut off is noticed, and left out.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from assay.core.errors import AssayError, CheckpointError, StorageError
from assay.core.rollout import Rollout
from assay.core.wire import rollout_from_wire, rollout_to_wire
from assay.runs import storage

__all__ = ["AcceptedLog", "LogEndError", "StepGroups"]


@dataclass(frozen=True, slots=True)
class StepGroups:
    """What a step learned from, and what it threw away before."""

    keys: tuple[str, ...]
    dropped: tuple[str, ...] = ()


class LogEndError(AssayError):
    """A replay has come to the end of its log."""


class AcceptedLog:
    """Writes accepted groups and taken batches, and gives back those of an earlier process.

    Args:
        folder: for the files.
        keep: keep the files of steps that no checkpoint needs any more, as a replay of the whole run does.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> log = AcceptedLog(folder)
    >>> log.write_taken(3, StepGroups(("s2/0",), dropped=("s1/4",)))
    >>> log.close()
    >>> again = AcceptedLog(folder)
    >>> again.read(0)
    >>> again.pop_taken(3), again.pop_taken(3)
    (StepGroups(keys=('s2/0',), dropped=('s1/4',)), None)
    """

    def __init__(self, folder: Path, keep: bool = False) -> None:
        self._folder, self._keep = folder, keep
        self._accepted: dict[str, tuple[int, list[Any]]] = {}
        self._taken: dict[int, list[StepGroups]] = {}
        self._file: BinaryIO | None = None

    def read(self, step: int) -> None:
        """Reads what earlier processes wrote from the checkpoint of that step on, and goes on with it in one file: what lies in
        later ones was written for checkpoints that are gone, and will be written again.

        Raises:
            CheckpointError: a line is damaged that is not the last one of the last file.
        """
        files, whole = self._files(step), list[bytes]()
        for file in files:
            whole += self._read(file, last=file is files[-1])
        self.close()
        if files:
            first = self._step_path(step)
            storage.write_bytes(first, b"".join(whole))
            for file in files:
                if file != first:
                    file.unlink()
            self._file = first.open("ab")

    def _step_path(self, step: int) -> Path:
        return self._folder / f"{step:08d}.jsonl"

    def _files(self, step: int) -> list[Path]:
        return [file for file in sorted(self._folder.glob("*.jsonl")) if int(file.stem) >= step]

    def _read(self, file: Path, last: bool) -> list[bytes]:
        """The lines of a file that are whole."""
        lines = file.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            checksum, _, body = line.partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
                if not last or number < len(lines):
                    raise CheckpointError(f"{file}, line {number}: damaged, and later ones need it; restore it from a copy")
                return lines[: number - 1]
            self._remember(json.loads(body))
        return lines

    def _remember(self, record: Mapping[str, Any]) -> None:
        if "taken" in record:
            taken = StepGroups(tuple(record["taken"]), tuple(record["dropped"]))
            known = self._taken.setdefault(int(record["at"]), [])
            if taken not in known:  # a kill while files were joined leaves lines twice
                known.append(taken)
        elif "back" in record:
            self._taken[int(record["at"])].pop()
        else:
            self._accepted[record["key"]] = (int(record["oldest"]), record["rollouts"])

    # ---- what an earlier process wrote

    def pop_accepted(self, key: str) -> tuple[int, tuple[Rollout, ...]] | None:
        """What was accepted under a key: publication that sampled the oldest token, and rollouts; given once."""
        if key not in self._accepted:
            return None
        oldest, rollouts = self._accepted.pop(key)
        return oldest, tuple(rollout_from_wire(wire) for wire in rollouts)

    def pop_taken(self, version: int) -> StepGroups | None:
        """The next that a step took or threw away whose newest weights were those; each given once."""
        found = self._taken.get(version)
        return found.pop(0) if found else None

    # ---- what this process writes

    def write_accepted(self, key: str, oldest: int, rollouts: Sequence[Rollout]) -> None:
        """A group was accepted, whose oldest token was sampled by the weights of that publication."""
        self._write({"key": key, "oldest": oldest, "rollouts": [rollout_to_wire(r) for r in rollouts]})

    def write_taken(self, version: int, taken: StepGroups) -> None:
        """A step is about to learn from a batch."""
        self._write({"at": version, "taken": taken.keys, "dropped": taken.dropped})

    def write_put_back(self, version: int, keys: Sequence[str]) -> None:
        """The batch that was taken last could not be scored, and waits again."""
        self._write({"at": version, "back": list(keys)})

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._file is None:
            self.begin(0)
        assert self._file is not None
        body = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        try:
            self._file.write(b"%08x " % zlib.crc32(body) + body)
            self._file.flush()  # to the system: a kill loses nothing, a failure of power the end of the file
        except OSError as error:
            raise StorageError(f"{self._file.name}: {error.strerror or error}; make room, and resume the run") from error

    def begin(self, step: int) -> None:
        """A checkpoint of that step is being written: what comes is not in it. The file of that step begins anew, with what
        earlier processes wrote and nobody has asked for yet, unless it is the one that is written to.
        """
        place = self._step_path(step)
        if self._file is not None and self._file.name == str(place):
            return
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = place.open("wb")
        for key, (oldest, rollouts) in self._accepted.items():
            self._write({"key": key, "oldest": oldest, "rollouts": rollouts})
        for version, batches in self._taken.items():
            for taken in batches:
                self.write_taken(version, taken)

    def remove_before(self, step: int) -> None:
        """Removes files that no checkpoint from that step on needs."""
        for file in self._folder.glob("*.jsonl"):
            if int(file.stem) < step and not self._keep:
                file.unlink()

    def close(self) -> None:
        """Nothing is written until `read` or `begin`."""
        if self._file is not None:
            self._file.close()
        self._file = None
