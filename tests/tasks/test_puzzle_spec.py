"""Puzzles as data: files, expressions, draws that are refused, the score of difficulty."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError
from assay.testing import check_task_source, rollout_of
from assay.verify.structure.smtlib import problem_of
from assay_tasks.puzzles.difficulty import Size, difficulty, size_of
from assay_tasks.puzzles.load import load_puzzle, puzzle_from
from assay_tasks.puzzles.solver import Model
from assay_tasks.puzzles.spec import Spec
from assay_tasks.puzzles.terms import Formula, Ref, constraint_of, read, replace_names, value_of

FILES = Path(__file__).parents[2] / "docs/add/puzzles"

SMALL: dict[str, Any] = {
    "name": "my/sum",
    "domain": "math",
    "levels": (1,),
    "texts": ("x + y is {s}, x - y is {d}. x?",),
    "secret": {"a": [5, 40], "b": [0, 5]},
    "parameters": {"s": "a + b", "d": "a - b"},
    "variables": {"x": [0, 50], "y": [0, 50]},
    "constraints": ("x + y == s", "x - y == d"),
    "answer": {"value": "x"},
}

SUMS = {"s": "a + b", "d": "a - b"}
SHORT = {"x": [0, 9], "y": [0, 9]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["farm", "queue"])
def test_the_files_of_the_documentation_keep_the_contract(name: str) -> None:
    source = puzzle_from(FILES / f"{name}.toml")
    assert check_task_source(source, n=6).skipped == ()  # the rules leave one answer, which the solver proves
    spec = load_puzzle(FILES / f"{name}.toml")
    for seed in range(3):
        assert spec.draw(2, Random(seed)) == spec.draw(2, Random(seed))


def test_a_farm_by_hand() -> None:
    """7 heads and 22 legs: were all hens there would be 14 legs, so 4 are cows."""
    farm = load_puzzle(FILES / "farm.toml")
    assert farm.solve({"heads": 7, "legs": 22}).answer == "3"
    assert (
        farm.word({"heads": 7, "legs": 22}, 2)
        == "Hens have 2 legs and cows 4. Together 7 of them have 22 legs. How many are hens?"
    )
    with pytest.raises(DataError, match="these facts have no answers"):
        farm.solve({"heads": 7, "legs": 21})
    assert set(farm.draw(1, Random(0))) == {"heads", "legs"}


def test_clues_by_hand() -> None:
    queue = load_puzzle(FILES / "queue.toml")
    facts = {"people": ["Ann", "Bob", "Cem"], "n": 3, "clues": [[2, 1], [0, 2, 0]]}
    assert queue.solve(facts).answer == "Cem, Bob, Ann" and queue.solve(facts).gold == ["Cem", "Bob", "Ann"]
    assert queue.word(facts, 1).split("\n\n")[1] == "- Bob is neither first nor last.\n- Cem stands somewhere before Ann."
    facts["clues"] = [[1, 0, 2, 1]]
    assert "The number of people between Ann and Cem, who is farther back, is 1." in queue.word(facts, 0)
    assert queue.solve(facts).answer == "Ann, Bob, Cem"


@pytest.mark.parametrize(
    ("change", "facts", "answer"),
    [
        ({"answer": {"values": ["x", "y", "x*y"]}}, {"s": 7, "d": 3}, "5, 2, 10"),
        ({"answer": {"value": "x if"}}, {}, ""),
        (
            {"answer": {"word": "who", "at": "y"}, "parameters": {**SUMS, "who": {"choose": ["a", "b", "c"], "count": 3}}},
            {"who": ["c", "a", "b"], "s": 7, "d": 3},
            "b",
        ),
        ({"variables": {"x": [-9, 9], "y": [-9, 9]}}, {"s": -3, "d": 5}, "1"),
        ({"variables": SHORT, "constraints": ("x + 2*y <= s",), "maximize": "3*x + y - x*y"}, {"s": 5, "d": 0}, "5"),
        ({"variables": SHORT, "constraints": ("x * y == s", "x > y + d"), "minimize": "x"}, {"s": 12, "d": 0}, "4"),
    ],
)
def test_kinds_of_answers(change: dict[str, Any], facts: dict[str, Any], answer: str) -> None:
    if not answer:
        with pytest.raises(ConfigError, match=r"answer.value: 'x if' is no expression"):
            Spec(**{**SMALL, **change})
        return
    spec = Spec(**{**SMALL, **change})
    assert spec.solve(facts).answer == answer


def puzzle_source(spec: Spec) -> Any:
    from assay.tasks import Problems

    return Problems(name="my", problems=(spec,))


def test_a_table_of_answers() -> None:
    spec = Spec(
        **{
            **SMALL,
            "parameters": {"who": {"choose": ["Ann", "Bob"], "count": 2}, "s": [3, 9]},
            "variables": {"age": {"each": "who", "range": [1, 9]}},
            "constraints": ("sum(age) == s", "age[0] == 2 * age[1]"),
            "answer": {"names": "who", "values": "age"},
            "texts": ("{who[0]} is twice as old as {who[1]}, together {s}.",),
            "secret": {},
        }
    )
    found = spec.solve({"who": ["Bob", "Ann"], "s": 9})
    assert (found.answer, found.gold) == ("Bob: 6, Ann: 3", {"Bob": "6", "Ann": "3"})
    assert {spec.draw(1, Random(i))["s"] for i in range(20)} == {3, 6, 9}  # other sums have no solution and are drawn anew
    assert spec.word({"who": ["Bob", "Ann"], "s": 9}, 0) == "Bob is twice as old as Ann, together 9."
    task = puzzle_source(spec).task("my/sum", 1, "train", 0)
    assert puzzle_source(spec).verifier()(task, rollout_of(task, task.private["solution"])).primary == 1.0


@pytest.mark.slow
def test_draws_without_one_answer_are_refused_within_a_bound() -> None:
    twice = Spec(**{**SMALL, "constraints": ("x + y == s",)})
    with pytest.raises(
        DataError, match=r"my/sum: 300 draws of level 1 gave no puzzle with one answer \(300 had more than one answer\)"
    ):
        twice.draw(1, Random(0))
    never = Spec(**{**SMALL, "constraints": ("x + y == s", "x == y + 100")})
    with pytest.raises(DataError, match="300 had no solution"):
        never.draw(1, Random(0))
    second = Spec(**{**SMALL, "constraints": ("x + y <= s",), "maximize": "x + y"})
    with pytest.raises(DataError, match="300 had more than one answer"):
        second.draw(1, Random(0))
    vague = Spec(
        **{
            **SMALL,
            "constraints": (),
            "clues": ({"for": {}, "holds": "x > 0", "text": "x is positive"},),
            "texts": ("{clues} x?",),
        }
    )
    with pytest.raises(DataError, match="300 had no clues that leave one solution"):
        vague.draw(1, Random(0))
    same = Spec(
        **{**SMALL, "constraints": ("x + y == s",), "variables": {"x": [0, 50], "y": [0, 1]}, "answer": {"value": "(x + y) // 1"}}
    )
    assert same.solve({"s": 9, "d": 0}).answer == "9"  # two solutions with one answer
    many = Spec(**{**SMALL, "constraints": (), "answer": {"value": "s"}})
    with pytest.raises(DataError, match="2 answers"):
        many.solve({"s": 9, "d": 0})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": ""}, "needs a name and a domain"),
        ({"texts": ()}, "key 'texts' is missing"),
        ({"variables": {}}, "key 'variables' is missing"),
        ({"levels": (0,)}, r"my/sum.levels must be"),
        (
            {"constraints": ("x + z == s",)},
            r"constraints\[0\] uses the name 'z'; it is declared nowhere \(known here: d, s, x, y\)",
        ),
        ({"constraints": ("x == a",)}, "uses the name 'a'; it is secret; make a parameter of it"),
        ({"constraints": (3,)}, r"constraints\[0\] = 3 is no expression"),
        ({"constraints": ("pow(x, 2) == s",)}, "unknown function"),
        ({"texts": ("x of {ss}?",)}, r"texts\[0\] uses the name 'ss'; did you mean 's'"),
        ({"texts": ("{s.__class__}",)}, "only {name} and {name\\[0\\]} are filled in"),
        ({"texts": ("{s",)}, "is no text with {names}"),
        ({"parameters": {"s": [9, 2], "d": [0, 1]}}, r"parameters.s = \[9, 2\] is empty"),
        ({"parameters": {"s": [1.5, 2], "d": [0, 1]}}, "has the bound 1.5"),
        ({"parameters": {"s": 3, "d": [0, 1]}}, r"parameters.s = 3; write \[low, high\]"),
        ({"parameters": {"s": {"choose": []}, "d": [0, 1]}}, "write { choose = "),
        ({"parameters": {"s": {"choose": [1], "count": 2}, "d": [0, 1]}}, "chooses 2 of 1"),
        ({"parameters": {"s": "d + 1", "d": [0, 1]}}, "parameters.s uses the name 'd'"),
        ({"parameters": {"a": [0, 1], "s": [0, 1], "d": [0, 1]}}, "the name 'a' is used 2 times"),
        ({"parameters": {"clues": [0, 1], "s": [0, 1], "d": [0, 1]}}, "'clues' cannot be a name"),
        ({"by_level": {"1": {"z": [0, 1]}}}, r"levels.1 uses the name 'z'"),
        ({"variables": {"x": {"each": "s"}, "y": [0, 1]}}, "needs 'each' and 'range'"),
        ({"answer": {"value": "x", "by": "y"}}, "key 'answer' has"),
        ({"answer": {"order": "x", "by": "y"}}, "answer.order uses the name 'x'"),
        ({"maximize": "x", "minimize": "y"}, "keep one"),
        ({"maximize": "q"}, "maximize uses the name 'q'"),
        ({"easier": ("x",)}, "easier_when_larger uses the name 'x'"),
        ({"clues": ({"for": {}, "holds": "x > 0"},)}, r"clues\[0\] has \['for', 'holds'\]"),
        ({"clues": ({"for": {}, "holds": "x > 0", "text": "so"},)}, "does not show the clues"),
        (
            {"clues": ({"for": {"i": "x"}, "holds": "x > 0", "text": "so"},), "texts": ("{clues}",)},
            r"clues\[0\].for uses the name 'x'",
        ),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Spec(**{**SMALL, **change})


def test_files_that_are_wrong(tmp_path: Path) -> None:
    place = tmp_path / "p.toml"
    with pytest.raises(DataError, match=r"none.toml: cannot be read: No such file"):
        load_puzzle(tmp_path / "none.toml")
    good = (FILES / "farm.toml").read_text()
    for text, told in (
        ("x = ", "p.toml: is no TOML"),
        (good + "\n[answr]\n", "p.toml: unknown key of a puzzle 'answr': did you mean 'answer'"),
        (good.replace("2*hens", "2*hen"), r"p.toml: farm/legs: constraints\[1\] uses the name 'hen'; did you mean 'hens'"),
        (good.replace("[levels.1]", "[levels.one]"), "key 'levels' must be tables"),
    ):
        place.write_text(text)
        with pytest.raises(DataError, match=told):
            puzzle_from(place)
    place.write_text(
        'texts = "{x}?"\nanswer = ["y", "y + 1"]\nconstraints = "y == x"\n[parameters]\nx = [1, 9]\n[variables]\ny = [0, 9]\n'
    )
    spec = load_puzzle(place)
    assert (spec.name, spec.domain, spec.levels, spec.solve({"x": 4}).answer) == ("puzzle/p", "logic", (1,), "4, 5")


def test_values_that_only_a_draw_can_tell() -> None:
    with pytest.raises(DataError, match=r"variable 'x' has the empty range 9 to 5"):
        Spec(**{**SMALL, "variables": {"x": ["s", 5], "y": [0, 9]}}).solve({"s": 9, "d": 0})
    with pytest.raises(DataError, match="a parameter has the empty range 9 to 3"):
        Spec(**{**SMALL, "secret": {"a": [9, 9], "b": ["a", 3]}}).draw(1, Random(0))
    for text, told in (
        ("x // y == 1", "// divides by a variable"),
        ("x % (s - s) == 1", "% divides by 0"),
        ("who + 1 == x", "is given a list or a word"),
        ("who[3] == x", "index 3 is none of a list of 2"),
        ("who[x] == x", "index a variable is none"),
    ):
        with pytest.raises(ConfigError, match=told.replace("(", r"\(")):
            drawn = {"who": {"choose": [1, 2], "count": 2}, "s": [1, 2], "d": [1, 2]}
            spec = Spec(**{**SMALL, "parameters": drawn, "constraints": (text,), "secret": {}})
            spec.solve({"who": [1, 2], "s": 1, "d": 1})


def test_expressions_that_are_refused() -> None:
    for text in (
        "x.y",
        "[1]",
        "1.5",
        "x ** 2",
        "x if y else z",
        "lambda: 1",
        "'a'",
        "f(x)",
        "max(x, key=y)",
        "-" * 60 + "x",
        "x" * 3000,
        "a\nb",
    ):
        with pytest.raises(ConfigError):
            read(text)
    with pytest.raises(ConfigError, match="unknown name in an expression 'x'"):
        replace_names(read("x + 1"), {})


TERMS = st.recursive(
    st.one_of(st.integers(-3, 5), st.sampled_from(["x", "y", "z"])),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "==", "!=", "<", "<=", ">", ">=", "and", "or", "implies"]), inner, inner),
        st.tuples(st.sampled_from(["//", "%"]), inner, st.integers(1, 4)),
        st.tuples(st.sampled_from(["not", "abs"]), inner),
        st.tuples(st.sampled_from(["min", "max", "sum", "count", "different"]), inner, inner, inner),
    ),
    max_leaves=6,
)


def text_of(term: Any, truth: str = "") -> str:
    """An expression in words; with ``truth="bool"`` a junction is the truth value that it is here, and not an operand."""
    if not isinstance(term, tuple):
        return f"({term})"
    sign, *parts = term
    inner = [text_of(part, truth) for part in parts]
    if sign in ("and", "or"):
        return f"{truth}({f' {sign} '.join(inner)})"
    if sign.isalpha() and sign not in ("and", "or", "not"):
        return f"{sign}({', '.join(inner)})"
    return f"(not {inner[0]})" if sign == "not" else f"({f' {sign} '.join(inner)})"


PYTHON = {
    "count": lambda *v: sum(map(bool, v)),
    "different": lambda *v: len(set(v)) == len(v),
    "implies": lambda a, b: bool(b) or not a,
    "sum": lambda *v: sum(v),
    "min": min,
    "max": max,
    "abs": abs,
}


@given(TERMS, st.integers(0, 10**6))
@settings(max_examples=150)
def test_expressions_mean_what_they_mean_in_python(term: Any, seed: int) -> None:
    rng, text = Random(seed), text_of(term)
    known = {"x": Ref(0), "y": Ref(1, -2), "z": Ref(2)}
    ready = replace_names(read(text), known)
    model = Model()
    for _ in range(3):
        model.var(range(4))
    constraint = constraint_of(ready)
    model.add(constraint)
    problem = problem_of(model.smt())
    for _ in range(4):
        values = [rng.randrange(4) for _ in range(3)]
        here = {"x": values[0], "y": values[1] - 2, "z": values[2]}
        truth = bool(eval(text_of(term, "bool"), {**PYTHON, **here}))
        assert bool(value_of(ready, values)) == truth == constraint.holds(values), text
        assert all(problem.kept_assertions(dict(zip(model.names, map(_fraction, values), strict=True)))) == truth, text
    every = [(a, b, c) for a in range(4) for b in range(4) for c in range(4) if constraint.holds((a, b, c))]
    assert sorted(model.solve(999).solutions) == every


def _fraction(value: int) -> Any:
    from fractions import Fraction

    return Fraction(value)


def test_formulas_wait_where_there_are_too_many_values() -> None:
    formula = Formula(replace_names(read("x * y == 391"), {"x": Ref(0), "y": Ref(1)}))
    dom = [(1 << 60) - 2] * 2
    assert formula.filter(dom, []) and dom == [(1 << 60) - 2] * 2
    dom[0] = 1 << 17
    changed: list[int] = []
    assert formula.filter(dom, changed) and (dom[1], changed) == (1 << 23, [1])
    assert not Formula(0).filter([1], []) and Formula(1).filter([1], [])


def test_the_score_of_difficulty_by_hand() -> None:
    """Length 100 of [100, 300], 4 conditions of [2, 6], symbols the same for all, scale .6: (0 + .5 + .5 + .6) / 4."""
    rest = [Size(length=300, conditions=2, symbols=3, scale=0.2), Size(length=200, conditions=6, symbols=3, scale=0.9)]
    assert difficulty([Size(length=100, conditions=4, symbols=3, scale=0.6), *rest])[0] == 0.4
    assert difficulty([rest[0]]) == [0.5]
    spec = replace(load_puzzle(FILES / "farm.toml"), easier=("heads",))
    facts = [{"heads": 4, "legs": 10}, {"heads": 8, "legs": 20}, {"heads": 5, "legs": 20}]
    sizes = size_of(spec, facts)
    assert (
        [s.scale for s in sizes] == [0.5, 0.5, (0.75 + 1) / 2]
        and {s.symbols for s in sizes} == {2}
        and {s.conditions for s in sizes} == {2}
    )
    queue = load_puzzle(FILES / "queue.toml")
    drawn = [queue.draw(2, Random(i)) for i in range(20)]
    assert [s.conditions for s in size_of(queue, drawn)] == [1 + len(f["clues"]) for f in drawn]
    assert all(0 <= score <= 1 for score in difficulty(size_of(queue, drawn)))
    with pytest.raises(DataError, match="there are no questions to measure"):
        size_of(spec, [])


def test_signatures_forget_words_and_order() -> None:
    spec = load_puzzle(FILES / "queue.toml")
    one, other = {"people": ["a"], "n": 3, "clues": [[1, 2], [0, 1, 2]]}, {"people": ["b"], "n": 3, "clues": [[0, 1, 2], [1, 2]]}
    assert spec.signature(one) == spec.signature(other) != spec.signature({**one, "n": 4})


def test_levels_draw_in_their_own_way() -> None:
    source = puzzle_from(FILES / "farm.toml")
    heads = {level: [source.task("farm/legs", level, "train", i).public["facts"]["heads"] for i in range(40)] for level in (1, 2)}
    assert max(heads[1]) <= 18 < 20 <= min(heads[2])
    assert max(Counter(plain(heads[2])).values()) < 10


@pytest.mark.prove
@pytest.mark.parametrize("name", ["farm", "queue"])
def test_another_solver_agrees(name: str) -> None:
    z3 = pytest.importorskip("z3")
    spec = load_puzzle(FILES / f"{name}.toml")
    for seed in range(20):
        facts = spec.draw(1 + seed % 2, Random(seed))
        model = spec.model(facts)
        values, _ = model.only()
        for text, wanted in ((model.smt(), z3.sat), (model.smt(but=values), z3.unsat)):
            solver = z3.Solver()
            solver.from_string(text)
            assert solver.check() == wanted
