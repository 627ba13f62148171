"""A policy without torch: a tokenizer of characters, an engine that says what a script says, a learner of single-token odds.

The fake model knows one log-probability per token, whatever stands before it: logits are a bias plus the row sums of its head.
Engine and learner compute it alike, so checksums, probes and staleness can be tested on it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.canon import array_digest, digest
from assay.core.columns import Array, TokenColumn
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.manifest import Manifest, manifest_of
from assay.core.plan import Forward, Plan
from assay.core.protocols import EngineInfo, LossProgram, PassObserver, PerturbsWeights, Request, Stats, SwapMode, Tokenizer
from assay.core.rollout import Completion, Ids, Sampling, Span, Stop, ids_of
from assay.core.seeds import generator, uniforms
from assay.core.task import Message

__all__ = ["Ask", "CharCodec", "FakeLearner", "ScriptedEngine"]

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@dataclass(frozen=True, slots=True)
class CharCodec:
    """A `Tokenizer` of single characters: id 0 pads, id 1 ends an assistant's turn, the alphabet follows.

    Raises:
        ConfigError: a character occurs twice.

    >>> from assay.core import Message
    >>> codec = CharCodec("ab")
    >>> codec.render([Message("user", "ab"), Message("assistant", "b")], answer=False).tolist()
    [2, 3, 3, 1]
    """

    alphabet: str

    def __post_init__(self) -> None:
        if len(set(self.alphabet)) < len(self.alphabet):
            raise ConfigError(f"CharCodec.alphabet {self.alphabet!r} has a character twice")

    @property
    def size(self) -> int:
        """Ids known."""
        return len(self.alphabet) + 2

    @property
    def eos(self) -> int:
        """Id that ends a turn."""
        return 1

    def encode(self, text: str) -> Ids:
        """Ids of the characters.

        Raises:
            DataError: a character outside the alphabet.
        """
        unknown = sorted(set(text) - set(self.alphabet))
        if unknown:
            raise DataError(f"characters {unknown} of {text!r} are not in the alphabet {self.alphabet!r}")
        return ids_of([self.alphabet.index(c) + 2 for c in text])

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The characters; padding and end are silent."""
        return "".join(self.alphabet[int(i) - 2] for i in ids if int(i) > 1)

    def render(self, messages: Sequence[Message], answer: bool = True) -> Ids:
        """Contents behind one another, each assistant turn ended by `eos`."""
        parts = [[*self.encode(m.content), *([self.eos] if m.role == "assistant" else [])] for m in messages]
        return ids_of([i for part in parts for i in part])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """What a script may answer by: the prompt as text and ids, the request's seed, and the weights served."""

    prompt: str
    ids: Ids
    seed: int
    version: int
    weights: Mapping[str, Array]


Script = Callable[[Ask], str | Sequence[int] | None]


class ScriptedEngine:
    """An `Engine` that answers at once with what ``script`` returns: text (ended by the end token), ids as they are, or None
    to sample from the fake model.

    Args:
        script: a function of `Ask`.
        tokenizer: its text.
        weights: what it serves before the first swap; zeros otherwise.
        context: longest prompt plus completion.
        media: kinds of pictures that it sees: it does not look, and gets their names in its requests.

    >>> import asyncio
    >>> from assay.core import Sampling
    >>> from assay.core.protocols import Request
    >>> engine = ScriptedEngine(lambda ask: ask.prompt[::-1], CharCodec("abc"))
    >>> request = Request(id="r", prompt=engine.tokenizer.encode("abc"), seed=0, sampling=Sampling(stop_ids=(1,)))
    >>> asyncio.run(engine.generate(request)).ids.tolist()
    [4, 3, 2, 1]
    """

    def __init__(
        self,
        script: Script,
        tokenizer: Tokenizer,
        weights: Mapping[str, Array] | None = None,
        context: int = 512,
        media: tuple[str, ...] = (),
    ) -> None:
        self.script = script
        self.tokenizer = tokenizer
        self.context = context
        self.media = media
        self.version = 0
        self.requests: list[Request] = []
        self._weights = _copy_weights(weights or _zeros(tokenizer.size))

    async def generate(self, request: Request) -> Completion:
        """The script's answer, cut at the first stop token or text and at ``max_new_tokens``.

        Raises:
            ConfigError: prompt plus ``max_new_tokens`` exceed the context.
            DataError: an empty prompt, or an id outside the vocabulary.
        """
        self.requests.append(request)
        if request.sampling.annealing:
            raise ConfigError(f"request {request.id}: the fake model has one temperature; leave Sampling.annealing out")
        if len(request.prompt) + request.sampling.max_new_tokens > self.context:
            raise ConfigError(
                f"request {request.id}: {len(request.prompt)} ids and {request.sampling.max_new_tokens} new ones exceed the "
                f"context of {self.context}"
            )
        if not len(request.prompt) or not 0 <= int(request.prompt.min()) <= int(request.prompt.max()) < self.tokenizer.size:
            raise DataError(f"request {request.id}: give 1 id or more, each from 0 to {self.tokenizer.size - 1}")
        ask = Ask(
            prompt=self.tokenizer.decode(request.prompt),
            ids=request.prompt,
            seed=request.seed,
            version=self.version,
            weights=self._weights,
        )
        said = self.script(ask)
        if said is None:
            ids = self._sample_ids(request)
        else:
            ids = [*self.tokenizer.encode(said), self.tokenizer.eos] if isinstance(said, str) else list(said)
        ids = ids[: request.sampling.max_new_tokens]
        stops = [i for i, token in enumerate(ids) if token in request.sampling.stop_ids or self._stopped(request, ids[: i + 1])]
        ids = ids[: stops[0] + 1] if stops else ids
        odds = _logp(self._weights)  # of what a script says, the policy's own: the sampling need not allow it
        logp = (_truncate(odds, request.sampling) if said is None else odds)[ids].astype(np.float32)
        spans = (Span(self.version, 0, len(ids)),) if ids else ()
        stop = Stop.DONE if stops else Stop.LENGTH
        return Completion(ids=ids_of(ids), logp_engine=logp, spans=spans, stop=stop, sampling=request.sampling)

    def _stopped(self, request: Request, ids: Sequence[int]) -> bool:
        begun: list[int] = request.prompt[len(request.prompt) - request.prefix_tokens :].tolist()
        before, text = (self.tokenizer.decode([*begun, *part]) for part in (ids[:-1], ids))
        return any(text.find(s, max(0, len(before) - len(s) + 1)) >= 0 for s in request.sampling.stop)

    async def abort(self, ids: Sequence[str]) -> None:
        """Nothing: an answer is complete as soon as it is asked for."""

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        """Serves a copy of the manifest's payload.

        Raises:
            EngineError: it has none, or is a delta.
        """
        if manifest.payload is None or manifest.kind != "full":
            raise EngineError(f"weight version {manifest.version} is no full set of arrays, which is all that this engine takes")
        self._weights = _copy_weights(manifest.payload)
        self.version = manifest.version

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probabilities under the fake model, 0 first."""
        return _score_rows(self._weights, rows)

    async def checksums(self) -> Mapping[str, str]:
        """Digests of the arrays served, the head as used among them."""
        used = {**self._weights, HEAD: _head(self._weights)}
        return {name: array_digest(array) for name, array in used.items()}

    def info(self) -> EngineInfo:
        """Version, vocabulary and context."""
        return EngineInfo(version=self.version, vocabulary=self.tokenizer.size, context=self.context, media=self.media)

    def _sample_ids(self, request: Request) -> list[int]:
        cdf: list[float] = np.cumsum(np.exp(_truncate(_logp(self._weights), request.sampling))).tolist()
        u = uniforms(np.array([request.seed], np.uint64), request.first, request.sampling.max_new_tokens)[0]
        return [min(bisect_right(cdf, float(x) * cdf[-1]), len(cdf) - 1) for x in u]


def _truncate(logp: NDArray[np.float64], sampling: Sampling) -> NDArray[np.float64]:
    """Log-probabilities after temperature, ``min_p``, ``top_k`` and ``top_p``, in the order in which engines apply them."""
    order = np.argsort(-logp, kind="stable")
    if sampling.temperature == 0.0:
        return np.where(np.arange(len(logp)) == order[0], 0.0, -np.inf)
    p = np.exp(logp / sampling.temperature - logp.max() / sampling.temperature)
    p[p < sampling.min_p * p.max()] = 0.0
    p[order[sampling.top_k or len(p) :]] = 0.0
    p /= p.sum()
    p[order[np.cumsum(p[order]) - p[order] >= sampling.top_p]] = 0.0  # the token that completes top_p is still drawn
    with np.errstate(divide="ignore"):
        return np.log(p / p.sum())


class FakeLearner:
    """A `Learner` of the fake model: follows the policy gradient of its single-token odds, in numpy.

    The weight of a token in the update is its ``advantage`` where the batch has that column, else 1.

    Args:
        size: vocabulary.
        seed: of the first weights.
        lr: step length.
    """

    def __init__(self, size: int, seed: int = 0, lr: float = 1.0) -> None:
        rng = generator("fake-learner", seed)
        self.lr = lr
        self.version = 0
        self.weights: dict[str, Array] = {
            "bias": np.zeros(size, np.float32),
            EMBEDDING: (rng.standard_normal((size, 2)) * 0.02).astype(np.float32),
        }

    def annotate(self, batch: Batch, forward: Forward, *more: Forward) -> Batch:
        """Adds the columns asked for: log-probabilities under the present weights, 0 at each row's first token."""
        logp = _logp(self.weights)[batch.token("ids")].astype(np.float32)
        logp[batch.offsets[:-1]] = 0.0
        return batch.with_tokens(*(TokenColumn(f.column, logp, "learner", self.version) for f in (forward, *more)))

    def step(self, batch: Batch, plan: Plan, loss: LossProgram, observer: PassObserver | None = None, rate: float = 1.0) -> Stats:
        """One step up the weighted log-likelihood of the tokens that carry loss, ``rate`` times as long; ``loss`` prepares the
        batch, and ``observer`` is shown nothing.
        """
        batch = loss.prepare(batch)
        ids, mask = batch.token("ids"), batch.token("mask")
        weight = batch.token("advantage")[mask] if "advantage" in batch.tokens else np.ones(int(mask.sum()))
        gradient = np.bincount(ids[mask], weight, len(self.weights["bias"])) - weight.sum() * np.exp(_logp(self.weights))
        gradient /= max(1, batch.counts.tokens)
        lr = self.lr * rate
        self.weights["bias"] = (self.weights["bias"] + lr * gradient).astype(np.float32)
        self.weights[EMBEDDING] = (self.weights[EMBEDDING] + lr * 0.1 * gradient[:, None]).astype(np.float32)
        self.version += 1
        value = -float((weight * _logp(self.weights)[ids[mask]]).sum()) / max(1, batch.counts.tokens)
        return Stats(metrics={"loss/total": value, "grad/norm": float(np.sqrt((gradient**2).sum())), "lr": lr})

    def skip(self, updates: int) -> None:
        """Nothing: the step length is constant."""

    def score(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """Log-probabilities under the present weights, 0 first."""
        return _score_rows(self.weights, rows)

    def publish(self, dtype: str = "float32", digests: str = "blake2b") -> Manifest:
        """The present weights as a full manifest.

        Raises:
            ConfigError: digests other than blake2b.
        """
        if digests != "blake2b":
            raise ConfigError(f"the fake learner digests by blake2b alone, not by {digests!r}")
        return manifest_of(self.version, _copy_weights(self.weights)).round_to(dtype)

    @contextmanager
    def perturbed_weights(self, dtype: str = "float32") -> Generator[PerturbsWeights]:
        """Inside, every weight carries noise; behind it all are as before."""
        kept, rng = self.weights, generator("fake-rehearsal", 0)
        noisy = {n: (a + 0.5 * rng.standard_normal(a.shape)).astype(np.float32) for n, a in kept.items()}

        def effects(rows: Sequence[Ids]) -> dict[str, NDArray[np.float32]]:
            whole = _score_rows(noisy, rows)
            found = {name: _score_rows({**noisy, name: kept[name]}, rows) for name in kept}
            return {n: np.concatenate([b[1:] - a[1:] for a, b in zip(whole, s, strict=True)]) for n, s in found.items()}

        self.weights = noisy
        try:
            yield PerturbsWeights(manifest=self.publish(dtype), effects=effects)
        finally:
            self.weights = kept

    @property
    def replays_routing(self) -> bool:
        """There are no experts."""
        return False

    @property
    def synchronize(self) -> None:
        """Every call returns when it is done."""

    def notes(self) -> list[tuple[str, str]]:
        """Nothing is unusual."""
        return []

    def model(self) -> dict[str, Array]:
        """A copy of the present weights."""
        return _copy_weights(self.weights)

    def close(self) -> None:
        """Nothing is held but memory."""

    def state_digest(self) -> str:
        """Digest of all that `save` writes."""
        return digest({"version": self.version} | {name: array_digest(a) for name, a in self.weights.items()})

    def save(self, folder: Path) -> None:
        """Writes ``fake.npz``."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {"version": np.int64(self.version), **self.weights}
        np.savez(folder / "fake.npz", **arrays)

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote."""
        with np.load(folder / "fake.npz") as saved:
            self.version = int(saved["version"])
            self.weights = {name: saved[name] for name in saved.files if name != "version"}


def _zeros(size: int) -> dict[str, Array]:
    return {"bias": np.zeros(size, np.float32), EMBEDDING: np.zeros((size, 2), np.float32)}


def _copy_weights(weights: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.array(array) for name, array in weights.items()}


def _head(weights: Mapping[str, Array]) -> Array:
    return weights.get(HEAD, weights[EMBEDDING])


def _logp(weights: Mapping[str, Array]) -> NDArray[np.float64]:
    logits = weights["bias"].astype(np.float64) + _head(weights).astype(np.float64).sum(1)
    top = float(logits.max())
    return logits - top - math.log(float(np.exp(logits - top).sum()))


def _score_rows(weights: Mapping[str, Array], rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
    logp = _logp(weights)
    out = [logp[row].astype(np.float32) for row in rows]
    for scores in out:
        scores[:1] = 0.0
    return out
