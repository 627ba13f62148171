"""Rollouts of a run's recorded steps, one compressed file per step: ``rollouts/step_00000025.jsonl.gz``.

They are for looking at and take no part in a run's digest. What they cost is bounded: by the caller, how many rollouts a step
has; here, the bytes of all files. Beyond that, every second recorded step goes, so that what is kept still spans the run.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.core.errors import DataError
from assay.runs import storage

__all__ = ["ITEMS", "MOST_BYTES", "RolloutFiles"]

MOST_BYTES = 64 * 2**20
"""Bytes of all files of a run."""

ITEMS = "held_out.jsonl.gz"
"""The held-out tasks, which evaluations know by their ids only."""

LEVEL = 1  # of gzip: a step waits for it; higher levels save little of such text


class RolloutFiles:
    """The folder ``rollouts`` of a run.

    Args:
        folder: a run folder.
        most_bytes: of all files; the newest step is always kept whole.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self._most = folder / "rollouts", most_bytes

    def write(self, step: int, records: Sequence[Mapping[str, Any]], of: int) -> None:
        """The records of a step, JSON-able, and how many rollouts the step had.

        Raises:
            StorageError: the disk is full or the folder not writable.
        """
        self._write(self._path(step), [{"step": step, "kept": len(records), "of": of}, *records])
        self._thin()

    def write_items(self, records: Sequence[Mapping[str, Any]]) -> None:
        """The held-out tasks, in place of those that are there.

        Raises:
            StorageError: the disk is full or the folder not writable.
        """
        self._write(self.folder / ITEMS, records)

    def steps(self) -> tuple[int, ...]:
        """The recorded steps, ascending."""
        found = (path.name.removeprefix("step_").removesuffix(".jsonl.gz") for path in self.folder.glob("step_*.jsonl.gz"))
        return tuple(sorted(int(name) for name in found if name.isdecimal()))

    def read(self, step: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """``{"step", "kept", "of"}`` of a recorded step, and its records.

        Raises:
            DataError: the step is not recorded, or its file is damaged; names it.
        """
        head, *records = self._read(self._path(step))
        return head, records

    def items(self) -> list[dict[str, Any]]:
        """The held-out tasks; none in a run of before these were written.

        Raises:
            DataError: the file is damaged; names it.
        """
        path = self.folder / ITEMS
        return self._read(path) if path.exists() else []

    def cut(self, step: int) -> None:
        """Removes what is later than ``step``, and what a killed process left half written."""
        for path in self.folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)
        for later in (s for s in self.steps() if s > step):
            self._path(later).unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step_{step:08d}.jsonl.gz"

    def _write(self, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
        """Whole or not at all after a kill. Not forced to the disk, which would take a step's time: readers tell damage."""
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        data = gzip.compress(lines.encode("utf-8", "replace"), LEVEL, mtime=0)  # equal records, equal bytes
        beside = path.with_name(f".{path.name}.tmp")
        with storage.storage_errors(path):
            path.parent.mkdir(exist_ok=True)
            beside.write_bytes(data)
            beside.replace(path)

    def _read(self, path: Path) -> list[dict[str, Any]]:
        try:
            found = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().split("\n") if line]
            if not found:
                raise ValueError("it is empty")
        except FileNotFoundError:
            known = ", ".join(map(str, self.steps())) or "none"
            raise DataError(f"{path} does not exist; recorded steps: {known}") from None
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise DataError(f"{path} is damaged: {error}; remove it to look at the other steps") from None
        return found

    def _thin(self) -> None:
        """Removes every second recorded step but the newest, until all fit."""
        while len(steps := self.steps()) > 2 and sum(self._path(s).stat().st_size for s in steps) > self._most:
            for step in steps[1:-1:2]:
                self._path(step).unlink(missing_ok=True)
