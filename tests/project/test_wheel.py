"""The built wheel works outside the checkout."""

import os
import subprocess
import sys
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
