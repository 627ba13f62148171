"""Measure how many trivial Python programs run per second, contained, against a fresh interpreter each time.

Each level runs ``print(1)`` with a number of workers; the baseline runs ``python -c 'print(1)'`` from as many threads, in turns
with the levels, so that a busy machine slows all alike. Prints one JSON line: executions per second, and their ratio to the
baseline.

    OMP_NUM_THREADS=1 python benchmarks/sandbox.py --workers 2 --seconds 3 --rounds 3
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import monotonic

from assay.core import SandboxError
from assay.sandbox import SANDBOX_LEVELS, Sandbox


def rate(run: Callable[[], None], workers: int, seconds: float) -> float:
    """Runs per second from so many threads."""
    end = monotonic() + seconds

    def loop() -> int:
        count = 0
        while monotonic() < end:
            run()
            count += 1
        return count

    began = monotonic()
    with ThreadPoolExecutor(workers) as threads:
        total = sum(f.result() for f in [threads.submit(loop) for _ in range(workers)])
    return total / (monotonic() - began)


def fresh() -> None:
    subprocess.run([sys.executable, "-c", "print(1)"], check=True, capture_output=True)


def contain(sandbox: Sandbox) -> Callable[[], None]:
    def run() -> None:
        result = sandbox.run("print(1)")
        assert result.stdout == "1\n", result

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    made: dict[str, Sandbox] = {}
    for level in SANDBOX_LEVELS:
        try:
            made[level] = Sandbox(level, workers=given.workers)
        except SandboxError as error:
            print(f"{level} is not granted here: {error}", file=sys.stderr)
    runs = {"python -c": fresh, **{level: contain(sandbox) for level, sandbox in made.items()}}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        rate(run, given.workers, 0.3)
    for _ in range(given.rounds):
        for name, run in runs.items():
            rates[name].append(rate(run, given.workers, given.seconds))
    for sandbox in made.values():
        sandbox.close()
    base = median(rates["python -c"])
    found = {name: {"per_second": round(median(r)), "over_python": round(median(r) / base, 2)} for name, r in rates.items()}
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "machine": platform.machine()}
    print(json.dumps({"workers": given.workers, **found, **machine}))


if __name__ == "__main__":
    main()
