"""One thread, and a sentence, where torch was imported before its threads were told how to wait."""

import pytest
import torch

from assay.runtime import machine


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_threads_as_asked_where_the_policy_is_known(threads, monkeypatch):
    monkeypatch.setattr(machine, "_POLICY_KNOWN", True)
    assert machine.set_threads(2) == 2
    assert machine.fingerprint(2)["threads"] == "2"


def test_one_thread_and_a_sentence_where_it_is_not(threads, monkeypatch):
    monkeypatch.setattr(machine, "_POLICY_KNOWN", False)
    monkeypatch.setattr(machine, "_said", set())
    with pytest.warns(RuntimeWarning, match="one thread instead of 2: torch was imported before OMP_WAIT_POLICY was set"):
        assert machine.set_threads(2) == 1
    assert machine.fingerprint(2)["threads"] == "1"
    assert machine.set_threads(1) == 1
