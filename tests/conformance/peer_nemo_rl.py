"""NeMo-RL: `ClippedPGLossFn` and the advantage estimators."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, token_rewards
from peer_loading import forget, missing, module, root_of, shells, stand_in, taken, version_of
from peer_verl import components, far, holes, lone


class _Batch(dict):
    def __class_getitem__(cls, key: Any) -> Any:
        return cls


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    name = "nemo_rl.algorithms.loss.loss_functions"
    try:
        losses, root, batch = importlib.import_module(name), None, dict
        batch = importlib.import_module("nemo_rl.distributed.batched_data_dict").BatchedDataDict
    except Exception:
        forget("nemo_rl")
        root, batch = root_of("nemo_rl", "nemo_rl/algorithms/loss/loss_functions.py"), _Batch
        packages = ("nemo_rl", "nemo_rl.algorithms", "nemo_rl.distributed", "nemo_rl.models", "nemo_rl.models.dtensor")
        shells(root, *packages, "nemo_rl.algorithms.x_token", "nemo_rl.algorithms.loss")
        stand_in(*missing("ray", "megatron", "hydra", "omegaconf"))
        module("nemo_rl.distributed.batched_data_dict", BatchedDataDict=_Batch)
        for other in (
            "nemo_rl.algorithms.x_token.loss_utils",
            "nemo_rl.distributed.model_utils",
            "nemo_rl.models.dtensor.parallelize",
        ):
            module(other)
        names = [
            "calculate_kl",
            "calculate_baseline_and_std_per_prompt",
            "masked_mean",
            "masked_var",
            "get_gdpo_reward_component_keys",
        ]
        numeric = taken(root / "nemo_rl" / "algorithms" / "utils.py", names)
        module("nemo_rl.algorithms.utils", **vars(numeric))
        losses = importlib.import_module(name)
        importlib.import_module("nemo_rl.algorithms.loss").ClippedPGLossConfig = losses.ClippedPGLossConfig  # type: ignore[attr-defined]
    estimators = importlib.import_module("nemo_rl.algorithms.advantage_estimator")
    return SimpleNamespace(losses=losses, estimators=estimators, batch=batch), version_of("nemo_rl", root, "nemo-rl")


def _behind(values: torch.Tensor) -> torch.Tensor:
    """One more token before: the loss shifts by one."""
    return torch.cat([torch.zeros(len(values), 1, dtype=values.dtype), values], 1)


def cases(nemo: Any) -> list[Case]:
    """Every comparison."""
    losses, estimators = nemo.losses, nemo.estimators

    def loss(name: str, case: str = "", engine: str = "logp_old", **more: Any) -> Case:
        kept = {k: more.pop(k) for k in ("batch", "differs", "code", "what", "close") if k in more}
        settings = {"reference_policy_kl_penalty": 0.0, **more}

        def theirs(b: Arrays) -> Theirs:
            data = nemo.batch(
                {
                    "token_mask": _behind(tensor(b["mask"])),
                    "sample_mask": torch.ones(6, dtype=torch.float64),
                    "advantages": _behind(tensor(spread(b["advantages"], b["mask"]))),
                    "prev_logprobs": _behind(tensor(b["logp_old"])),
                    "generation_logprobs": _behind(tensor(b[engine])),
                    "reference_policy_logprobs": _behind(tensor(b["logp_ref"])),
                }
            )
            function = losses.ClippedPGLossFn(losses.ClippedPGLossConfig(**settings))
            counts = torch.tensor(6.0), tensor(b["mask"]).sum()
            return learned(b, lambda x: function(x, data, *counts)[0])

        return Case(peer="nemo_rl", name=name, kind="loss", case=case, theirs=theirs, **{"close": 1e-5, **kept})

    def advantage(name: str, function: Any, case: str = "", **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return Theirs(advantages=spread(function(b).double().numpy(), b["mask"]))

        return Case(
            peer="nemo_rl", name=name, kind="advantage", case=case, theirs=theirs, what=("advantages",), **{"close": 1e-5, **more}
        )

    def grpo(leave_one_out: bool) -> Any:
        def call(b: Arrays) -> torch.Tensor:
            made = estimators.GRPOAdvantageEstimator(estimators.AdvEstimatorConfig(), None)
            made.use_leave_one_out_baseline = leave_one_out
            prompts = torch.tensor(b["group_id"])[:, None]
            return made.compute_advantage(prompts, torch.tensor(b["rewards"], dtype=torch.float32), tensor(b["mask"]).float())

        return call

    def gdpo(leave_one_out: bool) -> Any:
        def call(b: Arrays) -> torch.Tensor:
            made = estimators.GDPOAdvantageEstimator(estimators.AdvEstimatorConfig(name="gdpo"), None)
            made.use_leave_one_out_baseline = leave_one_out
            parts = {f"reward/{k}": torch.tensor(v, dtype=torch.float32) for k, v in b["components"].items()}
            return made.compute_advantage(torch.tensor(b["group_id"])[:, None], None, tensor(b["mask"]).float(), parts)

        return call

    def gae(b: Arrays) -> torch.Tensor:
        made = estimators.GeneralizedAdvantageEstimator.__new__(estimators.GeneralizedAdvantageEstimator)
        made.gae_lambda, made.gae_gamma = 0.95, 1.0
        return made._compute_gae(token_rewards(b), tensor(b["values_old"]), tensor(b["mask"]))[0]

    corrected = {"engine": "logp_engine", "use_importance_sampling_correction": True}
    ppo = "Objective(policy=PolicyGradient(trust=MinClip(), weights=({},)), aggregate=Token())"
    return [
        loss("ClippedPGLoss"),
        loss("ClippedPGLoss", "ratios up to e^4", batch=far),
        loss("ClippedPGLoss/ratio_clip_c", ratio_clip_c=3.0, batch=far),
        loss("ClippedPGLoss/disable_ppo_ratio", disable_ppo_ratio=True),
        loss("ClippedPGLoss/force_on_policy_ratio", force_on_policy_ratio=True, what=("gradient",)),
        loss("gspo", sequence_level_importance_ratios=True, token_level_loss=False),
        loss("cispo", use_cispo=True),
        loss("cispo", "no lower bound, cap 5", use_cispo=True, ratio_clip_min=1.0, ratio_clip_max=4.0, code="cispo(cap=5.0)"),
        loss("ClippedPGLoss", "with importance_correction", code=ppo.format("Truncate(cap=inf)"), **corrected),
        loss(
            "ClippedPGLoss",
            "with tis, cap 1.1",
            code=ppo.format("Truncate(cap=1.1)"),
            **corrected,
            truncated_importance_sampling_type="tis",
            truncated_importance_sampling_ratio=1.1,
        ),
        loss(
            "ClippedPGLoss",
            "with icepop",
            code=ppo.format("IcePop(low=0.9, high=1.1)"),
            **corrected,
            truncated_importance_sampling_type="icepop",
            truncated_importance_sampling_ratio=1.1,
            truncated_importance_sampling_ratio_min=0.9,
        ),
        loss(
            "ClippedPGLoss",
            "with seq-mask-tis",
            code=ppo.format("IcePop(low=0.9, high=1.1, level='sequence_mean', unit=True), Truncate(cap=inf)"),
            **corrected,
            truncated_importance_sampling_type="seq-mask-tis",
            truncated_importance_sampling_ratio=1.1,
            truncated_importance_sampling_ratio_min=0.9,
        ),
        Case(
            peer="nemo_rl",
            name="reference_policy_kl_penalty",
            kind="kl",
            close=1e-5,
            theirs=loss("ClippedPGLoss", reference_policy_kl_penalty=0.01).theirs,
            batch=lambda b: {**b, "advantages": np.zeros(6)},
        ),
        advantage("grpo", grpo(True)),
        advantage("grpo/use_leave_one_out_baseline False", grpo(False)),
        advantage("grpo/use_leave_one_out_baseline False", grpo(False), "a group of one", batch=lone),
        advantage("gdpo", gdpo(True), batch=components),
        advantage("gdpo/use_leave_one_out_baseline False", gdpo(False), batch=components),
        advantage("gae", gae),
        advantage("gae", gae, "tool output inside", batch=holes),
    ]
