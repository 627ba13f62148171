"""Measure how fast assay's engines sample, beside transformers' `generate` and `generate_batch` (continuous batching).

All sample from the same weights and prompts at temperature 1, groups of `GROUP` per prompt, alternately in one process. Cases:

- `even`: prompts of one length, answers of `--new` tokens; `generate` wastes nothing.
- `joining`: the same, but half of the prompts come while the others' answers are under way; the peers get all at once.
- `ragged`: prompts of 4 to 40 tokens, answers that end at a stop id; `generate` pads.

Prints one JSON line per model, case, number of threads and engine: tokens per second and per CPU-second of each side (medians of
the repeats; what was sampled behind a stop does not count); the engine's ratios to each peer in CPU-seconds and in wall time,
smallest, median and largest of the repeats; and what its products with weights come to beside PyTorch's float32 matrix product of
128 x 256 x 768 on as many threads, measured in the same repeats.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/decode.py --models 1M 4M 12M
"""

import argparse
import asyncio
import copy
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import transformers
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from assay.core import Ids, Request, Sampling, derive, generator, ids_of
from assay.lab import describe_machine, load_average
from assay.runtime import (
    AnyModel,
    DecoderShape,
    Model,
    NativeEngine,
    TransformersEngine,
    char_tokenizer,
    decoder_identity,
    init_model,
    load_model,
    save_model,
)

GROUP, CONTEXT = 8, 256
SIZES = {
    "0.34M": (96, 3, 3, 3, 256),
    "1M": (128, 5, 4, 4, 352),
    "4M": (256, 5, 8, 4, 704),
    "12M": (384, 7, 6, 3, 1024),
    "50M": (704, 8, 11, 11, 1936),
}
"""Hidden size, layers, heads, heads of keys, inner size; heads of 32, of 64 from 12M up, Qwen3's norms of queries and keys."""
STOPS = (2, 3)
"""Of a random model's answers about one token in 50 is among them."""
CASES = ("even", "joining", "ragged")
PEERS = ("generate", "generate_batch")
TOGETHER, PAGE = 32, 64
"""Requests that `generate_batch` has under way at once and tokens of a page of its cache, as it is quickest here: on a CPU each
attends to the keys of all, behind a mask whose memory grows with the cache. By its own settings it is more than ten times slower.
"""
ENGINES = ("native", "native, bfloat16", "native, PyTorch", "in process")


class Work(NamedTuple):
    """What one side is asked for."""

    posed: list[Ids]
    new: int
    case: str
    repeat: int

    @property
    def ragged(self) -> bool:
        """Whether answers may end early."""
        return self.case == "ragged"

    def count_used(self, ids: list[int]) -> int:
        """Tokens up to a stop."""
        return next((i + 1 for i, token in enumerate(ids) if token in STOPS), len(ids)) if self.ragged else len(ids)

    def settings(self) -> Any:
        """The same for transformers' side."""
        least = {} if self.ragged else {"min_new_tokens": self.new}
        stops = list(STOPS) if self.ragged else -1
        return transformers.GenerationConfig(
            max_new_tokens=self.new, do_sample=True, top_k=0, pad_token_id=0, eos_token_id=stops, **least
        )


class Spent(NamedTuple):
    """Tokens sampled, and the seconds that they took."""

    tokens: int
    wall: float
    cpu: float


def shape(size: str) -> DecoderShape:
    """Of a Qwen3 of about that many parameters."""
    hidden, layers, heads, kv_heads, inner = SIZES[size]
    return DecoderShape(
        vocab_size=97,
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        intermediate_size=inner,
        head_dim=64 if size in {"12M", "50M"} else 32,
        max_positions=CONTEXT,
    )


def prompts(batch: int, case: str, repeat: int) -> list[Ids]:
    """One per group."""
    rng = generator("benchmark-prompts", repeat, index=batch)
    lengths = rng.integers(4, 41, batch // GROUP) if case == "ragged" else [12] * (batch // GROUP)
    return [ids_of(rng.integers(4, 97, n)) for n in lengths]


def with_engine(engine: TransformersEngine | NativeEngine, work: Work) -> int:
    """Samples `GROUP` completions of every prompt; returns the tokens sampled."""
    sampling = Sampling(max_new_tokens=work.new, stop_ids=STOPS if work.ragged else ())
    requests = [
        Request(id=f"{i}.{j}", prompt=p, seed=derive("benchmark", work.repeat, index=GROUP * i + j), sampling=sampling)
        for i, p in enumerate(work.posed)
        for j in range(GROUP)
    ]

    async def all_of_them() -> int:
        first = len(requests) // 2 if work.case == "joining" else len(requests)
        running = [asyncio.create_task(engine.generate(r)) for r in requests[:first]]
        before = engine.counters["sampled_tokens"]
        while first < len(requests) and engine.counters["sampled_tokens"] == before:
            await asyncio.sleep(0)
        running += [asyncio.create_task(engine.generate(r)) for r in requests[first:]]
        return sum(len(c.ids) for c in await asyncio.gather(*running))

    return asyncio.run(all_of_them())


def with_generate(model: Any, work: Work) -> int:
    """The same with `generate`: prompts padded on the left, everybody waits for the longest answer."""
    rows = [p.tolist() for p in work.posed for _ in range(GROUP)]
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(r)) + r for r in rows])
    mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows])
    out = model.generate(ids, attention_mask=mask, generation_config=work.settings())
    return sum(work.count_used(row) for row in out[:, width:].tolist())


def with_generate_batch(model: Any, work: Work) -> int:
    """The same with transformers' own continuous batching."""
    rows = [p.tolist() for p in work.posed for _ in range(GROUP)]
    pages = -(-(max(map(len, rows)) + work.new) // PAGE)
    paged = ContinuousBatchingConfig(page_size=PAGE, num_blocks=pages * TOGETHER, max_requests_per_batch=TOGETHER)
    out = model.generate_batch(rows, generation_config=work.settings(), continuous_batching_config=paged, progress_bar=False)
    return sum(work.count_used(list(answer.generated_tokens)) for answer in out.values())


def measure_spent(run: Callable[[], int]) -> Spent:
    """Measured."""
    wall, cpu = time.perf_counter(), time.process_time()
    tokens = run()
    return Spent(tokens, time.perf_counter() - wall, time.process_time() - cpu)


def gemm() -> float:
    """GFLOP per CPU-second of PyTorch's product."""
    x, w = torch.rand(128, 256), torch.rand(768, 256)
    linear: Callable[..., torch.Tensor] = torch.nn.functional.linear
    start = time.process_time()
    for _ in range(40):
        linear(x, w)
    return 40 * 2 * 128 * 256 * 768 / (time.process_time() - start) / 1e9


class Sides:
    """assay's engines and the peers, with the same weights."""

    def __init__(self, size: str, engines: list[str]) -> None:
        model = init_model(shape(size), char_tokenizer("".join(map(chr, range(32, 127)))), 0, init="fan_in")
        self.parameters = model.shape.parameters
        with tempfile.TemporaryDirectory() as folder:
            save_model(model, Path(folder) / "model")
            hub = cast(Any, transformers.AutoModelForCausalLM).from_pretrained(Path(folder) / "model").eval()
            loaded: AnyModel = load_model(Path(folder) / "model")
        assert isinstance(loaded, Model)
        made: dict[str, Callable[[], TransformersEngine | NativeEngine]] = {
            "native": lambda: NativeEngine(loaded),
            "native, bfloat16": lambda: NativeEngine(loaded, dtype="bfloat16"),
            "native, PyTorch": lambda: NativeEngine(loaded, kernel=False),
            "in process": lambda: TransformersEngine(copy.deepcopy(hub), CONTEXT),
        }
        self.engines = {name: made[name]() for name in engines}
        self._hub, self._other = hub, copy.deepcopy(hub)

    def run(self, side: str, work: Work) -> int:
        """Tokens that a side sampled."""
        if side == "generate":
            return with_generate(self._hub, work)
        return with_generate_batch(self._other, work) if side == "generate_batch" else with_engine(self.engines[side], work)


def compare(sides: Sides, size: str, case: str, threads: int, asked: argparse.Namespace) -> None:
    """Prints the lines of one case."""
    torch.set_num_threads(threads)
    named = [*sides.engines, *(PEERS if asked.generate_batch else PEERS[:1])]
    found: dict[str, list[Spent]] = {side: [] for side in named}
    products = list[float]()
    for repeat in range(asked.repeats + 1):  # the first warms up
        work = Work(prompts(asked.batch, case, repeat), asked.new, case, repeat)
        products.append(gemm())
        for side in named:
            measured = measure_spent(lambda: sides.run(side, work))  # noqa: B023
            if repeat:
                found[side].append(measured)
    for engine in sides.engines:
        print(json.dumps(_row(sides, engine, found, products, {"model": size, "case": case, "threads": threads})), flush=True)


def _row(sides: Sides, engine: str, found: dict[str, list[Spent]], products: list[float], row: dict[str, Any]) -> dict[str, Any]:
    ours, peers = found[engine], {side: found[side] for side in PEERS if side in found}
    rate = [2 * sides.parameters * s.tokens / s.cpu / 1e9 for s in ours]
    row |= {"engine": engine, "parameters": sides.parameters, "load": load_average(), "repeats": len(ours)}
    for side, spans in {engine: ours, **peers}.items():
        row[f"{'assay' if side == engine else side}_tokens_per_s"] = round(statistics.median(s.tokens / s.wall for s in spans))
        row[f"{'assay' if side == engine else side}_tokens_per_cpu_s"] = round(statistics.median(s.tokens / s.cpu for s in spans))
    for side, theirs in peers.items():
        pairs = list(zip(ours, theirs, strict=True))
        row[f"to_{side}_cpu"] = _spread([a.tokens / a.cpu * b.cpu / b.tokens for a, b in pairs])
        row[f"to_{side}_wall"] = _spread([a.tokens / a.wall * b.wall / b.tokens for a, b in pairs])
    row["gflop_per_cpu_s"] = round(statistics.median(rate), 1)
    row["product_gflop_per_cpu_s"] = round(statistics.median(products[1:]), 1)
    row["of_product"] = round(statistics.median(a / b for a, b in zip(rate, products[1:], strict=True)), 2)
    return row


def _spread(ratios: list[float]) -> list[float]:
    return [round(x, 2) for x in (min(ratios), statistics.median(ratios), max(ratios))]


def main() -> None:
    """Compare every model asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["1M", "4M", "12M"], choices=list(SIZES))
    parser.add_argument("--engines", nargs="+", default=["native"], choices=ENGINES)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--generate-batch", action="store_true", help="measure transformers' continuous batching, too")
    asked = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    print(
        json.dumps({"machine": describe_machine(), "decoder": decoder_identity(), "batch": asked.batch, "new": asked.new}),
        flush=True,
    )
    for size in asked.models:
        sides = Sides(size, asked.engines)
        for threads in asked.threads:
            for case in asked.cases:
                compare(sides, size, case, threads, asked)


if __name__ == "__main__":
    main()
