"""``python -m assay.lab cell``: one cell of a study, in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.core.util.threads import sleeping_waits

__all__ = ["main"]

USAGE = "usage: python -m assay.lab cell MODULE:FUNCTION KIND SEED OUT [STEPS]"


def main(args: list[str]) -> int:
    """Runs a cell, and gives the exit status."""
    sleeping_waits()
    if args[:1] == ["cell"] and len(args) in (5, 6):
        from assay.lab.cells import run_cell

        run_cell(args[1], args[2], int(args[3]), Path(args[4]), int(args[5]) if len(args) == 6 else None)
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
