"""The run's own record: one JSON object per line, in four files, each line with its step.

``metrics`` one line a step, ``evals`` evaluation items, ``rollouts`` sampled attempts, ``events`` what happened. A resume cuts
every file back to the checkpoint's step, so the first three of a run that was killed equal those of one that was not.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from assay.core.canon import plain
from assay.train import storage

__all__ = ["FILES", "Journal"]

FILES = ("metrics", "evals", "rollouts", "events")


class Journal:
    """Appends records to the JSONL files of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[str, IO[str]] = {}

    def append(self, name: str, record: dict[str, Any]) -> None:
        """One line in ``name``.jsonl, flushed to the operating system.

        Raises:
            StorageError: the disk is full.
        """
        path = self.folder / f"{name}.jsonl"
        with storage.guarded(path):
            storage.on_write(f"append:{name}")
            if name not in self._open:
                self._open[name] = path.open("a", encoding="utf-8")
            file = self._open[name]
            file.write(json.dumps(plain(record), sort_keys=True, ensure_ascii=False) + "\n")
            file.flush()
        storage.on_write(f"journal:{name}")

    def event(self, step: int, kind: str, message: str) -> None:
        """A line in ``events.jsonl``."""
        self.append("events", {"step": step, "kind": kind, "message": message})

    def sync(self) -> None:
        """Forces all lines to the disk: called before a checkpoint claims them."""
        for name, file in self._open.items():
            with storage.guarded(self.folder / f"{name}.jsonl"):
                file.flush()
                os.fsync(file.fileno())

    def cut(self, step: int) -> None:
        """Drops every line later than ``step``, and a torn last line."""
        self.close()
        for name in FILES:
            path = self.folder / f"{name}.jsonl"
            if path.exists():
                kept = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if _upto(line, step)]
                storage.write_text(path, "".join(line + "\n" for line in kept))

    def newest(self, kind: str) -> str:
        """Message of the newest event of a kind; empty when there is none."""
        path = self.folder / "events.jsonl"
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        records = [json.loads(line) for line in lines if _upto(line, sys.maxsize)]
        return next((str(r["message"]) for r in reversed(records) if r.get("kind") == kind), "")

    def close(self) -> None:
        """Closes the files. What cannot be written any more is lost: a resume cuts the files back to the checkpoint anyway."""
        for file in self._open.values():
            with suppress(OSError):
                file.close()
        self._open.clear()


def _upto(line: str, step: int) -> bool:
    try:
        return int(json.loads(line)["step"]) <= step
    except (json.JSONDecodeError, KeyError, TypeError, ValueError):
        return False  # a line that the kill tore apart
