"""The bytes of new weights over NCCL, by vLLM's own trainer half. ``unverified``: no GPU has run it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from assay.core.columns import Array
from assay.core.errors import ConfigError, EngineError
from assay.runtime.vllm.transfer import Control, HeldVersion

if TYPE_CHECKING:
    from assay.runtime.vllm.settings import NcclUpdate

__all__ = ["NcclLink", "NcclTransfer"]


class NcclTransfer:
    """By vLLM's own trainer half, its NCCL engine (a `Transfer`).

    This process is rank 0 of a group of its own, the server's processes are the others.

    Args:
        update: address, port and sizes.
        url: of the server.
        device: that arrays are sent from, the present one of ``cuda``; the tests send from the CPU, with vLLM's communicator
            replaced.
    """

    def __init__(self, update: NcclUpdate, url: str, device: str = "cuda") -> None:
        import torch

        found = device == "cuda" and torch.cuda.is_available()
        self._update, self._url = update, url
        self._device = f"cuda:{torch.cuda.current_device()}" if found else device  # the sending thread would have the first

    def check(self) -> None:
        """Looks whether this process can send.

        Raises:
            ConfigError: vLLM is not installed here, or there is no GPU.
        """
        _library()
        import torch

        if self._device.startswith("cuda") and not torch.cuda.is_available():
            raise ConfigError(
                "VllmSettings.update=NcclUpdate() sends from a GPU, and PyTorch sees none here; take it out, so that new weights "
                "go as files"
            )

    def open(self, control: Control, workers: int) -> NcclLink:
        """As `Transfer.open`.

        Raises:
            EngineError: vLLM found no NCCL library here, or this machine has no way to the server's.
        """
        factory, info = _library()
        told = info(
            rank=0,
            master_address=self._update.address or _here(self._url),
            master_port=self._update.port or _free_port(),
            world_size=workers + 1,
            packed=True,
            packed_buffer_size_bytes=self._update.bucket_bytes,
            packed_num_buffers=self._update.buckets,
        )
        link = NcclLink(self._device)
        with link.at_device():
            link.engine = factory.trainer_init(told, client=control, source=link)
        if getattr(link.engine.model_update_group, "disabled", False):  # then it would broadcast nothing, without a word
            raise EngineError("vLLM found no NCCL library in this environment; install nvidia-nccl-cu12 or nvidia-nccl-cu13")
        return link


class NcclLink:
    """vLLM's engine with its group, and what that asks of a source of weights (a `Link`).

    Arrays go to the device one at a time; there the engine packs them into buckets, which it broadcasts.
    """

    def __init__(self, device: str) -> None:
        self.engine: Any = None
        self._device = device
        self._held: HeldVersion | None = None

    def send(self, held: HeldVersion) -> None:
        """As `Link.send`."""
        self._held = held
        try:
            with self.at_device():
                self.engine.send_weights()
        finally:
            self._held = None

    def at_device(self) -> AbstractContextManager[Any]:
        """Inside, vLLM finds the device as the present one of its thread."""
        import torch

        return torch.cuda.device(self._device) if self._device.startswith("cuda:") else nullcontext()

    def close(self) -> None:
        """As `Link.close`."""
        self.engine.shutdown()

    def metadata(self) -> list[Any]:
        """Names, torch types and shapes, in the order in which the tensors come."""
        import torch

        assert self._held is not None  # inside of `send`
        return [_Meta(wire.name, getattr(torch, wire.dtype), wire.shape) for wire in self._held.wires()]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        assert self._held is not None  # inside of `send`
        for name, array in self._held.tensors_to_send():
            yield name, _tensor(array, self._device)


@dataclass(frozen=True, slots=True)
class _Meta:
    name: str
    dtype: Any
    shape: tuple[int, ...]


def _tensor(array: Array, device: str) -> Any:
    """An array on a device; uint16 is bfloat16's bit patterns."""
    import torch

    bits = array.dtype == np.uint16
    copied = torch.tensor(np.ascontiguousarray(array.view(np.int16) if bits else array), device=device)
    return copied.view(torch.bfloat16) if bits else copied


def _library() -> tuple[Any, Any]:
    """The factory of vLLM's trainer halves, and what its NCCL one is told; ConfigError where they cannot be had."""
    at = "vllm.distributed.weight_transfer"
    try:
        return (
            import_module(f"{at}.factory").WeightTransferTrainerFactory,
            import_module(f"{at}.nccl_engine").NCCLTrainerInitInfo,
        )
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            "VllmSettings.update=NcclUpdate() sends weights by vLLM's own library, which cannot be imported here "
            f"({error}); install vllm 0.32 or later where the learner runs, or take it out, so that new weights go as files"
        ) from None


def _here(url: str) -> str:
    """The address of this machine on the way to a server."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        kind, _, _, _, where = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect(where)  # of a datagram socket: nothing is sent
            return str(probe.getsockname()[0])
    except OSError as error:
        raise EngineError(f"no way to {parts.hostname} from here ({error}); name this machine in NcclUpdate.address") from None


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("", 0))
        return int(bound.getsockname()[1])
