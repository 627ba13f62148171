"""Circuits to design: by hand, by their contract, and simulated beside other ways to write them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from assay.core.canon import plain
from assay.tasks import Problems
from assay.testing import check_problem
from assay.verify.rollouts import rollout_of
from assay_tasks.hardware.family import hardware
from assay_tasks.hardware.problems import Arithmetic, Counter, HardwareProblem, Moore, Shift, TruthTable

HARDWARE: Problems = hardware()
needs_iverilog = pytest.mark.skipif(shutil.which("vvp") is None, reason="vvp is not installed (Debian package iverilog)")


def test_what_is_asked_by_hand() -> None:
    facts: dict[str, Any] = {
        "name": "c",
        "width": 3,
        "most": 5,
        "step": 1,
        "asynchronous": True,
        "low": True,
        "ports": ["en", "down"],
    }
    assert Counter().header(facts) == "module c(input clk, rst_n, en, down, output reg [2:0] q);"
    assert Counter().fields(facts)["what"] == (
        "While rst_n is 0, the 3-bit output q becomes 0, at once, without waiting for the clock. Otherwise q changes at each "
        "rising "
        "edge of clk at which en is 1: it grows by 1; behind 5 comes 0. If down is 1, it shrinks by 1 instead, and behind 0 "
        "comes 5."
    )
    unit = {"name": "u", "width": 4, "operations": ["product", "keep", "difference"]}
    assert Arithmetic().fields(unit)["table"] == (
        "The output y depends on op: if op is 0, y is the low 4 bits of a times b; if op is 1, y is b; if op is 2, y is a - b "
        "modulo "
        "16. For any other op y is 0."
    )
    table = {"inputs": ["a", "b"], "outputs": ["y", "z"], "rows": [1, 0, 3, 2]}
    assert TruthTable().fields(table)["table"].split("\n") == ["a b | y z", "0 0 | 0 1", "0 1 | 0 0", "1 0 | 1 1", "1 1 | 1 0"]


@pytest.mark.parametrize("problem", HARDWARE.problems, ids=lambda p: p.name)
def test_levels_grow(problem: HardwareProblem) -> None:
    means = [
        sum(problem.solve(problem.draw(level, Random(f"{level}/{i}"))).effort for i in range(30)) / 30 for level in problem.levels
    ]
    assert all(b >= 0.97 * a for a, b in pairwise(means)) and means[-1] > 1.5 * means[0]


def test_states_are_reached() -> None:
    for level in Moore().levels:
        states = Moore().draw(level, Random(level))["states"]
        found = [0]
        for i in found:
            found += [n for n in states[i][2] if n not in found]
        assert len(set(found)) == len(states) and len({y for _, y, _ in states}) == 2


@needs_iverilog
@pytest.mark.prove
@pytest.mark.parametrize("problem", HARDWARE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: HardwareProblem) -> None:
    check_problem(replace(problem, levels=(1, 5)), n=4, growth=1.5)


def _otherwise(problem: HardwareProblem, facts: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The module's body in another way, and with a mistake."""
    if isinstance(problem, TruthTable):
        n, rows = len(facts["inputs"]), facts["rows"]

        def summed(rows: list[int]) -> list[str]:
            found: list[str] = []
            for bit, name in enumerate(reversed(facts["outputs"])):
                terms = [
                    " & ".join(("" if i >> (n - 1 - k) & 1 else "~") + x for k, x in enumerate(facts["inputs"]))
                    for i, row in enumerate(rows)
                    if row >> bit & 1
                ]
                found.append(f"assign {name} = {' | '.join(f'({t})' for t in terms)};")
            return found

        return summed(rows), summed([rows[0] ^ 1, *rows[1:]])
    right = problem.body(facts)
    text = "\n".join(right)
    if isinstance(problem, Moore):
        return [text.replace("state <= 0; else", "state <= 4'd0; else")], [text.replace("if (rst)", "if (!rst)")]
    if isinstance(problem, Shift):
        moved = f"q <= {{q[0], q[{facts['width'] - 1}:1]}}"
        return [text.replace("else", "else begin", 1) + " end"], [text.split("q <= {")[0] + moved + ";"]
    if isinstance(problem, Counter):
        return [text.replace("q <= 0; else", "begin q <= 0; end else", 1)], [text.replace("q <= 0; else", "q <= 1; else", 1)]
    return [text.replace("y = ", "y = 0 | ", 1)], [text.replace("y = ", "y = 1 + ", 1)]


@needs_iverilog
@pytest.mark.prove
@pytest.mark.parametrize("problem", HARDWARE.problems, ids=lambda p: p.name)
def test_other_ways_pass_and_mistakes_fail(problem: HardwareProblem) -> None:
    verifier = HARDWARE.verifier()
    for level in problem.levels:
        task = HARDWARE.task(problem.name, level, "train", 0)
        facts = plain(task.public["facts"])
        right, wrong = ("\n".join([problem.header(facts), *body, "endmodule"]) for body in _otherwise(problem, facts))
        assert verifier(task, rollout_of(task, task.private["solution"])).primary == 1.0
        assert verifier(task, rollout_of(task, f"```verilog\n{right}\n```")).primary == 1.0, right
        assert verifier(task, rollout_of(task, f"```verilog\n{wrong}\n```")).primary == 0.0, wrong
