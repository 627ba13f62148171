"""Two processes of a process group, for tests of what several ranks compute together."""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

Results = dict[str, Any]

GRACE = 10.0  # seconds for a rank to tell what it saw of the other's failure
TOLD = 30_000  # characters of a rank's last words: behind the stacks of a fatal error all extension modules are listed


def on_two_ranks(main: Callable[..., None], folder: Path, *given: Any) -> tuple[Results, Results]:
    """What ``main(rank, folder, *given)`` left with `kept` in each of two processes.

    They begin afresh: this one's threads, its state of autograd and its process groups would be broken in a fork of it.

    Raises:
        AssertionError: one ended with another status than 0: how both ended, and what they said.
    """
    (folder / "call.pickle").write_bytes(pickle.dumps((main, given)))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for rank in (0, 1):
            started.append(begun(rank, folder))
        failed = ended(started)
    finally:
        for process in started:
            process.kill()
            process.wait()
    if failed:
        said = ((folder / f"{rank}.said").read_text(errors="replace")[-TOLD:] for rank in (0, 1))
        raise AssertionError("; ".join(failed) + "".join(f"\n\nrank {rank} said:\n{text}" for rank, text in enumerate(said)))
    first, second = (pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in (0, 1))
    return first, second


def begun(rank: int, folder: Path) -> subprocess.Popen[bytes]:
    """A process that is a rank; it finds the modules that this one finds."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-X", "faulthandler", "-c", "from two_ranks import begin; begin()", str(rank), str(folder)]
    with (folder / f"{rank}.said").open("wb") as said:
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)


def begin() -> None:
    """What such a process does."""
    warnings.filterwarnings("error", module=r"assay(\.|$)")  # as in pyproject.toml for pytest
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    main, given = pickle.loads((folder / "call.pickle").read_bytes())
    main(rank, folder, *given)


def ended(started: Sequence[subprocess.Popen[bytes]]) -> list[str]:
    """How each rank ended, when all have; nothing where all did what they should.

    Where one fails, another that goes on waiting for it is ended, and shows by `faulthandler` where it stood.
    """
    deadline = math.inf
    while hanging := [rank for rank, process in enumerate(started) if process.poll() is None]:
        if any(process.returncode for process in started):
            deadline = min(deadline, time.monotonic() + GRACE)
        if time.monotonic() > deadline:
            for rank in hanging:
                started[rank].send_signal(signal.SIGABRT)
                with suppress(subprocess.TimeoutExpired):
                    started[rank].wait(GRACE)
                started[rank].kill()
            break
        time.sleep(0.02)
    codes = [process.wait() for process in started]
    how = [f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}" for code in codes]
    for rank in hanging:
        how[rank] = f"hung, and was ended {GRACE:g} s later"
    return [f"rank {rank} {text}" for rank, text in enumerate(how)] if any(codes) else []


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
