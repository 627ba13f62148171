"""Measure what a curriculum over single rows costs a step: 32 draws, their observation and metrics, in processor time.

    OMP_NUM_THREADS=1 python benchmarks/row_draws.py [--rows 100000] [--steps 40]

Prints a line per rule: milliseconds of a step, and the length of a step of which that is one hundredth.
"""

from __future__ import annotations

import argparse
import time

from assay.core import CurriculumSpec, FrozenMap, Task
from assay.guide import Bell, HardFocus, HistoryRows, PromptPair, PromptValue, Retrospective, Rounds
from assay.testing import as_outcomes, graded_group

WARM = 5


def measure(spec: CurriculumSpec, steps: int) -> float:
    """Milliseconds of a step's 32 draws, observation and metrics, behind some steps."""
    book, spent = spec.build({"sort": (3,)}, seed=0), 0.0
    for step in range(WARM + steps):
        start = time.process_time()
        draws = book.draw(32)
        taken = time.process_time() - start
        tasks = [
            Task(
                id=f"{k}",
                domain="d",
                arm=d.arm,
                level=d.level,
                split="train",
                index=d.index or 0,
                public=FrozenMap({"prompt": "?"}),
            )
            for k, d in enumerate(draws)
        ]
        outcomes = as_outcomes([graded_group(task, [1.0, 0.0]) for task in tasks])
        start = time.process_time()
        book.observe(outcomes)
        book.metrics()
        taken += time.process_time() - start
        spent += taken if step >= WARM else 0.0
    return 1000.0 * spent / steps


def main() -> None:
    """Measures every rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    rows = given.rows
    rules: list[CurriculumSpec] = [
        HistoryRows(pool=rows, epochs=2),
        Bell(pool=rows),
        HardFocus(pool=rows, warm=1000),
        Rounds(pool=rows),
        Retrospective(pool=rows),
        PromptPair(pool=rows, probes=1),
        PromptValue(pool=rows),
    ]
    for spec in rules:
        spent = measure(spec, given.steps)
        print(f"{type(spec).__name__}: {spent:.2f} ms; 1 % of a step of {spent / 10:.2f} s", flush=True)


if __name__ == "__main__":
    main()
