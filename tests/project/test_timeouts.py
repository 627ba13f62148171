"""No test can hang the suite: each has a time limit, after which it fails with the stacks of its threads."""

import subprocess
import sys

import pytest

HANGS = """
import threading

def test_waits_for_a_lock_that_nobody_gives_back():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def test_after_it():
    pass
"""

OPTIONS = ("-o", "timeout=1", "-o", "timeout_method=signal")


@pytest.mark.slow
def test_a_test_that_hangs_fails_with_its_stack_and_the_next_one_runs(tmp_path):
    (tmp_path / "test_hangs.py").write_text(HANGS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", *OPTIONS, "test_hangs.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    told = done.stdout + done.stderr
    assert "Timeout" in told and "lock.acquire()" in told
    assert "1 failed, 1 passed" in done.stdout


def test_each_test_has_a_limit(request):
    assert float(request.config.getini("timeout")) == 300
    assert request.config.getini("timeout_method") == "signal"


def test_proofs_and_studies_have_more(pytestconfig):
    (limits,) = (plugin.TIMEOUTS for plugin in pytestconfig.pluginmanager.get_plugins() if hasattr(plugin, "TIMEOUTS"))
    assert set(limits) == {"prove", "gpu", "vllm", "evidence"}
    assert min(limits.values()) > float(pytestconfig.getini("timeout"))
