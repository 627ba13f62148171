"""Test code judged by what it tells apart."""

from typing import Any

import pytest
from code_cases import judged

from assay.core.errors import ConfigError, DataError
from assay.core.score import Fault
from assay.sandbox import Limits, Result, SandboxProgram, Status
from assay.verify.code import TestQuality, static
from assay.verify.code import quality as quality_module

CHECK = TestQuality()
GOLD = {
    "entry": "largest",
    "reference": "def largest(xs):\n    return max(xs)",
    "mutants": [
        "def largest(xs):\n    return xs[-1]",
        "def largest(xs):\n    return xs[0]",
        "def largest(xs):\n    return max(map(abs, xs))",
        "def largest(xs):\n    while True: pass",
    ],
}
GOOD = """
def test_largest_in_the_middle():
    assert largest([1, 3, 2]) == 3

def test_all_negative_numbers():
    assert largest([-3, -2, -5]) == -2
"""
ALL = dict.fromkeys(CHECK.names, 1.0)


def test_good_tests_pass_and_kill() -> None:
    check = TestQuality(limits=Limits(cpu=1.0, wall=20.0))
    score = judged(check, GOLD, f"```python{GOOD}```")
    assert dict(score.components) == ALL and tuple(score.components) == CHECK.names
    assert score.info["verdict"] == "passed" and score.info["mutants"] == ("killed",) * 4 and score.info["isolation"]


SHORT = GOLD | {"mutants": GOLD["mutants"][:3]}


@pytest.mark.parametrize(
    ("tests", "verdict", "killed"),
    [
        ("def test_last_one_wins():\n    assert largest([1, 3]) == 3", "survived", 1 / 3),
        ("assert largest([1, 3, 2]) == 3", "survived", 2 / 3),
        ("assert True", "survived", 0.0),
        ("assert False", "wrong", 0.0),
        ("import os\nos._exit(0)", "error", 0.0),
        ("import sys\nsys.exit(0)", "error", 0.0),
        ('import os\nos.write(3, b\'{"value": ["passed"]}\')\nos._exit(0)', "survived", 0.0),
        ("import pytest\ndef test_a():\n    assert 1", "wrong", 0.0),
        ("def test_a(:", "syntax", 0.0),
        ("I would test it with three numbers.", "syntax", 0.0),
    ],
)
def test_other_tests(tests: str, verdict: str, killed: float) -> None:
    score = judged(CHECK, SHORT, tests)
    assert score.info["verdict"] == verdict and score.components["mutants_killed"] == pytest.approx(killed)
    assert score.primary == 0.0 and score.components["passes_reference"] == float(verdict == "survived")
    assert score.components["syntax"] == float(verdict != "syntax")
    if verdict == "syntax":
        assert set(score.components.values()) == {0.0}
    if "pytest" in tests:
        assert score.components["asserts"] == 1.0


SEES = [
    """import solution
assert 'max(xs)' in open(solution.__file__).read()""",
    """assert 'max(xs)' in open('solution.py').read()""",
    """import glob
assert any('max(xs)' in open(path, 'rb').read().decode('latin-1') for path in glob.glob('**/*', recursive=True))""",
    """import inspect
assert 'max(xs)' in inspect.getsource(largest)""",
    """import linecache
assert 'max(xs)' in ''.join(linecache.getlines('solution.py'))""",
    """import solution
assert 'max(xs)' in solution.__loader__.get_source('solution')""",
    """import solution
assert 'max' in solution.__spec__.loader.get_code('solution').co_consts[0].co_names""",
    """assert 'max' in largest.__code__.co_names""",
    """assert 'max' in getattr(largest, '__co' + 'de__').co_names""",
    """import dis, io
out = io.StringIO()
dis.dis(largest, file=out)
assert 'max' in out.getvalue() and 'map' not in out.getvalue()""",
    """import gc
assert any('max' in getattr(x, 'co_names', ()) for x in gc.get_referents(largest))""",
    """try:
    largest(None)
except TypeError as why:
    code = why.__traceback__.tb_next.tb_frame.f_code
assert 'max' in code.co_names""",
    """import sys
class Xs(list):
    def __iter__(self):
        global code
        code = sys._getframe(1).f_code
        return iter([1])
largest(Xs())
assert 'max' in code.co_names""",
    """import sys
seen = []
sys.setprofile(lambda frame, *a: seen.append(frame.f_code))
largest([1])
sys.setprofile(None)
assert any('max' in code.co_names for code in seen)""",
    """import traceback
try:
    largest(None)
except TypeError as why:
    frames = [f for f, _ in traceback.walk_tb(why.__traceback__)]
assert 'max' in frames[-1].f_code.co_names""",
]


@pytest.mark.parametrize("tests", SEES)
def test_tests_see_no_source_and_no_code_of_what_they_test(tests: str) -> None:
    score = judged(CHECK, SHORT, f"{tests}\nassert largest([1]) == 1")
    assert score.primary == 0.0 and score.info["verdict"] in ("wrong", "error"), score


def test_they_would_see_it_if_nothing_were_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality_module, "INSIDE", quality_module.INSIDE.replace("    hide(solution)\n", ""))
    for tests in SEES:
        score = judged(TestQuality(runs=1), SHORT, f"{tests}\nassert largest([1]) == 1")
        assert score.components["passes_reference"] == 1.0, (tests, score.info)


HONEST = [
    """import collections, typing, enum, dataclasses
P = collections.namedtuple('P', 'x y')
@dataclasses.dataclass
class D:
    x: int
class C(enum.Enum):
    A = 1
class N(typing.NamedTuple):
    x: int
assert largest([P(1, 2).x, D(3).x, C.A.value, N(2).x]) == 3""",
    """import unittest
class TestErrors(unittest.TestCase):
    def test_of_none(self):
        with self.assertRaises(TypeError):
            largest(None)""",
    """import random
xs = [random.random() for _ in range(9)]
assert largest(xs) == sorted(xs)[-1]""",
    """import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    assert largest([1]) == 1""",
    """from solution import largest as f
import solution
assert f([2]) == solution.largest([2]) == 2""",
]


@pytest.mark.parametrize("more", HONEST)
def test_honest_tests_notice_nothing(more: str) -> None:
    score = judged(CHECK, SHORT, f"{GOOD}\n{more}")
    assert score.primary == 1.0, score


def test_several_references_defeat_tests_that_know_one() -> None:
    knows = "assert largest.__name__ == 'largest' and largest([]) is None if largest.__doc__ else True"
    several = SHORT | {"reference": [GOLD["reference"], "def largest(xs):\n    return sorted(xs)[-1]"]}
    assert judged(CHECK, several, GOOD).primary == 1.0
    assert judged(CHECK, several, knows).info["verdict"] == "survived"


TOSSES = [
    "import os\nassert os.urandom(1)[0] < 128 and largest([1]) == 1",
    "import random\nassert random.random() < 0.7",
    "import time\nassert time.time_ns() // 1000 % 2 and largest([1]) == 1",
    "import os\nclass TestIt:\n    def test_a(self): assert os.urandom(1)[0] % 3",
    "assert id(object()) // 16 % 2 == hash(str(largest)) % 2",
]


@pytest.mark.parametrize("tests", TOSSES)
def test_tests_that_toss_a_coin_are_worth_nothing(tests: str) -> None:
    """One reference and one mutant, where a coin did best; every answer is tried often."""
    gold = GOLD | {"mutants": GOLD["mutants"][:1]}
    scores = [judged(TestQuality(runs=8), gold, tests) for _ in range(6)]
    assert sum(score.primary for score in scores) == 0.0, tests  # a fair coin is right in one of 65,536
    assert {score.info["verdict"] for score in scores} <= {"unsteady", "wrong", "error", "survived"}


def test_a_disagreement_costs_every_component(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alternates(Broken):
        def run(self, program: SandboxProgram, limits: Limits) -> Result:
            self.good += 1
            value: Any = FULL if program.entry == "findings" else ["passed"] if self.good % 2 else ["wrong"]
            return Result(status=Status.OK, value=value, isolation="none")

    for good in (1, 2):  # the first reference passes, or fails
        broken = Alternates(good)
        monkeypatch.setattr(quality_module.TestQuality, "sandbox", lambda _, b=broken: b)
        score = judged(CHECK, GOLD, GOOD)
        assert score.primary == 0.0 and score.info["verdict"] in ("wrong", "unsteady")
        if good == 1:
            assert set(score.components.values()) == {0.0} and "each time" in score.info["why"]


def test_runs_are_at_least_one() -> None:
    with pytest.raises(ConfigError, match=r"TestQuality.runs=0"):
        TestQuality(runs=0)
    assert judged(TestQuality(runs=1), SHORT, GOOD).primary == 1.0


FULL = {"calls_focal": True, "asserts": True, "unique": True, "straight": True, "named": True}


@pytest.mark.parametrize(
    ("tests", "changes"),
    [
        ("def test_f_of_two():\n    assert f(2) == 4", {}),
        ("def test_f_of_two():\n    assert m.f(2) == 4", {}),
        ("def test_1():\n    'The double.'\n    assert f(2) == 4", {}),
        ("def testFOfTwo():\n    assert f(2) == 4\nif __name__ == '__main__':\n    testFOfTwo()", {}),
        ("def test_f_of_two(self):\n    self.assertEqual(f(2), 4)", {}),
        ("def test_f_of_two():\n    with raises(ValueError):\n        f(2)", {}),
        ("def test_a_b():\n    x = f(1)\n    assert x\ndef test_c_d():\n    x = f(2)\n    assert x", {}),
        ("def test_1():\n    assert f(2) == 4", {"named": False}),
        ("assert f(2) == 4", {"named": False}),
        ("def test_f_of_two():\n    assert g(2) == (lambda: 4)()()", {"calls_focal": False}),
        ("def test_f_of_two():\n    assert f(2) == 4\n    assert f(2) == 4", {"unique": False}),
        ("def test_f_of_two():\n    for i in 1, 2:\n        assert f(i) == 2 * i", {"straight": False}),
        ("def test_f_of_two():\n    if f(2) != 4:\n        assert f(1)", {"straight": False}),
        ("def test_f_of_two():\n    try:\n        assert f(2)\n    except ValueError:\n        pass", {"straight": False}),
        ("def test_f_of_two():\n    f(2)", dict.fromkeys(("asserts", "unique", "straight", "named"), False)),
        ("", dict.fromkeys(FULL, False)),
    ],
)
def test_detectors(tests: str, changes: dict[str, bool]) -> None:
    assert static.findings(tests, "f") == FULL | changes


@pytest.mark.parametrize("text", ["def f(:", "x = '\0'", "(" * 3000, "-" * 100_000 + "1", "x = '\ud800'"])
def test_what_is_no_python_has_no_component(text: str) -> None:
    score = judged(CHECK, GOLD, text)
    assert score.info["verdict"] == "syntax" and set(score.components.values()) == {0.0} and score.info["isolation"]
    if len(text) < 5000:
        assert static.findings(text, "f") is None


class Broken:
    """A sandbox that fails from its n-th run on."""

    workers = 1

    def __init__(self, good: int) -> None:
        self.good = good

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        self.good -= 1
        if self.good < 0:
            return Result(status=Status.INFRA, detail="broken", isolation="none")
        value: Any = FULL if program.entry == "findings" else ["passed"]
        return Result(status=Status.OK, value=value, isolation="none")


@pytest.mark.parametrize("good", [0, 1, 2, 4])
def test_a_sandbox_that_fails_is_no_zero(good: int, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken(good)
    monkeypatch.setattr(quality_module.TestQuality, "sandbox", lambda _: broken)
    score = judged(CHECK, GOLD, GOOD)
    assert score.fault is Fault.INFRA and "broken" in score.info["error"]


@pytest.mark.parametrize("field", ["entry", "reference", "mutants"])
def test_a_gold_of_the_wrong_form(field: str) -> None:
    wrong: dict[str, Any] = {k: v for k, v in GOLD.items() if k != field}
    with pytest.raises(DataError, match=f"task 'case': private.'{field}'. is missing"):
        judged(CHECK, wrong, GOOD)
    with pytest.raises(DataError, match=f"task 'case': private.'{field}'."):
        judged(CHECK, wrong | {field: [1] if field != "entry" else 3}, GOOD)
