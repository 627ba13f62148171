"""Small families: answers by hand, a second way to each answer, effort that grows, and that one constant answer is no use."""

from collections import Counter
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.rollout import Stop
from assay.tasks import family
from assay.testing import rollout_of
from assay_tasks.small.generations import Generations
from assay_tasks.small.tables import FollowPath
from assay_tasks.small.terse import Terse

NAMES = (
    "addition",
    "balance",
    "brackets",
    "cells",
    "collect",
    "columns",
    "counter",
    "dedup",
    "gates",
    "knights",
    "largest",
    "lookup",
    "octal",
    "path",
    "recall",
    "select",
    "skip",
    "strip",
    "total",
)
CELLS = st.tuples(st.sampled_from(NAMES), st.integers(0, 20), st.integers(0, 10**6))


def small(name: str) -> Terse:
    source = family(name)
    assert isinstance(source, Terse)
    return source


def other_way(name: str, body: str) -> str:
    """The answer by other means than the family's."""
    match name:
        case "addition":
            total = int(body[::2][::-1]) + int(body[1::2][::-1])
            return f"{total:0{len(body) // 2 + 1}d}"[::-1]
        case "balance" | "collect" | "columns":
            rows, start = body.split(":")
            graph = nx.DiGraph((row[0], row[-1], {"digits": row[1:-1]}) for row in rows.split("."))
            steps = list(nx.dfs_edges(graph, start))
            keys, digits = [target for _, target in steps], [graph.edges[step]["digits"] for step in steps]
            values = digits
            if name == "balance":
                values = [str(sum(map(int, digits[: i + 1])))[-1] for i in range(len(digits))]
            if name == "columns":
                one, other = (int("".join(pair[i] for pair in reversed(digits))) for i in (0, 1))
                *values, carry = reversed(f"{one + other:0{len(digits) + 1}d}")
                return "".join(map("".join, zip(keys, values, strict=True))) + carry
            return "".join(map("".join, zip(keys, values, strict=True)))
        case "brackets":
            rest = body
            while any(pair in rest for pair in ("()", "[]", "{}")):
                rest = rest.replace("()", "").replace("[]", "").replace("{}", "")
            return rest[::-1].translate(str.maketrans("([{", ")]}"))
        case "cells":  # https://mathworld.wolfram.com/Rule110.html: 111 110 101 100 011 010 001 000 give 0 1 1 0 1 1 1 0
            rule = dict(zip(("".join(p) for p in product("10", repeat=3)), "01101110", strict=True))
            return "".join(rule[f"0{body}0"[i : i + 3]] for i in range(len(body)))
        case "counter" | "total":
            program = body if name == "counter" else "".join(f"+{d}" for d in body)
            found, text = "", "0"
            for i in range(0, len(program), 2):
                text = f"(({text}) {program[i : i + 2]}) % {5 if name == 'counter' else 10}"
                found += str(eval(text))
            return found
        case "dedup":
            return "".join(letter for i, letter in enumerate(body) if letter not in body[:i])
        case "gates":
            found, text = "", "0"
            for i in range(0, len(body), 2):
                text = f"(({text}) {body[i : i + 2]})"
                found += str(eval(text))
            return found
        case "knights":
            lies = np.cumsum([claim == "f" for claim in body[1::2]]) % 2
            return "".join("f" if n else "t" for n in lies)
        case "largest":
            return sorted(body.split("."))[-1]
        case "lookup":
            table, asked = body.split(":")
            return "".join(table[table.index(key) + 1] for key in asked)
        case "octal":
            return f"{int(body, 2):0{len(body) // 3}o}"
        case "path":
            arrows, start = body.split(":")
            graph = nx.DiGraph(zip(arrows[::2], arrows[1::2], strict=True))
            return "".join(target for _, target in nx.dfs_edges(graph, start))
        case "recall":
            table, asked = body.split(":")
            return "".join(table[table.index(key) :][:2] for key in asked)
        case "select":
            rows, key = body.split(":")
            return "".join(rows[i + 1] for i in range(0, len(rows), 2) if rows[i] == key)
        case _:
            return "".join(c for i, c in enumerate(body[1:], 1) if i % int(body[0]) == 0)


@given(CELLS)
def test_answers_by_another_way(cell: tuple[str, int, int]) -> None:
    name, at, index = cell
    if name == "strip":
        return
    source = small(name)
    task = source.task(name, source.levels[at % len(source.levels)], ("train", "test")[index % 2], index)
    assert other_way(name, task.public["prompt"][1:-1]) == task.private["answer"]


@given(st.integers(4, 10), st.integers(0, 10**6))
def test_ways_through_a_strip(level: int, index: int) -> None:
    """A graph of free cells agrees that there is a way; every shortest way is right, and one through a wall is not."""
    source = small("strip")
    task = source.task("strip", level, "train", index)
    rows = task.private["answer"]["maze"]
    free = {(r, c) for r, row in enumerate(rows) for c, here in enumerate(row) if here != "#"}
    graph = nx.Graph((a, b) for a in free for b in free if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1)
    letters = {(0, 1): "r", (1, 0): "d", (-1, 0): "u"}
    verifier, shortest = source.verifier(), nx.shortest_path_length(graph, (0, 0), (0, level + 1))
    for way in list(nx.all_shortest_paths(graph, (0, 0), (0, level + 1)))[:8]:
        moves = "".join(letters[b[0] - a[0], b[1] - a[1]] for a, b in pairwise(way))
        assert verifier(task, rollout_of(task, moves)).components["correct"] == 1.0
        assert verifier(task, rollout_of(task, moves, stop=Stop.LENGTH)).primary == 0.0
    assert len(task.private["solution"]) == task.private["effort"] == shortest
    assert verifier(task, rollout_of(task, "r" * (level + 1))).primary == float("^" not in task.public["prompt"])
    assert verifier(task, rollout_of(task, "du" + task.private["solution"])).primary == 1.0  # a way round is a way


@pytest.mark.parametrize(
    ("name", "prompt", "answer", "effort"),
    [
        ("addition", "A7843>", "580", 3),  # 47 + 38: two columns, one carry
        ("addition", "A9911>", "830", 3),  # 19 + 19 = 38
        ("balance", "Ta5b.c4f.f7a:c>", "f4a1b6", 6),
        ("brackets", "B([]{>", "})", 6),
        ("cells", "C0001000>", "0011000", 7),
        ("collect", "Ha5b.c4f.f7a:c>", "f4a7b5", 6),
        ("columns", "Nf43b.c78f:c>", "f5b80", 3),  # 47 + 38, as above
        ("counter", "X+4*4-2>", "414", 3),
        ("dedup", "Uabacb>", "abc", 6),  # a with none, b with a, a with a, c with a and b, b with a and b
        ("gates", "L|1&1^1>", "110", 3),
        ("knights", "Kefbtaf>", "fft", 3),
        ("largest", "M23.45.07>", "45", 2),
        ("lookup", "Qc7a3f0b3:af>", "30", 5),
        ("octal", "O101011>", "53", 6),
        ("path", "Pcdabbc:a>", "bcd", 6),
        ("recall", "Vc7a3f0b3:af>", "a3f0", 5),
        ("select", "Da3b4a2:a>", "32", 3),
        ("skip", "Y3abcdefgh>", "cf", 8),
        ("total", "G475>", "416", 3),
    ],
)
def test_answers_by_hand(name: str, prompt: str, answer: str, effort: int) -> None:
    source = small(name)
    assert (source.solve(prompt), source.effort(prompt)) == (answer, effort)


def test_generations_are_cells_again_and_again() -> None:
    """Row by row as `Cells` has it; the last line alone is judged, and no last line is right often."""
    source = family("generations")
    verifier = source.verifier()
    assert isinstance(source, Generations)
    for level in source.levels:
        tasks = [source.task("generations", level, "train", i) for i in range(60)]
        for task in tasks[:5]:
            row, lines = task.public["prompt"][1:15], task.private["solution"].split("\n")
            for left, line in zip(range(level, 0, -1), lines, strict=True):
                row = other_way("cells", row)
                assert line == f"{left:02d}.{row}"
            assert task.private["answer"] == lines[-1] and task.private["effort"] == 14 * level
            for text, right in ((task.private["solution"], 1.0), (lines[-1], 1.0), ("nonsense\n" + lines[-1], 1.0)):
                assert verifier(task, rollout_of(task, text)).components == {"correct": right}
            wrong = lines[-1][:-1] + "10"[int(lines[-1][-1])]
            assert verifier(task, rollout_of(task, "\n".join([*lines[:-1], wrong]))).primary == 0.0
            assert verifier(task, rollout_of(task, task.private["solution"], stop=Stop.LENGTH)).primary == 0.0
        (_, most), *_ = Counter(t.private["answer"] for t in tasks).most_common(1)
        assert most <= 6, (level, most)
        assert set(source.alphabet) >= set("".join(t.public["prompt"] + t.private["solution"] for t in tasks))


def test_dots_between_arrows() -> None:
    """The same arrows with a dot between two, and nothing else."""
    plain, dotted = FollowPath(), FollowPath(dots=True)
    assert set(dotted.alphabet) == {*plain.alphabet, "."}
    for level in plain.levels:
        task = dotted.task("path", level, "train", 0)
        arrows, _, start = task.public["prompt"][1:].partition(":")
        assert all(len(arrow) == 2 for arrow in arrows.split(".")) and arrows.count(".") == level - 1
        same = f"P{arrows.replace('.', '')}:{start}"
        assert (plain.solve(same), plain.effort(same)) == (task.private["solution"], task.private["effort"])


@pytest.mark.parametrize("name", NAMES)
def test_effort_grows_with_the_level(name: str) -> None:
    source = small(name)
    means = [np.mean([source.task(name, level, "train", i).private["effort"] for i in range(40)]) for level in source.levels]
    assert all(a < b for a, b in pairwise(means)) and means[-1] > 1.7 * means[0], means


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_short_and_no_answer_is_right_often(name: str) -> None:
    source = small(name)
    for level in source.levels:
        tasks = [source.task(name, level, "train", i) for i in range(100)]
        assert max(len(t.public["prompt"]) for t in tasks) <= 36
        assert max(len(t.private["solution"]) for t in tasks) <= 19
        (_, most), *_ = Counter(t.private["solution"] for t in tasks).most_common(1)
        assert most <= 60, (level, most)
        assert all(t.domain == source.area for t in tasks[:3])


@given(CELLS)
def test_a_wrong_symbol_is_wrong_and_of_the_right_form(cell: tuple[str, int, int]) -> None:
    name, at, index = cell
    source = small(name)
    task = source.task(name, source.levels[at % len(source.levels)], "train", index)
    right, verifier = task.private["solution"], source.verifier()
    wrong = right[:-1] + source.symbols[(source.symbols.index(right[-1]) + 1) % len(source.symbols)]
    found = verifier(task, rollout_of(task, wrong)).components
    assert found["format"] == 1.0
    if name != "strip":
        assert found["correct"] == 0.0
    assert verifier(task, rollout_of(task, right + "?")).components == dict.fromkeys(found, 0.0)
