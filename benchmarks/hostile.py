"""What a batch costs in which one answer in ten would keep its judge busy for ever, against the honest batch of the same size.

    OMP_NUM_THREADS=1 python benchmarks/hostile.py [--answers 400] [--deadline 0.5]

Prints JSON: for mathematics, SQL and programs the seconds of both batches and their ratio. Each batch is judged by one
`ScoringPool` as in training, after a first batch has warmed it; the hostile answers are those of the verifiers' own
benchmarks, every one of them another text, so that no verdict is remembered.

A program that waits for ever costs no core, and others are judged beside it. One that computes for ever uses its whole limit of
processor time, whatever judges it, so the ratio is about .9 + limit / (10 x cores x time per honest answer): it is measured at
``--deadline`` and at a limit of ten honest answers, and each row says how many honest answers (``honest``) its limit is worth.
"""

import argparse
import json
import random
from collections.abc import Sequence
from time import perf_counter

from assay.core import Verifier
from assay.sandbox import Limits
from assay.verify import MathAnswer, ScoringPool, task_and_rollout
from assay.verify.code import CodeCall
from assay.verify.sql import SqlMatch
from math_verifier import HOSTILE, mixture
from sql_verifier import DATABASE, GOLD, HONEST, RUNAWAY

Pair = tuple[object, str]
SHARE = 10
"""One answer in so many is hostile."""

CALL = {"entry": "f", "tests": [{"args": [x], "expected": 2 * x} for x in range(3)]}


def seconds(verifier: Verifier, warm: Sequence[Pair], pairs: Sequence[Pair], deadline: float) -> float:
    """Of one batch."""
    with ScoringPool(verifier, deadline, refuse=False) as pool:
        pool.score([task_and_rollout(gold, said, id=f"warm {n}") for n, (gold, said) in enumerate(warm)])
        items = [task_and_rollout(gold, said, id=str(n)) for n, (gold, said) in enumerate(pairs)]
        began = perf_counter()
        pool.score(items)
        return perf_counter() - began


def compare_batches(verifier: Verifier, honest: Sequence[Pair], hostile: Sequence[str], deadline: float) -> dict[str, float]:
    """Both batches, in turns, the better of three each."""
    warm, rest = honest[:40], honest[40:]
    mixed = [(gold, f"{hostile[n // SHARE % len(hostile)]}" if n % SHARE == 0 else said) for n, (gold, said) in enumerate(rest)]
    plain, both = (
        min(times)
        for times in zip(
            *[(seconds(verifier, warm, rest, deadline), seconds(verifier, warm, mixed, deadline)) for _ in range(3)], strict=True
        )
    )
    return {"answers": len(rest), "honest_s": round(plain, 3), "hostile_s": round(both, 3), "ratio": round(both / plain, 2)}


def main() -> dict[str, object]:
    """The measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=400)
    parser.add_argument("--deadline", type=float, default=0.5)
    given = parser.parse_args()
    n = given.answers + 40
    rng = random.Random(0)
    sql = {"query": GOLD, "database": DATABASE}
    programs = [f"def f(x):\n    return x * 2  # {i}" for i in range(n)]
    waiting = [f"import time\ndef f(x):\n    time.sleep(1e6 + {i})" for i in range(n // SHARE)]
    endless = [f"def f(x):\n    while True:\n        x += {i}" for i in range(n // SHARE)]
    honest = [(CALL, text) for text in programs]
    mathematics: list[Pair] = [(p.gold, p.answer) for p in mixture(n)]
    queries = [f"{query} -- {rng.random()}" for query in RUNAWAY.values() for _ in range(8)]
    found: dict[str, object] = {
        "mathematics": compare_batches(MathAnswer(), mathematics, [f"{text} + {i}" for i in range(5) for text in HOSTILE], 5.0),
        "sql": compare_batches(SqlMatch(), [(sql, f"{HONEST} -- {i}") for i in range(n)], queries, 5.0),
    }
    limit, answer = given.deadline, 0.0
    for name, hostile in (("that wait", waiting), ("that compute", endless), ("that compute, a shorter limit", endless)):
        row = compare_batches(CodeCall(limits=Limits(cpu=limit, wall=2 * limit)), honest, hostile, 30.0)
        answer = answer or row["honest_s"] / given.answers
        found[f"programs {name}"] = {**row, "limit_s": round(limit, 3), "honest": round(limit / answer, 1)}
        limit = 10 * answer if hostile is endless else limit
    return found


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
