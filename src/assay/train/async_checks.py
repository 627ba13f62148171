"""What can be known to go wrong with sampling beside learning before a run spends anything."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from assay.asynchronous.settings_pickle import sendable_tasks
from assay.core.errors import ConfigError, MissingExtraError
from assay.runtime.engine.settings import ModelEngineSpec

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run

__all__ = ["check_asynchronous"]


def check_asynchronous(run: Run, stage: Reinforce) -> None:
    """Looks at ``Reinforce.asynchronous``.

    Raises:
        ConfigError: another setting asks for what sampler processes cannot give; with a fix.
        MissingExtraError: Ray is asked for and not installed.
    """
    settings = stage.asynchronous
    if settings is None:
        return
    if stage.lag:
        raise ConfigError(
            f"Reinforce.lag={stage.lag} and Reinforce.asynchronous both sample with older weights: the former in one process and "
            "with a fixed age, the latter beside learning; use one of them"
        )
    if not isinstance(run.engine, ModelEngineSpec):
        raise ConfigError(
            f"Reinforce.asynchronous: Run.engine={run.engine} cannot serve a model in a sampler process; use Auto(), Native() or "
            "InProcess(), or leave Reinforce.asynchronous out"
        )
    if stage.screen is not None:
        raise ConfigError(
            f"Reinforce.screen={stage.screen} looks at the newest policy's answers before it samples, and Reinforce.asynchronous "
            "samples beside learning: leave one of them out"
        )
    if run.mesh.size > 1:
        raise ConfigError(
            f"Reinforce.asynchronous: Run.mesh has {run.mesh.size} processes that share the learner, and sampler processes take "
            "weights from one; use Mesh(), or leave Reinforce.asynchronous out"
        )
    if settings.runtime == "ray" and find_spec("ray") is None:  # said now, not after a folder was made
        raise MissingExtraError("ray", "ray")
    sendable_tasks(run.tasks)
