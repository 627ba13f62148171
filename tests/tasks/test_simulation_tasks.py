"""Processes: by hand, by their contract, and against other ways to compute them."""

from __future__ import annotations

import heapq
from random import Random
from typing import Any

import numpy as np
import pytest

from assay.tasks import Problem, Problems
from assay.testing import check_problem
from assay_tasks.simulation.cells import Ant, Ball, Elementary, Life, Robot, Turing
from assay_tasks.simulation.family import simulation
from assay_tasks.simulation.flows import BoardGame, Elevator, Inventory, Lights, Queue, StateMachine

SIMULATION: Problems = simulation()


@pytest.mark.parametrize("problem", SIMULATION.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=12, growth=3.0)


def _drawn(problem: Problem, n: int) -> list[dict[str, Any]]:
    return [problem.draw(level, Random(f"{level}/{i}")) for level in problem.levels for i in range(n)]


def test_cells_by_hand() -> None:
    assert Elementary().solve({"rule": 30, "row": "0001000", "steps": 3}).answer == "1101111"
    blinker = {"board": [".....", "..#..", "..#..", "..#..", "....."], "steps": 3}
    assert Life().solve(blinker).answer.split() == [".....", ".....", ".###.", ".....", "....."]
    ant = {"size": 9, "row": 4, "column": 4, "heading": 0, "black": [], "steps": 5}
    assert Ant().solve(ant).answer == "4, 3"  # right four times, back on the first cell, which is black now: left


def test_walks_by_hand() -> None:
    assert Robot().solve({"size": 5, "walls": [[3, 0]], "commands": ["B2", "R", "F9", "L", "F2", "L", "B1"]}).answer == "3, 2"
    assert Ball().solve({"width": 5, "height": 4, "x": 4, "y": 1, "dx": 3, "dy": -2, "steps": 2}).answer == "0, 3"
    beaver = {"A0": [1, "R", "B"], "A1": [1, "L", "B"], "B0": [1, "L", "A"], "B1": [1, "R", "H"]}
    found = Turing().solve({"tape": "00000000", "head": 4, "table": beaver, "steps": 50})
    assert found.answer.count("1") == 4 and found.effort == 6  # the busy beaver of two states


def test_flows_by_hand() -> None:
    bank = {"arrivals": [0, 1, 2, 9], "services": [5, 4, 1, 2], "counters": 1}
    assert [Queue().solve({**bank, "asked": a}).answer for a in ("end", "waiting", "longest")] == ["12", "12", "7"]
    shop = {"stock": 10, "low": 4, "order": 7, "delay": 2, "demand": [6, 5, 3, 1]}
    assert [Inventory().solve({**shop, "asked": a}).answer for a in ("stock", "lost", "sold")] == ["3", "1", "14"]
    assert Elevator().solve({"floor": 4, "calls": [6, 2, 7, 0], "top": 9}).answer == "2, 0, 6, 7"
    assert Lights().solve({"lights": [[2, 1, 1, 3]], "span": 9}).answer == "4"
    word = {"start": "P", "word": "abba", "table": {"Pa": ["Q", "x"], "Pb": ["P", "y"], "Qa": ["P", "y"], "Qb": ["P", "z"]}}
    assert StateMachine().solve(word).answer == "xzyx"
    game = {"last": 10, "jumps": {"3": 8, "8": 1}, "rolls": [[3, 5], [3, 3], [2, 6]]}
    assert BoardGame().solve(game).answer == "10, 7"  # 3 leads to 8 and no further, 11 is too far, 10; 5, 8 leads to 1, 7


def test_life_agrees_with_sums_of_shifted_boards() -> None:
    for facts in _drawn(Life(), 5):
        board = np.array([[c == "#" for c in row] for row in facts["board"]], dtype=int)
        for _ in range(facts["steps"]):
            wide = np.pad(board, 1)
            n, m = board.shape
            near = sum(wide[1 + a : 1 + a + n, 1 + b : 1 + b + m] for a in (-1, 0, 1) for b in (-1, 0, 1)) - board
            board = ((near == 3) | ((near == 2) & (board == 1))).astype(int)
        assert Life().solve(facts).answer == "\n".join("".join(".#"[c] for c in row) for row in board)


def test_balls_agree_with_a_folded_line() -> None:
    def folded(at: int, most: int) -> int:
        at %= 2 * most
        return min(at, 2 * most - at)

    for facts in _drawn(Ball(), 20):
        x = folded(facts["x"] + facts["dx"] * facts["steps"], facts["width"])
        y = folded(facts["y"] + facts["dy"] * facts["steps"], facts["height"])
        assert Ball().solve(facts).answer == f"{x}, {y}"


def test_queues_agree_with_a_heap() -> None:
    for facts in _drawn(Queue(), 10):
        free, last, waits = [0] * facts["counters"], 0, list[int]()
        for arrival, service in zip(facts["arrivals"], facts["services"], strict=True):
            start = max(arrival, heapq.heappop(free))
            heapq.heappush(free, start + service)
            last, waits = max(last, start + service), [*waits, start - arrival]
        assert Queue().solve(facts).answer == str({"end": last, "waiting": sum(waits), "longest": max(waits)}[facts["asked"]])
