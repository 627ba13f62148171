"""Weights from this process to a vLLM server without files: what is sent, the requests around it, what a failure leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from assay.core.columns import Array
from assay.core.errors import AssayError, EngineError
from assay.core.manifest import Manifest
from assay.runtime.vllm.checkpoint import TensorRows
from assay.runtime.vllm.server import VllmServer

__all__ = ["Control", "HeldVersion", "Sender", "Transfer", "TransferLink", "WireTensor"]

_TYPES = {"float32": "<f4", "bfloat16": "<u2"}


@dataclass(frozen=True, slots=True)
class WireTensor:
    """One tensor as it is announced: its name on the server, ``float32`` or ``bfloat16``, its shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version whose arrays stay in this process's memory; ``parts`` are names on the server to what is sent under them.

    >>> from assay.core import manifest_of
    >>> rows = TensorRows("e", 0, (2, 3))
    >>> held = HeldVersion(manifest_of(1, {"e": np.ones((2, 3), np.float32)}), {"e": rows, "head": rows})
    >>> [(wire.name, wire.dtype, wire.shape) for wire in held.wires()]
    [('e', 'float32', (2, 3)), ('head', 'float32', (2, 3))]
    """

    manifest: Manifest
    parts: Mapping[str, TensorRows]

    @classmethod
    def of(cls, manifest: Manifest, parts: Mapping[str, TensorRows]) -> HeldVersion:
        """A manifest with arrays of its own: float32 that a learner hands over may be its live weights, which it trains on.
        Rounded ones were made for it (`assay.runtime.learner.publishing.make_manifest`, `Manifest.round_to`) and are kept as
        they are.
        """
        arrays = {n: np.array(a) if a.dtype == np.float32 else a for n, a in (manifest.payload or {}).items()}
        return cls(replace(manifest, payload=arrays), parts)

    def array(self, name: str) -> Array:
        """One tensor of the manifest; bfloat16 as uint16 bit patterns."""
        return np.asarray((self.manifest.payload or {})[name])

    def tensors_to_send(self) -> Iterator[tuple[str, Array]]:
        """Names on the server and arrays, in order."""
        return ((name, rows.of(self.array(rows.source))) for name, rows in self.parts.items())

    def wires(self) -> list[WireTensor]:
        """What will be sent, in order."""
        names = {np.dtype(kind): name for name, kind in _TYPES.items()}
        return [WireTensor(name, names[array.dtype], tuple(map(int, array.shape))) for name, array in self.tensors_to_send()]


class Control:
    """The four requests with which vLLM's trainer half drives a server (vLLM's ``VLLMWeightSyncClient``), with typed errors.

    They are made by the threads of the sending side. The first that fails is told to ``failed`` at once: the sending side may by
    then wait for a peer that never comes.

    Args:
        server: that is asked.

    Attributes:
        label: the server's word for the version under way.
        closed: the sending side was given up: whatever its threads still ask is refused here.
    """

    def __init__(self, server: VllmServer) -> None:
        self.server, self.label, self.closed = server, "", False
        self.failed: Callable[[BaseException], None] = lambda error: None

    def init_weight_transfer_engine(self, init_info: Mapping[str, Any]) -> None:
        """The server joins the group that the trainer opens; answers when both are there."""
        self._ask("/init_weight_transfer_engine", {"init_info": dict(init_info)})

    def start_weight_update(self) -> None:
        """The server makes its layers ready."""
        self._ask("/start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """The server receives the tensors that are named; answers when it has loaded them."""
        self._ask("/update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """The server puts its layers to use and labels them, `label` where no ``weight_version`` is given."""
        self._ask("/finish_weight_update", {"weight_version": weight_version or self.label})

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        try:
            if self.closed:
                raise EngineError(f"{path}: sending to {self.server.settings.url} was given up")
            self.server.ask("POST", path, body)
        except AssayError as error:
            self.failed(error)
            raise


class TransferLink(Protocol):
    """A group of this process and a server's."""

    def send(self, held: HeldVersion) -> None:
        """Sends a version, and drives the server meanwhile: start, update, finish. Blocks."""
        ...

    def close(self) -> None:
        """Leaves the group, at once, even while `send` waits."""
        ...


class Transfer(Protocol):
    """Carries tensors to a server's devices."""

    def check(self) -> None:
        """Raises ConfigError where this process cannot send at all."""
        ...

    def open(self, control: Control, workers: int) -> TransferLink:
        """Meets the server's ``workers`` processes, which ``control`` tells where. Blocks."""
        ...


class Sender:
    """Sends versions to one server, from its start to its end.

    Args:
        server: that receives.
        transfer: that carries.
        workers: the server's processes.
    """

    def __init__(self, server: VllmServer, transfer: Transfer, workers: int) -> None:
        self._server, self._transfer, self._workers = server, transfer, workers
        self._control = Control(server)
        self._link: TransferLink | None = None
        self._clean = False  # whoever sent before may have ended in the middle

    async def send(self, held: HeldVersion, label: str) -> None:
        """Has the server take a version and label it.

        Raises:
            EngineError: one side failed, or it took longer than ``VllmSettings.swap_seconds``. What the server holds is unknown.
            ConfigError: the server was started without something that this needs.
        """
        await self.settle()
        control = self._control
        control.label, self._clean = label, False

        def work() -> None:
            link = self._link or self._transfer.open(control, self._workers)
            if control.closed:  # meanwhile nobody waits for it any more
                link.close()
                return
            self._link = link
            link.send(held)

        try:
            await self._start_sender(work)
        except BaseException:
            await asyncio.to_thread(self._leave)  # a group that lost a message is of no more use
            raise
        self._clean = True

    async def settle(self) -> None:
        """Makes the server forget what a broken transfer left; nothing behind a whole one.

        Layers of which some tensors arrived wait for the others and would count them towards the next load, by whatever way.

        Raises:
            EngineError: the server does not answer: it may still wait for the sender.
        """
        if self._clean:
            return
        try:
            await self._post("/start_weight_update")
        except EngineError as error:
            if "already active" not in str(error):
                raise
        await self._post("/finish_weight_update", {})
        self._clean = True

    async def close(self) -> None:
        """Leaves the group, and has the server leave it."""
        if self._link is not None:
            with suppress(AssayError):  # a server that is gone has left it too
                await self._post("/shutdown_weight_transfer_engine")
        await asyncio.to_thread(self._leave)

    async def _post(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        await asyncio.to_thread(self._server.ask, "POST", path, body)

    def _leave(self) -> None:
        link, self._link = self._link, None
        self._control.closed = True
        self._control = Control(self._server)
        if link is not None:
            link.close()

    async def _start_sender(self, work: Callable[[], None]) -> None:
        """Runs the sending side in a thread of its own, and does not wait for it where the server has failed already."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def tell(error: BaseException | None) -> None:
            if not ended.done():
                ended.set_result(None) if error is None else ended.set_exception(error)

        def later(error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may be gone by the time that a stuck thread ends
                loop.call_soon_threadsafe(tell, error)

        def run() -> None:
            try:
                work()
            except AssayError as error:
                later(error)
            except BaseException as error:
                later(EngineError(f"sending them over NCCL failed with {type(error).__name__}: {error}"))
            else:
                later(None)

        self._control.failed = later
        threading.Thread(target=run, name="assay-weights", daemon=True).start()
        seconds = self._server.settings.swap_seconds
        try:
            await asyncio.wait_for(ended, seconds)
        except TimeoutError:
            raise EngineError(
                f"{self._server.settings.url}: weights were not sent over NCCL within {seconds:g} s; look at the server's log, "
                "or raise VllmSettings.swap_seconds"
            ) from None
