"""Families come from installed packages: what catalogs may hold; somebody else's, from pip to a trained run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

import assay
from assay.core.errors import ConfigError, UnknownNameError
from assay.tasks import card, families, family, named_suites, suite, suites
from assay.tasks.packages import GROUP, Suite, installed_packages, read_catalogs

FAMILY = '''"""Counting letters, as somebody else's package has it."""

from dataclasses import dataclass

from assay.tasks import SingleTurn
from assay.verify import ExactMatch


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOnes(SingleTurn):
    """How often the digit 1 stands in a row of ones and twos. The level is the number of digits."""

    levels: tuple[int, ...] = (4, 5, 6)
    name = "count-ones"
    alphabet = "S>0123456789"
    symbols = "0123456789"

    def ask(self, level, rng):
        return "S" + "".join("12"[int(i)] for i in rng.integers(0, 2, level)) + ">"

    def solve(self, prompt):
        return str(prompt.count("1"))

    def verifier(self):
        return ExactMatch()
'''


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a module, and gives its name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


def test_assays_own_families_come_by_the_entry_point() -> None:
    assert [p.value for p in entry_points(group=GROUP) if p.name == "assay"] == ["assay_tasks.catalog"]
    assert {"sort", "words"} <= set(families()) and "assay-six" in suites()
    assert installed_packages().families["sort"] == "assay_tasks.sort:SortDigits"


def test_every_name_of_the_catalog_is_a_family() -> None:
    for name in families():
        assert family(name).arms(), name


def test_another_package_adds_names(module) -> None:
    text = "FAMILIES = {'mine': 'assay_tasks.sort:SortDigits'}\nfrom assay.tasks.packages import Suite\n"
    other = module("catalog_of_mine", text + "SUITES = {'both': Suite(summary='Two.', families=('mine', 'sort'))}\n")
    found = read_catalogs((point("assay", "assay_tasks.catalog"), point("mine", other)))
    assert found.family("mine").name == "sort" and "sort" in found.families
    assert found.suites["both"] == Suite(summary="Two.", families=("mine", "sort"))
    assert not found.broken and not found.clashes


def test_a_name_of_assays_own_is_used_and_the_other_package_named_once(module, capsys) -> None:
    other = module(
        "catalog_that_hides", "FAMILIES = {'sort': 'assay_tasks.reverse:Reverse', 'mine': 'assay_tasks.sort:SortDigits'}\n"
    )
    found = read_catalogs((point("a", other), point("assay", "assay_tasks.catalog"), point("b", other)))
    assert found.packages["sort"] == found.packages["reverse"]
    assert {found.family("sort").name for _ in range(2)} == {"sort"}
    (line,) = capsys.readouterr().err.splitlines()
    assert "catalog_that_hides" in line and "'sort'" in line
    assert found.family("reverse").name == "reverse" and not capsys.readouterr().err


def test_a_suite_of_assays_own_is_used_too(module, capsys, monkeypatch) -> None:
    text = "from assay.tasks.packages import Suite\nSUITES = {'assay-six': Suite(summary='Mine.', families=('sort',))}\n"
    found = read_catalogs((point("a", module("catalog_of_a_suite", text)), point("assay", "assay_tasks.catalog")))
    monkeypatch.setattr(named_suites, "installed_packages", lambda: found)
    assert len(suite("assay-six").members()) > 1
    assert "catalog_of_a_suite" in capsys.readouterr().err


def test_a_name_of_two_other_packages_is_refused_when_it_is_asked_for(module) -> None:
    one, two = (module(f"catalog_{n}", "FAMILIES = {'mine': 'assay_tasks.reverse:Reverse'}\n") for n in ("one", "two"))
    found = read_catalogs((point("assay", "assay_tasks.catalog"), point("one", one), point("two", two)))
    with pytest.raises(ConfigError, match=r"'mine' is offered by .*catalog_one.* and .*catalog_two"):
        found.family("mine")
    assert found.family("reverse").name == "reverse"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise ImportError('no numpy')", "ImportError: no numpy"),
        ("FAMILIES = {", "SyntaxError"),
        ("raise ValueError('oh')", "ValueError: oh"),
        ("FAMILYS = {'x': 'y:z'}", "offers nothing: give it FAMILIES, SUITES or READERS"),
        ("FAMILIES = ['sort']", "FAMILIES is a list, not a mapping"),
        ("FAMILIES = {'x': 3}", r"FAMILIES\['x'\] is 3"),
        ("FAMILIES = {'x': 'no_colon'}", r"FAMILIES\['x'\] is 'no_colon'"),
        ("SUITES = {'x': 'y'}", r"SUITES\['x'\] is 'y'"),
    ],
)
def test_a_broken_catalog_spoils_no_other_and_is_named(module, text: str, why: str) -> None:
    other = module(f"catalog_broken_{abs(hash(text))}", text + "\n")
    found = read_catalogs((point("assay", "assay_tasks.catalog"), point("broken", other)))
    assert found.family("sort").name == "sort"
    with pytest.raises(ConfigError, match=why):
        found.family("no-such-family")


def test_what_cannot_be_loaded_is_named(module) -> None:
    other = module("catalog_of_nothing", "FAMILIES = {'gone': 'no_such_module:Thing', 'empty': 'json:Nothing'}\n")
    found = read_catalogs((point("other", other),))
    for name in ("gone", "empty"):
        with pytest.raises(ConfigError, match=f"task family '{name}': cannot load"):
            found.family(name)
    with pytest.raises(UnknownNameError):
        found.family("sort")


def test_files_are_read_by_the_package_that_knows_them(module, tmp_path: Path) -> None:
    other = module("reader_of_lists", "READERS = {'.list': 'reader_of_lists:read'}\nread = lambda file: ('family of', file)\n")
    found = read_catalogs((point("other", other),))
    assert found.read("words.list") == ("family of", "words.list")
    assert found.read("words.txt") is None


def test_without_any_entry_point_the_installation_is_not_whole() -> None:
    with pytest.raises(ConfigError, match="install it again"):
        read_catalogs(())


@pytest.mark.prove
def test_somebody_elses_package_is_installed_listed_sampled_trained_and_exported(tmp_path: Path) -> None:
    """By pip, into an environment of its own that sees this one's libraries."""
    package = tmp_path / "package"
    (package / "letter_tasks").mkdir(parents=True)
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
        '[project]\nname = "letter-tasks"\nversion = "1.0"\n\n[tool.setuptools]\npackages = ["letter_tasks"]\n\n'
        '[project.entry-points."assay.tasks"]\nletters = "letter_tasks.catalog"\n'
    )
    (package / "letter_tasks" / "__init__.py").write_text("")
    (package / "letter_tasks" / "counting.py").write_text(FAMILY)
    (package / "letter_tasks" / "catalog.py").write_text('FAMILIES = {"count-ones": "letter_tasks.counting:CountOnes"}\n')
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    seen = [str(Path(assay.__file__).parents[1]), *(p for p in sys.path if p.endswith("site-packages"))]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(seen),
        "OMP_NUM_THREADS": "1",
        "ASSAY_CACHE": str(tmp_path / "cache"),
    }

    def call(*words: str) -> str:
        done = subprocess.run([python, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    site = call("-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip()
    call("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", site, str(package))
    listed = json.loads(call("-m", "assay", "tasks", "list", "--json"))
    assert "count-ones" in json.dumps(listed) and '"sort"' in json.dumps(listed)
    rows = [
        json.loads(line) for line in call("-m", "assay", "tasks", "sample", "count-ones", "-n", "3", "--private").splitlines()
    ]
    assert len(rows) == 3
    call("-m", "assay", "tasks", "check", "count-ones")
    trained = ("quickstart", "--tasks.kind", "letter_tasks.counting:CountOnes", "--steps", "2")
    run = tmp_path / "run"
    call("-m", "assay", "train", *trained, "--evaluation.per-level", "4", "--folder", str(run), "--plain", "--no-report")
    assert (run / "done.json").exists()
    call("-m", "assay", "resume", str(run), "--steps", "3", "--plain", "--no-report")
    call("-m", "assay", "tasks", "export", "count-ones", str(tmp_path / "env-package"))
    assert "count-ones" in (tmp_path / "env-package" / "README.md").read_text()


def test_rows_of_a_catalog_have_its_name_and_what_their_function_says(module) -> None:
    other = module(
        "catalog_of_rows",
        "from assay.tasks import Rows\n"
        "FAMILIES = {'capitals': 'catalog_of_rows:capitals', 'towns': 'catalog_of_rows:towns'}\n"
        "ROWS = [{'prompt': f'{n}?', 'answer': str(n)} for n in range(40)]\n"
        "def capitals():\n    '''Capitals of countries.\n\n    More.'''\n    return Rows(ROWS)\n"
        "def towns():\n    return Rows(ROWS, name='mine')\n",
    )
    found = read_catalogs((point("assay", "assay_tasks.catalog"), point("rows", other)))
    source = found.family("capitals")
    assert source.name == "capitals" and source.task("capitals", 1, "train", 0).id.startswith("capitals/capitals/1/")
    assert found.family("towns").name == "mine"
    assert (found.summary("capitals"), found.summary("towns"), found.summary("sort")) == ("Capitals of countries.", "", "")
    assert card(source).summary == "40 rows"
