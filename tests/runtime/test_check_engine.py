"""The contract of an engine: those that exist keep it, and each way to break it is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assay.core.errors import ConfigError
from assay.core.protocols import Request
from assay.core.rollout import Completion, Span, Stop, ids_of
from assay.runtime import DecoderShape, InProcess, LearnerSettings, Native, TorchLearner, char_tokenizer, init_model
from assay.testing import CharCodec, ContractError, FakeLearner, ScriptedEngine, check_engine, random_model
from assay.testing.faults import WrongLogprobs

CODEC = CharCodec("abcdefgh")
SHAPE = DecoderShape(
    vocab_size=10, hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=48, max_positions=64
)
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}


def fake(**options: Any) -> ScriptedEngine:
    return ScriptedEngine(lambda ask: None, CODEC, **options)


def learner() -> FakeLearner:
    made = FakeLearner(CODEC.size, seed=1)
    made.weights["bias"] = np.linspace(0.0, 2.0, CODEC.size).astype(np.float32)
    return made


class Broken(ScriptedEngine):
    """An engine whose answers, or requests, are changed on the way."""

    def __init__(self, change: Callable[[Request, Completion], Completion] | None = None, **more: Any) -> None:
        super().__init__(lambda ask: None, CODEC)
        self.change, self.more, self.running = change, more, 0

    async def generate(self, request: Request) -> Completion:
        self.running += 1
        try:
            await asyncio.sleep(0)
            if "before" in self.more:
                request = self.more["before"](self, request)
            found = await super().generate(request)
            return self.change(request, found) if self.change else found
        finally:
            self.running -= 1

    async def score(self, rows: Any) -> Any:
        return self.more["score"](await super().score(rows)) if "score" in self.more else await super().score(rows)


def with_ids(found: Completion, ids: Any, **changes: Any) -> Completion:
    n = len(ids)
    logp = np.resize(found.logp_engine, n).astype(np.float32)
    return replace(found, **{"ids": ids_of(ids), "logp_engine": logp, "spans": (Span(0, 0, n),) if n else ()} | changes)


def without_stop(request: Request, found: Completion) -> Completion:
    """As engines of text do, which do not return the stop token."""
    return with_ids(found, found.ids[:-1]) if found.stop is Stop.DONE else found


FAULTS: dict[str, tuple[Broken, str]] = {
    "short": (Broken(lambda r, f: with_ids(f, f.ids[:-1])), "has 23 tokens and stop 'length'; without stop ids: 24"),
    "says done": (Broken(lambda r, f: replace(f, stop=Stop.DONE)), "stop 'done'; without stop ids"),
    "outside": (Broken(lambda r, f: with_ids(f, [*f.ids[:-1], 99])), "ids outside the vocabulary of 10"),
    "nan": (Broken(lambda r, f: replace(f, logp_engine=f.logp_engine * np.nan)), "log-probabilities that are none"),
    "probabilities": (Broken(lambda r, f: replace(f, logp_engine=np.exp(f.logp_engine))), "log-probabilities that are none"),
    "another version": (Broken(lambda r, f: with_ids(f, f.ids, spans=(Span(7, 0, len(f.ids)),))), "names weight versions [7]"),
    "another sampling": (Broken(lambda r, f: replace(f, sampling=replace(f.sampling, top_p=0.9))), "not as it asked"),
    "no seed": (Broken(before=lambda e, r: replace(r, seed=0)), "the same tokens"),
    "its own noise": (Broken(before=lambda e, r: replace(r, seed=r.seed + len(e.requests))), "made again, has tokens"),
    "noise of the batch": (Broken(before=lambda e, r: replace(r, seed=r.seed + e.running)), "made alone, has tokens"),
    "first is ignored": (Broken(before=lambda e, r: replace(r, first=0)), "cut behind 12 tokens"),
    "never greedy": (
        Broken(before=lambda e, r: replace(r, sampling=replace(r.sampling, temperature=r.sampling.temperature or 1.0))),
        "with temperature=0 the log-probabilities are not 0",
    ),
    "annealing is ignored": (
        Broken(before=lambda e, r: replace(r, sampling=replace(r.sampling, annealing=None))),
        "does not tell the temperature of each token",
    ),
    "no top_k": (Broken(before=lambda e, r: replace(r, sampling=replace(r.sampling, top_k=0))), "with top_k=1 the log-prob"),
    "no stop ids": (
        Broken(before=lambda e, r: replace(r, sampling=replace(r.sampling, stop_ids=()))),
        "ends with the stop id, once, and is 'done'",
    ),
    "stop left out": (Broken(without_stop), "ends with the stop id, once, and is 'done'"),
    "length at the limit": (
        Broken(lambda r, f: replace(f, stop=Stop.LENGTH) if len(f.ids) == r.sampling.max_new_tokens else f),
        "at the limit, gives",
    ),
    "cuts long prompts": (
        Broken(before=lambda e, r: replace(r, prompt=r.prompt[-(e.context - r.sampling.max_new_tokens) :])),
        "answers a prompt of all 512 tokens of the context",
    ),
    "reads any id": (
        Broken(before=lambda e, r: replace(r, prompt=np.minimum(r.prompt, CODEC.size - 1))),
        "answers id 10, outside the vocabulary",
    ),
    "adds a beginning": (
        Broken(before=lambda e, r: r if len(r.prompt) else replace(r, prompt=ids_of([0]))),
        "answers an empty prompt with 1 tokens",
    ),
    "scores less": (Broken(score=lambda rows: [row[1:] for row in rows]), "score gives 29 numbers for the 30 tokens"),
    "scores otherwise": (Broken(score=lambda rows: [row * 1.1 for row in rows]), "and those of Engine.score differ by"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_engine_is_found(name: str) -> None:
    engine, message = FAULTS[name]
    with pytest.raises(ContractError, match="engine Broken: ") as found:
        check_engine(engine)
    assert message in str(found.value)


class Drawn(ScriptedEngine):
    """Its scores change from call to call, as those of atomic additions do."""

    async def score(self, rows: Any) -> Any:
        self.calls = getattr(self, "calls", 0) + 1
        return [row * np.float32(1 + 1e-6 * self.calls) for row in await super().score(rows)]


class LateSwap(ScriptedEngine):
    """Names the newest version, whichever sampled."""

    async def generate(self, request: Request) -> Completion:
        found = await super().generate(request)
        for _ in range(8):
            await asyncio.sleep(0)
        return replace(found, spans=(Span(self.version, 0, len(found.ids)),))


class OnlyCounts(ScriptedEngine):
    """Goes on with the weights that it began with, under the new version's number."""

    async def swap(self, manifest: Any, *mode: Any) -> None:
        self.version = manifest.version


class TakesNothing(ScriptedEngine):
    async def swap(self, manifest: Any, *mode: Any) -> None:
        if manifest.payload is None:
            self.version = manifest.version
        else:
            await super().swap(manifest, *mode)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Drawn(lambda ask: None, CODEC), "score gives other bits"),
        (lambda: OnlyCounts(lambda ask: None, CODEC), "other checksums than the manifest that it took"),
        (lambda: WrongLogprobs(fake(), by=0.01), "with temperature=0 the log-probabilities are not 0"),
        (
            lambda: LateSwap(lambda ask: None, CODEC),
            r"a request made before a swap from version 0 to 1 names versions \[1\], not 0",
        ),
        (lambda: TakesNothing(lambda ask: None, CODEC), "takes a manifest without arrays"),
    ],
)
def test_an_engine_that_is_not_the_learners_is_found(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_engine(make(), learner())


def test_a_good_engine_passes_and_the_report_says_what_was_not_looked_at() -> None:
    report = check_engine(fake(context=10_000), requests=3, tokens=4)
    assert report.passed == ("whole answers", "seeded", "greedy", "stop ids", "context", "score")
    assert report.skipped == (
        "a request that fills the context: 10000 tokens take long",
        "weights, swaps: no learner was given",
    )
    whole = check_engine(fake(), learner())
    assert whole.skipped == () and whole.numbers["largest gap to the learner, in nats"] < 1e-6


def test_settings_that_check_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"requests=1, tokens=24\); give at least 2"):
        check_engine(fake(), requests=1)
    with pytest.raises(ConfigError, match="exceeds the context of 20"):
        check_engine(fake(context=20))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [Native(), Native(kernel=False), InProcess()], ids=["native", "native, PyTorch", "in process"])
def test_the_engines_of_a_run_keep_the_contract(spec: Any) -> None:
    model = random_model("qwen3", SIZES) if isinstance(spec, InProcess) else init_model(SHAPE, char_tokenizer("abcdefgh"), seed=0)
    policy = TorchLearner(model, LearnerSettings(), total_steps=1)
    report = check_engine(spec.build(policy), policy, requests=5, tokens=12)
    assert report.skipped == () and len(report.passed) == 8
    assert report.numbers["largest gap to the learner, in nats"] < 1e-4
    assert report.numbers["tensors with a checksum"] > 10


def test_an_engine_in_bfloat16_is_held_to_what_rounding_leaves() -> None:
    policy = TorchLearner(random_model("qwen3", SIZES), LearnerSettings(), total_steps=1)
    report = check_engine(InProcess(dtype="bfloat16").build(policy), policy, requests=4, tokens=8, bar=0.1)
    assert "the weights are bfloat16" in report.skipped[-1]
