"""The layout keeps its shape: folders and packages that can be read, a short loop, stages and engines behind protocols."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
CODE = [
    p for folder in ("src", "tests", "evidence", "benchmarks", "tools", "examples") for p in sorted((ROOT / folder).rglob("*.py"))
]

FILES_IN_A_FOLDER = 25
LINES_OF_THE_LOOP = 200
LINES_OF_A_PACKAGE = 20_000
LINES_OF_A_FILE = 400
LINES_OF_A_PAGE = 250
LONGER = {
    "core/protocols.py": 700,  # all that can be replaced, in one list
    "curate/probes.py": 425,
    "curate/rows.py": 410,
    "objective/__init__.py": 550,  # the table of names
    "rollout/player.py": 410,
    "runtime/learner/learner.py": 515,
    "runtime/settings.py": 550,
    "runtime/text/tokenizer.py": 560,
    "verify/code/assertions.py": 410,
}
"""Files of before this limit, each with the size that it must not pass; a file that is split leaves the table."""
SKIPS = 20
SKIP = re.compile("# fmt" + r":\s*(skip|off)")


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def package_of(path: Path) -> str:
    """The package that a module belongs to: one of assay's, or a package of families."""
    parts = path.relative_to(SOURCES).parts
    return ".".join(parts[: 2 if len(parts) > 2 else 1])


# ---- sizes ------------------------------------------------------------------------------------------------------------


def test_no_folder_of_runtime_has_many_files() -> None:
    count = Counter(path.parent.relative_to(SOURCES).as_posix() for path in (SOURCES / "assay" / "runtime").rglob("*.py"))
    assert len(count) > 5
    assert {folder: n for folder, n in count.items() if n > FILES_IN_A_FOLDER} == {}, "make a folder below it, by what they do"


def test_the_loop_fits_a_few_screens() -> None:
    assert 50 < lines(SOURCES / "assay" / "train" / "loop.py") <= LINES_OF_THE_LOOP


def test_no_package_is_too_large_to_know() -> None:
    count: Counter[str] = Counter()
    for path in SOURCES.rglob("*.py"):
        count[package_of(path)] += lines(path)
    assert count["assay.core"] > 1_000 and count["assay_tasks.math"] > 1_000
    assert {name: n for name, n in count.items() if n > LINES_OF_A_PACKAGE} == {}, "split it by what its parts hold"


def test_a_file_fits_a_reader() -> None:
    files = {p.relative_to(SOURCES / "assay").as_posix(): lines(p) for p in (SOURCES / "assay").rglob("*.py")}
    assert len(files) > 500
    assert {name: n for name, n in files.items() if n > LONGER.get(name, LINES_OF_A_FILE)} == {}, "split it by what its parts do"
    assert {name for name in LONGER if files.get(name, 0) <= LINES_OF_A_FILE} == set(), "take it out of the table"


def test_a_page_that_somebody_wrote_fits_a_reader() -> None:
    docs = ROOT / "docs"
    made = {
        docs / "papers.md",
        *(docs / "evidence").rglob("*.md"),
        *(docs / "adr").glob("*.md"),
        *(docs / "reference").rglob("*.md"),
    }
    pages = {p.relative_to(docs).as_posix(): lines(p) for p in docs.rglob("*.md") if p not in made}
    assert len(pages) > 80 and "vocabulary.md" in pages
    assert {name: n for name, n in pages.items() if n > LINES_OF_A_PAGE} == {}, "move what another page is about"


def test_the_formatters_layout_is_accepted() -> None:
    skips = {p.relative_to(ROOT).as_posix(): n for p in CODE if (n := len(SKIP.findall(p.read_text(encoding="utf-8"))))}
    assert sum(skips.values()) <= SKIPS, skips
    assert SKIP.search("x = 1  # fmt" + ": skip")


# ---- protocols ----------------------------------------------------------------------------------------------------------


def trees(folder: Path) -> dict[str, ast.Module]:
    return {p.relative_to(SOURCES).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.py"))}


def derived(found: dict[str, ast.Module], root: str) -> set[str]:
    """Classes that derive from one of a name, by their names."""
    bases = {
        node.name: {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
        for tree in found.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {root}
    while more := {name for name, of in bases.items() if of & known} - known:
        known |= more
    return known - {root}


def engines(found: dict[str, ast.Module]) -> set[str]:
    """Classes that generate and take weights, protocols left out."""
    return {
        node.name
        for tree in found.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and {"generate", "swap"} <= {n.name for n in node.body if isinstance(n, ast.AsyncFunctionDef)}
        and not any("Protocol" in ast.unparse(base) for base in node.bases)
    }


def type_tests(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each class that code asks a value for: ``isinstance``, ``match``, ``type(x) is``."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass") and len(node.args) == 2:
            asked = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            asked = node.comparators
        for name in (n for part in asked for n in ast.walk(part)):
            if isinstance(name, ast.Name | ast.Attribute):
                yield name.lineno, name.id if isinstance(name, ast.Name) else name.attr


def concrete() -> set[str]:
    runtime = trees(SOURCES / "assay" / "runtime")
    return derived(trees(SOURCES / "assay" / "train"), "Stage") | engines(runtime) | derived(runtime, "RunningBatch")


@pytest.mark.slow
def test_train_asks_no_stage_and_no_engine_what_it_is() -> None:
    named = concrete()
    assert {"Reinforce", "WarmUp", "Imitate", "Prefer", "NativeEngine", "TransformersEngine", "VllmEngine"} <= named
    found = [
        f"{path}:{line} {name}"
        for folder in ("train", "select")
        for path, tree in trees(SOURCES / "assay" / folder).items()
        for line, name in type_tests(tree)
        if name in named
    ]
    assert found == [], "ask the stage or the engine by its protocol"


def test_questions_for_a_class_are_found() -> None:
    code = (
        "isinstance(x, Reinforce | stages.WarmUp)\ntype(x) is Prefer\nmatch x:\n    case Imitate(steps=1): pass\n"
        "isinstance(x, (A, B))"
    )
    assert {name for _, name in type_tests(ast.parse(code))} >= {"Reinforce", "WarmUp", "Prefer", "Imitate", "A", "B"}
