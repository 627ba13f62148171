"""Measure how long `import assay` and commands that run nothing take in a fresh interpreter, beside a bare interpreter.

Prints one JSON line per command: the median and the least of the repeats in milliseconds, interpreter start
included.

    python benchmarks/import_time.py --repeats 15
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "bare interpreter": ["-c", "pass"],
    "import assay": ["-c", "import assay"],
    **{
        f"assay {words}": ["-c", f"import sys; from assay.cli import main; sys.exit(main({words.split()!r}))"]
        for words in ("--help", "methods", "tasks list", "verify list", "explain quickstart")
    },
}


def milliseconds(arguments: list[str]) -> float:
    """Return the wall time of one `python <arguments>`, in milliseconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return 1000.0 * (time.perf_counter() - start)


def main() -> None:
    """Run every command `--repeats` times after one warm-up and print its times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats: int = parser.parse_args().repeats
    for name, arguments in COMMANDS.items():
        milliseconds(arguments)
        times = [milliseconds(arguments) for _ in range(repeats)]
        row = {
            "command": name,
            "median_ms": round(statistics.median(times), 1),
            "least_ms": round(min(times), 1),
            "repeats": repeats,
            "python": platform.python_version(),
            "machine": platform.machine(),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
