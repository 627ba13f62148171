"""MCP servers as tools: real server processes over standard streams and over HTTP on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from assay.agents.tools import McpServer, McpTool
from assay.agents.tools.mcp_server import McpConnection
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError
from assay.rollout import PlayerSpec, ToolLimits
from assay.rollout.tool_class import EpisodeTools

SCRIPT = Path(__file__).with_name("mcp_demo_server.py")
needs_mcp = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="needs the package mcp")


def by_name(server: McpServer) -> dict[str, McpTool]:
    return {tool.name: tool for tool in server.all_tools()}


@pytest.mark.slow
@needs_mcp
def test_a_program_answers_with_a_state_for_each_rollout() -> None:
    server = McpServer(
        command=f"{sys.executable} {SCRIPT}",
        sessions="rollout",
        env={"DEMO_UNIT": "kg"},
        limits=ToolLimits(deadline=3.0, cost=0.5),
    )
    spec = PlayerSpec(tools=(server,))  # type: ignore[arg-type]
    assert from_dict(PlayerSpec, loads_toml(dumps_toml(to_dict(spec)))) == spec
    tools = by_name(server)
    assert list(tools) == ["add", "find", "sleep", "end"] == [tool.schema["name"] for tool in spec.all_tools()]
    assert tools["add"].in_turn and tools["add"].schema["description"] == "Adds a number to the sum so far."
    assert tools["add"].schema["parameters"]["properties"]["number"]["type"] == "integer"

    async def play() -> list[Any]:
        episode = EpisodeTools(None)
        try:
            asked: list[tuple[str, dict[str, Any]]] = [("add", {"number": 3}), ("add", {"number": 4}), ("find", {"word": "luck"})]
            said = [await episode.call(tools[name], args) for name, args in [*asked, ("find", {"word": "x"})]]
            said.append(await episode.call(tools["sleep"], {"seconds": 60}))
            with pytest.raises(ConnectionError, match="has gone"):
                await episode.call(tools["end"], {})
            with pytest.raises(ConnectionError, match="has gone"):
                await episode.call(tools["add"], {"number": 1})
            return said
        finally:
            await episode.close()

    three, seven, failed, nothing, late = asyncio.run(play())
    assert (three.content, seven.content, seven.error, seven.cost) == ("3 kg", "7 kg", None, 0.5)
    assert failed.error and failed.content == f"Error: {failed.error}" and nothing.error is None
    assert late.timed_out and late.content == "Error: no answer within 3 s."


@pytest.mark.slow
@needs_mcp
def test_an_address_is_shared_by_all_rollouts() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SCRIPT), "streamable-http", str(port)], stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        server = McpServer(url=f"http://127.0.0.1:{port}/mcp", names=("add",))
        (add,) = server.all_tools()
        assert not add.in_turn and [asyncio.run(add.call({"number": n}, None)).content for n in (3, 4)] == ["3", "7"]
        with pytest.raises(ConfigError, match="has no tool 'subtract', only add, find"):
            McpServer(url=server.url, names=("subtract",)).all_tools()
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server did not begin")


@needs_mcp
def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'no-such-program' cannot be reached within 5 s .*start the server by hand"):
        McpServer(command="no-such-program", start=5.0).all_tools()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=r"pip install 'assay-rl\[mcp\]'"):
        McpConnection(McpServer(command="x"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "neither a command nor a url"),
        ({"command": "a", "url": "http://b"}, "or both"),
        ({"url": "b"}, "is no address"),
        ({"command": "a", "sessions": "each"}, "use 'shared' or 'rollout'"),
        ({"command": "a", "start": 0}, "seconds > 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        McpServer(**given)
