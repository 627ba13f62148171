"""The endpoint on loopback while rollouts are sampled, on the event loop that samples them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from assay.core.errors import ConfigError, EngineError, MissingExtraError

__all__ = ["listening"]

BACKLOG = 1024
"""Connections that may wait to be taken."""


@asynccontextmanager
async def listening(application: Any) -> AsyncGenerator[str]:
    """Serves an ASGI application on a free port of 127.0.0.1; inside, its address, ``http://127.0.0.1:PORT``.

    Raises:
        MissingExtraError: uvicorn is not installed.
        ConfigError: no port can be had.
        EngineError: the server ended before it began.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("starlette and uvicorn", "serve") from None

    class Server(uvicorn.Server):
        """Leaves signals to the run."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as place:
        try:
            place.bind(("127.0.0.1", 0))
        except OSError as error:
            raise ConfigError(f"no port of 127.0.0.1 can be had for agents: {error.strerror}") from None
        place.listen(BACKLOG)
        config = uvicorn.Config(application, log_level="error", lifespan="off", access_log=False, backlog=BACKLOG)
        server = Server(config)
        task = asyncio.ensure_future(server.serve(sockets=[place]))
        try:
            while not server.started:
                if task.done():
                    raise EngineError(f"the endpoint for agents did not start: {task.exception()}")
                await asyncio.sleep(0.001)
            yield f"http://127.0.0.1:{place.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await asyncio.gather(task, return_exceptions=True)
            for _ in range(3):  # connections that are closed by force end in later turns of the loop
                await asyncio.sleep(0)
