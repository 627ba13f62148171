"""Which groups of rollouts are wanted, who samples them, and which a step learns from: nothing lost, nothing used twice.

The ledger is bookkeeping alone: it knows groups by their keys and holds no tokens, processes or clocks, so every order of
events can be tried on it. One owner calls it; it is not thread-safe.

An age is counted in publications of weights: a group is as old as the newest weights at its consumption less those that
sampled its oldest token. Groups are admitted for at most ``eta`` steps ahead, which bounds the age of those that are taken in
order; the other policies take groups as they are done, and the bound is held at consumption.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.asynchronous.ledger_records import WAITING, AgePolicy, GroupState, Lease, LedgerEntry, LedgerEvent, PutResult
from assay.core.errors import ConfigError, DataError

__all__ = ["Ledger"]


def _nobody(event: LedgerEvent) -> None:
    """Hears nothing."""


@dataclass(slots=True)
class Ledger:
    """Admits groups, leases them to workers, accepts them once, and gives them out once.

    Args:
        eta: greatest age at consumption, in publications; 0 for the newest weights alone.
        policy: which groups a step takes.
        tell: hears of each event.

    Raises:
        ConfigError: ``eta`` below 0.

    >>> ledger = Ledger(eta=1)
    >>> ledger.join("w0")
    0
    >>> ledger.admit(["a", "b"], version=0)
    >>> leases = ledger.lease("w0", version=0, most=2)
    >>> ledger.put(leases[1], oldest=0), ledger.put(leases[1], oldest=0)
    (<PutResult.ACCEPTED: 'accepted'>, <PutResult.DUPLICATE: 'duplicate'>)
    >>> ledger.take(1, version=0) is None  # 'a' comes first, and is not done
    True
    >>> _ = ledger.put(leases[0], oldest=0)
    >>> ledger.take(2, version=0)
    ('a', 'b')
    """

    eta: int
    policy: AgePolicy = AgePolicy.WAIT
    tell: Callable[[LedgerEvent], None] = _nobody
    entries: dict[str, LedgerEntry] = field(default_factory=dict[str, LedgerEntry])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    _epochs: dict[str, int] = field(default_factory=dict[str, int])
    _leases: dict[int, Lease] = field(default_factory=dict[int, Lease])
    _in: Counter[GroupState] = field(default_factory=Counter[GroupState])
    _open: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    _admitted: int = 0
    _next_lease: int = 0
    _next_order: int = 0

    def __post_init__(self) -> None:
        if self.eta < 0:
            raise ConfigError(f"eta={self.eta}; use 0 for samples of the newest weights alone, or the greatest age in steps")
        self.policy = AgePolicy(self.policy)

    # ---- what is wanted

    def admit(self, keys: Iterable[str], version: int, urgent: bool = False) -> None:
        """Groups to sample, in order.

        Args:
            keys: of the groups.
            version: of the newest weights, in publications.
            urgent: the present step needs them (`take_these`): they are leased before all others.

        Raises:
            DataError: a key that the ledger knows already.
        """
        for key in keys:
            if key in self.entries:
                raise DataError(f"group {key!r} was admitted twice; give each context a key of its own")
            self._add(LedgerEntry(key, self._admitted, due=version - 1 if urgent else version + self.eta))
            self.tell(LedgerEvent("admit", key, version=version))

    def _add(self, entry: LedgerEntry) -> None:
        self.entries[entry.key] = entry
        self._admitted = entry.number + 1
        self._in[entry.state] += 1
        self._note_open(entry)

    def _move(self, entry: LedgerEntry, state: GroupState) -> None:
        """Every change of a state goes through here, so that no question needs to look at all groups."""
        self._in[entry.state] -= 1
        self._in[state] += 1
        entry.state = state
        self._note_open(entry)

    def _note_open(self, entry: LedgerEntry) -> None:
        if entry.state is GroupState.OPEN:
            heapq.heappush(self._open, (entry.due, entry.number, entry.key))

    @property
    def waiting(self) -> int:
        """Groups that were admitted and neither taken nor dropped."""
        return sum(self._in[state] for state in WAITING)

    @property
    def open(self) -> int:
        """Groups that nobody samples yet."""
        return self._in[GroupState.OPEN]

    def keys_in(self, *states: GroupState) -> list[str]:
        """Of the groups in these states, in order of admission."""
        return [e.key for e in self.entries.values() if e.state in states]

    # ---- workers

    def join(self, worker: str) -> int:
        """A worker begins, for the first time or again: its epoch. What it was leased before is open again."""
        for key in [x.key for x in self._leases.values() if x.worker == worker]:
            self._reopen(self.entries[key])
        self._epochs[worker] = self._epochs.get(worker, -1) + 1
        self.tell(LedgerEvent("join", worker=worker, epoch=self._epochs[worker]))
        return self._epochs[worker]

    def fence(self, worker: str) -> list[str]:
        """Takes all leases of a worker that is gone, or may be: what it hands in from now on is refused. Their keys."""
        lost = [x.key for x in self._leases.values() if x.worker == worker]
        self.join(worker)
        return lost

    def lease(self, worker: str, version: int, most: int) -> list[Lease]:
        """The next groups for a worker, those that are due first in front.

        Args:
            worker: has joined.
            version: of the weights that it samples with at first.
            most: groups at most.
        """
        made: list[Lease] = []
        while self._open and len(made) < most:
            *_, key = heapq.heappop(self._open)  # due first; then admitted first
            entry = self.entries.get(key)
            if entry is None or entry.state is not GroupState.OPEN:
                continue
            lease = Lease(self._next_lease, entry.key, worker, self._epochs[worker])
            self._next_lease += 1
            self._move(entry, GroupState.LEASED)
            entry.lease = lease.number
            self._leases[lease.number] = lease
            made.append(lease)
            self.tell(LedgerEvent("lease", entry.key, worker, lease.epoch, lease.number, version))
        return made

    def put(self, lease: Lease, oldest: int) -> PutResult:
        """A worker hands in a group: counted once, whatever is sent again.

        Args:
            lease: under which it was sampled.
            oldest: publication of the weights that sampled its oldest token.
        """
        ack = self._judge(lease)
        self.tell(LedgerEvent(f"put-{ack}", lease.key, lease.worker, lease.epoch, lease.number, oldest=oldest))
        if ack is PutResult.ACCEPTED:
            self._accept(self.entries[lease.key], oldest)
            self._leases.pop(lease.number)
        else:
            self._count(ack)
        return ack

    def _judge(self, lease: Lease) -> PutResult:
        entry = self.entries.get(lease.key)
        if entry is None or entry.state in (GroupState.DONE, GroupState.TAKEN, GroupState.DROPPED):
            return PutResult.DUPLICATE
        if lease.epoch != self._epochs.get(lease.worker) or entry.lease != lease.number:
            return PutResult.FENCED
        return PutResult.ACCEPTED

    def _accept(self, entry: LedgerEntry, oldest: int) -> None:
        self._move(entry, GroupState.DONE)
        entry.lease, entry.oldest, entry.order = -1, oldest, self._next_order
        self._next_order += 1

    def restore(self, key: str, oldest: int) -> None:
        """A group that was accepted before this process began, as its log says.

        Raises:
            DataError: no such group waits.
        """
        entry = self.entries.get(key)
        if entry is None or entry.state not in (GroupState.OPEN, GroupState.LEASED):
            raise DataError(f"group {key!r} is in the log of accepted groups, and is not waited for")
        self._accept(entry, oldest)
        self.tell(LedgerEvent("restore", key, oldest=oldest))

    def _reopen(self, entry: LedgerEntry) -> None:
        self._leases.pop(entry.lease)
        entry.lease = -1
        self._move(entry, GroupState.OPEN)
        self._count("reopened")

    # ---- what a step learns from

    def drop_old(self, version: int) -> list[str]:
        """Throws away what is done and too old for a step with these newest weights: the keys; none under other policies."""
        if self.policy is not AgePolicy.DROP:
            return []
        old = [e.key for e in self.entries.values() if e.state is GroupState.DONE and version - e.oldest > self.eta]
        self._throw_away(old, version)
        return old

    def _throw_away(self, keys: Iterable[str], version: int) -> None:
        for key in keys:
            entry = self.entries[key]
            self._move(entry, GroupState.DROPPED)
            self._count("dropped")
            self.tell(LedgerEvent("drop", key, oldest=entry.oldest, version=version))

    def take(self, n: int, version: int) -> tuple[str, ...] | None:
        """Keys of the ``n`` groups that a step learns from; None where it has to wait.

        Args:
            n: groups.
            version: of the newest weights, in publications.
        """
        if self._in[GroupState.DONE] < n:
            return None
        waiting = [e for e in self.entries.values() if e.state in WAITING]
        if self.policy is AgePolicy.WAIT:
            chosen = waiting[:n]
        else:
            young = (e for e in waiting if e.state is GroupState.DONE and version - e.oldest <= self.eta)
            done = sorted(young, key=lambda e: e.order)
            needed = self._needed_now(waiting, done, n, version) if self.policy is AgePolicy.CONTINUE else []
            first = {e.key for e in needed}
            chosen = (needed + [e for e in done if e.key not in first])[:n]
        if len(chosen) < n or any(e.state is not GroupState.DONE for e in chosen):
            return None
        return self._give(chosen, version)

    def take_these(self, keys: Sequence[str], version: int) -> tuple[str, ...] | None:
        """Groups that were admitted as urgent, for the step that asked for them; None where it has to wait."""
        chosen = [self.entries[key] for key in keys]
        return None if any(e.state is not GroupState.DONE for e in chosen) else self._give(chosen, version)

    def _needed_now(self, waiting: Sequence[LedgerEntry], done: Sequence[LedgerEntry], n: int, version: int) -> list[LedgerEntry]:
        """Groups that a step has to take so that no later one finds more than ``n`` which are due: of those that are due ``k``
        steps from now or earlier, all but the ``n * k`` for which there is room in between.
        """
        needed: dict[str, LedgerEntry] = {}
        for k in range(self.eta + 1):
            due = [e for e in waiting if e.due <= version + k]
            missing = len(due) - n * k - len(needed)
            if missing > 0:
                ready = [e for e in done if e.due <= version + k and e.key not in needed]
                needed |= {e.key: e for e in (ready + [e for e in due if e.state is not GroupState.DONE])[:missing]}
        return list(needed.values())

    def take_again(self, keys: Sequence[str], dropped: Sequence[str], version: int) -> tuple[str, ...]:
        """The groups that a step took before this process began, and threw away before it, as the log says.

        Raises:
            DataError: one of them is not there.
        """
        lost = [k for k in (*keys, *dropped) if k not in self.entries or self.entries[k].state is not GroupState.DONE]
        if lost:
            raise DataError(f"the log says that a step took or dropped {lost[:4]}, and these were not accepted")
        self._throw_away(dropped, version)
        return self._give([self.entries[key] for key in keys], version)

    def put_back(self, keys: Sequence[str]) -> None:
        """Groups that a step took and did not learn from: they are done, and wait again.

        Raises:
            DataError: one of them was not taken.
        """
        for key in keys:
            if key not in self.entries or self.entries[key].state is not GroupState.TAKEN:
                raise DataError(f"group {key!r} was not taken, and cannot be put back")
            self._move(self.entries[key], GroupState.DONE)
            self.tell(LedgerEvent("put-back", key, oldest=self.entries[key].oldest))

    def withdraw(self, keys: Sequence[str]) -> None:
        """Groups that a step took and did not learn from: they may be admitted again, as if they had never been.

        Raises:
            DataError: one of them was not taken.
        """
        self.put_back(keys)
        for key in keys:
            self._in[self.entries.pop(key).state] -= 1
            self.tell(LedgerEvent("withdraw", key))

    def _give(self, chosen: Sequence[LedgerEntry], version: int) -> tuple[str, ...]:
        for entry in chosen:
            if version - entry.oldest > self.eta:
                raise DataError(
                    f"group {entry.key!r} is {version - entry.oldest} publications old, and eta={self.eta} is promised"
                )
            self._move(entry, GroupState.TAKEN)
            self.tell(LedgerEvent("take", entry.key, version=version, oldest=entry.oldest))
        return tuple(e.key for e in chosen)

    # ---- checkpoints

    def commit(self) -> list[str]:
        """Forgets the groups of steps that are saved, and what was dropped: their keys."""
        gone = self.keys_in(GroupState.TAKEN, GroupState.DROPPED)
        for key in gone:
            self._in[self.entries.pop(key).state] -= 1
        return gone

    def dump(self) -> dict[str, Any]:
        """JSON-able; leases are not part of it, since their workers end with this process."""
        waiting = [e for e in self.entries.values() if e.state in WAITING]
        return {
            "entries": [{"key": e.key, "due": e.due, "oldest": e.oldest, "order": e.order} for e in waiting],
            "counts": dict(self.counts),
            "order": self._next_order,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores `dump`: what was sampled under a lease is open again."""
        self.entries, self._in, self._open, self._leases = {}, Counter(), [], {}
        for number, e in enumerate(state["entries"]):
            where = GroupState.DONE if e["order"] >= 0 else GroupState.OPEN
            self._add(LedgerEntry(e["key"], number, e["due"], where, oldest=e["oldest"], order=e["order"]))
        self.counts, self._next_order = dict(state["counts"]), int(state["order"])

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
