"""A machine without GPUs plays one with them, for both halves of vLLM's weight transfer: NCCL's communicator is gloo here.

A server loads `register` as a plugin, the sending side calls it. What is replaced is the communicator, and what asks CUDA for a
device or a stream; all else is vLLM's: how they meet, what is announced, buckets, loading.
"""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from pathlib import Path

FAIL = "ASSAY_STAND_IN_FAIL"
"""Names a file; while it exists, the process in whose environment it stands fails at the second bucket."""


class Stream:
    def synchronize(self) -> None:
        """Copies on the CPU are over when they return."""


class Gloo:
    """What vLLM's communicator is to its transfer engines."""

    disabled = False

    def __init__(self, group, device) -> None:
        import torch.distributed as dist

        self._store, self._armed, self._busy = group.store, 0, False
        store, late = dist.PrefixStore("bytes", group.store), timedelta(seconds=10)
        self._group = dist.ProcessGroupGloo(store, group.rank, group.world_size, late)

    def broadcast(self, tensor, src: int, stream=None) -> None:
        from torch.distributed import BroadcastOptions

        self._armed = self._armed + 1 if Path(os.environ.get(FAIL, "/nowhere")).exists() else 0
        if self._armed == 2:
            raise RuntimeError("the second bucket is lost")
        options = BroadcastOptions()
        options.rootRank = src
        self._busy = True
        self._group.broadcast([tensor], options).wait()
        self._busy = False

    def destroy(self) -> None:
        """Breaks the connection. One in the middle of something cannot be torn: it waits until it is late."""
        if not self._busy:
            self._group = None


def register() -> None:
    import torch
    from vllm.distributed.device_communicators import pynccl
    from vllm.distributed.weight_transfer import packed_tensor

    pynccl.PyNcclCommunicator = Gloo
    packed_tensor._get_streams = lambda device, n: (Stream(),) * n
    torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.synchronize = lambda *_: None
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
