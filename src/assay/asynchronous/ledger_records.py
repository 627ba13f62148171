"""What a ledger says: states, leases, entries and events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["WAITING", "PutResult", "AgePolicy", "LedgerEntry", "LedgerEvent", "GroupState", "Lease"]


class AgePolicy(StrEnum):
    """Which groups a step takes.

    ``wait``: in the order in which they were admitted. No bias; a step waits for the slowest of its groups.

    ``continue``: those that are done first, and before them those for which later steps have no room. A step waits only for the
    latter. Short rollouts are learned from earlier than long ones.

    ``drop``: those that are done first; one that is too old is thrown away and counted. A step never waits at the bound. Long
    rollouts are missing more often than short ones.
    """

    WAIT = "wait"
    CONTINUE = "continue"
    DROP = "drop"


class GroupState(StrEnum):
    """Where a group is."""

    OPEN = "open"
    LEASED = "leased"
    DONE = "done"
    TAKEN = "taken"
    DROPPED = "dropped"


WAITING = (GroupState.OPEN, GroupState.LEASED, GroupState.DONE)


class PutResult(StrEnum):
    """What became of a group that a worker handed in."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class Lease:
    """A group that a worker is to sample."""

    number: int
    key: str
    worker: str
    epoch: int


@dataclass(slots=True)
class LedgerEntry:
    """A group, from its admission until the step that took it is saved.

    Attributes:
        key: of its context.
        number: how many groups were admitted before it.
        due: the last step that may take it, counted in publications.
        state: where it is.
        lease: number of the lease under which it is sampled; -1 without one.
        oldest: publication that sampled its oldest token; -1 before it is done.
        order: how many groups were done before it; -1 before it is done.
    """

    key: str
    number: int
    due: int
    state: GroupState = GroupState.OPEN
    lease: int = -1
    oldest: int = -1
    order: int = -1


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One line of a history, which `assay.asynchronous.history.check_history` judges."""

    kind: str
    key: str = ""
    worker: str = ""
    epoch: int = 0
    lease: int = -1
    version: int = -1
    oldest: int = -1
