"""Locks on files: none that a program takes is seen by the host or another run; programs that lock their own files work."""

import fcntl
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.core.errors import SandboxError
from assay.sandbox import Limits, Sandbox

LEVELS = ("strong", "landlock", "bubblewrap", "runsc")
SHARED = os.path.join(os.path.dirname(os.__file__), "this.py")

HOLD = """
import fcntl, os, struct, sys, time
def lock(kind, start=0, length=0):
    return struct.pack("hhqqi4x", kind, 0, start, length, 0)
def fd(path, mode=os.O_RDONLY):
    return os.open(path, mode)
def attempt(name, take):
    try:
        take()
    except OSError as error:
        print(name, type(error).__name__, error.errno)
shared, device = fd(SHARED), fd("/dev/null", os.O_RDWR)
for name, held in (("file", shared), ("device", device)):
    attempt("posix read " + name, lambda: fcntl.fcntl(held, fcntl.F_SETLK, lock(fcntl.F_RDLCK)))
    attempt("posix wait " + name, lambda: fcntl.fcntl(held, fcntl.F_SETLKW, lock(fcntl.F_RDLCK)))
    attempt("ofd read " + name, lambda: fcntl.fcntl(held, 37, lock(fcntl.F_RDLCK)))
    attempt("ofd wait " + name, lambda: fcntl.fcntl(held, 38, lock(fcntl.F_RDLCK)))
    attempt("flock " + name, lambda: fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB))
    attempt("lease " + name, lambda: fcntl.fcntl(held, 1024, fcntl.F_RDLCK))
attempt("posix write device", lambda: fcntl.fcntl(device, fcntl.F_SETLK, lock(fcntl.F_WRLCK)))
attempt("ofd write device", lambda: fcntl.fcntl(device, 37, lock(fcntl.F_WRLCK)))
print("held", flush=True)
""".replace("SHARED", repr(SHARED))

SEEN = """
import fcntl, os, struct
def free(path, mode):
    fd = os.open(path, mode)
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    for command in (fcntl.F_GETLK, 36):
        kind, *_ = struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, asked))
        if kind != fcntl.F_UNLCK:
            print(path, "is locked:", command)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(path, "is locked: flock")
    except OSError:
        pass
free(SHARED, os.O_RDONLY)
free("/dev/null", os.O_RDWR)
""".replace("SHARED", repr(SHARED))

SQLITE = """
import sqlite3
for mode in ("delete", "wal"):
    for turn in range(2):
        with sqlite3.connect(mode + ".db") as base:
            base.execute("pragma journal_mode=" + mode)
            base.execute("create table if not exists t(x)")
            base.execute("insert into t values (?)", (turn,))
        base.close()
    print(mode, sqlite3.connect(mode + ".db").execute("select count(*) from t").fetchone()[0])
"""

OWN_FILES = """
import fcntl, mailbox, os
box = mailbox.mbox("box")
box.lock(); box.add("From: a\\n\\nhello"); box.flush(); box.unlock()
print(len(box))
with open("own", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write("x")
    fcntl.lockf(file, fcntl.LOCK_UN)
print(os.path.getsize("own"))
"""


@pytest.fixture(autouse=True)
def alone():
    """These tests look at locks of the whole machine: one at a time."""
    with open(__file__, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(params=LEVELS)
def level(request):
    return request.param


@pytest.fixture
def sandbox(level):
    try:
        made = Sandbox(level, workers=2)
    except SandboxError as error:
        pytest.skip(str(error).splitlines()[0])
    with made:
        yield made


def free(path, mode):
    """Whether no lock of any family that another process holds is on a file, as this process finds."""
    with open(path, mode) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if file.writable():
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True


def test_no_lock_of_a_program_reaches_the_host_or_another_run(sandbox):
    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(sandbox.run, HOLD + "time.sleep(4)", Limits(wall=10.0))
        time.sleep(2.0)
        assert free(SHARED, "rb") and free("/dev/null", "r+b")
        other = sandbox.run(SEEN)
        assert not holder.done()
    assert "held" in holder.result().stdout
    assert (other.status, other.stdout) == ("ok", "")


def test_locks_that_programs_may_not_have_say_so(sandbox):
    said = dict(line.rsplit(" ", 2)[:2] for line in sandbox.run(HOLD).stdout.splitlines() if " " in line)
    assert said == {
        f"{family} {place}": kind
        for place in ("file", "device")
        for family, kind in (("ofd read", "OSError"), ("ofd wait", "OSError"), ("lease", "PermissionError"))
    } | {"ofd write device": "OSError"}


def test_programs_that_lock_their_own_files_work(sandbox):
    for code, wanted in ((SQLITE, "delete 2\nwal 2\n"), (OWN_FILES, "1\n1\n")):
        result = sandbox.run(code)
        assert (result.status, result.stdout) == ("ok", wanted), result


def test_a_database_of_several_processes_is_refused_rather_than_shared_unlocked(level):
    if level != "strong":
        pytest.skip("a program is one process there")
    try:
        made = Sandbox(level, workers=1)
    except SandboxError as error:
        pytest.skip(str(error).splitlines()[0])
    with made:
        result = made.run(SQLITE, Limits(processes=4))
        assert result.status == "error" and "database is locked" in result.stderr
        locks = made.run(OWN_FILES, Limits(processes=4))
        assert locks.status == "error" and "No locks available" in locks.stderr


def test_a_program_that_waits_for_a_lock_of_the_host_is_not_held_up(sandbox):
    with open(SHARED, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        began = time.monotonic()
        result = sandbox.run(f"import fcntl\nfcntl.flock(open({SHARED!r}), fcntl.LOCK_EX)\nprint('went on')")
        assert (result.status, result.stdout) == ("ok", "went on\n")
        assert time.monotonic() - began < 5.0
