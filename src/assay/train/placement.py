"""Where the parts of a stage run that samples beside learning, and how busy they are to be expected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.asynchronous import Asynchronous, Cluster, lognormal_lengths, simulate_run
from assay.runtime.engine.settings import ServerEngineSpec
from assay.scorers import FromTasks
from assay.verify.abilities import abilities_of

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run

__all__ = ["describe_placement"]

_STEPS, _SPREAD = 8, 0.8


def describe_placement(run: Run, stage: Reinforce) -> dict[str, str]:
    """What runs where, by part; nothing for a stage that samples in the run's own process.

    Args:
        run: settings.
        stage: of the run.
    """
    settings = stage.asynchronous
    if settings is None:
        return {}
    ranks = run.mesh.size
    learner = f"{ranks} processes of this machine share it, {_threads(run.threads)} each" if ranks > 1 else "this process"
    trusted = abilities_of(run.tasks.verifier()).trusted
    judged = "this process, in a thread" if trusted else f"up to {run.reward_workers} worker processes of this machine"
    return {
        "learner": f"{learner}; evaluations too",
        "samplers": _samplers(run, stage, settings),
        "environments": "with the samplers",
        "rewards": f"{judged}, as groups arrive" if isinstance(stage.reward, FromTasks) else "when a step takes its groups",
        "weights": _weights(run, settings),
        "expected": _describe_shares(stage, settings),
    }


def _samplers(run: Run, stage: Reinforce, settings: Asynchronous) -> str:
    share = settings.batch or -(-stage.groups // settings.samplers)
    at_once = f"{share} groups at a time each"
    if isinstance(run.engine, ServerEngineSpec):
        where = ", ".join(settings.servers) or "the engine's address"
        return f"{settings.samplers} on servers ({where}), {at_once}"
    if settings.runtime == "ray":
        gpu = " and a GPU" if stage.learner.device == "cuda" else ""
        return f"{settings.samplers} actors that Ray spreads over its machines, {settings.threads} CPUs{gpu} each, {at_once}"
    return f"{settings.samplers} processes of this machine, {_threads(settings.threads)} each, {at_once}"


def _threads(n: int) -> str:
    return f"{n} thread" if n == 1 else f"{n} threads"


def _weights(run: Run, settings: Asynchronous) -> str:
    how = {"process": "shared memory", "ray": "Ray's object store"}[settings.runtime]
    if isinstance(run.engine, ServerEngineSpec):
        how += ", and from there files or NCCL as the engine says"
    if settings.updates == "delta":
        return f"what changed, with the messages; once in {settings.full_every} times all of them, through {how}"
    return f"all of them after every step, through {how}"


def _describe_shares(stage: Reinforce, settings: Asynchronous) -> str:
    """Shares of time that samplers and learner work, by the simulator, where neither is faster than the other."""
    cluster = Cluster(
        engines=settings.samplers,
        groups=stage.groups,
        group_size=stage.group_size,
        eta=0,
        policy=settings.policy,
        batch=settings.batch,
        step_seconds=1.0,
        sequence_seconds=0.0,
        train_tokens_per_second=1e12,
    )
    lengths = lognormal_lengths(100.0, _SPREAD, 1000)
    alone = simulate_run(cluster, lengths, _STEPS)
    equal = replace(cluster, train_tokens_per_second=alone.tokens / alone.seconds)
    here, there = (simulate_run(replace(equal, eta=eta), lengths, _STEPS) for eta in (settings.eta, 0))
    return (
        f"samplers at work {100 * here.sampling:.0f} % and learner {100 * here.learning:.0f} % of the time, "
        f"{there.seconds / here.seconds:.2f} times the steps of eta=0: simulated, where sampling a step takes as long as "
        "learning from it and lengths of answers are log-normal; 'assay simulate' takes other numbers"
    )
