"""Two processes of a process group, for tests of what several ranks compute together."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

Results = dict[str, Any]


def on_two_ranks(main: Callable[..., None], folder: Path, *given: Any) -> tuple[Results, Results]:
    """What ``main(rank, folder, *given)`` left with `kept` in each of two processes.

    They are forked, so that they need not import again what this process has.
    """
    import torch._dynamo
    import torch.distributed.checkpoint
    import torch.distributed.fsdp  # noqa: F401  seconds that the two need not spend again

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    try:
        started = [get_context("fork").Process(target=main, args=(rank, folder, *given)) for rank in (0, 1)]
        for process in started:
            process.start()
        for process in started:
            process.join()
    finally:
        monkeypatch.undo()
    assert [p.exitcode for p in started] == [0, 0]
    first, second = (pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in (0, 1))
    return first, second


@contextmanager
def rank_of_two(rank: int, folder: Path) -> Iterator[dist.Store]:
    """The group, and the store that made it, for one of the two; at the end they wait for one another."""
    torch.set_num_threads(1)  # a forked process has none of its parent's threads
    store = dist.FileStore(str(folder / "store"), 2)  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(minutes=5))
    yield store
    dist.barrier()
    dist.destroy_process_group()


def kept(rank: int, folder: Path, out: Results) -> None:
    """Leaves what a rank found for the process that started it."""
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(out))
