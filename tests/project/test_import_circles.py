"""No module imports itself by a detour, imports inside functions included; imports for type checkers do not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

SOURCES = Path(__file__).parents[2] / "src"
MODULES = {
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES.rglob("*.py")
}


def imports(node: ast.AST) -> Iterator[str]:
    """Modules that run code below a node imports."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # no expression holds an import, and most of a module's nodes are of expressions
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module and not child.level:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield whole if whole in MODULES else child.module
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imports(child)


def graph_of(modules: dict[str, str]) -> nx.DiGraph:
    graph = nx.DiGraph()
    for name, text in modules.items():
        graph.add_edges_from((name, other) for other in imports(ast.parse(text)) if other in modules and other != name)
    return graph


def circles(modules: dict[str, str]) -> list[list[str]]:
    return [sorted(found) for found in nx.strongly_connected_components(graph_of(modules)) if len(found) > 1]


def test_a_circle_is_found_wherever_the_import_stands() -> None:
    known = set(MODULES)
    assert "assay.core.errors" in known
    late = {"assay.core.errors": "def f():\n    from assay.core import seeds\n", "assay.core.seeds": "import assay.core.errors\n"}
    typed = {**late, "assay.core.errors": "if TYPE_CHECKING:\n    from assay.core import seeds\n"}
    assert circles(late) == [["assay.core.errors", "assay.core.seeds"]]
    assert circles(typed) == []


@pytest.mark.slow
def test_there_is_none() -> None:
    assert circles({name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}) == []
