"""Rows of assay's own families stand in a file, are those that the families give, and count only beside their sources."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from assay.cli import task_listing
from assay.cli.task_listing import DECLARED, declared_rows, digest_sources, live_row, own_folder, own_names, task_rows
from assay.tasks import packages
from assay.tasks.packages import installed_packages, read_catalogs

RENEW = "run python tools/task_listing.py"


def test_the_rows_are_those_that_the_families_give() -> None:
    told = json.loads((own_folder() / DECLARED).read_text(encoding="utf-8"))
    assert told["sources"] == digest_sources(own_folder()), f"sources have changed since the file was made: {RENEW}"
    assert {row["name"] for row in told["rows"]} == own_names(), RENEW
    for row in told["rows"]:
        assert row == live_row(row["name"]), RENEW


def test_nothing_counts_where_a_source_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "assay_tasks"
    shutil.copytree(own_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert set(declared_rows(folder)) == own_names()
    source = folder / "small" / "numbers.py"
    before = source.read_text(encoding="utf-8")
    source.write_text(before.replace("Largest", "Greatest"), encoding="utf-8")
    assert declared_rows(folder) == {}
    source.write_text(before, encoding="utf-8")
    assert set(declared_rows(folder)) == own_names()
    (folder / "another.py").write_text("")
    assert declared_rows(folder) == {}, "a new file"
    (folder / "another.py").unlink()
    for damage in ("", "[]", "{}", '{"sources": 1, "rows": 2}'):
        (folder / DECLARED).write_text(damage)
        assert declared_rows(folder) == {}
    (folder / DECLARED).unlink()
    assert declared_rows(folder) == {}


def test_where_nothing_counts_the_families_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def live(name: str) -> dict[str, object]:
        asked.append(name)
        return {"name": name}

    monkeypatch.setattr(task_listing, "live_row", live)
    told = task_rows()
    assert asked == []
    assert [row["name"] for row in told] == [*sorted(installed_packages().families), *sorted(installed_packages().suites)]
    monkeypatch.setattr(task_listing, "declared_rows", lambda _folder: {})
    task_rows()
    assert asked == [row["name"] for row in told]


def test_a_family_of_anybody_else_is_listed_from_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that the file of assay's own names, where assay does not offer it."""
    (tmp_path / "others_for_listing.py").write_text(
        '"""Others."""\n\nfrom assay_tasks import SortDigits\n\nFAMILIES = {"digits": "others_for_listing:digits"}\n\n\n'
        'class Digits(SortDigits):\n    """Sorts, but is another."""\n\n    name = "digits"\n\n\n'
        "def digits() -> Digits:\n    return Digits()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = EntryPoint("assay", "assay_tasks.catalog", packages.GROUP)
    theirs = EntryPoint("others", "others_for_listing", packages.GROUP)
    found = read_catalogs((own, theirs))
    monkeypatch.setattr(packages, "installed_packages", lambda: found)
    monkeypatch.setattr("assay.tasks.registry.installed_packages", lambda: found)
    declared = dict(declared_rows(own_folder())) | {"digits": {"name": "digits", "summary": "what a file says of it"}}
    monkeypatch.setattr(task_listing, "declared_rows", lambda _folder: declared)
    rows = {row["name"]: row for row in task_rows()}
    assert rows["digits"]["summary"] == "Sorts, but is another."
    assert list(rows["digits"]["arms"].values()) == list(rows["sort"]["arms"].values())


def test_the_first_listing_imports_no_family(tmp_path: Path) -> None:
    code = (
        "import sys; from assay.cli import main; main(['tasks', 'list']); "
        "print(sorted(m for m in sys.modules if m.startswith(('assay_tasks.', 'assay.verify', 'tyro'))), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"ASSAY_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stderr.strip() == "['assay_tasks.catalog']"
    assert "keyvalue" in done.stdout
