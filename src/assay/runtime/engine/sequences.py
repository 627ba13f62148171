"""The running rows of a batch: what each has sampled, and when it must end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array, TokenColumn
from assay.core.protocols import Request
from assay.core.ragged import SUPPORT, ragged_array
from assay.core.rollout import Completion, Ids, Span, Stop
from assay.core.sample import TEMPERATURE
from assay.core.seeds import uniforms
from assay.runtime.engine.draw import Drawn, Draws
from assay.runtime.engine.stops import StopWatch

__all__ = ["ColumnKind", "EngineRequest", "RequestBatch", "SlotTable"]


class ColumnKind(NamedTuple):
    """A token column that a decode path tells beside its logits: type, what each token has of it, and what stands where nothing
    is known.
    """

    dtype: str
    trailing: tuple[int, ...]
    fill: int = 0


class RequestBatch:
    """Requests made together, whose completions are handed over together: one wake-up for whoever waits.

    Attributes:
        future: all completions, in the order of the requests.
    """

    def __init__(self, future: asyncio.Future[list[Completion]], size: int) -> None:
        self.future = future
        self._found: list[Completion | None] = [None] * size
        self._open = size

    def put(self, at: int, completion: Completion) -> None:
        """The completion of request ``at``."""
        self._found[at] = completion
        self._open -= 1
        if not self._open and not self.future.done():
            self.future.set_result([c for c in self._found if c is not None])

    def fail(self, error: BaseException) -> None:
        """There will be no more."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, eq=False)
class EngineRequest:
    """A request on its way.

    Attributes:
        order, at: whom its completion goes to, and its place there.
        key: its prompt's bytes; equal prompts share a prefill.
        slot: row in the batch, -1 while it waits.
        marks: (first token, weight version), ascending.
        started: clock at admission.
        watch: looks for the texts that end it; None where it has none.
        prompt: what the path told of its prompt's tokens, ``[P, ...]`` by column.
        support: the ids that each token was drawn from, where the request keeps them.
        tell: hears of new tokens; None where nobody waits for them.
        told: how many tokens it has heard of.
    """

    request: Request
    order: RequestBatch
    at: int
    key: bytes
    slot: int = -1
    marks: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    started: float = 0.0
    watch: StopWatch | None = None
    prompt: Mapping[str, Array] = field(default_factory=dict[str, Array])
    support: list[Ids] = field(default_factory=list["Ids"])
    tell: Callable[[Ids], None] | None = None
    told: int = 0


class SlotTable:
    """Rows ``0 .. n - 1`` are running; a row that ends is replaced by the last one. ``kinds`` are columns beside entropy."""

    def __init__(self, kinds: Mapping[str, ColumnKind] | None = None) -> None:
        self._kinds = dict(kinds or {})
        self.jobs: list[EngineRequest] = []
        self._watched = 0  # rows that end at texts
        self._supported = 0  # rows that keep their supports
        self._heard = 0  # rows whose tokens somebody hears of
        self._capacity, self._width, self._stops = 0, 0, 1
        self._allocate(0, 0, 1)

    def __len__(self) -> int:
        return len(self.jobs)

    def _allocate(self, capacity: int, width: int, stops: int) -> None:
        """Arrays over rows; ``width`` bounds the new tokens of a row, ``stops`` its stop ids."""
        self._capacity, self._width, self._stops = capacity, width, stops
        self.token = np.zeros(capacity, np.int64)
        self.position = np.zeros(capacity, np.int64)
        self.count = np.zeros(capacity, np.int64)
        self.limit = np.zeros(capacity, np.int64)
        self.temperature = np.ones((capacity, width), np.float32)  # of each token of a row
        self.top_k = np.zeros(capacity, np.int64)
        self.top_p = np.ones(capacity, np.float64)
        self.min_p = np.zeros(capacity, np.float64)
        self.stop = np.full((capacity, stops), -1, np.int64)
        self.uniform = np.zeros((capacity, width), np.float64)
        self.ids = np.zeros((capacity, width), np.int32)
        self.logp = np.zeros((capacity, width), np.float32)
        self.entropy = np.zeros((capacity, width), np.float32)
        self.told = {name: np.zeros((capacity, width, *k.trailing), k.dtype) for name, k in self._kinds.items()}

    def _columns(self) -> tuple[Array, ...]:
        return (
            self.token,
            self.position,
            self.count,
            self.limit,
            self.temperature,
            self.top_k,
            self.top_p,
            self.min_p,
            self.stop,
            self.uniform,
            self.ids,
            self.logp,
            self.entropy,
            *self.told.values(),
        )

    def _reserve(self, capacity: int, width: int, stops: int) -> None:
        if capacity <= self._capacity and width <= self._width and stops <= self._stops:
            return
        n, old = len(self.jobs), self._columns()
        grown = self._capacity if capacity <= self._capacity else max(capacity, 2 * self._capacity)
        self._allocate(grown, max(width, self._width), max(stops, self._stops))
        for new, was in zip(self._columns(), old, strict=True):
            if was.ndim == 1:
                new[:n] = was[:n]
            else:
                new[:n, : was.shape[1]] = was[:n]

    def admit(self, jobs: Sequence[EngineRequest], version: int) -> None:
        """Adds rows behind the running ones; their noise is read from the counter-based stream now."""
        n, m = len(self.jobs), len(jobs)
        alike = [(s, len(list(run))) for s, run in groupby(jobs, lambda job: job.request.sampling)]  # most often all are
        self._reserve(n + m, max(s.max_new_tokens for s, _ in alike), max(len(s.stop_ids) for s, _ in alike))
        here = slice(n, n + m)
        self.count[here] = 0
        self.position[here] = [len(j.request.prompt) - 1 for j in jobs]
        self.stop[here] = -1
        start = n
        for s, size in alike:
            rows, start = slice(start, start + size), start + size
            self.limit[rows] = s.max_new_tokens
            self._warm(jobs[start - size - n : start - n], start - size)
            self.top_k[rows], self.top_p[rows], self.min_p[rows] = s.top_k, s.top_p, s.min_p
            self.stop[rows, : len(s.stop_ids)] = s.stop_ids
        self._noise(jobs, n)
        now = time.perf_counter()
        for i, job in enumerate(jobs):
            job.slot, job.started, job.marks = n + i, now, [(0, version)]
        self.jobs += jobs
        self._watched += sum(job.watch is not None for job in jobs)
        self._supported += sum(job.request.sampling.keep_support for job in jobs)
        self._heard += sum(job.tell is not None for job in jobs)

    def tell(self) -> None:
        """Tells those who wait for them of each row's new tokens."""
        if not self._heard:
            return
        for slot, job in enumerate(self.jobs):
            count = int(self.count[slot])
            if job.tell is not None and count > job.told:
                job.tell(self.ids[slot, job.told : count].copy())
                job.told = count

    def keeps_support(self) -> NDArray[np.bool_] | None:
        """``[n]`` which rows keep the supports of their tokens; None for none of them."""
        if not self._supported:
            return None
        return np.array([job.request.sampling.keep_support for job in self.jobs], np.bool_)

    def _warm(self, jobs: Sequence[EngineRequest], slot: int) -> None:
        """The temperatures of rows that draw alike, from ``slot`` on; annealed ones by where in its rollout a row begins."""
        s = jobs[0].request.sampling
        if s.annealing is None:
            self.temperature[slot : slot + len(jobs), : s.max_new_tokens] = s.temperature
            return
        for i, job in enumerate(jobs):
            self.temperature[slot + i, : s.max_new_tokens] = s.temperatures(job.request.first, s.max_new_tokens)

    def _noise(self, jobs: Sequence[EngineRequest], n: int) -> None:
        seeds = np.array([j.request.seed for j in jobs], np.uint64)
        first = np.array([j.request.first for j in jobs], np.int64)
        for start in np.unique(first):
            rows = np.flatnonzero(first == start)
            width = int(self.limit[n + rows].max())
            self.uniform[n + rows, :width] = uniforms(seeds[rows], int(start), width)

    def draws(self) -> Draws:
        """How the running rows draw their next token."""
        n = len(self.jobs)
        rows = np.arange(n)
        uniform, temperature = self.uniform[rows, self.count[:n]], self.temperature[rows, self.count[:n]]
        return Draws(temperature, self.top_k[:n], self.top_p[:n], uniform, self.min_p[:n], self.keeps_support())

    def record(self, drawn: Drawn, told: Mapping[str, Array]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Appends a token to each row, with what was told of it; returns which rows met a stop id or text, and which reached
        their length.
        """
        n = len(self.jobs)
        rows, count = np.arange(n), self.count[:n]
        self.ids[rows, count] = drawn.ids
        self.logp[rows, count] = drawn.logp
        self.entropy[rows, count] = drawn.entropy
        for name, values in told.items():
            self.told[name][rows, count] = values
        for row, support in drawn.support.items():
            self.jobs[row].support.append(support)
        self.token[:n] = drawn.ids
        self.count[:n] += 1
        self.position[:n] += 1
        done = (self.stop[:n] == drawn.ids[:, None]).any(1)
        if self._watched:
            done |= [j.watch is not None and j.watch.push(i) for j, i in zip(self.jobs, drawn.ids.tolist(), strict=True)]
        return done, ~done & (self.count[:n] >= self.limit[:n])

    def watch_stops(
        self, before: NDArray[np.int64], done: NDArray[np.bool_], cut: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Ends rows at their texts, behind which tokens may have been drawn already: what `record` returns, of several tokens.

        Args:
            before: ``[n]`` tokens of each row before these.
            done, cut: ``[n]`` which rows met a stop id, and which reached their length.
        """
        if not self._watched:
            return done, cut
        for i, job in enumerate(self.jobs):
            if job.watch is None:
                continue
            for at in range(int(before[i]), int(self.count[i])):
                if job.watch.push(int(self.ids[i, at])):
                    self.count[i] = at + 1
                    done[i], cut[i] = True, False
                    break
        return done, cut

    def last(self, name: str) -> NDArray[Any]:
        """A column's value at the last token of each row: ``logp`` or ``entropy``."""
        n = len(self.jobs)
        values: NDArray[Any] = getattr(self, name)
        return values[np.arange(n), self.count[:n] - 1]

    def completions(self, jobs: Sequence[EngineRequest], stops: Sequence[Stop], columns: tuple[str, ...]) -> list[Completion]:
        """What jobs have sampled so far, with the named columns: nothing where they wait."""
        slots = np.array([job.slot for job in jobs], np.int64)
        running = slots >= 0
        count = np.zeros(len(jobs), np.int64)
        count[running] = self.count[slots[running]]
        longest = int(count.max(initial=0))
        sampled: NDArray[np.bool_] = np.arange(longest) < count[running, None]
        offered: dict[str, Array] = {"entropy": self.entropy, **self.told}
        fill = {name: kind.fill for name, kind in self._kinds.items()}

        def take_values(values: Array) -> Array:
            """The sampled tokens' values, jobs behind one another: one copy, of which each completion has its part."""
            return values[slots[running], :longest][sampled]

        ids, logp = take_values(self.ids), take_values(self.logp)
        told: dict[str, Array] = {name: take_values(offered[name]) for name in columns}
        ids.setflags(write=False)
        now, found = time.perf_counter(), list[Completion]()
        for job, stop, (a, b) in zip(jobs, stops, pairwise([0, *np.cumsum(count).tolist()]), strict=True):
            spans = _spans(job.marks, b - a)
            version = spans[0].version if len(spans) == 1 else -1
            held = {n: TokenColumn(n, v[a:b], "engine", version, fill.get(n, 0)) for n, v in told.items()}
            if job.request.sampling.keep_support:  # a text may have ended it before its last tokens
                held[SUPPORT] = TokenColumn(SUPPORT, ragged_array(job.support[: b - a]), "engine", version)
            if job.request.sampling.annealing and b > a:
                held[TEMPERATURE] = TokenColumn(TEMPERATURE, self.temperature[job.slot, : b - a].copy(), "engine", version)
            prompt: dict[str, TokenColumn] = {}
            if job.prompt and b > a:
                prompt = {n: TokenColumn(n, v, "engine", job.marks[0][1], fill[n]) for n, v in job.prompt.items() if n in told}
            completion = Completion(
                ids=ids[a:b],
                logp_engine=logp[a:b],
                spans=spans,
                stop=stop,
                sampling=job.request.sampling,
                duration=now - job.started if b > a else 0.0,
                columns=held,
                prompt=prompt,
            )
            found.append(completion)
        return found

    def mark(self, version: int) -> None:
        """From here on the running rows are sampled by ``version``."""
        for slot, job in enumerate(self.jobs):
            start = int(self.count[slot])
            if job.marks[-1][0] == start:
                job.marks.pop()
            job.marks.append((start, version))

    def remove(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Takes rows out; returns (rows that moved, where to), so that the cache can follow."""
        kept = len(self.jobs) - len(slots)
        ended: list[int] = slots.tolist()
        self._watched -= sum(self.jobs[i].watch is not None for i in ended)
        self._supported -= sum(self.jobs[i].request.sampling.keep_support for i in ended)
        self._heard -= sum(self.jobs[i].tell is not None for i in ended)
        gone = np.zeros(len(self.jobs), np.bool_)
        gone[slots] = True
        target = np.flatnonzero(gone[:kept])
        source = kept + np.flatnonzero(~gone[kept:])
        for column in self._columns():
            column[target] = column[source]
        for a, b in zip(source.tolist(), target.tolist(), strict=True):
            self.jobs[b] = self.jobs[a]
            self.jobs[b].slot = b
        del self.jobs[kept:]
        return source, target


def _spans(marks: Sequence[tuple[int, int]], count: int) -> tuple[Span, ...]:
    """Which weights sampled which of ``count`` tokens."""
    if len(marks) == 1:
        return (Span(marks[0][1], 0, count),) if count else ()
    ends = [*(start for start, _ in marks[1:]), count]
    return tuple(Span(version, start, end) for (start, version), end in zip(marks, ends, strict=False) if end > start)
