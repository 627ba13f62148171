"""A long run holds no more than a short one: memory, objects of Python, what the compiled library holds, files and threads."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.runtime.compiled import build
from assay.train import train
from evidence.scale import Watch, long_run

STEPS, WARM = 600, 200


class Looked(Watch):
    """Looks at the compiled library's arrays too, and keeps what a test wants to have leaked."""

    def __init__(self, leak: bool) -> None:
        super().__init__(every=50)
        self.leak, self.kept, self.arrays = leak, list[Any](), list[int]()

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        if self.leak:
            block = mmap.mmap(-1, 262_144)  # pages of its own, whatever the allocator has left over of earlier work
            block.write(bytes(len(block)))
            self.kept.append([dict(metrics), [[] for _ in range(20)], block])
        seen = len(self.held)
        super().log(step, metrics)
        if len(self.held) > seen:
            library = build.kernel()
            self.arrays.append(library.assay_bytes() if library else 0)

    def failures(self) -> list[str]:
        """What there is more of behind the warm-up; bounds are far above what chance does, and far below a leak of each step."""
        late = [h for h in self.held if h.step >= WARM]
        half = len(late) // 2

        def more(name: str) -> float:
            early, end = ([getattr(h, name) for h in part] for part in (late[:half], late[half:]))
            return float(np.median(end) - np.median(early))

        steps = float(np.median([h.step for h in late[half:]]) - np.median([h.step for h in late[:half]]))
        bounds = {"objects": 2 * steps, "resident": 64_000 * steps, "files": 0, "threads": 0}
        found = [f"{name}: {more(name):.0f} more in {steps:.0f} steps" for name, most in bounds.items() if more(name) > most]
        if max(self.arrays[-half:]) > max(self.arrays[:-half]):
            found.append(f"arrays of the compiled library: {self.arrays}")
        return found


def looked(folder: Path, leak: bool = False) -> Looked:
    watch = Looked(leak)
    train(long_run(STEPS), folder, watch=lambda run, place, first: [watch])
    gc.collect()
    return watch


@pytest.mark.prove
def test_six_hundred_steps_leave_nothing_behind(tmp_path: Path) -> None:
    """In a run with a curriculum, evaluations, checkpoints and attempts that are written down."""
    watch = looked(tmp_path / "run")
    assert [h.step for h in watch.held] == list(range(0, STEPS + 1, 50))
    assert watch.failures() == []


@pytest.mark.prove
def test_what_a_step_leaves_behind_is_found(tmp_path: Path) -> None:
    """A quarter of a megabyte and some objects for each step."""
    found = looked(tmp_path / "run", leak=True).failures()
    assert [line.partition(":")[0] for line in found] == ["objects", "resident"]
