"""Two processes of a process group, for tests of what several ranks compute together."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

Results = dict[str, Any]

GRACE = 10.0  # seconds for a rank to tell what it saw of the other's failure
TOLD = 30_000  # characters of a rank's last words: behind the stacks of a fatal error all extension modules are listed


def on_two_ranks(main: Callable[..., None], folder: Path, *given: Any, needs: Sequence[str] = ()) -> tuple[Results, Results]:
    """What ``main(rank, folder, *given)`` left with `kept` in each of two processes.

    They are forks of a process that begins afresh and has only imported what they need, which takes seconds: the module of
    ``main`` and those that ``needs`` names. This one's threads, its state of autograd and its process groups would be broken in a
    fork of it.

    Raises:
        AssertionError: one ended with another status than 0: how both ended, and what they said.
    """
    (folder / "call.pickle").write_bytes(pickle.dumps((main, given, needs)))
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-X", "faulthandler", "-c", "from two_ranks import begin; begin()", str(folder)]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        said = process.communicate()[1].decode(errors="replace")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        raise AssertionError(f"the process that starts the ranks ended with status {process.returncode}:\n{said[-TOLD:]}")
    if failed := json.loads((folder / "failed.json").read_text()):
        told = ((folder / f"{rank}.said").read_text(errors="replace")[-TOLD:] for rank in (0, 1))
        raise AssertionError("; ".join(failed) + "".join(f"\n\nrank {rank} said:\n{text}" for rank, text in enumerate(told)))
    first, second = (pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in (0, 1))
    return first, second


def begin() -> None:
    """What the process does that starts the ranks: it imports, forks two, and writes down how those ended that failed."""
    warnings.filterwarnings("error", module=r"assay(\.|$)")  # as in pyproject.toml for pytest
    folder = Path(sys.argv[1])
    main, given, needs = pickle.loads((folder / "call.pickle").read_bytes())
    for module in needs:
        import_module(module)
    ranks: list[int] = []
    for rank in (0, 1):
        if not (pid := os.fork()):
            with (folder / f"{rank}.said").open("wb") as said:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
            return main(rank, folder, *given)
        ranks.append(pid)
    (folder / "failed.json").write_text(json.dumps(ended(ranks)))


def ended(ranks: Sequence[int]) -> list[str]:
    """How each rank ended, when all have; nothing where all did what they should.

    Where one fails, another that goes on waiting for it is ended, and shows by `faulthandler` where it stood.
    """
    codes: dict[int, int] = {}
    hanging: list[int] = []
    deadline = math.inf
    while len(codes) < len(ranks):
        for rank, pid in enumerate(ranks):
            if rank not in codes and (found := os.waitpid(pid, os.WNOHANG))[0]:
                codes[rank] = os.waitstatus_to_exitcode(found[1])
        if any(codes.values()):
            deadline = min(deadline, time.monotonic() + GRACE)
        if time.monotonic() > deadline:
            left = [rank for rank in range(len(ranks)) if rank not in codes]
            for rank in left:
                os.kill(ranks[rank], signal.SIGKILL if rank in hanging else signal.SIGABRT)
            hanging, deadline = left or hanging, time.monotonic() + GRACE
        time.sleep(0.02)
    how = [
        f"was killed by {signal.Signals(-codes[r]).name}" if codes[r] < 0 else f"ended with status {codes[r]}"
        for r in sorted(codes)
    ]
    for rank in hanging:
        how[rank] = f"hung, and was ended {GRACE:g} s later"
    return [f"rank {rank} {text}" for rank, text in enumerate(how)] if any(codes.values()) else []


@contextmanager
def rank_of_two(rank: int, folder: Path) -> Iterator[dist.Store]:
    """The group, and the store that made it, for one of the two; at the end they wait for one another."""
    torch.set_num_threads(1)  # where MKL_NUM_THREADS says otherwise, torch heeds that
    store = dist.FileStore(str(folder / "store"), 2)  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(minutes=5))
    try:
        yield store
        dist.barrier()
    finally:  # else its threads abort a process that ends by an error
        dist.destroy_process_group()


def kept(rank: int, folder: Path, out: Results) -> None:
    """Leaves what a rank found for the process that started it."""
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(out))
