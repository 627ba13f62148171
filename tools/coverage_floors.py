"""Compare measured coverage with the floor of each package.

Floors stand in `pyproject.toml`, `[tool.assay.coverage-floors]`: path prefix → least percentage of lines and
branches. A file belongs to the longest prefix that it lies under. The one exclusion list is next to it:
`[tool.coverage.run] omit`.
"""

import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass
class Tally:
    """Counts of one prefix and of the files in it that are not fully covered."""

    floor: float
    lines: int = 0
    lines_hit: int = 0
    branches: int = 0
    branches_hit: int = 0
    files: int = 0

    @property
    def percent(self) -> float:
        """Covered lines and branches over all of both, in percent; 100 where there are none."""
        total = self.lines + self.branches
        return 100.0 * (self.lines_hit + self.branches_hit) / total if total else 100.0

    @property
    def branch_percent(self) -> float:
        """Covered over all branches, in percent; 100 where there are none."""
        return 100.0 * self.branches_hit / self.branches if self.branches else 100.0

    @property
    def low(self) -> bool:
        """Whether either percentage is below the floor."""
        return min(self.percent, self.branch_percent) < self.floor

    def add(self, summary: Mapping[str, int]) -> None:
        """Add one file's `summary` as coverage's JSON report gives it."""
        self.files += 1
        self.lines += summary["num_statements"]
        self.lines_hit += summary["covered_lines"]
        self.branches += summary["num_branches"]
        self.branches_hit += summary["covered_branches"]


def owner(path: str, floors: Mapping[str, float]) -> str | None:
    """Return the longest of the prefixes `floors` that `path` lies under, or None."""
    parents = {str(p) for p in (PurePosixPath(path), *PurePosixPath(path).parents)}
    parents |= {p.removesuffix(".py") for p in parents}
    return max((f for f in floors if f in parents), key=len, default=None)


def tally(report: Mapping[str, Any], floors: Mapping[str, float]) -> dict[str, Tally]:
    """Return the counts of every prefix, from coverage's JSON `report`.

    Raises:
        SystemExit: a measured file lies under no prefix, or nothing was measured.
    """
    tallies = {prefix: Tally(floor) for prefix, floor in sorted(floors.items())}
    for path, entry in report["files"].items():
        prefix = owner(path, floors)
        if prefix is None:
            sys.exit(f"{path} lies under no coverage floor: name its package in pyproject.toml")
        tallies[prefix].add(entry["summary"])
    if not report["files"]:
        sys.exit("no file was measured: run `make test COV=1` first")
    return tallies


def show_gaps(report: Mapping[str, Any], floors: Mapping[str, float], low: set[str]) -> None:
    """Print the missing lines and branches of the files under the prefixes `low`."""
    for path, entry in sorted(report["files"].items()):
        if owner(path, floors) in low and (entry["missing_lines"] or entry["missing_branches"]):
            branches = " ".join(f"{a}->{b}" for a, b in entry["missing_branches"])
            lines = " ".join(map(str, entry["missing_lines"]))
            print(f"  {path}: lines {lines or '-'}; branches {branches or '-'}")


def main(report_path: str, project_path: str = "pyproject.toml") -> int:
    """Print the table; return 1 where a package is below its floor, else 0."""
    project = tomllib.loads(Path(project_path).read_text(encoding="utf-8"))
    floors: dict[str, float] = project["tool"]["assay"]["coverage-floors"]
    report = json.loads(Path(report_path).read_text(encoding="utf-8"))
    tallies = tally(report, floors)
    print(f"{'package':<32}{'files':>6}{'lines':>8}{'branches':>10}{'both %':>9}{'branch %':>10}{'floor':>7}")
    for prefix, counts in tallies.items():
        mark = "  LOW" if counts.low else ""
        print(
            f"{prefix:<32}{counts.files:>6}{counts.lines:>8}{counts.branches:>10}{counts.percent:>9.2f}"
            f"{counts.branch_percent:>10.2f}{counts.floor:>7g}{mark}"
        )
    low = {prefix for prefix, counts in tallies.items() if counts.low}
    show_gaps(report, floors, low)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
