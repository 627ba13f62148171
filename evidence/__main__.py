"""``python -m assay.lab``: cells of studies, and the committed evidence."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.core.util.threads import sleeping_waits

__all__ = ["main"]

USAGE = """usage:
  python -m assay.lab cell MODULE:FUNCTION KIND SEED OUT [STEPS]   one cell of a study
  python -m assay.lab evidence [STUDY ...]                         its page in docs/evidence, or all pages, made anew
  python -m assay.lab audit CELL OUT                               one cell of the study of verifiers
  python -m assay.lab scale KIND OUT                               one measurement of the page of scale"""


def main(args: list[str]) -> int:
    """Runs a cell, or makes pages of ``docs/evidence`` anew."""
    sleeping_waits()
    if args[:1] == ["cell"] and len(args) in (5, 6):
        from assay.lab.cells import run_cell

        run_cell(args[1], args[2], int(args[3]), Path(args[4]), int(args[5]) if len(args) == 6 else None)
        return 0
    if args[:1] == ["evidence"]:
        from evidence.pages import make

        return make(Path("docs/evidence"), args[1:])
    if args[:1] == ["audit"] and len(args) == 3:
        from evidence.audits.running import one

        one(args[1], Path(args[2]))
        return 0
    if args[:1] == ["scale"] and len(args) == 3:
        from evidence.scale_page import one as measured

        measured(args[1], Path(args[2]))
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
