"""``assay init``: what is written passes its own checks, is listed once it is installed, and trains."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.cli.scaffolds import SCAFFOLDS
from assay.tasks import families
from assay.tasks.packages import GROUP, installed_packages


def install(package: Path, site: Path) -> None:
    """What pip would put into a folder: the modules, and the metadata with the entry points."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    module = project["name"].replace("-", "_")
    (site / module).symlink_to(package / module)
    info = site / f"{module}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project.get("entry-points", {}).get(GROUP, {})
    (info / "entry_points.txt").write_text("".join([f"[{GROUP}]\n", *(f"{k} = {v}\n" for k, v in points.items())]))
    installed_packages.cache_clear()  # `assay init` has asked what is installed, to refuse its names


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages; what is imported from it is forgotten."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    installed_packages.cache_clear()
    before = set(sys.modules)
    yield folder
    installed_packages.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith(("my_new_", "test_my_new_")):
            del sys.modules[name]


def run_tests(file: Path) -> int:
    """Runs the test functions of a file here; how many there were."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    for test in tests:
        test()
    return len(tests)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCAFFOLDS)
def test_what_is_written_passes_is_listed_and_trains(
    kind: str, assay, tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, module = f"my-new-{kind}", f"my_new_{kind}"
    said = assay("init", kind, name)
    assert said.code == 0, said.err
    folder = tmp_path / name
    install(folder, site)
    monkeypatch.chdir(folder)
    assert run_tests(folder / "tests" / f"test_{module}.py") >= 1
    commands = re.findall(r"^    (\S.*)$", (folder / "README.md").read_text(), re.MULTILINE)
    test, pytest_, look, train, _ = commands
    assert (test, pytest_, train) == ("pip install -e '.[test]'", "python -m pytest", "pip install -e '.[train]'")
    assert all(command in said.out for command in commands)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert [need.partition(">")[0] for need in project["dependencies"]] == ["assay-rl"], "a package of tasks needs no torch"
    assert {name: [n.partition(">")[0] for n in needs] for name, needs in project["optional-dependencies"].items()} == {
        "train": ["assay-rl[train]"],
        "test": ["pytest"],
    }
    if "entry" in SCAFFOLDS[kind]:
        assert name in families()
    if kind == "task":
        rows = assay("tasks", "list", "--json").json
        assert name in [row["name"] for row in rows]
    for command in (look, commands[-1]):
        words = command.split()[1:]
        if words[0] == "train":
            words += ["--stages.0.steps", "2", "--steps", "2", "--stages.1.groups", "2"]
            words += [
                "--evaluation.per-level",
                "1",
                "--evaluation.final-per-level",
                "1",
                "--plain",
                "--no-report",
                "--folder",
                "run",
            ]
        said = assay(*words)
        assert said.code == 0, f"{command}\n{said.out}\n{said.err}"
    assert json.loads((folder / "run" / "done.json").read_text())
    assert "@" not in re.sub(r"@(dataclass|property)\b", "", (folder / module / "__init__.py").read_text())


def test_the_usage_shows_what_was_given_and_what_is_left(assay) -> None:
    for words, usage in {
        ("init", "task", "--help"): "usage: assay init task [-h] NAME [--about TEXT]",
        ("init", "--help"): "usage: assay init [-h] [OPTIONS] KIND NAME",
        ("init", "-h", "task"): "usage: assay init [-h]",
        ("tasks", "sample", "sort", "--help"): "usage: assay tasks sample sort [-h]",
    }.items():
        said = assay(*words)
        assert said.code == 0 and usage in " ".join(said.out.split()), said.out


def test_what_cannot_be_written(assay, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    for words, why in {
        ("tsak", "a"): "did you mean 'task'",
        ("task", "My Tasks"): "is no name of a package",
        ("task", "json"): "there is a module 'json' already",
        ("task", "assay-tasks"): "there is a module 'assay_tasks' already",
        ("task", "pytest"): "there is a module 'pytest' already",
        ("task", "class"): "is a keyword of Python",
        ("reward", "match"): "is a keyword of Python",
        ("task", "sort"): "'sort' is a family or suite of assay-rl already",
        ("environment", "assay-six"): "'assay-six' is a family or suite of assay-rl already",
        ("task", "full"): "there already and not empty",
    }.items():
        said = assay("init", *words)
        assert said.code == 2 and why in said.err and said.err.count("\n") == 1, said.err
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["full"]
    said = assay("init", "recipe", "my-own", "--out", "elsewhere", "--json")
    assert said.json["folder"] == "elsewhere" and "my_own/__init__.py" in said.json["files"]
    assert said.json["next"] == [
        "pip install -e '.[test]'",
        "python -m pytest",
        "assay explain my_own:recipe",
        "pip install -e '.[train]'",
        "assay train my_own:recipe",
    ]


def test_a_package_says_what_its_author_says_of_it(assay, tmp_path: Path) -> None:
    said = 'Puzzles of "two" words, für Kinder.'
    words = ("--about", said, "--author", "Ann Lee <ann@example.org>, Bo", "--license", "mit", "--out", str(tmp_path / "p"))
    assert assay("init", "reward", "my-said-reward", *words).code == 0
    project = tomllib.loads((tmp_path / "p" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["description"], project["license"]) == (said, "MIT")
    assert project["authors"] == [{"name": "Ann Lee", "email": "ann@example.org"}, {"name": "Bo"}]
    assert said in (tmp_path / "p" / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "p" / "my_said_reward" / "__init__.py").read_text(encoding="utf-8").startswith(f'"""{said}"""')
    for kind in SCAFFOLDS:
        assert assay("init", kind, f"my-plain-{kind}").code == 0
        plain = tomllib.loads((tmp_path / f"my-plain-{kind}" / "pyproject.toml").read_text())["project"]
        assert "assay" not in plain["description"] and not {"license", "authors"} & set(plain)


@pytest.mark.parametrize("about", ["two\nlines", 'ends with "', '"""', "a \\ b"])
def test_a_line_that_no_docstring_can_hold_is_refused(assay, tmp_path: Path, about: str) -> None:
    got = assay("init", "task", "my-told-task", "--about", about)
    assert got.code == 2 and "give one line" in got.err and not (tmp_path / "my-told-task").exists()
