"""Families for `benchmarks.task_rules`, in so few letters that a third of a million weights can read them.

Facts, solutions and verifiers are those of `assay_tasks`; only wording and sizes differ. Queries have a generator of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core import Verifier
from assay.tasks import Facts, Form, Problem, Problems, Solution
from assay.verify.sql import SqlMatch
from assay_tasks import ConstrainedText, Expression, FewestEdges, NamedClass, Planted, WindingWay

__all__ = ["CLASSES", "CLASSES_THOUGHT", "FORMULAS", "GRAPHS", "MAZES", "QUERIES", "SUMS", "TEXTS"]


class Bare:
    """The question with nothing behind it: how to answer is shown by the traces."""

    __slots__ = ()

    @property
    def variants(self) -> int:
        """One wording."""
        return 1

    def prompt(self: Any, facts: Facts, variant: int, form: Form) -> str:
        """The question alone."""
        return self.word(facts, variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortExpression(Bare, Expression):
    """An expression of RandomCalculation with nothing around it, of whole numbers alone: ``7×3-5=``."""

    most: int = 9
    levels: tuple[int, ...] = (1, 2)
    templates: ClassVar[tuple[str, ...]] = ("{expression}=",)

    def _operand(self, rng: Random) -> tuple[int, Fraction]:
        number = rng.randint(0, self.most)
        return number, Fraction(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortFormula(Bare, Planted):
    """Two literals in a clause: ``1-2 -1-3 23`` asks for values such as ``1,-2,3``."""

    levels: tuple[int, ...] = (1, 2, 3, 4)
    stages: tuple[tuple[int, int, int], ...] = ((2, 3, 3), (2, 4, 4), (2, 5, 6), (2, 6, 8))

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A formula over numbered variables."""
        width, variables, _ = stage = self.stages[level - 1]
        clauses = self.formula(stage, rng)
        names = " ".join(map(str, range(1, variables + 1)))
        return {"names": names, "clauses": [x for clause in clauses for x in clause], "width": width}

    def word(self, facts: Facts, variant: int) -> str:
        """The clauses, and how many variables there are."""
        flat, width = facts["clauses"], facts["width"]
        clauses = " ".join("".join(map(str, flat[i : i + width])) for i in range(0, len(flat), width))
        return f"{facts['names'].split(' ')[-1]}: {clauses}"

    def solve(self, facts: Facts) -> Solution:
        """The literals of a satisfying assignment, as DIMACS writes them."""
        found = super(ShortFormula, self).solve(facts)
        model, _ = self.find_assignment(facts)
        said = ",".join(str(i if true else -i) for i, true in enumerate(model or (), 1))
        return Solution(answer=said, gold=found.gold, effort=found.effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortMaze(Bare, WindingWay):
    """Rows with ``/`` between, and moves by their first letters."""

    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    stages: tuple[tuple[int, int], ...] = ((3, 1), (4, 1), (5, 2), (6, 3), (7, 3))
    margin: int = 1

    def word(self, facts: Facts, variant: int) -> str:
        """The maze alone."""
        return str(facts["maze"]).replace("\n", "/")

    def find_answer(self, rows: list[str], way: list[str] | None) -> tuple[str, Any]:
        """``RRD``."""
        _, gold = super(ShortMaze, self).find_answer(rows, way)
        return "".join(move[0].upper() for move in way or ()), gold


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortPath(Bare, FewestEdges):
    """``AB BC CD A>D`` asks for ``A->B->C->D``."""

    levels: tuple[int, ...] = (4, 5, 6, 7)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Nodes are letters, in any order."""
        facts = super(ShortPath, self).draw(level, rng)
        return {**facts, "names": " ".join(rng.sample("ABCDEFGH", level))}

    def word(self, facts: Facts, variant: int) -> str:
        """The edges, and from where to where."""
        net, named = self.net(facts), self.fields(facts)
        edges = " ".join(f"{net.names[a]}{net.names[b]}" for a, b in net.edges)
        return f"{edges} {named['source']}>{named['target']}"

    def find(self, net: Any, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Without spaces."""
        said, gold = super(ShortPath, self).find(net, facts)
        return said.replace(" ", ""), gold


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortQuery(Bare, Problem):
    """``max a if b>3`` asks for ``SELECT max(a) FROM t WHERE b>3`` behind a thought. Level 1 has no function, 3 two tests."""

    name: str = "sql/short"
    domain: str = "sql"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = ("{asked} if {tests}",)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A question, and two sets of rows."""
        columns = rng.sample("abcd", 3)
        tests = [f"{column}{rng.choice('<>=')}{rng.randrange(1, 9)}" for column in columns[1 : 1 + max(1, level - 1)]]
        function = rng.choice(("max", "min", "sum", "count")) if level > 1 else ""
        rows = [[[rng.randrange(10) for _ in range(4)] for _ in range(8)] for _ in range(2)]
        return {"function": function, "column": columns[0], "tests": tests, "rows": rows}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Few letters."""
        return {"asked": f"{facts['function']} {facts['column']}".strip(), "tests": "&".join(facts["tests"])}

    def solve(self, facts: Facts) -> Solution:
        """The query, behind the tests as a thought."""
        column, tests = facts["column"], facts["tests"]
        asked = f"{facts['function']}({column})" if facts["function"] else column
        query = f"SELECT {asked} FROM t WHERE {' AND '.join(tests)}"
        schema = {"t": [[name, "INTEGER"] for name in "abcd"]}
        database = {"schema": schema, "instances": [{"t": rows} for rows in facts["rows"]]}
        return Solution(answer=query, gold={"query": query, "database": database}, steps=f"<think>{'&'.join(tests)}</think>")

    def format_solution(self, solution: Solution, form: Form) -> str:
        """Thought and answer."""
        return f"{solution.steps}<answer>{solution.answer}</answer>"

    def verifier(self, form: Form) -> Verifier:
        """By results."""
        return SqlMatch()


_WORDS = ("so", "we", "go", "up", "ok", "no", "it", "me", "at", "in", "on", "my", "be", "do", "or", "if")
_LETTERS = {
    **{word: word[0].upper() for word in ("red", "blue", "green", "yellow")},
    **{word: word[0] for word in ("round", "square", "flat", "curved")},
    **{word: str(i) for i, word in enumerate(("small", "large", "old", "new", "wooden", "metal", "glass"))},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortClass(Bare, NamedClass):
    """A letter for each trait: ``dax Rr,wug Bf:2Bf0`` asks for ``wug``, with thinking behind ``Bf``."""

    levels: tuple[int, ...] = (1, 2, 3, 4)

    def word(self, facts: Facts, variant: int) -> str:
        """The classes, and the thing."""
        named = [
            f"{label} {''.join(_LETTERS[trait] for trait in meaning)}"
            for label, meaning in zip(facts["labels"], facts["meanings"], strict=True)
        ]
        return f"{','.join(named)}:{''.join(_LETTERS[trait] for trait in facts['asked'])}"

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The thought in letters."""
        short = "".join(_LETTERS[trait] for trait in solution.steps.split(" and "))
        return super(ShortClass, self).format_solution(replace(solution, steps=short), form)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortText(Bare, ConstrainedText):
    """Up to four constraints of IFEval in few letters: ``3w U <so >ok`` asks for ``SO GO OK``."""

    levels: tuple[int, ...] = (1, 2, 3, 4)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """So many of four kinds."""
        kinds: list[dict[str, Any]] = [
            {"constraint": "words", "count": rng.randint(3, 8), "relation": "exactly"},
            {"constraint": rng.choice(("upper_case", "lower_case"))},
            {"constraint": "starts_with", "phrase": rng.choice(_WORDS)},
            {"constraint": "ends_with", "phrase": rng.choice(_WORDS)},
        ]
        return {"theme": "", "constraints": [kinds[i] for i in sorted(rng.sample(range(4), level))]}

    def word(self, facts: Facts, variant: int) -> str:
        """A sign for each."""
        signs = {"upper_case": "U", "lower_case": "L"}
        said = {"words": "{count}w", "starts_with": "<{phrase}", "ends_with": ">{phrase}"}
        specs = facts["constraints"]
        return " ".join(signs.get(spec["constraint"]) or said[spec["constraint"]].format_map(spec) for spec in specs)

    def fair(self, facts: Facts) -> bool:
        """All are."""
        return True

    def solve(self, facts: Facts) -> Solution:
        """Short words, as many as are asked for."""
        by = {spec["constraint"]: spec for spec in facts["constraints"]}
        count: int = by.get("words", {"count": 3})["count"]
        words: list[str] = [_WORDS[(i + count) % len(_WORDS)] for i in range(count)]
        words[0] = by.get("starts_with", {"phrase": words[0]})["phrase"]
        words[-1] = by.get("ends_with", {"phrase": words[-1]})["phrase"]
        text = " ".join(words)
        return Solution(answer=text.upper() if "upper_case" in by else text, gold=facts["constraints"])


def _classes(*, thinking: bool) -> Problems:
    """Base and new classes, with a thought or without."""
    base = ShortClass(thinking=thinking)
    return Problems(name="classes", problems=(base, replace(base, name="text/classes_new", part="new")), form=Form.PLAIN)


def _family(name: str, problem: Problem) -> Problems:
    return Problems(name=name, problems=(problem,), form=Form.PLAIN)


CLASSES, CLASSES_THOUGHT = _classes(thinking=False), _classes(thinking=True)
SUMS = _family("arithmetic", ShortExpression())
FORMULAS = _family("sat", ShortFormula())
MAZES = _family("mazes", ShortMaze())
GRAPHS = _family("graphs", ShortPath())
QUERIES = _family("sql", ShortQuery())
TEXTS = _family("instructions", ShortText())
