"""A vLLM server as an engine: token in and token out over HTTP, weights by files, versions told per token."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
from numpy.typing import NDArray

from assay.core.errors import AssayError, ConfigError, DataError, EngineError
from assay.core.manifest import Manifest
from assay.core.protocols import EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Ids, Span, Stop, ids_of
from assay.runtime.vllm.checkpoint import add_tensors
from assay.runtime.vllm.checksums import compare_checksums, parameters
from assay.runtime.vllm.facts import Shaped, inspect
from assay.runtime.vllm.nccl import NcclTransfer
from assay.runtime.vllm.request_gate import PendingRequest, RequestGate
from assay.runtime.vllm.server import GENERATE, VllmServer
from assay.runtime.vllm.snapshots import WeightFiles, check_manifest, is_adapter
from assay.runtime.vllm.transfer import HeldVersion, Sender, Transfer
from assay.runtime.vllm.untied import HEAD
from assay.runtime.vllm.weights import ServerWeights
from assay.runtime.vllm.wire import completion_of, request_body, score_body, scores_of, server_id

if TYPE_CHECKING:
    from assay.runtime.vllm.settings import VllmSettings

__all__ = ["VllmEngine"]

_AGAIN = 0.2  # seconds after which a request that did not end is aborted once more: it may not have arrived


class VllmEngine:
    """Samples on a vLLM server (implements `assay.core.protocols.Engine`).

    Connects when it is first used. Weights are written to a folder that the server sees and loaded from there, or sent over NCCL
    (`VllmSettings.update`), in which case the newest version's arrays stay in memory. Each version has a
    label of its own on the server, so that every completion tells which weights sampled which token, and a server that was
    restarted is noticed. Requests carry the label as key of their prefix cache, so that none reads keys and values of weights
    that were served before it was sent.

    Args:
        settings: where the server is.
        model: what is served: names and shapes of the tensors, rows of the head.
        adapter: what stands in PEFT's ``adapter_config.json``, for manifests of adapter tensors.
        transport: answers in place of the network, for tests.
        transfer: carries weights in place of vLLM's own library, for tests.

    Raises:
        ConfigError: an adapter where new weights should go over NCCL.
    """

    def __init__(
        self,
        settings: VllmSettings,
        model: Shaped,
        adapter: Mapping[str, Any] | None = None,
        transport: httpx.MockTransport | None = None,
        transfer: Transfer | None = None,
    ) -> None:
        if settings.update and adapter is not None:
            raise ConfigError(
                "VllmSettings.update=NcclUpdate() sends base weights, and this run publishes an adapter, which goes as files; "
                "take it out"
            )
        self._transfer = (transfer or NcclTransfer(settings.update, settings.url)) if settings.update else None
        self.settings, self._model, self._adapter = settings, model, adapter
        self._server = VllmServer(settings, transport)
        self._nonce, self._count = uuid.uuid4().hex[:8], 0
        self._weights: ServerWeights | None = None
        self._snapshots: WeightFiles | None = None
        self._gate: RequestGate | None = None
        self._lock = threading.Lock()

    # ---- connection -------------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Reaches the server and looks whether it can serve the model; later calls do nothing.

        Raises:
            EngineError: it cannot be reached or does not answer in time.
            ConfigError: it serves another model or vocabulary, or runs without a setting that is needed; says how to start it.
                Or weights should go over NCCL, and this process cannot send them.
        """
        if self._weights is None:
            await asyncio.to_thread(self._connect)

    def _connect(self) -> ServerWeights:
        with self._lock:
            if self._weights is None:
                if self._transfer:
                    self._transfer.check()
                facts = inspect(self._server, self._model)
                if self._snapshots is None:
                    beside = Path(self.settings.model) if self.settings.model else facts.folder
                    self._snapshots = WeightFiles(self.settings.folder, beside, self._nonce)
                sender = Sender(self._server, self._transfer, facts.workers) if self._transfer else None
                self._weights = ServerWeights(self._server, facts, self._snapshots, f"{self._nonce}.{self._next()}", sender)
            return self._weights

    def info(self) -> EngineInfo:
        """What is served; version -1 before the first `swap`. Connects if nothing did before, and raises like `connect`."""
        weights = self._connect()
        facts, version = weights.facts, weights.now.version
        return EngineInfo(version=version, vocabulary=self._model.shape.vocab_size, context=facts.context, dtype=facts.dtype)

    def _here(self) -> RequestGate:
        """The running loop's client and requests; those of a loop that is gone are forgotten."""
        loop = asyncio.get_running_loop()
        if self._gate is None or self._gate.loop is not loop:
            self._gate = RequestGate(loop, self._server.client())
        return self._gate

    async def close(self) -> None:
        """Unloads adapters, closes connections and removes the files that were written for the server; base weights stay."""
        if self._weights is not None:
            with suppress(EngineError):  # a server that is gone has no adapters either
                await self._weights.unload(self._post)
            if self._weights.sender:
                await self._weights.sender.close()
        if self._gate is not None and self._gate.loop is asyncio.get_running_loop():
            await self._gate.client.aclose()
        if self._snapshots is not None:
            await asyncio.to_thread(self._snapshots.close)
        self._gate = self._snapshots = self._weights = None

    async def _post(self, path: str, body: Mapping[str, Any] | None = None, method: str = "POST") -> Any:
        return await self._server.send(self._here().client, path, body, seconds=self.settings.swap_seconds, method=method)

    def _next(self) -> int:
        self._count += 1
        return self._count

    # ---- requests ---------------------------------------------------------------------------------------------------

    async def generate(self, request: Request) -> Completion:
        """Completes a prompt.

        Raises:
            ConfigError: prompt plus ``max_new_tokens`` exceed the context.
            DataError: an empty prompt, ids outside the vocabulary, or an id that is already running.
            EngineError: the server failed, went away, or sampled with weights that it was not told to serve; names the request.
        """
        await self.connect()
        gate, started = self._here(), time.monotonic()
        self._check(request)
        job = gate.enter(request.id, f"{self._nonce}-{self._next()}")
        try:
            if not await job.go:
                return _nothing(request)
            return await self._complete_request(request, job, started)
        finally:
            gate.leave(request.id)

    async def _complete_request(self, request: Request, job: PendingRequest, started: float) -> Completion:
        who, weights = f"request {request.id!r}", self._connect()
        since, told = len(weights.history) - 1, weights.now
        body = request_body(request, job.wire, told.adapter or weights.facts.model, weights.salt)
        answer = await self._answer(body, weights, who)

        def spans(found: Sequence[Any], tokens: int) -> tuple[Span, ...]:
            named = tuple(Span(weights.version_of(s["version"], since, who), s["start"], s["end"]) for s in found)
            return (Span(told.version, 0, tokens),) if told.adapter and tokens else named

        return completion_of(answer, request, spans, time.monotonic() - started)

    async def _answer(self, body: Mapping[str, Any], weights: ServerWeights, who: str) -> Any:
        """The answer of the model that was asked for: a server that lost the adapter may answer with the base."""
        if weights.broken:
            raise EngineError(f"{who}: {weights.broken}")
        try:
            answer = await self._server.send(self._here().client, GENERATE, body, seconds=self.settings.request_seconds)
        except AssayError as error:
            raise type(error)(f"{who}: {error}") from error
        if (got := answer.get("model")) != body["model"]:
            raise EngineError(
                f"{who} asked {self.settings.url} for {body['model']!r}, and {got!r} answered; swap weights in again"
            )
        return answer

    def _check(self, request: Request) -> None:
        prompt, new, context = request.prompt, request.sampling.max_new_tokens, self._connect().facts.context
        if len(prompt) == 0:
            raise DataError(f"request {request.id!r} has an empty prompt; an engine needs at least one token to go on from")
        if len(prompt) + new > context:  # the server would cut the answer off without a word
            raise ConfigError(
                f"request {request.id!r}: a prompt of {len(prompt)} tokens plus max_new_tokens={new} exceeds the server's "
                f"context of {context}; shorten one of them or start the server with a larger --max-model-len"
            )
        self._check_ids(prompt, f"request {request.id!r}")

    def _check_ids(self, ids: Ids, where: str) -> None:
        if int(ids.min()) < 0 or int(ids.max()) >= self._model.shape.vocab_size:
            wrong = next(i for i in ids.tolist() if not 0 <= i < self._model.shape.vocab_size)
            raise DataError(f"{where} holds id {wrong}; the vocabulary has ids 0 to {self._model.shape.vocab_size - 1}")

    async def abort(self, ids: Sequence[str]) -> None:
        """Ends requests, running or waiting; each returns its tokens so far with stop ``partial``. Ended ones are ignored.

        Raises:
            EngineError: the server does not end them in time.
        """
        jobs = self._here().jobs
        await self._cut([jobs[i] for i in dict.fromkeys(ids) if i in jobs])

    async def _cut(self, jobs: Sequence[PendingRequest]) -> None:
        for job in jobs:
            if not job.go.done():
                job.go.set_result(False)
        late = time.monotonic() + self.settings.swap_seconds
        while running := [job for job in jobs if job.running]:
            if time.monotonic() > late:
                raise EngineError(f"{self.settings.url} was told to abort {len(running)} requests and goes on with them")
            await self._post("/abort_requests", {"request_ids": [server_id(job.wire) for job in running]})
            await asyncio.wait([job.done for job in running], timeout=_AGAIN)

    # ---- weights ----------------------------------------------------------------------------------------------------

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        """Serves new weights: all tensors of a full manifest, or an adapter's on the base that is served.

        ``drain``: requests made so far end first, later ones wait. ``keep``: running requests go on, and their spans name both
        versions; `VllmSettings.recompute` says from which keys and values. Of adapters, kept requests go on with the one that
        they began with.

        Raises:
            EngineError: the manifest does not fit, files cannot be written, or the server fails; says which version it serves.
            ConfigError: an adapter for a server that takes none, or of a higher rank.
        """
        await self.connect()
        gate, mode = self._here(), SwapMode(mode)
        if gate.swapping:
            raise EngineError(f"weight version {manifest.version}: another swap is under way; await it first")
        gate.swapping = True
        try:
            weights = await self._same_server()
            files = self._files()
            if is_adapter(manifest):
                config = self._check_adapter(manifest, weights)
                adapter = await asyncio.to_thread(files.adapter, manifest, config)
                await self._clear(gate, mode)
                await weights.adapt(self._post, adapter, mode)
            else:
                more = weights.facts.constants
                trained = {n: tuple(map(int, t.shape)) for n, t in self._model.tensors.items() if n not in more}
                check_manifest(manifest, weights.facts.dtype, trained)
                keep = files.full if weights.sender is None else HeldVersion.of
                sent = await asyncio.to_thread(keep, add_tensors(manifest, more) if more else manifest, weights.facts.parts)
                await self._clear(gate, mode)
                await weights.replace(self._post, sent, mode)
        finally:
            gate.swapping = False
            gate.open()

    def _files(self) -> WeightFiles:
        self._connect()
        assert self._snapshots is not None  # made when it connected
        return self._snapshots

    async def _same_server(self) -> ServerWeights:
        """A server that calls its weights by another name than it was told is another one: what was known of it is forgotten."""
        weights = self._connect()
        if (await self._post("/weight_info", method="GET"))["weight_version"] != weights.now.label:
            if weights.sender:
                await weights.sender.close()
            self._weights = None
            await self.connect()
        return self._connect()

    async def _clear(self, gate: RequestGate, mode: SwapMode) -> None:
        """Holds new requests back, and sees to those that run."""
        running = gate.shut()
        if mode is SwapMode.DRAIN and running:
            await asyncio.wait([job.done for job in running])

    def _check_adapter(self, manifest: Manifest, weights: ServerWeights) -> Mapping[str, Any]:
        config, can = self._adapter, weights.facts.rank
        if config is None:
            raise EngineError(
                f"weight version {manifest.version} is an adapter, and the engine was made without VllmEngine(adapter=...)"
            )
        if self._server.experts:
            raise ConfigError(
                f"{self.settings.url} serves a mixture of experts on the CPU, where vLLM takes no adapters; sample in process: "
                "engine=InProcess()"
            )
        if can < (rank := int(config["r"])):
            takes = f"adapters up to rank {can}" if can else "no adapters"
            raise ConfigError(f"{self.settings.url} takes {takes}, this one has rank {rank}: {self._server.fix(rank)}")
        rounded = all(tensor.dtype == "bfloat16" for tensor in manifest.tensors.values())
        check_manifest(manifest, "bfloat16" if rounded else "float32", None)
        return config

    # ---- witnesses --------------------------------------------------------------------------------------------------

    async def checksums(self) -> Mapping[str, str] | None:
        """Digests of the parameters that the server holds, by the tensors they were made of: a manifest's own digest where the
        bytes are those that were sent, else a text that says what is there.

        Left out is what the server does not tell: parameters kept in another form (linear layers and experts on its CPU backend,
        experts laid out for some kernels of GPUs), parts on several devices, names of its own. None before the first swap, and
        while an adapter is served, of which it tells nothing.
        """
        weights = self._connect()
        if weights.newest is None or weights.now.adapter:
            return None
        served = parameters((await self._post("/weight_checker", {"action": "checksum"}))["checksums"])
        if weights.facts.device == "cpu":
            served.pop(HEAD, None)  # it multiplies with a packed copy
        return await asyncio.to_thread(compare_checksums, weights.newest, served, weights.laid) or None

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probabilities at temperature 1 of each token given those before it, ``[len(row)]`` each with 0 first, in nats.

        Rows go one after another, so that the same rows give the same bits.

        Raises:
            ConfigError: a row is longer than the context.
            DataError: an id outside the vocabulary.
            EngineError: the server failed, or scored with weights that it was not told to serve.
        """
        await self.connect()
        return [await self._score(row, f"row {i}") for i, row in enumerate(rows)]

    async def _score(self, row: Ids, who: str) -> NDArray[np.float32]:
        weights = self._connect()
        told, context = weights.now, weights.facts.context
        if len(row) > context:
            raise ConfigError(f"{who} has {len(row)} tokens, the server's context holds {context}; cut it")
        if len(row):
            self._check_ids(row, who)
        if len(row) < 2:
            return np.zeros(len(row), np.float32)
        wire, model, full = f"{self._nonce}-{self._next()}", told.adapter or weights.facts.model, len(row) == context
        answer = await self._answer(score_body(row, wire, model, weights.salt, full), weights, who)
        scores = scores_of(answer, row, who, full)
        for span in answer["choices"][0]["weight_versions"]:
            weights.version_of(span["version"], weights.history.index(told), who)
        return scores


def _nothing(request: Request) -> Completion:
    """The completion of a request that was aborted before it was sent."""
    empty = np.zeros(0, np.float32)
    return Completion(ids=ids_of([]), logp_engine=empty, spans=(), stop=Stop.PARTIAL, sampling=request.sampling)
