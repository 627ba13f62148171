"""SkyRL: losses, estimators, reductions and off-policy corrections, called with advantages reduced as its trainer does."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, token_rewards, weighted
from peer_loading import Settings, forget, missing, module, root_of, shells, stand_in, version_of
from peer_verl import covariant, far, holes, lone, ones

_LONE = "a group of one keeps its raw reward there"
_SCALED = "advantages are divided by the token count before the covariance is taken, so nothing is eligible"


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    base = "skyrl.backends.skyrl_train.utils"
    try:
        losses, root = importlib.import_module(f"{base}.ppo_utils"), None
    except Exception:  # its configuration needs Python 3.12
        forget("skyrl")
        root = root_of("skyrl", "skyrl/backends/skyrl_train/utils/ppo_utils.py")
        shells(root, "skyrl", "skyrl.backends", "skyrl.backends.skyrl_train", base, "skyrl.train")
        stand_in(*missing("jaxtyping", "loguru", "omegaconf"))
        module("skyrl.train.config", AlgorithmConfig=Settings)
        module("ray", remote=lambda c: c, is_initialized=lambda: False)
        losses = importlib.import_module(f"{base}.ppo_utils")
    corrections = importlib.import_module(f"{base}.off_policy_correction_utils")
    return SimpleNamespace(losses=losses, corrections=corrections), version_of("skyrl", root, "skyrl")


def _off(**more: Any) -> Settings:
    base: dict[str, Any] = {
        "tis_ratio_type": None,
        "token_tis_ratio_clip_high": 2.0,
        "sequence_tis_ratio_clip_high": 5.0,
        "sequence_mask_metric": None,
        "geo_mask_high": 1.01,
        "geo_mask_low": 0.99,
        "product_mask_high": 2.0,
        "product_mask_low": 0.5,
        "outlier_token_is_threshold_low": None,
        "outlier_token_is_threshold_high": None,
        "token_mask_is_threshold_low": None,
        "token_mask_is_threshold_high": None,
    }
    return Settings(**{**base, **more})


def _config(**more: Any) -> Settings:
    base: dict[str, Any] = {
        "policy_loss_type": "regular",
        "eps_clip_low": 0.2,
        "eps_clip_high": 0.2,
        "clip_ratio_c": 3.0,
        "loss_reduction": "token_mean",
        "off_policy_correction": _off(),
        "sapo": Settings(tau_pos=1.0, tau_neg=1.05),
        "cispo": Settings(cispo_eps_clip_low=0.0, cispo_eps_clip_high=5.0, cispo_anchor="old"),
        "dppo": Settings(dppo_type="binary_tv", delta_low=0.2, delta_high=0.2),
        "clip_cov": Settings(clip_ratio=0.0002, clip_cov_lb=1.0, clip_cov_ub=5.0),
        "kl_cov": Settings(kl_cov_frac=0.2, ppo_kl_coef=1.0),
        "value_clip": 0.2,
    }
    return Settings(**{**base, **more})


def cases(skyrl: Any) -> list[Case]:
    """Every comparison."""
    losses = skyrl.losses

    def reduced(b: Arrays, way: str) -> Any:
        advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))
        mask = tensor(b["mask"])
        return losses.apply_loss_reduction_to_advantages_minibatch(advantages, mask, way, 1, 256, [(0, 3), (3, 6)])

    def loss(name: str, function: str, case: str = "", way: str = "token_mean", roll: bool = False, **more: Any) -> Case:
        settings = more.pop("settings", {})

        def theirs(b: Arrays) -> Theirs:
            mask, last = tensor(b["mask"]), (tensor(b["logp_engine"]),) if roll else ()
            config = _config(policy_loss_type=name, loss_reduction=way, **settings)
            call = getattr(losses, function)
            return learned(b, lambda x: call(x, tensor(b["logp_old"]), reduced(b, way), config, mask, *last)[0])

        return Case(peer="skyrl", name=name, kind="loss", case=case, theirs=theirs, **more)

    def advantage(name: str, function: Any, case: str = "", **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return Theirs(advantages=function(b, token_rewards(b), tensor(b["mask"]), b["group_id"])[0].numpy())

        return Case(peer="skyrl", name=name, kind="advantage", case=case, theirs=theirs, what=("advantages",), **more)

    def correction(name: str, code: str = "", **settings: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            given = (tensor(b["logp_old"]), tensor(b["logp_engine"]), tensor(b["mask"]))
            weight, _, mask = skyrl.corrections.compute_off_policy_correction(*given, _off(**settings))
            return weighted(b, (1.0 if weight is None else weight.numpy()) * mask.numpy())

        return Case(
            peer="skyrl", name=name, kind="correction", code=code, theirs=theirs, what=("gradient",), batch=ones, close=1e-6
        )

    def reduction(name: str, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return learned(b, lambda x: -(x * reduced({**b, "advantages": np.ones(6)}, name) * tensor(b["mask"])).sum())

        return Case(peer="skyrl", name=name, kind="aggregation", theirs=theirs, **more)

    grpo = lambda b, r, m, g: losses.compute_grpo_outcome_advantage(r, m, g)
    rloo = lambda b, r, m, g: losses.compute_rloo_outcome_advantage(r, m, g)
    plus = lambda b, r, m, g: losses.compute_reinforce_plus_plus_outcome_advantage(r, m, 1.0)
    gae = lambda b, r, m, g: losses.compute_gae_advantage_return(r, tensor(b["values_old"]), m, 1.0, 0.95)
    lam = "(Gae(gamma=1.0, lam=0.95), Whiten('token', ddof=1))"
    maxrl = lambda b, r, m, g: losses.compute_maxrl_advantage(r, m, g)
    single = {"close": 1e-5}
    return [
        loss("regular", "ppo_policy_loss", **single),
        loss("regular", "ppo_policy_loss", "ratios up to e^4", batch=far, **single),
        loss("dual_clip", "ppo_policy_loss", batch=far, **single),
        loss("gspo", "gspo_policy_loss", way="sequence_mean", **single),
        loss("sapo", "sapo_policy_loss", way="sequence_mean", **single),
        loss("cispo", "compute_policy_loss_cispo", **single),
        loss(
            "cispo",
            "compute_policy_loss_cispo",
            "no lower bound, cap 5",
            code="cispo(cap=5.0)",
            settings={"cispo": Settings(cispo_eps_clip_low=1.0, cispo_eps_clip_high=4.0, cispo_anchor="old")},
            **single,
        ),
        loss("rollout_is", "rollout_is_policy_loss", roll=True, what=("gradient",), **single),
        loss("dppo", "dppo_policy_loss", roll=True, what=("gradient",), **single),
        loss("clip_cov", "compute_policy_loss_clip_cov", batch=covariant, differs=_SCALED, **single),
        loss(
            "kl_cov",
            "compute_policy_loss_kl_cov",
            batch=covariant,
            differs="the penalty is not divided by the token count",
            **single,
        ),
        advantage("grpo", grpo, close=1e-5),
        advantage("grpo", grpo, "a group of one", batch=lone, differs=_LONE),
        advantage("rloo", rloo, close=1e-5),
        advantage("rloo", rloo, "a group of one", batch=lone, close=1e-5),
        advantage("reinforce++", plus, close=1e-5),
        advantage("reinforce++", plus, "tool output inside", batch=holes, differs="the running return starts anew behind a gap"),
        advantage("gae", gae, code=lam),
        advantage("gae", gae, "tool output inside", batch=holes, code=lam, differs="values at tool output enter the estimate"),
        advantage("maxrl", maxrl, close=1e-5),
        advantage(
            "maxrl",
            maxrl,
            "rewards of -1 and 1",
            batch=lambda b: {**b, "rewards": np.array([1.0, -1, -1, -1, 1, -1])},
            differs="a negative mean turns the signs round; here such a prompt teaches nothing",
        ),
        correction("tis token", tis_ratio_type="token"),
        correction("tis sequence", tis_ratio_type="sequence"),
        correction(
            "outlier_token",
            "Reject(measure='ratio', over='sequence_any', low=0.0, high=1.3)",
            outlier_token_is_threshold_high=1.3,
        ),
        correction(
            "token_mask",
            "IcePop(low=0.8, high=1.2, unit=True)",
            token_mask_is_threshold_low=0.8,
            token_mask_is_threshold_high=1.2,
        ),
        correction(
            "sequence_mask geometric",
            "IcePop(low=0.9, high=1.1, level='sequence_mean', unit=True)",
            sequence_mask_metric="geometric",
            geo_mask_low=0.9,
            geo_mask_high=1.1,
        ),
        correction("sequence_mask product", sequence_mask_metric="product"),
        reduction("token_mean", close=1e-6),
        reduction("sequence_mean", close=1e-6),
        reduction("seq_mean_token_sum_norm", close=1e-6),
        reduction("prompt_mean", close=1e-6),
    ]
