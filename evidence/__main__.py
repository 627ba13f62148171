"""``python -m evidence``: makes the committed pages of evidence anew, from the root of a checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["main"]

USAGE = """usage, from the root of a checkout:
  python -m evidence [STUDY ...]         pages of docs/evidence made anew, all of them when none is named
  python -m evidence --audit CELL OUT    one cell of the study of verifiers
  python -m evidence --scale KIND OUT    one measurement of the page of scale"""


def main(args: list[str]) -> int:
    """Makes pages, or one cell of a study, and gives the exit status."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported: waiting threads sleep instead of spinning
    if not any(word.startswith("-") for word in args):
        from evidence.pages import make

        return make(Path("docs/evidence"), args)
    if args[:1] == ["--audit"] and len(args) == 3:
        from evidence.audits.running import one

        one(args[1], Path(args[2]))
        return 0
    if args[:1] == ["--scale"] and len(args) == 3:
        from evidence.scale_page import one as measured

        measured(args[1], Path(args[2]))
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
