"""Measure how fast the native engine decodes, beside transformers' `generate` on the same weights.

Both sample from the same prompts at temperature 1 without early ends, alternately in one process; transformers' side draws with
its own noise. Prints one JSON line per model, batch and length: tokens per CPU-second of each (the best of the repeats) and
their ratio.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/decode.py --models 0.34M 1M --batches 16 256 --lengths 16 64
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
import transformers

from assay.core.protocols import Request
from assay.core.rollout import Ids, Sampling, ids_of
from assay.core.seeds import derive, generator
from assay.runtime.engine import NativeEngine
from assay.runtime.hf import save_model
from assay.runtime.model import init_model
from assay.runtime.settings import DecoderShape
from assay.runtime.tokenizer import char_tokenizer

SHAPES = {
    "0.34M": DecoderShape(vocab_size=97, hidden_size=96, num_layers=3, num_heads=3, num_kv_heads=3, intermediate_size=256),
    "1M": DecoderShape(vocab_size=97, hidden_size=128, num_layers=5, num_heads=4, num_kv_heads=4, intermediate_size=352),
    "4M": DecoderShape(vocab_size=97, hidden_size=256, num_layers=5, num_heads=8, num_kv_heads=8, intermediate_size=704),
}
GROUP, PROMPT = 8, 12


def prompts(batch: int, repeat: int) -> list[Ids]:
    rng = generator("benchmark-prompts", repeat, index=batch)
    return [ids_of(rng.integers(2, 97, PROMPT)) for _ in range(batch // GROUP)]


def with_engine(engine: NativeEngine, posed: list[Ids], new: int, repeat: int) -> int:
    """Samples `GROUP` completions of every prompt; returns the tokens sampled."""
    sampling = Sampling(max_new_tokens=new)
    requests = [
        Request(id=f"{i}.{j}", prompt=p, seed=derive("benchmark", repeat, index=GROUP * i + j), sampling=sampling)
        for i, p in enumerate(posed)
        for j in range(GROUP)
    ]

    async def all_of_them() -> int:
        done = await asyncio.gather(*(engine.generate(r) for r in requests))
        return sum(len(c.ids) for c in done)

    return asyncio.run(all_of_them())


def with_transformers(model: Any, posed: list[Ids], new: int) -> int:
    """The same with `generate`, which is told that the prompts are of equal length."""
    ids = torch.tensor([p.tolist() for p in posed]).repeat_interleave(GROUP, 0)
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, max_new_tokens=new, min_new_tokens=new, pad_token_id=0
    )
    return int(out.shape[0] * (out.shape[1] - PROMPT))


def tokens_per_cpu_second(work: Callable[[], int]) -> float:
    start = time.process_time()
    tokens = work()
    return tokens / (time.process_time() - start)


def compare(name: str, batches: list[int], lengths: list[int], repeats: int) -> None:
    """Prints the lines of one model."""
    model = init_model(SHAPES[name], char_tokenizer("".join(map(chr, range(32, 127)))), 0, init="fan_in")
    engine = NativeEngine(model)
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder) / "model")
        reference = cast(Any, transformers.AutoModelForCausalLM).from_pretrained(Path(folder) / "model")
    for batch in batches:
        for new in lengths:
            best = {"assay": 0.0, "transformers": 0.0}
            for repeat in range(repeats + 1):  # the first warms up
                posed = prompts(batch, repeat)
                speeds = {
                    "assay": tokens_per_cpu_second(lambda: with_engine(engine, posed, new, repeat)),  # noqa: B023
                    "transformers": tokens_per_cpu_second(lambda: with_transformers(reference, posed, new)),  # noqa: B023
                }
                if repeat:
                    best = {side: max(best[side], speed) for side, speed in speeds.items()}
            row = {
                "model": name,
                "parameters": model.shape.parameters,
                "batch": batch,
                "new_tokens": new,
                **{f"{side}_tokens_per_cpu_s": round(speed) for side, speed in best.items()},
                "ratio": round(best["assay"] / best["transformers"], 2),
                "load": round(os.getloadavg()[0], 1),
            }
            print(json.dumps(row), flush=True)


def main() -> None:
    """Compare every model asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--batches", nargs="+", type=int, default=[16, 64, 256])
    parser.add_argument("--lengths", nargs="+", type=int, default=[16, 64])
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "machine": platform.processor()}
    print(json.dumps({**versions, "threads": 1}))
    for name in asked.models:
        compare(name, asked.batches, asked.lengths, asked.repeats)


if __name__ == "__main__":
    main()
