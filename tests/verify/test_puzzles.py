"""Satisfying assignments, mazes and roles: by hand, and against second implementations."""

import itertools
import random
from collections import deque

import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.verify import Assignment, MazePath, Satisfies, task_and_rollout

TWO = {"clauses": [[1, -2], [2, 3]]}


@pytest.mark.parametrize(
    ("said", "verdict", "fraction"),
    [
        ("x1=True, x2=True", "equal", 1.0),
        ("x1 = 1\nx_2: false\nx3 -> T", "equal", 1.0),
        ('{"x1": true, "x2": true}', "equal", 1.0),
        ("1 -2 3 0", "equal", 1.0),
        ("v 1 2 0", "equal", 1.0),
        ("x1 = True and x2 = True", "equal", 1.0),
        ("[1, -2, 3]", "equal", 1.0),
        ("x2=1", "invalid", 0.5),
        ("2", "invalid", 0.5),
        ("-1 -2 -3", "invalid", 0.5),
        ("1 -1 2", "invalid", 0.0),
        ("x1=maybe", "unparsed", 0.0),
        ("x9=1", "unparsed", 0.0),
        ("4", "unparsed", 0.0),
        ("0", "unparsed", 0.0),
        ("", "unparsed", 0.0),
        ("true", "unparsed", 0.0),
        ("unsat", "different", 0.0),
        ("Answer: x1=1, x2=1.", "equal", 1.0),
    ],
)
def test_sat(said: str, verdict: str, fraction: float) -> None:
    score = Satisfies()(*task_and_rollout(TWO, said))
    assert (score.info["verdict"], score.components["fraction"]) == (verdict, fraction)
    assert score.primary == float(verdict == "equal")


def test_sat_golds() -> None:
    unsat = {"clauses": [[1], [-1]], "satisfiable": False}
    assert [Satisfies()(*task_and_rollout(unsat, s)).primary for s in ("UNSAT", "x1=1", "")] == [1.0, 0.0, 0.0]
    assert Satisfies()(*task_and_rollout({"clauses": [[1, 2]], "names": ["Rain", "sun"]}, "rain=false, Sun=true")).primary == 1.0
    assert Satisfies()(*task_and_rollout({"clauses": [[]]}, "1")).info["verdict"] == "unparsed"  # there is no variable
    for gold in (
        3,
        {},
        {"clauses": []},
        {"clauses": [1]},
        {"clauses": [[0]]},
        {"clauses": [["1"]]},
        {"clauses": [[True]]},
        {"clauses": [[2]], "names": ["a"]},
        {"clauses": [[1]], "names": "a"},
    ):
        with pytest.raises(DataError, match="gold"):
            Satisfies()(*task_and_rollout(gold, "1"))
    with pytest.raises(UnknownNameError):
        Satisfies(where="x")


def test_sat_against_truth_tables() -> None:
    rng = random.Random(14)
    right = 0
    for _ in range(1500):
        n = rng.randint(1, 5)
        clauses = [[rng.choice([1, -1]) * rng.randint(1, n) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 6))]
        n = max(abs(x) for c in clauses for x in c)
        rows = [dict(enumerate(values, 1)) for values in itertools.product([False, True], repeat=n)]
        good = [row for row in rows if all(any(row[abs(x)] == (x > 0) for x in c) for c in clauses)]
        row = rng.choice(good) if good and rng.random() < 0.5 else rng.choice(rows)
        said = rng.choice(
            [
                " ".join(str(i if v else -i) for i, v in row.items()) + " 0",
                ", ".join(f"x{i}={v}" for i, v in row.items()),
                "Answer: " + "; ".join(f"X{i}: {int(v)}" for i, v in row.items()),
            ]
        )
        score = Satisfies()(*task_and_rollout({"clauses": clauses}, said))
        assert score.primary == float(row in good), (clauses, said)
        held = [c for c in clauses if {(abs(x), x > 0) for x in c} & set(row.items())]
        assert score.components["fraction"] == len(held) / len(clauses)
        right += row in good
    assert 450 < right < 1350


# ---- mazes

MAZE = {"maze": ["S..", "#.#", "..G"], "value": 4}


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("RDDR", "equal"),
        ("right, down, down, right", "equal"),
        ("→↓↓→", "equal"),
        ("E S S E", "equal"),
        ("essE", "equal"),
        ("(0, 0), (0, 1), (1, 1), (2, 1), (2, 2)", "equal"),
        ("[[0,0],[0,1],[1,1],[2,1],[2,2]]", "equal"),
        ("Right -> Down -> Down -> Right", "equal"),
        ("1. right\n2. down\n3. down\n4. right", "equal"),
        ("- R\n- D", "invalid"),
        ("R R L D D R", "suboptimal"),
        ("D", "invalid"),
        ("RD", "invalid"),
        ("RDDRR", "invalid"),
        ("RDDRL", "invalid"),
        ("U", "invalid"),
        ("L", "invalid"),
        ("(0, 0), (1, 1), (2, 1), (2, 2)", "invalid"),
        ("(0, 0), (0, 1), (0, 0)", "invalid"),
        ("(0, 0)", "invalid"),
        ("(0, 1), (1, 1)", "unparsed"),
        ("go right", "unparsed"),
        ("", "unparsed"),
        ("!", "unparsed"),
        ("R then D", "unparsed"),
        ("(0, 0) or (0, 1)", "unparsed"),
    ],
)
def test_maze(said: str, verdict: str) -> None:
    score = MazePath()(*task_and_rollout(MAZE, said))
    assert score.info["verdict"] == verdict
    assert dict(score.components) == {"correct": float(verdict == "equal"), "valid": float(verdict in ("equal", "suboptimal"))}


def test_maze_golds() -> None:
    other = {"maze": "AX\n.B", "start": "A", "goal": "B", "wall": "X"}
    assert [MazePath()(*task_and_rollout(other, s)).primary for s in ("DR", "DUDR", "RD")] == [1.0, 1.0, 0.0]
    for gold in (
        3,
        {},
        {"maze": []},
        {"maze": ["S", "GG"]},
        {"maze": ["S."]},
        {"maze": ["SSG"]},
        {"maze": [1]},
        MAZE | {"value": "4"},
        MAZE | {"value": True},
    ):
        with pytest.raises(DataError, match="gold"):
            MazePath()(*task_and_rollout(gold, "R"))
    with pytest.raises(UnknownNameError):
        MazePath(where="x")


def test_maze_against_a_walk_on_paper() -> None:
    """Mazes as graphs of free cells: the shortest way by breadth-first search, and walks of random moves."""
    rng = random.Random(15)
    tally = {"equal": 0, "suboptimal": 0, "invalid": 0}
    step = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
    for _ in range(1500):
        size = rng.randint(2, 4)
        cells = {(r, c): "." if rng.random() < 0.75 else "#" for r in range(size) for c in range(size)}
        start, goal = rng.sample(sorted(cells), 2)
        cells |= {start: "S", goal: "G"}
        rows = ["".join(cells[r, c] for c in range(size)) for r in range(size)]
        free = {cell for cell, mark in cells.items() if mark != "#"}
        ways, queue = {start: ""}, deque([start])
        while queue:
            r, c = queue.popleft()
            for letter, (dr, dc) in step.items():
                if (r + dr, c + dc) in free and (r + dr, c + dc) not in ways:
                    ways[r + dr, c + dc] = ways[r, c] + letter
                    queue.append((r + dr, c + dc))
        if goal not in ways:
            continue
        moves = ways[goal]
        for _ in range(rng.randint(0, 2)):
            at = rng.randint(0, len(moves))
            moves = moves[:at] + rng.choice(["LR", "UD", "RL", "DU", "L", "U", "R"]) + moves[at:]
        trail = list(itertools.accumulate((step[m] for m in moves), lambda p, d: (p[0] + d[0], p[1] + d[1]), initial=start))
        valid = set(trail) <= free and trail[-1] == goal
        wanted = "invalid" if not valid else "equal" if len(moves) == len(ways[goal]) else "suboptimal"
        gold = {"maze": rows, "value": len(ways[goal])}
        for said in (
            " ".join(moves),
            ", ".join(f"({r}, {c})" for r, c in trail) if trail[0] == start and min(map(min, trail)) >= 0 else moves,
        ):
            assert MazePath()(*task_and_rollout(gold, said)).info["verdict"] == wanted, (rows, said)
        tally[wanted] += 1
    assert min(tally.values()) > 100, tally


# ---- roles

PAIR = {"Ann": "knight", "Bob": "knave"}


@pytest.mark.parametrize(
    ("said", "verdict", "fraction"),
    [
        ("Ann: knight, Bob: knave", "equal", 1.0),
        ('{"ann": "Knight", "bob": "knave"}', "equal", 1.0),
        ("Ann is a knight. Bob is a knave.", "equal", 1.0),
        ("So Ann is a knight, and Bob is a knight.", "different", 0.5),
        ("Ann: a knight; Bob: a knave", "equal", 1.0),
        ("Ann is a knight", "different", 0.5),
        ("Ann is a knight. Ann is a knave. Bob is a knave.", "unparsed", 0.0),
        ("Ann is a spy, Bob is a knave", "unparsed", 0.0),
        ("", "unparsed", 0.0),
        ("Ann: knight, Bob: knave, Cid: knave", "different", 1.0),
        ("Ann is not a knight", "unparsed", 0.0),
    ],
)
def test_roles(said: str, verdict: str, fraction: float) -> None:
    score = Assignment()(*task_and_rollout(PAIR, said))
    assert (score.info["verdict"], score.components["fraction"], score.primary) == (verdict, fraction, float(verdict == "equal"))


def test_roles_golds_and_a_second_reading() -> None:
    for gold in ("knight", {}, 3, []):
        with pytest.raises(DataError, match="no table of roles"):
            Assignment()(*task_and_rollout(gold, "x"))
    with pytest.raises(UnknownNameError):
        Assignment(where="x")
    assert Assignment(roles=("spy",))(*task_and_rollout(PAIR, "Ann is a spy. Bob is a knave")).components["fraction"] == 0.5
    rng = random.Random(16)
    names = ["Ann", "Bob", "Cid", "Dee"]
    for _ in range(3000):
        gold = {n: rng.choice(["knight", "knave"]) for n in names[: rng.randint(1, 4)]}
        said = {n: rng.choice(["knight", "knave"]) if rng.random() < 0.3 else role for n, role in gold.items()}
        text = rng.choice(["{} is a {}", "{}: {}", "{} is {}"])
        text = rng.choice([", ", "\n", "; "]).join(text.format(n, r) for n, r in rng.sample(sorted(said.items()), len(said)))
        score = Assignment()(*task_and_rollout(gold, text))
        bits = [said[n] == gold[n] for n in gold]
        assert (score.primary, score.components["fraction"]) == (float(all(bits)), sum(bits) / len(bits)), text
