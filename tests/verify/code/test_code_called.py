"""Tests that a piece of test code defines and does not call are called; a piece that checks nothing pays nobody."""

import pytest
from code_cases import judged

from assay.core.errors import DataError
from assay.core.score import Fault
from assay.core.task import Task
from assay.sandbox.called import call_tests
from assay.tasks import judged_rows
from assay.verify import rollout_of, task_and_rollout
from assay.verify.code import UnitTests
from assay.verify.workers.pool import ScoringPool

CHECK = UnitTests()
RIGHT = "def f(x): return x * 2"
WRONG = ("def f(x): return 'anything'", "x=1", "print('hi')")

CLASS = """import unittest
class T(unittest.TestCase):
    def setUp(self): self.n = 2
    def test_a(self): self.assertEqual(f(self.n), 4)
"""
PYTEST = """class TestF:
    n = 2
    def setup_method(self): self.m = 4
    def test_f(self): assert f(self.n) == self.m
"""
LEFT = {
    "function": "def test_f():\n    assert f(2) == 4\n",
    "functions": "def test_f():\n    n = 2\n    assert f(n) == 4\ndef test_g():\n    assert f(3) == 6\n",
    "function of a helper": "def same(a, b):\n    assert a == b\ndef test_f():\n    same(f(2), 4)\n",
    "function behind a return": "def test_f(n=2):\n    assert f(n) == 4\n    return None\n",
    "called only by what nobody calls": "def test_f():\n    assert f(2) == 4\ndef main():\n    test_f()\n",
    "unittest": CLASS,
    "unittest of a base": f"{CLASS.replace('f(self.n)', '4')}class U(T):\n    def test_b(self): self.assertEqual(f(3), 6)\n",
    "unittest.main": f"{CLASS}unittest.main()\n",
    "unittest.main under the guard": f"{CLASS}if __name__ == '__main__':\n    unittest.main()\n",
    "guard": "if __name__ == '__main__':\n    assert f(2) == 4\n",
    "guard, turned": "import sys\ndef main():\n    assert f(2) == 4\nif '__main__' == __name__:\n    main()\n",
    "class of pytest": PYTEST,
}


@pytest.mark.parametrize("name", LEFT)
def test_tests_that_nothing_calls_are_called(name: str) -> None:
    gold = {"tests": [LEFT[name]]}
    assert judged(CHECK, gold, RIGHT).primary == 1.0
    for text in WRONG:
        assert judged(CHECK, gold, text).primary == 0.0, text


@pytest.mark.parametrize("field", ["entry", "entry_point"])
def test_check_is_called_with_the_entry_point(field: str) -> None:
    piece = "def check(candidate):\n    assert candidate(2) == 4\n"
    gold = {"tests": [piece], field: "f"}
    assert judged(CHECK, gold, RIGHT).primary == 1.0
    assert [judged(CHECK, gold, text).primary for text in WRONG] == [0.0, 0.0, 0.0]
    assert call_tests(f"{piece}check(f)", "f").code == f"{piece}check(f)"


def test_check_is_called_with_the_entry_point_of_a_row() -> None:
    row = {
        "prompt": "p",
        "answer": {"tests": ["def check(c):\n    assert c(2) == 4"]},
        "entry_point": "f",
        "verifier": "unit_tests",
    }
    source = judged_rows([row], test_share=0)
    task = source.task("rows", 1, "train", 0)
    assert [source.verifier()(task, rollout_of(task, text)).primary for text in (RIGHT, *WRONG)] == [1.0, 0.0, 0.0, 0.0]


RUNNER = f"{CLASS}import sys\nok = unittest.TextTestRunner().run(unittest.TestLoader().loadTestsFromTestCase(T))\n"


def test_a_runner_of_its_own_is_left_alone() -> None:
    assert call_tests(RUNNER).code == RUNNER
    assert judged(CHECK, {"tests": [RUNNER]}, RIGHT).primary == 1.0
    assert [judged(CHECK, {"tests": [RUNNER]}, text).primary for text in WRONG] == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore:assertion is always true:SyntaxWarning")
@pytest.mark.parametrize(
    "piece",
    [
        "x=1",
        "import math",
        "assert True",
        "assert (f(2) == 4, 'tuple')",
        "print('hi')",
        "f(2)",
        "print(f(2) == 4)",
        "def check(candidate):\n    assert candidate(2) == 4\n",
        "def test_f(fixture):\n    assert f(2) == fixture\n",
        "def test_f():\n    f(2)\n",
        "async def test_f():\n    assert f(2) == 4\n",
        "def main():\n    assert f(2) == 4\n",
        "class Helper:\n    def test_f(self):\n        assert f(2) == 4\n",
        "import unittest\nclass T(unittest.TestCase):\n    pass\n",
        "if __name__ == '__main__':\n    import unittest\n    unittest.main()\n",
    ],
)
def test_a_piece_that_checks_nothing_is_a_fault(piece: str) -> None:
    gold = {"tests": ["assert f(2) == 4", piece]}
    with pytest.raises(DataError, match=r"task 'case': private\['tests'\]\[1\] checks nothing"):
        judged(CHECK, gold, RIGHT)


def test_the_fault_is_the_verifiers() -> None:
    task, rollout = task_and_rollout({"tests": ["x=1"]}, RIGHT)
    assert isinstance(task, Task)
    with ScoringPool(CHECK, 10.0, refuse=False) as pool:
        (score,) = pool.score([(task, rollout)]).values()
    assert score.fault is Fault.VERIFIER and "checks nothing" in str(score.info["error"])


def test_pieces_that_call_their_tests_stay_as_they_are() -> None:
    for piece in (
        "assert f(2) == 4",
        "for x in range(3):\n    assert f(x) == 2 * x",
        "def test():\n    assert f(2) == 4\ntest()\ntest()",
        "def check(g):\n    assert g(2) == 4\ncheck(f)",
        "def main():\n    test_f()\ndef test_f():\n    assert f(2) == 4\nmain()",
        "if f(2) != 4:\n    raise ValueError",
        "import sys\nif f(2) != 4:\n    sys.exit(1)",
        "check_all(f)",
        "class C:\n    assert f(2) == 4",
    ):
        found = call_tests(piece)
        assert found.code == piece and found.checks, piece


def test_names_that_one_test_assigns_do_not_reach_another() -> None:
    piece = "def test_a():\n    g = f(2)\n    assert g == 4\ndef test_b():\n    assert g(3) == 9\n"
    assert judged(CHECK, {"tests": [piece]}, f"{RIGHT}\ndef g(x): return x * 3").primary == 1.0
