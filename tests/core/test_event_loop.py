"""Coroutines from plain functions, with and without an event loop at work."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import traceback
from contextvars import ContextVar
from typing import Any

import pytest

from assay.core.util.event_loop import run_async, run_loop_in_thread

KEPT: ContextVar[str] = ContextVar("kept", default="none")


async def thread_and_context() -> tuple[str, str]:
    await asyncio.sleep(0)
    return threading.current_thread().name, KEPT.get()


async def failing() -> None:
    raise ValueError("wrong")


def in_a_loop(work: Any) -> Any:
    """As a cell of a notebook runs it."""

    async def cell() -> Any:
        KEPT.set("cell")
        return run_async(work)

    return asyncio.run(cell())


def waits(thread: threading.Thread) -> bool:
    """Whether it has come to where it waits for the work."""
    frame = sys._current_frames().get(thread.ident or 0)
    names = [f.f_code.co_name for f, _ in traceback.walk_stack(frame)]
    return "wait" in names and "_in_thread" in names


def test_without_a_loop_it_runs_in_this_thread() -> None:
    assert run_async(thread_and_context()) == (threading.current_thread().name, "none")


def test_inside_a_loop_it_runs_beside_it_with_the_callers_context() -> None:
    assert in_a_loop(thread_and_context()) == ("assay-loop", "cell")


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="wrong"):
        in_a_loop(failing())


def test_what_interrupts_the_caller_cancels_the_work() -> None:
    said: list[str] = []

    async def work() -> None:
        try:
            while not waits(threading.main_thread()):
                await asyncio.sleep(0.001)
            os.kill(os.getpid(), signal.SIGUSR1)  # its handler runs in the main thread
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            said.append("cancelled")
            raise

    def interrupt(number: int, frame: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(InterruptedError):
            in_a_loop(work())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert said == ["cancelled"]


def test_a_coroutine_that_is_cancelled_before_its_thread_has_begun_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, ended, ran, run = threading.Event(), threading.Event(), [], asyncio.run

    def late(work: Any) -> Any:
        gate.wait()
        try:
            return run(work)
        finally:
            ended.set()

    async def work() -> None:
        ran.append(True)

    async def outer() -> None:
        monkeypatch.setattr(asyncio, "run", late)
        task = asyncio.ensure_future(run_loop_in_thread(work))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        gate.set()

    run(outer())
    assert ended.wait(30) and ran == []


def test_a_coroutine_in_another_thread_is_cancelled_with_its_caller() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    async def outer() -> None:
        task = asyncio.ensure_future(run_loop_in_thread(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(outer())
    assert cancelled.wait(30)
