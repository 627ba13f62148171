"""A reward function that does what the answer says, answers for it, and the processes of a pool."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.testing import rollout_of
from assay.verify import ScoringPool

Pair = tuple[Task, Rollout]

LONG = 30.0
"""A deadline that only a hang would meet on any machine."""


def task(prompt: str) -> Task:
    public, private = FrozenMap({"prompt": prompt}), FrozenMap({"answer": "yes"})
    return Task(id=prompt, domain="d", arm="a", level=1, split="train", index=0, public=public, private=private)


def items(*texts: str) -> list[Pair]:
    tasks = [task(f"p{i}") for i in range(len(texts))]
    return [(t, rollout_of(t, text, id=f"r{i}")) for i, (t, text) in enumerate(zip(tasks, texts, strict=True))]


def act(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """Does what the completion says."""
    match completion:
        case "raise":
            raise ValueError("a bad answer")
        case "hang":
            while True:
                pass
        case "sleep":
            threading.Event().wait()
        case "die":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit("goodbye")
        case "nan":
            return float("nan")
    return float(completion == row["answer"])


def alive(pid: int) -> bool:
    """Whether a process still runs, after giving the kernel time to end it."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([handle], [], [], LONG)[0]
    finally:
        os.close(handle)


def pids(pool: ScoringPool) -> list[int]:
    """The fork server and its workers."""
    supervisor = pool._dispatcher.supervisor  # pyright: ignore
    return [supervisor._fork_server.pid, *(worker.pid for worker in supervisor._workers)]  # pyright: ignore


def threaded(loop: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=loop, args=arguments, daemon=True)
    thread.start()
    return thread
