"""The ledger of groups under every order of events that seeded faults can make."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from assay.asynchronous.history import check_history
from assay.asynchronous.ledger import Ledger
from assay.asynchronous.ledger_records import AgePolicy, GroupState, Lease, LedgerEvent, PutResult


class LedgerMachine(RuleBasedStateMachine):
    """Two groups a step, workers that lose, repeat and delay what they hand in, and a controller that is killed."""

    @initialize(eta=st.integers(0, 3), policy=st.sampled_from(list(AgePolicy)))
    def begin(self, eta: int, policy: AgePolicy) -> None:
        self.events: list[LedgerEvent] = []
        self.eta, self.policy = eta, policy
        self.version = self.number = 0
        self.held: list[tuple[Lease, int]] = []
        self.sent: list[tuple[Lease, int]] = []
        self.consumed: list[str] = []
        self.log: list[tuple[str, int]] = []
        self.ledger = Ledger(eta, policy, self.events.append)
        for worker in "abc":
            self.ledger.join(worker)
        self.saved = (self.ledger.dump(), 0, 0, 0, len(self.events))
        self.fill()

    def fill(self) -> None:
        missing = (self.eta + 1) * 2 - self.ledger.waiting
        self.ledger.admit([f"g{self.number + i}" for i in range(missing)], self.version)
        self.number += max(0, missing)

    @rule(worker=st.sampled_from("abc"), most=st.integers(1, 4))
    def lease(self, worker: str, most: int) -> None:
        self.held += [(lease, self.version) for lease in self.ledger.lease(worker, self.version, most)]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def put(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.held) - 1))
        sent = self.held.pop(at)
        self.sent.append(sent)
        if self.ledger.put(sent[0], sent[1]) is PutResult.ACCEPTED:
            self.log.append((sent[0].key, sent[1]))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def put_twice(self, data: st.DataObject) -> None:
        lease, oldest = data.draw(st.sampled_from(self.sent))
        assert self.ledger.put(lease, oldest) is not PutResult.ACCEPTED

    @rule(worker=st.sampled_from("abc"))
    def fence(self, worker: str) -> None:
        """It goes on working, and what it hands in is late."""
        self.ledger.fence(worker)

    @rule()
    def step(self) -> None:
        self.ledger.drop_old(self.version)
        self.fill()
        taken = self.ledger.take(2, self.version)
        if taken is not None:
            self.consumed += taken
            self.version += 1
            self.fill()

    @rule(worker=st.sampled_from("abc"), withdrawn=st.integers(0, 2))
    def ask_for_another_in_this_step(self, worker: str, withdrawn: int) -> None:
        """A guidance poses a task again: leased before all others; where the step cannot be scored, as if it had never been."""
        key, self.number = f"u{self.number}", self.number + 1
        for turn in range(withdrawn + 1):
            self.ledger.admit([key], self.version, urgent=True)
            assert self.ledger.take_these([key], self.version) is None
            (lease,) = self.ledger.lease(worker, self.version, 1)
            assert lease.key == key and self.ledger.put(lease, self.version) is PutResult.ACCEPTED
            assert self.ledger.take_these([key], self.version) == (key,)
            if turn < withdrawn:
                self.ledger.withdraw([key])
                assert self.ledger.put(lease, self.version) is not PutResult.ACCEPTED
        self.consumed.append(key)

    @invariant()
    def promises_hold(self) -> None:
        if hasattr(self, "events"):
            assert len(set(self.consumed)) == len(self.consumed)
            assert self.ledger.waiting <= (self.eta + 1) * 2

    def teardown(self) -> None:
        """With workers that work at last, every group that was admitted is learned from or dropped: none is lost."""
        if not hasattr(self, "events"):
            return
        wanted = set(self.ledger.entries) - set(self.consumed)
        for _ in range(60):
            for worker in "abc":  # what they hold comes too late
                self.ledger.fence(worker)
            for lease, oldest in self.held:
                assert self.ledger.put(lease, oldest) is not PutResult.ACCEPTED
            for lease in self.ledger.lease("a", self.version, 100):
                self.ledger.put(lease, self.version)
            self.ledger.drop_old(self.version)
            self.fill()
            if (taken := self.ledger.take(2, self.version)) is not None:
                self.consumed += taken
                self.version += 1
                self.fill()
                if wanted <= set(self.consumed) | set(self.ledger.keys_in(GroupState.DROPPED)):
                    break
        assert wanted <= set(self.consumed) | set(self.ledger.keys_in(GroupState.DROPPED))
        assert check_history(self.events, self.eta) == []


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLedger = LedgerMachine.TestCase
