"""Torch's threads are told to sleep while they wait, whoever loads it, and no environment is edited for it."""

import os
import subprocess
import sys

import pytest

from assay.core.errors import MissingExtraError
from assay.core.util import threads

FIRST = """
import os, warnings
warnings.simplefilter("error")
from assay.runtime import NativeEngine
from assay.runtime.machine import set_threads
assert set_threads(2) == 2
assert "OMP_WAIT_POLICY" not in os.environ
"""
LATE = """
import warnings
import torch
torch.set_num_threads(2)
from assay.runtime import machine
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    machine.calm()
    machine.set_threads(2)
assert torch.get_num_threads() == 1
assert [str(w.message)[:25] for w in said] == ["one thread instead of 2: "], said
machine.calm()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("code", "spins"), [(FIRST, False), (LATE, True)])
def test_what_openmp_was_told(code, spins):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")} | {"OMP_DISPLAY_ENV": "VERBOSE"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = [line.split("=")[1].strip(" '") for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line]
    assert [int(count) > 0 for count in told] == [spins]


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.delenv(threads.POLICY, raising=False)
    monkeypatch.setattr(threads, "_told", [False])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with threads.sleeping():
        assert os.environ[threads.POLICY] == "PASSIVE" and threads.policy_known()
        with threads.sleeping():
            assert os.environ[threads.POLICY] == "PASSIVE"
    assert threads.POLICY not in os.environ and not threads.policy_known()
    with pytest.raises(ValueError, match="no"), threads.sleeping():
        monkeypatch.setitem(sys.modules, "torch", object())
        raise ValueError("no")
    assert threads.POLICY not in os.environ and threads.policy_known()
    threads._told[0] = False
    with threads.sleeping():  # somebody loaded torch before
        assert threads.POLICY not in os.environ
    assert not threads.policy_known()
    monkeypatch.setenv(threads.POLICY, "ACTIVE")
    threads.sleeping_waits()
    with threads.sleeping():
        assert os.environ[threads.POLICY] == "ACTIVE"
    assert os.environ[threads.POLICY] == "ACTIVE" and threads.policy_known()


@pytest.mark.parametrize(("module", "error"), (("torch", MissingExtraError), ("mine", ModuleNotFoundError)))
def test_what_is_not_installed_is_named_with_its_extra(module, error, monkeypatch):
    def lacks(name):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(threads, "import_module", lacks)
    with pytest.raises(error, match=module):
        threads.with_torch("assay.runtime.machine")
