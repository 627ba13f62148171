"""Sampling beside learning: a ledger of groups, and samplers elsewhere that work on them.

`Ledger` says which groups are wanted, who samples them, and which a step learns from; `RolloutQueue` keeps their rollouts;
`Samplers` looks after the processes; `AcceptedLog` is the account from which a run goes on and is replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.asynchronous.accepted_log import AcceptedLog, LogEndError, StepGroups
    from assay.asynchronous.history import check_history
    from assay.asynchronous.ledger import Ledger
    from assay.asynchronous.ledger_records import AgePolicy, GroupState, Lease, LedgerEntry, LedgerEvent, PutResult
    from assay.asynchronous.messages import (
        Heartbeat,
        LeasedGroup,
        LoadedVersion,
        NeedsFullWeights,
        NewWeights,
        SampledGroup,
        SamplerEnd,
        SamplerFailure,
        SamplerSettings,
        Weights,
    )
    from assay.asynchronous.rollout_queue import GroupRequest, RolloutQueue
    from assay.asynchronous.runtimes import spawner_of, want_samplers, wanted_samplers
    from assay.asynchronous.samplers import Controller, Samplers
    from assay.asynchronous.settings import Asynchronous
    from assay.asynchronous.simulation import Cluster, SimulatedRun, lognormal_lengths, recorded_lengths, simulate_run
    from assay.asynchronous.spawner import SamplerHandle, Spawner
    from assay.asynchronous.weight_delta import DeltaEncoder, WeightDelta, apply_delta, encode_delta

__all__ = [
    "AcceptedLog",
    "AgePolicy",
    "Asynchronous",
    "Cluster",
    "Controller",
    "DeltaEncoder",
    "GroupRequest",
    "GroupState",
    "Heartbeat",
    "Lease",
    "LeasedGroup",
    "Ledger",
    "LedgerEntry",
    "LedgerEvent",
    "LoadedVersion",
    "LogEndError",
    "NeedsFullWeights",
    "NewWeights",
    "PutResult",
    "RolloutQueue",
    "SampledGroup",
    "SamplerEnd",
    "SamplerFailure",
    "SamplerHandle",
    "SamplerSettings",
    "Samplers",
    "SimulatedRun",
    "Spawner",
    "StepGroups",
    "WeightDelta",
    "Weights",
    "apply_delta",
    "check_history",
    "encode_delta",
    "lognormal_lengths",
    "recorded_lengths",
    "simulate_run",
    "spawner_of",
    "want_samplers",
    "wanted_samplers",
]

_HOME = {
    "accepted_log": "AcceptedLog LogEndError StepGroups",
    "history": "check_history",
    "ledger": "Ledger",
    "ledger_records": "PutResult AgePolicy LedgerEntry LedgerEvent GroupState Lease",
    "messages": "Heartbeat SamplerEnd SamplerFailure NeedsFullWeights NewWeights LeasedGroup SampledGroup SamplerSettings "
    "LoadedVersion Weights",
    "rollout_queue": "GroupRequest RolloutQueue",
    "samplers": "Controller Samplers",
    "settings": "Asynchronous",
    "runtimes": "spawner_of want_samplers wanted_samplers",
    "simulation": "Cluster SimulatedRun recorded_lengths lognormal_lengths simulate_run",
    "spawner": "SamplerHandle Spawner",
    "weight_delta": "DeltaEncoder WeightDelta apply_delta encode_delta",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
