"""Measure how near the log-probabilities of engine and learner are to transformers' in fp32, and to float64.

Samples answers to sorting tasks of all levels with the native engine, then scores the sampled tokens by every path. Prints one
JSON line per pair of paths: mean, quantiles and maximum of the absolute difference in nats. Without ``--model`` it builds the
quickstart's base first (about 30 CPU-seconds).

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/precision.py --tasks 128 --attempts 16
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from assay.core import Completion, Ids, Request, Sampling, derive, ids_of
from assay.recipes import base
from assay.runtime import LearnerSettings, Model, NativeEngine, TorchLearner, load_decoder
from assay.train import model_folder, train
from assay_tasks import SortDigits

Values = NDArray[np.float64]


def sample_answers(engine: NativeEngine, model: Model, tasks: int, rollouts: int) -> tuple[list[Request], list[Completion]]:
    """``rollouts`` answers to ``tasks`` tasks of every level."""
    source, requests = SortDigits(), list[Request]()
    sampling = Sampling(max_new_tokens=14, stop_ids=(model.tokenizer.eos,))
    for arm, levels in source.arms().items():
        for level in levels:
            for index in range(tasks):
                prompt = model.tokenizer.render(source.task(arm, level, "train", index).public_view().messages)
                names = [f"{arm}/{level}/{index}/{i}" for i in range(rollouts)]
                requests += [Request(id=n, prompt=prompt, seed=derive("precision", 0, n), sampling=sampling) for n in names]

    async def all_of_them() -> list[Completion]:
        return await asyncio.gather(*(engine.generate(r) for r in requests))

    return requests, asyncio.run(all_of_them())


class ExactNorm(torch.nn.Module):
    """transformers' norm without its cast to fp32."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.eps = norm.weight, float(norm.variance_epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x`` over its root mean square, scaled."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def in_float64(hub: Any) -> Any:
    """The same model in float64, norms included; rotary angles stay fp32, as all paths have them."""
    hub = hub.double()
    for module in list(hub.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Qwen3RMSNorm):
                setattr(module, name, ExactNorm(child))
    return hub


@torch.no_grad()
def force_rows(hub: Any, rows: list[Ids]) -> list[Values]:
    """Teacher-forced log-probabilities, 0 first; rows of equal length go together."""
    out = [np.zeros(len(row)) for row in rows]
    for length in sorted({len(row) for row in rows}):
        alike = [i for i, row in enumerate(rows) if len(row) == length]
        for part in (alike[a : a + 256] for a in range(0, len(alike), 256)):
            ids = torch.tensor([rows[i].tolist() for i in part])
            logp = hub(ids).logits[:, :-1].double().log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
            for i, values in zip(part, logp.tolist(), strict=True):
                out[i][1:] = values
    return out


def main() -> None:
    """Sample, score by every path, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model or run folder; the quickstart's base when left out")
    parser.add_argument("--tasks", type=int, default=32, help="per level")
    parser.add_argument("--attempts", type=int, default=8)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        folder = model_folder(Path(asked.model) if asked.model else train(base(), Path(place) / "base").folder)
        model = load_decoder(folder)
        hub = cast(Any, transformers.AutoModelForCausalLM).from_pretrained(folder).eval()
    engine = NativeEngine(model)
    requests, done = sample_answers(engine, model, asked.tasks, asked.attempts)
    rows = [ids_of(np.concatenate([r.prompt, c.ids])) for r, c in zip(requests, done, strict=True)]

    def answers(values: list[Any]) -> Values:
        return np.concatenate([v[len(r.prompt) :] for v, r in zip(values, requests, strict=True)]).astype(np.float64)

    paths = {
        "engine, as sampled": np.concatenate([c.logp_engine for c in done]).astype(np.float64),
        "engine, teacher-forced": answers(asyncio.run(engine.score(rows))),
        "learner": answers(TorchLearner(model, LearnerSettings(), total_steps=1).score(rows)),
        "transformers fp32": answers(force_rows(hub, rows)),
    }
    exact = answers(force_rows(in_float64(hub), rows))
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "tokens": len(exact)}))
    for name, values in paths.items():
        for other, reference in {"transformers fp32": paths["transformers fp32"], "float64": exact}.items():
            if name != other:
                gap = np.abs(values - reference)
                tail = {f"q{q}": float(f"{np.quantile(gap, q):.1e}") for q in (0.5, 0.99, 0.999)}
                print(
                    json.dumps(
                        {
                            "path": name,
                            "against": other,
                            "mean": float(f"{gap.mean():.1e}"),
                            **tail,
                            "max": float(f"{gap.max():.2e}"),
                        }
                    )
                )


if __name__ == "__main__":
    main()
