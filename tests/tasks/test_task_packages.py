"""The package of tasks that the page shows is found, listed, checked and sampled by its name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import assay
from assay.core.errors import ConfigError, UnknownNameError
from assay.tasks.packages import GROUP, read_catalogs

PAGE = (Path(__file__).parents[2] / "docs/add/task.md").read_text(encoding="utf-8")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The page's package as pip would install it: its modules, and its entry point in a folder of metadata."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    modules = {"families": "class Inversions", "catalog": "FAMILIES = ", "recipes": "def small"}
    folder = tmp_path / "list_tasks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name, mark in modules.items():
        (code,) = [block for block in blocks if mark in block]
        (folder / f"{name}.py").write_text(code)
    (written,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    project = tomllib.loads(written)["project"]
    metadata = tmp_path / "list_tasks-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    ((name, value),) = project["entry-points"][GROUP].items()
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")
    return tmp_path


COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
from assay.cli import main
said = []
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out:
        code = main(words)
    assert code == 0, (words, code)
    said.append(out.getvalue())
print(json.dumps(said))
"""
"""What each of several commands prints, in one process that finds the package as any would."""


def run_assay(folder: Path, *commands: list[str]) -> list[str]:
    paths = os.pathsep.join([str(folder), str(Path(assay.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_commands_of_the_page_know_the_package(package: Path) -> None:
    commands = re.findall(r"^    assay (tasks (?:show|check|sample) lists.*)$", PAGE, re.MULTILINE)
    explain = ["explain", *recipe_words()[0]]
    shown, checked, sampled, listed, explained = run_assay(package, *(c.split() for c in commands), ["tasks", "list"], explain)
    assert "lists/inversions" in shown
    assert "pass" in checked
    assert len(sampled.splitlines()) == 3 and "inversions" in sampled
    assert "lists-and-more" in listed
    assert "lists/inversions" in explained


def recipe_words() -> list[list[str]]:
    """The words behind `assay train` of the page's two recipes."""
    own, other = re.findall(r"^    assay train (.* ?lists.*)$|^    assay train (list_tasks.*)$", PAGE, re.MULTILINE)
    return [next(filter(None, found)).split() for found in (own, other)]


@pytest.mark.prove
def test_the_recipes_of_the_page_train_on_it(package: Path) -> None:
    words = recipe_words()
    tiny = [
        "--stages.0.steps",
        "2",
        "--steps",
        "2",
        "--stages.1.groups",
        "2",
        "--evaluation.per-level",
        "1",
        "--evaluation.final-per-level",
        "1",
        "--plain",
        "--no-report",
    ]
    _, explained = run_assay(package, ["train", *words[0], *tiny, "--folder", "run"], ["explain", *words[1], "--random-init"])
    assert "list_tasks.families:Inversions" in (package / "run" / "run.toml").read_text()
    assert "lists/inversions" in explained


def points(**values: str) -> tuple[EntryPoint, ...]:
    return tuple(EntryPoint(name, value, GROUP) for name, value in values.items())


def test_names_of_two_packages_and_broken_catalogs_are_reported(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package))
    (package / "list_tasks" / "again.py").write_text(
        'FAMILIES = {"lists": "list_tasks.families:lists", "rows": "nowhere:rows"}\n'
    )
    (package / "list_tasks" / "wrong.py").write_text('FAMILIES = {"lists": 3}\n')
    one = read_catalogs(points(a="list_tasks.catalog"))
    assert one.family("lists").name == "lists" and not one.clashes and not one.broken
    assert one.suites["lists-and-more"].families == ("lists", "graphs")
    with pytest.raises(UnknownNameError, match="did you mean 'lists'"):
        one.family("list")
    two = read_catalogs(points(a="list_tasks.catalog", b="list_tasks.again", c="list_tasks.wrong"))
    with pytest.raises(ConfigError, match=r"task family 'lists' is offered by .*catalog.* and .*again"):
        two.family("lists")
    with pytest.raises(ConfigError, match=r"task family 'rows': cannot load 'nowhere:rows'"):
        two.family("rows")
    with pytest.raises(ConfigError, match=r"no task family 'graphs', .*FAMILIES\['lists'\] is 3; give a name and module:what"):
        two.family("graphs")
    with pytest.raises(ConfigError, match="no installed package has an entry point"):
        read_catalogs(())
