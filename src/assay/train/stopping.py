"""Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP, which end a run after its current step."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["REQUEUE", "when_stopped"]

REQUEUE = 75
"""Exit code of a run that SIGUSR1 has stopped: a batch system is to start it again (EX_TEMPFAIL of ``sysexits.h``)."""

ECHO = 5.0
"""Seconds in which a second SIGTERM or SIGUSR1 is no request of its own."""


@contextmanager
def when_stopped(ask: Callable[[], None]) -> Generator[list[signal.Signals]]:
    """Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP call ``ask`` inside the block; in another thread than the main one the caller keeps its
    own handling. Gives the signals that came. A batch system that ends a job and the launcher
    in it both send SIGTERM: what follows within 5 s is the same request.

    SIGHUP, which a terminal sends that is closed, stays ignored where it was, as under ``nohup``. SIGUSR1 is what batch systems
    send before the time of a job is over.
    """
    came: list[signal.Signals] = []

    asked = float("-inf")

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        now = time.monotonic()
        if number in (signal.SIGTERM, signal.SIGUSR1) and now - asked < ECHO:
            return
        asked = now
        came.append(signal.Signals(number))
        ask()

    try:
        before = {number: signal.signal(number, on_signal) for number in _stop_signals()}
    except ValueError:
        yield came
        return
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_signals() -> list[signal.Signals]:
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, *([] if ignored else [signal.SIGHUP])]
