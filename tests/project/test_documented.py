"""Every public part has a line in the docs, so that a reader who searches for it finds it."""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import assay

ROOT = Path(__file__).resolve().parents[2]
PAGES = [p for p in (ROOT / "docs").rglob("*.md") if not {"adr", "reference"} & set(p.parts)]
WORDS = set(re.findall(r"\w+", "\n".join(p.read_text(encoding="utf-8") for p in PAGES)))


def is_part(value: Any) -> bool:
    """Whether it is a frozen dataclass with methods of its own: what a user puts into a run or a call."""
    if not isinstance(value, type) or not dataclasses.is_dataclass(value):
        return False
    methods = [name for name, member in vars(value).items() if not name.startswith("_") and callable(member)]
    return bool(value.__dataclass_params__.frozen and methods)  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", [name for name in assay.__all__ if name not in ("cli", "lab")])
def test_every_public_part_is_documented(package: str) -> None:
    module = import_module(f"assay.{package}")
    names = [name for name in module.__all__ if is_part(getattr(module, name))]
    assert [name for name in names if name not in WORDS] == [], "give each a line in docs/packages or docs/add"


def test_a_part_without_a_line_would_be_found() -> None:
    @dataclasses.dataclass(frozen=True)
    class Undocumented31:
        def select(self) -> None: ...

    assert is_part(Undocumented31) and "Undocumented31" not in WORDS
    assert not is_part(int) and not is_part(dataclasses.make_dataclass("Plain", []))


BELOW = {
    "math": "verify/math",
    "sql": "verify/sql",
    "code": "verify/code",
    "hardware": "verify/hardware",
    "proof": "verify/proof",
}
TABLE = re.compile(r"^\| *module[s ]*\|.*\n\|[-| ]+\n((?:\|.*\n)+)", re.MULTILINE)


def modules_named(text: str) -> list[str]:
    """Modules in the first column of a page's tables of modules."""
    return [
        name
        for table in TABLE.findall(text)
        for row in table.splitlines()
        for name in re.findall(r"`([\w.]+)`", row.split("|")[1])
    ]


def test_modules_in_the_tables_of_a_package_exist() -> None:
    assert modules_named("| module | holds |\n|---|---|\n| `a`, `b.c` | `d` |\n") == ["a", "b.c"]
    gone: dict[str, list[str]] = {}
    for page in sorted((ROOT / "docs" / "packages").glob("*.md")):
        package = page.stem.partition("-")[0]
        folder = ROOT / "src" / "assay" / BELOW.get(package, package)
        there = {p.stem for p in folder.rglob("*.py")} | {p.name for p in folder.rglob("*") if p.is_dir()}
        named = modules_named(page.read_text(encoding="utf-8"))
        if missing := [name for name in named if name.rpartition(".")[2] not in there]:
            gone[page.name] = missing
    assert gone == {}


def test_methods_of_the_page_on_choosing_exist() -> None:
    from assay.objective.methods import methods

    text = (ROOT / "docs" / "choose-a-method.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    assert len(named) > 30 and [name for name in named if name not in methods()] == []


def test_the_contributors_table_has_every_check_and_pages_that_exist() -> None:
    import assay.testing
    import assay_control.testing

    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ") and "`docs/add/" in line]
    pages = [page for row in rows for page in re.findall(r"`(docs/add/\w+\.md)`", row[2])]
    assert len(pages) >= 15 and [page for page in pages if not (ROOT / page).exists()] == []
    checks = {name for name in (*assay.testing.__all__, *assay_control.testing.__all__) if name.startswith("check_")}
    assert {name for row in rows for name in re.findall(r"`(check_\w+)`", row[3])} == checks


@pytest.mark.parametrize("page", ["llms.txt", "AGENTS.md", "README.md", "CONTRIBUTING.md"])
def test_pages_outside_the_docs_link_to_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if link and not (ROOT / link).exists()] == []
