"""The run's own record: one JSON object per line, in six files, each line with its step.

``metrics`` one line a step, ``evals`` evaluation items, ``rollouts`` sampled rollouts, ``row_history`` what a step practised,
``collected`` rows kept for a later stage, ``events`` what happened. A resume cuts every file back to the checkpoint's step, so
all but the last of a run that was killed equal those of one that was not. What it finds damaged it cuts too, and says so in
``events``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from assay.core.canon import plain
from assay.core.errors import CheckpointError
from assay.runs import storage

__all__ = ["FILES", "Journal"]

FILES = ("metrics", "evals", "rollouts", "row_history", "collected", "events")

SHOWN = 5
"""Line numbers that an event names."""


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
        path = self._path(name)
        with storage.storage_errors(path):
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
            with storage.storage_errors(self._path(name)):
                file.flush()
                os.fsync(file.fileno())

    def cut(self, step: int) -> list[str]:
        """Drops every line later than ``step``, and every line that is no record; an event tells of the latter, file by file.

        Returns:
            What the events tell.
        """
        self.close()
        lines = {name: _lines(self._path(name)) for name in FILES}
        self._keep("events", lines["events"], step)
        # Told before it is done: a kill in between leaves the damage, and the next resume tells of it once more.
        told = [f"{name}.jsonl: {damage}" for name in FILES if (damage := _damage(lines[name]))]
        for line in told:
            self.event(step, "damaged", line)
        self.sync()
        for name in FILES[:-1]:
            self._keep(name, lines[name], step)
        return told

    def missing(self, step: int) -> list[str]:
        """Which lines up to a checkpoint's step are not there, in words: each step has one of metrics, each evaluation that these
        name has its items, and the first step of each stage that sampled has rollouts. Of a file with damaged lines `cut` tells.
        """
        lines = {name: _lines(self._path(name)) for name in ("metrics", "evals", "rollouts")}
        return [] if any(map(_damage, lines.values())) else _missing_lines(lines, step)

    def _keep(self, name: str, lines: list[bytes], step: int) -> None:
        if self._path(name).exists():
            kept = [line.decode() + "\n" for line in lines if (record := _record(line)) and record["step"] <= step]
            storage.write_text(self._path(name), "".join(kept))

    def newest(self, kind: str) -> str:
        """Message of the newest event of a kind; empty when there is none."""
        found = [record for line in _lines(self._path("events")) if (record := _record(line))]
        return next((str(r["message"]) for r in reversed(found) if r.get("kind") == kind), "")

    def records(self, name: str) -> list[dict[str, Any]]:
        """All lines of ``name``.jsonl.

        Raises:
            CheckpointError: one is no record; names file and line.
        """
        out: list[dict[str, Any]] = []
        for number, line in enumerate(_lines(self._path(name)), 1):
            record = _record(line)
            if record is None:
                raise CheckpointError(f"{self._path(name)}, line {number}, is damaged: resume the run from its last checkpoint")
            out.append(record)
        return out

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def close(self) -> None:
        """Closes the files. What cannot be written any more is lost: a resume cuts the files back to the checkpoint anyway."""
        for file in self._open.values():
            with suppress(OSError):
                file.close()
        self._open.clear()


def _lines(path: Path) -> list[bytes]:
    """Lines of a file, without their ends; none of a file that is not there.

    Only a newline ends one: text cut where Python sees an end of line would part records that hold such characters (U+2028).
    """
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return lines[:-1] if lines and not lines[-1] else lines


def _record(line: bytes) -> dict[str, Any] | None:
    """A line's record; None of a line that a kill tore apart, or that was damaged since."""
    try:
        record = json.loads(line.decode())
        return record if isinstance(record["step"], int) else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _damage(lines: list[bytes]) -> str:
    """What is wrong with a file's lines, in words; empty when nothing is."""
    bad = {number: len(line) for number, line in enumerate(lines, 1) if _record(line) is None}
    if not bad:
        return ""
    shown = ", ".join(map(str, list(bad)[:SHOWN])) + (", ..." if len(bad) > SHOWN else "")
    what = "1 line is no record and was cut" if len(bad) == 1 else f"{len(bad)} lines are no records and were cut"
    return f"{what}: {sum(bad.values())} bytes, line {shown} of {len(lines)}"


def _missing_lines(lines: Mapping[str, Sequence[bytes]], step: int) -> list[str]:
    """As `Journal.missing`; the run's digest is then another than that of an undamaged run."""
    told = [r for line in lines["metrics"] if (r := _record(line)) and r["step"] <= step]
    metrics = {r["step"]: r.get("metrics", {}) for r in told}
    stages = [r.get("stage") for r in told]
    first = {
        r["step"] for r, stage, before in zip(told, stages, [None, *stages], strict=False) if stage != before or r["step"] == 1
    }
    sampled = {at for at in first if metrics[at].get("rollouts/sampled")}
    evaluated = {at for at, values in metrics.items() if any(str(name).startswith("eval/") for name in values)}
    there = {name: {r["step"] for line in lines[name] if (r := _record(line))} for name in ("evals", "rollouts")}
    found = {
        "metrics": sorted(set(range(1, step + 1)) - metrics.keys()),
        "evals": sorted(evaluated - there["evals"]),
        "rollouts": sorted(sampled - there["rollouts"]),
    }
    return [
        f"{name}.jsonl: no line of {len(steps)} steps up to the checkpoint ({', '.join(map(str, steps[:SHOWN]))}"
        f"{', ...' if len(steps) > SHOWN else ''}); they cannot be made again, so the run's digest will be another"
        for name, steps in found.items()
        if steps
    ]
