"""Tools of MCP servers, by the official client: a program over its standard streams, or an address (streamable HTTP)."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shlex
import threading
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any, Literal, cast

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError
from assay.core.rollout import ToolResult
from assay.core.task import TaskView
from assay.core.util.event_loop import run_async
from assay.rollout.tool_class import EpisodeTool, ToolSet
from assay.rollout.tool_limits import ToolLimits, cut_text

__all__ = ["McpConnection", "McpServer", "McpTool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer(ToolSet):
    """A server of the Model Context Protocol, whose tools the policy may call: one of `PlayerSpec.tools`.

    Needs ``pip install 'assay-rl[mcp]'``. Its tools are listed once, when the run is built. A call that the server refuses, or
    answers as an error, is told to the policy; a server that ends or is not to be reached is a fault of the infrastructure.

    Attributes:
        command: program and arguments, spoken to over its standard streams; no shell reads them.
        url: address of a server that is there already, ``http://127.0.0.1:8000/mcp``, in place of a command.
        names: only these tools; all of them when empty.
        sessions: ``shared``: one connection for all rollouts, for servers that keep nothing between calls; ``rollout``: each
            rollout has one of its own, a program of its own for a command, from its first call to its end.
        limits: of each call.
        start: seconds that a connection may take to be made.
        env: further environment variables of the program; it sees no others but ``PATH`` and ``HOME``.

    Raises:
        ConfigError: neither a command nor a url, or both, or a number out of range.

    >>> McpServer(url="http://127.0.0.1:8000/mcp").sessions
    'shared'
    """

    command: str = ""
    url: str = ""
    names: tuple[str, ...] = ()
    sessions: Literal["shared", "rollout"] = "shared"
    limits: ToolLimits = field(default_factory=lambda: ToolLimits(deadline=20.0))
    start: float = 30.0
    env: Mapping[str, str] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        if bool(self.command.strip()) == bool(self.url):
            raise ConfigError("McpServer has neither a command nor a url, or both; give one: command='python my_server.py'")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"McpServer.url={self.url!r} is no address; write it as 'http://127.0.0.1:8000/mcp'")
        if self.sessions not in ("shared", "rollout") or not self.start > 0:
            raise ConfigError(
                f"McpServer(sessions={self.sessions!r}, start={self.start}); use 'shared' or 'rollout', seconds > 0"
            )
        object.__setattr__(self, "env", FrozenMap({str(k): str(v) for k, v in dict(self.env).items()}))

    @property
    def where(self) -> str:
        """The server in words."""
        return self.url or self.command

    def all_tools(self) -> Sequence[McpTool]:
        """Its tools, in its order.

        Raises:
            ConfigError: the package is not installed, the server cannot be reached, or it lacks one of ``names``.
        """
        try:
            listed = _list_tools(self)
        except ConnectionError as error:
            raise ConfigError(f"{error}; start the server by hand to see what it says") from None
        known = {tool.name: tool for tool in listed}
        if lacking := [name for name in self.names if name not in known]:
            raise ConfigError(f"the MCP server {self.where!r} has no tool {lacking[0]!r}, only {', '.join(known) or 'none'}")
        return [known[name] for name in self.names] or listed


@dataclass(frozen=True, slots=True)
class McpTool(EpisodeTool):
    """One tool of a server; implements `assay.core.protocols.Tool`.

    Attributes:
        server: whose.
        name: of it.
        declaration: name, description and JSON schema of the arguments, as the server tells them.
    """

    server: McpServer
    name: str
    declaration: FrozenMap = field(compare=False)

    @property
    def owner(self) -> Hashable:
        """Its server."""
        return self.server

    @property
    def in_turn(self) -> bool:
        """Where a rollout has a session of its own: that may have a state."""
        return self.server.sessions == "rollout"

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        return plain(self.declaration)

    def make(self, task: TaskView | None) -> McpConnection | _Shared:
        """A connection, or what stands for that of all rollouts.

        Raises:
            ConnectionError: the server cannot be reached.
        """
        return _Shared(_shared_connection(self.server)) if self.server.sessions == "shared" else McpConnection(self.server)

    async def call_on(self, thing: McpConnection | _Shared, args: Mapping[str, Any]) -> ToolResult:
        """What the server answers.

        Raises:
            ConnectionError: it has gone.
        """
        connection = thing.connection if isinstance(thing, _Shared) else thing
        return await connection.call(self.name, plain(dict(args)))


class McpConnection:
    """A connection that has an event loop and a thread of its own, so that it outlives the loops of those who call.

    Args:
        server: to whom.

    Raises:
        ConfigError: the package ``mcp`` is not installed.
        ConnectionError: no connection within ``server.start`` seconds.
    """

    def __init__(self, server: McpServer) -> None:
        _package()
        self._server, self._ended = server, False
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="assay-mcp", daemon=True)
        self._thread.start()
        try:
            self._ready.result(server.start)
        except Exception as error:
            self.close()
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ConnectionError(
                f"the MCP server {server.where!r} cannot be reached within {server.start:g} s ({said})"
            ) from None

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What a tool answers within the server's limits.

        Raises:
            ConnectionError: the server has gone.
        """
        begun, limits = perf_counter(), self._server.limits
        text, error, late = "", None, False
        try:
            async with asyncio.timeout(limits.deadline):
                text, error = await self._ask(self._call(name, arguments))
        except TimeoutError:
            error, late = f"no answer within {limits.deadline:g} s", True
            text = f"Error: {error}."
        shown, cut = cut_text(text, limits.characters)
        seconds = perf_counter() - begun
        return ToolResult(content=shown, error=error, duration=seconds, cost=limits.cost, timed_out=late, cut=cut)

    def list_tools(self) -> list[McpTool]:
        """The server's tools; waits for them, so it is nothing for an event loop.

        Raises:
            ConnectionError: the server has gone.
        """
        return run_async(self._ask(self._list()))

    @property
    def ended(self) -> bool:
        """Whether the server has gone, or the connection was closed."""
        return self._ended

    def close(self) -> None:
        """Ends the connection, and the program that was started for it."""
        self._ended = True
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(5.0)

    async def _serve(self) -> None:
        package, stdio = _package(), _package("mcp.client.stdio")
        words = shlex.split(self._server.command)
        seen = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | dict(self._server.env)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            with open(os.devnull, "w") as nowhere:
                target: Any = self._server.url
                if words:
                    told = package.StdioServerParameters(command=words[0], args=words[1:], env=seen)
                    target = stdio.stdio_client(told, errlog=nowhere)  # its log is nobody's answer
                async with package.Client(target) as client:
                    self._client = client
                    self._ready.set_result(None)
                    await self._stop.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(_first(error))
        finally:
            self._ended = True

    async def _ask(self, work: Any) -> Any:
        """Runs a coroutine on the connection's own loop."""
        if self._ended or self._loop is None:
            work.close()
            raise ConnectionError(f"the MCP server {self._server.where!r} has gone")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str | None]:
        try:
            found: Any = await self._client.call_tool(name, dict(arguments))
        except _package().MCPError as error:
            if _is_gone(error):
                raise ConnectionError(f"the MCP server {self._server.where!r} has gone ({error})") from None
            return f"Error: {error}", str(error)
        except (OSError, RuntimeError) as error:
            raise ConnectionError(f"the MCP server {self._server.where!r} has gone ({error})") from None
        text = _text(found)
        return (f"Error: {text}", text or "an error without words") if found.is_error else (text, None)

    async def _list(self) -> list[McpTool]:
        out: list[McpTool] = []
        cursor: str | None = None
        while True:
            page: Any = await self._client.list_tools(cursor=cursor)
            for tool in page.tools:
                told = {"name": tool.name, "description": tool.description or tool.name, "parameters": dict(tool.input_schema)}
                out.append(McpTool(self._server, tool.name, FrozenMap(told)))
            cursor = page.next_cursor
            if not cursor:
                return out


@dataclass(frozen=True, slots=True)
class _Shared:
    """The connection of all rollouts, which a rollout's end does not close."""

    connection: McpConnection


_open: dict[McpServer, McpConnection] = {}
_opening = threading.Lock()


def _shared_connection(server: McpServer) -> McpConnection:
    with _opening:
        found = _open.get(server)
        if found is None or found.ended:
            found = _open[server] = McpConnection(server)
            atexit.register(found.close)
        return found


@cache
def _list_tools(server: McpServer) -> list[McpTool]:
    connection = _shared_connection(server) if server.sessions == "shared" else McpConnection(server)
    try:
        return connection.list_tools()
    finally:
        if server.sessions == "rollout":
            connection.close()


def _package(name: str = "mcp") -> Any:
    """A module of the official package, which comes without types that could be checked where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"MCP servers need the package 'mcp' ({error}); run: pip install 'assay-rl[mcp]'") from None


def _text(found: Any) -> str:
    parts = [part.text if part.type == "text" else f"({part.type} that is not shown)" for part in found.content]
    if not parts and found.structured_content is not None:
        return json.dumps(found.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _is_gone(error: Any) -> bool:
    """Whether an error says that the connection is closed, and not what was wrong with a call."""
    return getattr(getattr(error, "error", error), "code", 0) in (-32000, -32001) or "closed" in str(error).lower()


def _first(error: BaseException) -> Exception:
    """The first error of a group."""
    found: Any = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("Any", found).exceptions[0]
    return found if isinstance(found, Exception) else ConnectionError(type(found).__name__)
