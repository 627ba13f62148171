"""What a program leaves in its folder is bounded, removed in bounded time, and counted."""

import os
import signal
import time
from pathlib import Path

import pytest

from assay.core.errors import SandboxError
from assay.sandbox import Limits, Sandbox
from assay.sandbox.backend import Refused
from assay.sandbox.client import Zygote
from assay.sandbox.result import SandboxProgram
from assay.sandbox.zygote.places import empty

BOMBS = {
    "files": "import os\ni = 0\nwhile True:\n    os.close(os.open(str(i), os.O_CREAT | os.O_WRONLY)); i += 1",
    "folders": "import os\ni = 0\nwhile True:\n    os.mkdir(str(i)); i += 1",
    "folders in folders": "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')",
    "links": "import os\nopen('x', 'w').close()\ni = 0\nwhile True:\n    os.link('x', str(i)); i += 1",
    "a folder that cannot be listed": (
        "import os\nos.mkdir('d', 0o300); os.chdir('d')\ni = 0\nwhile True:\n"
        "    os.close(os.open(str(i), os.O_CREAT | os.O_WRONLY)); i += 1"
    ),
}

DEAR = ("folders in folders", "a folder that cannot be listed")
"""A second each, and more on a busy machine: as proofs."""


@pytest.fixture
def zygote():
    try:
        made = Zygote("landlock")
    except Refused as error:
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.mark.parametrize("bomb", [pytest.param(b, marks=pytest.mark.prove if b in DEAR else ()) for b in BOMBS])
def test_a_bomb_of_files_is_stopped_and_its_removal_counted(zygote, bomb):
    began = time.monotonic()
    result = zygote.run(SandboxProgram(code=BOMBS[bomb]), Limits(wall=20.0, cpu=20.0))
    assert result.status == "disk", result
    assert result.left > 1000 or "not removed within" in result.detail
    assert 0.0 < result.cleanup_seconds < 10.0 and time.monotonic() - began < result.seconds + result.cleanup_seconds + 5.0
    if not result.left:  # a slow disk: another zygote takes this one's place
        return
    after = zygote.run(SandboxProgram(code="import os\nprint(os.listdir())"), Limits())
    assert (after.stdout, after.left) == ("[]\n", 0)


def test_what_an_ordinary_program_leaves_is_counted_too(zygote):
    result = zygote.run(SandboxProgram(code="import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()"), Limits())
    assert (result.status, result.left) == ("ok", 3)


def test_where_folders_end_with_the_run_there_is_nothing_to_remove():
    try:
        made = Sandbox("strong", workers=1)
    except SandboxError as error:
        pytest.skip(str(error).splitlines()[0])
    with made:
        result = made.run("open('a', 'w').close()")
        assert (result.left, result.cleanup_seconds) == (0, 0.0)


def test_removal_stops_at_its_deadline(tmp_path):
    for number in range(40):
        (tmp_path / f"{number}" / "deeper").mkdir(parents=True)
        (tmp_path / f"{number}" / "file").touch()
    assert empty(str(tmp_path), seconds=0.0) is None and list(tmp_path.iterdir())
    assert empty(str(tmp_path), seconds=30.0) == 120 and not list(tmp_path.iterdir())
    assert empty(str(tmp_path), seconds=0.0) == 0


def test_a_zygote_that_could_not_clean_up_ends_and_its_folder_is_removed(zygote, monkeypatch):
    """Its word that time was up, here planted: removing so many files as that takes would keep a disk busy for minutes."""
    hear = zygote.hear
    monkeypatch.setattr(zygote, "hear", lambda: {**hear(), "left": None, "cleanup": 5.0})
    result = zygote.run(SandboxProgram(code="open('a', 'w').close()"), Limits())
    assert (result.status, result.left, result.cleanup_seconds) == ("ok", 0, 5.0)
    assert result.detail == "its files were not removed within 5.0 s"


def test_the_folder_of_a_killed_zygote_is_removed_when_it_is_closed(zygote):
    folder = Path(zygote._folder)
    os.kill(zygote.pid, signal.SIGKILL)
    zygote._process.wait()
    (folder / "a").mkdir()
    (folder / "a" / "file").touch()
    zygote.close()
    assert not folder.exists()


def test_so_is_one_that_is_deeper_than_any_path(zygote):
    one, folder = zygote, Path(zygote._folder)
    os.kill(one.pid, signal.SIGKILL)
    one._process.wait()
    at = os.open(folder, os.O_RDONLY)
    for _ in range(2100):  # and than a recursion goes
        os.mkdir("d", dir_fd=at)
        deeper = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    one.close()
    end = time.monotonic() + 60.0
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()
