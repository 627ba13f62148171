"""The page of one machine: a step by its size, memory over ten thousand steps, seeds per hour; what is measured for it."""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.core import cache_folder, generator
from assay.lab import (
    ONE_THREAD,
    LabError,
    Processes,
    ProcessJob,
    State,
    describe_machine,
    exit_reason,
    load_average,
    side_by_side,
)
from assay.runs import read_json, write_json, write_text
from assay.runtime import decoder_identity
from assay.train import Run, train
from evidence.scale import AXES, Watch, long_run, measure
from evidence.scale_text import Found

__all__ = ["KINDS", "make_page", "one"]

RECIPE = "assay.recipes:quickstart"

REPEATS, STEPS, SEEDS = 5, 10_000, (0, 1)
"""Repeats of all sizes; steps of the long run; seeds of the recipe."""

KINDS = (*(f"times-{repeat}" for repeat in range(REPEATS)), "memory", "apart", "together")
"""What is measured, one after the other, each in a process of its own."""


def make_page(folder: Path) -> list[str]:
    """Measures what is not measured yet, and writes ``scale.md``, ``scale.svg`` and ``scale.json``.

    Returns:
        What is not as it should be, in words.
    """
    work = cache_folder() / "studies" / "scale"
    records = {kind: _measure_kind(kind, work) for kind in KINDS}
    found = Found(records)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "scale.json", records)
    found.plot(folder / "scale.svg")
    write_text(folder / "scale.md", found.page())
    return found.failures()


# ---- measuring -------------------------------------------------------------------------------------------------------


def _measure_kind(kind: str, work: Path) -> dict[str, Any]:
    """A kind's record; measured, in a process of its own, where there is none.

    Raises:
        LabError: that process failed; with the end of what it printed.
    """
    record = work / f"{kind}.json"
    if not record.exists():
        work.mkdir(parents=True, exist_ok=True)
        job = ProcessJob(name=kind, words=("evidence", "--scale", kind, str(work)), log=work / f"{kind}.log")
        with Processes([frozenset()], ONE_THREAD) as processes:
            processes.start(job)
            while not (ended := processes.wait_ended()):
                pass
        if ended[0][1]:
            raise LabError(f"measuring {kind} failed: {exit_reason(job.log, ended[0][1])}; all of it stands in {job.log}")
    return read_json(record)


def one(kind: str, out: Path) -> None:
    """Measures one of `KINDS` and writes ``out/KIND.json``.

    Raises:
        LabError: a run of a seed failed.
    """
    before = load_average()
    made: dict[str, Callable[[], dict[str, Any]]] = {
        "memory": lambda: _memory(out / "memory"),
        "apart": lambda: _seeds(out / "apart", 1),
        "together": lambda: _seeds(out / "together", len(SEEDS)),
    }
    found = made[kind]() if kind in made else _times(int(kind.removeprefix("times-")))
    write_json(out / f"{kind}.json", found | {"machine": describe_machine(), "load": [before, load_average()]})


def _times(repeat: int) -> dict[str, Any]:
    """Each size once, in an order of the repeat's own, so that other work on the machine favours none."""
    points = list(dict.fromkeys(point for axis in AXES.values() for point in axis))
    order: list[int] = generator("scale", repeat).permutation(len(points)).tolist()
    return {"costs": [{"point": asdict(points[i]), **asdict(measure(points[i]))} for i in order]}


def _memory(folder: Path) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    watch = Watch(every=STEPS // 100)
    train(long_run(STEPS), folder, progress=False, watch=lambda run, place, first: [watch])
    shutil.rmtree(folder)
    return {"held": [asdict(held) for held in watch.held]}


def _seeds(folder: Path, at_once: int) -> dict[str, Any]:
    """All seeds of the recipe, with their bases built anew; the compiled library is there."""
    shutil.rmtree(folder, ignore_errors=True)
    kernels = cache_folder() / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    decoder_identity()  # compiles the library; runs without a compiler are measured too
    folder.mkdir(parents=True)
    (folder / "kernels").symlink_to(kernels)
    os.environ["ASSAY_CACHE"] = str(folder)
    module, _, name = RECIPE.partition(":")
    runs: dict[str, Run] = {f"seed-{seed}": getattr(import_module(module), name)(seed) for seed in SEEDS}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    endings = side_by_side(runs, folder / "runs", at_once=at_once)
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    failed = [f"{e.name}: {e.error or e.state}" for e in endings if e.state is not State.FINISHED]
    if failed:
        raise LabError(f"a run of {RECIPE} did not finish: {'; '.join(failed)}")
    shutil.rmtree(folder)
    return {
        "seconds": seconds,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak": after.ru_maxrss * 1024,
        "digests": {e.name: e.digest for e in endings},
    }
