"""A fresh interpreter that judges what it reads from standard input: the far side of `assay.audit.subject.again`."""

from __future__ import annotations

import os
import pickle
import sys

from assay.audit.subject import play_items

__all__: list[str] = []

if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # what the verifier prints must not mix with its verdicts
    values = play_items(sys.stdin.buffer.read())
    with os.fdopen(out, "wb") as file:
        file.write(pickle.dumps(values))
