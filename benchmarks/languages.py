"""Measure how long a program of each language takes, contained: to compile, and for each run.

The program reads two numbers and prints their sum. Runs of all languages take turns with Python's, so that a busy machine slows
all alike; the ratio is to Python's run of the same turn. Prints one JSON line: milliseconds (medians), ratios, and the languages
whose toolchain is missing here. With ``--table`` it prints the rows of docs/packages/sandbox.md.

    OMP_NUM_THREADS=1 python benchmarks/languages.py --rounds 15
"""

import argparse
import json
import os
import platform
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic

from assay.core import ConfigError
from assay.sandbox import CompiledProgram, Language, Limits, Sandbox, language, languages

PROGRAMS = Path(__file__).parents[1] / "tests" / "sandbox" / "programs.toml"
LIMITS = Limits(wall=60.0, cpu=30.0)


def time_work(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = monotonic()
    work()
    return (monotonic() - began) * 1000


def compile_source(sandbox: Sandbox, one: Language, source: str) -> CompiledProgram:
    built = sandbox.compile(one, source)
    assert built.refused is None, built.refused
    return built


def ran(sandbox: Sandbox, built: CompiledProgram) -> None:
    result = sandbox.run(built.program("3 4\n"))
    assert result.stdout.strip() == "7", result


def alone(name: str) -> str:
    """Whether one process is enough."""
    try:
        language(name).admit({"processes": "one"})
    except ConfigError:
        return ""
    return "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    sources = {name: table["sum"] for name, table in tomllib.loads(PROGRAMS.read_text(encoding="utf-8")).items()}
    made: dict[str, tuple[Sandbox, CompiledProgram]] = {}
    compiles: dict[str, list[float]] = {}
    runs: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    for one in languages():
        try:
            sandbox = Sandbox(given.backend, workers=1, languages=(one,), limits=LIMITS)
        except ConfigError as error:
            missing[one.name] = str(error)
            continue
        built = compile_source(sandbox, one, sources[one.name])
        ran(sandbox, built)
        made[one.name] = sandbox, built
    try:
        for turn in range(given.rounds):
            for name, (sandbox, built) in made.items():
                if turn < 3 and built.result is not None:
                    compiles.setdefault(name, []).append(
                        time_work(partial(compile_source, sandbox, built.language, sources[name]))
                    )
                runs.setdefault(name, []).append(time_work(partial(ran, sandbox, built)))
        isolation = made["python"][0].backend.name
    finally:
        for sandbox, _ in made.values():
            sandbox.close()
    found = {
        name: {
            "compile_ms": round(median(compiles[name])) if name in compiles else None,
            "run_ms": round(median(times), 1),
            "over_python": round(median(t / p for t, p in zip(times, runs["python"], strict=True)), 1),
        }
        for name, times in runs.items()
    }
    if given.table:
        for name, row in found.items():
            print(f"| {name} | {row['compile_ms'] or '–'} | {row['run_ms']} | {row['over_python']} | {alone(name)} |")
        return
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "machine": platform.machine()}
    print(json.dumps({"isolation": isolation, "languages": found, "missing": missing, **machine}))


if __name__ == "__main__":
    main()
