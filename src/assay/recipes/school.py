"""GSM8K on one GPU: a model of 0.6 billion weights, all of them trained, and one of 8 billion by adapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.rollout import Sampling
from assay.guide import Uniform
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.runtime.engine.settings import InProcess
from assay.runtime.settings import AdamW, LearnerSettings, LearningRateSchedule, Lora
from assay.runtime.text.chat import Chat
from assay.runtime.vllm.settings import VllmSettings
from assay.train.models import Folder
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay_tasks.gsm8k import Gsm8k

__all__ = ["CONFIGS", "gsm8k", "gsm8k_lora"]

_QWEN3: Mapping[str, Any] = FrozenMap(
    {
        "model_type": "qwen3",
        "architectures": ("Qwen3ForCausalLM",),
        "vocab_size": 151936,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "attention_bias": False,
    }
)
CONFIGS: Mapping[str, Mapping[str, Any]] = FrozenMap(
    {
        "Qwen/Qwen3-0.6B": {
            **_QWEN3,
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "intermediate_size": 3072,
            "tie_word_embeddings": True,
        },
        "Qwen/Qwen3-8B": {
            **_QWEN3,
            "hidden_size": 4096,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "intermediate_size": 12288,
            "tie_word_embeddings": False,
        },
    }
)
"""``config.json`` of the models that recipes name, as far as sizes go: for `assay explain` and ``--random-init`` where the hub is
out of reach. What is trained is always the model's own."""

_CHAT = Chat(options={"enable_thinking": False})


def gsm8k(seed: int = 0) -> Run:
    """GSM8K with Qwen3-0.6B, all weights trained, on one GPU of 24 GB.

    17.7 GiB by `assay explain`: fp32 weights, gradients and moments 8.9 GiB, a bf16 copy that samples 1.1 GiB, its keys and
    values 3.5 GiB at most, activations of 4,096 tokens with recomputed layers 1.7 GiB, their logits 2.5 GiB. ``unverified``: it
    was never run on such a GPU, only with a small model (`random_init`).
    """
    return Run(
        name="gsm8k",
        seed=seed,
        model=Folder("Qwen/Qwen3-0.6B", chat=_CHAT),
        tasks=Gsm8k(),
        stages=(
            Reinforce(
                steps=200,
                groups=16,
                group_size=8,
                curriculum=Uniform(),
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                learner=LearnerSettings(
                    optimizer=AdamW(lr=1e-6),
                    schedule=LearningRateSchedule(warmup=10),
                    precision="bf16",
                    checkpointing=True,
                    device="cuda",
                    micro_tokens=4096,
                    anchors=(),
                ),
            ),
        ),
        sampling=Sampling(max_new_tokens=768),
        evaluation=Evaluation(every=25, per_level=128, final_per_level=512, kl_to_base=False),
        engine=InProcess(max_batch=32, dtype="bfloat16", context=1024),
        checkpoint_every=25,
        reward_deadline=5.0,
    )


def gsm8k_lora(seed: int = 0) -> Run:
    """GSM8K with Qwen3-8B by adapters of rank 32, on one GPU of 80 GB that learner and vLLM share.

    21.0 GiB by `assay explain` for the learner: frozen bf16 weights 15.3 GiB, adapters with gradients and moments 1.3 GiB,
    activations 3.6 GiB, logits 0.9 GiB. The server has weights of its own (15.3 GiB) and needs room for keys and values: start
    it first, with ``--gpu-memory-utilization 0.45`` behind what ``VllmSettings().command("Qwen/Qwen3-8B", 32)`` prints.
    ``unverified``: it was never run on such a GPU, only with a small model (`random_init`).
    """
    run = gsm8k(seed)
    (stage,) = run.stages
    learner = replace(stage.learner, optimizer=AdamW(lr=2e-5), adapter=Lora(rank=32, alpha=64.0), micro_tokens=4096)
    return replace(
        run,
        name="gsm8k-lora",
        model=Folder("Qwen/Qwen3-8B", chat=_CHAT),
        stages=(replace(stage, learner=learner),),
        engine=VllmSettings(url="http://127.0.0.1:8000"),
    )
