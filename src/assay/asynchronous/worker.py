"""A process that samples: it is leased contexts, hands in their rollouts, and goes on under new weights in between."""

from __future__ import annotations

import asyncio
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from multiprocessing.connection import Connection
from typing import Any, cast

from assay.asynchronous.messages import (
    Heartbeat,
    LeasedGroup,
    NewWeights,
    SampledGroup,
    SamplerFailure,
    SamplerSettings,
)
from assay.asynchronous.weight_loader import WeightLoader
from assay.core.errors import AssayError
from assay.core.protocols import Engine, Sampler, SamplerParts, Tokenizer
from assay.core.rollout import Sampling

__all__ = ["BEAT", "main", "run_sampler"]

BEAT = 1.0
"""Seconds between signs of life. A thread of their own sends them: a long computation is no silence, a stopped process is."""


def main(number: int) -> None:
    """The process at the end of a connection: works until the other end is closed.

    Args:
        number: of the connection's descriptor.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):  # the controller decides what they mean
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    connection = Connection(number)
    sys.path[:] = pickle.loads(connection.recv_bytes())
    settings, lock = connection.recv_bytes(), threading.Lock()

    def send(message: object) -> None:
        data = pickle.dumps(message, protocol=5)
        with lock:
            connection.send_bytes(data)

    def receive() -> object:
        try:
            return pickle.loads(connection.recv_bytes())
        except OSError:
            raise EOFError from None

    sys.exit(run_sampler(settings, receive, send))


def run_sampler(settings: bytes, receive: Callable[[], object], send: Callable[[object], None]) -> int:
    """Samples until the controller is gone; the exit status.

    Args:
        settings: a pickle of `SamplerSettings`.
        receive: waits for the next message; raises EOFError where the controller is gone.
        send: a message to the controller, from any thread; raises OSError where it is gone.
    """
    stop = threading.Event()
    threading.Thread(target=_beat, args=(send, stop), daemon=True).start()
    try:
        asyncio.run(_work(receive, send, pickle.loads(settings)))
        return 0
    except BaseException as error:
        cause = _first(error)
        if isinstance(cause, EOFError | BrokenPipeError | ConnectionResetError):
            return 0
        traceback.print_exc()
        with suppress(OSError):
            send(_failure_of(cause))
        return 1
    finally:
        stop.set()


def _failure_of(cause: BaseException) -> SamplerFailure:
    """What went wrong, with the error itself where another process could read it."""
    stack = "".join(traceback.format_exception(cause))
    try:
        return SamplerFailure(pickle.loads(pickle.dumps(cause)) if isinstance(cause, AssayError) else None, stack)
    except Exception:
        return SamplerFailure(None, stack)


def _beat(send: Callable[[object], None], stop: threading.Event) -> None:
    with suppress(OSError):
        while not stop.wait(BEAT):
            send(Heartbeat())


def _first(error: BaseException) -> BaseException:
    """What went wrong first, of several tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


async def _work(receive: Callable[[], object], send: Callable[[object], None], settings: SamplerSettings) -> None:
    from assay.runtime.engine.sampling import load_sampling_engine

    engine, tokenizer = load_sampling_engine(settings.model, settings.engine, settings.device, settings.threads)
    build = cache(partial(_build, engine, tokenizer, settings))
    send(Heartbeat())
    inbox, loader = _inbox(receive), WeightLoader(engine, settings.deltas, settings.probes)
    waiting: list[LeasedGroup] = []

    async def sample(wanted: LeasedGroup) -> None:
        request = wanted.request
        rollouts = await build(request.sampling, request.max_turns).collect([request.context], request.n)
        send(SampledGroup(wanted.lease, tuple(rollouts)))

    async with asyncio.TaskGroup() as tasks:
        while (message := await inbox.get()) is not None:
            if isinstance(message, NewWeights):
                send(await loader.load(message.weights))
            else:
                waiting.append(message)
            if loader.whole:  # else what is sampled next would be older than its lease says
                for leased in waiting:
                    tasks.create_task(sample(leased))
                waiting.clear()
        raise EOFError  # ends what is under way: nobody wants it


def _build(engine: Engine, tokenizer: Tokenizer, settings: SamplerSettings, sampling: Sampling, max_turns: int) -> Sampler:
    return settings.sampler.build(
        SamplerParts(
            engine=engine,
            tokenizer=tokenizer,
            source=settings.tasks,
            sampling=sampling,
            seed=settings.seed,
            max_turns=max_turns,
            deadline=settings.deadline,
            pictures=settings.pictures,
        )
    )


def _inbox(receive: Callable[[], object]) -> asyncio.Queue[Any]:
    """What arrives, read by a thread; None behind the last."""
    loop, inbox = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            try:
                while True:
                    loop.call_soon_threadsafe(inbox.put_nowait, receive())
            except EOFError:
                loop.call_soon_threadsafe(inbox.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    return inbox
