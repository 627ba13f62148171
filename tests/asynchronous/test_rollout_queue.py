"""The queue between samplers and learner."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from assay.asynchronous import AcceptedLog, GroupRequest, Ledger, LogEndError, RolloutQueue
from assay.core.errors import StorageError
from assay.core.manifest import manifest_of
from assay.core.rollout import Sampling
from assay.core.task import Context
from assay.core.util.event_loop import run_async
from assay_tasks import SortDigits

TASK = SortDigits(levels=(1,)).task("sort", 1, "train", 0).public_view()


def order(key: str) -> GroupRequest:
    return GroupRequest(context=Context(key=key, group=key, task=TASK, messages=()), n=1, sampling=Sampling(), max_turns=1)


def queue(folder: Path, eta: int = 1) -> RolloutQueue:
    return RolloutQueue(Ledger(eta), AcceptedLog(folder))


def publish(q: RolloutQueue, version: int) -> None:
    q.publish(manifest_of(version, {"w": np.full(2, version, np.float32)}))


def test_a_sampler_that_was_not_sent_the_newest_weights_gets_no_group(tmp_path: Path) -> None:
    """A group that is admitted at a version and sampled by older weights would be too old at the last step that may take it."""
    q = queue(tmp_path)
    q.join("a")
    publish(q, 10)
    q.admit([order("g0")])
    assert [s.lease.key for s in q.lease("a", 10, 4)] == ["g0"]
    publish(q, 11)
    q.admit([order("g1")])
    assert q.lease("a", 10, 4) == []
    assert [s.lease.key for s in q.lease("a", 11, 4)] == ["g1"]


def test_what_a_checkpoint_holds_goes_before_its_log(tmp_path: Path) -> None:
    q = queue(tmp_path)
    q.join("a")
    publish(q, 0)
    q.admit([order("g0"), order("g1")])
    for sample in q.lease("a", 0, 2):
        assert q.put(sample.lease, ())
    state = q.state_dict(5)
    q.close()
    log = AcceptedLog(tmp_path)
    log.read(5)
    log.write_accepted("g0", 0, ())  # as a log says that was begun before its checkpoint
    log.close()
    again = queue(tmp_path)
    again.load_state_dict(state, [order("g0"), order("g1")])
    publish(again, 0)
    assert again.missing(1) == 0  # of two that may wait, both do


def test_a_replay_ends_with_its_log(tmp_path: Path) -> None:
    q = queue(tmp_path)
    publish(q, 0)
    q.admit([order("g0")])
    with pytest.raises(LogEndError, match="ends at publication 0"):
        run_async(q.take(1))


def test_an_error_of_those_who_look_after_samplers_is_the_run_s(tmp_path: Path) -> None:
    class Nobody:
        def wake(self) -> None: ...

        def publish(self, manifest: object, controller: RolloutQueue, learned: object = ()) -> None:
            controller.fail(ValueError("no samplers"))

        def close(self) -> None: ...

    q = RolloutQueue(Ledger(0), AcceptedLog(tmp_path), Nobody())  # type: ignore[arg-type]
    publish(q, 0)
    q.admit([order("g0")])
    with pytest.raises(ValueError, match="no samplers"):
        run_async(q.take(1))
    assert q.counts() == {} and q.missing(1) == 0
    q.close()


def test_a_run_that_is_stopped_while_it_waits_ends(tmp_path: Path) -> None:
    class Silent:
        def wake(self) -> None: ...

        def publish(self, manifest: object, controller: RolloutQueue, learned: object = ()) -> None: ...

        def close(self) -> None: ...

    q = RolloutQueue(Ledger(0), AcceptedLog(tmp_path), Silent())  # type: ignore[arg-type]
    publish(q, 0)
    q.admit([order("g0")])

    async def stopped() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(q.take(1), 0.05)

    asyncio.run(stopped())  # joins the thread that waited, so it would hang here
    q.close()


def test_a_group_that_the_log_does_not_have_is_taken_by_no_step_and_saved_by_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a resume or a replay would look for it in the log: step and checkpoint end with the error of the disk."""

    class Silent:
        def wake(self) -> None: ...

        def publish(self, manifest: object, controller: RolloutQueue, learned: object = ()) -> None: ...

        def close(self) -> None: ...

    def full(self: AcceptedLog, record: object) -> None:
        raise StorageError("no space left on device")

    q = RolloutQueue(Ledger(0), AcceptedLog(tmp_path), Silent())  # type: ignore[arg-type]
    q.join("a")
    publish(q, 0)
    q.admit([order("g0")])
    (sample,) = q.lease("a", 0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(AcceptedLog, "_write", full)
        with pytest.raises(StorageError):
            q.put(sample.lease, ())
    with pytest.raises(StorageError, match="no space left"):
        run_async(q.take(1))
    with pytest.raises(StorageError, match="no space left"):
        q.state_dict(1)
    q.close()
