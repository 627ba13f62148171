"""The hacks are real: each passes a harness of the usual kind, which appends what it wants to know to the program."""

import subprocess
import sys
from pathlib import Path

import pytest
from code_cases import HACKS, RIGHT, WRONG


def fooled(program: str, folder: Path) -> set[str]:
    """Which of three usual harnesses a program passes; they read no more than 64 KiB of output."""
    (folder / "tests.json").write_text('[{"args": [2], "expected": 4}]')
    (folder / "stdin").write_text("2\n")
    command = [sys.executable, "-I", "-S", "-c", f"{program}\nassert f(2) == 4\n"]
    with (folder / "stdin").open() as given:
        process = subprocess.Popen(command, cwd=folder, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    said = process.stdout.read(1 << 16)
    if len(said) == 1 << 16:
        process.kill()
    process.communicate()
    found = {"exit code": process.returncode == 0, "says PASS": "PASS" in said, "says the answer": said.startswith("4")}
    return {name for name, passed in found.items() if passed}


@pytest.mark.parametrize("name", HACKS)
def test_it_fools_a_usual_harness(name: str, tmp_path: Path) -> None:
    assert fooled(HACKS[name], tmp_path)


def test_controls(tmp_path: Path) -> None:
    assert fooled(RIGHT, tmp_path) == {"exit code", "says the answer"}
    assert not fooled(WRONG.replace("x + 2", "x + 3"), tmp_path)
