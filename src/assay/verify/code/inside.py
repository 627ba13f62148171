"""Runs in the contained process: imports the program and runs tests on it. Standard library only, never assay."""

import builtins
import sys
from types import ModuleType
from typing import Any

__all__ = ["suite", "unit"]


def unit(test: str, token: str) -> list[str]:
    """Runs one piece of test code on the names of the program; the token, and ``passed`` or ``wrong``.

    Once the program has come, nothing is looked up that it could have replaced.
    """
    kept, run, wrong = dict(vars(builtins)), exec, AssertionError
    code = compile(test, "test.py", "exec", dont_inherit=True)
    solution = _solution()
    try:
        run(code, {**solution.__dict__, "__builtins__": kept, "__name__": "test"})
    except wrong:
        return [token, "wrong"]
    return [token, "passed"]


def suite(tests: str) -> list[str]:
    """Runs a file of tests on the names of the program: its body, functions ``test*``, classes ``Test*`` and test cases."""
    theirs = {name: value for name, value in vars(_solution()).items() if not name.startswith("__")}
    module = ModuleType("tests")
    sys.modules["tests"] = module
    vars(module).update(theirs)
    try:
        exec(compile(tests, "tests.py", "exec", dont_inherit=True), vars(module))
        for name, value in list(vars(module).items()):
            if name.startswith(("test", "Test")) and callable(value) and theirs.get(name) is not value:
                _test(value)
    except Exception as why:
        return ["wrong", f"{type(why).__name__}: {why}"[:200]]
    return ["passed"]


def _test(value: Any) -> None:
    if not isinstance(value, type):
        value()
        return
    unittest = sys.modules.get("unittest")
    if unittest is not None and issubclass(value, unittest.TestCase):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)
        if not result.wasSuccessful():
            raise AssertionError(f"{value.__name__} failed")
        return
    for name in dir(value):
        if name.startswith("test"):
            getattr(value(), name)()


def _solution() -> ModuleType:
    sys.dont_write_bytecode = True
    return __import__("solution")
