"""The checker of histories notices each broken promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.asynchronous import AgePolicy, Ledger, LedgerEvent, check_history

SOUND = [
    LedgerEvent("join", worker="a", epoch=0),
    LedgerEvent("admit", "g", version=0),
    LedgerEvent("lease", "g", "a", 0, 0, 0),
    LedgerEvent("put-accepted", "g", "a", 0, 0, oldest=0),
    LedgerEvent("take", "g", version=1, oldest=0),
]
BROKEN = {
    "admitted twice": [*SOUND[:2], SOUND[1]],
    "epoch 0 after 0": [SOUND[0], SOUND[0]],
    "leased, and it is not waited for": [SOUND[0], SOUND[2]],
    "accepted, and it is not waited for": [*SOUND[:4], SOUND[3]],
    "accepted from a worker that was fenced": [*SOUND[:3], LedgerEvent("join", worker="a", epoch=1), SOUND[3]],
    "it was taken before": [*SOUND, SOUND[4]],
    "it was not accepted": [*SOUND[:3], SOUND[4]],
    "its oldest token is of version 0, not 1": [*SOUND[:4], LedgerEvent("take", "g", version=1, oldest=1)],
    "taken at age 2, and at most 1 was promised": [*SOUND[:4], LedgerEvent("take", "g", version=2, oldest=0)],
    "put back, and it was not taken": [*SOUND[:4], LedgerEvent("put-back", "g", oldest=0)],
    "withdrawn, and it did not wait": [*SOUND, LedgerEvent("withdraw", "g")],
    "unknown kind 'lost'": [LedgerEvent("lost", "g")],
}


def test_a_sound_history_breaks_nothing() -> None:
    assert check_history(SOUND, eta=1) == []
    assert check_history([*SOUND, LedgerEvent("put-back", "g", oldest=0), SOUND[4]], eta=1) == []
    back = [LedgerEvent("put-back", "g", oldest=0), LedgerEvent("withdraw", "g")]
    assert check_history([*SOUND, *back, *SOUND[1:2], replace(SOUND[2], lease=1)], eta=1) == []
    assert check_history([*SOUND[:2], LedgerEvent("restore", "g", oldest=0), LedgerEvent("put-duplicate", "g")], eta=1) == []


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_promise_is_named(why: str) -> None:
    assert any(why in line for line in check_history(BROKEN[why], eta=1))


def test_weights_never_get_older() -> None:
    other = [replace(e, key="h") for e in SOUND[1:4]]
    events = [*SOUND[:4], *other, LedgerEvent("take", "g", version=1, oldest=0), LedgerEvent("take", "h", version=0, oldest=0)]
    assert check_history(events, eta=1) == ["event 8 (take h): taken at version 0 after 1"]


def test_a_batch_that_is_due_leaves_room_for_what_is_due_later() -> None:
    """Four groups are due in the next step but one: a step of two that took young ones would leave it more than it can take."""
    ledger = Ledger(2, AgePolicy.CONTINUE)
    ledger.join("a")
    ledger.admit([f"old{i}" for i in range(6)], version=0)
    for lease in ledger.lease("a", 0, 2):
        ledger.put(lease, 0)
    assert ledger.take(2, 0) == ("old0", "old1")
    ledger.admit(["new0", "new1"], version=1)
    young = [lease for lease in ledger.lease("a", 1, 8) if lease.key.startswith("new")]
    for lease in young:
        ledger.put(lease, 1)
    assert ledger.take(2, 1) is None, "of the four that are due at 2, two have to go now"
