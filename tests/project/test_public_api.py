"""The studies and the benchmarks need no more of assay than what its users have: names that the reference lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENTS = [path for folder in ("evidence", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
MODULE = re.compile(r"^\.\. automodule:: ([\w.]+)", re.MULTILINE)
OBJECT = re.compile(r"^\.\. auto(?:function|class|data):: ([\w.]+)\.(\w+)", re.MULTILINE)
OWN = ("self", "cls", "above", "cast(Any, torch)", "cast(Any, trl).GRPOTrainer")
"""Whose private attributes a file may use: its own, and those of the libraries that it measures; `_fields` is public."""

NAMED = re.compile(r"((?:assay|assay_tasks)(?:\.\w+)+)(?::(\w+))?")
"""A string that names a module, or something in one, as a recipe is named on the command line."""


def public() -> dict[str, set[str]]:
    """Module to the names in it that ``docs/reference`` lists; all of ``__all__`` where it lists the module."""
    found: dict[str, set[str]] = {"assay": {"__version__"}}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for module in MODULE.findall(text):
            found.setdefault(module, set()).update(import_module(module).__all__)
        for module, name in OBJECT.findall(text):
            found.setdefault(module, set()).add(name)
    return found


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("assay", "assay_tasks")


def uses(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, module and name (empty where all of a module is meant) of what a file takes from assay."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and is_ours(node.module):
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names if is_ours(alias.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (named := NAMED.fullmatch(node.value)):
            place = ROOT / "src" / named[1].replace(".", "/")
            yield from [(node.lineno, named[1], named[2] or "")] if place.is_dir() or place.with_suffix(".py").exists() else []


def violations(text: str, known: Mapping[str, set[str]]) -> list[str]:
    """What a file takes from assay that is not public, and private attributes of what is not its own, by line."""
    tree = ast.parse(text)
    found = [
        f"line {line}: {module}{f'.{name}' if name else ''}"
        for line, module, name in uses(tree)
        if module not in known or (name and name not in known[module])
    ]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and re.fullmatch(r"_(?!fields$|replace$|asdict$)[a-z]\w*", node.attr)
            and ast.unparse(node.value) not in OWN
        ):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_studies_and_benchmarks_use_the_public_api_alone() -> None:
    known = public()
    found = {path.relative_to(ROOT).as_posix(): violations(path.read_text(encoding="utf-8"), known) for path in CLIENTS}
    assert len(CLIENTS) > 40
    assert {name: lines for name, lines in found.items() if lines} == {}, "export the name from its package, or do without it"


def test_what_is_not_public_is_found() -> None:
    known = public()
    assert (
        violations("from assay.train import Run, train\nimport assay\nfrom assay.objective.methods import methods\n", known) == []
    )
    assert violations("from assay.train.run import Run\n", known) == ["line 1: assay.train.run.Run"]
    assert violations("from assay.train import Desk\n", known) == ["line 1: assay.train.Desk"]
    assert violations("def f():\n    import assay.train.loop\n", known) == ["line 2: assay.train.loop"]
    assert violations("RECIPE = 'assay.recipes:quickstart'\n", known) == []
    assert violations("RECIPE = 'assay.recipes.dry:pinned'\n", known) == ["line 1: assay.recipes.dry.pinned"]
    assert violations("engine._running\nself._own\n", known) == ["line 1: engine._running"]
