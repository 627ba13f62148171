"""TRL: the loss of `GRPOTrainer`, its sampler corrections and its masks, called with a stand-in for the trainer."""

import importlib
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, tensor
from peer_loading import root_of, taken, version_of
from peer_verl import far, holes

_METHODS = ("_compute_loss", "get_off_policy_mask", "get_gamma_weights", "get_high_entropy_mask")


def load() -> tuple[Any, str]:
    """The methods of the trainer's class, and the version."""
    try:
        trainer = importlib.import_module("trl.trainer.grpo_trainer")
        root, path = None, Path(trainer.__file__ or "")
    except ImportError:
        root = root_of("trl", "trl/trainer/grpo_trainer.py")
        path = root / "trl" / "trainer" / "grpo_trainer.py"
    utils = taken(path.with_name("utils.py"), ["nanmin", "nanmax", "nanstd"])
    found = taken(path, [f"GRPOTrainer.{m}" for m in _METHODS], nanmin=utils.nanmin, nanmax=utils.nanmax)
    return found, version_of("trl", root, "trl")


class _Accelerator:
    num_processes = 1
    sync_gradients = False

    def reduce(self, values: Any, reduction: Any = None) -> Any:
        return values

    def gather(self, values: Any) -> Any:
        return values

    gather_for_metrics = gather

    def pad_across_processes(self, values: Any, **settings: Any) -> Any:
        return values


def cases(trl: Any) -> list[Case]:
    """Every comparison."""

    def compute(b: Arrays, live: torch.Tensor, loss_type: str, level: str = "token", **more: Any) -> torch.Tensor:
        given = {
            "delta": None,
            "epsilon_low": 0.2,
            "epsilon_high": 0.2,
            "beta": 0.0,
            "mask_over": None,
            "sampler": False,
            "unbiased": True,
            **more,
        }
        args = SimpleNamespace(
            delta=given["delta"],
            sapo_temperature_pos=1.0,
            sapo_temperature_neg=1.05,
            vespo_k_pos=2.0,
            vespo_lambda_pos=3.0,
            vespo_k_neg=3.0,
            vespo_lambda_neg=2.0,
            use_bias_correction_kl=given["unbiased"],
            steps_per_generation=1,
        )
        trainer = SimpleNamespace(
            accelerator=_Accelerator(),
            args=args,
            loss_type=loss_type,
            importance_sampling_level=level,
            epsilon_low=given["epsilon_low"],
            epsilon_high=given["epsilon_high"],
            beta=given["beta"],
            off_policy_mask_threshold=given["mask_over"],
            top_entropy_quantile=1.0,
            use_vllm=given["sampler"],
            vllm_importance_sampling_correction=given["sampler"],
            current_gradient_accumulation_steps=1,
            max_completion_length=256,
            aux_loss_enabled=False,
            _entropy_bonus_enabled=False,
            model=SimpleNamespace(training=True),
            _metrics={"train": defaultdict(list)},
            get_off_policy_mask=trl.get_off_policy_mask,
            get_gamma_weights=torch.no_grad()(trl.get_gamma_weights),
            get_high_entropy_mask=trl.get_high_entropy_mask,
        )
        trainer._get_per_token_logps_and_entropies = lambda *a, **k: (live, torch.ones_like(live), None)
        rows, width = live.shape
        mask = tensor(b["mask"])
        inputs = {
            "prompt_ids": torch.zeros(rows, 1).long(),
            "prompt_mask": torch.ones(rows, 1).long(),
            "completion_ids": torch.zeros(rows, width).long(),
            "completion_mask": mask,
            "advantages": tensor(b["advantages"]),
            "old_per_token_logps": tensor(b["logp_old"]),
            "ref_per_token_logps": tensor(b["logp_ref"]),
            "sampling_per_token_logps": tensor(b["logp_engine"]),
            "num_items_in_batch": mask.sum(),
        }
        if given["sampler"]:
            inputs["importance_sampling_ratio"] = tensor(b["sampler_weight"])
        return trl._compute_loss(trainer, None, inputs)

    def loss(name: str, loss_type: str, case: str = "", entry_code: str = "", level: str = "token", **more: Any) -> Case:
        keys = ("batch", "differs", "what", "close")
        kept = {k: more.pop(k) for k in keys if k in more}

        def theirs(b: Arrays) -> Theirs:
            return learned(b, lambda x: compute(b, x, loss_type, level, **more))

        return Case(peer="trl", name=name, kind="loss", case=case, code=entry_code, theirs=theirs, **kept)

    tight = (
        "Objective(policy=PolicyGradient(ratio=Ratio('sequence_mean'), trust=MinClip(low=3e-4, high=4e-4)), aggregate=SeqMean())"
    )
    return [
        loss("grpo", "grpo"),
        loss("grpo", "grpo", "tool output inside", batch=holes),
        loss("dapo", "dapo"),
        loss("dapo", "dapo", "ratios up to e^4", batch=far),
        loss("bnpo", "bnpo"),
        loss("dr_grpo", "dr_grpo"),
        loss("luspo", "luspo", level="sequence"),
        loss("luspo", "luspo", "bounds of the paper", "luspo()", "sequence", epsilon_low=2e-3, epsilon_high=2.5e-3),
        loss("cispo", "cispo", epsilon_high=5.0),
        loss("cispo", "cispo", "epsilon_high left out", differs="the cap becomes 0.2, so that every ratio above gets weight 0.2"),
        loss("sapo", "sapo", close=1e-5),
        loss("vespo", "vespo"),
        loss("grpo/sequence", "grpo", level="sequence"),
        loss("grpo/sequence", "grpo", "bounds of the paper", tight, "sequence", epsilon_low=3e-4, epsilon_high=4e-4),
        loss("grpo/delta", "grpo", delta=10.0, batch=far),
        loss("dapo/beta", "dapo", beta=0.04),
        loss(
            "dapo/beta",
            "dapo",
            "without the bias correction",
            "replace(dapo(filter_groups=False, high=0.2), terms=(Kl('k3', coef=0.04),))",
            beta=0.04,
            unbiased=False,
        ),
        loss("off_policy_mask", "grpo", "delta 0.05", "opsm(delta=0.05)", mask_over=0.05),
        loss("grpo", "grpo", "with token_truncate", _with("Truncate(cap=1.2)"), sampler=True, batch=_sampler("token", cap=1.2)),
        loss(
            "grpo", "grpo", "with token_mask", _with("IcePop(low=0.0, high=1.2)"), sampler=True, batch=_sampler("token", drop=1.2)
        ),
        loss(
            "grpo",
            "grpo",
            "with sequence_truncate",
            _with("Truncate(cap=1.2, level='sequence_product')"),
            sampler=True,
            batch=_sampler("sequence", cap=1.2),
        ),
        loss(
            "grpo",
            "grpo",
            "with sequence_mask",
            _with("IcePop(low=0.0, high=1.2, level='sequence_product')"),
            sampler=True,
            batch=_sampler("sequence", drop=1.2),
        ),
    ]


def _with(weight: str) -> str:
    return f"Objective(policy=PolicyGradient(trust=MinClip(), weights=({weight},)), aggregate=SeqMean())"


def _sampler(level: str, cap: float = np.inf, drop: float = np.inf) -> Any:
    """The ratio that the trainer's generation step would leave, after its formula."""

    def add(b: Arrays) -> Arrays:
        gap = (b["logp_old"] - b["logp_engine"]) * b["mask"]
        ratio = np.exp(gap if level == "token" else gap.sum(1, keepdims=True))
        return {**b, "sampler_weight": np.where(ratio > drop, 0.0, np.minimum(ratio, cap))}

    return add
