"""What can be known to go wrong with sampling beside learning before a run spends anything."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from assay.asynchronous.settings_pickle import sendable_tasks
from assay.core.errors import ConfigError, MissingExtraError
from assay.runtime.engine.settings import Auto, EngineSpec, ModelEngineSpec, ServerEngineSpec

if TYPE_CHECKING:
    from assay.asynchronous.settings import Asynchronous
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run
    from assay.train.stage import Stage

__all__ = ["check_asynchronous", "own_engine"]


def own_engine(run: Run, stage: Stage) -> EngineSpec:
    """What evaluates in the run's own process: the run's engine, but where samplers have a server beside learning, one in this
    process, so that evaluations neither wait for rollouts nor change the weights under them.
    """
    return Auto() if stage.asynchronous is not None and isinstance(run.engine, ServerEngineSpec) else run.engine


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
    if isinstance(run.engine, ServerEngineSpec):
        _check_servers(run.engine, stage, settings)
    elif settings.servers:
        raise ConfigError(
            f"Asynchronous.servers={settings.servers}: Run.engine={run.engine} asks no server; use VllmSettings(), or leave "
            "it out"
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
    if settings.runtime == "ray" and find_spec("ray") is None:  # said now, not after a folder was made
        raise MissingExtraError("ray", "ray")
    sendable_tasks(run.tasks)


def _check_servers(engine: ServerEngineSpec, stage: Reinforce, settings: Asynchronous) -> None:
    """Every sampler has a server of its own, whose weights it alone changes."""
    if len(set(settings.servers)) < len(settings.servers) or max(1, len(settings.servers)) != settings.samplers:
        raise ConfigError(
            f"Asynchronous.samplers={settings.samplers} with servers={settings.servers}: each sampler changes the weights of a "
            "server of its own, so name as many different addresses as samplers; without servers one sampler uses that of "
            "Run.engine"
        )
    if stage.learner.adapter is not None:
        raise ConfigError(
            f"Reinforce.asynchronous with {type(engine).__name__} sends servers whole models, and this stage trains an adapter: "
            "train all weights, use InProcess(), or leave Reinforce.asynchronous out"
        )
