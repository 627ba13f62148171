"""The processes of a learner on several ranks: started, lost, refused, ended."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch
import torch.distributed as dist
from mesh_cases import BASE, CASES, made, odd

from assay.core.errors import ConfigError, DataError, RankError
from assay.core.rollout import ids_of
from assay.runtime import LearnerSettings, Mesh, MeshLearner, Muon, ValueHead
from assay.runtime.distributed.mesh import build_learner
from assay.runtime.learner.learner import TorchLearner
from assay.train.mismatch import TokenObserver


@pytest.mark.slow
def test_a_learner_of_processes_lives_until_one_is_lost() -> None:
    """In a process of its own: PyTorch remembers which rank a process was, and what that forks inherits it."""
    process = get_context("fork").Process(target=lived)
    process.start()
    process.join()
    assert process.exitcode == 0


def lived() -> None:
    torch.set_num_threads(1)
    settings, (alone, program, batch) = CASES["grpo"].settings, made(CASES["grpo"], None)
    learner = MeshLearner(odd(), settings, total_steps=4, mesh=Mesh(data=2))
    try:
        seen = [TokenObserver(-1), TokenObserver(-1)]
        wanted, found = (
            who.step(batch, program.plan, program, by).metrics for who, by in zip((alone, learner), seen, strict=True)
        )
        here = seen[0].metrics()
        assert here["engine/mismatch_abs"] > 0.1 and seen[1].metrics() == pytest.approx(here, rel=1e-3), "of all ranks' rows"
        assert found["grad/norm"] == pytest.approx(wanted["grad/norm"], rel=1e-4) and learner.version == alone.version == 1
        theirs, mine = learner.model().tensors, alone.model().tensors
        assert all(np.allclose(theirs[n], mine[n], atol=2e-6) for n in mine) and learner.native
        with pytest.raises(ConfigError, match="already"):
            MeshLearner(odd(), settings, total_steps=4, mesh=Mesh(data=2))
        with pytest.raises(ConfigError, match="score cannot go to other processes"):
            learner.score([lambda: None])  # type: ignore[list-item]
        digest = learner.state_digest()
        (other,) = learner._others
        os.kill(other._process.pid, signal.SIGKILL)
        with pytest.raises(RankError, match=rf"rank 1 \(process {other._process.pid}\) was killed by signal 9"):
            learner.step(batch, program.plan, program)
        assert digest and not dist.is_initialized()
        with pytest.raises(RankError, match="this learner has ended"):
            learner.publish()
    finally:
        learner.close()
    assert not learner._folder.exists() and other._process.returncode == -signal.SIGKILL


@pytest.mark.prove
@pytest.mark.parametrize("wrong", [0, -1], ids=["the first row", "the last row"])
def test_rows_that_one_rank_refuses_are_refused_by_name(wrong: int) -> None:
    process = get_context("fork").Process(target=too_long, args=(wrong,))
    process.start()
    process.join()
    assert process.exitcode == 0


def too_long(wrong: int) -> None:
    """A row with an id beyond the vocabulary lies on one of the ranks."""
    torch.set_num_threads(1)
    learner = MeshLearner(odd(), replace(BASE, micro_tokens=8), total_steps=4, mesh=Mesh(data=2))
    rows = [ids_of(range(n)) for n in (4, 5, 6, 7)]
    rows[wrong] = ids_of([3, 99, *rows[wrong][2:]])
    with pytest.raises(DataError, match=r"token ids reach from .* to 99, the model's vocabulary has 33"):
        learner.score(rows)
    assert not dist.is_initialized() and not learner._others


def test_a_rank_that_cannot_start_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RankError, match=r"rank 1 \(process \d+\) ended with status 1"):
        MeshLearner(odd(), BASE, total_steps=1, mesh=Mesh(data=2))


def test_what_cannot_be_shared_is_refused_before_a_process_starts() -> None:
    with pytest.raises(ConfigError, match=r"Muon steps whole matrices.*use AdamW\(\)"):
        MeshLearner(odd(), replace(BASE, optimizer=Muon()), total_steps=1, mesh=Mesh(data=2))
    with pytest.raises(ConfigError, match=r"Run.mesh.context=2 with heads \(values\)"):
        MeshLearner(odd(), replace(BASE, heads=(ValueHead(),)), total_steps=1, mesh=Mesh(context=2))
    with pytest.raises(ConfigError, match=r"Mesh.data=0"):
        Mesh(data=0)
    with pytest.raises(ConfigError, match=r"Mesh.timeout=0.0 s"):
        Mesh(timeout=0.0)


def test_one_rank_is_this_process_alone() -> None:
    assert isinstance(build_learner(odd(), LearnerSettings(), total_steps=1, mesh=Mesh()), TorchLearner)
