"""One zygote, end to end, at every level that this host grants."""

import os
import resource
import signal
import tempfile

import pytest

from assay.sandbox.backend import Refused, WorkerDied
from assay.sandbox.client import Zygote, status_of
from assay.sandbox.limits import Limits
from assay.sandbox.result import SandboxProgram, Status
from assay.sandbox.zygote import watch

LEVELS = ("strong", "landlock", "rlimits")


@pytest.fixture(scope="module", params=LEVELS)
def zygote(request):
    try:
        made = Zygote(request.param)
    except Refused as error:
        pytest.skip(f"{request.param}: {error}")
    yield made
    made.close()


def test_input_output_and_exit_code(zygote):
    result = zygote.run(
        SandboxProgram(code="import sys\nprint(int(input()) + 1)\nsys.stderr.write('é')\nsys.exit(3)", stdin="41\n"), Limits()
    )
    assert (result.status, result.exit_code, result.stdout, result.stderr) == (Status.ERROR, 3, "42\n", "é")


def test_streams_are_those_of_an_interpreter(zygote):
    """They are made before the program is known: what they say of themselves is what an interpreter's own would."""
    code = (
        "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(s.fileno(), s.mode, s.encoding, s.errors, s.seekable(), s.line_buffering, s is getattr(sys, '__std' + "
        "('in', 'out', 'err')[s.fileno()] + '__'))\n"
        "print(repr(sys.stdin.readline()), sys.stdin.buffer.tell(), repr(sys.stdin.read()))"
    )
    expected = (
        "0 r utf-8 surrogateescape True False True\n1 w utf-8 surrogateescape False False True\n"
        "2 w utf-8 backslashreplace False True True\n'one\\n' 11 'two\\nthr'\n"
    )
    assert zygote.run(SandboxProgram(code=code, stdin="one\ntwo\nthr"), Limits()).stdout == expected
    assert zygote.run(SandboxProgram(code=code, stdin="one\ntwo\nthr"), Limits()).stdout == expected


def test_more_descriptors_than_an_old_call_can_wait_for(zygote):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip(f"no process may open 2048 files here, only {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        assert zygote.run(SandboxProgram(code="print('y' * 300000)"), Limits()).stdout == "y" * 300000 + "\n"
    finally:
        for fd in kept:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_program_may_open_its_output_by_name(zygote):
    if zygote.layers.get("proc", "").startswith("none"):
        pytest.skip("the host masks /proc")
    code = "for name in ('stdout', 'stderr'):\n    with open(f'/dev/{name}', 'w') as file:\n        print(name, file=file)"
    result = zygote.run(SandboxProgram(code=code), Limits())
    assert (result.status, result.stdout, result.stderr) == (Status.OK, "stdout\n", "stderr\n")


def test_a_call_gives_its_value(zygote):
    program = SandboxProgram(code="def f(a, b):\n    return {'sum': a + b, 'pair': (a, None)}", entry="f", arguments=(1, 2.5))
    result = zygote.run(program, Limits())
    assert (result.status, result.value) == (Status.OK, {"sum": 3.5, "pair": [1, None]})


@pytest.mark.parametrize(
    ("code", "limits", "status"),
    [
        ("while True: pass", Limits(cpu=0.2), Status.CPU),
        ("import time; time.sleep(60)", Limits(wall=0.2), Status.TIMEOUT),
        ("x = bytearray(10**9)", Limits(), Status.MEMORY),
        ("while True: print('x' * 1000)", Limits(output=5000), Status.OUTPUT),
        ("open('big', 'wb').write(bytes(2 << 20))", Limits(file_size=1 << 20), Status.DISK),
        ("1 / 0", Limits(), Status.ERROR),
        ("pass", Limits(), Status.OK),
    ],
)
def test_each_limit_has_its_verdict(zygote, code, limits, status):
    assert zygote.run(SandboxProgram(code=code), limits).status is status


@pytest.mark.parametrize(
    ("end", "code", "signalled", "noted", "status"),
    [
        ({"reason": "timeout"}, None, 9, "", Status.TIMEOUT),
        ({}, 0, None, "", Status.OK),
        ({"cpu": 9.0}, 0, None, "", Status.CPU),  # of all its processes together
        ({}, None, signal.SIGXCPU, "", Status.CPU),
        ({}, None, signal.SIGXFSZ, "", Status.DISK),
        ({}, None, signal.SIGSYS, "", Status.BLOCKED),
        ({}, None, signal.SIGKILL, "", Status.MEMORY),
        ({"memory": 500 << 20}, 134, None, "", Status.MEMORY),
        ({}, None, signal.SIGSEGV, "", Status.ERROR),
        ({}, 1, None, "disk", Status.DISK),
        ({}, 0, None, "memory", Status.OK),
    ],
)
def test_how_an_end_is_read(end, code, signalled, noted, status):
    full = {"reason": "", "cpu": 0.1, "memory": 1 << 20, **end}
    assert status_of(full, code, signalled, Limits(), noted) is status


def test_a_zygote_that_ends_is_not_a_verdict(zygote, monkeypatch):
    made = Zygote(zygote.level)
    os.kill(made.pid, signal.SIGKILL)
    made._process.wait()
    with pytest.raises(WorkerDied):
        made.run(SandboxProgram(code="pass"), Limits())
    made.close()
    monkeypatch.setattr("assay.sandbox.client._GRACE", -60.0)
    late = Zygote(zygote.level)
    with pytest.raises(WorkerDied, match="no word"):
        late.run(SandboxProgram(code="pass"), Limits(wall=1.0))
    late.close()


def test_no_descriptors_are_no_verdict(zygote, monkeypatch):
    def none(*_):
        raise OSError(24, "Too many open files")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("os.pipe", none)
    with pytest.raises(WorkerDied, match="Too many open files"):
        zygote.run(SandboxProgram(code="pass"), Limits())
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_program_that_cannot_be_executed_is_no_verdict(zygote):
    result = zygote.run(SandboxProgram(argv=("/no/such/program",)), Limits())
    assert (result.status, result.judged) == (Status.INFRA, False)
    assert "No such file" in result.detail or "Permission denied" in result.detail


def test_threads_and_deleted_files_are_counted_where_proc_itself_is_hidden(tmp_path):
    """In a container whose /proc is taken away, its process 1 has an open one: here a folder that looks like it."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "77" / "fd").mkdir(parents=True)
    proc = os.open(tmp_path, os.O_RDONLY)
    limits = {"entries": 9, "disk": 8192}

    def threads(n):
        for i in range(n):
            (tmp_path / "77" / "task" / str(i)).mkdir(parents=True, exist_ok=True)
        return watch.look(proc, 77, str(tmp_path / "scratch"), limits)

    try:
        assert (threads(96), threads(97)) == ("", "processes")
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * 20000)
            file.flush()
            assert watch.look(proc, 77, str(tmp_path / "scratch"), limits) == "processes"  # it is not the program's
            (tmp_path / "77" / "fd" / "3").symlink_to(f"/proc/self/fd/{file.fileno()}")
            assert watch.look(proc, 77, str(tmp_path / "scratch"), limits) == "disk"
        assert watch.look(proc, 78, str(tmp_path / "scratch"), limits) == ""  # it has just ended
    finally:
        os.close(proc)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_to_all_processes_of_a_job_ends_no_zygote(zygote, number):
    """Batch systems send them; a program still meets them as anywhere else."""
    os.kill(zygote.pid, number)
    assert zygote.run(SandboxProgram(code="print(1)"), Limits()).stdout == "1\n"
    code = "import os, signal\nprint(signal.getsignal(N) is signal.SIG_DFL, flush=True)\nos.kill(os.getpid(), N)"
    code = code.replace("N", str(int(number)))
    result = zygote.run(SandboxProgram(code=code), Limits())
    assert (result.stdout, result.signal) == ("True\n", number)
