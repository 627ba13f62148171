"""What a server was told to serve, and how it is told: reload, label, resume; adapters by name."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.core.errors import AssayError, EngineError
from assay.core.protocols import SwapMode
from assay.runtime.vllm.facts import ServerFacts
from assay.runtime.vllm.flags import EXTENSION
from assay.runtime.vllm.server import VllmServer
from assay.runtime.vllm.snapshots import WeightFile, WeightFiles, shapes_in
from assay.runtime.vllm.transfer import HeldVersion, Sender
from assay.runtime.vllm.worker import FORGET

__all__ = ["Post", "ServedVersion", "ServerWeights"]

_PAUSES = {SwapMode.DRAIN: "wait", SwapMode.KEEP: "keep"}


class Post(Protocol):
    """Sends one control request and gives what was answered."""

    async def __call__(self, path: str, body: Mapping[str, Any] | None = None, method: str = "POST") -> Any: ...


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One thing that the server was told to serve.

    Attributes:
        label: its word for the base weights.
        version: ours; -1 for what it served before.
        adapter: the name that requests ask for; the base when empty.
    """

    label: str
    version: int
    adapter: str = ""


class ServerWeights:
    """The state of one server, from its start to its end.

    Args:
        server: for messages.
        facts: of the server when it was connected to.
        snapshots: files that it reads.
        nonce: begins every label.
        sender: takes base weights there without files; None where they go as files.

    Attributes:
        history: all that it was told to serve, newest last.
        newest: the base weights that it serves, as they were sent; None before the first.
        broken: why it cannot serve anything, where that is so.
        laid: its parameters of experts of which a checksum showed once that they lie as they are sent; `witnessed` adds to it.
    """

    def __init__(
        self, server: VllmServer, facts: ServerFacts, snapshots: WeightFiles, nonce: str, sender: Sender | None = None
    ) -> None:
        self.facts, self.sender, self._server, self._snapshots, self._nonce = facts, sender, server, snapshots, nonce
        self.history = [ServedVersion(facts.label, -1)]
        self.newest: WeightFile | HeldVersion | None = None
        self.broken, self.laid = "", set[str]()
        self._before: WeightFile | None = None
        self._adapters: dict[str, WeightFile] = {}

    @property
    def now(self) -> ServedVersion:
        """What is served."""
        return self.history[-1]

    @property
    def salt(self) -> str:
        """Key of the prefix cache: another one for all that was told."""
        return f"{self._nonce}.{len(self.history)}"

    def version_of(self, label: str, since: int, who: str) -> int:
        """Our version of a label, among what was served from entry ``since`` of the history on.

        Raises:
            EngineError: none of them has it.
        """
        for told in self.history[since:]:
            if told.label == label:
                return told.version
        raise EngineError(
            f"{who} was answered by weights that {self._server.settings.url} calls {label!r}, and it was told to serve "
            f"{self.now.label!r} (version {self.now.version}): the server was restarted, or somebody else changes its weights; "
            "swap them in again"
        )

    # ---- base weights -----------------------------------------------------------------------------------------------

    async def replace(self, post: Post, sent: WeightFile | HeldVersion, mode: SwapMode) -> None:
        """Pauses the server, has it take new base weights, labels them and lets it go on.

        Raises:
            EngineError: a step failed; says which version is served now.
        """
        version = sent.manifest.version
        label = f"{self._nonce}.{len(self.history)}.v{version}"
        try:
            cleared = mode is not SwapMode.KEEP or self._server.settings.recompute
            await post(f"/pause?mode={_PAUSES[mode]}&clear_cache={str(cleared).lower()}")
            sent = await self._send(post, sent, label) if isinstance(sent, HeldVersion) else await self._load(post, sent, label)
        except AssayError as error:
            raise EngineError(f"weight version {version} was not loaded: {error}. {await self._fall_back(post)}") from error
        except asyncio.CancelledError:
            self.broken = (
                f"{self._server.settings.url} was left in the middle of taking weight version {version}; swap weights in again"
            )
            raise
        self.history.append(ServedVersion(label, version))
        self._before = self.newest if isinstance(self.newest, WeightFile) else None
        self.newest, self.broken = sent, ""
        await post("/resume")
        if mode is not SwapMode.KEEP:
            await self.unload(post, list(self._adapters))
        await self._tidy()

    async def _load(self, post: Post, snapshot: WeightFile, label: str) -> WeightFile:
        await self._read(post, str(snapshot.path), label)
        return snapshot

    async def _read(self, post: Post, path: str, label: str) -> None:
        await self._make_room(post)
        await post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": path}})
        await post("/update_weight_version", {"new_version": label})

    async def _make_room(self, post: Post) -> None:
        """Has the server make its experts' kernels anew with the weights that come, where it must be told to."""
        if self.facts.repacks:
            answer = await post("/collective_rpc", {"method": FORGET})
            if not all(map(int, answer["results"])):
                raise EngineError(
                    f"{EXTENSION} finds no kernels of experts on {self._server.settings.url}: another version of vLLM"
                )

    async def _send(self, post: Post, held: HeldVersion, label: str) -> HeldVersion | WeightFile:
        """Sends arrays; where that fails and the settings allow it, they go as files, as do all later ones."""
        assert self.sender is not None  # or nothing would be held
        await self._make_room(post)
        try:
            await self.sender.send(held, label)
        except AssayError as error:
            if (update := self._server.settings.update) is None or update.on_failure != "files":
                raise
            warnings.warn(
                f"weight version {held.manifest.version} did not get to {self._server.settings.url} over NCCL: {error}; it and "
                "all later ones go as files (NcclUpdate.on_failure='files')",
                RuntimeWarning,
                stacklevel=2,
            )
        else:
            return held
        await self.sender.settle()
        self.sender = None
        return await self._load(post, await self._write_file(held), label)

    async def _write_file(self, held: HeldVersion) -> WeightFile:
        return await asyncio.to_thread(self._snapshots.full, held.manifest, held.parts)

    async def _fall_back(self, post: Post) -> str:
        """Has the server read again what it served: after a failed reading it holds neither. Says what came of it."""
        try:
            if self.sender is not None:
                await self.sender.settle()
            if isinstance(self.newest, HeldVersion):
                self.newest = await self._write_file(self.newest)
            if not self.newest and not (self.facts.folder and shapes_in(self.facts.folder)):
                raise EngineError("there is nothing to load again")
            await self._read(post, str(self.newest.path if self.newest else self.facts.folder), self.now.label)
            await post("/resume")
        except AssayError as error:
            self.broken = f"{self._server.settings.url} holds no whole weights any more, and its old ones are lost: {error}"
            return self.broken[0].upper() + self.broken[1:]
        return f"It serves version {self.now.version} again ({self.now.label!r})"

    # ---- adapters ---------------------------------------------------------------------------------------------------

    async def adapt(self, post: Post, snapshot: WeightFile, mode: SwapMode) -> None:
        """Loads an adapter under a new name, which requests ask for from now on, and unloads older ones.

        A kept request may still use the newest of these: it goes with the next adapter.

        Raises:
            EngineError: the server refuses it.
        """
        name = f"assay-{snapshot.path.name}"
        await post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(snapshot.path)})
        old = [n for n in self._adapters if mode is not SwapMode.KEEP or n != self.now.adapter]
        self.history.append(ServedVersion(self.now.label, snapshot.manifest.version, name))
        self._adapters[name] = snapshot
        await self.unload(post, old)
        await self._tidy()

    async def unload(self, post: Post, names: Sequence[str] | None = None) -> None:
        """Takes adapters from the server, all that it was given when None; what it does not have any more is no error."""
        gone = list(self._adapters) if names is None else names
        there = {card["id"] for card in (await post("/v1/models", method="GET"))["data"]} if gone else set[str]()
        for name in gone:
            if name in there:
                await post("/v1/unload_lora_adapter", {"lora_name": name})
            del self._adapters[name]

    async def _tidy(self) -> None:
        newest = self.newest if isinstance(self.newest, WeightFile) else None
        await asyncio.to_thread(self._snapshots.keep, newest, self._before, *self._adapters.values())
