"""The registry of names, and what every verifier in it promises: its components, no exception on any text, bounded time."""

import pickle
import random
import time
from dataclasses import fields
from pathlib import Path

import pytest
from needed_tools import with_tools

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.score import Fault
from assay.testing.contracts import check_verifier
from assay.testing.slips import HOSTILE_TEXTS, slip
from assay.verify import about, judge, task_and_rollout, verifier, verifiers
from assay.verify.constraints import CONSTRAINTS

DOCS = Path(__file__).parents[2] / "docs"
EDGES = [["a", "b", 2], ["b", "c", 1], ["c", "d", 1], ["d", "a", 1], ["a", "c", 5]]
GRAPH = {"edges": EDGES, "source": "a", "target": "c"}
GOLDS = {
    "exact": ("four", "four"),
    "math": ("\\frac{1}{2}", "\\boxed{0.5}"),
    "choice": ({"answer": "B", "options": ["red", "blue"]}, "(B)"),
    "set": (["a", "b"], "b, a"),
    "list": (["a", "b"], "a, b"),
    "numeric": (3.5, "7/2"),
    "closeness": (3.5, "7/2"),
    "json": ({"a": [1, None]}, '{"a": [1, null]}'),
    "json_schema": ({"schema": {"type": "array", "uniqueItems": True}, "value": [1, "a"]}, '[1, "a"]'),
    "regex": ("[a-z]+ [0-9]{3}", "abc 123"),
    "format": (None, "<think>a</think><answer>b</answer>"),
    "formatted": ("b", "<think>a</think><answer>b</answer>"),
    "classification": ("dog", "<think>a</think><answer>dog</answer>"),
    "ranking": ({"gains": {"a": 2, "b": 0, "c": 1}}, "a, c, b"),
    "constraints": (
        [
            {"constraint": "words", "count": 2},
            {"constraint": "sentences", "count": 1},
            {"constraint": "script", "script": "latin"},
            {"constraint": "paragraphs", "count": 1},
            {"constraint": "bullets", "count": 0},
            {"constraint": "highlights", "count": 0},
            {"constraint": "keyword_frequency", "keyword": "a b", "count": 0},
            {"constraint": "no_commas"},
            {"constraint": "title"},
            {"constraint": "placeholders", "count": 0},
            {"constraint": "sections", "count": 0},
        ],
        "Hello you <<x>>",
    ),
    "sql": (
        {"query": "SELECT a FROM t", "database": {"schema": {"t": [["a", "INT"]]}, "instances": [{"t": [[1]]}, {"t": [[2]]}]}},
        "```sql\nSELECT a FROM t\n```",
    ),
    "assignment": ({"Ann": "knight", "Bob": "knave"}, "Ann is a knight, Bob is a knave"),
    "grid": ([["1", "2"], ["2", "1"]], "1 2\n2 1"),
    "maze": ({"maze": ["S.", "#G"], "value": 2}, "right, down"),
    "countdown": ({"numbers": [3, 3, 8, 8], "target": 24}, "8 / (3 - 8 / 3)"),
    "plan": ({"world": "jugs", "sizes": [3, 5], "target": 2, "most": 3}, "fill B, pour B A"),
    "sat": ({"clauses": [[1, -2], [2]]}, "x1=True, x2=True"),
    "smt": ({"smt": "(declare-const x Int) (assert (> (* x x) 8))"}, "x = -3"),
    "graph_path": (GRAPH, "a -> b -> c"),
    "graph_shortest_path": (GRAPH | {"value": 2}, "a, d, c"),
    "graph_cycle": (GRAPH, "a b c"),
    "graph_hamilton_path": (GRAPH, "a b c d"),
    "graph_hamilton_cycle": (GRAPH | {"value": 5}, "a b c d a"),
    "graph_euler_path": (GRAPH, "a b c d a c"),
    "graph_topological_order": ({"edges": [["a", "b"], ["b", "c"]], "directed": True}, "a, b, c"),
    "graph_coloring": (GRAPH | {"colors": 3}, "a: 1, b: 2, c: 3, d: 2"),
    "graph_components": (GRAPH, "[[a, b, c, d]]"),
    "graph_bipartition": ({"edges": EDGES[:4]}, "{a, c}, {b, d}"),
    "graph_spanning_tree": (GRAPH | {"value": 3}, "(b, c), (c, d), (d, a)"),
    "graph_matching": (GRAPH | {"value": 2}, "(a, b), (c, d)"),
    "graph_independent_set": (GRAPH | {"value": 2}, "b, d"),
    "graph_clique": (GRAPH | {"value": 3}, "a, b, c"),
    "graph_vertex_cover": (GRAPH | {"value": 2}, "a, c"),
    "graph_dominating_set": (GRAPH | {"value": 1}, "a"),
    "code_output": ({"tests": [{"stdin": "2", "stdout": "4"}]}, "print(int(input()) * 2)"),
    "code_call": ({"entry": "f", "tests": [{"args": [2], "expected": 4}]}, "def f(x): return x * 2"),
    "unit_tests": ({"tests": ["assert f(2) == 4"]}, "def f(x): return x * 2"),
    "test_quality": ({"entry": "f", "reference": "f = lambda x: x * 2", "mutants": ["f = lambda x: 4"]}, "assert f(3) == 6"),
    "swe": (
        {"files": {"a.py": "x = 1\n"}, "tests": [{"code": "import a", "value": "a.x", "expected": 2}]},
        "a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE",
    ),
    "proof": (
        {
            "database": "$c wff |- ( ) -> $. $v p $. wp $f wff p $. id $a |- ( p -> p ) $.",
            "label": "new",
            "statement": "|- ( p -> p )",
        },
        "wp id",
    ),
    "verilog": (
        "module f(input [3:0] a, output y); assign y = &a; endmodule",
        "module f(input [3:0] a, output y); assign y = a == 15; endmodule",
    ),
}
"""For each name a gold and an answer that is right."""

NAMES = list(verifiers())
PURE = [name for name in NAMES if about(name).trusted]
SLOW = [name for name in NAMES if about(name).kind.startswith(("assay.verify.code", "assay.verify.hardware"))]
"""Each verdict is a few processes."""


def test_there_is_a_gold_for_each() -> None:
    assert list(GOLDS) == NAMES
    impure = {
        "json_schema",
        "math",
        "regex",
        "sql",
        "code_output",
        "code_call",
        "unit_tests",
        "test_quality",
        "swe",
        "proof",
        "verilog",
    }
    assert set(NAMES) - set(PURE) == impure


@pytest.mark.parametrize("name", with_tools(NAMES))
def test_the_right_answer_is_right_and_little_else(name: str) -> None:
    judge_it, (gold, said) = verifier(name), GOLDS[name]
    wrong = ["", " ", "I do not know."] if name != "constraints" else ["", " "]
    cases = [(*task_and_rollout(gold, said), 1.0), *((*task_and_rollout(gold, text), 0.0) for text in wrong)]
    check_verifier(judge_it, cases)
    known = about(name)
    assert (
        known.components == tuple(judge_it(*task_and_rollout(gold, said)).components)
        and known.gold
        and known.summary.endswith(".")
    )
    assert judge_it == verifier(name) and hash(judge_it) == hash(pickle.loads(pickle.dumps(judge_it)))
    assert isinstance(judge_it(*task_and_rollout(gold, said)).info["verdict"], str)


def fuzzed(name: str, seed: int, count: int) -> tuple[int, float]:
    """How many of so many texts get a verdict that is not 0, and the longest time that one took."""
    rng, judge_it, (gold, said) = random.Random(seed), verifier(name), GOLDS[name]
    components = about(name).components
    some, longest = 0, 0.0
    task, rollout = task_and_rollout(gold, "")
    for _ in range(count):
        text = slip(rng, said)
        rollout = task_and_rollout(gold, text)[1]
        began = time.process_time()
        score = judge_it(task, rollout)
        longest = max(longest, time.process_time() - began)
        assert tuple(score.components) == components, text
        assert all(0.0 <= v <= 1.0 for v in score.components.values()), text
        assert score.fault is Fault.NONE and isinstance(score.info["verdict"], str)
        some += any(score.components.values())
    return some, longest


@pytest.mark.parametrize(
    "name", with_tools(name for name in NAMES if name not in ("math", "sql"))
)  # they have tests of this kind of their own
def test_no_text_makes_it_raise(name: str) -> None:
    for text in HOSTILE_TEXTS:
        verifier(name)(*task_and_rollout(GOLDS[name][0], text))
    count = 150 if name not in SLOW else 24
    some, _ = fuzzed(name, 0, count)
    assert 0 < some < count


@pytest.mark.evidence
@pytest.mark.parametrize("name", PURE)
def test_no_text_of_a_hundred_thousand_makes_it_raise(name: str) -> None:
    some, longest = fuzzed(name, 1, 100_000)
    assert 0 < some < 100_000 and longest < 5.0


@pytest.mark.parametrize("count", [pytest.param(150, marks=pytest.mark.prove), pytest.param(1000, marks=pytest.mark.evidence)])
@pytest.mark.parametrize("name", with_tools(SLOW))
def test_no_text_makes_a_judge_of_programs_raise(name: str, count: int) -> None:
    some, _ = fuzzed(name, 1, count)
    assert 0 < some < count


LONG = [
    "a",
    " ",
    "\n",
    "1",
    "(",
    "[",
    "{",
    "}",
    '"',
    '\\"',
    "<",
    "<answer>",
    "</answer>",
    "\\boxed{",
    "Answer:",
    "*",
    "**",
    "-",
    "->",
    ".",
    "!",
    ",",
    "```\n",
    "é",
    "\ud800",
    "a.",
    "1,",
    "1/",
    "(a",
    "(a)",
    "[1]",
    "* ",
    "- a\n",
    "1. a\n",
    "a: ",
    "a=1,",
    "x1=1,",
    "RD",
    "A ",
    "(A) ",
    "a -> b -> ",
    "Section 1 ",
    "<<",
    "[x] ",
    "%",
    "1e",
    " a",
    "\n\n",
    "the ",
    "Ann is a ",
    "_",
    "[^",
    ".\n",
    "\t",
]


@pytest.mark.prove
@pytest.mark.parametrize("name", PURE)
def test_a_million_characters_take_seconds(name: str) -> None:
    """Time must grow with the length alone, here on a sample of patterns: a quadratic step takes minutes."""
    rng = random.Random(name)
    task, _ = task_and_rollout(GOLDS[name][0], "")
    for pattern, size in [(p, 100_000) for p in rng.sample(LONG, 12)] + [(p, 1_000_000) for p in rng.sample(LONG, 2)]:
        rollout = task_and_rollout(None, (pattern * size)[:size] + rng.choice(["", "x", "\n", ")", '"']))[1]
        began = time.process_time()
        verifier(name)(task, rollout)
        took = time.process_time() - began
        assert took < 2.0 + size / 100_000, (pattern, size, took)


@pytest.mark.evidence
@pytest.mark.parametrize("name", PURE)
def test_every_long_pattern_takes_seconds(name: str) -> None:
    task, _ = task_and_rollout(GOLDS[name][0], "")
    for pattern in LONG:
        rollout = task_and_rollout(None, (pattern * 200_000)[:200_000] + "x")[1]
        began = time.process_time()
        verifier(name)(task, rollout)
        assert time.process_time() - began < 5.0, pattern


def test_names_and_settings() -> None:
    with pytest.raises(UnknownNameError, match="unknown verifier 'exactt': did you mean 'exact'"):
        verifier("exactt")
    with pytest.raises(UnknownNameError, match="did you mean 'absolute'"):
        verifier("numeric", absolute_=1)
    with pytest.raises(ConfigError, match="relative"):
        verifier("numeric", relative="much")
    assert about("format").settings == {"tags": ("think", "answer"), "filled": False}
    assert judge(verifier("numeric"), *task_and_rollout("x", "1")).fault is Fault.VERIFIER  # a wrong gold is no zero
    assert verifier("json_schema", schema={"type": "integer"})(*task_and_rollout(None, "3")).primary == 1.0
    assert isinstance(verifier("json_schema", schema={"type": "integer"}).schema, FrozenMap)


def between(text: str, mark: str) -> str:
    return text.split(f"<!-- {mark} -->\n")[1].split(f"<!-- /{mark} -->")[0]


def test_the_page_lists_what_there_is() -> None:
    """The tables of docs/packages/verify.md, line by line; where this fails, put what is expected there."""
    page = (DOCS / "packages" / "verify.md").read_text()
    rows = ["| name | class | components | gold |", "|---|---|---|---|"]
    for known in map(about, NAMES):
        kind = known.kind.rpartition(":")[2]
        rows.append(f"| `{known.name}` | `{kind}` | {', '.join(f'`{c}`' for c in known.components)} | {known.gold} |")
    assert between(page, "names") == "\n" + "\n".join(rows) + "\n\n"
    rows = ["| constraint | settings | is about |", "|---|---|---|"]
    for name, kind in CONSTRAINTS.items():
        summary = " ".join((kind.__doc__ or "").split("\n\n")[0].split()).replace("``", "`")
        rows.append(f"| `{name}` | {', '.join(f'`{f.name}`' for f in fields(kind)) or '–'} | {summary} |")
    assert between(page, "constraints") == "\n" + "\n".join(rows) + "\n\n"
