"""TRL's side of `whole_step.py`: steps of its `GRPOTrainer`. It runs in TRL's environment and imports nothing of assay.

TRL_PYTHON benchmarks/whole_step_trl.py WORK.json
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
import transformers

from paced import Pace, Work, pay_attempt

warnings.simplefilter("ignore")
import datasets  # pyright: ignore[reportMissingImports]  # noqa: E402
import trl  # pyright: ignore[reportMissingImports]  # noqa: E402


class Parts:
    """CPU and wall seconds by part of a step."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        begin = time.process_time(), time.perf_counter()
        yield
        found = self.spent.setdefault(name, [0.0, 0.0])
        found[0] += time.process_time() - begin[0]
        found[1] += time.perf_counter() - begin[1]

    def count_calls(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, counted."""

        def call_counted(*given: Any, **named: Any) -> Any:
            with self(name):
                return call(*given, **named)

        return call_counted


class Reward:
    """`pay_attempt` with TRL's signature."""

    __name__ = "pay_attempt"

    def __init__(self) -> None:
        self.values = list[float]()

    def __call__(self, completions: Sequence[str], mixed: Sequence[bool], **others: Any) -> list[float]:
        self.values = [pay_attempt(c, m) for c, m in zip(completions, mixed, strict=True)]
        return self.values


class Paced(transformers.TrainerCallback):
    """Waits for the word before each step, and tells of it behind."""

    def __init__(self, pace: Pace, parts: Parts, reward: Reward, gradient: str) -> None:
        self.pace, self.parts, self.reward, self.gradient = pace, parts, reward, gradient

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Everything is loaded."""
        versions = {"torch": torch.__version__, "transformers": transformers.__version__, "trl": cast(Any, trl).__version__}
        self.pace.tell(ready=True, versions=versions)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Keeps the first step's gradient."""
        if self.gradient:
            torch.save({n: p.grad for n, p in model.named_parameters()}, self.gradient)
            self.gradient = ""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The optimiser has stepped."""
        spent, parts = self.pace.measure_spent(), self.parts.spent
        found = {"parts": {k: v[0] for k, v in parts.items()}, "parts_wall": {k: v[1] for k, v in parts.items()}}
        self.pace.tell(**spent, **found, rewards=sorted(self.reward.values))
        self.parts.spent = {}


def main(work: Work) -> None:
    """Trains as long as it is told to go on."""
    torch.set_num_threads(work.threads)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    pace, parts, reward = Pace(), Parts(), Reward()
    first: dict[str, list[list[int]]] = json.loads(work.attempts_file.read_text(encoding="utf-8")) if work.first else {}

    class Trainer(cast(Any, trl).GRPOTrainer):
        """Learns in its first step from the attempts that assay's first step sampled."""

        def _generate_single_turn(self, prompt_ids: Any, *given: Any, **named: Any) -> Any:
            above: Any = super()
            if first:
                told = {k: list(v) for k, v in first.items()}
                first.clear()
                return [told[" ".join(map(str, p))].pop(0) for p in prompt_ids], None
            return above._generate_single_turn(prompt_ids, *given, **named)

        _generate = parts.count_calls("generate", cast(Any, trl).GRPOTrainer._generate)
        _compute_loss = parts.count_calls("forward", cast(Any, trl).GRPOTrainer._compute_loss)

    rows = [{"prompt": p, "mixed": m} for p, m in zip(work.prompts, work.mixed, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        hub = cast(Any, transformers)
        model = hub.AutoModelForCausalLM.from_pretrained(work.model, dtype=torch.float32, attn_implementation=work.attention)
        model.get_input_embeddings().padding_idx = None  # random weights sample it, and as an input it would get no gradient
        made: Any = Trainer(
            model=model,
            reward_funcs=reward,
            args=cast(Any, trl).GRPOConfig(**config(work, folder)),
            train_dataset=cast(Any, datasets).Dataset.from_list(rows * (work.steps + 1)),
            processing_class=hub.AutoTokenizer.from_pretrained(work.model, padding_side="left"),
            callbacks=[Paced(pace, parts, reward, work.gradient("trl"))],
        )
        made.accelerator.backward = parts.count_calls("backward", made.accelerator.backward)
        made.train()


def config(work: Work, folder: str) -> dict[str, Any]:
    """The settings that make the work the same, and nothing written beside it."""
    generation = {
        "dynamic": {},
        "static": {"cache_implementation": "static"},
        "paged": {"use_transformers_continuous_batching": True},
    }[work.cache]
    return {
        "output_dir": folder,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "seed": 0,
        "max_steps": work.steps + 1,
        "per_device_train_batch_size": work.micro,
        "gradient_accumulation_steps": work.attempts // work.micro,
        "num_generations": work.group_size,
        "max_completion_length": work.new,
        "generation_kwargs": {"min_new_tokens": work.new},
        "shuffle_dataset": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "beta": 0.0,
        "epsilon": 0.2,
        "num_iterations": 1,
        "loss_type": "grpo",
        "learning_rate": work.lr,
        "lr_scheduler_type": "constant",
        "warmup_steps": 0,
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.95,
        "adam_epsilon": 1e-8,
        "max_grad_norm": 1.0,
        **generation,
    }


if __name__ == "__main__":
    main(Work.read(sys.argv[1]))
