"""The pool: keyed results from any thread and from asyncio, workers that are replaced, nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

import assay.sandbox.sandbox as sandboxes
from assay.core.errors import ConfigError, DataError, SandboxError, UnknownNameError
from assay.sandbox import (
    IsolationProbe,
    Limits,
    Refused,
    Result,
    Sandbox,
    SandboxProgram,
    Status,
    WorkerDied,
    ZygoteBackend,
    attack_probe,
)
from assay.sandbox.client import Zygote

pytestmark = pytest.mark.usefixtures("contained")


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(workers=2) as made:
        yield made


def test_results_are_keyed_and_run_side_by_side(sandbox):
    programs = {f"p{i}": f"import time\ntime.sleep(0.05)\nprint({i} ** 2)" for i in range(6)}
    found = sandbox.map(programs)
    assert {key: result.stdout for key, result in found.items()} == {f"p{i}": f"{i**2}\n" for i in range(6)}
    assert all(result.isolation == sandbox.backend.name for result in found.values())


def test_any_thread_may_run(sandbox):
    out: dict[int, str] = {}

    def work(i):
        out[i] = sandbox.run(f"print({i})").stdout

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == {i: f"{i}\n" for i in range(8)}


def test_asyncio_is_not_blocked(sandbox):
    async def both():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        one, many = await asyncio.gather(
            sandbox.arun("import time\ntime.sleep(0.3)\nprint('a')"), sandbox.amap({1: "print(1)", 2: "print(2)"})
        )
        ticker.cancel()
        return one, many, ticks

    one, many, ticks = asyncio.run(both())
    assert (one.stdout, many[1].stdout, many[2].stdout) == ("a\n", "1\n", "2\n")
    assert ticks >= 3


def test_a_call_compares_outside(sandbox):
    assert sandbox.call("def f(xs): return sorted(xs)", "f", [3, 1, 2]).value == [1, 2, 3]
    missing = sandbox.call("x = 1", "f")
    assert (missing.status, missing.value) == (Status.ERROR, None)
    assert "defines no function 'f'" in missing.stderr
    unsayable = sandbox.call("def f(): return {1, 2}", "f")
    assert (unsayable.status, unsayable.value) == (Status.ERROR, None)
    with pytest.raises(DataError, match="plain values"):
        sandbox.call("def f(x): return x", "f", {1, 2})
    assert sandbox.call("def f(x): return x", "f", 1).value == 1  # and the pool is whole


def test_files_arguments_and_input(sandbox):
    code = "import sys\nprint(open('a/b.txt').read(), sys.argv[1:], sys.stdin.read())"
    program = SandboxProgram(code=code, files={"a/b.txt": b"inside"}, args=("x", "y"), stdin="given")
    assert sandbox.run(program).stdout == "inside ['x', 'y'] given\n"


def test_programs_of_other_kinds_are_executed():
    with Sandbox(workers=1, reads=["/usr", "/bin"]) as sandbox:
        result = sandbox.run(SandboxProgram(argv=("/bin/sh", "-c", "read x; echo got $x; exit 4"), stdin="it\n"))
        assert (result.status, result.exit_code, result.stdout) == (Status.ERROR, 4, "got it\n")
        own = SandboxProgram(argv=("./own", "a"), files={"own": b"#!/bin/sh\necho own $1\n"})
        assert sandbox.run(own).stdout == "own a\n"


def test_several_processes_where_the_limit_allows_them():
    code = (
        "import os\nfor _ in range(3):\n    if os.fork() == 0:\n        os._exit(0)\nfor _ in range(3): os.wait()\nprint('all')"
    )
    try:
        made = Sandbox("strong", workers=3)
    except SandboxError as error:
        pytest.skip(str(error))
    with made as sandbox:
        found = sandbox.map({i: SandboxProgram(code=code) for i in range(12)}, Limits(processes=4, wall=30.0))
        assert {r.stdout for r in found.values()} == {"all\n"}  # runs beside each other do not use up each other's processes
        refused = sandbox.run(SandboxProgram(code="import os\nos.fork()"))
        assert refused.status is Status.PROCESSES


def test_several_processes_where_only_one_can_be_contained_are_refused():
    try:
        made = Sandbox("landlock", workers=1)
    except SandboxError as error:
        pytest.skip(str(error))
    with made as sandbox:
        sandbox.run("pass")
        (worker,) = sandbox._idle
        with pytest.raises(ConfigError, match=r"processes=4.*several need 'strong'"):
            sandbox.run("pass", Limits(processes=4))
        with pytest.raises(ConfigError, match="processes=4"):
            sandbox.scope(Limits(processes=4))
        assert sandbox.run("pass").ok
        assert sandbox._idle == [worker]


def test_the_least_memory_is_enough_for_a_small_program(sandbox):
    assert sandbox.run("print(sum(range(1000)))", Limits(memory=64 << 20)).stdout == "499500\n"


def test_a_killed_worker_is_replaced_and_its_program_run_again():
    with Sandbox(workers=1) as sandbox:
        sandbox.run("pass")
        (first,) = sandbox._idle
        assert isinstance(first, Zygote)
        threading.Timer(0.2, lambda: os.kill(first.pid, signal.SIGKILL)).start()
        result = sandbox.run("import time\ntime.sleep(0.5)\nprint('again')", Limits(wall=30.0))
        assert (result.status, result.stdout) == (Status.OK, "again\n")
        (second,) = sandbox._idle
        assert second is not first


class Broken:
    """A backend whose workers fail."""

    name = "broken"

    def __init__(self):
        self.layers: dict[str, str] = {}
        self.mode, self.starts = "good", 0

    def start(self):
        self.starts += 1
        if self.mode == "refused":
            raise Refused("no more")
        return self

    def run(self, program, limits):
        if self.mode == "dies":
            raise WorkerDied("planted")
        if self.mode == "infra":
            return Result(status=Status.INFRA, detail="planted")
        if self.mode == "raises":
            raise KeyboardInterrupt
        return Result(status=Status.OK, stdout="[]", isolation="broken")

    def close(self):
        pass


@pytest.fixture
def broken(monkeypatch):
    backend = Broken()
    monkeypatch.setattr("assay.sandbox.sandbox.choose", lambda given, **_: (given, IsolationProbe(given.name, True, "", {}, {})))
    with Sandbox(backend, workers=1) as made:
        yield backend, made


@pytest.mark.parametrize(
    ("mode", "starts", "detail"), [("dies", 2, "two workers failed; the second: planted"), ("infra", 1, "planted")]
)
def test_what_fails_twice_is_infra_and_no_verdict(broken, mode, starts, detail):
    backend, sandbox = broken
    backend.mode = mode
    result = sandbox.run("x")
    assert (result.status, result.judged, result.detail, backend.starts) == (Status.INFRA, False, detail, starts)


def test_a_backend_that_stops_granting_is_infra(broken):
    backend, sandbox = broken
    backend.mode = "refused"
    assert sandbox.run("x").detail == "no worker could be started: no more"
    backend.mode = "good"
    assert sandbox.run("x").ok


def test_an_interrupted_run_gives_its_worker_up(broken):
    backend, sandbox = broken
    backend.mode = "raises"
    with pytest.raises(KeyboardInterrupt):
        sandbox.run("x")
    backend.mode = "good"
    assert sandbox.run("x").ok
    assert backend.starts == 2
    with pytest.raises(ConfigError, match="needs a zygote"):
        sandbox.scope()


def test_a_closed_sandbox_says_so():
    sandbox = Sandbox("rlimits", allow_unsafe=True, workers=1)
    sandbox.run("open('left', 'w').close()")
    (worker,) = sandbox._idle
    assert Path(worker._folder).exists()
    sandbox.close()
    sandbox.close()
    with pytest.raises(ConfigError, match="closed"):
        sandbox.run("pass")
    assert not Path(f"/proc/{worker.pid}").exists()
    assert not Path(worker._folder).exists()


def test_a_forked_copy_has_workers_of_its_own(sandbox):
    sandbox.run("pass")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, sandbox.run("print('child')").stdout.encode())
            sandbox.close()
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 100) == b"child\n"
    os.close(read)
    os.waitpid(pid, 0)
    assert sandbox.run("print('parent')").stdout == "parent\n"


class Owned:
    """A backend whose workers say in which process they were started."""

    name = "owned"
    layers = MappingProxyType({})

    def start(self):
        made = Owned()
        made.pid = os.getpid()
        return made

    def run(self, program, limits):
        return Result(status=Status.OK, stdout=str(self.pid))

    def close(self):
        pass


def test_two_threads_of_a_forked_copy_begin_at_once(monkeypatch):
    """The second comes while the first would still be making the copy's own state: neither may get a worker of the parent."""
    monkeypatch.setattr(sandboxes, "choose", lambda *_, **__: (Owned(), IsolationProbe("owned", True, "", {}, {})))
    sandbox = Sandbox(workers=1)
    assert sandbox.run("pass").stdout == str(os.getpid())
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            began, ended, said = threading.Event(), threading.Event(), []

            def slow(made=threading.Condition):
                began.set()
                ended.wait(1.0)
                return made()

            def first():
                said.append(sandbox.run("pass").stdout)
                began.set()

            sandboxes.threading = SimpleNamespace(Condition=slow)
            one = threading.Thread(target=first)
            one.start()
            began.wait()
            said.append(sandbox.run("pass").stdout)
            ended.set()
            one.join()
            os.write(write, " ".join(said).encode())
        finally:
            os._exit(0)
    os.close(write)
    said = os.read(read, 100).decode()
    os.close(read)
    os.waitpid(pid, 0)
    assert said == f"{pid} {pid}"
    assert sandbox.run("pass").stdout == str(os.getpid())


LONG_LIVED = """
import os, sys, threading, time
from assay.sandbox import Limits, Sandbox
sandbox = Sandbox(sys.argv[1], workers=1)
threading.Thread(target=sandbox.run, args=("import time\\ntime.sleep(600)", Limits(wall=600.0, cpu=600.0)), daemon=True).start()
scope = sandbox.scope(Limits(wall=600.0))
scope.run("x = 1")
if len(sys.argv) > 2 and os.fork() == 0:
    time.sleep(30)  # holds copies of every descriptor, so that no end of file tells
    os._exit(0)
time.sleep(0.3)
print(scope._zygote.pid, *[p for p in open(f"/proc/self/task/{os.getpid()}/children").read().split()], flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("level", ["strong", "landlock"])
def test_nothing_survives_a_kill_of_the_program(level, forked, tmp_path):
    arguments = [sys.executable, "-c", LONG_LIVED, level, *(["forked"] if forked else [])]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        pytest.skip(f"{level} is not granted here")
    family = descendants(process.pid)
    copies = [p for p in family if Path(f"/proc/{p}/cmdline").read_bytes() == Path(f"/proc/{process.pid}/cmdline").read_bytes()]
    folders = set(tmp_path.glob("assay-sandbox-*"))
    assert bool(folders) == (level == "landlock")
    process.kill()
    process.wait()
    watched = set(family) - set(copies)
    assert len(watched) >= 4  # two zygotes, two programs
    until = time.monotonic() + 20
    while time.monotonic() < until and any(alive(p) for p in watched):
        time.sleep(0.05)
    assert [p for p in watched if alive(p)] == []
    while time.monotonic() < until and any(f.exists() for f in folders):
        time.sleep(0.05)
    assert [f for f in folders if f.exists()] == []
    for pid in copies:
        os.kill(pid, signal.SIGKILL)
    process.stdout.close()


def descendants(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Sandbox(workers=0), ConfigError, "workers=0"),
        (lambda: Sandbox("rlimits"), ConfigError, "allow_unsafe=True"),
        (lambda: Sandbox("strnog"), UnknownNameError, "did you mean 'strong'"),
        (lambda: ZygoteBackend("strong", ("relative",)), ConfigError, "absolute"),
        (lambda: Sandbox(reads=["/no/such/folder"]), ConfigError, "is not on this host"),
        (lambda: ZygoteBackend("strong", ("/",)), ConfigError, "neither the root"),
        (lambda: SandboxProgram(code="x", argv=("y",)), ConfigError, "either code or argv"),
        (lambda: SandboxProgram(files={"../x": b""}), ConfigError, "below"),
        (lambda: SandboxProgram(files={"a": b"", "a/b": b""}), ConfigError, "folder of another"),
        (lambda: Limits(cpu=0.0), ConfigError, r"Limits.cpu=0.0"),
        (lambda: Limits(memory=1000), ConfigError, "at least 67108864"),
        (lambda: Limits(wall=float("inf")), ConfigError, r"Limits.wall=inf: give at most 1000000"),
        (lambda: Limits(cpu=float("nan")), ConfigError, r"Limits.cpu=nan: give more than 0"),
        (lambda: Limits(memory=1 << 62), ConfigError, r"Limits.memory=4611686018427387904: give at most"),
        (lambda: Limits.parse("wall=1,wall=2"), ConfigError, "give wall twice"),
        (lambda: Limits.parse("wall"), ConfigError, "key=value"),
        (lambda: Limits(processes=2.5), ConfigError, r"Limits.processes=2.5: give a whole number"),
        (lambda: Limits(wall="2"), ConfigError, r"Limits.wall='2': give seconds"),
        (lambda: Limits.parse("memory=1G"), ConfigError, r"memory='1G' is no whole number; sizes are in bytes"),
        (lambda: Limits.parse("wall=soon"), ConfigError, "no number"),
        (lambda: Limits.parse("wal=1"), UnknownNameError, "did you mean 'wall'"),
    ],
)
def test_wrong_settings_are_refused_with_a_fix(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_unsafe_is_said_each_time_and_tagged(capsys):
    with Sandbox("rlimits", allow_unsafe=True, workers=1) as sandbox:
        assert sandbox.run("pass").isolation == "rlimits (UNSAFE)"
        assert "NOT HELD" in sandbox.isolation
        assert sandbox.manifest()["held"] is False
    assert "UNSAFE" in capsys.readouterr().err


def test_unsafe_ends_what_hides(capsys):
    """Without namespaces a daemon is found because the zygote inherits it."""
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.closerange(0, 9)"
    code += "\n        time.sleep(99)"
    with Sandbox("rlimits", allow_unsafe=True, workers=1) as sandbox:
        assert sandbox.run(code).judged
        (worker,) = sandbox._idle
        assert descendants(worker.pid) == []


def test_a_fork_amid_the_probe_of_another_thread_can_probe():
    with attack_probe._lock:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if attack_probe._lock.acquire(timeout=2.0) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
