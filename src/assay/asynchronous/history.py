"""A checker of histories: whatever order of events a run had, these promises held."""

from __future__ import annotations

from collections.abc import Iterable

from assay.asynchronous.ledger_records import LedgerEvent

__all__ = ["check_history"]


def check_history(events: Iterable[LedgerEvent], eta: int) -> list[str]:
    """The promises that a history breaks, a sentence each; none for a sound one.

    - a group is admitted once, and taken or dropped at most once in all;
    - it is accepted once, and taken only after that;
    - at its consumption its oldest token is at most ``eta`` publications old;
    - weights never get older: versions at consumption do not fall;
    - a worker that was fenced puts nothing: what is accepted has the newest epoch of its worker, and the group's newest lease.

    Args:
        events: in order.
        eta: greatest age.
    """
    wrong: list[str] = []
    admitted, done, over = set[str](), dict[str, int](), dict[str, str]()
    epochs, leases = dict[str, int](), dict[str, tuple[int, str, int]]()
    newest = -1
    for number, e in enumerate(events):

        def report_history_mismatch(what: str, number: int = number, e: LedgerEvent = e) -> None:
            wrong.append(f"event {number} ({e.kind} {e.key or e.worker}): {what}")

        match e.kind:
            case "admit":
                if e.key in admitted:
                    report_history_mismatch("admitted twice")
                admitted.add(e.key)
            case "join":
                if e.epoch <= epochs.get(e.worker, -1):
                    report_history_mismatch(f"epoch {e.epoch} after {epochs[e.worker]}")
                epochs[e.worker] = e.epoch
            case "lease":
                if e.key not in admitted or e.key in over or e.key in done:
                    report_history_mismatch("leased, and it is not waited for")
                leases[e.key] = (e.lease, e.worker, e.epoch)
            case "put-accepted" | "restore":
                if e.key not in admitted or e.key in over or e.key in done:
                    report_history_mismatch("accepted, and it is not waited for")
                if e.kind != "restore" and ((e.lease, e.worker, e.epoch) != leases.get(e.key) or e.epoch != epochs.get(e.worker)):
                    report_history_mismatch("accepted from a worker that was fenced, or under an old lease")
                done[e.key] = e.oldest
            case "take" | "drop":
                if e.key in over:
                    report_history_mismatch(f"it was {over[e.key]} before")
                elif e.key not in done:
                    report_history_mismatch("it was not accepted")
                elif done[e.key] != e.oldest:
                    report_history_mismatch(f"its oldest token is of version {done[e.key]}, not {e.oldest}")
                if e.kind == "take" and not 0 <= e.version - e.oldest <= eta:
                    report_history_mismatch(f"taken at age {e.version - e.oldest}, and at most {eta} was promised")
                if e.kind == "take" and e.version < newest:
                    report_history_mismatch(f"taken at version {e.version} after {newest}")
                newest = max(newest, e.version) if e.kind == "take" else newest
                over[e.key] = "taken" if e.kind == "take" else "dropped"
                done.pop(e.key, None)
            case "put-back":
                if over.pop(e.key, "") != "taken":
                    report_history_mismatch("put back, and it was not taken")
                done[e.key] = e.oldest
            case "withdraw":
                if done.pop(e.key, None) is None:
                    report_history_mismatch("withdrawn, and it did not wait")
                admitted.discard(e.key)
            case "put-duplicate" | "put-fenced":
                pass
            case other:
                report_history_mismatch(f"unknown kind {other!r}")
    return wrong
