"""What comes after a release is told by a fragment; a release is told by a section of the changelog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_documented import is_part
from test_tools import load

import assay
from assay.cli import COMMANDS

ROOT = Path(__file__).parents[2]
FRAGMENT = re.compile(r"(\d+|\+[\w-]+)\.(added|changed|fixed|removed)(\.\d+)?\.md")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def fragments() -> list[Path]:
    return sorted(path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md")


def untold(names: set[str], released: set[str], text: str) -> list[str]:
    """The names that came after the release and stand nowhere in the text."""
    words = set(re.findall(r"\w+", text))
    return sorted(name for name in names - released if name.rpartition(".")[2] not in words)


def test_a_part_that_is_new_and_untold_would_be_found() -> None:
    names = {"guide.Old", "guide.Told", "guide.Untold"}
    assert untold(names, {"guide.Old"}, "`Told(floor=0.1)` is a curriculum") == ["guide.Untold"]


def test_every_new_public_part_is_told() -> None:
    """In a fragment, or after the next release in the changelog."""
    lines = (ROOT / "tests" / "project" / "released_names.txt").read_text(encoding="utf-8").splitlines()
    released = {line for line in lines if line and not line.startswith("#")}
    assert len(released) > 1000
    new = set(load("released").public_names()) - released
    parts = {name for name in new if is_part(getattr(getattr(assay, name.partition(".")[0]), name.partition(".")[2]))}
    text = CHANGELOG + "\n".join(path.read_text(encoding="utf-8") for path in fragments())
    assert untold(parts, released, text) == [], "name each in a fragment of changelog.d"


def test_every_command_is_told() -> None:
    text = CHANGELOG + "\n".join(path.read_text(encoding="utf-8") for path in fragments())
    assert [name for name in COMMANDS if not re.search(rf"assay {name}\b|`{name}`", text)] == []


def test_the_version_has_a_section_with_a_summary() -> None:
    """The newest section is that of the package's version; it begins in words, before its lists."""
    first = re.search(r"^## (\S+) \(\d{4}-\d\d-\d\d\)\n\n(.*?)^###", CHANGELOG, re.MULTILINE | re.DOTALL)
    assert first and first.group(1) == assay.__version__
    assert 5 <= len(first.group(2).splitlines()) <= 60


@pytest.mark.parametrize("path", fragments(), ids=lambda p: p.name)
def test_a_fragment_has_a_kind_and_a_sentence(path: Path) -> None:
    assert FRAGMENT.fullmatch(path.name), "name it +short-name.added.md, or changed, fixed, removed"
    assert path.read_text(encoding="utf-8").strip()
