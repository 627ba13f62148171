"""Agents that are Python functions: well-behaved ones, and those that are not."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.agents import AgentTask

seen: list[AgentTask] = []
cancelled = threading.Event()


class RefusedError(Exception):
    """What the endpoint refused, with the body of its answer."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body.decode())
        self.body = body


def ask(task: AgentTask, messages: list[dict[str, Any]], **more: Any) -> str:
    body = json.dumps({"messages": messages, **more}).encode()
    request = urllib.request.Request(f"{task.url}/chat/completions", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"] or ""
    except urllib.error.HTTPError as error:
        with error:
            raise RefusedError(error.read()) from None


def once(task: AgentTask) -> None:
    """The last call's text is the answer."""
    ask(task, [dict(m) for m in task.messages])


def twice(task: AgentTask) -> str:
    """Goes on from its first answer, with blanks around it, and gives that one."""
    opening = [dict(m) for m in task.messages]
    first = ask(task, opening)
    ask(task, [*opening, {"role": "assistant", "content": f" {first}\n"}, {"role": "user", "content": task.prompt}])
    return first


async def never(task: AgentTask) -> str:
    """Makes no call."""
    return "42"


async def asks_by_a_blocking_call(task: AgentTask) -> None:
    """Holds up its own event loop until it is answered."""
    once(task)


async def waits_for_ever(task: AgentTask) -> None:
    """Says when it is cancelled."""
    try:
        await asyncio.sleep(3600)
    finally:
        cancelled.set()


def asks_too_much(task: AgentTask) -> str:
    """More than the model holds, and takes the refusal as an answer."""
    with suppress(RefusedError):
        ask(task, [{"role": "user", "content": "1" * 200}])
    return "42"


def forever(task: AgentTask) -> None:
    """Asks until it is refused, and then again."""
    while True:
        try:
            once(task)
        except RefusedError as error:
            if b"budget" not in error.body:
                raise
            return


def stubborn(task: AgentTask) -> None:
    """Does not take a budget for an answer: asks until nobody is there."""
    with suppress(urllib.error.URLError, OSError):
        while True:
            try:
                once(task)
            except RefusedError:
                time.sleep(0.01)


def crashes(task: AgentTask) -> None:
    """Ends with an error behind an answer."""
    once(task)
    raise ValueError("a bug of its own")


async def waits(task: AgentTask) -> None:
    """Does not end."""
    await asyncio.Event().wait()


def gives_up(task: AgentTask) -> None:
    """A deadline of its own, behind an answer."""
    once(task)
    raise TimeoutError


def keeps(task: AgentTask) -> None:
    """Keeps its address for later."""
    seen.append(task)
    once(task)


def shows_a_picture(task: AgentTask) -> str:
    """Sends what the policy cannot read, and says what it was told."""
    try:
        ask(task, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}])
    except RefusedError as error:
        told = json.loads(error.body)["error"]
        once(task)
        return str(told["code"])
    return "no error"


def forks(task: AgentTask) -> None:
    """A history that is cut, edited, and asked twice."""
    opening = [dict(m) for m in task.messages]
    first = ask(task, opening)
    for text in (first, "1", first):
        ask(task, [*opening, {"role": "assistant", "content": text}, {"role": "user", "content": "S"}])


HANGS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
open(os.environ["PIDS"], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(100)
"""


def hanging_program(folder: Path) -> Path:
    """A program that starts another one, and both hang."""
    path = folder / "hangs.py"
    path.write_text(HANGS)
    return path
