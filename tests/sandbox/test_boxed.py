"""Containers of other tools: the same programs with the same verdicts, limits kept or refused, nothing left behind."""

import json
import marshal
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.core.errors import ConfigError, SandboxError, UnknownNameError
from assay.sandbox import Limits, Refused, Sandbox, SandboxProgram, Status, WorkerDied, backend_named
from assay.sandbox.attack_probe import attack
from assay.sandbox.backends.bubblewrap import Bubblewrap
from assay.sandbox.backends.container import INSIDE, ContainerBackend, ContainerSettings, visible_paths
from assay.sandbox.backends.runsc import Runsc
from assay.sandbox.result import Result

GREET = "import sys\nprint(sys.stdin.read(), sys.argv[1:], open('a/b').read())\nsys.stderr.write('é')\nsys.exit(3)"

CASES = [
    ("print('x' * 2000000)", {}, Status.OUTPUT),
    ("while True: pass", {"cpu": 0.2}, Status.CPU),
    ("import time\ntime.sleep(60)", {"wall": 0.2}, Status.TIMEOUT),
    ("x = bytearray(300 << 20)", {"memory": 256 << 20}, Status.MEMORY),
    ("open('x', 'wb').write(bytes(2 << 20))", {"file_size": 1 << 20}, Status.DISK),
    ("import os\nos.fork()", {}, Status.PROCESSES),
    ("import socket\nsocket.socket()", {}, Status.BLOCKED),
    ("raise ValueError", {}, Status.ERROR),
    ("import os\nos.kill(os.getpid(), 9)", {}, Status.MEMORY),  # nobody else would end it so
]


@pytest.fixture(scope="module", params=[Bubblewrap, pytest.param(Runsc, marks=pytest.mark.prove)])
def worker(request):
    try:
        made = request.param().start()
    except Refused as error:
        pytest.skip(f"{request.param.__name__}: {error}")
    yield made
    made.close()


def test_input_files_and_exit_code(worker):
    result = worker.run(SandboxProgram(code=GREET, stdin="in", args=("1",), files={"a/b": b"file"}), Limits())
    assert (result.status, result.exit_code, result.stderr) == (Status.ERROR, 3, "é")
    assert result.stdout == "in ['1'] file\n"


def test_a_call_gives_its_value(worker):
    program = SandboxProgram(code="def f(a, b):\n    return {'sum': a + b}", entry="f", arguments=(1, 2.5))
    result = worker.run(program, Limits())
    assert (result.status, result.value) == (Status.OK, {"sum": 3.5})
    silent = worker.run(SandboxProgram(code="import os\ndef f():\n    os._exit(0)", entry="f"), Limits())
    assert (silent.status, silent.detail) == (Status.ERROR, "it ended without a value")


@pytest.mark.parametrize(("code", "limits", "status"), CASES)
def test_each_limit_has_its_verdict(worker, code, limits, status):
    result = worker.run(SandboxProgram(code=code), Limits(**{"wall": 30.0, **limits}))
    assert result.status is status, result


def test_a_program_that_is_no_python(worker):
    result = worker.run(SandboxProgram(argv=("/nonexistent",)), Limits())
    assert (result.status, "No such file" in result.detail) == (Status.INFRA, True)


def test_what_cannot_be_kept_is_refused(worker):
    if not worker._backend.several:
        with pytest.raises(ConfigError, match=r"Limits\.processes=3: under .* a program is one process here"):
            worker.run(SandboxProgram(code="1"), Limits(processes=3))


def test_it_holds_what_the_levels_hold(worker):
    found = attack(worker._backend)
    assert found.held, found
    assert found.layers["seccomp"] == os.uname().machine


def test_a_sandbox_of_containers():
    try:
        made = Sandbox("bubblewrap", workers=2)
    except SandboxError as error:
        pytest.skip(str(error))
    with made as sandbox:
        assert sandbox.tag == "bubblewrap" and sandbox.isolation.startswith("isolation: bubblewrap")
        found = sandbox.map({i: f"print({i})" for i in range(4)})
        assert [found[i].stdout for i in range(4)] == ["0\n", "1\n", "2\n", "3\n"]
        assert {r.isolation for r in found.values()} == {"bubblewrap"}
        with pytest.raises(ConfigError, match="needs a zygote"):
            sandbox.scope()
        (worker, *_) = sandbox._idle
    with pytest.raises(WorkerDied, match="closed"):
        worker.run(SandboxProgram(code="1"), Limits())


def test_a_tool_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    for backend in (Bubblewrap(), Runsc()):
        with pytest.raises(Refused, match=f"there is no {backend.tool} on the path"):
            backend.start()


def test_an_interpreter_that_does_not_run_and_a_path_that_is_missing():
    with pytest.raises(Refused, match="/bin/false does not run"):
        visible_paths("/bin/false", ())
    with pytest.raises(Refused, match="nonexistent"):
        visible_paths(sys.executable, ("/nonexistent",))


def test_a_bubblewrap_shows_little_and_grants_nothing():
    with Bubblewrap().cage(Limits(disk=1 << 20)) as cage:
        words = list(cage.argv)
    shown = [words[i + 1 : i + 3] for i, word in enumerate(words) if word == "--ro-bind"]
    assert all(source == place or place == INSIDE or source == "/dev/null" for source, place in shown)
    assert {"--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session"} < set(words)
    assert words[words.index("--cap-drop") + 1] == "ALL" and words[words.index("--size") + 1] == str(1 << 20)
    assert not {"--bind", "--share-net", "--dev", "--setenv"} & set(words)
    masked = {place for source, place in shown if source == "/dev/null"}
    assert os.path.exists("/proc/cmdline") <= ("/proc/cmdline" in masked)
    assert words[words.index("--") + 1 :][1:] == ["-I", "-S", f"{INSIDE}/box.py"]


def test_a_bundle_of_gvisor_is_private_and_goes(tmp_path, monkeypatch):
    told = tmp_path / "told"
    (tmp_path / "runsc").write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    (tmp_path / "runsc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Runsc().cage(Limits(disk=1 << 20)) as cage:
        folder = Path(cage.argv[cage.argv.index("--bundle") + 1])
        bundle = json.loads((folder / "config.json").read_text())
        root = folder / "root"
        assert (root / "box").is_dir() and os.readlink(root / "tmp") == "/box"
        assert not any(path.is_file() and path.stat().st_size for path in root.rglob("*"))
    assert not folder.exists() and "delete --force assay-" in told.read_text()
    assert (cage.user, cage.hide_proc, "--network=none" in cage.argv) == (1000, True, True)
    assert bundle["root"] == {"path": "root", "readonly": True} and bundle["process"]["env"] == []
    for mount in bundle["mounts"]:
        assert mount["type"] != "bind" or "ro" in mount["options"], mount
    assert bundle["process"]["noNewPrivileges"] and {"type": "network"} in bundle["linux"]["namespaces"]


def test_the_backend_of_the_page_holds():
    page = Path(__file__).parents[2] / "docs" / "add" / "backend.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "page"}
    exec(code, names)
    backend = names["WholeUsr"]()
    try:
        backend.start().close()
    except Refused as error:
        pytest.skip(str(error))
    found = attack(backend)
    assert found.held, found
    with Sandbox(backend, workers=1) as sandbox:
        assert "bin" in sandbox.run(SandboxProgram(argv=("ls", "/usr"))).stdout.split()


def test_names_of_backends():
    assert backend_named("bubblewrap", ("/opt",)) == Bubblewrap(reads=("/opt",))
    assert backend_named("runsc") == Runsc()
    with pytest.raises(UnknownNameError, match="bubblewrap"):
        backend_named("bublewrap")


# ---- a tool that contains nothing, to see what becomes of each thing that process 1 may say


def frame(kind: str, data: bytes) -> bytes:
    return kind.encode() + len(data).to_bytes(8, "little") + data


HELLO = frame("x", json.dumps({"landlock": 0, "machine": "x86_64", "uid": 0}).encode())


class Said(ContainerBackend):
    """Says to each run what it is told to, in the place of a container."""

    name, tool, layers = "said", "sh", {}

    def __init__(self, folder: Path, *answers: bytes, end: str = "") -> None:
        object.__setattr__(self, "folder", folder)
        object.__setattr__(self, "end", end)
        object.__setattr__(self, "shell", "/bin/sh")
        for number, answer in enumerate((*answers, answers[-1])):
            (folder / str(number)).write_bytes(answer)
        (folder / "count").write_text("0")

    @contextmanager
    def cage(self, limits):
        count = self.folder / "count"
        number = int(count.read_text())
        count.write_text(str(number + 1))
        yield ContainerSettings((self.shell, "-c", f"cat {self.folder / str(number)}; {self.end}"))


def ended(**changes) -> bytes:
    said = {"status": 0, "reason": "", "seconds": 0.5, "cpu": 0.1, "memory": 1 << 20}
    return frame("x", json.dumps({**said, **changes}).encode())


def test_what_process_1_says_becomes_a_result(tmp_path):
    said = frame("o", b"out") + frame("e", b"\xff") + frame("v", b'{"value": 7}')
    worker = Said(tmp_path, HELLO, said + ended()).start()
    assert worker.layers["landlock"] == "no: the kernel inside has none" and worker.layers["processes"] == "one"
    found = worker.run(SandboxProgram(code="x", entry="f"), Limits())
    assert found == Result(
        status=Status.OK, exit_code=0, stdout="out", stderr="\ufffd", seconds=0.5, cpu_seconds=0.1, isolation="said", value=7
    )


@pytest.mark.parametrize(
    ("said", "status", "signalled"),
    [
        (ended(status=signal.SIGXCPU), Status.CPU, signal.SIGXCPU),
        (ended(status=signal.SIGKILL, reason="disk"), Status.DISK, None),
        (ended(infra="no"), Status.INFRA, None),
    ],
)
def test_how_it_ended(tmp_path, said, status, signalled):
    result = Said(tmp_path, HELLO, said).start().run(SandboxProgram(code="x"), Limits())
    assert (result.status, result.signal, result.isolation) == (status, signalled, "said")


@pytest.mark.parametrize("said", [b"", frame("o", b"out"), b"o\xff\xff\xff", frame("o", b"x" * (2 << 20)) + ended()])
def test_a_container_that_breaks_off_is_no_verdict(tmp_path, said):
    worker = Said(tmp_path, HELLO, said, end="echo why >&2").start()
    with pytest.raises(WorkerDied, match="ended without a word"):
        worker.run(SandboxProgram(code="x"), Limits())


def test_a_tool_that_makes_no_container_is_refused(tmp_path):
    with pytest.raises(Refused, match="without a word on its program: not permitted"):
        Said(tmp_path, b"", end="echo not permitted >&2").start()
    with pytest.raises(Refused, match="process 1 is another's"):
        Said(tmp_path, frame("x", b'{"infra": "process 1 is another\'s"}')).start()


def test_a_tool_that_cannot_be_started_must_be_replaced(tmp_path):
    backend = Said(tmp_path, HELLO, HELLO)
    worker = backend.start()
    object.__setattr__(backend, "shell", "/nonexistent")
    with pytest.raises(WorkerDied, match="/nonexistent"):
        worker.run(SandboxProgram(code="x"), Limits())


def test_process_1_refuses_to_be_another():
    box = Path(sys.modules["assay.sandbox.backends.container"].__file__).parents[1] / "zygote" / "box.py"
    assert INSIDE.endswith("/zygote") and box.exists()
    head = marshal.dumps({"folder": "/"}, 4)
    order = len(head).to_bytes(8, "little") + head
    done = subprocess.run([sys.executable, "-I", "-S", str(box)], input=order, capture_output=True, check=True)
    assert b"process 1 is another's" in done.stdout
