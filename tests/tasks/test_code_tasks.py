"""Programs to read: by hand, by their contract, and run in every language that is here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from assay.core.errors import ToolchainError, UnknownNameError
from assay.sandbox import Sandbox, SandboxProgram
from assay.tasks import Problem, Problems
from assay.testing import check_problem
from assay_tasks.code.dialects import DIALECTS, dialect, write_program
from assay_tasks.code.drawn import drawn_program
from assay_tasks.code.family import code
from assay_tasks.code.machines import Registers, Stack, Tape
from assay_tasks.code.predict import Output
from assay_tasks.code.program import Unclear, run
from assay_tasks.code.texts import Matches, Strings, pattern_text

CODE: Problems = code()


@pytest.mark.prove
@pytest.mark.parametrize("problem", CODE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=10 if problem.name in ("code/input", "code/complete") else 20, growth=2.0)


def _main(*statements: Any) -> dict[str, Any]:
    return {"functions": [], "main": list(statements)}


def test_the_interpreter_by_hand() -> None:
    loop = ["for", "i", 1, 4, [["set", "a", ["+", ["*", "a", "i"], 1]], ["if", [">", "a", 9], [["break"]], []]]]
    assert run(_main(["let", "a", 2], loop, ["print", ["a"]])).output == ["22"]
    down = ["while", ["and", [">", "a", 0], ["not", ["==", "a", 3]]], [["set", "a", ["-", "a", 1]]]]
    assert run(_main(["let", "a", 9], down, ["print", ["a", ["//", 7, "a"], ["^", "a", 6]]])).output == ["3 2 5"]
    put = ["put", "xs", ["%", "a", 2], ["<<", ["at", "xs", 0], 2]]
    assert run(_main(["let", "a", 5], ["array", "xs", [3, 4]], put, ["print", [["at", "xs", 1]]])).output == ["12"]
    back = ["f", ["u"], [["if", ["<=", "u", 0], [["return", 7]], []], ["return", ["+", ["call", "f", [["-", "u", 1]]], "u"]]]]
    assert run({"functions": [back], "main": [["print", [["call", "f", [4]]]]]}).output == ["17"]


@pytest.mark.parametrize(
    "statement",
    [
        ["let", "a", ["//", -1, 2]],
        ["let", "a", ["%", 1, 0]],
        ["let", "a", ["*", 10**5, 10**5]],
        ["let", "a", ["<<", 1, 17]],
        ["let", "a", ["*", 0, -1]],
        ["while", ["<", 0, 1], []],
        ["print", [["at", "xs", 2]]],
        ["print", [["call", "f", [1]]]],
    ],
)
def test_what_languages_do_differently_has_no_run(statement: Any) -> None:
    endless = ["f", ["u"], [["return", ["call", "f", ["u"]]]]]
    with pytest.raises(Unclear):
        run({"functions": [endless], "main": [["array", "xs", [1, 2]], statement]})


def test_languages_by_hand() -> None:
    program = _main(["array", "xs", [4, 5]], ["if", ["!=", ["at", "xs", 1], 4], [["print", [["^", 6, 3]]]], []])
    assert write_program(program, "lua") == "local xs = {4, 5}\nif xs[2] ~= 4 then\n    print((6 ~ 3))\nend"
    assert write_program(program, "perl").endswith('my @xs = (4, 5);\nif ($xs[1] != 4) {\n    print join(" ", 6 ^ 3), "\\n";\n}')
    assert "if xs[1] != 4 {" in write_program(program, "rust") and "if (xs[1] !== 4) {" in write_program(program, "javascript")
    with pytest.raises(UnknownNameError, match="language of programs 'pyton': did you mean 'python'"):
        dialect("pyton")
    with pytest.raises(UnknownNameError, match="language of programs 'cobol'"):
        Output(languages=("cobol",))


def test_python_agrees_with_the_interpreter() -> None:
    for level in range(1, 9):
        for i in range(25):
            program = drawn_program(level, Random(f"{level}/{i}"), "line" if level > 2 else "")
            assert _printed(write_program(program, "python")) == run(program).output


def test_machines_by_hand() -> None:
    code = [["push", 2], ["push", 3], ["push", 5], ["rot"], ["over"], ["max"], ["drop"], ["swap"], ["sub"]]
    assert Stack().solve({"code": code}).answer == "2"  # 2 3 5, 3 5 2, 3 5 2 5, 3 5 5, 3 5, 5 3, 5 - 3
    loop = [["mov", "a", 6], ["mov", "b", "a"], ["xor", "a", 3], ["dec", "b"], ["jnz", "b", 2], ["sub", "a", 10], ["halt"]]
    assert Registers().solve({"code": loop, "register": "a"}).answer == "-4"
    hello = Tape().solve({"code": "++++++++[>+++++++++<-]>.---.+++++++..+++."})
    assert hello.answer == "HELLO"


def test_patterns_agree_with_python() -> None:
    tried = 0
    for level in range(1, 6):
        for i in range(40):
            facts = Matches().draw(level, Random(f"{level}/{i}"))
            kinds = [part[0] for part in facts["pattern"][1:]]
            assert ("lit", "lit") not in pairwise(kinds), "reads like another pattern"
            pattern = re.compile(pattern_text(facts["pattern"]))
            assert Matches().solve(facts).gold == [text for text in facts["strings"] if pattern.fullmatch(text)]
            tried += len(facts["strings"])
    assert tried > 1000


def test_strings_agree_with_python() -> None:
    for level in range(1, 6):
        for i in range(20):
            facts = Strings(name="code/strings").draw(level, Random(f"{level}/{i}")) | {"language": "python"}
            text = Strings().fields(facts)["code"].removeprefix("```python\n").removesuffix("```")
            assert _printed(text) == [Strings().solve(facts).answer]


def _printed(text: str) -> list[str]:
    lines: list[str] = []
    exec(text, {"print": lambda *words: lines.append(" ".join(map(str, words)))})  # pyright: ignore
    return lines


def _samples(name: str) -> Iterator[tuple[str, list[str]]]:
    """Programs in a language, and what they print."""
    for level in (2, 5, 7, 8):
        program = drawn_program(level, Random(f"{name}/{level}"), "line")
        yield write_program(program, name), run(program).output
    for i in range(3 if name in ("javascript", "perl", "lua") else 0):
        facts = Strings().draw(5, Random(i)) | {"language": name}
        yield Strings().fields(facts)["code"].removeprefix(f"```{name}\n").removesuffix("```"), [Strings().solve(facts).answer]


@pytest.mark.prove
def test_every_language_agrees_with_the_interpreter() -> None:
    """Programs of four levels, in each language whose toolchain is here, run in the sandbox."""
    tried: list[str] = []
    for name in DIALECTS:
        try:
            sandbox = Sandbox(languages=[name])
        except ToolchainError:
            continue
        with sandbox:
            for text, wanted in _samples(name):
                if name == "python":
                    made = SandboxProgram(code=text)
                else:
                    built = sandbox.compile(name, text)
                    assert built.refused is None, (text, built.refused)
                    made = built.program("")
                result = sandbox.run(made)
                assert result.stdout.split("\n")[:-1] == wanted, (text, result)
        tried.append(name)
    assert "python" in tried and len(tried) >= 3
