"""Questions about what a program does, in nine languages: its output, a variable, a line, an input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, cast

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.choice import Choice
from assay.verify.text.items import ListMatch
from assay.verify.text.number import Numeric
from assay_tasks.code.dialects import DIALECTS, dialect, write_program
from assay_tasks.code.drawn import drawn_program
from assay_tasks.code.program import Run, Unclear, run

__all__ = ["Complete", "Executions", "FindInput", "Output", "ProgramProblem", "Trace", "Variable"]

_ORDINALS = ("first", "second", "third")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramProblem(Problem):
    """Base of questions about a random program (`assay_tasks.code.drawn`), written in one of several languages.

    The same program does the same in all of them: nothing overflows, nothing negative is divided.

    Attributes:
        languages: that programs are written in.

    Raises:
        UnknownNameError: a language that programs cannot be written in.
    """

    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    languages: tuple[str, ...] = DIALECTS

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        for name in self.languages:
            dialect(name)

    def program(self, facts: Facts) -> Mapping[str, Any]:
        """The program as it is shown."""
        return facts["program"]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The language's title."""
        return {"language": dialect(facts["language"]).title}

    def word(self, facts: Facts, variant: int) -> str:
        """The question, with the program in a fence behind it."""
        question = self.templates[variant].format_map(self.fields(facts))
        return f"{question}\n\n```{facts['language']}\n{write_program(self.program(facts), facts['language'])}\n```"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(ProgramProblem):
    """What a program prints. The level is its kind: straight lines, branch, loop, both, array, function, nested loops, recursion.

    >>> program = {"functions": [], "main": [["let", "a", 2], ["print", ["a", ["*", "a", 4]]]]}
    >>> Output().solve({"language": "c", "program": program}).answer
    '2 8'
    """

    name: str = "code/output"

    templates: ClassVar[tuple[str, ...]] = (
        "What does this {language} program print?",
        "Predict the output of the following {language} program, line by line.",
        "Give exactly what is written to standard output when this {language} program runs.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A program and a language."""
        return {"language": rng.choice(self.languages), "program": drawn_program(level, rng)}

    def solve(self, facts: Facts) -> Solution:
        """By running it."""
        done = run(facts["program"])
        return Solution(answer="\n".join(done.output), steps=_assignments(facts["program"], done), effort=done.steps)

    def verifier(self, form: Form) -> Verifier:
        """The text, white space around it forgiven."""
        return ExactMatch(strip=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable(ProgramProblem):
    """A variable after the n-th execution of a marked line. The level is the kind of program, as of `Output`.

    >>> body = [["mark", ["set", "a", ["+", "a", "i"]]]]
    >>> program = {"functions": [], "main": [["let", "a", 2], ["for", "i", 0, 3, body], ["print", ["a"]]]}
    >>> Variable().solve({"language": "c", "program": program, "time": 2, "variable": "a"}).answer
    '3'
    """

    name: str = "code/variable"
    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the value of {variable} in this {language} program right after the marked line has been executed for the {time} "
        "time?",
        "Run this {language} program in your head and stop when the line marked by a comment has been executed for the {time} "
        "time. What is the value of {variable} then?",
        "One line of this {language} program is marked. Which value does {variable} have directly after its {time} execution?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A program with a marked line that is executed at least twice."""
        program = _draw_marked(level, rng, "line")
        marks = run(program).marks
        time = rng.randint(2, len(marks))
        names = sorted(marks[time - 1])
        moving = [name for name in names if marks[0].get(name) != marks[time - 1][name]]
        variable = rng.choice(moving or names)
        return {"language": rng.choice(self.languages), "program": program, "time": time, "variable": variable}

    def solve(self, facts: Facts) -> Solution:
        """By running it."""
        done = run(facts["program"])
        values = [seen[facts["variable"]] for seen in done.marks[: facts["time"]]]
        steps = f"Values of {facts['variable']} after each execution: {', '.join(map(str, values))}."
        return Solution(answer=str(values[-1]), steps=steps, effort=done.steps * facts["time"] // len(done.marks))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Which time, and of what."""
        time: int = facts["time"]
        last = time % 10 if time // 10 % 10 != 1 else 0
        said = _ORDINALS[time - 1] if time <= 3 else f"{time}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"
        name = dialect(facts["language"]).expression(facts["variable"])
        return {"language": dialect(facts["language"]).title, "time": said, "variable": name}

    def verifier(self, form: Form) -> Verifier:
        """The number."""
        return Numeric(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(ProgramProblem):
    """All values that a variable takes at a marked line, in order. The level is the kind of program, as of `Output`.

    >>> body = [["mark", ["set", "a", ["+", "a", "i"]]]]
    >>> program = {"functions": [], "main": [["let", "a", 2], ["for", "i", 0, 3, body], ["print", ["a"]]]}
    >>> Trace().solve({"language": "c", "program": program, "variable": "a"}).answer
    '2, 3, 5'
    """

    name: str = "code/trace"
    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8)

    templates: ClassVar[tuple[str, ...]] = (
        "List the values of {variable} right after each execution of the marked line of this {language} program, in order, "
        "separated by commas.",
        "Each time the marked line of this {language} program has been executed, write down the value of {variable}. Give all of "
        "them in order, with commas between.",
        "Trace this {language} program: which values does {variable} have directly after the marked line, one for each "
        "execution? Separate them by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A program whose marked line changes a variable a few times."""
        for _ in range(100):
            program = _draw_marked(level, rng, "line", most=25)
            name = next(s for s in _statements(program["main"]) if s[0] == "mark")[1][1]
            if len({seen[name] for seen in run(program).marks}) > 1:
                return {"language": rng.choice(self.languages), "program": program, "variable": name}
        raise DataError(f"{self.name}: level {level}: no program changed a variable at its marked line")

    def solve(self, facts: Facts) -> Solution:
        """By running it."""
        done = run(facts["program"])
        values = [str(seen[facts["variable"]]) for seen in done.marks]
        return Solution(
            answer=", ".join(values), gold=values, steps=f"The line is executed {len(values)} times.", effort=done.steps
        )

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Of what."""
        d = dialect(facts["language"])
        return {"language": d.title, "variable": d.expression(facts["variable"])}

    def verifier(self, form: Form) -> Verifier:
        """The list, in order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions(ProgramProblem):
    """How often a marked line in a branch is executed. The level is the kind of program, as of `Output`.

    >>> body = [["if", ["==", ["%", "i", 2], 0], [["mark", ["set", "a", ["+", "a", "i"]]]], []]]
    >>> program = {"functions": [], "main": [["let", "a", 2], ["for", "i", 0, 5, body], ["print", ["a"]]]}
    >>> Executions().solve({"language": "c", "program": program}).answer
    '3'
    """

    name: str = "code/executions"
    levels: tuple[int, ...] = (4, 5, 6, 7, 8)

    templates: ClassVar[tuple[str, ...]] = (
        "How many times is the marked line of this {language} program executed?",
        "One line of this {language} program is marked by a comment. Count how often it is executed.",
        "When this {language} program runs, how often is its marked line reached and executed?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A program with a mark in a branch, which loops often enough."""
        return {"language": rng.choice(self.languages), "program": _draw_marked(level, rng, "branch", least=1)}

    def solve(self, facts: Facts) -> Solution:
        """By running it."""
        done = run(facts["program"])
        return Solution(answer=str(len(done.marks)), steps=_assignments(facts["program"], done), effort=done.steps)

    def verifier(self, form: Form) -> Verifier:
        """The number."""
        return Numeric(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindInput(ProgramProblem):
    """A starting value for which a program prints what is given; any that does is right. The level is the kind of program.

    The value is a whole number from 0 to ``most``; at most a tenth of these are right.

    >>> program = {"functions": [], "main": [["let", "a", 7], ["print", [["%", "a", 5]]]]}
    >>> FindInput(most=9).solve({"language": "c", "program": program, "output": ["2"]}).gold
    ['2', '7']
    """

    name: str = "code/input"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    most: int = 40

    templates: ClassVar[tuple[str, ...]] = (
        "In this {language} program the starting value of one variable is left out and written as ?. With which whole number "
        "from 0 to {most} in its place does the program print exactly this?\n{output}",
        "Replace the ? in this {language} program by a whole number from 0 to {most} so that it prints\n{output}\nand nothing "
        "else.",
        "The output of this {language} program shall be\n{output}\nWhich whole number from 0 to {most} has to stand in place of "
        "the question mark?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A program whose output tells its first number."""
        for _ in range(200):
            program = drawn_program(level, rng, most=400)
            program["main"][0][2] = rng.randint(0, self.most)
            try:
                output = run(program, 400).output
            except Unclear:
                continue
            if len(self._fitting(program, output)[0]) <= (self.most + 1) // 10:
                return {"language": rng.choice(self.languages), "program": _visible_program(program), "output": output}
        raise DataError(f"{self.name}: level {level}: no program's output told its first number")

    def solve(self, facts: Facts) -> Solution:
        """By trying all."""
        fitting, effort = self._fitting(facts["program"], facts["output"])
        steps = f"Of 0 to {self.most} these fit: {', '.join(fitting)}."
        return Solution(answer=fitting[0], gold=fitting, steps=steps, effort=effort)

    def program(self, facts: Facts) -> Mapping[str, Any]:
        """With a question mark for the value."""
        (let, name, _), *rest = facts["program"]["main"]
        return {"functions": facts["program"]["functions"], "main": [[let, name, "?"], *rest]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The output in a fence."""
        shown = "\n".join(["```", *facts["output"], "```"])
        return {"language": dialect(facts["language"]).title, "most": str(self.most), "output": shown}

    def _fitting(self, program: Mapping[str, Any], output: Sequence[str]) -> tuple[list[str], int]:
        """The values that fit, and the steps of trying all."""
        (let, name, _), *rest = program["main"]
        found: list[str] = []
        steps = 0
        for value in range(self.most + 1):
            try:
                done = run({"functions": program["functions"], "main": [[let, name, value], *rest]}, 400)
            except Unclear:
                continue
            steps += done.steps
            if done.output == list(output):
                found.append(str(value))
        return found, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(ProgramProblem):
    """Which of four lines is missing in a program with a given output. The level is the kind of program, as of `Output`.

    >>> main = [["let", "a", 2], ["gap"], ["print", ["a"]]]
    >>> options = [["set", "a", 1], ["set", "a", 3], ["set", "a", 4], ["set", "a", 5]]
    >>> facts = {"language": "c", "program": {"functions": [], "main": main}, "options": options, "output": ["4"]}
    >>> Complete().solve(facts).answer
    'C'
    """

    name: str = "code/complete"

    templates: ClassVar[tuple[str, ...]] = (
        "A line of this {language} program is missing, where the comment with the ? stands. The program shall print\n{output}\n"
        "Which of these lines is the missing one? Answer with its letter.\n{options}",
        "With which of these lines in place of the comment with the ? does the {language} program below print\n{output}\nGive "
        "the letter.\n{options}",
        "The output of the {language} program below is\n{output}\nOne of its lines has been replaced by a comment with a ?. "
        "Choose it from these by its letter.\n{options}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A program, its marked line, and three others after which it prints something else."""
        for _ in range(100):
            program = drawn_program(level, rng, "line", most=400)
            line = next(s for s in _statements(program["main"]) if s[0] == "mark")[1]
            gapped = {"functions": program["functions"], "main": _replace_statement(program["main"], ["gap"])}
            outputs = {tuple(run(program, 400).output)}
            options = [line]
            for other in _near(line, rng):
                output = _with(gapped, other)
                if output is not None and output not in outputs:
                    outputs.add(output)
                    options.append(other)
                if len(options) == 4:
                    rng.shuffle(options)
                    output = run(program, 400).output
                    return {"language": rng.choice(self.languages), "program": gapped, "options": options, "output": output}
        raise DataError(f"{self.name}: level {level}: no program had four different lines")

    def solve(self, facts: Facts) -> Solution:
        """By trying each."""
        found, steps, effort = "", list[str](), 0
        for letter, option in zip("ABCD", facts["options"], strict=True):
            done = run(
                {"functions": facts["program"]["functions"], "main": _replace_statement(facts["program"]["main"], option, "gap")},
                400,
            )
            effort += done.steps
            steps.append(f"{letter} prints {' / '.join(done.output)}.")
            if done.output == list(facts["output"]):
                found = letter
        return Solution(answer=found, steps="\n".join(steps), effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Output and options."""
        d = dialect(facts["language"])
        options = [f"{letter}) {d.line(option)}" for letter, option in zip("ABCD", facts["options"], strict=True)]
        shown = "\n".join(["```", *facts["output"], "```"])
        return {"language": d.title, "output": shown, "options": "\n".join(options)}

    def verifier(self, form: Form) -> Verifier:
        """The letter."""
        return Choice(where=form.place)


def _assignments(program: Mapping[str, Any], done: Run) -> str:
    """What a reader may check: the numbers at the end."""
    names = [s[1] for s in program["main"] if s[0] == "let"]
    return "In the end " + ", ".join(f"{name} is {done.values[name]}" for name in names) + "."


def _draw_marked(level: int, rng: Random, mark: str, least: int = 2, most: int = 40) -> dict[str, Any]:
    """A program whose marked line is executed from ``least`` to ``most`` times."""
    for _ in range(100):
        program = drawn_program(level, rng, mark)
        if least <= len(run(program).marks) <= most:
            return program
    raise DataError(f"no program of level {level} executes its marked line {least} to {most} times")


def _visible_program(program: dict[str, Any]) -> dict[str, Any]:
    """The same program with 0 for the number that is asked for, so that facts do not tell it."""
    (let, name, _), *rest = program["main"]
    return {"functions": program["functions"], "main": [[let, name, 0], *rest]}


def _statements(body: Sequence[Any]) -> Iterator[Any]:
    """All statements, also those within others."""
    for s in body:
        yield s
        for part in {"if": (2, 3), "while": (2,), "for": (4,)}.get(s[0], ()):
            yield from _statements(s[part])


def _replace_statement(body: Sequence[Any], new: Any, kind: str = "mark") -> list[Any]:
    """A body in which the one statement of a kind is another."""
    found: list[Any] = []
    for s in body:
        if s[0] == kind:
            found.append(new)
            continue
        copy = list(s)
        for part in {"if": (2, 3), "while": (2,), "for": (4,)}.get(s[0], ()):
            copy[part] = _replace_statement(s[part], new, kind)
        found.append(copy)
    return found


def _with(gapped: Mapping[str, Any], statement: Any) -> tuple[str, ...] | None:
    try:
        return tuple(
            run({"functions": gapped["functions"], "main": _replace_statement(gapped["main"], statement, "gap")}, 400).output
        )
    except Unclear:
        return None


def _near(line: Sequence[Any], rng: Random) -> Iterator[Any]:
    """Assignments that look like a given one: another number, another sign."""
    text = json.dumps(line[2])
    for _ in range(12):
        changed = _change_expression(json.loads(text), rng)
        if changed != line[2]:
            yield ["set", line[1], changed]


def _change_expression(e: Any, rng: Random) -> Any:
    if isinstance(e, int):
        return max(1, e + rng.choice((-2, -1, 1, 2)))
    if isinstance(e, str):
        return e
    e = list(cast("list[Any]", e))
    if rng.random() < 0.4 and e[0] in "+-*":
        e[0] = rng.choice([sign for sign in "+-*" if sign != e[0]])
    elif rng.random() < 0.3 and e[0] in "+-":
        e[1], e[2] = e[2], e[1]
    else:
        at = rng.choice((1, 2))
        e[at] = _change_expression(e[at], rng)
    return e
