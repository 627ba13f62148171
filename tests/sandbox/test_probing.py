"""The probe says what got through, and the choice of a level follows it."""

import json
import time

import pytest

from assay.core.errors import SandboxError
from assay.sandbox import Program, Result, Sandbox, Status, WorkerDied, ZygoteBackend, choose, probe
from assay.sandbox.probing import attack
from assay.sandbox.values import check, read


class Leaky:
    """A backend that runs nothing and says what it is told to."""

    def __init__(self, name, through=(), stubborn=Status.TIMEOUT, error=None):
        self.layers = {"rlimits": "yes"}
        self.name, self._through, self._stubborn, self._error = name, through, stubborn, error

    def start(self):
        return self

    def run(self, program, limits):
        if self._error:
            raise self._error
        if not program.stdin:
            return Result(status=self._stubborn)
        return Result(status=Status.OK, stdout=json.dumps(self._through))

    def close(self):
        pass


def test_what_gets_through_is_named():
    found = attack(Leaky("leaky", ["network", "memory"], Status.OK))
    assert (found.held, found.why) == (False, "network, memory, ignored signals")
    assert found.attacks["host read"] and not found.attacks["network"]
    assert "NOT HELD: network" in found.line
    assert found.manifest()["attacks"]["memory"] is False


def test_a_probe_that_gets_no_answer_is_not_held():
    dead = attack(Leaky("dead", error=WorkerDied("planted")))
    assert (dead.held, dead.why) == (False, "the probe failed: planted")

    class Failing(Leaky):
        def run(self, program, limits):
            return Result(status=Status.INFRA, detail="no way")

    assert attack(Failing("failing")).why == "the probe failed: infra no way"


def test_a_backend_of_ones_own_must_hold_too():
    chosen, found = choose(Leaky("fine"))
    assert (chosen.name, found.held) == ("fine", True)
    with pytest.raises(SandboxError, match=r"leaky: network"):
        choose(Leaky("leaky", ["network"]))


def test_the_probe_is_asked_once_and_is_quick():
    backend = ZygoteBackend("strong")
    first = probe(backend)
    began = time.process_time()
    assert probe(backend) is first
    assert time.process_time() - began < 0.01


def test_a_level_that_leaks_is_passed_over(monkeypatch):
    real = attack

    def planted(backend):
        return attack(Leaky("strong", ["network"])) if backend.name == "strong" else real(backend)

    monkeypatch.setattr("assay.sandbox.probing.attack", planted)
    monkeypatch.setattr("assay.sandbox.probing._known", {})
    try:
        with Sandbox(workers=1) as sandbox:
            assert sandbox.backend.name == "landlock"
            assert sandbox.run(Program(code="print(1)")).isolation == "landlock"
    except SandboxError as error:
        assert "strong: network" in str(error)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (False, None, "")),
        (b'{"value": [1, null]}', (True, [1, None], "")),
        (b'{"note": "memory"}', (False, None, "memory")),
        (b'{"note": "ok"}', (False, None, "")),
        (b'{"note": ["memory"]}', (False, None, "")),
        (b'{"status": "ok"}', (False, None, "")),
        (b'{"value": 1, "note": "x"}', (False, None, "")),
        (b'{"value": 1}{"value": 2}', (False, None, "")),
        (b"[1]", (False, None, "")),
        (b"\xff\xfe", (False, None, "")),
        (b'{"value": ' + b"[" * 100000 + b"]" * 100000 + b"}", (False, None, "")),
        (b'{"value": ' + b"[" * 70 + b"]" * 70 + b"}", (False, None, "")),
        (b'{"value": ' + b"9" * 5000 + b"}", (False, None, "")),
    ],
)
def test_values_are_one_message_of_plain_types(data, expected):
    assert read(data) == expected


def test_depth_counts_objects_and_lists():
    check({"a": [{"b": "deep"}]}, depth=3)
    with pytest.raises(ValueError, match="deeper"):
        check({"a": [{"b": "deep"}]}, depth=2)
