"""``python -m assay.lab cell KIND SEED OUT [STEPS]`` runs one cell of the gate; ``python -m assay.lab evidence`` all of it."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["main"]


def main(args: list[str]) -> int:
    """Runs a cell, or makes ``docs/evidence`` anew."""
    if args[:1] == ["cell"] and len(args) in (4, 5):
        from assay.lab.gate import run_cell

        run_cell(args[1], int(args[2]), Path(args[3]), int(args[4]) if len(args) == 5 else None)
        return 0
    if args[:1] == ["evidence"] and len(args) <= 2:
        from assay.lab.evidence import make

        return make(Path(args[1]) if len(args) == 2 else Path("docs/evidence"))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
