"""Measure what waiting threads cost beside other work: a step of the quickstart, by threads that sleep and threads that spin.

A thread that waits for another spins, unless `OMP_WAIT_POLICY=PASSIVE` was set before torch was imported. assay sees to that, so
these cases set torch's threads by hand. Each case is a process of its own, all cases in turn, round after round, so that they
share whatever else the machine does; `--beside` starts that many programs that only compute. Each is tried with the compiled
passes and with PyTorch's. Rewards are coin tosses, so that every group has a signal. Prints one JSON line per case: medians of
the steps' wall and CPU milliseconds over all rounds, and their ratio to those of one thread with the same passes.

    python benchmarks/threads.py --steps 5 --rounds 3 --beside 2
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from statistics import median
from time import perf_counter, process_time

POLICY = "OMP_WAIT_POLICY"
CASES = {"one thread": (1, True), "two threads, sleeping": (2, True), "two threads, spinning": (2, False)}
"""Name to threads, and whether they are told to sleep."""

PASSES = ("compiled", "PyTorch")
WARM = 2


async def steps_of(steps: int, kernel: bool) -> list[tuple[float, float]]:
    """Wall and CPU seconds of each step behind the first."""
    from assay.lab import RandomReward, Rewarded
    from assay.recipes import quickstart
    from assay.runtime import DecoderShape, Native
    from assay.train import Scratch, load_source, open_stage
    from assay.verify import ScoringPool

    run = quickstart(0)
    source = Rewarded(source=run.tasks, scorer=RandomReward())
    run = replace(run, model=Scratch(shape=DecoderShape()), tasks=source, prove_weights=False)
    stage = replace(run.stages[0], learner=replace(run.stages[0].learner, kernel=kernel))
    run = replace(run, engine=Native(kernel=kernel), stages=(stage,))
    model = load_source(run.model, lambda run, folder: folder)
    found: list[tuple[float, float]] = []
    with ScoringPool(run.tasks.verifier(), run.reward_deadline) as pool:
        session = open_stage(run, run.stages[0], model, pool, 0)
        await session.parts.serve()
        for _ in range(WARM + steps):
            begin = perf_counter(), process_time()
            await session.step()
            found.append((perf_counter() - begin[0], process_time() - begin[1]))
            session.parts.step, session.parts.stage_step = session.parts.step + 1, session.parts.stage_step + 1
    return found[WARM:]


def child(threads: int, steps: int, kernel: bool) -> None:
    """One case in this process."""
    import torch

    torch.set_num_threads(threads)
    print(json.dumps(asyncio.run(steps_of(steps, kernel))))


def case(name: str, passes: str, steps: int) -> list[tuple[float, float]]:
    """One case in a process of its own."""
    threads, sleeping = CASES[name]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    environment |= {POLICY: "PASSIVE"} if sleeping else {}
    words = [sys.executable, __file__, "--child", str(threads), "--passes", passes, "--steps", str(steps)]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [(float(wall), float(cpu)) for wall, cpu in json.loads(done.stdout)]


def main() -> None:
    """Runs every case in every round, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=int, default=2)
    parser.add_argument("--passes", nargs="+", default=list(PASSES), choices=PASSES)
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.steps, given.passes == [PASSES[0]])
        return
    from assay.lab import describe_machine, load_average

    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.beside)]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {(passes, name): [] for passes in given.passes for name in CASES}
    try:
        for _ in range(given.rounds):
            for passes, name in found:
                found[passes, name] += case(name, passes, given.steps)
        busy = load_average()
    finally:
        for other in others:
            other.kill()
            other.wait()
    ms = {name: [1e3 * median(x[i] for x in seconds) for i in (0, 1)] for name, seconds in found.items()}
    for (passes, name), (wall, cpu) in ms.items():
        one = ms[passes, "one thread"]
        row = {"passes": passes, "case": name, "wall_ms": round(wall, 1), "cpu_ms": round(cpu, 1)}
        row |= {"wall_ratio": round(wall / one[0], 2), "cpu_ratio": round(cpu / one[1], 2)}
        row |= {"steps": len(found[passes, name]), "beside": given.beside}
        print(json.dumps({**row, "machine": describe_machine(), "load": busy}), flush=True)


if __name__ == "__main__":
    main()
