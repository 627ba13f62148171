"""What `benchmarks/gpu.py` measures of TRL: steps of its `GRPOTrainer` on the work of the rows ``step``.

The same model, prompts, group sizes, lengths, reward, optimiser (AdamW, no decay, learning rate, clipping) and precision (fp32
weights under bf16 autocast); no reference model, one update a step, no layer computed twice; every attempt goes on to its last
token. For `generate_batch` TRL casts its weights to bf16 for good, and a static cache does not work under autocast with fp32
weights, so these rows hold weights and moments in bf16: less work than assay's, in TRL's favour.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
import transformers

from assay.runtime import hub_of
from evidence.gpu import SHAPES, WORK, Row, Work
from gpu_rows import EOS, LR, PAD, fresh, model_of, peak_bytes, reward, seconds, texts, tokenizer_of

BACKENDS: dict[str, dict[str, Any]] = {
    "trl": {},
    "trl-static": {"cache_implementation": "static"},
    "trl-batch": {"use_transformers_continuous_batching": True},
}
"""Settings of `GRPOConfig` by kind of row."""
IN_BFLOAT16 = ("trl-static", "trl-batch")
"""Kinds whose weights are bf16."""


def missing() -> str:
    """Why TRL cannot be measured here; empty where it can."""
    try:
        import trl  # pyright: ignore[reportMissingImports, reportUnusedImport]  # noqa: F401
    except ImportError as error:
        return f"TRL is not here ({error}); pip install trl into an environment beside assay, or name its folder in PYTHONPATH"
    return ""


class _Clock(transformers.TrainerCallback):
    """When each step ended; a step begins where the one before ended."""

    def __init__(self, device: str) -> None:
        self.device, self.ends = device, list[float]()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The beginning."""
        self.ends.append(seconds(self.device))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The optimiser has stepped."""
        self.ends.append(seconds(self.device))


class _Reward:
    """`reward` with TRL's signature; counts the tokens that it is shown."""

    __name__ = "reward"

    def __init__(self) -> None:
        self.tokens = list[int]()

    def __call__(self, completions: Sequence[str], completion_ids: Sequence[Sequence[int]], **others: Any) -> list[float]:
        self.tokens.append(sum(map(len, completion_ids)))
        return [reward(c) for c in completions]


def step(row: Row, device: str) -> dict[str, Any]:
    """Steps of `GRPOTrainer`."""
    import datasets  # pyright: ignore[reportMissingImports]
    import pyarrow  # pyright: ignore[reportMissingTypeStubs]
    import trl  # pyright: ignore[reportMissingImports]

    shape, work = SHAPES[row.size], WORK[row.size]
    transformers.utils.logging.disable_progress_bar()
    clock, paid = _Clock(device), _Reward()
    fresh(device)
    with tempfile.TemporaryDirectory() as folder:
        weights = torch.bfloat16 if row.kind in IN_BFLOAT16 else torch.float32
        module: Any = hub_of(model_of(shape)).module(weights)
        module.generation_config.pad_token_id = 0
        made: Any = cast(Any, trl).GRPOTrainer(
            model=module,
            reward_funcs=paid,
            args=cast(Any, trl).GRPOConfig(**_config(row, work, device, Path(folder))),
            # A name of its own: to make one, `datasets` pickles pyarrow's module, which fails with some versions.
            train_dataset=cast(Any, datasets).Dataset(
                cast(Any, pyarrow).table({"prompt": texts(shape, work)}), fingerprint=f"assay-{row.size}"
            ),
            processing_class=cast(Any, transformers).PreTrainedTokenizerFast(
                tokenizer_object=tokenizer_of(shape.vocab_size), pad_token=PAD, eos_token=EOS, padding_side="left"
            ),
            callbacks=[clock],
        )
        made.train()
    times = [b - a for a, b in zip(clock.ends, clock.ends[1:], strict=False)]
    return {
        "seconds": times[1:],
        "warm_up_seconds": times[0],
        "tokens": paid.tokens[1:],
        "memory_used": peak_bytes(device),
        "trl": cast(Any, trl).__version__,
    }


def _config(row: Row, work: Work, device: str, folder: Path) -> dict[str, Any]:
    """The settings that make the work the same."""
    return {
        "output_dir": str(folder),
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "use_cpu": device == "cpu",
        "bf16": True,
        "gradient_checkpointing": False,
        "seed": 0,
        "max_steps": work.repeats + 1,
        "per_device_train_batch_size": work.micro_rows,
        "gradient_accumulation_steps": work.rollouts // work.micro_rows,
        "num_generations": work.group_size,
        "max_completion_length": work.answer,
        "shuffle_dataset": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "beta": 0.0,
        "num_iterations": 1,
        "loss_type": "dapo",
        "learning_rate": LR,
        "lr_scheduler_type": "constant",
        "warmup_steps": 0,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        **BACKENDS[row.kind],
    }
