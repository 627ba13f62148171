"""Memory of the compiled library: pieces that never overlap, are taken again, and go back to the system."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from assay.runtime.compiled import build

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "flags",
    [pytest.param((), id="plain"), pytest.param(("-fsanitize=thread", "-g"), id="threads looked at", marks=pytest.mark.prove)],
)
def test_pieces_do_not_overlap_and_go_when_they_are_over(tmp_path, flags):
    program = tmp_path / "law"
    library = build.SOURCES[0].parent
    made = subprocess.run(
        [build.compiler(), "-std=c++17", "-O2", "-pthread", *flags, f"-I{library}", HERE / "memory_law.cpp", "-o", program],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode and flags:
        pytest.skip(f"the compiler has no {flags[0]}")
    assert made.returncode == 0, made.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if flags:
        assert done.stdout.startswith("faults 0 again 1 ")  # the sanitizer keeps what is over for itself
    else:
        assert done.stdout == "faults 0 again 1 grown 1 gone 1\n"
