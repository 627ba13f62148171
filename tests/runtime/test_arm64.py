"""The compiled library on arm64: by a cross-compiler, and under emulation with PyTorch for that processor."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from assay.runtime.compiled.build import FLAGS, SOURCES

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("ASSAY_ARM64", HERE.parents[1] / ".arm64")).absolute()
"""What `make arm` made."""
COMPILER, EMULATOR = (shutil.which(name) for name in ("aarch64-linux-gnu-g++", "qemu-aarch64-static"))
LEVELS = ("armv8-a", "armv8.2-a", "armv8.2-a+sve")

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(platform.machine() == "aarch64", reason="tests of the compiled library run on this processor as they are"),
    pytest.mark.skipif(COMPILER is None, reason="no aarch64-linux-gnu-g++: install g++-aarch64-linux-gnu"),
]


@pytest.mark.parametrize("level", LEVELS)
def test_it_compiles_without_a_warning(level, tmp_path):
    command = [COMPILER, *FLAGS, f"-march={level}", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"]
    done = subprocess.run([*command, *SOURCES, "-o", tmp_path / "made.so"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert machine_of(tmp_path / "made.so") == 183


@pytest.mark.skipif(EMULATOR is None or not (FOLDER / "python").exists(), reason="no emulated environment: make arm")
@pytest.mark.parametrize("level", LEVELS)
def test_its_tests_pass_under_emulation(level, tmp_path):
    """PyTorch's results on random shapes, and the same bits in any company and on any number of threads."""
    environment = {
        **os.environ,
        "CXX": str(FOLDER / "g++"),
        "ASSAY_CXXFLAGS": f"-march={level}",
        "ASSAY_CACHE": str(tmp_path),
        "PYTHONPATH": str(HERE.parents[1] / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        **({"ASSAY_ARM64_CPU": "max"} if level.endswith("sve") else {}),
    }
    tests = [HERE / name for name in ("test_compiled.py", "test_compiled_training.py")]
    command = [FOLDER / "python", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
    assert {machine_of(made) for made in tmp_path.glob("kernels/*.so")} == {183}


def machine_of(library: Path) -> int:
    """``e_machine`` of an ELF file; 183 is arm64."""
    return int.from_bytes(library.read_bytes()[18:20], "little")
