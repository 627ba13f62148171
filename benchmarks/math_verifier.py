"""Measure the math verifier beside math-verify alone: speed, a realistic mixture, hanging answers, false verdicts.

Prints one JSON line per measurement. The mixture is 50 % whole numbers, 15 % fractions and decimals, 10 % roots and multiples
of pi, 8 % polynomials, 8 % tuples, sets and intervals, 4 % units, 3 % words and letters, 2 % identities that need symbolic
algebra; half of the answers are right. Hostile answers are those at which math-verify computes for seconds.

    OMP_NUM_THREADS=1 python benchmarks/math_verifier.py exact mixed hanging rates kinds --pairs 3000
"""

import argparse
import json
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.core import FrozenMap, Rollout, Task
from assay.testing import rollout_of
from assay.testing.math_pairs import FAMILIES, MathPair, math_pairs
from assay.verify import MathAnswer, ScoringPool
from assay.verify.math import exact, final_answer

CASES = Path(__file__).parent.parent / "tests" / "verify" / "math_cases.jsonl"
FIELD = CASES.with_name("math_field.jsonl")

MIXTURE = {
    "integer": 50,
    "fraction": 10,
    "decimal": 5,
    "radical": 5,
    "pi": 5,
    "polynomial": 8,
    "tuple": 3,
    "set": 2,
    "interval": 3,
    "quantity": 4,
    "choice": 2,
    "words": 1,
    "identity": 2,
}
"""Percent of each family."""

HOSTILE = (
    "10^{10^9}",
    "10000000!",
    "9^{9^{9^{9}}}",
    "(" * 500 + "1" + ")" * 500,
    "\\frac{" * 80 + "1" + "}{2}" * 80,
    "\\sin(" * 40 + "x" + ")" * 40,
    "x^{" * 40 + "2" + "}" * 40,
    "\\int_0^{\\infty} \\frac{\\sin(x^2)}{x^3+1} dx",
    "(x+y+z+w)^{99}",
    "\\sqrt{" * 60 + "2" + "}" * 60,
    "\\sum_{k=1}^{10^9} \\frac{1}{k^2}",
    "\\prod_{k=1}^{10^7} k",
    "2^{2^{2^{2^{2^{2}}}}}",
    "\\tan(\\tan(\\tan(\\tan(\\tan(\\tan(10^{20}))))))",
    "((((x+1)^{99}+1)^{9}+1)^{5}+\\sin x)",
    "e^{e^{e^{e^{9}}}}",
)


def mixture(n: int, seed: int = 0) -> list[MathPair]:
    rng = random.Random(seed)
    drawn = Counter(rng.choices(list(MIXTURE), weights=list(MIXTURE.values()), k=n // 2))
    pairs = [p for name, k in drawn.items() for p in math_pairs(2 * k, seed, (name,))]
    rng.shuffle(pairs)
    return pairs


def batch(pairs: Sequence[tuple[str, str]]) -> list[tuple[Task, Rollout]]:
    out: list[tuple[Task, Rollout]] = []
    for n, (gold, answer) in enumerate(pairs):
        task = Task(
            id=f"t{n}",
            domain="math",
            arm="a",
            level=1,
            split="train",
            index=n,
            public=FrozenMap({"prompt": "?"}),
            private=FrozenMap({"answer": gold}),
        )
        out.append((task, rollout_of(task, answer, id=f"r{n}")))
    return out


def say(name: str, **numbers: object) -> None:
    row = {"measure": name, **numbers, "python": platform.python_version(), "machine": platform.processor() or platform.machine()}
    print(json.dumps(row), flush=True)


def rate(judge: Callable[[str, str], object], pairs: Sequence[tuple[str, str]], seconds: float = 1.0) -> int:
    """Answers per second of processor time."""
    for gold, answer in pairs[:200]:
        judge(gold, answer)
    start, n = time.process_time(), 0
    while time.process_time() - start < seconds:
        for gold, answer in pairs:
            judge(gold, answer)
        n += len(pairs)
    return round(n / (time.process_time() - start))


def by_exact(gold: str, answer: str) -> bool | None:
    return exact(gold, final_answer(answer) or "")


def math_verify() -> Callable[[str, str], bool]:
    """The library as it comes, with its own time limits."""
    library: Any = import_module("math_verify")

    def judge(gold: str, answer: str) -> bool:
        text = answer if any(mark in answer for mark in ("$", "\\boxed", "\\(", "\\[")) else f"${answer}$"
        try:
            return bool(library.verify(library.parse(f"${gold}$"), library.parse(text)))
        except Exception:
            return False

    return judge


def measure_exact() -> None:
    long = "We compute the sum step by step and simplify. " * 160
    integers = [(str(n), f"So it is \\boxed{{{n + n % 2}}}.") for n in range(10, 1010)]
    say("exact: boxed integers", answers_per_cpu_second=rate(by_exact, integers))
    say(
        "exact: boxed integers after 7.4k characters", answers_per_cpu_second=rate(by_exact, [(g, long + a) for g, a in integers])
    )
    pool = ScoringPool(MathAnswer(symbolic=False))
    items = batch(integers)
    start = time.process_time()
    for _ in range(20):
        pool.score(items)
    say(
        "exact: boxed integers, as scores of a pool",
        answers_per_cpu_second=round(20 * len(items) / (time.process_time() - start)),
    )
    for name in FAMILIES:
        pairs = [(p.gold, p.answer) for p in math_pairs(8_000, 1, (name,))]
        say(f"exact: {name}, no answer twice or in the cache", answers_per_cpu_second=rate(by_exact, pairs, 0.3))


def measure_mixed(n: int) -> None:
    pairs = mixture(n)
    items = batch([(p.gold, p.answer) for p in pairs])
    with ScoringPool(MathAnswer()) as pool:
        pool.score(batch([("\\sin x", "\\cos x")]))  # the library is imported
        start = time.perf_counter()
        verdicts = pool.score(items)
        ours = time.perf_counter() - start
    judge = math_verify()
    judge("1", "1")
    start = time.perf_counter()
    theirs = [judge(p.gold, p.answer) for p in pairs]
    alone = time.perf_counter() - start
    say(
        "mixed",
        answers=n,
        times=round(alone / ours, 1),
        ours_per_second=round(n / ours),
        math_verify_per_second=round(n / alone),
        tiers=dict(Counter(str(v.info["tier"]) for v in verdicts.values())),
        wrong_ours=sum((verdicts[r.id].primary == 1.0) is not p.equal for (_, r), p in zip(items, pairs, strict=True)),
        wrong_math_verify=sum(t is not p.equal for t, p in zip(theirs, pairs, strict=True)),
    )


def measure_hanging(n: int) -> None:
    pairs = [(p.gold, p.answer) for p in mixture(n, seed=1)]
    hostile = list(pairs)
    for k in range(0, n, 10):
        hostile[k] = (pairs[k][0], f"\\boxed{{{HOSTILE[k // 10 % len(HOSTILE)]}}}")
    seconds: dict[str, float] = {}
    verdicts: dict[str, int] = {}
    for name, some in (("honest", pairs), ("hostile", hostile), ("honest again", pairs), ("hostile again", hostile)):
        items = batch(some)
        with ScoringPool(MathAnswer()) as pool:
            pool.score(batch([("\\sin x", "\\cos x")]))  # the library is imported
            start = time.perf_counter()
            scores = pool.score(items)
            seconds[name] = round(time.perf_counter() - start, 3)
        if name == "hostile":
            verdicts = dict(Counter(str(scores[f"r{k}"].info["verdict"]) for k in range(0, n, 10)))
    ratio = (seconds["hostile"] + seconds["hostile again"]) / (seconds["honest"] + seconds["honest again"])
    say("hanging", answers=n, hostile=len(range(0, n, 10)), seconds=seconds, times=round(ratio, 2), verdicts_on_hostile=verdicts)


def false_verdicts(found: Sequence[bool | None], right: Sequence[bool]) -> dict[str, float]:
    positives = sum(f is True and not r for f, r in zip(found, right, strict=True))
    negatives = sum(f is False and r for f, r in zip(found, right, strict=True))
    return {
        "false_positive": round(positives / max(1, right.count(False)), 5),
        "false_negative": round(negatives / max(1, right.count(True)), 5),
        "undecided": round(sum(f is None for f in found) / len(found), 5),
    }


def measure_rates(n: int) -> None:
    made = [(p.gold, p.answer, p.equal) for p in math_pairs(n, seed=5)]
    lines = CASES.read_text(encoding="utf-8").splitlines()
    cases = [(c["gold"], c["answer"], c["expected"]) for c in map(json.loads, lines)]
    for name, triples in (("made pairs", made), ("math_cases.jsonl", cases)):
        right = [e for *_, e in triples]
        with ScoringPool(MathAnswer()) as pool:
            scores = pool.score(batch([(g, a) for g, a, _ in triples]))
        told = [str(scores[f"r{k}"].info["verdict"]) for k in range(len(triples))]
        both = [None if v in ("unparsed", "timeout") else v == "equal" for v in told]
        judge = math_verify()
        for tier, found in (
            ("exact tier", [by_exact(g, a) for g, a, _ in triples]),
            ("both tiers", both),
            ("math-verify alone", [judge(g, a) for g, a, _ in triples]),
        ):
            say(f"false verdicts, {name}, {tier}", pairs=len(triples), **false_verdicts(found, right))
            if tier == "math-verify alone" and name == "made pairs":
                family = [p.family for p in math_pairs(n, seed=5)]
                wrong = Counter(f for f, told, e in zip(family, found, right, strict=True) if told is not e)
                say(
                    "wrong verdicts of math-verify alone, percent by family",
                    **{f: round(100 * wrong[f] / family.count(f)) for f in FAMILIES},
                )


def measure_kinds(files: Sequence[Path]) -> None:
    """Wrong verdicts by kind, of both tiers and of math-verify alone."""
    rows = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row.get("verifier", "math") == "math" and row.get("paid", True) is not None]
    right = [bool(next(row[key] for key in ("equal", "expected", "paid") if key in row)) for row in rows]
    with ScoringPool(MathAnswer()) as pool:
        scores = pool.score(batch([(row["gold"], row["answer"]) for row in rows]))
    judge = math_verify()
    for name, paid in (
        ("both tiers", [scores[f"r{n}"].components.get("correct") == 1.0 for n in range(len(rows))]),
        ("math-verify alone", [judge(row["gold"], row["answer"]) for row in rows]),
    ):
        wrong: dict[str, dict[str, int]] = {}
        for row, said, equal in zip(rows, paid, right, strict=True):
            kind = wrong.setdefault(str(row.get("kind") or "other"), {"pairs": 0, "paid_wrongly": 0, "not_paid": 0})
            kind["pairs"] += 1
            kind["paid_wrongly"] += said and not equal
            kind["not_paid"] += equal and not said
        total = {key: sum(kind[key] for kind in wrong.values()) for key in ("pairs", "paid_wrongly", "not_paid")}
        say(f"wrong verdicts by kind, {name}", **total, kinds=wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="+", choices=["exact", "mixed", "hanging", "rates", "kinds"])
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--cases", type=Path, nargs="*", default=[CASES, FIELD], help="files of pairs for kinds")
    given = parser.parse_args()
    sys.setrecursionlimit(10_000)  # math-verify recurses deeply on some answers
    for name in given.what:
        {
            "exact": measure_exact,
            "mixed": lambda: measure_mixed(given.pairs),
            "hanging": lambda: measure_hanging(given.pairs),
            "rates": lambda: measure_rates(given.pairs),
            "kinds": lambda: measure_kinds(given.cases),
        }[name]()


if __name__ == "__main__":
    main()
