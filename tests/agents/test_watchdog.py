"""Agent programs end when the process that trains is killed, which has no time to end them itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from assay.agents.watchdog import VARIABLE

TRAINER = """
import asyncio, sys
from pathlib import Path
from assay.agents import program_process
from assay.agents.program_process import run_program

watch = program_process.watch_group

def told(group):
    watch(group)
    (Path(sys.argv[1]) / f"watched-{group}").touch()

program_process.watch_group = told

async def main():
    for i, seconds in enumerate((0, 600)):
        folder = Path(sys.argv[1]) / str(i) / "work"
        folder.mkdir(parents=True)
        words = ["sh", "-c", f"sleep {seconds} & echo $! > child; echo $$ > pid; wait"]
        await run_program(words, {"PATH": "/bin:/usr/bin"}, folder, 300.0)

asyncio.run(main())
"""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def _until(test: object, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not test():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_a_killed_trainer_leaves_no_agent_behind(tmp_path: Path) -> None:
    trainer = subprocess.Popen([sys.executable, "-c", TRAINER, str(tmp_path)])
    try:
        files = [tmp_path / "1" / "work" / name for name in ("pid", "child")]
        _until(lambda: all(file.exists() and file.read_text().strip() for file in files))
        pids = [int(file.read_text()) for file in files]
        _until((tmp_path / f"watched-{pids[0]}").exists)  # a program has begun before its trainer can say so
        assert all(map(_alive, pids))
        trainer.send_signal(signal.SIGKILL)
        trainer.wait()
        _until(lambda: not any(map(_alive, pids)))
    finally:
        trainer.kill()
        trainer.wait()


STARTING = """
import asyncio, os, sys, time
from pathlib import Path
from assay.agents import program_process

def never(group):
    (Path(sys.argv[1]) / "begun").touch()
    time.sleep(600)

program_process.watch_group = never
folder = Path(sys.argv[1]) / "0" / "work"
folder.mkdir(parents=True)
words = ["sh", "-c", "setsid sleep 600 & echo $! > child; echo $$ > pid; wait"]
asyncio.run(program_process.run_program(words, {"PATH": "/bin:/usr/bin"}, folder, 300.0))
"""


def test_an_agent_that_was_not_watched_yet_ends_too_and_with_it_what_left_its_group(tmp_path: Path) -> None:
    trainer = subprocess.Popen([sys.executable, "-c", STARTING, str(tmp_path)])
    pids: list[int] = []
    try:
        files = [tmp_path / "0" / "work" / name for name in ("pid", "child")]
        _until(lambda: (tmp_path / "begun").exists() and all(file.exists() and file.read_text().strip() for file in files))
        pids = [int(file.read_text()) for file in files]
        trainer.send_signal(signal.SIGKILL)
        trainer.wait()
        _until(lambda: not any(map(_alive, pids)), 15.0)
    finally:
        _end(trainer, pids)


FORKED = """
import os, sys, time
from pathlib import Path
from assay.agents.watchdog import watched_environment

environment = {"PATH": "/bin:/usr/bin", **watched_environment()}
pid = os.fork()
if not pid:
    os.setsid()
    time.sleep(0.5)  # between fork and exec, the trainer is killed
    os.execve("/bin/sleep", ["sleep", "600"], environment)
(Path(sys.argv[1]) / "pid").write_text(str(pid))
time.sleep(600)
"""


def test_an_agent_between_fork_and_exec_ends_too(tmp_path: Path) -> None:
    trainer = subprocess.Popen([sys.executable, "-c", FORKED, str(tmp_path)])
    pids: list[int] = []
    try:
        file = tmp_path / "pid"
        _until(lambda: file.exists() and file.read_text().strip())
        pids = [int(file.read_text())]
        trainer.send_signal(signal.SIGKILL)
        trainer.wait()
        assert _alive(pids[0])
        _until(lambda: not _alive(pids[0]), 15.0)
    finally:
        _end(trainer, pids)


def test_a_trainer_that_is_an_agent_itself_has_a_helper_that_outlives_it(tmp_path: Path) -> None:
    """The outer trainer's helper kills what has its mark: the inner trainer, whose own helper then ends the inner agent."""
    outer = {**os.environ, VARIABLE: "outer"}
    trainer = subprocess.Popen([sys.executable, "-c", STARTING, str(tmp_path)], env=outer)
    pids: list[int] = []
    try:
        file = tmp_path / "0" / "work" / "pid"
        _until(lambda: (tmp_path / "begun").exists() and file.exists() and file.read_text().strip())
        pids = [int(file.read_text())]
        mark = f"{VARIABLE}=outer".encode()
        marked = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and mark in _environment(p)]
        assert trainer.pid in marked and pids[0] not in marked
        for pid in marked:
            os.kill(pid, signal.SIGKILL)
        trainer.wait()
        _until(lambda: not _alive(pids[0]), 15.0)
    finally:
        _end(trainer, pids)


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def _end(trainer: subprocess.Popen[bytes], pids: list[int]) -> None:
    trainer.kill()
    trainer.wait()
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
