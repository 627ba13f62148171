"""Temporary folders: of a process that was killed they are removed by the next, of one that lives never."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from assay.core.util.owned_folder import OwnedFolder

PREFIX = "assay-owned-"

HOLD = f"""
from assay.core.util.owned_folder import OwnedFolder
folder = OwnedFolder({PREFIX!r})
(folder.path / "weights").mkdir()
print(folder.path, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_next_folder_removes_those_of_killed_processes_only(place: Path) -> None:
    (place / f"{PREFIX}without-owner").mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        mine = OwnedFolder(PREFIX)
        assert theirs.parent == place and theirs.is_dir(), "its process lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert theirs.is_dir(), "a killed process removes nothing"
        other = OwnedFolder(PREFIX)
    assert sorted(p.name for p in place.iterdir()) == sorted([f"{PREFIX}without-owner", mine.path.name, other.path.name])
    mine.close()
    mine.close()
    assert not mine.path.exists() and other.path.is_dir()
    other.close()


def test_a_folder_that_nothing_refers_to_is_removed_but_not_by_a_forked_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, copied = OwnedFolder(PREFIX), OwnedFolder(PREFIX)
    path = folder.path
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: -1)  # as in a copy that was forked
        copied.close()
    assert path.is_dir() and copied.path.is_dir()
    del folder
    gc.collect()
    assert not path.exists()
