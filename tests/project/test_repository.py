"""Habits of the repository: named files exist, every package has its pages, nothing of a machine leaks."""

import pkgutil
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(m.name for m in pkgutil.iter_modules([str(ROOT / "src" / "assay")]) if m.ispkg)
NAMED_FILE = re.compile(
    r"`((?:src|tests|docs|tools|benchmarks|changelog\.d|\.ci)/[\w./+-]*|[\w.-]+\.(?:md|toml|txt)|Makefile|LICENSE)`"
)
# Written in pieces, so that this file does not hold what it looks for.
HOSTS = [r"pypi\." + "org", "python" + "hosted", "npm" + r"js\.", "deb" + r"\.debian", r"registry\." + "npm"]
PLACES = ["/" + "work/", "/" + "root/", "/" + r"home/\w", "/" + "Users/"]
UNFINISHED = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "NotImplemented" + "Error"]


def repository_files() -> list[Path]:
    """Every file that git tracks; where it tracks none (a source archive), those of the source folders."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    if not paths:
        paths = [p for folder in ("src", "tests", "docs") for p in (ROOT / folder).rglob("*")]
    return [p for p in paths if p.is_file() and "__pycache__" not in p.parts]


def hits(pattern: str, text: str) -> list[int]:
    """The numbers of the lines of `text` that `pattern` occurs in."""
    compiled = re.compile(pattern)
    return [n for n, line in enumerate(text.splitlines(), 1) if compiled.search(line)]


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    """`file:line` of every line of the text `files` that `pattern` occurs in."""
    found: list[str] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT).as_posix()}:{n}" for n in hits(pattern, text)]
    return found


def test_patterns_find_what_they_look_for() -> None:
    planted = "fine\n# " + UNFINISHED[0] + ": later\nsee " + PLACES[0] + "x\nfrom py" + "pi.org\n"
    assert hits(r"\b(" + "|".join(UNFINISHED) + r")\b", planted) == [2]
    assert hits("|".join(HOSTS + PLACES), planted) == [3, 4]
    assert NAMED_FILE.findall("see `src/assay/core/` and `Makefile`") == ["src/assay/core/", "Makefile"]
    assert ROOT / "src" / "assay" / "__init__.py" in repository_files()


def test_every_file_named_in_contributing_exists() -> None:
    named = NAMED_FILE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_its_pages(package: str) -> None:
    assert (ROOT / "docs" / "packages" / f"{package}.md").is_file()
    assert (ROOT / "docs" / "reference" / f"{package}.md").is_file()


def test_a_source_archive_holds_the_whole_repository() -> None:
    """Hatch adds the two that the list does not name."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in listed if not (ROOT / name.removeprefix("/")).exists()] == []
    packed = {name.removeprefix("/") for name in listed} | {"pyproject.toml", ".gitignore"}
    assert {p.relative_to(ROOT).parts[0] for p in repository_files()} - packed == set()


def test_no_registry_host_or_machine_path() -> None:
    assert lines_with("|".join(HOSTS + PLACES), repository_files()) == []


def test_nothing_is_left_unfinished() -> None:
    sources = [p for p in repository_files() if p.suffix == ".py"]
    assert lines_with(r"\b(" + "|".join(UNFINISHED) + r")\b", sources) == []


def test_torch_is_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert any(re.fullmatch(r"torch==\d+\.\d+\.\d+", pin) for pin in pins)
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


def test_no_two_files_of_tests_have_one_name():
    """They are imported by their names alone, so that the second would stop every run over both folders."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in {"conftest.py", "__init__.py"})
    assert [name for name, n in names.items() if n > 1] == []
