"""The built wheel works outside the checkout; the source archive can be tested outside it."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


@pytest.mark.prove
def test_wheel_runs_in_an_empty_environment(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT), cwd=tmp_path)
    (wheel,) = tmp_path.glob("assay_rl-*.whl")
    source = ROOT / "src"
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("assay/")}
    wanted = {p.relative_to(source).as_posix() for p in (source / "assay").rglob("*.py")}
    assert packed >= {*wanted, "assay/py.typed"}

    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    python = str(tmp_path / "env" / "bin" / "python")
    constraints = str(ROOT / "constraints.txt")
    pip = (python, *pip[1:])
    run(*pip, "install", "-c", constraints, str(wheel), cwd=tmp_path)
    located = run(python, "-c", "import assay; print(assay.__file__)", cwd=tmp_path, PYTHONPATH="")
    assert Path(located.strip()).is_relative_to(tmp_path / "env")
    help_text = run(str(tmp_path / "env" / "bin" / "assay"), "--help", cwd=tmp_path, PYTHONPATH="")
    assert "train" in help_text


@pytest.mark.prove
def test_a_source_archive_can_be_tested(tmp_path: Path) -> None:
    """All its tests are found, and those of the project, which look at every part of it, pass."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        requires = tomllib.load(file)["build-system"]["requires"]
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    python = str(tmp_path / "env" / "bin" / "python")
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *requires, cwd=tmp_path)
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path), cwd=ROOT)
    (archive,) = tmp_path.glob("assay_rl-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    root = tmp_path / archive.name.removesuffix(".tar.gz")
    pytest_there = (sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider")
    assert "tests collected" in run(*pytest_there, "--collect-only", cwd=root, PYTHONPATH=str(root / "src"))
    done = run(*pytest_there, "tests/project", cwd=root, PYTHONPATH=str(root / "src"))
    assert " passed" in done
