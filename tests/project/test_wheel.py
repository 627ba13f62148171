"""The archives hold what they must, the wheel works outside the checkout, and the source archive can be tested outside it."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from test_repository import repository_files
from test_tools import load

ROOT = Path(__file__).parents[2]
ABOUT = "assay_rl-0.1.0.dist-info"
OWN = ["src/assay/py.typed", "src/assay_control/py.typed", "src/assay_tasks/py.typed", "src/assay/runtime/compiled/cpp/head.cpp"]
POINTS = "[console_scripts]\nassay = assay.cli:main\n\n[assay.tasks]\nassay = assay_tasks.catalog\n"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load("wheel")


@pytest.fixture(scope="module")
def archives(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive and the wheel of the repository."""
    return tool.build(ROOT, [p.relative_to(ROOT).as_posix() for p in repository_files()], tmp_path_factory.mktemp("dist"))


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def small_wheel(path: Path, names: list[str], points: str = POINTS) -> Path:
    about = [f"{ABOUT}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "licenses/LICENSE")]
    with zipfile.ZipFile(path / "assay_rl-0.1.0-py3-none-any.whl", "w") as archive:
        for name in [*(name.removeprefix("src/") for name in names), *about]:
            archive.writestr(name, "")
        archive.writestr(f"{ABOUT}/entry_points.txt", points)
        return Path(str(archive.filename))


def test_a_wheel_holds_the_packages_and_nothing_else(tool: ModuleType, tmp_path: Path) -> None:
    files = [*OWN, "README.md", "tests/test_x.py"]
    tool.check_wheel(small_wheel(tmp_path, OWN), files, "0.1.0")
    with pytest.raises(tool.WheelError, match=r"lacks assay_tasks/py\.typed \(1 files\)"):
        tool.check_wheel(small_wheel(tmp_path, [OWN[0], OWN[1], OWN[3]]), files, "0.1.0")
    with pytest.raises(tool.WheelError, match=r"also holds notes\.txt"):
        tool.check_wheel(small_wheel(tmp_path, [*OWN, "notes.txt"]), files, "0.1.0")
    with pytest.raises(tool.WheelError, match="entry points"):
        tool.check_wheel(small_wheel(tmp_path, OWN, POINTS.partition("\n\n")[0]), files, "0.1.0")
    with pytest.raises(tool.WheelError, match=r"holds no assay_tasks/py\.typed"):
        tool.check_wheel(small_wheel(tmp_path, [OWN[0], OWN[1], OWN[3]]), [OWN[0], OWN[1], OWN[3]], "0.1.0")


def test_only_a_clean_tree_is_built(tool: ModuleType, tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    run(*git, "init", "--quiet", cwd=tmp_path)
    (tmp_path / "one.py").write_text("")
    with pytest.raises(tool.WheelError, match=r"not clean.*\n\?\? one\.py"):
        tool.tracked_files(tmp_path)
    run(*git, "add", "one.py", cwd=tmp_path)
    run(*git, "commit", "--quiet", "-m", "one", cwd=tmp_path)
    assert tool.tracked_files(tmp_path) == ["one.py"]


def test_an_interpreter_that_does_not_start_is_none(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "9.9.1" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert tool.find_python("9.9", [tmp_path]) is None
    broken.write_text("#!/bin/sh\necho 9.9.1\n")
    assert tool.find_python("9.9", [tmp_path]) == str(broken)
    tool.VERSIONS, kept = ("9.9",), tool.VERSIONS
    try:
        assert tool.run_all(Path("assay_rl-0.1.0-py3-none-any.whl"), None, [""]) == 0
    finally:
        tool.VERSIONS = kept
    assert "Python 9.9: skipped, since there is no python9.9" in capsys.readouterr().out


def test_a_command_that_fails_is_told_with_its_output(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(tool.WheelError, match=r"ended with 3:\nthe reason"):
        tool.run([sys.executable, "-c", "print('the reason'); raise SystemExit(3)"], tmp_path)
    assert tool.run_all(Path("assay_rl-0.1.0-py3-none-any.whl"), ["/no/such/python"], [""]) == 1
    assert "Python /no/such/python: FAILED" in capsys.readouterr().out


def test_versions_of_python_are_those_that_were_run() -> None:
    """Each that the metadata names has a row in the table of what ran."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: Python :: 3\.\d+$", c)]
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert named == re.findall(r"^\| Python (3\.\d+)\.\d+ \|", page, re.MULTILINE)
    assert project["requires-python"] == f">={named[0]}"


@pytest.mark.prove
def test_the_wheel_runs_in_an_empty_environment(tool: ModuleType, archives: tuple[Path, Path]) -> None:
    files = [p.relative_to(ROOT).as_posix() for p in repository_files()]
    tool.check_wheel(archives[1], files, tool.version_of(ROOT))
    assert "5 commands" in tool.run_wheel(archives[1], sys.executable, "", tool.version_of(ROOT))


@pytest.mark.evidence
def test_a_source_archive_can_be_tested(tool: ModuleType, archives: tuple[Path, Path], tmp_path: Path) -> None:
    """All its tests are found, and those of the project, which look at every part of it, pass."""
    archive = archives[0]
    tool.check_source(archive, [p.relative_to(ROOT).as_posix() for p in repository_files()])
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    root = tmp_path / archive.name.removesuffix(".tar.gz")
    pytest_there = (sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider")
    assert "tests collected" in run(*pytest_there, "--collect-only", cwd=root, PYTHONPATH=str(root / "src"))
    done = run(*pytest_there, "tests/project", cwd=root, PYTHONPATH=str(root / "src"))
    assert " passed" in done
