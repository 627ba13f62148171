"""Throughput: tokens per second that are sampled and trained here."""

from __future__ import annotations

import asyncio
import json
import math
import time

from assay.core.protocols import Engine, Request
from assay.core.rollout import Sampling, ids_of
from assay.core.seeds import generator
from assay.runtime.engine.settings import InProcess, Native
from assay.runtime.settings import LearnerSettings
from assay.selftest.selftest_part import SelftestContext, SelftestFinding
from assay.selftest.small_models import decoder, two_stages
from assay.train.driver import train

__all__ = ["throughput"]

ROWS, NEW = 128, 64
STEPS, FIRST = 20, 5
"""Training steps, and the first of them that counts: those before it allocate."""


def throughput(context: SelftestContext) -> SelftestFinding:
    """Decoding by both engines of this process, and training, of 0.8M weights in float32.

    The native engine must not take more processor time per token than transformers: then its compiled kernel is not in use.
    """
    from assay.runtime.learner.learner import TorchLearner

    learner = TorchLearner(decoder(), LearnerSettings(), total_steps=1)
    found = {"rows": ROWS, "new_tokens": NEW}
    rates: dict[str, float] = {}
    for name, spec in (("native", Native()), ("in_process", InProcess())):
        context.say(f"decoding, {name.replace('_', '-')}")
        rates |= {f"decode_{name}_tokens_per_{unit}": rate for unit, rate in _decode(spec.build(learner)).items()}
    context.say("training")
    run = two_stages(warm=STEPS, rl=1)
    train(run, context.folder / "run", progress=False)
    lines = (context.folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [json.loads(line)["metrics"] for line in lines[FIRST:STEPS]]
    spent = sum(m["time/forward_backward"] + m["time/optimizer"] for m in steps)
    rates["train_tokens_per_second"] = sum(m["tokens/computed"] for m in steps) / spent
    failures = [f"{name} is {rate}" for name, rate in rates.items() if not (math.isfinite(rate) and rate > 0)]
    one, other = rates["decode_native_tokens_per_cpu_second"], rates["decode_in_process_tokens_per_cpu_second"]
    if one < other:
        failures.append(f"native decodes {one:,.0f} tokens per CPU-second, transformers {other:,.0f}: is a C++ compiler there?")
    return SelftestFinding(numbers={**found, **{n: round(r) for n, r in rates.items()}}, failures=tuple(failures))


def _decode(engine: Engine) -> dict[str, float]:
    """Tokens per second by the clock, and per second of processors; a short batch first, which compiles and allocates."""
    vocabulary = engine.info().vocabulary

    def requests(rows: int, new: int) -> list[Request]:
        rng = generator("selftest/decode", rows)
        sampling = Sampling(max_new_tokens=new)  # no stop ids: every row has all its tokens
        return [
            Request(id=f"{rows}/{i}", prompt=ids_of(rng.integers(2, vocabulary, 8)), seed=i, sampling=sampling)
            for i in range(rows)
        ]

    async def sample(rows: int, new: int) -> int:
        done = await asyncio.gather(*(engine.generate(r) for r in requests(rows, new)))
        return sum(len(c.ids) for c in done)

    asyncio.run(sample(4, 4))
    clock, cpu = time.perf_counter(), time.process_time()
    tokens = asyncio.run(sample(ROWS, NEW))
    return {"second": tokens / (time.perf_counter() - clock), "cpu_second": tokens / (time.process_time() - cpu)}
