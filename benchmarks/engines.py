"""Measure how fast the engine for any Hugging Face causal LM samples, beside transformers' `generate` and `generate_batch`.

All sample from the same weights and prompts at temperature 1, groups of `GROUP` per prompt, alternately in one process. Once with
prompts of one length and without early ends, where `generate` wastes nothing, and once with prompts of 4 to 40 tokens and
answers that end at a stop id, where it pads. Prints one JSON line per case: tokens per CPU-second of each (the median of the
repeats; what was sampled behind a stop does not count), and this engine's ratio to each: smallest, median and largest.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/engines.py --models 1M 10M --batch 64 --new 64
"""

import argparse
import asyncio
import copy
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
import transformers
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from assay.core.protocols import Request
from assay.core.rollout import Ids, Sampling, ids_of
from assay.core.seeds import derive, generator
from assay.runtime.hub_engine import TransformersEngine

VOCABULARY, GROUP, CONTEXT = 512, 8, 256
SIZES = {"0.3M": (96, 3, 3), "1M": (128, 5, 4), "10M": (320, 8, 5), "50M": (704, 8, 11)}
"""Hidden size, layers, heads."""
STOPS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Of a random model's answers about one token in 64 is among them."""


def model_of(size: str) -> Any:
    """A random Qwen3 of about that many parameters."""
    hidden, layers, heads = SIZES[size]
    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=hidden, intermediate_size=11 * hidden // 4, num_hidden_layers=layers, head_dim=32,
        num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=CONTEXT, eos_token_id=None,
        tie_word_embeddings=True,
    )  # fmt: skip
    cast(Any, torch).manual_seed(0)
    return cast(Any, transformers.AutoModelForCausalLM).from_config(config).eval()


def prompts(batch: int, repeat: int, ragged: bool) -> list[Ids]:
    """One per group."""
    rng = generator("benchmark-prompts", repeat, index=batch)
    lengths = rng.integers(4, 41, batch // GROUP) if ragged else [12] * (batch // GROUP)
    return [ids_of(rng.integers(9, VOCABULARY, n)) for n in lengths]


def with_engine(engine: TransformersEngine, posed: list[Ids], new: int, ragged: bool, repeat: int) -> int:
    """Samples `GROUP` completions of every prompt; returns the tokens sampled."""
    sampling = Sampling(max_new_tokens=new, stop_ids=STOPS if ragged else ())
    requests = [
        Request(id=f"{i}.{j}", prompt=p, seed=derive("benchmark", repeat, index=GROUP * i + j), sampling=sampling)
        for i, p in enumerate(posed)
        for j in range(GROUP)
    ]

    async def all_of_them() -> int:
        return sum(len(c.ids) for c in await asyncio.gather(*(engine.generate(r) for r in requests)))

    return asyncio.run(all_of_them())


def settings(new: int, ragged: bool) -> Any:
    """The same request for transformers' side."""
    least = {} if ragged else {"min_new_tokens": new}
    return transformers.GenerationConfig(
        max_new_tokens=new, do_sample=True, top_k=0, pad_token_id=0, eos_token_id=list(STOPS) if ragged else -1, **least
    )


def used(ids: list[int], ragged: bool) -> int:
    """Tokens up to a stop."""
    return next((i + 1 for i, token in enumerate(ids) if token in STOPS), len(ids)) if ragged else len(ids)


def with_generate(model: Any, posed: list[Ids], new: int, ragged: bool) -> int:
    """The same with `generate`: prompts padded on the left, everybody waits for the longest answer."""
    rows = [p.tolist() for p in posed for _ in range(GROUP)]
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(r)) + r for r in rows])
    mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows])
    out = model.generate(ids, attention_mask=mask, generation_config=settings(new, ragged))
    return sum(used(row, ragged) for row in out[:, width:].tolist())


def with_generate_batch(model: Any, posed: list[Ids], new: int, ragged: bool) -> int:
    """The same with transformers' own continuous batching."""
    rows = [p.tolist() for p in posed for _ in range(GROUP)]
    out = model.generate_batch(
        rows, generation_config=settings(new, ragged), continuous_batching_config=ContinuousBatchingConfig(), progress_bar=False
    )
    return sum(used(list(answer.generated_tokens), ragged) for answer in out.values())


def tokens_per_cpu_second(work: Callable[[], int]) -> float:
    start = time.process_time()
    tokens = work()
    return tokens / (time.process_time() - start)


def compare(size: str, batch: int, new: int, ragged: bool, repeats: int, batched: bool) -> None:
    """Prints the line of one case."""
    model = model_of(size)
    engine, other = TransformersEngine(copy.deepcopy(model), CONTEXT), copy.deepcopy(model)
    speeds: dict[str, list[float]] = {"assay": [], "generate": [], "generate_batch": []}
    for repeat in range(repeats + 1):  # the first warms up
        posed = prompts(batch, repeat, ragged)
        work = {
            "assay": lambda: with_engine(engine, posed, new, ragged, repeat),  # noqa: B023
            "generate": lambda: with_generate(model, posed, new, ragged),  # noqa: B023
            "generate_batch": lambda: with_generate_batch(other, posed, new, ragged),  # noqa: B023
        }
        for side, run in work.items():
            if repeat and (batched or side != "generate_batch"):
                speeds[side].append(tokens_per_cpu_second(run))
            elif not repeat and side != "generate_batch":
                run()
    row: dict[str, object] = {
        "model": size,
        "parameters": model.num_parameters(),
        "batch": batch,
        "new_tokens": new,
        "case": "ragged" if ragged else "even",
        **{f"{side}_tokens_per_cpu_s": round(statistics.median(found)) for side, found in speeds.items() if found},
    }
    for side in ("generate", "generate_batch"):
        ratios = sorted(a / b for a, b in zip(speeds["assay"], speeds[side], strict=False))
        if ratios:
            row[f"to_{side}"] = [round(x, 2) for x in (ratios[0], statistics.median(ratios), ratios[-1])]
    print(json.dumps({**row, "load": round(os.getloadavg()[0], 1)}), flush=True)


def main() -> None:
    """Compare every model asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["0.3M", "1M", "10M"], choices=list(SIZES))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-generate-batch", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "threads": 1}))
    for size in asked.models:
        for ragged in (False, True):
            compare(size, asked.batch, asked.new, ragged, asked.repeats, not asked.without_generate_batch)


if __name__ == "__main__":
    main()
