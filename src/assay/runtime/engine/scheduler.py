"""The running batch: continuous batching over any model that samples, token in and token out."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError, EngineError, UnknownNameError
from assay.core.manifest import Manifest
from assay.core.media import Media, check_media_seen, prefix_key
from assay.core.protocols import EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Ids, Stop
from assay.core.timing import span
from assay.runtime.engine.backend import P, Runner, Served
from assay.runtime.engine.decode import chunks
from assay.runtime.engine.sequences import EngineRequest, RequestBatch, SlotTable
from assay.runtime.engine.stops import StopWatch

__all__ = ["RunningBatch", "check_settings"]

_QUIET_TURNS = 3  # turns of the event loop without a new request before a step begins


class RunningBatch(Generic[P]):
    """Decodes many requests as one running batch (implements `assay.core.protocols.Engine`).

    A prompt that several waiting requests share passes through the model once; requests join between any two steps and leave as
    they end. A token depends on its request alone (prompt, seed, position, weights) up to rounding: noise is counter based, never
    drawn in batch order. Requests are admitted in the order of their arrival, so the same program gives the same bits.

    Args:
        runner, served: the model, and its weights.
        info: at version 0.
        max_batch: most rows that run at once; further requests wait.
        columns: token columns that completions carry: ``entropy``, and those that the path tells.
        decode: ids to text, for requests that end at texts; None: such requests are refused.

    Attributes:
        served: the weights that the model multiplies with.
        counters: what was computed so far: ``prefill_prompts``, ``prefill_tokens`` (without padding), ``steps``,
            ``decode_tokens`` (rows times steps behind the prefill), ``sampled_tokens``.
    """

    def __init__(
        self,
        runner: Runner[P],
        served: Served,
        info: EngineInfo,
        *,
        max_batch: int,
        columns: tuple[str, ...],
        decode: Callable[[list[int]], str] | None = None,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._decode = decode
        self._runner, self.served, self._info, self._max_batch, self._columns = runner, served, info, max_batch, columns
        self._reset()

    def _reset(self) -> None:
        self._table = SlotTable(self._runner.kinds)
        self._jobs: dict[str, EngineRequest] = {}  # every request that has not ended
        self._queue: deque[EngineRequest] = deque()
        self._held: deque[EngineRequest] | None = None  # requests that came while a swap drains
        self._demand: Counter[bytes] = Counter()  # waiting requests per prompt
        self._prefixes: dict[bytes, tuple[P, int]] = {}
        self._pump: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrivals = 0
        self._asked = copy_context()  # of the newest requests: a step counts as a part of what asked for it

    # ---- requests --------------------------------------------------------------------------------------------------

    async def generate(self, request: Request, tell: Callable[[Ids], None] | None = None) -> Completion:
        """Completes a prompt.

        Args:
            request: what is wanted.
            tell: called after each step of the batch with the tokens that the step sampled, all of them in order.

        Raises:
            ConfigError: prompt plus ``max_new_tokens`` exceed the context; names both. Or the request ends at texts, and the
                engine has no tokenizer.
            DataError: an empty prompt, ids outside the vocabulary, a seed outside 64 bits, or an id that is already running.
            EngineError: generation failed; names the request.
        """
        return (await self._generate([request], tell))[0]

    async def generate_all(self, requests: Sequence[Request]) -> list[Completion]:
        """Completes several prompts, and tells of them when the last has ended; in the order of the requests.

        Raises:
            ConfigError, DataError: as of `generate`, and none of them runs.
            EngineError: generation failed; names a request.
        """
        return await self._generate(requests) if requests else []

    async def _generate(self, requests: Sequence[Request], tell: Callable[[Ids], None] | None = None) -> list[Completion]:
        loop = asyncio.get_running_loop()
        self._leave_dead_loops(loop)
        jobs = self._order_requests(requests, RequestBatch(loop.create_future(), len(requests)))
        jobs[0].tell = tell
        self._jobs |= {job.request.id: job for job in jobs}
        self._arrivals += len(jobs)
        if self._held is not None:
            self._held += jobs
        else:
            self._enqueue(jobs, loop)
        try:
            return await jobs[0].order.future
        except asyncio.CancelledError:
            self._end([job for job in jobs if self._jobs.get(job.request.id) is job], Stop.PARTIAL)
            raise

    def _order_requests(self, requests: Sequence[Request], order: RequestBatch) -> list[EngineRequest]:
        """Requests that were checked, each on its own and against all others."""
        keys: dict[tuple[int, tuple[Media, ...]], bytes] = {}  # by the array: rollouts at one task share it
        running, ordered = set[str](), list[EngineRequest]()
        for at, request in enumerate(requests):
            if request.id in self._jobs or request.id in running:
                raise DataError(f"request {request.id!r} is already running; give every request its own id")
            running.add(request.id)
            self._check(request)
            shared = id(request.prompt), request.media
            if shared not in keys:
                self._check_ids(request.prompt, f"request {request.id!r}")
                keys[shared] = prefix_key(request.prompt, request.media)
            watch = self._watch(request) if request.sampling.stop else None
            ordered.append(EngineRequest(request, order, at, keys[shared], watch=watch))
        return ordered

    def _watch(self, request: Request) -> StopWatch:
        stops, begun = request.sampling.stop, len(request.prompt) - request.prefix_tokens
        if self._decode is None:
            raise ConfigError(
                f"request {request.id!r} ends at the texts {stops}, but this engine was given no tokenizer to read by: give it "
                "one, or leave Sampling.stop empty"
            )
        return StopWatch(self._decode, stops, request.prompt[begun:].tolist())

    def _check(self, request: Request) -> None:
        prompt, new = request.prompt, request.sampling.max_new_tokens
        if len(prompt) == 0:
            raise DataError(f"request {request.id!r} has an empty prompt; an engine needs at least one token to go on from")
        if len(prompt) + new > self._info.context:
            raise ConfigError(
                f"request {request.id!r}: a prompt of {len(prompt)} tokens plus max_new_tokens={new} exceeds the context of "
                f"{self._info.context}; shorten one of them or use a model with more max_positions"
            )
        if request.media:
            check_media_seen(request.media, self._info.media, f"request {request.id!r}", "this engine")
        if not 0 <= request.seed < 2**64 or request.first < 0:
            raise DataError(
                f"request {request.id!r}: seed={request.seed} and first={request.first} must be a 64-bit seed and a position"
            )

    def _check_ids(self, ids: Ids, where: str) -> None:
        if int(ids.min()) < 0 or int(ids.max()) >= self._info.vocabulary:
            wrong = next(i for i in ids.tolist() if not 0 <= i < self._info.vocabulary)
            raise DataError(f"{where} holds id {wrong}; the vocabulary has ids 0 to {self._info.vocabulary - 1}")

    async def abort(self, ids: Sequence[str]) -> None:
        """Ends requests, running or waiting; each returns its tokens so far with stop ``partial``.

        Ids that have ended are ignored.
        """
        self._end([self._jobs[i] for i in dict.fromkeys(ids) if i in self._jobs], Stop.PARTIAL)

    def _enqueue(self, jobs: Iterable[EngineRequest], loop: asyncio.AbstractEventLoop) -> None:
        for job in jobs:
            self._queue.append(job)
            self._demand[job.key] += 1
        self._asked = copy_context()
        if self._queue and (self._pump is None or self._pump.done()):
            self._pump = loop.create_task(self._run())

    def _leave_dead_loops(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forgets requests of an event loop that is gone: nobody can wait for them."""
        if self._loop is not loop:
            self._reset()
            self._loop = loop

    # ---- the running batch ------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._settle()
            while self._queue or len(self._table):
                self._asked.run(self._step)
                await self._settle()
        except asyncio.CancelledError as error:
            self._fail(error)
            raise
        except Exception as error:
            self._fail(error)

    async def _settle(self) -> None:
        """Lets whoever is ready submit, so that a batch is as full, and as equal from run to run, as the program allows."""
        quiet, seen = 0, self._arrivals
        while quiet < _QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._arrivals == seen else 0
            seen = self._arrivals

    def _step(self) -> None:
        with span("engine"):
            self._advance()

    def _advance(self) -> None:
        """Every running row goes on; waiting requests join first, as many as fit."""
        table = self._table
        joining = [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch - len(table)))]
        if joining:
            self._admit(joining)
        before = int(table.count[: len(table)].sum())
        went = self._runner.advance(table)
        self._check_finite(table.last("logp"))
        self.counters["steps"] += went.steps
        self.counters["decode_tokens"] += went.tokens
        self.counters["sampled_tokens"] += int(table.count[: len(table)].sum()) - before
        table.tell()
        if went.done.any() or went.cut.any():
            over = np.flatnonzero(went.done | went.cut).tolist()
            self._resolve([table.jobs[i] for i in over], [Stop.DONE if went.done[i] else Stop.LENGTH for i in over])
            self._remove(over)

    def _admit(self, jobs: list[EngineRequest]) -> None:
        """Gives jobs slots behind the running rows, with their prompts' keys and values."""
        self._prefill({j.key: j.request.prompt for j in jobs if j.key not in self._prefixes})
        prompts = [self._prefixes[j.key] for j in jobs]
        longest = max(len(j.request.prompt) + j.request.sampling.max_new_tokens for j in jobs)
        self._runner.join(prompts, len(self._table), longest)
        for job, (prefill, row) in zip(jobs, prompts, strict=True):
            if prefill.prompts:
                job.prompt = {name: of_prompts[row] for name, of_prompts in prefill.prompts.items()}
        self._table.admit(jobs, self._info.version)
        for job in jobs:
            self._release(job.key)

    def _prefill(self, prompts: dict[bytes, Ids]) -> None:
        keys, rows = list(prompts), list(prompts.values())
        for part in chunks([len(r) for r in rows]):
            prefill = self._runner.prefill([rows[i] for i in part])
            self._prefixes |= {keys[i]: (prefill, at) for at, i in enumerate(part)}
        self.counters["prefill_prompts"] += len(rows)
        self.counters["prefill_tokens"] += sum(len(r) for r in rows)

    def _release(self, key: bytes) -> None:
        """One request fewer waits for a prompt; behind the last one its prefill is dropped."""
        self._demand[key] -= 1
        if self._demand[key] <= 0:
            del self._demand[key]
            self._prefixes.pop(key, None)

    def _check_finite(self, logp: NDArray[np.float32]) -> None:
        if not np.isfinite(logp).all():
            wrong = [self._table.jobs[i].request.id for i in np.flatnonzero(~np.isfinite(logp)).tolist()]
            raise EngineError(
                f"weight version {self._info.version} gives logits that are not finite (requests "
                f"{', '.join(map(repr, wrong[:4]))}); look for NaN or infinite weights"
            )

    # ---- ends ----------------------------------------------------------------------------------------------------------

    def _resolve(self, jobs: Sequence[EngineRequest], stops: Sequence[Stop]) -> None:
        for job, completion in zip(jobs, self._table.completions(jobs, stops, self._columns), strict=True):
            del self._jobs[job.request.id]
            job.order.put(job.at, completion)

    def _remove(self, slots: list[int]) -> None:
        source, target = self._table.remove(np.array(slots, np.int64))
        rows = len(self._table)
        self._runner.keep(rows, source, target, int(self._table.position[:rows].max(initial=0)) + 1)

    def _end(self, jobs: Sequence[EngineRequest], stop: Stop) -> None:
        """Ends jobs wherever they are; those that never ran return no tokens."""
        self._resolve(jobs, [stop] * len(jobs))
        for job in jobs:
            if job.slot < 0 and self._held is not None and job in self._held:
                self._held.remove(job)
            elif job.slot < 0:
                self._queue.remove(job)
                self._release(job.key)
        running = [job.slot for job in jobs if job.slot >= 0]
        if running:
            self._remove(running)

    def _fail(self, error: BaseException) -> None:
        """Tells everybody who waits; the engine starts afresh with the next request."""
        jobs, loop = list(self._jobs.values()), self._loop
        self._reset()
        self._loop = loop
        for order, job in {job.order: job for job in reversed(jobs)}.items():  # told of its first
            told = EngineError(f"request {job.request.id!r} failed with {len(jobs) - 1} others: {type(error).__name__}: {error}")
            told.__cause__ = error
            order.fail(told)

    # ---- weights ----------------------------------------------------------------------------------------------------

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        """Serves new weights: all tensors of a full manifest; of a delta only those that it holds, on the version it is based on.

        ``drain``: requests made so far end first, later ones wait and run under the new weights. ``keep``: running rows go on
        from their old keys and values; their spans name both versions, and only ``logp_engine`` tells the probability of what
        they sampled.

        Raises:
            EngineError: the manifest has no payload that fits, is a delta on other weights than those served, or another swap is
                draining; the old weights stay.
        """
        loop = asyncio.get_running_loop()
        self._leave_dead_loops(loop)
        arrays = self.served.verify_manifest(manifest)
        if self._held is not None:
            raise EngineError(f"weight version {manifest.version}: another swap is still draining; await it first")
        mode = SwapMode(mode)
        if mode is SwapMode.DRAIN and self._jobs:
            await self._wait_drained()
        self.served.load(arrays)
        self._info = replace(self._info, version=manifest.version)
        self._prefixes.clear()
        self._table.mark(manifest.version)
        self._go_on(loop)

    async def _wait_drained(self) -> None:
        waiting: deque[EngineRequest] = deque()
        self._held = waiting
        try:
            while len(self._jobs) > len(waiting):
                await asyncio.sleep(0)
        except BaseException:
            self._go_on(asyncio.get_running_loop())
            raise

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        held, self._held = self._held, None
        self._enqueue(held or (), loop)

    # ---- witnesses ---------------------------------------------------------------------------------------------------

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probabilities at temperature 1 of each token given those before it, ``[len(row)]`` each with 0 first, in nats.

        Raises:
            ConfigError: a row is longer than the context.
            DataError: an id outside the vocabulary.
        """
        for i, row in enumerate(rows):
            if len(row) > self._info.context:
                raise ConfigError(f"row {i} has {len(row)} tokens, the context holds {self._info.context}; cut it")
            if len(row):
                self._check_ids(row, f"row {i}")
        return self._runner.score(rows)

    async def checksums(self) -> Mapping[str, str]:
        """Digests of the served arrays under their Hugging Face names, head included."""
        return self.served.digests()

    def info(self) -> EngineInfo:
        """Version, vocabulary, context, and the type of the weights served."""
        return self._info


def check_settings(engine: str, max_batch: int, columns: tuple[str, ...], known: Sequence[str]) -> None:
    """Refuses settings before anything is built from them.

    Raises:
        ConfigError: ``max_batch`` below 1.
        UnknownNameError: a column that is not among the known ones.
    """
    if max_batch < 1:
        raise ConfigError(f"{engine}: max_batch={max_batch}; use at least 1")
    for name in columns:
        if name not in known:
            raise UnknownNameError("engine column", name, list(known))
