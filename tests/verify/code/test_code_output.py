"""Programs judged by what they print."""

from typing import Any, cast

import pytest
from code_cases import HACKS, PRINTED, RIGHT, WRONG, judged, words

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rollout import Stop
from assay.core.score import Fault
from assay.sandbox import Limits, Result, SandboxProgram, Status
from assay.verify import task_and_rollout
from assay.verify.code import CodeOutput, Compare, ProgramPlace, same_text

CHECK = CodeOutput()


def test_right_wrong_and_partly_right() -> None:
    score = judged(CHECK, PRINTED, f"So:\n```python\n{RIGHT}```")
    assert dict(score.components) == {"correct": 1.0, "fraction": 1.0, "ran": 1.0}
    assert score.info["verdict"] == "passed" and score.info["isolation"] and "why" not in score.info
    score = judged(CHECK, PRINTED, WRONG)
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.5, "ran": 1.0}
    assert (score.info["verdict"], score.info["cases"]) == ("wrong", ("passed", "wrong"))


@pytest.mark.parametrize("name", HACKS)
def test_no_hack_passes_a_case(name: str) -> None:
    limits = Limits(cpu=5.0, wall=20.0, output=1 << 16)
    score = judged(CodeOutput(limits=limits, stop_at_first_timeout=False), PRINTED, HACKS[name])
    assert score.components["fraction"] == 0.0 and score.valid


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("import time\ntime.sleep(60)", "timeout"),
        ("x = bytearray(10**10)", "memory"),
        ("print('4')\nraise SystemExit(3)", "error"),
        ("print('x' * 3000000)", "output"),
        ("open('a', 'wb').write(bytes(20 << 20))", "disk"),
        ("import socket\nsocket.socket().connect(('127.0.0.1', 1))", "blocked"),
        ("1 / 0", "error"),
    ],
)
def test_a_limit_is_a_verdict_on_a_case(program: str, word: str) -> None:
    """The second case is answered; only the first goes wrong."""
    limits = Limits(cpu=5.0, wall=1.0 if word == "timeout" else 20.0)
    indented = "\n".join(f"    {line}" for line in program.split("\n"))
    text = f"if int(input()) == 2:\n{indented}\nelse:\n    print(10)"
    check = CodeOutput(limits=limits, stop_at_first_timeout=False)
    score = judged(check, PRINTED, text)
    assert score.info["cases"] == (word, "passed") and score.valid
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.5, "ran": 0.0}
    if word == "error":
        assert score.info.get("why", "") in ("", "ZeroDivisionError: division by zero")


def test_cases_behind_a_timeout_are_skipped_by_default() -> None:
    tests = {"tests": [{"stdin": str(n), "stdout": str(n)} for n in range(6)]}
    text = "import time\nn = int(input())\nif n == 1:\n    time.sleep(60)\nprint(n)"
    check = CodeOutput(limits=Limits(wall=1.0))
    assert words(check, tests, text) == ("passed", "timeout", "skipped", "skipped", "skipped", "skipped")
    assert words(CodeOutput(limits=Limits(wall=1.0), stop_at_first_timeout=False), tests, text)[2:] == ("passed",) * 4


@pytest.mark.parametrize("workers", [1, 3])
def test_stopping_early_does_not_depend_on_who_is_faster(workers: int) -> None:
    tests = {"tests": [{"stdin": str(n), "stdout": str(n)} for n in range(5)]}
    text = "import time\nn = int(input())\nif n == 1: time.sleep(0.3)\nprint(n if n not in (1, 3) else 'no')"
    check = CodeOutput(workers=workers, stop_at_first_failure=True)
    score = judged(check, tests, text)
    assert score.info["cases"] == ("passed", "wrong", "skipped", "skipped", "skipped")
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.2, "ran": 1.0}
    assert words(CodeOutput(workers=workers), tests, text) == ("passed", "wrong", "passed", "wrong", "passed")


@pytest.mark.parametrize("text", ["def f(:", "if True:\nx = 1", "if 1:\n\tx\n        y", "I think it is 4."])
def test_what_is_no_program_is_found_out_once(text: str) -> None:
    tests = {"tests": [{"stdin": "", "stdout": "4"}] * 3}
    score = judged(CodeOutput(workers=1), tests, text)
    assert score.info["cases"] == ("syntax", "skipped", "skipped") and score.info["verdict"] == "syntax"
    assert set(score.components.values()) == {0.0}


def test_a_syntax_error_of_its_own_making_is_an_error() -> None:
    assert words(CHECK, PRINTED, "n = input()\nif n == '2': eval('1 +')\nprint(10)") == ("error", "passed")
    assert words(CHECK, PRINTED, "n = input()\nif n == '2': raise SyntaxError('x')\nprint(10)") == ("error", "passed")


def test_what_is_no_answer() -> None:
    assert judged(CHECK, PRINTED, " ").info["verdict"] == "unparsed"
    score = CHECK(*task_and_rollout(PRINTED, RIGHT, stop=Stop.LENGTH))
    assert score.info["verdict"] == "unfinished" and set(score.components.values()) == {0.0}


def test_what_is_expected_does_not_reach_the_process() -> None:
    """The program sees its own memory and folder; none of it holds the secret."""
    secret = "8f14e45fceea167a"
    text = (
        "import gc, os, sys\n"
        "half = '8f14e45f'\n"
        "rest = 'ceea167a'[::-1]\n"
        "seen = [str(o)[:10000] for o in gc.get_objects() if isinstance(o, (str, bytes, list, dict, tuple))]\n"
        "seen += [str(sys.argv), str(os.environ), str(os.listdir('.'))]\n"
        "print(any(half + rest[::-1] in s for s in seen))"
    )
    check = CodeOutput()
    assert judged(check, {"tests": [{"stdin": "", "stdout": secret}]}, text).info["verdict"] == "wrong"
    assert judged(check, {"tests": [{"stdin": "", "stdout": "False"}, {"stdout": secret}]}, text).info["cases"][0] == "passed"


def test_comparing() -> None:
    assert same_text("a \nb\t\n", "a\r\nb") and not same_text("a", " a") and not same_text("a b", "a  b")
    assert not same_text("a\n\nb", "a\nb") and not same_text("A", "a")
    assert same_text("a", "a", "exact") and not same_text("a", "a\n", "exact")
    assert same_text(" a  b\nc", "a b c", "tokens") and not same_text("a b", "a b c", "tokens")
    assert same_text("1.0 -2e0", "1.0000001 -2", "tokens", 1e-6) and not same_text("1.0", "1.1", "tokens", 1e-6)
    assert not same_text("1.0", "1", "tokens") and not same_text("1", "nan", "tokens", 0.5)
    assert not same_text("1e9999", "2e9999", "tokens", 0.5) and not same_text("1e9999", "5", "tokens", 0.5)
    assert not same_text("x", "1", "tokens", 0.5) and same_text("1000000.0", "1000001", "tokens", 1e-5)
    assert not same_text("1000000", "1000001", "tokens", 1e-5), "another whole number is another number"
    assert (
        not same_text("7", "8", "tokens", 0.5)
        and same_text("07", "+7", "tokens", 0.5)
        and not same_text("-7", "7", "tokens", 0.5)
    )
    assert same_text("7", "7.0000001", "tokens", 1e-6) and not same_text("1000000", "1000000.5", "tokens", 1e-6)
    assert (
        judged(CodeOutput(compare=Compare.TOKENS, tolerance=0.01), PRINTED, "n = int(input())\nprint(2 * n + 1e-4)").primary
        == 1.0
    )


def test_settings() -> None:
    for tolerance in (-1.0, 1.0, float("nan")):
        with pytest.raises(ConfigError, match=r"CodeOutput.tolerance is .* must be in \[0, 1\)"):
            CodeOutput(compare=Compare.TOKENS, tolerance=tolerance)
    with pytest.raises(ConfigError, match="needs compare='tokens', and compare is 'lines'"):
        CodeOutput(tolerance=0.1)
    with pytest.raises(UnknownNameError, match="did you mean 'tokens'"):
        CodeOutput(compare=cast("Any", "token"))
    with pytest.raises(UnknownNameError, match=r"CodeOutput\.where"):
        CodeOutput(where=cast("Any", "fense"))
    with pytest.raises(ConfigError, match=r"CodeOutput\.workers=0"):
        CodeOutput(workers=0)
    assert judged(CodeOutput(where=ProgramPlace.FENCE), PRINTED, RIGHT).info["verdict"] == "unparsed"


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (None, "private\\['tests'\\] is missing; give a list"),
        ({"tests": []}, "give a list with at least one item"),
        ({"tests": ["a"]}, "'tests'\\]\\[0\\] is 'a'; give {'stdin'"),
        ({"tests": [{"stdin": "", "stdout": ""}, {"stdin": ""}]}, "'tests'\\]\\[1\\]"),
        ({"tests": [{"stdin": 1, "stdout": ""}]}, "'tests'\\]\\[0\\]"),
        ({"tests": [{"stdout": "", "more": ""}]}, "'tests'\\]\\[0\\]"),
        ({"tests": [{"stdout": "x" * 2_000_000}]}, "more than the 1048576 bytes of limits.output; raise that"),
    ],
)
def test_a_gold_of_the_wrong_form(gold: object, said: str) -> None:
    with pytest.raises(DataError, match=f"task 'case': .*{said}"):
        judged(CHECK, gold, "x")


SUM = """
def check(stdin, expected, printed):
    a, b = map(int, printed.split())
    return a + b == int(stdin) and a >= 0 and b >= 0
"""
SPLIT = {"tests": [{"stdin": "7\n"}, {"stdin": "9\n", "stdout": "4 5\n"}], "checker": SUM}


@pytest.mark.parametrize(
    ("program", "cases"),
    [
        ("n = int(input())\nprint(0, n)", ("passed", "passed")),
        ("n = int(input())\nprint(n // 2, n - n // 2)", ("passed", "passed")),
        ("n = int(input())\nprint(3, 4)", ("passed", "wrong")),
        ("n = int(input())\nprint(-1, n + 1)", ("wrong", "wrong")),
        ("n = int(input())\nprint(n)", ("wrong", "wrong")),  # the checker raises
        ("print('PASS')", ("wrong", "wrong")),
        ("print('True')", ("wrong", "wrong")),
        ("import os\nos.write(3, b'{\"value\": true}')\nos._exit(0)", ("wrong", "wrong")),
        ("1 / 0", ("error", "error")),
        ("class Same(int):\n    __eq__ = lambda *a: True\nprint(Same(1), Same(1))", ("wrong", "wrong")),
    ],
)
def test_a_special_judge_takes_every_right_output(program: str, cases: tuple[str, ...]) -> None:
    assert words(CodeOutput(), SPLIT, program) == cases


@pytest.mark.parametrize(
    ("checker", "said"),
    [
        ("def check(", "is no Python: "),
        (3, "is 3; give Python source"),
        (
            "def check(stdin, expected, printed): return False",
            "does not accept private.'tests'..1..'stdout'.: it returned False",
        ),
        ("def check(stdin, expected, printed): return int(printed)", "does not accept .*: ValueError"),
        ("def judge(): pass", "does not accept .*: NameError: the program defines no function 'check'"),
        ("def check(stdin, expected, printed): return 1 if stdin != '9\\n' else True", "returned 1; return True or False"),
    ],
)
def test_a_special_judge_that_cannot_be_one(checker: object, said: str) -> None:
    with pytest.raises(DataError, match=f"task 'case': private.'checker'. {said}"):
        judged(CodeOutput(workers=1), SPLIT | {"checker": checker}, "print(1, 2)")


def test_a_special_judge_sees_what_is_expected_and_may_say_nothing() -> None:
    checker = (
        "def check(stdin, expected, printed):\n    if sorted(printed.split()) == sorted(expected.split()):\n        return True"
    )
    gold = {"tests": [{"stdin": "", "stdout": "a b c"}], "checker": checker}
    assert judged(CodeOutput(), gold, "print('c a b')").primary == 1.0
    assert judged(CodeOutput(), gold, "print('c a')").info["cases"] == ("wrong",)
    hangs = {
        "tests": [{"stdin": "1"}],
        "checker": "def check(a, b, printed):\n    while printed == 'x\\n': pass\n    return True",
    }
    check = CodeOutput(limits=Limits(cpu=0.5, wall=4.0))
    assert judged(check, hangs, "print('x')").info["cases"] == ("wrong",) and judged(check, hangs, "print('y')").primary == 1.0


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_sandbox_that_fails_in_a_special_judge_is_no_verdict(bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = CodeOutput().sandbox()

    class Fails:
        workers, backend = 1, real.backend
        runs = 0

        def run(self, program: SandboxProgram, limits: Limits) -> Result:
            self.runs += 1
            if self.runs > bad:
                return Result(status=Status.INFRA, detail="broken", isolation="none")
            return Result(status=Status.OK, value=True, stdout="1 2", isolation="none")

    fails = Fails()
    monkeypatch.setattr(CodeOutput, "sandbox", lambda _: fails)
    gold = {"tests": [{"stdin": f"{bad}", "stdout": "4 5\n"}], "checker": f"{SUM}\n# {bad}"}
    score = judged(CodeOutput(), gold, "print(1, 2)")
    assert score.fault is Fault.INFRA and "broken" in score.info["error"]
