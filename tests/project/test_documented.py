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
