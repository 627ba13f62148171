"""``assay selftest``: what assay promises, tried on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import grid, note, show
from assay.core.errors import ConfigError, UnknownNameError
from assay.runs.storage import write_json

if TYPE_CHECKING:
    from assay.selftest.run_parts_in_turn import SelftestOutcome

__all__ = ["selftest_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestOptions:
    """Tests this machine in a few minutes: agreement of engines and learner, proof of weights, resume after a kill,
    throughput, isolation. Exit code 1 if a part failed; a missing device or tool is not a failure.

    Attributes:
        gpus: CUDA devices that may be used; parts that need more are left out.
        only: run only these parts: names, or beginnings of names such as mismatch; an unknown name lists all.
        json: print the result as JSON.
        out: also write it to this file, after each part, so that partial results are kept.
    """

    gpus: int = field(default=0, metadata={"arg": {"metavar": "N"}})
    only: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "[PART ...]"}})
    json: bool = False
    out: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})

    def __post_init__(self) -> None:
        if self.gpus < 0:
            raise ConfigError(f"--gpus {self.gpus}: give the number of CUDA devices that may be used, 0 for none")


def selftest_command(args: list[str]) -> int:
    """``assay selftest [--gpus N] [--only PART ...] [--json] [--out FILE]``."""
    own = parse(SelftestOptions, args, "assay selftest")
    from assay.selftest.all_parts import PARTS
    from assay.selftest.run_parts_in_turn import FAILED, report, run_parts

    lost = [word for word in own.only if not any(p.name.startswith(word) for p in PARTS)]
    if lost:
        raise UnknownNameError("part of the self-test", lost[0], [p.name for p in PARTS])
    parts = [p for p in PARTS if not own.only or p.name.startswith(own.only)]
    done: list[SelftestOutcome] = []
    stopped = False
    _keep(own.out, report(done))  # a file that cannot be written is said now
    try:
        for outcome in run_parts(parts, own.gpus, note):
            done.append(outcome)
            note(f"{outcome.name}: {outcome.outcome}, {outcome.seconds:.1f} s{f': {outcome.why}' if outcome.why else ''}")
            _keep(own.out, report(done))
    except KeyboardInterrupt:
        stopped = True
        note(f"stopped after {len(done)} of {len(parts)} parts")
    found = report(done, stopped=stopped)
    _keep(own.out, found)
    show(own.json, found, lambda: _table(found))
    return 130 if stopped else int(any(o.outcome == FAILED for o in done))


def _keep(path: Path | None, found: dict[str, Any]) -> None:
    if path is not None:
        write_json(path, found)


def _table(found: dict[str, Any]) -> None:
    rows = [[p["name"], p["outcome"], f"{p['seconds']:.1f}", p["why"] or _short(p["numbers"])] for p in found["parts"]]
    grid(("part", "outcome", "seconds", ""), rows, {2})
    counts = ", ".join(f"{found[kind]} {kind}" for kind in ("passed", "failed", "not available"))
    print(f"{counts}; {found['seconds']:.0f} s on {found['machine']}")


def _short(numbers: dict[str, Any]) -> str:
    """The plain numbers and words of a part; what is nested is in the JSON."""
    plain = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in numbers.items() if isinstance(v, int | float | str)}
    return ", ".join(f"{k} {v}" for k, v in plain.items())
