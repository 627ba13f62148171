"""Two processes never work on one run folder, and never build one cached base at once."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from tiny_runs import at_named, digest_of, ended, in_child, kill_at, on_tiny_base, resumed, started, tiny, trained

from assay.core.errors import ConfigError
from assay.runs import lock
from assay.train.driver import resume, train


class Gate:
    """A child stops here until the parent opens; the parent waits until the child has come."""

    def __init__(self) -> None:
        self.came, self.open = os.pipe(), os.pipe()
        self.passed = False

    def stop(self) -> None:
        if not self.passed:
            self.passed = True
            os.write(self.came[1], b"x")
            os.read(self.open[0], 1)

    def wait(self) -> None:
        os.read(self.came[0], 1)

    def release(self) -> None:
        os.write(self.open[1], b"x")


def test_the_second_process_on_a_run_folder_is_refused_by_name(tmp_path: Path) -> None:
    folder, gate = tmp_path / "run", Gate()

    def work() -> None:
        at_named("done:LATEST", gate.stop)
        train(tiny(), folder)

    pid = started(work)
    gate.wait()
    with pytest.raises(ConfigError, match=f"{folder} is being worked on by process {pid}; wait"):
        resume(folder)
    with pytest.raises(ConfigError, match=r"holds a run already: .*assay resume"):
        train(tiny(), folder)
    gate.release()
    assert ended(pid) == 0
    assert resume(folder).digest == digest_of(folder)


@pytest.mark.slow
def test_the_lock_of_a_killed_process_holds_nobody(tmp_path: Path) -> None:
    def work() -> None:
        kill_at(60)
        train(tiny(), tmp_path / "run")

    assert in_child(work) == -signal.SIGKILL
    assert (tmp_path / "run" / lock.LOCK).read_text().strip().isdecimal()
    assert resumed(tmp_path / "run") == trained(tiny(), tmp_path / "other")


def test_the_second_builder_of_a_base_waits_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    gate, told = Gate(), os.pipe()

    def first() -> None:
        at_named("renamed:step_0000004", gate.stop)  # in the middle of the base
        train(on_tiny_base(), tmp_path / "first")

    def second() -> None:
        sys.stderr = os.fdopen(told[1], "w")
        train(on_tiny_base(), tmp_path / "second")

    a = started(first)
    gate.wait()
    b = started(second)
    os.close(told[1])
    with os.fdopen(told[0]) as lines:
        assert "another process builds the base 'tiny-base'" in lines.readline()
    gate.release()
    assert (ended(a), ended(b)) == (0, 0)
    assert digest_of(tmp_path / "first") == digest_of(tmp_path / "second")
    assert len([p for p in (tmp_path / "cache" / "base").iterdir() if p.is_dir()]) == 1


@pytest.mark.parametrize("built", [False, True])
def test_who_only_looks_at_a_built_base_is_no_builder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], built: bool
) -> None:
    """The lock is held by another process when it is first asked for, and free for who waits."""
    asked: list[bool] = []

    def lockf(file: object, how: int) -> None:
        asked.append(bool(how & fcntl.LOCK_NB))
        if asked[-1]:
            raise BlockingIOError(errno.EAGAIN, "held")

    monkeypatch.setattr(lock.fcntl, "lockf", lockf)
    base = tmp_path / "cache" / "base-1"
    base.mkdir(parents=True)
    if built:
        (base / "done.json").write_text("{}")
    with lock.builder(base, "the base 'b'"):
        assert asked == [True, False]
    assert capsys.readouterr().err == ("" if built else f"another process builds the base 'b' in {base}; waiting for it\n")


def test_threads_of_one_process_are_kept_apart_too(tmp_path: Path) -> None:
    found: list[BaseException] = []

    def intrude() -> None:
        try:
            with lock.worker(tmp_path):
                found.append(AssertionError("two workers"))
        except ConfigError as error:
            found.append(error)

    with lock.worker(tmp_path):
        other = threading.Thread(target=intrude)
        other.start()
        other.join()
    assert "another thread of this process" in str(found[0])
    with lock.worker(tmp_path):
        pass
