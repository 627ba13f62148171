"""A learner on several ranks: this process is rank 0, the others do what it does."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import AssayError, ConfigError, RankError
from assay.core.manifest import Manifest
from assay.core.plan import Forward, Plan
from assay.core.protocols import LossProgram, PassObserver, PerturbsWeights, Stats
from assay.core.rollout import Ids
from assay.core.util.owned_folder import OwnedFolder
from assay.runtime.distributed.launch import current_meeting
from assay.runtime.distributed.rank_process import FAREWELL, RankProcess, begin_rank
from assay.runtime.distributed.worker import RankWorker, WorkerSettings
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.model import Model
from assay.runtime.settings import LearnerSettings, Mesh

if TYPE_CHECKING:
    from assay.runtime.learner.causal import Causal
    from assay.runtime.learner.heads import Heads, Kept
    from assay.runtime.models.hub_model import HubModel

__all__ = ["AnyLearner", "MeshLearner", "build_learner"]

T = TypeVar("T")


class MeshLearner:
    """A learner whose weights and work are shared by several processes; implements `assay.core.protocols.Learner`.

    This process is rank 0 and computes too. Each call goes to all ranks, with whatever it was given; what it gives is rank 0's.
    An error on one rank ends the learner: what was saved before can be loaded by a new one, on as many ranks or on others.

    Args:
        model, settings, total_steps, models, version: as of `TorchLearner`.
        mesh: how many ranks.
        threads: of torch in each process.

    Raises:
        ConfigError: settings that parts of weights cannot be stepped by, fewer devices than ranks, or a process group that is
            there already.
        RankError: a process did not start.

    Carries: HybridFlow (arXiv 2409.19256), in part.
    """

    def __init__(
        self,
        model: Model | HubModel,
        settings: LearnerSettings,
        *,
        total_steps: int,
        mesh: Mesh,
        models: Mapping[str, Model | HubModel] | None = None,
        version: int = 0,
        threads: int = 1,
    ) -> None:
        check_mesh(mesh, settings)
        self._own_folder = OwnedFolder("assay-ranks-")
        self._folder = self._own_folder.path
        self._others: list[RankProcess] = []
        self._ended = ""
        try:
            _lay_out(self._folder, model, models or {})
            own = WorkerSettings(
                rank=0,
                mesh=mesh,
                folder=self._folder,
                threads=threads,
                settings=settings,
                total_steps=total_steps,
                version=version,
                models=tuple(models or {}),
            )
            for rank in range(1, mesh.size):
                self._others.append(begin_rank(replace(own, rank=rank)))
            self._all(lambda: None)  # all have started: who waits for one that has not waits long
            self._own = self._all(lambda: RankWorker(own))
        except BaseException:
            self.close()
            raise

    # ---- the protocol

    def annotate(self, batch: Batch, forward: Forward, *more: Forward) -> Batch:
        """As `TorchLearner.annotate`."""
        return self._call("annotate", batch, forward, *more)

    def step(self, batch: Batch, plan: Plan, loss: LossProgram, observer: PassObserver | None = None, rate: float = 1.0) -> Stats:
        """As `TorchLearner.step`; but an error leaves no learner, and ``observer`` hears what all ranks observed.

        Raises:
            PlanError, NonFiniteError, DataError: as there.
            RankError: a rank ended, or did not answer in time.
        """
        return self._call("step", batch, plan, loss, observer, rate)

    def skip(self, updates: int) -> None:
        """As `TorchLearner.skip`."""
        self._call("skip", updates)

    def score(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """As `TorchLearner.score`."""
        return self._call("score", rows, model)

    def publish(self, dtype: str = "float32", digests: str = "blake2b") -> Manifest:
        """As `TorchLearner.publish`."""
        return self._call("publish", dtype, digests)

    @contextmanager
    def perturbed_weights(self, dtype: str = "float32") -> Generator[PerturbsWeights]:
        """As `TorchLearner.perturbed_weights`."""
        made = cast(PerturbsWeights, self._call("open_perturbed", dtype))
        try:
            yield PerturbsWeights(manifest=made.manifest, effects=lambda rows: self._call("effects", rows))
        finally:
            self._call("close_perturbed")

    def state_digest(self) -> str:
        """As `TorchLearner.state_digest`: the same on however many ranks the same numbers lie."""
        return self._call("state_digest")

    def save(self, folder: Path) -> None:
        """As `TorchLearner.save`."""
        self._call("save", folder)

    def load(self, folder: Path) -> None:
        """As `TorchLearner.load`."""
        self._call("load", folder)

    # ---- what else a run asks

    @property
    def settings(self) -> LearnerSettings:
        """Of each rank."""
        return self._own.learner.settings

    @property
    def policy(self) -> Causal:
        """Rank 0's part."""
        return self._own.learner.policy

    @property
    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        """Rank 0's parts of what learns."""
        return self._own.learner.parameters

    @property
    def heads(self) -> Heads:
        """Critics, which are whole on every rank; also of a learner that was closed."""
        return self._own.learner.heads

    @property
    def version(self) -> int:
        """Updates done; also of a learner that was closed."""
        return self._own.learner.version

    def model(self) -> Model | HubModel:
        """As `TorchLearner.model`."""
        return self._call("model")

    @property
    def native(self) -> bool:
        """As `TorchLearner.native`."""
        return self._own.learner.native

    @property
    def replays_routing(self) -> bool:
        """As `TorchLearner.replays_routing`."""
        return self._own.learner.replays_routing

    @property
    def synchronize(self) -> Callable[[], None] | None:
        """As `TorchLearner.synchronize`, of rank 0's device."""
        return self._own.learner.synchronize

    def notes(self) -> list[tuple[str, str]]:
        """As `TorchLearner.notes`."""
        return self._own.learner.notes()

    def export_heads(self) -> Kept:
        """As `TorchLearner.kept`; critics are whole on every rank, and stay when the learner is closed."""
        return self._own.learner.export_heads()

    def load_heads(self, heads: Kept) -> None:
        """As `TorchLearner.carry`."""
        self._call("load_heads", heads)

    # ---- ranks

    def _call(self, name: str, *given: Any) -> Any:
        if self._ended:
            raise RankError(f"this learner has ended ({self._ended}); make a new one and load the last checkpoint")
        try:
            message = pickle.dumps((name, given), protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"{name} cannot go to other processes ({error}); define the parts of an objective at the top of a module, so "
                "that they can be pickled, or use Mesh()"
            ) from None

        def work() -> Any:
            for other in self._others:
                other.tell(message)
            return self._own.call(name, given)

        return self._all(work)

    def _all(self, work: Callable[[], T]) -> T:
        """What ``work`` gives here, once all others are done with the same."""
        try:
            found = work()
            for other in self._others:
                other.wait()
        except Exception as error:
            cause = self._cause(error)
            self.close(f"{type(cause).__name__}: {cause}")
            if cause is error:
                raise
            raise cause from error
        except BaseException:  # Ctrl-C: the ranks no longer do the same
            self.close("it was interrupted")
            raise
        return found

    def _cause(self, error: Exception) -> Exception:
        """What went wrong first: a rank that fails breaks its connections, and the others hear of no more than that."""
        if isinstance(error, AssayError) and not isinstance(error, RankError):
            return error
        deadline = time.monotonic() + FAREWELL
        told = [found for other in self._others if (found := other.farewell(deadline)) is not None]
        told.sort(key=lambda e: isinstance(e, RankError))  # of several the one that says more
        return told[0] if told else error

    def close(self, why: str = "it was closed") -> None:
        """Ends the other processes, and this one's part in the group."""
        self._ended = self._ended or why
        for other in self._others:
            other.hang_up()
        if dist.is_initialized():  # who waits for this rank hears that it left
            with suppress(RuntimeError):
                dist.destroy_process_group()
        for other in self._others:
            other.end()
        self._others = []
        self._own_folder.close()


def check_mesh(mesh: Mesh, settings: LearnerSettings) -> None:
    """Refuses what cannot be done on several ranks.

    Raises:
        ConfigError: an optimiser that needs whole matrices, fewer CUDA devices than ranks, or a process group of somebody else's.
    """
    mesh.check(settings)
    if (meeting := current_meeting()) is not None:
        meeting.check_size(mesh.size)
    on_cuda = settings.device != "cpu" and torch.cuda.is_available()
    if on_cuda and torch.cuda.device_count() < mesh.size:
        raise ConfigError(
            f"Run.mesh has {mesh.size} ranks, and PyTorch sees {torch.cuda.device_count()} CUDA devices; use at most as many"
        )
    if dist.is_initialized():
        raise ConfigError(
            "Run.mesh makes the process group of a run by itself, and this process belongs to one already (of your program, or "
            "of another learner that was not closed); destroy that first"
        )


def _lay_out(folder: Path, model: Model | HubModel, models: Mapping[str, Model | HubModel]) -> None:
    """Puts models where ranks read them."""
    from assay.runtime.models.hf import save_model

    for place, each in [("policy", model), *((f"others/{i}", m) for i, m in enumerate(models.values()))]:
        (folder / place).mkdir(parents=True)
        save_model(each, folder / place)


AnyLearner = TorchLearner | MeshLearner
"""A learner in this process alone, or on several ranks."""


def build_learner(
    model: Model | HubModel,
    settings: LearnerSettings,
    *,
    total_steps: int,
    mesh: Mesh,
    models: Mapping[str, Model | HubModel] | None = None,
    version: int = 0,
    threads: int = 1,
) -> AnyLearner:
    """A learner on as many ranks as ``mesh`` says; arguments and errors as of `MeshLearner`."""
    if mesh.size == 1:
        return TorchLearner(model, settings, total_steps=total_steps, models=models, version=version)
    return MeshLearner(model, settings, total_steps=total_steps, mesh=mesh, models=models, version=version, threads=threads)
