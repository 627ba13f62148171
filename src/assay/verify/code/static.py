"""What can be said of test code without running it. Runs in the contained process: standard library only, never assay."""

import ast
import re
from collections.abc import Iterator

__all__ = ["findings"]

_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def findings(tests: str, focal: str) -> dict[str, bool] | None:
    r"""Which of RLSQM's detectors speak for a piece of test code; None where it is no Python.

    Args:
        tests: the code.
        focal: the name of the function that it is to test.

    >>> findings("def test_adds_small_numbers():\n    assert add(1, 2) == 3", "add")
    {'calls_focal': True, 'asserts': True, 'unique': True, 'straight': True, 'named': True}
    """
    try:
        tree = ast.parse(tests)
        found = list(_scoped_nodes(tree))
        asserted = [(scope, ast.dump(node)) for node, scope in found if _asserts(node)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    some = bool(asserted)
    return {
        "calls_focal": any(_calls(node) == focal for node, _ in found),
        "asserts": some,
        "unique": some and len(set(asserted)) == len(asserted),
        "straight": some and not any(isinstance(node, _BRANCHES) and not _is_guard(node) for node, _ in found),
        "named": some and _named([node for node, _ in found]),
    }


def _scoped_nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Every node, and which function it stands in."""
    todo = [(tree, 0)]
    while todo:
        node, scope = todo.pop()
        yield node, scope
        inner = id(node) if isinstance(node, _SCOPES) else scope
        todo += [(child, inner) for child in ast.iter_child_nodes(node)]


def _calls(node: ast.AST) -> str:
    """The name of what a node calls; empty where it calls nothing that has one."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _asserts(node: ast.AST) -> bool:
    called = _calls(node)
    return isinstance(node, ast.Assert) or called.startswith("assert") or called == "raises"


def _is_guard(node: ast.AST) -> bool:
    """Whether it is ``if __name__ == "__main__"``."""
    left = node.test.left if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"


def _named(nodes: list[ast.AST]) -> bool:
    """Whether every test function says what it is about: by two words behind ``test``, or by a docstring."""
    tests = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name.startswith("test")]
    return bool(tests) and all(len(_WORD.findall(n.name[4:])) >= 2 or ast.get_docstring(n) for n in tests)
