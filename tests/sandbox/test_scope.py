"""An interpreter over several turns: names stay, limits hold per turn, and a lost state is said to be lost."""

import os
import signal

import pytest

from assay.core.errors import SandboxError
from assay.sandbox import Limits, Refused, Sandbox, Status


@pytest.fixture(scope="module", params=["strong", "landlock"])
def sandbox(request):
    try:
        made = Sandbox(request.param, workers=1)
    except SandboxError as error:
        pytest.skip(str(error))
    yield made
    made.close()


def test_names_stay_and_a_last_expression_is_shown(sandbox):
    with sandbox.scope() as scope:
        assert scope.run("x = 20").stdout == ""
        assert scope.run("def f(n):\n    return n + x\nf(22)").stdout == "42\n"
        failed = scope.run("print('before')\n1 / 0")
        assert (failed.status, failed.stdout, failed.detail) == (Status.ERROR, "before\n", "ZeroDivisionError")
        assert "1 / 0" in failed.stderr and "turn 3" in failed.stderr
        assert scope.run("x").stdout == "20\n"
        assert scope.run("x +").status is Status.ERROR
        assert scope.run("").ok
        assert scope.starts == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "limits", "status"),
    [
        ("import time; time.sleep(60)", Limits(wall=0.3), Status.TIMEOUT),
        ("while True: pass", Limits(cpu=0.3), Status.CPU),
        ("while True: print('x' * 1000)", Limits(output=10000), Status.OUTPUT),
        ("import sys; sys.exit(3)", None, Status.ERROR),
        ("import os; os._exit(0)", None, Status.OK),
    ],
)
def test_a_turn_that_ends_the_interpreter_says_that_names_are_lost(sandbox, code, limits, status):
    with sandbox.scope() as scope:
        scope.run("x = 1")
        ended = scope.run(code, limits)
        assert (ended.status, "is lost" in ended.detail) == (status, True)
        after = scope.run("x")
        assert (after.status, after.detail) == (Status.ERROR, "NameError")
        assert scope.starts == 2


@pytest.mark.slow
def test_time_counts_per_turn(sandbox):
    with sandbox.scope(Limits(cpu=0.4, wall=30.0)) as scope:
        burn = "import time\nend = time.process_time() + 0.25\nwhile time.process_time() < end: pass"
        assert [scope.run(burn).status for _ in range(2)] == [Status.OK] * 2
        assert scope.run("1").cpu_seconds < 0.2


def test_many_turns_of_much_output(sandbox):
    with sandbox.scope() as scope:
        for i in range(20):
            assert scope.run(f"print('{i % 10}' * 100000)").stdout == str(i % 10) * 100000 + "\n"


def test_what_it_says_over_its_channel_harms_only_itself(sandbox):
    with sandbox.scope() as scope:
        for said in (b"nothing", b"[]", b'{"turn": 1, "error": ""}', b"{" * 5000, b'{"turn": null}'):
            forged = scope.run(f"import os; os.write(3, ({len(said)}).to_bytes(8, 'little') + {said!r}); print('x')")
            assert (forged.status, forged.stdout) == (Status.OK, "x\n")
        stuck = scope.run("import os; os.write(3, (1 << 60).to_bytes(8, 'little'))", Limits(wall=0.5))
        assert stuck.status is Status.TIMEOUT
        assert scope.run("1").stdout == "1\n"


def test_code_that_is_never_read_does_not_hold_us_up(sandbox):
    """An interpreter that answers early and then reads no more: the next turn, larger than any buffer, runs out of time."""
    forge = (
        "import json, os, sys, time\nframe = sys._getframe()\nwhile 'turn' not in frame.f_locals: frame = frame.f_back\n"
        "data = json.dumps({'turn': frame.f_locals['turn'], 'error': ''}).encode()\n"
        "os.write(3, len(data).to_bytes(8, 'little') + data)\ntime.sleep(600)"
    )
    with sandbox.scope(Limits(wall=30.0)) as scope:
        assert scope.run(forge).ok
        assert scope.run("#" * (4 << 20), Limits(wall=0.5)).status is Status.TIMEOUT
        assert scope.run("1").stdout == "1\n"


def test_a_dead_zygote_is_replaced_and_the_turn_is_infra(sandbox):
    with sandbox.scope() as scope:
        scope.run("x = 1")
        os.kill(scope._zygote.pid, signal.SIGKILL)
        lost = scope.run("x")
        assert (lost.status, "is lost" in lost.detail) == (Status.INFRA, True)
        assert scope.run("1 + 1").stdout == "2\n"


def test_a_scope_that_cannot_start_says_why(sandbox, monkeypatch):
    def refuse(self):
        raise Refused("planted")

    monkeypatch.setattr("assay.sandbox.levels.ZygoteBackend.start", refuse)
    with pytest.raises(SandboxError, match="planted"):
        sandbox.scope()
