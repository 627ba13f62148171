"""Rollouts that come about while the learner works: which are wanted, who has them, and each given out once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.asynchronous.accepted_log import AcceptedLog, LogEndError, StepGroups
from assay.asynchronous.ledger import Ledger
from assay.asynchronous.ledger_records import Lease, PutResult
from assay.asynchronous.messages import GroupRequest, LeasedGroup
from assay.asynchronous.samplers import Samplers
from assay.asynchronous.weight_check import Scores
from assay.core.errors import EngineError, StorageError
from assay.core.manifest import Manifest
from assay.core.rollout import Rollout
from assay.core.wire import rollout_from_wire, rollout_to_wire

__all__ = ["GroupRequest", "RolloutQueue"]

_LOOK = 0.5


class RolloutQueue:
    """Has admitted groups sampled elsewhere, and gives them out for steps, each once: the queue between generator and trainer of
    AsyncFlow (arXiv 2507.01663) and LlamaRL (arXiv 2505.24034), with ``age = v_now - min(v_token) <= eta`` where ``v`` counts
    publications of weights.

    Args:
        ledger: which groups are wanted.
        log: of what was accepted and taken.
        samplers: who samples them; None for a replay, in which all that comes stands in the log.
        hear: is told of each group that is accepted, from the thread that looks after the samplers.
    """

    def __init__(
        self,
        ledger: Ledger,
        log: AcceptedLog,
        samplers: Samplers | None = None,
        hear: Callable[[str, tuple[Rollout, ...]], None] | None = None,
    ) -> None:
        self._hear = hear
        self._ledger, self._log, self._samplers = ledger, log, samplers
        self._changed = threading.Condition()
        self._orders: dict[str, GroupRequest] = {}
        self._found: dict[str, tuple[Rollout, ...]] = {}
        self._publications: dict[int, int] = {}
        self._version = -1
        self._saved = 0
        self._error: Exception | None = None
        self._unlogged: StorageError | None = None

    # ---- what the driver asks

    def missing(self, groups: int) -> int:
        """Groups that may be admitted before a step that takes ``groups``."""
        with self._changed:
            return (self._ledger.eta + 1) * groups - self._ledger.waiting

    def admit(self, orders: Sequence[GroupRequest], urgent: bool = False) -> None:
        """Groups to sample from now on, before all others where the present step needs them (`take_these`); those that an earlier
        process accepted are there at once.
        """
        with self._changed:
            self._ledger.admit([o.context.key for o in orders], self._version, urgent)
            for order in orders:
                self._orders[order.context.key] = order
                self._restore(order.context.key)
        self._wake()

    def _restore(self, key: str) -> None:
        found = self._log.pop_accepted(key)
        if found is not None and key not in self._found:  # what a checkpoint holds goes before the log
            oldest, self._found[key] = found
            self._ledger.restore(key, oldest)

    def publish(self, manifest: Manifest, learned: Scores = ()) -> None:
        """New weights, under which all samplers go on; ``learned`` as of `assay.asynchronous.weight_check.WeightCheck.expect`."""
        with self._changed:
            self._version += 1
            self._publications[manifest.version] = self._version
        if self._samplers:
            self._samplers.publish(manifest, self, learned)

    async def take(self, n: int) -> StepGroups:
        """The ``n`` groups that the next step learns from, in order of admission; without keys, what was thrown away instead, for
        which others are to be admitted.

        Raises:
            EngineError: a sampler ended again and again; or whatever error a sampler ended with that another would meet too.
            LogEndError: a replay has come to the end of its log.
        """

        def next_groups() -> StepGroups | None:
            if dropped := self._ledger.drop_old(self._version):
                for key in dropped:
                    self._forget(key)
                return StepGroups((), tuple(dropped))
            if (keys := self._ledger.take(n, self._version)) is None:
                return None
            place = {key: at for at, key in enumerate(self._ledger.entries)}
            return StepGroups(tuple(sorted(keys, key=place.__getitem__)))

        return await self._take(next_groups)

    async def take_these(self, keys: Sequence[str]) -> StepGroups:
        """Groups that were admitted as urgent, in that order; raises as `take`."""

        def next_groups() -> StepGroups | None:
            taken = self._ledger.take_these(keys, self._version)
            return StepGroups(taken) if taken is not None else None

        return await self._take(next_groups)

    async def _take(self, found: Callable[[], StepGroups | None]) -> StepGroups:
        """What an earlier process took next, as its log says; else what is found, once there is anything."""
        taken = self._log.pop_taken(self._version)
        if taken is not None:
            with self._changed:
                self._ledger.take_again(taken.keys, taken.dropped, self._version)
                for key in taken.dropped:
                    self._forget(key)
            return taken
        if self._samplers is None:
            raise LogEndError(f"the log of accepted groups ends at publication {self._version}")
        try:
            taken = await asyncio.to_thread(self._wait, found)
        except asyncio.CancelledError:  # Ctrl-C: the thread that waits must not hold up the end
            self.fail(EngineError("the run was stopped while it waited for groups"))
            raise
        self._log.write_taken(self._version, taken)
        return taken

    def _wait(self, found: Callable[[], StepGroups | None]) -> StepGroups:
        with self._changed:
            while True:
                if self._error is not None:
                    raise self._error
                if (taken := found()) is not None:
                    return taken
                self._changed.wait(_LOOK)

    def _forget(self, key: str) -> None:
        self._found.pop(key, None)
        self._orders.pop(key, None)

    def rollouts(self, key: str) -> tuple[Rollout, ...]:
        """Of a group that was taken; given once."""
        with self._changed:
            return self._found.pop(key)

    def put_back(self, rollouts: Mapping[str, tuple[Rollout, ...]]) -> None:
        """Groups that a step took and could not score: they wait again."""
        with self._changed:
            self._ledger.put_back(list(rollouts))
            self._found.update(rollouts)
            self._log.write_put_back(self._version, list(rollouts))

    def withdraw(self, keys: Sequence[str]) -> None:
        """Groups that were taken by `take_these` in a step that could not be scored: it will ask for them again."""
        with self._changed:
            self._ledger.withdraw(keys)
            for key in keys:
                self._forget(key)
            self._log.write_put_back(self._version, keys)

    def age(self, rollouts: Sequence[Rollout]) -> int:
        """Of the oldest token of rollouts, in publications before the newest."""
        with self._changed:
            return self._version - self._oldest(rollouts)

    def _oldest(self, rollouts: Sequence[Rollout]) -> int:
        """Publication whose weights sampled the oldest token."""
        versions = [s.version for r in rollouts for c in r.calls for s in c.completion.spans]
        return min([self._publications[v] for v in versions], default=self._version)

    def _wake(self) -> None:
        if self._samplers:
            self._samplers.wake()

    # ---- what those who look after samplers ask (`assay.asynchronous.samplers.Controller`)

    def join(self, name: str) -> int:
        """As `Controller.join`."""
        with self._changed:
            return self._ledger.join(name)

    def lease(self, name: str, version: int, most: int) -> list[LeasedGroup]:
        """As `Controller.lease`: none before the newest weights are on their way, or a group could be older than when it was
        admitted, and too old at the last step that may take it.
        """
        with self._changed:
            if self._publications[version] != self._version:
                return []
            leases = self._ledger.lease(name, self._publications[version], most)
            return [LeasedGroup(lease, self._orders[lease.key]) for lease in leases]

    def put(self, lease: Lease, rollouts: tuple[Rollout, ...]) -> bool:
        """As `Controller.put`."""
        with self._changed:
            oldest = self._oldest(rollouts)
            if self._ledger.put(lease, oldest) is not PutResult.ACCEPTED:
                return False
            self._found[lease.key] = rollouts
            try:
                self._log.write_accepted(lease.key, oldest, rollouts)
            except StorageError as error:  # before anybody takes or saves a group that the log does not have
                self._error = self._unlogged = error
                raise
            if self._hear:
                self._hear(lease.key, rollouts)
            self._changed.notify_all()
            return True

    def fail(self, error: Exception) -> None:
        """As `Controller.fail`."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    # ---- checkpoints

    def state_dict(self, step: int) -> dict[str, Any]:
        """JSON-able; the log goes on in a new file.

        Raises:
            StorageError: a group was accepted that the disk had no room for: a replay would miss it in the log.
        """
        with self._changed:
            if self._unlogged is not None:
                raise self._unlogged
            self._log.begin(step)
            return {
                "step": step,
                "ledger": self._ledger.dump(),
                "version": self._version,
                "publications": sorted(self._publications.items())[-4 * (self._ledger.eta + 2) :],
                "found": {key: [rollout_to_wire(r) for r in rollouts] for key, rollouts in self._found.items()},
            }

    def load_state_dict(self, state: Mapping[str, Any], orders: Sequence[GroupRequest]) -> None:
        """Restores `state_dict`, before anything is published, and reads what was accepted since.

        Args:
            state: of the checkpoint.
            orders: what it waits for.
        """
        with self._changed:
            self._log.read(int(state["step"]))
            self._ledger.load(state["ledger"])
            self._version = int(state["version"]) - 1  # which is published again
            self._publications = {int(version): int(at) for version, at in state["publications"]}
            self._found = {key: tuple(rollout_from_wire(w) for w in wires) for key, wires in state["found"].items()}
            for order in orders:
                self._orders[order.context.key] = order
                self._restore(order.context.key)

    def commit(self, step: int) -> None:
        """A checkpoint is whole: what its steps took is forgotten, with files of the log that no kept checkpoint needs."""
        with self._changed:
            for key in self._ledger.commit():
                self._forget(key)
        self._log.remove_before(self._saved)
        self._saved = step

    @property
    def weight_bytes(self) -> int:
        """As `Samplers.weight_bytes`; 0 in a replay."""
        return self._samplers.weight_bytes if self._samplers else 0

    def take_proved(self) -> float:
        """As `Samplers.take_proved`; 1 in a replay."""
        return self._samplers.take_proved() if self._samplers else 1.0

    def counts(self) -> dict[str, int]:
        """How often groups were dropped, leased again, or handed in twice or too late."""
        with self._changed:
            return dict(self._ledger.counts)

    def close(self) -> None:
        """Ends the samplers."""
        if self._samplers:
            self._samplers.close()
        self._log.close()
