"""Ctrl-C, SIGTERM and SIGHUP, which end a run after its current step."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["when_stopped"]


@contextmanager
def when_stopped(ask: Callable[[], None]) -> Generator[None]:
    """Ctrl-C, SIGTERM and SIGHUP call ``ask`` inside the block; in another thread than the main one the caller keeps its own
    handling.

    SIGHUP, which a terminal sends that is closed, stays ignored where it was, as under ``nohup``.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        ask()

    try:
        before = {number: signal.signal(number, on_signal) for number in _stop_signals()}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_signals() -> list[signal.Signals]:
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]
