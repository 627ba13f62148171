"""Programs to write in Python, judged by hidden tests: from a description, from examples, from a wrong one, from another "
"language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.canon import canonical, digest
from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.code.call import CodeCall
from assay.verify.code.quality import TestQuality
from assay_tasks.code.dialects import DIALECTS, dialect
from assay_tasks.code.program import Machine, Unclear
from assay_tasks.coding.chains import (
    describe_chain,
    distinguishing_inputs,
    drawn_chain,
    each_matters,
    inputs,
    lines,
    mutants,
    result,
    write_loops,
)

__all__ = ["Bug", "FromExamples", "FromWords", "Repair", "Translate", "UnitTest"]

_NAMES = ("transform", "process", "convert", "compute", "refine", "digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeProblem(Problem):
    """Base of problems whose answer is Python in a fence, whatever the form.

    Attributes:
        tests: hidden cases of a function.
    """

    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    tests: int = 6

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question; the program is asked for in a fence."""
        return f"{self.word(facts, variant)}\nPut the whole program in one block fenced with ```python and ```."

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The program in its fence."""
        fenced = f"```python\n{solution.answer}\n```"
        return fenced if form is Form.PLAIN or not solution.steps else f"{solution.steps}\n{fenced}"

    def verifier(self, form: Form) -> Verifier:
        """By hidden tests, each a call and a value."""
        return CodeCall(where="fence", stop_at_first_failure=True)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProblem(CodeProblem):
    """Base of problems about a function of a list of whole numbers. The level is the number of its steps."""

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A chain each step of which matters, and a name."""
        for _ in range(200):
            chain = drawn_chain(level, rng)
            facts = {"name": rng.choice(_NAMES), "chain": chain}
            tried = inputs(24, Random(canonical(chain)))
            if each_matters(chain, tried):
                more = self.more(facts, tried, rng)
                if more is not None:
                    return facts | more
        raise DataError(f"{self.name}: level {level}: no chain's steps could be told from mistakes")

    def more(self, facts: Mapping[str, Any], tried: Sequence[Sequence[int]], rng: Random) -> dict[str, Any] | None:
        """Further facts; None where the chain does not serve."""
        return {}

    def cases(self, facts: Facts) -> list[dict[str, Any]]:
        """Hidden tests, which tell the function from all its mutants where so many can."""
        chain = facts["chain"]
        tried = inputs(40, Random(canonical([chain, "hidden"])))
        right = [result(chain, xs) for xs in tried]
        told = [{i for i, xs in enumerate(tried) if result(other, xs) != right[i]} for _, other in mutants(chain)]
        chosen: list[int] = []
        while told and len(chosen) < self.tests:
            best = max(range(len(tried)), key=lambda i: sum(i in places for places in told))
            chosen.append(best)
            told = [places for places in told if places and best not in places]
        chosen += [i for i in range(len(tried)) if i not in chosen][: self.tests - len(chosen)]
        return [{"args": [list(tried[i])], "expected": right[i]} for i in chosen]

    def solve(self, facts: Facts) -> Solution:
        """The function line by line, and its tests."""
        text = "\n".join(lines(facts["chain"], facts["name"]))
        gold = {"entry": facts["name"], "tests": self.cases(facts)}
        return Solution(answer=text, gold=gold, steps=self.steps(facts), effort=len(text.split()))

    def steps(self, facts: Facts) -> str:
        """What the oracle says before the program."""
        return "One line for each step."


@dataclass(frozen=True, slots=True, kw_only=True)
class FromWords(ChainProblem):
    """Write a function from its description and two examples. The level is the number of its steps.

    >>> facts = {"name": "f", "chain": [["even"], ["sum"]], "examples": []}
    >>> print(FromWords().solve(facts).answer)
    def f(xs):
        xs = [x for x in xs if x % 2 == 0]
        return sum(xs)
    """

    name: str = "coding/function"

    templates: ClassVar[tuple[str, ...]] = (
        "Write a Python function {name}(xs) that takes a list of whole numbers. {described}\nExamples:\n{examples}",
        "Implement {name}(xs) in Python; xs is a list of integers. {described} For example:\n{examples}",
        "I need a Python function called {name} with one argument xs, a list of whole numbers. {described}\n{examples}",
    )

    def more(self, facts: Mapping[str, Any], tried: Sequence[Sequence[int]], rng: Random) -> dict[str, Any] | None:
        """Two examples that are not empty."""
        return {"examples": [list(xs) for xs in rng.sample(tried[2:], 2)]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Description and examples."""
        return {"name": facts["name"], "described": describe_chain(facts["chain"]), "examples": _examples_text(facts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FromExamples(FromWords):
    """Write a function from examples alone, which no chain with one step changed gives. The level is the number of its steps.

    >>> print(FromExamples().word({"name": "f", "chain": [["even"], ["sum"]], "examples": [[1, 2, 4]]}, 0).split(chr(10))[1])
    f([1, 2, 4]) == 6
    """

    name: str = "coding/examples"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "Find out what the Python function {name}(xs) does from these examples:\n{examples}\n{hint}Write it so that it also "
        "gives "
        "the right values for other lists of whole numbers.",
        "{examples}\nWrite a Python function {name}(xs) that gives these values and goes on in the same way for other lists of "
        "whole "
        "numbers. {hint}",
        "A function of a list of whole numbers gave these values:\n{examples}\n{hint}Implement {name}(xs) in Python so that it "
        "agrees with it everywhere.",
    )

    def more(self, facts: Mapping[str, Any], tried: Sequence[Sequence[int]], rng: Random) -> dict[str, Any] | None:
        """Ten examples that tell the function from every mutant."""
        shown = [list(xs) for xs in tried[:2]] + [list(xs) for xs in rng.sample(tried[2:], 8)]
        if each_matters(facts["chain"], shown):
            return {"examples": shown}
        return None

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Examples, and how many steps there are."""
        n = len(facts["chain"]) - 1
        hint = (
            f"It does {n} simple {'thing' if n == 1 else 'things'} to the list, such as filtering, changing each number, "
            f"ordering or "
            "cutting it, and then returns the list or one number such as a sum, a count or an extreme. "
        )
        return {"name": facts["name"], "examples": _examples_text(facts), "hint": hint}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(ChainProblem):
    """Mend a function in which one line is wrong. The level is the number of its steps.

    >>> facts = {"name": "f", "chain": [["even"], ["sum"]], "wrong": [["odd"], ["sum"]], "failing": [2]}
    >>> Repair().fields(facts)["failing"]
    'f([2]) gives 0 and should give 2'
    """

    name: str = "coding/repair"

    templates: ClassVar[tuple[str, ...]] = (
        "This Python function has a bug in one line. {described} But {failing}. Mend it.\n\n{code}\n",
        "{described} That is what {name}(xs) should do with a list of whole numbers, but {failing}. Correct the "
        "program:\n\n{code}\n",
        "Find and correct the mistake in the function {name}. {described} At present {failing}.\n\n{code}\n",
    )

    def more(self, facts: Mapping[str, Any], tried: Sequence[Sequence[int]], rng: Random) -> dict[str, Any] | None:
        """A mutant, and an input on which it is wrong."""
        _, wrong = rng.choice(list(mutants(facts["chain"])))
        return {"wrong": wrong, "failing": list(rng.choice(distinguishing_inputs(facts["chain"], wrong, tried)))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Description, failure, wrong program."""
        name, xs = facts["name"], facts["failing"]
        failing = f"{name}({xs}) gives {result(facts['wrong'], xs)} and should give {result(facts['chain'], xs)}"
        code = "\n".join(["```python", *lines(facts["wrong"], name), "```"])
        return {"name": name, "described": describe_chain(facts["chain"]), "failing": failing, "code": code}

    def steps(self, facts: Facts) -> str:
        """Which line was wrong."""
        return f"Line {_wrong_line(facts)} is wrong."


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest(ChainProblem):
    """Write tests that a right function passes and wrong ones fail. The level is the number of the function's steps.

    Right is one of two references, written differently; wrong are its mutants, each of which makes one mistake.

    >>> facts = {"name": "f", "chain": [["even"], ["sum"]]}
    >>> UnitTest().solve(facts).answer.split(chr(10))[0]
    'def test_known_values():'
    """

    name: str = "coding/tests"
    most: int = 4

    templates: ClassVar[tuple[str, ...]] = (
        "Write tests for a Python function {name}(xs) of a list of whole numbers. {described}\nThe tests must pass for every "
        "right "
        "implementation and fail for wrong ones. Use assert statements in functions called test_...; do not define {name} "
        "itself.",
        "A colleague writes {name}(xs). {described} Here xs is a list of whole numbers. Give Python tests (functions test_... "
        "with "
        "assert) that tell a right {name} from ones with a mistake in any step. {name} is there already: leave it out.",
        "{described} That is what the Python function {name}(xs) does with a list of whole numbers. Write test functions with "
        "assert "
        "statements that find mistakes in it. They are run with {name} in scope, so do not write {name}.",
    )

    def solve(self, facts: Facts) -> Solution:
        """Asserts on inputs each of which some mutant gets wrong."""
        chain, name = facts["chain"], facts["name"]
        cases = self.cases(facts)
        found = [other for _, other in mutants(chain) if distinguishing_inputs(chain, other, [c["args"][0] for c in cases])]
        wrong = Random(canonical(chain)).sample(found, min(self.most, len(found)))
        asserts = [f"    assert {name}({c['args'][0]}) == {c['expected']}" for c in cases]
        text = "\n".join(["def test_known_values():", *asserts])
        gold = {
            "entry": name,
            "reference": ["\n".join(lines(chain, name)), write_loops(chain, name)],
            "mutants": ["\n".join(lines(other, name)) for other in wrong],
        }
        return Solution(answer=text, gold=gold, steps="Inputs that tell each step.", effort=sum(map(len, gold["mutants"])))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Name and description."""
        return {"name": facts["name"], "described": describe_chain(facts["chain"])}

    def verifier(self, form: Form) -> Verifier:
        """By what they tell apart."""
        return TestQuality(where="fence")  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug(ChainProblem):
    """Which line of a function has the bug. The level is the number of its steps; the first line is never wrong.

    >>> facts = {"name": "f", "chain": [["even"], ["sum"]], "wrong": [["odd"], ["sum"]], "failing": [2]}
    >>> Bug().solve(facts).answer
    '2'
    """

    name: str = "coding/bug"
    levels: tuple[int, ...] = (3, 4, 5, 6, 7)

    templates: ClassVar[tuple[str, ...]] = (
        "One line of this function is wrong. {described} But {failing}. What is the number of the wrong line?\n\n{code}\n",
        "{described} So it is meant, but {failing}. Give the number of the line with the mistake.\n\n{code}\n",
        "In which line is the bug of {name}? {described} At present {failing}. Answer with the line's number.\n\n{code}\n",
    )

    def more(self, facts: Mapping[str, Any], tried: Sequence[Sequence[int]], rng: Random) -> dict[str, Any] | None:
        """As `Repair`."""
        return Repair.more(Repair(), facts, tried, rng)

    def solve(self, facts: Facts) -> Solution:
        """Line by line against the description."""
        right, wrong = lines(facts["chain"], facts["name"]), lines(facts["wrong"], facts["name"])
        number = _wrong_line(facts)
        steps = f"Line {number} should be: {right[number - 1].strip()}"
        return Solution(answer=str(number), steps=steps, effort=sum(len(line.split()) for line in wrong))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The wrong program with numbers of lines."""
        found = dict(Repair().fields(facts))
        numbered = [f"{i}: {line}" for i, line in enumerate(lines(facts["wrong"], facts["name"]), 1)]
        return found | {"code": "\n".join(["```", *numbered, "```"])}

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question, and how the number is to be given."""
        return Problem.prompt(self, facts, variant, form)

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The number in the form asked for."""
        return Problem.format_solution(self, solution, form)

    def verifier(self, form: Form) -> Verifier:
        """The number exactly."""
        return Problem.verifier(self, form)


def _wrong_line(facts: Facts) -> int:
    pairs = zip(facts["chain"], facts["wrong"], strict=True)
    return 2 + next(i for i, (right, wrong) in enumerate(pairs) if right != wrong)


def _examples_text(facts: Facts) -> str:
    return "\n".join(f"{facts['name']}({list(xs)}) == {result(facts['chain'], xs)}" for xs in facts["examples"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Translate(CodeProblem):
    """Write in Python a function that is given in another language. The level is the number of its statements.

    Source: OORL (arXiv 2505.12723), in part.

    >>> body = [["let", "w", ["*", "u", "v"]], ["return", "w"]]
    >>> facts = {"language": "c", "function": ["f", ["u", "v"], body], "tests": [[2, 3]]}
    >>> Translate().solve(facts).gold["tests"]
    [{'args': [2, 3], 'expected': 6}]
    """

    name: str = "coding/translate"

    templates: ClassVar[tuple[str, ...]] = (
        "Write this {language} function in Python, with the same name and arguments.\n\n{code}\n",
        "Translate the following {language} function to Python. Name and order of its arguments stay the same.\n\n{code}\n",
        "Give a Python function {name} that returns what this {language} function returns for all whole numbers from 0 to 12.\n\n"
        "{code}\n",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A function of two small numbers, which depends on both. Its tests are its own: the same function has the same ones."""
        for _ in range(200):
            function = _function(level, rng)
            own = Random(digest(function))
            tests = [[own.randint(0, 12), own.randint(0, 12)] for _ in range(self.tests)]
            try:
                values = [_call_value(function, test) for test in tests]
            except Unclear:
                continue
            if len(set(values)) > self.tests // 2 and all(_safe(function, a, b) for a in (0, 5, 12) for b in (0, 7, 12)):
                languages = [name for name in DIALECTS if name != "python"]
                return {"language": rng.choice(languages), "function": function, "tests": tests}
        raise DataError(f"{self.name}: level {level}: no function gave different values")

    def solve(self, facts: Facts) -> Solution:
        """The same statements in Python."""
        name, params, body = facts["function"]
        python = dialect("python")
        text = "\n".join([f"def {name}({', '.join(params)}):", *python.lines(body, 1)])
        tests = [{"args": list(test), "expected": _call_value(facts["function"], test)} for test in facts["tests"]]
        return Solution(answer=text, gold={"entry": name, "tests": tests}, effort=len(text.split()))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The function in its language."""
        d = dialect(facts["language"])
        name, params, body = facts["function"]
        listed = ", ".join(d.parameter.format(p=p) for p in params)
        code = [d.function.format(f=name, p="" if d.name == "perl" else listed)]
        code += [f"    my ({listed}) = @_;"] if d.name == "perl" else []
        code += [*d.lines(body, 1), d.closed.format()]
        return {"language": d.title, "name": name, "code": "\n".join([f"```{d.name}", *code, "```"])}


def _function(level: int, rng: Random) -> list[Any]:
    """A function of u and v with a loop and so many statements."""
    body: list[Any] = [
        ["let", "w", rng.choice(("u", "v", rng.randint(1, 9)))],
        ["let", "t", rng.choice(("v", rng.randint(0, 5)))],
    ]
    inside: list[Any] = []
    names = ["w", "t", "u", "v", "i"]
    for _ in range(level):
        target = rng.choice("wt")
        value = rng.choice(
            (
                ["+", target, rng.choice(names)],
                ["+", ["*", target, 2], rng.choice(names)],
                ["%", ["+", target, ["*", "i", "v"]], 97],
                ["-", target, rng.choice(("i", "u", "v"))],
            )
        )
        statement: Any = ["set", target, value]
        if rng.random() < 0.5:
            condition = rng.choice(
                ([">", "w", "t"], ["==", ["%", "i", rng.randint(2, 3)], 0], ["<", rng.choice("uv"), rng.randint(2, 8)])
            )
            other = [["set", target, ["+", target, rng.randint(1, 5)]]] if rng.random() < 0.5 else []
            statement = ["if", condition, [statement], other]
        inside.append(statement)
    body.append(["for", "i", 0, rng.choice(("u", ["+", "v", 1], rng.randint(3, 6))), inside])
    return [rng.choice(("f", "g", "h")), ["u", "v"], [*body, ["return", ["+", "w", rng.choice(("t", ["*", "t", 2]))]]]]


def _call_value(function: Sequence[Any], arguments: Sequence[int]) -> int:
    name, params, body = function
    return Machine({name: (params, body)}, 3000).value(["call", name, list(arguments)], {})


def _safe(function: Sequence[Any], a: int, b: int) -> bool:
    try:
        _call_value(function, [a, b])
    except Unclear:
        return False
    return True
