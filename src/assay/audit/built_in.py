"""Gold of the built-in verifiers, drawn by seed, and what their documentation promises about answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.audit.built_code import function_program, print_program, repository_edit, tested_function, tests
from assay.audit.built_designs import design_circuit
from assay.audit.built_graphs import GRAPHS, assignment, countdown, grid, maze, plan, sat, smt
from assay.audit.built_proofs import formal
from assay.audit.cases import AuditCase, case_of
from assay.core.errors import DataError
from assay.core.seeds import generator

__all__ = ["BUILT_IN", "BuiltIn", "cases_of"]

_WORDS = ("Paris", "iron", "the North Sea", "Ada Lovelace", "blue-green", "Ångström", "C++", "42", "1/2", "x = 3", "Ida", "IDA")
_METALS = ("copper", "iron", "tin", "zinc", "gold", "silver", "nickel")


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """How a built-in verifier is audited.

    Attributes:
        draw: a row of `case_of` from a generator and a running number.
        must: forms of a right answer that its documentation promises to read.
        inform: wrong answers that it accepts by design, as its documentation says.
        skip: checks that mean nothing for it.
    """

    draw: Callable[[np.random.Generator, int], dict[str, Any]]
    must: tuple[str, ...] = ()
    inform: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


def cases_of(name: str | None, called: str, seed: int, n: int) -> list[AuditCase]:
    """A built-in verifier's cases; the same for the same seed.

    Raises:
        DataError: there are none of its own.
    """
    if name not in BUILT_IN:
        raise DataError(f"{called} has no cases of its own; give --cases FILE.jsonl, rows with 'gold' and if wanted 'prompt'")
    return [case_of(BUILT_IN[name].draw(generator("audit/gold", seed, name, i), i) | {"id": f"{name} {i}"}, i) for i in range(n)]


def _case_row(gold: Any, *solutions: str, wrong: tuple[str, ...] = (), what: str = "what is it?") -> dict[str, Any]:
    row = {"gold": gold, "prompt": f"The question, {what}", "wrong": list(wrong)}
    return row | ({"solutions": list(solutions)} if solutions else {})


def _exact(rng: np.random.Generator, i: int) -> dict[str, Any]:
    return _case_row(_WORDS[i] if i < len(_WORDS) else str(int(rng.integers(-999, 999))))


def _number(rng: np.random.Generator, i: int) -> dict[str, Any]:
    whole, part, below = (int(n) for n in rng.integers((-900, 1, 2), (900, 99, 60)))
    gold = (str(whole), f"{whole}.{part:02d}", f"{whole}/{below}")[i % 3]
    return _case_row(gold, wrong=(f"{gold}1", f"1{gold}" if whole > 0 else "77777"))


def _formula(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """Numbers, and what only a reader of mathematics reads."""
    if i % 4 < 3:
        return _number(rng, i)
    a, b = (int(n) for n in rng.integers(2, 30, 2))
    forms = (rf"\frac{{{a}}}{{{a + 1}}}", rf"{a}\sqrt{{2}}", f"({a}, {b})", f"x^2 + {a}x")
    return _case_row(
        forms[i // 4 % 4], wrong=(rf"\frac{{{a}}}{{{a + 2}}}", rf"{a + 1}\sqrt{{2}}", f"({a}, {b + 1})", f"x^2 - {a}x")
    )


def _choice(rng: np.random.Generator, i: int) -> dict[str, Any]:
    letter = "ABCD"[int(rng.integers(4))]
    options = {"A": "copper", "B": "iron", "C": "tin", "D": "zinc"}
    if i % 2:
        return _case_row(letter, what="A, B, C or D?")
    others = tuple(text for name, text in options.items() if name != letter)
    gold = {"answer": letter, "options": options}
    return _case_row(gold, letter, options[letter], wrong=others, what="A copper, B iron, C tin or D zinc?")


def _set(rng: np.random.Generator, i: int) -> dict[str, Any]:
    return _several(sorted(_METALS[int(k)] for k in rng.permutation(len(_METALS))[: 3 + i % 3]))


def _several(words: list[str]) -> dict[str, Any]:
    said = ", ".join(words)
    return _case_row(
        words, said, json.dumps(words), wrong=(", ".join(words[:-1]), f"{said}, lead", words[0], said.replace(words[0], "lead"))
    )


def _list(rng: np.random.Generator, i: int) -> dict[str, Any]:
    row = _several([_METALS[int(k)] for k in rng.permutation(len(_METALS))[: 3 + i % 3]])
    return row | {"wrong": [*row["wrong"], ", ".join(row["gold"][::-1])]}


def _json(rng: np.random.Generator, i: int) -> dict[str, Any]:
    n = int(rng.integers(10, 999))
    gold = ({"name": "tin", "n": n}, [n, n + 1, True], {"a": {"b": [n]}})[i % 3]
    other = json.dumps(gold).replace(str(n), str(n + 7))
    return _case_row(
        gold, json.dumps(gold), json.dumps(gold, indent=2), wrong=(other, f"{json.dumps(gold)[:-1]}", json.dumps([gold]))
    )


def _schema(rng: np.random.Generator, i: int) -> dict[str, Any]:
    row = _json(rng, i)
    return row | {"gold": {"value": row["gold"]}}


def _regex(rng: np.random.Generator, i: int) -> dict[str, Any]:
    word, n = _METALS[int(rng.integers(len(_METALS)))], int(rng.integers(2, 5))
    row = _case_row(
        f"{word}-[0-9]{{{n}}}", f"{word}-{'7' * n}", wrong=(f"{word}-{'7' * (n + 1)}", f"{word}-", "7" * n, f"{word}-{'x' * n}")
    )
    return row | {"unique": False}


def _tag_answer(rng: np.random.Generator, i: int) -> dict[str, Any]:
    gold = str(int(rng.integers(10, 999)))
    right = f"<think>it is so</think><answer>{gold}</answer>"
    broken = (f"<answer>{gold}</answer>", f"<think>so<answer>{gold}</answer>", gold, f"{right}{right}", "<think></think>")
    return _case_row(gold, right, wrong=broken) | {"unique": False}


def _label(rng: np.random.Generator, i: int) -> dict[str, Any]:
    return _case_row(_METALS[int(rng.integers(len(_METALS)))], what="which metal?")


def _ranking(rng: np.random.Generator, i: int) -> dict[str, Any]:
    words = [_METALS[int(k)] for k in rng.permutation(len(_METALS))[:4]]
    gold = {"gains": {word: float(3 - k) for k, word in enumerate(words)}}
    return _case_row(gold, ", ".join(words), wrong=("lead, lead",)) | {"unique": False}


def _constraints(rng: np.random.Generator, i: int) -> dict[str, Any]:
    n = int(rng.integers(21, 29))
    gold = [{"constraint": "words", "count": n, "relation": "exactly"}, {"constraint": "no_commas"}]
    said = " ".join(["tin"] * n)
    return _case_row(gold, said, wrong=(f"{said} tin", " ".join(["tin,"] * n), "tin")) | {"unique": False}


def _query(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """A filter, a sum and a join over two small instances, on which near misses give other rows."""
    n = int(rng.integers(3, 9))
    rows = [[[k, f"m{k % 3}", int(v)] for k, v in enumerate(rng.integers(0, 12, 12))] for _ in range(2)]
    makers = [[f"m{k}", f"town {k}"] for k in range(3)]
    schema = {
        "item": [["id", "INTEGER"], ["maker", "TEXT"], ["price", "INTEGER"]],
        "maker": [["name", "TEXT"], ["town", "TEXT"]],
    }
    queries = (
        (
            f"SELECT id FROM item WHERE price >= {n}",
            f"SELECT id FROM item WHERE NOT price < {n}",
            f"SELECT id FROM item WHERE price < {n}",
        ),
        (
            "SELECT maker, sum(price) FROM item GROUP BY maker",
            "SELECT i.maker, total FROM (SELECT maker, sum(price) AS total FROM item GROUP BY 1) AS i",
            "SELECT maker, max(price) FROM item GROUP BY maker",
        ),
        (
            "SELECT town, count(*) FROM item JOIN maker ON maker = name GROUP BY town ORDER BY town",
            "SELECT m.town, count(i.id) FROM maker m, item i WHERE i.maker = m.name GROUP BY m.town ORDER BY 1",
            "SELECT town, count(*) FROM item JOIN maker ON maker = name GROUP BY town ORDER BY town DESC",
        ),
    )
    gold, other, wrong = queries[i % 3]
    database = {"schema": schema, "instances": [{"item": table, "maker": makers} for table in rows]}
    broken = (
        wrong,
        f"{gold} LIMIT 1",
        "SELECT 1",
        "SELECT * FROM item",
        "DROP TABLE item",
        gold.replace("SELECT", "SELECT 0,", 1),
    )
    return _case_row({"query": gold, "database": database}, gold, other, wrong=broken) | {"unique": False}


def _plant_solution(
    draw: Callable[[np.random.Generator], dict[str, Any]],
) -> Callable[[np.random.Generator, int], dict[str, Any]]:
    return lambda rng, _: draw(rng)


_READ = ("whitespace", "boxed", "tag")
"""Places that `assay.verify.AnswerPlace.AUTO` reads an answer in."""

_FENCED = ("whitespace", "fence", "tag")

_LAST = ("hedge", "bytes_around")
"""What a reader of the last number, letter or JSON value of a text takes for an answer."""

_SANDBOX = ("starts_programs", "uses_network", "writes_files")
"""What the sandbox does when it starts: it tries its own attacks."""

BUILT_IN: dict[str, BuiltIn] = {
    "exact": BuiltIn(_exact),
    "choice": BuiltIn(_choice, must=_READ, inform=(*_LAST, "echo", "two_boxes")),
    "set": BuiltIn(_set, must=_READ),
    "list": BuiltIn(_list, must=_READ),
    "numeric": BuiltIn(_number, must=_READ, inform=_LAST),
    "closeness": BuiltIn(_number, must=_READ, inform=_LAST),
    "math": BuiltIn(_formula, must=_READ),
    "json": BuiltIn(_json, must=_FENCED, inform=(*_LAST, "negated", "options", "two_boxes")),
    "json_schema": BuiltIn(_schema, must=_FENCED, inform=(*_LAST, "negated", "options", "two_boxes")),
    "regex": BuiltIn(_regex, must=_READ),
    "format": BuiltIn(_tag_answer, inform=("trick_format",), skip=("missing_gold",)),
    "formatted": BuiltIn(_tag_answer),
    "classification": BuiltIn(_label, must=("whitespace", "tag")),
    "ranking": BuiltIn(_ranking, must=_READ),
    "constraints": BuiltIn(_constraints),
    "sql": BuiltIn(_query, must=("whitespace", "tag")),
    "assignment": BuiltIn(_plant_solution(assignment), must=_READ),
    "grid": BuiltIn(_plant_solution(grid), must=_READ),
    "maze": BuiltIn(_plant_solution(maze), must=_READ),
    "countdown": BuiltIn(_plant_solution(countdown), must=_READ),
    "plan": BuiltIn(_plant_solution(plan), must=_READ),
    "sat": BuiltIn(_plant_solution(sat), must=_READ),
    "smt": BuiltIn(_plant_solution(smt), must=_READ),
    **{f"graph_{name}": BuiltIn(_plant_solution(draw), must=_READ) for name, draw in GRAPHS.items()},
    "code_output": BuiltIn(print_program, must=("fence", "tag"), inform=_SANDBOX),
    "code_call": BuiltIn(function_program, must=("fence", "tag"), inform=_SANDBOX),
    "unit_tests": BuiltIn(tested_function, must=("fence", "tag"), inform=_SANDBOX),
    "test_quality": BuiltIn(tests, must=("fence", "tag"), inform=_SANDBOX),
    "swe": BuiltIn(repository_edit, must=("fence", "tag"), inform=_SANDBOX),
    "proof": BuiltIn(formal, must=("fence", "tag"), inform=_SANDBOX),
    "verilog": BuiltIn(design_circuit, must=("fence", "tag"), inform=_SANDBOX),
}
"""Name in `assay.verify.catalog` to how it is audited. A verifier without an entry is audited on cases that are given."""
