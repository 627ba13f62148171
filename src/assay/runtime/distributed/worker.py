"""A rank: a learner that does what the others do. `main` is the process of one, started by `assay.runtime.distributed.mesh`."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import AssayError, RankError
from assay.core.rollout import Ids

if TYPE_CHECKING:
    from assay.core.batch import Batch
    from assay.core.plan import Plan
    from assay.core.protocols import LossProgram, PassObserver, PerturbsWeights, Stats
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.learner.learner import TorchLearner
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.settings import LearnerSettings, Mesh

__all__ = ["RankWorker", "WorkerSettings", "main"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a process needs to become a rank.

    Attributes:
        rank, mesh: which of how many.
        folder: where the ranks meet, and where models lie: ``policy``, and ``others/0``, ``others/1``, ...
        threads: of torch.
        settings, total_steps, version: the learner's.
        models: names of the others, in their order.
    """

    rank: int
    mesh: Mesh
    folder: Path
    threads: int
    settings: LearnerSettings
    total_steps: int
    version: int
    models: tuple[str, ...]


class RankWorker:
    """One process's share of a learner, called by name.

    Args:
        orders: which rank, and what learner.
    """

    def __init__(self, orders: WorkerSettings) -> None:
        import torch

        from assay.runtime.learner.learner import TorchLearner
        from assay.runtime.models.hf import load_model

        if torch.get_num_threads() != orders.threads:
            torch.set_num_threads(orders.threads)
        self._ranks: Collectives = _enter(orders)
        others: dict[str, AnyModel] = {
            name: load_model(orders.folder / "others" / str(i)) for i, name in enumerate(orders.models)
        }
        self.learner: TorchLearner = TorchLearner(
            load_model(orders.folder / "policy"),
            orders.settings,
            total_steps=orders.total_steps,
            models=others,
            version=orders.version,
            ranks=self._ranks,
        )
        self._open: ExitStack = ExitStack()
        self._perturbed: PerturbsWeights | None = None

    def call(self, name: str, given: Sequence[Any]) -> Any:
        """What the learner's method of that name gives; perturbed weights, which last, are three calls."""
        return getattr(self if name in ("step", "open_perturbed", "effects", "close_perturbed") else self.learner, name)(*given)

    def step(self, batch: Batch, plan: Plan, loss: LossProgram, observer: PassObserver | None = None, rate: float = 1.0) -> Stats:
        """The learner's; an observer hears what the other ranks' were shown."""
        stats = self.learner.step(batch, plan, loss, observer, rate)
        if observer is not None:
            observer.exchange(self._ranks.reduce, self._ranks.counts)
        return stats

    def open_perturbed(self, dtype: str) -> PerturbsWeights:
        """Puts perturbed weights into the policy."""
        self._perturbed = self._open.enter_context(self.learner.perturbed_weights(dtype))
        return self._perturbed

    def effects(self, rows: Sequence[Ids]) -> dict[str, NDArray[np.float32]]:
        """Within one, as `assay.core.protocols.PerturbsWeights`."""
        assert self._perturbed is not None
        return dict(self._perturbed.effects(rows))

    def close_perturbed(self) -> None:
        """Ends it."""
        self._open.close()


def _enter(orders: WorkerSettings) -> Collectives:
    """Enters the default process group: gloo, and NCCL besides for what lies on CUDA devices, one for each rank."""
    import torch
    import torch.distributed as dist

    from assay.runtime.distributed.collectives import Collectives, shared_by

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine
    on_cuda = orders.settings.device != "cpu" and torch.cuda.is_available()
    if on_cuda:
        torch.cuda.set_device(orders.rank)
    store = dist.FileStore(str(orders.folder / "store"), orders.mesh.size)  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if on_cuda else "gloo",
        store=store,
        rank=orders.rank,
        world_size=orders.mesh.size,
        timeout=timedelta(seconds=orders.mesh.timeout),
    )
    return Collectives(share=shared_by(orders.mesh.context))


def main(descriptor: int, parent: int = 0) -> None:
    """Does the calls that come over a socket, one after another, and answers each with None or with what went wrong, which ends
    the process: the other ranks' connections to it break, so that none waits for it.

    Args:
        descriptor: of the socket.
        parent: process that this one does not outlive; 0 where that is the one at the socket's other end.
    """
    # They reach all processes of a terminal, or of a job that is preempted; rank 0 decides what they mean.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    if parent:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with Connection(descriptor) as line:
        try:
            sys.path[:] = pickle.loads(line.recv_bytes())
            orders = pickle.loads(line.recv_bytes())
            import_module("assay.runtime.learner.learner")  # the seconds that a start takes
            line.send_bytes(pickle.dumps(None))
            member = RankWorker(orders)
            line.send_bytes(pickle.dumps(None))
            while True:
                name, given = pickle.loads(line.recv_bytes())
                member.call(name, given)
                line.send_bytes(pickle.dumps(None))
        except EOFError:  # rank 0 has ended
            os._exit(0)
        except Exception as error:
            line.send_bytes(_pickle_error(error))
            line.close()
            os._exit(1)


def _end_with(parent: int) -> None:
    """Ends this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _pickle_error(error: Exception) -> bytes:
    """An error as rank 0 reads it; of another's library its text alone."""
    if isinstance(error, AssayError):
        try:
            data = pickle.dumps(error)
            pickle.loads(data)
            return data
        except Exception:  # an error with a signature of its own
            return pickle.dumps(RankError(f"{type(error).__name__}: {error}"))
    return pickle.dumps(RankError(f"a rank failed: {type(error).__name__}: {str(error).strip()[:500]}"))
