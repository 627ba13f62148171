"""Search over whole runs, beside random choices: mixtures by MoDoMoDo, tasks by MBTL, on the quickstart's levels.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/run_searches.py [--steps 40] [--seeds 2] [--out FILE]

**Mixtures**: levels 3 to 5, 6 to 7 and 8 to 10 are three parts. Seven seed mixtures and what heuristics make of them are trained,
then two proposals, each fitted to all before it. Control: as many runs whose mixtures are drawn from the simplex at random. Both
are judged by the best mixture found, trained anew from another base, and beside even shares. Predicted before the first run: the
search is above random mixtures, since these often leave a band out, and not above even shares, which are near the best.

**Tasks**: each of the levels 3 to 10 is a task. A run trains on one level; all levels are then judged, and each is served by the
best of the models so far. Three runs are chosen by `TransferSearch`, or at random as the control.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core import generator
from assay.guide import CellRule, MixtureSearch, Standing, TransferSearch, Uniform
from assay.recipes import quickstart
from assay.train import Evaluation, Policy, Reinforce, train

BANDS: Mapping[str, tuple[int, ...]] = {"short": (3, 4, 5), "middle": (6, 7), "long": (8, 9, 10)}
LEVELS = tuple(level for levels in BANDS.values() for level in levels)
PROPOSALS, TASKS = 2, 3
Mixture = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands(CellRule):
    """Bands of levels are drawn by shares, the levels of a band alike.

    Attributes:
        shares: of the bands, in their order.
    """

    shares: Mixture

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` each level's part of its band's share."""
        of = {level: s / len(levels) for s, levels in zip(self.shares, BANDS.values(), strict=True) for level in levels}
        return np.array([of[level] for _, level in standing.cells])


def accuracies(curriculum: CellRule, seed: int, steps: int, levels: Sequence[int] = ()) -> dict[int, float]:
    """Greedy held-out accuracy of each level after a run."""
    run = quickstart(seed)
    stage = replace(cast(Reinforce, run.stages[0]), steps=steps, curriculum=curriculum, levels=tuple(levels))
    quiet = Evaluation(every=0, final_per_level=1, kl_to_base=False)
    with tempfile.TemporaryDirectory() as folder:
        done = train(replace(run, stages=(stage,), evaluation=quiet), Path(folder) / "run", progress=False)
        items = Policy(done.folder).evaluate(run.tasks, n=0, per_level=32)
    by: dict[int, list[bool]] = {}
    for item in items:
        by.setdefault(item["level"], []).append(item["values"][0] >= 1.0)
    return {level: float(np.mean(right)) for level, right in by.items()}


def of_band(scores: Mapping[int, float], band: str) -> float:
    """Mean accuracy of a band."""
    return float(np.mean([scores[level] for level in BANDS[band]]))


def overall(scores: Mapping[int, float]) -> float:
    """Mean accuracy of all levels."""
    return float(np.mean([*scores.values()]))


def search_mixtures(seed: int, steps: int) -> dict[str, Any]:
    """The best mixture of the search and of as many random ones, and what all three reach with fresh seeds."""
    search = MixtureSearch(parts=tuple(BANDS), seed=seed)
    scores = {w: accuracies(Bands(shares=w), seed, steps) for w in search.seeds()}
    tried = {w: overall(s) for w, s in scores.items()}
    eye = np.eye(3)
    alone = np.array([[of_band(scores[tuple(row.tolist())], band) for band in BANDS] for row in eye])
    gains = [tried[search.seeds()[0]] - tried[tuple(row.tolist())] for row in (1.0 - eye) / 2]
    for w in search.heuristics(alone, gains, tried):
        tried[w] = overall(accuracies(Bands(shares=w), seed, steps))
    for _ in range(PROPOSALS):
        w = search.propose(tried)
        tried[w] = overall(accuracies(Bands(shares=w), seed, steps))
    final = search.propose(tried)
    draw = generator("benchmarks/run-searches", seed)
    drawn = [tuple(float(x) for x in draw.dirichlet(np.ones(3))) for _ in tried]
    random = {w: overall(accuracies(Bands(shares=w), seed, steps)) for w in drawn}
    luckiest = max(random, key=lambda w: random[w])
    fresh = {
        name: overall(accuracies(Bands(shares=w), seed + 50, steps))
        for name, w in (("search", final), ("random", luckiest), ("even", (1 / 3, 1 / 3, 1 / 3)))
    }
    return {"kind": "mixtures", "seed": seed, "runs": len(tried), "proposal": final, "luckiest": luckiest, **fresh}


def search_tasks(seed: int, steps: int) -> dict[str, Any]:
    """Mean over levels of the best model's accuracy after each run, for the search and for random levels."""
    known: dict[int, dict[int, float]] = {}

    def trained_at(level: int) -> dict[int, float]:
        if level not in known:
            known[level] = accuracies(Uniform(), seed, steps, (level,))
        return known[level]

    def curve(choose: Callable[[Mapping[float, float]], float]) -> tuple[list[int], list[float]]:
        chosen, served = list[int](), list[float]()
        for _ in range(TASKS):
            chosen.append(int(choose({x: trained_at(x)[x] for x in chosen})))
            served.append(float(np.mean([max(trained_at(x)[level] for x in chosen) for level in LEVELS])))
        return chosen, served

    search = TransferSearch(contexts=LEVELS, slope=0.15)
    order = iter(generator("benchmarks/run-searches", seed, "tasks").permutation(LEVELS).tolist())
    levels, served = curve(search.propose)
    others, control = curve(lambda trained: next(order))
    return {"kind": "tasks", "seed": seed, "levels": levels, "served": served, "random levels": others, "random": control}


SEARCHES: Mapping[str, Callable[[int, int], dict[str, Any]]] = {"tasks": search_tasks, "mixtures": search_mixtures}


def main() -> None:
    """Runs both searches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--searches", nargs="+", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for seed in range(given.seeds):
        for search in given.searches:
            line = json.dumps(SEARCHES[search](seed, given.steps))
            print(line, flush=True)
            if given.out:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
