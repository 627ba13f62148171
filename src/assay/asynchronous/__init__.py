"""Sampling beside learning: a ledger of groups, and samplers elsewhere that work on them.

`Ledger` says which groups are wanted, who samples them, and which a step learns from; `RolloutQueue` keeps their rollouts;
`Samplers` looks after the processes; `AcceptedLog` is the account from which a run goes on and is replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.asynchronous.accepted_log import AcceptedLog, LogEnded, Taken
    from assay.asynchronous.history import check_history
    from assay.asynchronous.ledger import Ledger
    from assay.asynchronous.ledger_records import Ack, AgePolicy, Entry, Event, GroupState, Lease
    from assay.asynchronous.messages import (
        Beat,
        Ended,
        Failed,
        NewWeights,
        SampledGroup,
        SampleGroup,
        SamplerSettings,
        Serving,
        Weights,
    )
    from assay.asynchronous.rollout_queue import Order, RolloutQueue
    from assay.asynchronous.runtimes import spawner_of
    from assay.asynchronous.samplers import Controller, Samplers
    from assay.asynchronous.settings import Asynchronous
    from assay.asynchronous.simulation import Cluster, SimulatedRun, drawn_from, lognormal_lengths, simulate_run
    from assay.asynchronous.spawner import SamplerHandle, Spawner

__all__ = [
    "AcceptedLog",
    "Ack",
    "AgePolicy",
    "Asynchronous",
    "Beat",
    "Cluster",
    "Controller",
    "Ended",
    "Entry",
    "Event",
    "Failed",
    "GroupState",
    "Lease",
    "Ledger",
    "LogEnded",
    "NewWeights",
    "Order",
    "RolloutQueue",
    "SampleGroup",
    "SampledGroup",
    "SamplerHandle",
    "SamplerSettings",
    "Samplers",
    "Serving",
    "SimulatedRun",
    "Spawner",
    "Taken",
    "Weights",
    "check_history",
    "drawn_from",
    "lognormal_lengths",
    "simulate_run",
    "spawner_of",
]

_HOME = {
    "accepted_log": "AcceptedLog LogEnded Taken",
    "history": "check_history",
    "ledger": "Ledger",
    "ledger_records": "Ack AgePolicy Entry Event GroupState Lease",
    "messages": "Beat Ended Failed NewWeights SampleGroup SampledGroup SamplerSettings Serving Weights",
    "rollout_queue": "Order RolloutQueue",
    "samplers": "Controller Samplers",
    "settings": "Asynchronous",
    "runtimes": "spawner_of",
    "simulation": "Cluster SimulatedRun drawn_from lognormal_lengths simulate_run",
    "spawner": "SamplerHandle Spawner",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
