"""Counting and chance: each solver against lists of all outcomes."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import comb, perm
from typing import Any

import pytest

from assay.core.canon import plain
from assay.tasks import Problem
from assay.testing import check_problem
from assay_tasks.math.chance import Arrangements, Cards, Coins, Urn, chance

SOURCE = chance()


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=40, growth=1.8)


def meets(count: int, how: str, wanted: int) -> bool:
    return {"exactly": count == wanted, "at least": count >= wanted, "at most": count <= wanted}[how]


def counted(f: dict[str, Any]) -> int:
    """Arrangements, one by one; of few people where there are many."""
    n, k = f.get("n", 0), f.get("k", 0)
    match f["kind"]:
        case "choose":
            return sum(1 for _ in combinations(range(n), k))
        case "places":
            return perm(n, k)
        case "code":
            return sum(1 for _ in product(range(n), repeat=k))
        case "letters":
            return len(set(permutations(f["word"])))
        case "digits":
            rows = permutations(f["digits"], k)
            return sum(row[0] != 0 and int("".join(map(str, row))) % f["by"] == 0 for row in rows)
        case "committee":
            people = [0] * f["men"] + [1] * f["women"]
            return sum(sum(c) >= f["least"] for c in combinations(people, f["size"]))
        case "ring":
            rest = n + k - 1
            return sum(1 for _ in permutations(range(rest)))
        case kind:
            rows = permutations(range(n + k))
            places = ([i for i, p in enumerate(row) if p < k] for row in rows)
            if kind == "together":
                return sum(at[-1] - at[0] == k - 1 for at in places)
            return sum(all(b - a > 1 for a, b in pairwise(at)) for at in places)


def by_listing(arm: str, f: dict[str, Any]) -> Fraction | int:
    match arm:
        case "dice":
            rolls = list(product(*(range(1, s + 1) for s in f["sides"])))
            return Fraction(sum(meets(sum(r), f["how"], f["total"]) for r in rolls), len(rolls))
        case "urn":
            balls = [c for c, k in f["balls"].items() for _ in range(k)]
            hands = list(combinations(balls, sum(f["wanted"].values())))
            return Fraction(sum(all(h.count(c) == f["wanted"].get(c, 0) for c in f["balls"]) for h in hands), len(hands))
        case "cards":
            cards = [1] * f["kind"] + [0] * (f["deck"] - f["kind"])
            hands = combinations(cards, f["hand"])
            return Fraction(sum(meets(sum(h), f["how"], f["count"]) for h in hands), comb(f["deck"], f["hand"]))
        case "coins":
            p, total = Fraction(f["heads"]), Fraction(0)
            for row in product((0, 1), repeat=f["tosses"]):
                good = {
                    "exactly": sum(row) == f["count"],
                    "at_least": sum(row) >= f["count"],
                    "no_pair": all(a * b == 0 for a, b in pairwise(row)),
                }[f["what"]]
                total += good * p ** sum(row) * (1 - p) ** (len(row) - sum(row))
            return total
        case "expectation":
            prizes = [prize for prize, k in f["prizes"] for _ in range(k)]
            fields = prizes + [0] * (f["tickets"] - len(prizes))
            return f["plays"] * Fraction(sum(x - f["price"] for x in fields), len(fields))
        case "arrangements":
            return counted(f)
        case "paths":
            closed, reached = {tuple(p) for p in f["closed"]}, [(0, 0)]
            for _ in range(f["width"] + f["height"]):
                steps = [(x + dx, y + 1 - dx) for x, y in reached for dx in (0, 1)]
                reached = [p for p in steps if p not in closed and p[0] <= f["width"] and p[1] <= f["height"]]
            return len(reached)
        case "conditional":
            people = [(i, j) for i, row in enumerate(f["counts"]) for j, n in enumerate(row) for _ in range(n)]
            axis = 0 if f["given"] == "row" else 1
            known = [p for p in people if p[axis] == (f["row"], f["column"])[axis]]
            return Fraction(known.count((f["row"], f["column"])), len(known))
        case _:
            parts = [s * r for s, r in zip(f["shares"], f["rates"], strict=True)]
            return Fraction(parts[f["asked"]], sum(parts))


@pytest.mark.parametrize("arm", SOURCE.arms())
def test_agrees_with_all_outcomes(arm: str) -> None:
    short = arm.removeprefix("chance/")
    for level in SOURCE.arms()[arm][: 2 if short in ("urn", "dice", "cards", "paths") else 4]:
        for index in range(8):
            task = SOURCE.task(arm, level, "train", index)
            f = plain(task.public["facts"])
            if f.get("kind") in ("code", "choose", "ring", "together", "apart") and f.get("n", 0) + f["k"] > 9:
                f |= {"n": 5, "k": 3}
            assert SOURCE.problem(arm).solve(f).answer == str(by_listing(short, f)), f


def test_by_hand() -> None:
    assert Coins().solve({"tosses": 2, "heads": "1/3", "what": "at_least", "count": 1}).answer == "5/9"
    assert Arrangements().solve({"kind": "digits", "digits": [0, 1, 2], "k": 2, "by": 10}).answer == "2"
    assert Arrangements().solve({"kind": "digits", "digits": [1, 3, 7], "k": 2, "by": 10}).answer == "0"
    assert Arrangements().fields({"kind": "digits", "digits": [0, 1, 2], "k": 2, "by": 5})["text"].count("0, 1 and 2") == 1
    assert Urn().fields({"balls": {"red": 2, "blue": 3}, "wanted": {"red": 1}})["wanted"] == "a red ball"
    assert Cards().solve({"deck": 20, "kind": 5, "name": "x", "hand": 2, "how": "exactly", "count": 1}).answer == "15/38"


def test_probabilities_of_all_events_add_to_one() -> None:
    hand = {"deck": 30, "kind": 8, "name": "x", "hand": 2, "how": "exactly"}
    assert sum(Fraction(Cards().solve({**hand, "count": count}).answer) for count in range(3)) == 1
