"""A tracker that writes what it is told into a file, and fails as it is told: for tests, and the processes that they start."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.measure import RolloutTable, TrackedRun, TrackerSettings


@dataclass(frozen=True, kw_only=True)
class ListTracker(TrackerSettings):
    """Appends to ``path``; on the way it hangs, fails as long as there is a file, or dies."""

    title = "list"

    path: str = ""
    hang: bool = False
    fails_while: str = ""
    dies_at: int = -1

    def open(self, run: TrackedRun) -> "Session":
        if self.fails_while and os.path.exists(self.fails_while):
            raise ConnectionError("no route to host")
        if self.hang:
            time.sleep(3600)
        return Session(self, run)


class Session:
    def __init__(self, own: ListTracker, run: TrackedRun) -> None:
        self._own, self._path = own, Path(own.path)
        self.id, self.url, self.sent = run.id or "first", "http://list", run.sent
        self._tell({"open": self.id, "name": run.name, "sent": run.sent, "settings": dict(run.settings)})

    def log(self, step: int, metrics: Mapping[str, float], rollouts: RolloutTable | None) -> None:
        if step == self._own.dies_at:
            os._exit(9)
        rows = rollouts and [dict(zip(rollouts.columns, row, strict=True)) for row in rollouts.rows]
        self._tell({"step": step, "metrics": dict(metrics), "rollouts": rows})

    def flush(self) -> None:
        self._tell({"flush": True})

    def log_report(self, path: Path) -> None:
        self._tell({"report": str(path)})

    def close(self, ending: str) -> None:
        self._tell({"close": ending})

    def _tell(self, what: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(what) + "\n")


def told(path: Path) -> list[dict[str, Any]]:
    """What it was told, flushes left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in map(json.loads, lines) if "flush" not in line]


def steps(path: Path) -> list[int]:
    return [line["step"] for line in told(path) if "step" in line]
