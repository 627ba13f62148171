"""Programs of other languages judged by what they print: compiled once, and scored alike in every language."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from code_cases import PRINTED, judged

from assay.core.errors import ConfigError, SandboxError, ToolchainError, UnknownNameError
from assay.core.score import Fault
from assay.sandbox import CompiledProgram, Limits, Result, Sandbox, Status, ZygoteBackend, language
from assay.verify.code import CodeOutput, build_cache
from assay.verify.code.base import refusal

DOUBLE = {
    "python": "print(int(input()) * 2)",
    "c": '#include <stdio.h>\nint main(void) { int x; scanf("%d", &x); printf("%d\\n", x * 2); return 0; }',
    "cpp": "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 2 << std::endl; }",
    "javascript": 'console.log(Number(require("fs").readFileSync(0, "utf8")) * 2)',
    "lua": 'print(io.read("n") * 2)',
    "perl": 'print <STDIN> * 2, "\\n";',
}
LIMITS = Limits(cpu=10.0, wall=20.0)


def check(name: str, **settings) -> CodeOutput:
    made = CodeOutput(language=name, limits=LIMITS, **settings)
    try:
        made.prepare()
    except (ToolchainError, ConfigError) as error:
        pytest.skip(str(error))
    return made


@pytest.fixture(autouse=True)
def fresh():
    """What one test compiled is not there for the next."""
    build_cache._mine.__init__()


@pytest.mark.parametrize("name", DOUBLE)
def test_one_task_has_one_score_in_every_language(name):
    """Agnostics: a crash is worth less than a wrong answer, and that less than a right one, whatever the language."""
    right, wrong = DOUBLE[name], DOUBLE[name].replace("* 2", "* 3")
    tag = language(name).names[-1]
    scores = [judged(check(name), PRINTED, f"Here:\n```{tag}\n{code}\n```\nIt prints\n```\n4\n```") for code in (right, wrong)]
    assert [dict(s.components) for s in scores] == [
        {"correct": 1.0, "fraction": 1.0, "ran": 1.0},
        {"correct": 0.0, "fraction": 0.0, "ran": 1.0},
    ]
    assert [s.info["verdict"] for s in scores] == ["passed", "wrong"]
    crash = judged(check(name), PRINTED, "}} not a program")
    assert dict(crash.components) == {"correct": 0.0, "fraction": 0.0, "ran": 0.0}
    assert crash.info["verdict"] in ("compile", "error", "syntax") and crash.info["why"]


def test_what_does_not_compile_says_why():
    score = judged(check("c"), PRINTED, "int main(void) { return x; }")
    assert (score.info["verdict"], score.info["cases"]) == ("compile", ("compile", "skipped"))
    assert "error" in score.info["why"] and "undeclared" in score.info["why"] and score.info["isolation"]
    assert score.primary == 0.0 and score.fault is Fault.NONE


def test_what_a_program_does_wrong_has_its_verdict():
    c = replace(check("c"), limits=Limits(cpu=5.0, wall=0.5, output=1 << 12))
    loop = "int main(void) { for (volatile int i = 0;; i++) {} }"
    flood = '#include <stdio.h>\nint main(void) { for (;;) puts("4"); }'
    assert judged(c, PRINTED, loop).info["cases"] == ("timeout", "skipped")
    assert judged(c, PRINTED, flood).info["verdict"] == "output"
    assert judged(c, PRINTED, "int main(void) { return *(volatile int *)0; }").info["verdict"] == "error"


def test_an_answer_is_compiled_once_for_its_cases_and_for_equals(monkeypatch):
    c = check("c")
    compiled: list[str] = []
    compile = Sandbox.compile
    monkeypatch.setattr(Sandbox, "compile", lambda self, own, source: compiled.append(source) or compile(self, own, source))
    for answer in (DOUBLE["c"], DOUBLE["c"], f"```c\n{DOUBLE['c']}\n```", "int x;", "int x;"):
        judged(c, PRINTED, answer)
    assert compiled == [DOUBLE["c"], "int x;"]


class Canned:
    """A sandbox whose compiler always ends in one way."""

    backend = ZygoteBackend("strong")

    def __init__(self, **result) -> None:
        self.result = Result(**result)
        self.compiled: list[str] = []

    def compile(self, own, source):
        self.compiled.append(source)
        return CompiledProgram(language=own, files={"main": bytes(10_000)}, result=self.result)


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(build_cache, "_MOST", 25_000)  # two programs
    canned, c = Canned(status=Status.OK), language("c")
    for source in ("a", "b", "a", "c", "a", "b"):
        built = build_cache.build(cast("Sandbox", canned), c, source)
    assert canned.compiled == ["a", "b", "c", "b"]  # the one that was used longest ago goes first
    assert [key[2] for key in build_cache._mine.known] == ["a", "b"] and build_cache._mine.size == 20_002
    build_cache._mine.add(next(iter(build_cache._mine.known)), built)  # another thread was faster
    assert build_cache._mine.size == 20_002


@pytest.mark.parametrize("status", [Status.INFRA, Status.COMPILE])
def test_a_limit_that_was_met_is_not_remembered(monkeypatch, status):
    canned = Canned(status=status, detail="timeout")
    for _ in range(2):
        build_cache.build(cast("Sandbox", canned), language("c"), "a")
    assert canned.compiled == ["a", "a"]


def test_a_sandbox_that_fails_to_compile_is_a_fault(monkeypatch):
    perl = check("perl")
    monkeypatch.setattr(Sandbox, "compile", lambda _, *a: Canned(status=Status.INFRA, detail="planted").compile(*a))
    score = judged(perl, PRINTED, "1;")
    assert score.fault is Fault.INFRA and "planted" in score.info["error"]
    monkeypatch.setattr(Sandbox, "compile", lambda _, *a: Canned(status=Status.COMPILE, detail="timeout").compile(*a))
    assert judged(perl, PRINTED, "2;").info["why"] == "the compiler: timeout"


def test_a_missing_toolchain_is_no_score(monkeypatch):
    """Not even when nobody prepared it."""
    try:
        Sandbox(workers=1).close()
    except SandboxError as error:
        pytest.skip(str(error))
    monkeypatch.setattr("assay.sandbox.toolchain.PATH", "/nowhere")
    fortran = CodeOutput(language="fortran", workers=3)
    for ask in (fortran.prepare, lambda: judged(fortran, PRINTED, "end program")):
        with pytest.raises(ToolchainError, match="apt-get install gfortran"):
            ask()


def test_an_unknown_language_is_refused_when_the_verifier_is_made():
    with pytest.raises(UnknownNameError, match="did you mean 'rust'"):
        CodeOutput(language="rusty")


def test_a_language_of_your_own_is_judged_as_any_other(tmp_path):
    text = (Path(language.__code__.co_filename).parent / "languages" / "perl.toml").read_text()
    assert tomllib.loads(text)["names"] == ["perl", "pl"]
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('["perl", "pl"]', '["mine"]'))
    score = judged(check(str(path)), PRINTED, f"```perl\nno\n```\n```mine\n{DOUBLE['perl']}\n```")
    assert score.info["verdict"] == "passed"


def test_the_first_error_is_the_reason():
    assert refusal(Result(status=Status.COMPILE, stderr="In file\nx.c:1: Error: no\nmore errors")) == "x.c:1: Error: no"
    assert refusal(Result(status=Status.COMPILE, stderr="\nno\nmore")) == "no"
