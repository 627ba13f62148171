"""Cells to records: each in a process of its own with limited memory, two at a time; what is done is read."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.lab import describe_machine, load_average
from assay.runs import write_json
from evidence.audits.cells import AuditCell, cell

__all__ = ["one", "run_all"]

_MEMORY = 8 << 30
"""Bytes of address space: an answer that makes its judge compute a power tower shall not take the machine's memory."""
_POLL = 0.2


def one(key: str, folder: Path) -> None:
    """Measures a cell in this process, and writes its record."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    made, before, began = cell(key), load_average(), time.monotonic()
    found = made.measure()
    write_json(
        folder / f"{key}.json",
        {
            "key": key,
            "group": made.group,
            "name": made.name,
            "made_of": made.made_of(),
            "machine": describe_machine(),
            "load": [before, load_average()],
            "seconds": round(time.monotonic() - began, 1),
            **found,
        },
    )


def run_all(wanted: Sequence[AuditCell], folder: Path, workers: int = 2) -> list[dict[str, Any]]:
    """Records of the cells, in order; one that fails is ``{key, group, name, error}``, and is tried again next time."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [made for made in wanted if "error" in _known_record(made, folder)]
    running: list[tuple[AuditCell, subprocess.Popen[str]]] = []
    errors: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append((made := waiting.pop(0), _start(made, folder)))
                print(f"{made.key} ({len(waiting)} to go)", flush=True)
            time.sleep(_POLL)
            for made, process in [r for r in running if r[1].poll() is not None]:
                running.remove((made, process))
                said = process.communicate()[1].strip().splitlines()
                if process.returncode:
                    errors[made.key] = said[-1] if said else f"exit status {process.returncode}"
    finally:
        for _, process in running:
            process.kill()
            process.wait()
    records = [_known_record(made, folder) for made in wanted]
    return [r | {"error": errors.get(r["key"], r["error"])} if "error" in r else r for r in records]


def _start(made: AuditCell, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evidence", "--audit", made.key, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _known_record(made: AuditCell, folder: Path) -> dict[str, Any]:
    """The record of a cell; without one that holds for the present code, one that says so."""
    none: dict[str, Any] = {"key": made.key, "group": made.group, "name": made.name, "error": "not measured"}
    file = folder / f"{made.key}.json"
    if not file.exists():
        return none
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return record if record["made_of"] == made.made_of() else none
