"""A server of the Model Context Protocol with a state: ``python mcp_demo_server.py [streamable-http PORT]``."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from mcp.server.mcpserver import MCPServer

app: Any = MCPServer("demo", log_level="ERROR")
total = 0


@app.tool()
def add(number: int) -> str:
    """Adds a number to the sum so far."""
    global total
    total += number
    return f"{total} {os.environ.get('DEMO_UNIT', '')}".strip()


@app.tool()
def find(word: str) -> list[str]:
    """Finds nothing."""
    if word == "luck":
        raise ValueError("no luck")
    return []


@app.tool()
def sleep(seconds: float) -> str:
    """Sleeps."""
    time.sleep(seconds)
    return "awake"


@app.tool()
def end() -> str:
    """Ends the server."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        app.run(sys.argv[1], port=int(sys.argv[2]))
    else:
        app.run()
