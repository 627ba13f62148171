"""A process that samples: it is leased contexts, hands in their rollouts, and goes on under new weights in between."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np

from assay.asynchronous.messages import Beat, Failed, Sample, Sampled, SamplerSettings, Serving, Weights
from assay.core.columns import Array
from assay.core.errors import AssayError
from assay.core.protocols import Engine, Sampler, SamplerParts, SwapMode

__all__ = ["BEAT", "run_sampler"]

BEAT = 1.0
"""Seconds between signs of life. They come from a thread of their own, so a long computation is no silence, and a stopped process is."""


def run_sampler(connection: Connection, settings: SamplerSettings) -> None:
    """The process: works until the other end of its connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the controller decides
    _print_to(settings.log)
    lock, stop = threading.Lock(), threading.Event()

    def send(message: object) -> None:
        with lock:
            connection.send(message)

    threading.Thread(target=_beat, args=(send, stop), daemon=True).start()
    try:
        asyncio.run(_work(connection, send, settings))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the controller is gone
    except BaseException as error:
        cause = _first(error)
        traceback.print_exc()
        with suppress(OSError):
            send(Failed(cause if isinstance(cause, AssayError) else None, "".join(traceback.format_exception(cause))))
        sys.exit(1)
    finally:
        stop.set()


def _print_to(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _beat(send: Callable[[object], None], stop: threading.Event) -> None:
    with suppress(OSError):
        while not stop.wait(BEAT):
            send(Beat())


def _first(error: BaseException) -> BaseException:
    """What went wrong first, of several tasks."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error


async def _work(connection: Connection, send: Callable[[object], None], settings: SamplerSettings) -> None:
    engine, sampler = _build(settings)
    send(Beat())
    inbox = _inbox(connection)

    async def sample(wanted: Sample) -> None:
        rollouts = await sampler.collect([wanted.context], wanted.n)
        send(Sampled(wanted.lease, tuple(rollouts)))

    async with asyncio.TaskGroup() as tasks:
        while (message := await inbox.get()) is not None:
            if isinstance(message, Weights):
                if await _load(engine, message):
                    send(Serving(message.manifest.version, await engine.checksums()))
            else:
                tasks.create_task(sample(message))
        raise EOFError  # ends what is under way: nobody wants it


def _build(settings: SamplerSettings) -> tuple[Engine, Sampler]:
    import torch

    from assay.asynchronous.engines import sampler_engine
    from assay.runtime.models.hf import load_model

    torch.set_num_threads(settings.threads)
    model = load_model(settings.model)
    engine = sampler_engine(settings.engine, model)
    parts = SamplerParts(
        engine=engine,
        tokenizer=model.tokenizer,
        source=settings.tasks,
        sampling=settings.sampling,
        seed=settings.seed,
        max_turns=settings.max_turns,
        deadline=settings.deadline,
    )
    return engine, settings.sampler.build(parts)


def _inbox(connection: Connection) -> asyncio.Queue[Any]:
    """What arrives, read by a thread; None behind the last."""
    loop, inbox = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            try:
                while True:
                    loop.call_soon_threadsafe(inbox.put_nowait, connection.recv())
            except (EOFError, OSError):
                loop.call_soon_threadsafe(inbox.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    return inbox


async def _load(engine: Engine, weights: Weights) -> bool:
    """Has the engine serve new weights, under which what is being sampled goes on; not those that newer ones have replaced."""
    try:
        memory = SharedMemory(weights.memory)
    except FileNotFoundError:
        return False
    try:
        payload: dict[str, Array] = {}
        for name, (dtype, shape, start) in weights.layout.items():
            payload[name] = np.ndarray(shape, dtype, memory.buf, start).copy()
    finally:
        memory.close()
    await engine.swap(replace(weights.manifest, payload=payload), SwapMode.KEEP)
    return True
