"""Measure one GPU: decoding, training, whole steps beside TRL's GRPOTrainer, memory, mismatch; one JSON per row.

Shapes of Qwen3-0.6B and Qwen3-1.7B with random weights; nothing is downloaded. A row is a kind (``--rows decode train``) at each
of ``--sizes``, or one of both (``--rows step-0.6B``); each runs in a process of its own, and one that is there already, of the
same work, device and versions, is not measured again: remove its file for that. A row that fails leaves no record. TRL is no part
of assay: install it into an environment beside this one. ``python -m evidence gpu`` makes the page.

    python benchmarks/gpu.py --rows step trl --sizes 0.6B --out docs/evidence/gpu
    python benchmarks/gpu.py --device cpu --sizes tiny --out /tmp/tried       # tries the program; the page takes none of it
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import assay
from assay.core import AssayError

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the package of studies is
from evidence.gpu import KINDS, SHAPES, WORK, Row, Spread, record, recorded_row, rows_of


def where_of(device: str) -> dict[str, Any]:
    """The device and the versions that a record holds for."""
    import torch
    import transformers

    gpu = torch.cuda.get_device_name() if device == "cuda" else ""
    return {
        "assay": assay.__version__,
        "device": device,
        "gpu": gpu,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


def refusal(rows: Sequence[Row], device: str) -> str:
    """Why nothing can be measured here; empty where it can."""
    import torch

    from gpu_trl import missing

    if device == "cuda" and not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device here; --device cpu --sizes tiny tries the program"
    large = sorted({row.size for row in rows if row.size != "tiny"})
    if device == "cpu" and large:
        return f"{large[0]} on a CPU takes hours and says nothing of a GPU; use --sizes tiny"
    why = missing()
    if why and rows and all(row.kind.startswith("trl") for row in rows):
        return why
    return ""


def measure(row: Row, device: str, folder: Path) -> None:
    """Measures a row in this process and writes its record."""
    import torch

    from gpu_rows import MEASURES
    from gpu_trl import BACKENDS, step

    torch.set_num_threads(1 if device == "cpu" else max(1, (os.cpu_count() or 2) // 2))
    found = (step if row.kind in BACKENDS else MEASURES[row.kind])(row, device)
    record(folder, row, WORK[row.size], where_of(device), found)


def describe_record(found: Mapping[str, Any]) -> str:
    """A record in a line."""
    numbers = found["numbers"]
    speed = Spread(tuple(n / s for n, s in zip(numbers["tokens"], numbers["seconds"], strict=True)))
    spent = Spread(tuple(numbers["seconds"]))
    return json.dumps(
        {
            "row": found["row"],
            "device": found["where"]["gpu"] or "cpu",
            "seconds": [round(x, 4) for x in (spent.low, spent.median, spent.high)],
            "tokens_per_second": [round(x, 1) for x in (speed.low, speed.median, speed.high)],
        }
    )


def work_off(rows: Sequence[Row], device: str, folder: Path, within: float) -> int:
    """Measures rows one after another, each in a process of its own, until the time is up; how many are not there in the end."""
    from gpu_trl import missing

    ends, lost, where, without = time.monotonic() + within, 0, where_of(device), missing()
    for row in rows:
        left, began = ends - time.monotonic(), time.monotonic()
        if not recorded_row(folder, row, WORK[row.size], where):
            said = without if row.kind.startswith("trl") else ""
            said = said or ("no time is left" if left <= 0 else _alone(row, device, folder, left))
            if said:
                lost += 1
                print(f"{row.name}: not measured: {said}", flush=True)
                continue
        found = recorded_row(folder, row, WORK[row.size], where)
        if found is None:
            raise AssertionError(f"{row.name}: its process said that it was done, and left no record")
        print(describe_record(found), f"{time.monotonic() - began:.0f} s", flush=True)
    return lost


def _alone(row: Row, device: str, folder: Path, left: float) -> str:
    """Runs a row's process; what went wrong, in words."""
    command = [sys.executable, __file__, "--one", row.name, "--device", device, "--out", str(folder)]
    try:
        ended = subprocess.run(command, timeout=left, check=False, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return f"it was not done after {left:.0f} s; call again for it alone"
    if ended.returncode:
        lines = (ended.stderr or ended.stdout).strip().splitlines()
        return f"its process ended with {ended.returncode}: {lines[-1] if lines else 'it said nothing'}"
    return ""


def main() -> int:
    """Works off the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(KINDS), help=f"kinds ({', '.join(KINDS)}) or names such as step-0.6B")
    parser.add_argument("--sizes", nargs="+", default=["0.6B", "1.7B"], help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence/gpu"), help="folder of the records")
    parser.add_argument("--within", type=float, default=570.0, help="seconds, after which no row goes on")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    try:
        rows = rows_of([asked.one] if asked.one else asked.rows, asked.sizes)
        why = refusal(rows, asked.device)
        if why:
            print(f"nothing is measured: {why}", file=sys.stderr)
            return 2
        if asked.one:
            measure(rows[0], asked.device, asked.out)
            return 0
        return 1 if work_off(rows, asked.device, asked.out, asked.within) else 0
    except AssayError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
