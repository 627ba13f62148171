"""The page of mismatch: engines against the learner, corrections against the gradient, routing replayed or not."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.lab import describe_machine, load_average
from assay.measure import MISMATCH_BARS
from assay.runs import write_json, write_text
from assay.runtime import InProcess, Native
from assay.selftest import NotAvailable, serve_vllm, vllm_executable, vllm_version
from evidence.mismatch import (
    ANSWER,
    CONTEXT,
    CORRECTIONS,
    FAMILIES,
    MIXTURES,
    Pair,
    gradients,
    learner_of,
    model_of,
    pair,
    sample_rollouts,
)
from evidence.mismatch import PROMPTS as STARTS

if TYPE_CHECKING:
    from assay.runtime import HubModel

__all__ = ["make_page"]

PROMPTS, SIZE, LENGTH = 8, 2, 128
"""Of a pair: groups, rollouts of each, tokens of a rollout."""

NATIVE, SERVED = ("qwen3", "llama"), "qwen3"
DTYPES = ("float32", "bfloat16")
REPLAYED = "in process, routing replayed"
CLOSE = 1e-4
"""Nats by which no token of a float32 pair may differ."""


def make_page(folder: Path) -> list[str]:
    """Measures everything and writes ``mismatch.md`` and ``mismatch.json``; vLLM only where there is one
    (`assay.selftest.vllm_executable`).

    Returns:
        What is not as it should be, in words.
    """
    before = load_average()
    pairs = [p for family in FAMILIES for p in _in_process(family)]
    beside, vllm = _served_rows()
    pairs += beside
    errors = {family: _errors(family) for family in ("qwen3", "mixtral")}
    failures = _failures(pairs, errors)
    folder.mkdir(parents=True, exist_ok=True)
    where = describe_machine(vllm)
    record = {"machine": where, "load": [before, load_average()], "pairs": [asdict(p) for p in pairs], "gradients": errors}
    write_json(folder / "mismatch.json", record)
    write_text(folder / "mismatch.md", _page(pairs, errors, failures, where))
    return failures


def _in_process(family: str) -> list[Pair]:
    model, found = model_of(family), list[Pair]()
    learner = learner_of(model)
    if family in NATIVE:
        own = learner_of(_native(model))
        engine = Native().build(own)
        numbers = pair(engine, own, sample_rollouts(engine, own, PROMPTS, SIZE, LENGTH))
        found.append(Pair(engine="native", dtype="float32", family=family, numbers=numbers))
    for dtype in DTYPES:
        engine = InProcess(dtype=dtype, routing=family in MIXTURES).build(learner)
        groups = sample_rollouts(engine, learner, PROMPTS, SIZE, LENGTH)
        found.append(Pair(engine="in process", dtype=dtype, family=family, numbers=pair(engine, learner_of(model), groups)))
        if family in MIXTURES:
            numbers = pair(engine, learner_of(model, replay_routing=True), groups)
            found.append(Pair(engine=REPLAYED, dtype=dtype, family=family, numbers=numbers))
    return found


def _native(model: HubModel) -> Any:
    """The same weights as assay's own decoder."""
    from assay.runtime import load_model, save_model

    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder) / "model")
        return load_model(Path(folder) / "model")


def _served_rows() -> tuple[list[Pair], str]:
    """A vLLM server's rows, and its version; without numbers where there is none."""
    from assay.runtime import save_model

    try:
        vllm_executable()
    except NotAvailable:
        return [Pair(engine="vLLM", dtype=dtype, family=SERVED, numbers={}) for dtype in DTYPES], ""
    model, found, version = model_of(SERVED), list[Pair](), ""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        save_model(model, place)
        for dtype in DTYPES:
            with serve_vllm(place, Path(folder) / "vllm.log", CONTEXT, print, dtype=dtype) as (settings, _):
                learner, version = learner_of(model), vllm_version(settings)
                engine = settings.build(learner)
                numbers = pair(engine, learner, sample_rollouts(engine, learner, PROMPTS, SIZE, LENGTH))
                found.append(Pair(engine="vLLM", dtype=dtype, family=SERVED, numbers=numbers))
    return found, version


def _errors(family: str) -> dict[str, dict[str, float]]:
    """Each correction's exact gradient of what a bfloat16 engine samples, against that of what the learner itself would sample:
    cosine, and ratio of the norms.
    """
    truth, found = gradients(family)
    return {name: _error(gradient, truth) for name, gradient in found.items()}


def _error(gradient: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    norms = float(np.linalg.norm(gradient)), float(np.linalg.norm(truth))
    return {"cosine": float(gradient @ truth) / (norms[0] * norms[1]), "norm": norms[0] / norms[1]}


def _failures(pairs: Sequence[Pair], errors: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    found: list[str] = []
    for p in (p for p in pairs if p.numbers):
        name = f"{p.engine} {p.dtype} {p.family}"
        if p.dtype == "float32" and not p.numbers["max"] < CLOSE:
            found.append(f"{name}: a token differs by {p.numbers['max']:.2g} nats, {CLOSE} is the most")
        if p.engine == REPLAYED or p.family not in MIXTURES:
            if p.numbers["engine/mismatch_k3"] < MISMATCH_BARS[p.dtype]:
                continue
            found.append(f"{name}: k3 {p.numbers['engine/mismatch_k3']:.2g} is beyond the alarm's bar {MISMATCH_BARS[p.dtype]}")
    for family in MIXTURES:
        plain, replayed = (_of(pairs, engine, "bfloat16", family)["engine/mismatch_k3"] for engine in ("in process", REPLAYED))
        if not replayed < plain:
            found.append(f"{family}: replay brings k3 from {plain:.2g} to {replayed:.2g}, no nearer")
    for family, of_family in errors.items():
        whole = of_family["weights of rollouts, uncapped"]
        if not (abs(whole["cosine"] - 1) < 1e-6 and abs(whole["norm"] - 1) < 1e-3):
            found.append(f"{family}: exact weights of rollouts do not give the exact gradient: {dict(whole)}")
    return found


def _of(pairs: Sequence[Pair], engine: str, dtype: str, family: str) -> Mapping[str, float]:
    return next(p.numbers for p in pairs if (p.engine, p.dtype, p.family) == (engine, dtype, family))


def _page(
    pairs: Sequence[Pair], errors: Mapping[str, Mapping[str, Mapping[str, float]]], failures: Sequence[str], where: str
) -> str:
    single, half = MISMATCH_BARS["float32"], MISMATCH_BARS["bfloat16"]
    verdict = "All of it holds." if not failures else "Not met: " + "; ".join(failures) + "."
    return f"""# Mismatch: how far are sampler and learner apart?

Both hold the same weights and ought to give the tokens that one of them samples the same probabilities. Each family is a random
model of about a million weights, its matrices drawn with a standard deviation of .15 (seed 0), several times what models begin
with, so that rounding shows. The learner computes in float32. {PROMPTS * SIZE} rollouts of {LENGTH} tokens at random prompts,
temperature 1. One draw of weights, prompts and rollouts: these are sizes, and no estimates with intervals.

    python -m evidence mismatch     # minutes on one core; with ASSAY_VLLM=/path/to/vllm that engine's rows too

Machine: {where}. Numbers: `mismatch.json`. Asked: no token of a float32 pair differs by {CLOSE} nats; no pair passes the
alarm's bar of `Run.mismatch` ({single:.0e} in float32, {half:.0e} in bfloat16), mixtures of experts whose
routing is not replayed left out; replay brings these nearer; exact weights give the exact gradient. {verdict}

`token ratio`: learner over engine, its extremes. `ESS`: Kish's effective share of the rollouts under the products of these ratios
over {LENGTH} tokens: what is left of a batch that is weighted back exactly. `routing`: share of (token, layer) in which the
learner's routers prefer the experts that the engine chose.

| engine | computes in | family | mean distance | max | k3 | token ratio | ESS | routing |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(map(_row, pairs))}

In bfloat16 the dense families differ by hundredths of a nat a token, Gemma 2 with its capped logits by a thousandth. In a
mixture of experts a token that lies between two experts goes to the other one: few tokens, but these jump, and over a rollout
the products leave little. That is what the alarm is for. Replaying the engine's routing
(`LearnerSettings(replay_routing=True)`) takes the jumps away; what is left is rounding.

## What corrections make of the gradient

Of models of the same sizes with eight tokens: all {8**ANSWER} answers of {ANSWER} tokens behind {STARTS} prompts, each with its
probability, so that chance has no part. The reward is the share of even tokens. The policy gradient of what a bfloat16 engine
samples, weighted as named, against that of what the learner itself would sample. Weights of whole rollouts without a cap are
exact, and are here to show that the sums are. With answers this short they cost nothing; over {LENGTH} tokens they leave the
`ESS` above.

| weights | {" | ".join(f"{family}: 1 - cosine | norm" for family in errors)} |
|---|{"---|---|" * len(errors)}
{chr(10).join(_correction(name, errors) for name in CORRECTIONS)}
"""


def _row(p: Pair) -> str:
    n = p.numbers
    if not n:
        return f"| {p.engine} | {p.dtype} | {p.family} | unverified | | | | | |"
    routing = f"{n['router_agreement']:.4f}" if "router_agreement" in n else ""
    spread = f"{n['low']:.2f}–{n['high']:.2f} | {n['engine/ess_rollouts']:.3f}"
    apart = f"{n['engine/mismatch_abs']:.1e} | {n['max']:.1e} | {n['engine/mismatch_k3']:.1e}"
    return f"| {p.engine} | {p.dtype} | {p.family} | {apart} | {spread} | {routing} |"


def _correction(name: str, errors: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    cells = [f"{max(0.0, 1 - e[name]['cosine']):.1e} | {e[name]['norm']:.4f}" for e in errors.values()]
    return f"| {name} | {' | '.join(cells)} |"
