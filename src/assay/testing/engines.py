"""The contract of an engine: what was sampled is told exactly, and depends on its request alone."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.core.errors import AssayError, ConfigError, DataError, EngineError
from assay.core.manifest import Manifest
from assay.core.protocols import Engine, Learner, Request
from assay.core.rollout import Annealing, Completion, Ids, Sampling, Stop, ids_of
from assay.core.sample import TEMPERATURE
from assay.core.seeds import generator
from assay.testing.contracts import Report, require, wait_for

__all__ = ["check_engine"]

PROMPT = 6
"""Tokens of a prompt."""

LONGEST = 4096
"""Context up to which a request is made that fills it: of a longer one that would take long."""


def check_engine(
    engine: Engine,
    learner: Learner | None = None,
    *,
    requests: int = 8,
    tokens: int = 24,
    bar: float = 1e-4,
    seed: int = 0,
) -> Report:
    """Samples by an engine, and holds the answers to what runs and proofs rely on.

    - An answer's ids are in the vocabulary, its log-probabilities are finite and at most 0, all its tokens are of the version
      served, and without stop ids it has exactly ``max_new_tokens`` with stop ``length``.
    - The same request gives the same tokens, alone, among others, and cut in two (``Request.first``); another seed gives others.
    - At temperature 0, and with ``top_k=1``, the likeliest token comes, whose log-probability is then 0.
    - A temperature that falls along the rollout (``Sampling.annealing``) is a ConfigError, or each token's is told, by its place
      in the rollout; where it does not fall, the draws are those of one temperature.
    - A stop id ends an answer at its first occurrence, is its last token, and the stop is ``done``, at the limit too.
    - A request that fills the context is answered; one token more is a ConfigError; an empty prompt, and an id outside the
      vocabulary, are a DataError.
    - `Engine.score` gives the same bits twice, 0 for a row's first token, and for what was sampled at temperature 1 the
      log-probabilities that the sampler told.
    - With a ``learner``: after a swap to what it publishes the engine serves that version, whose checksums are the manifest's,
      and their log-probabilities agree. A request that runs during a swap is finished by the old version, and one that waits
      is answered by the new one. A manifest without arrays is refused and leaves the version.

    That an engine serves trained weights and no older ones is for the proof of weights to say, in every run.

    Where weights are bfloat16, sums in another order may change a sampled token, so that tokens alone, among others and cut in
    two are not compared.

    Args:
        engine: that answers, with any weights; with a learner it serves that one's afterwards.
        learner: holds the weights that it shall serve.
        requests: how many are made at once, at least 2.
        tokens: sampled for each, at least 4; a prompt of 6 and these must fit the context.
        bar: nats by which two log-probabilities of one token may differ; 1e-4 suffices for float32.
        seed: of prompts and noise.

    Raises:
        ContractError: it does not hold; says what, and of which request.
        ConfigError: too few requests or tokens, or more than the context holds.

    >>> from assay.testing import CharCodec, FakeLearner, ScriptedEngine
    >>> codec = CharCodec("abcdef")
    >>> report = check_engine(ScriptedEngine(lambda ask: None, codec), FakeLearner(codec.size))
    >>> print(*report.passed, sep=", ")
    whole answers, seeded, greedy, stop ids, context, score, weights, swaps
    """
    if requests < 2 or tokens < 4:
        raise ConfigError(f"check_engine(requests={requests}, tokens={tokens}); give at least 2 requests of 4 tokens")
    return wait_for(_Check(engine, learner, requests, tokens, bar, seed).run())


class _Check:
    """The checks, one after the other, on one event loop."""

    def __init__(self, engine: Engine, learner: Learner | None, requests: int, tokens: int, bar: float, seed: int) -> None:
        self.engine, self.learner, self.tokens, self.bar = engine, learner, tokens, bar
        self.subject = f"engine {type(engine).__name__}"
        self.info = engine.info()
        if self.info.context < PROMPT + tokens:
            raise ConfigError(
                f"check_engine(tokens={tokens}): with a prompt of {PROMPT} that exceeds the context of {self.info.context}; "
                "give fewer tokens"
            )
        rng = generator("testing/engine", seed)
        prompts = [ids_of(rng.integers(0, self.info.vocabulary, PROMPT)) for _ in range(requests)]
        self.requests = [
            Request(id=f"check-{i}", prompt=prompt, seed=1000 * seed + i, sampling=Sampling(max_new_tokens=tokens))
            for i, prompt in enumerate(prompts)
        ]
        self.exact = self.info.dtype == "float32"
        self.numbers: dict[str, float] = {}

    async def run(self) -> Report:
        try:
            if self.learner is not None:
                await self.swap(self.publish(self.learner))
            together = await self.sample_together(self.requests)
            self.whole(together)
            await self.check_seeds(together)
            await self.greedy()
            await self.check_temperature()
            await self.stops(together)
            skipped = await self.context()
            await self.score(together)
            passed = ["whole answers", "seeded", "greedy", "stop ids", "context", "score"]
            if self.learner is None:
                skipped.append("weights, swaps: no learner was given")
            else:
                await self.weights(self.learner, together)
                await self.swaps(self.learner)
                passed += ["weights", "swaps"]
            if not self.exact:
                skipped.append(f"the same tokens alone, among others and cut in two: the weights are {self.info.dtype}")
            return Report(subject=self.subject, passed=tuple(passed), skipped=tuple(skipped), numbers=self.numbers)
        finally:
            close: Any = getattr(self.engine, "close", None)  # connections of this event loop
            if inspect.iscoroutinefunction(close):
                await close()

    def require(self, held: bool, finding: str) -> None:
        require(held, self.subject, finding)

    async def sample_together(self, requests: Sequence[Request]) -> list[Completion]:
        """The answers to requests that are made at once."""
        return list(await asyncio.gather(*(self.engine.generate(request) for request in requests)))

    # ---- answers

    def whole(self, done: Sequence[Completion]) -> None:
        for request, found in zip(self.requests, done, strict=True):
            who = f"request {request.id}"
            self.require(
                len(found.ids) == self.tokens and found.stop is Stop.LENGTH,
                f"{who} has {len(found.ids)} tokens and stop {str(found.stop)!r}; without stop ids: {self.tokens}, 'length'",
            )
            inside = bool((found.ids >= 0).all() and (found.ids < self.info.vocabulary).all())
            self.require(inside, f"{who} holds ids outside the vocabulary of {self.info.vocabulary}: {found.ids.tolist()}")
            fine = bool(np.isfinite(found.logp_engine).all() and (found.logp_engine <= 1e-5).all())
            self.require(fine, f"{who} has log-probabilities that are none: {found.logp_engine.tolist()}")
            versions = sorted({span.version for span in found.spans})
            self.require(
                versions == [self.info.version],
                f"{who} names weight versions {versions}, and info() says {self.info.version}",
            )
            self.require(found.sampling == request.sampling, f"{who} was drawn by {found.sampling}, not as it asked")

    async def check_seeds(self, together: Sequence[Completion]) -> None:
        first = self.requests[0]
        again = await self.sample_together(self.requests)
        other = await self.engine.generate(replace(first, seed=first.seed + 7919))
        everywhere = {tuple(c.ids.tolist()) for c in (*together, other)}
        self.require(len(everywhere) > 1, f"gives {len(together) + 1} requests with seeds of their own the same tokens")
        self.same(together, again, "made again")
        if self.exact:
            alone = [await self.engine.generate(request) for request in self.requests]
            self.same(together, alone, "made alone")
            half = self.tokens // 2
            rest = [
                replace(
                    request,
                    prompt=_join_ids(request.prompt, found.ids[:half]),
                    first=half,
                    prefix_tokens=half,
                    sampling=Sampling(max_new_tokens=self.tokens - half),
                )
                for request, found in zip(self.requests, together, strict=True)
            ]
            tails = await self.sample_together(rest)
            self.same(together, tails, f"cut behind {half} tokens and gone on with (Request.first={half})", half)

    def same(self, one: Sequence[Completion], other: Sequence[Completion], when: str, start: int = 0) -> None:
        for request, a, b in zip(self.requests, one, other, strict=True):
            ids, logp = a.ids[start:], a.logp_engine[start:]
            self.require(
                ids.tolist() == b.ids.tolist(),
                f"request {request.id}, {when}, has tokens {b.ids.tolist()}, not {ids.tolist()}: its noise must depend on its "
                "seed and first position alone",
            )
            self.near(logp, b.logp_engine, f"log-probabilities of request {request.id}, {when}")

    async def greedy(self) -> None:
        request = self.requests[0]
        likeliest = await self.sample_together(
            [replace(request, id=f"greedy-{i}", seed=i, sampling=replace(request.sampling, temperature=0.0)) for i in range(2)]
        )
        one = await self.engine.generate(replace(request, id="top-1", sampling=replace(request.sampling, top_k=1)))
        for found, how in (*((f, "temperature=0") for f in likeliest), (one, "top_k=1")):
            certain = bool((np.abs(found.logp_engine) <= self.bar).all())
            self.require(certain, f"with {how} the log-probabilities are not 0, though only one token can be drawn")
        if self.exact:
            said = [found.ids.tolist() for found in (*likeliest, one)]
            self.require(said[0] == said[1] == said[2], f"draws {said} at temperature 0 by two seeds, and with top_k=1")

    async def check_temperature(self) -> None:
        flat, falling = Annealing(peak=0.7, least=0.7, start=0), Annealing(peak=1.5, least=0.5, decay=4.0, start=1)
        for request in self.requests[:2]:
            plain = await self.engine.generate(replace(request, sampling=replace(request.sampling, temperature=0.7)))
            for annealing, first in ((flat, 0), (falling, 0), (falling, 2)):
                wanted = replace(request.sampling, annealing=annealing)
                try:
                    found = await self.engine.generate(replace(request, first=first, sampling=wanted))
                except ConfigError:
                    return
                told = found.columns.get(TEMPERATURE)
                self.require(
                    told is not None and bool((told.values == wanted.temperatures(first, len(found.ids))).all()),
                    f"request {request.id} with {annealing} from token {first} on does not tell the temperature of each token",
                )
                if annealing is flat and self.exact:
                    same = found.ids.tolist() == plain.ids.tolist()
                    self.require(same, f"request {request.id} draws other tokens with {annealing} than at temperature 0.7")

    async def stops(self, together: Sequence[Completion]) -> None:
        for request, found in zip(self.requests[:4], together, strict=False):
            stop = int(found.ids[self.tokens // 2])
            end = found.ids.tolist().index(stop) + 1
            for limit, where in ((self.tokens, "within the limit"), (end, "at the limit")):
                cut = await self.engine.generate(replace(request, sampling=Sampling(max_new_tokens=limit, stop_ids=(stop,))))
                if not self.exact and stop not in cut.ids.tolist():
                    continue  # another token came, which says nothing
                ids = cut.ids.tolist()
                self.require(
                    cut.stop is Stop.DONE and ids[-1] == stop and ids.count(stop) == 1,
                    f"request {request.id} with stop id {stop}, {where}, gives {ids} and stop {str(cut.stop)!r}; it ends with "
                    "the stop id, once, and is 'done'",
                )
                if self.exact:
                    self.require(
                        ids == found.ids[:end].tolist(), f"a stop id changes the tokens of request {request.id} before it"
                    )

    # ---- limits

    async def context(self) -> list[str]:
        request, context = self.requests[0], self.info.context
        long = ids_of(np.resize(request.prompt, context))
        one = replace(request, sampling=Sampling(max_new_tokens=1))
        await self.check_refused(
            replace(one, prompt=long), ConfigError, f"a prompt of all {context} tokens of the context, and one more"
        )
        await self.check_refused(replace(one, prompt=ids_of([])), DataError, "an empty prompt")
        outside = ids_of([*request.prompt, self.info.vocabulary])
        await self.check_refused(replace(one, prompt=outside), DataError, f"id {self.info.vocabulary}, outside the vocabulary")
        if context > LONGEST:
            return [f"a request that fills the context: {context} tokens take long"]
        full = await self.engine.generate(replace(one, prompt=long[:-1]))
        self.require(len(full.ids) == 1, f"a request that fills the context of {context} has {len(full.ids)} tokens, not 1")
        return []

    async def check_refused(self, request: Request, kind: type[AssayError], what: str) -> None:
        try:
            found = await self.engine.generate(request)
        except kind:
            return
        except Exception as error:
            self.require(False, f"raises {type(error).__name__} for {what}; raise a {kind.__name__} before anything is sampled")
        else:
            self.require(
                False, f"answers {what} with {len(found.ids)} tokens; raise a {kind.__name__} before anything is sampled"
            )

    # ---- log-probabilities

    async def score(self, together: Sequence[Completion]) -> None:
        rows = self.rows(together)
        first, again = await self.engine.score(rows), await self.engine.score(rows)
        for request, a, b in zip(self.requests, first, again, strict=True):
            self.require(
                len(a) == PROMPT + self.tokens and float(a[0]) == 0.0,
                f"score gives {len(a)} numbers for the {PROMPT + self.tokens} tokens of request {request.id}, beginning with "
                f"{float(a[0]) if len(a) else None}; one each, the first 0",
            )
            self.require(a.tobytes() == b.tobytes(), f"score gives other bits for request {request.id} when it is asked again")
        self.agree(together, first, "Engine.score")

    def rows(self, done: Sequence[Completion]) -> list[Ids]:
        return [_join_ids(request.prompt, found.ids) for request, found in zip(self.requests, done, strict=True)]

    def agree(self, done: Sequence[Completion], scores: Sequence[np.ndarray], who: str) -> None:
        gaps = [np.abs(s[PROMPT:] - c.logp_engine).max() for s, c in zip(scores, done, strict=True)]
        self.numbers[f"largest gap to {who}, in nats"] = float(max(gaps))
        for request, found, scored in zip(self.requests, done, scores, strict=True):
            self.near(scored[PROMPT:], found.logp_engine, f"log-probabilities of request {request.id} and those of {who}")

    def near(self, one: np.ndarray, other: np.ndarray, what: str) -> None:
        gap = float(np.abs(one - other).max())
        self.require(gap <= self.bar, f"{what} differ by {gap:.3g} nats, more than {self.bar}")

    # ---- weights

    def publish(self, learner: Learner) -> Manifest:
        return learner.publish(self.info.dtype, self.info.digests)

    async def swap(self, manifest: Manifest) -> None:
        await self.engine.swap(manifest)
        self.info = self.engine.info()
        self.require(
            self.info.version == manifest.version,
            f"says version {self.info.version} behind a swap to {manifest.version}",
        )

    async def weights(self, learner: Learner, together: Sequence[Completion]) -> None:
        manifest, sums = self.publish(learner), await self.engine.checksums()
        named = {name: value for name, value in (sums or {}).items() if name in manifest.tensors}
        other = sorted(name for name, value in named.items() if value != manifest.tensors[name].digest)
        self.require(not other, f"has other checksums than the manifest that it took, of {other[:3]}")
        self.numbers["tensors with a checksum"] = float(len(named))
        self.agree(together, learner.score(self.rows(together)), "the learner")

    async def swaps(self, learner: Learner) -> None:
        manifest = self.publish(learner)
        before, after = manifest.version, manifest.version + 1
        running, late = self.requests[0], replace(self.requests[1], id="late")
        begun = asyncio.ensure_future(self.engine.generate(running))
        await _turns()
        swap = asyncio.ensure_future(self.swap(replace(manifest, version=after)))
        await _turns()
        waits = asyncio.ensure_future(self.engine.generate(late))
        await _wait_all(begun, swap, waits)
        for found, version, when in ((begun.result(), before, "before"), (waits.result(), after, "behind")):
            versions = sorted({span.version for span in found.spans})
            self.require(
                versions == [version],
                f"a request made {when} a swap from version {before} to {after} names versions {versions}, not {version}",
            )
        try:
            await self.engine.swap(Manifest(version=after + 1, tensors={}))
        except EngineError:
            pass
        else:
            self.require(False, "takes a manifest without arrays; raise an EngineError that names the version served")
        self.require(self.engine.info().version == after, "says another version behind a swap that was refused")
        await self.swap(manifest)


async def _turns() -> None:
    """Lets what was begun get to work."""
    for _ in range(3):
        await asyncio.sleep(0)


async def _wait_all(*tasks: asyncio.Future[Any]) -> None:
    """Waits for all, and raises the first error of any."""
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _join_ids(*parts: Ids) -> Ids:
    return ids_of(np.concatenate(parts))
