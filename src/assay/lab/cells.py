"""Cells of a study: one run, one evaluation of its result with the true verifier, one JSON file.

A cell's file is written when it is done, so a study that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from assay.core.canon import digest
from assay.core.config import from_dict, loads_toml, to_dict
from assay.core.errors import AssayError
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.core.rowfile import rows_beside
from assay.core.util.paths import cache_folder
from assay.lab.machine import describe_machine, load_average
from assay.lab.processes import Processes, ProcessJob, exit_reason
from assay.runs.storage import write_json
from assay.train.driver import resume, train
from assay.train.models import Built
from assay.train.policy import Policy
from assay.train.run import Run

__all__ = ["WORKERS", "Cell", "LabError", "run_cell", "run_cells"]

WORKERS = 2
"""Cells at a time in the committed studies."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""Environment of a cell."""


class LabError(AssayError, RuntimeError):
    """A cell of a study failed; those that were done are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A run, the task family with the true verifier that its result is judged by, and on how many held-out items of a level."""

    run: Run
    truth: TaskSource
    per_level: int = 64


Maker = Callable[[str, int, int | None], Cell]
"""(kind, seed, steps or None for the recipe's own) to a cell."""


def run_cell(maker: str, kind: str, seed: int, out: Path, steps: int | None = None) -> dict[str, Any]:
    """Trains and evaluates one cell under ``out``.

    Args:
        maker: ``module:function`` of a `Maker`.
        kind, seed, steps: what it is asked for.
        out: study folder.

    Returns:
        The record, which is also ``out/KIND-SEED.json``.
    """
    module, _, name = maker.partition(":")
    cell = cast(Maker, getattr(import_module(module), name))(kind, seed, steps)
    record, folder = out / f"{kind}-{seed}.json", out / f"{kind}-{seed}"
    known, begun = _read(record) if record.exists() else {}, folder / "run.toml"
    alike = begun.exists() and _reads_as(begun, cell.run)
    if alike and known and "failed" not in known:
        return known
    record.unlink(missing_ok=True)
    base = cache_folder() / "base" / cell.run.model.key if isinstance(cell.run.model, Built) else None
    if not alike or "failed" in known or (base and not base.exists()):  # begun from a base of other code
        shutil.rmtree(folder, ignore_errors=True)
    before = load_average()
    outcome = resume(folder, progress=False) if begun.exists() else train(cell.run, folder, progress=False)
    found: dict[str, Any] = {
        "kind": kind,
        "seed": seed,
        "steps": cell.run.steps,
        "recipe": digest(to_dict(cell.run), 8),
        "digest": outcome.digest,
        "cpu_seconds": cpu_seconds(folder),
        "machine": describe_machine(),
        "load": [before, load_average()],
        **_evaluate_cell(cell, folder),
    }
    if base:
        found["base_cpu_seconds"] = cpu_seconds(base)
    write_json(record, found)
    return found


def run_cells(
    maker: str, cells: Sequence[tuple[str, int, int | None]], out: Path, workers: int = WORKERS, *, go_on: bool = False
) -> list[dict[str, Any]]:
    """Runs cells (kind, seed, steps) in ``workers`` processes of one thread each; finished ones are read, not run.

    Args:
        maker: ``module:function`` of a `Maker`.
        cells: what is wanted.
        out: study folder.
        workers: cells at a time.
        go_on: a cell that fails has the record ``{kind, seed, failed}`` with its error in one line, and the others are run all
            the same; the next call tries it again from its beginning.

    Raises:
        LabError: a cell failed, and ``go_on`` is False; with the end of what it printed.
    """
    out.mkdir(parents=True, exist_ok=True)
    waiting = {f"{cell[0]}-{cell[1]}": cell for cell in cells}
    running = dict[str, tuple[str, int, int | None]]()
    with Processes([frozenset[int]()] * workers, ONE_THREAD) as processes:
        while waiting or processes.running:
            while waiting and processes.free:
                name, running[name] = next(iter(waiting)), waiting.pop(next(iter(waiting)))
                processes.start(_job(maker, running[name], out))
            for job, status in processes.wait_ended():
                if status:
                    _record_failure(job, running[job.name], status, go_on)
    return [_read(out / f"{kind}-{seed}.json") for kind, seed, _ in cells]


def _record_failure(job: ProcessJob, cell: tuple[str, int, int | None], status: int, go_on: bool) -> None:
    """Records a cell that ended with an error.

    Raises:
        LabError: the study is not to go on without it.
    """
    if not go_on:
        said = job.log.read_text(encoding="utf-8")
        raise LabError(f"cell {job.name} failed with status {status}:\n{said[-2000:]}")
    write_json(job.log.with_suffix(".json"), {"kind": cell[0], "seed": cell[1], "failed": exit_reason(job.log, status)})


def cpu_seconds(folder: Path) -> float:
    """CPU seconds that a run's steps took, evaluation left out."""
    last = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    return float(json.loads(last)["metrics"]["time/cpu"])


def _job(maker: str, cell: tuple[str, int, int | None], out: Path) -> ProcessJob:
    kind, seed, steps = cell
    words = ("assay.lab", "cell", maker, kind, str(seed), str(out), *([str(steps)] if steps else []))
    return ProcessJob(name=f"{kind}-{seed}", words=words, log=out / f"{kind}-{seed}.log")


def _reads_as(path: Path, run: Run) -> bool:
    """Whether a run's settings, as this version reads them, are those of ``run``.

    A file spells out every setting that there was. One that came later has its default, which changes nothing, so a study does
    not begin anew with each; a default that has changed since does.
    """
    try:
        with rows_beside(path.parent):
            return from_dict(Run, loads_toml(path.read_text(encoding="utf-8"))) == run
    except AssayError:
        return False


def _evaluate_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """Held-out items of the starting model and of the result, greedy and sampled, by the true verifier."""
    sampling = Sampling(max_new_tokens=cell.run.sampling.max_new_tokens)
    return {
        f"{name}_{mode}": Policy(where).evaluate(cell.truth, n=n, per_level=cell.per_level, sampling=sampling)
        for name, where in (("base", folder / "start"), ("now", folder))
        for mode, n in (("greedy", 0), ("sampled", 1))
    }


def _read(path: Path) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))
