"""A curation in a process of its own, which ends itself at one of the moments at which something is finished.

    python curation_to_kill.py IN OUT AGAINST MOMENT

With MOMENT 0 it runs to its end and prints how many such moments there are.
"""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from assay.curate import Decontaminate, Exact, NearDuplicates, Pipeline, RowStep, Substrings, keep
from assay.curate import output as emit_module
from assay.curate import work_folder as work_module


@dataclass(frozen=True)
class Words(RowStep):
    """A costly step, so that there is a second pass."""

    costly = True

    def judge(self, chunk, ready):
        return [keep(words=len(row.text.split())) for row in chunk.rows]


def main(source: str, out: str, against: str, moment: int) -> None:
    moved, seen = os.replace, 0

    def replace(a, b):
        nonlocal seen
        seen += 1
        if seen == moment:  # before it counts
            os.kill(os.getpid(), signal.SIGKILL)
        moved(a, b)
        seen += 1
        if seen == moment:  # and when it has just begun to
            os.kill(os.getpid(), signal.SIGKILL)

    for module in (work_module, emit_module):
        module.os = type("os", (), {**vars(os), "replace": staticmethod(replace)})  # pyright: ignore
    steps = (Exact(), NearDuplicates(threshold=0.5), Substrings(), Decontaminate(against=(Path(against),)), Words())
    Pipeline(steps=steps).run([source], out, chunk=int(os.environ.get("CHUNK", "7")))
    print(seen)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
