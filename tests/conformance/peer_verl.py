"""verl: losses and estimators from `core_algos`, weights and masks from `rollout_corr_helper`."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, token_rewards, weighted
from peer_loading import Settings, forget, missing, module, root_of, shells, stand_in, version_of

_LONE = "a group of one keeps its raw reward there"


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    try:
        algos = importlib.import_module("verl.trainer.ppo.core_algos")
        root = None
    except ImportError:
        algos, root = None, root_of("verl", "verl/trainer/ppo/core_algos.py")
    if root is None:
        from verl.trainer.config import AlgoConfig
        from verl.workers.config import ActorConfig

        def actor(**more: Any) -> Any:
            loss = SimpleNamespace(**{"loss_mode": "vanilla", **more.pop("policy_loss", {})})
            made = ActorConfig(strategy="fsdp", ppo_micro_batch_size_per_gpu=1, rollout_n=1, **more)
            object.__setattr__(made, "policy_loss", Settings(**vars(_policy_loss(loss))))
            return made

        algo = AlgoConfig
    else:
        forget("verl")
        packages = ("verl", "verl.utils", "verl.trainer", "verl.trainer.ppo", "verl.workers", "verl.trainer.config")
        shells(root, *packages, "verl.workers.config")
        stand_in(*missing("omegaconf", "tensordict"))
        module("verl.utils.device", get_device_name=lambda: "cpu", get_torch_device=lambda: None, get_device_id=lambda: 0)
        algo, config = type("AlgoConfig", (Settings,), {}), type("ActorConfig", (Settings,), {})
        module("verl.trainer.config", AlgoConfig=algo)
        module("verl.workers.config", ActorConfig=config)
        module("verl.trainer.config.algorithm", RolloutCorrectionConfig=Settings)
        module("verl.workers.config.actor", PolicyLossConfig=Settings)
        module("verl.protocol", DataProto=type("DataProto", (), {"from_dict": staticmethod(_batch)}))
        groups = importlib.import_module("verl.utils.groupwise")
        utils = importlib.import_module("verl.utils")
        utils.as_torch_index, utils.group_mean_std = groups.as_torch_index, groups.group_mean_std
        algos = importlib.import_module("verl.trainer.ppo.core_algos")

        def actor(**more: Any) -> Any:
            loss = _policy_loss(SimpleNamespace(**more.pop("policy_loss", {})))
            base = {
                "clip_ratio": 0.2,
                "clip_ratio_low": 0.2,
                "clip_ratio_high": 0.2,
                "clip_ratio_c": 3.0,
                "tau_pos": 1.0,
                "tau_neg": 1.05,
                "loss_agg_mode": "token-mean",
                "global_batch_info": {},
                "policy_loss": Settings(**vars(loss)),
            }
            return config(**{**base, **more})

    correction = importlib.import_module("verl.trainer.ppo.rollout_corr_helper")
    found = SimpleNamespace(algos=algos, correction=correction, actor=actor, algo=algo)
    return found, version_of("verl", root, "verl")


def _batch(tensors: Any) -> SimpleNamespace:
    return SimpleNamespace(batch=tensors)


def _policy_loss(given: SimpleNamespace) -> SimpleNamespace:
    base = {
        "clip_cov_ratio": 0.0002,
        "clip_cov_lb": 1.0,
        "clip_cov_ub": 5.0,
        "kl_cov_ratio": 0.0002,
        "ppo_kl_coef": 0.1,
        "dro_beta": None,
        "rollout_correction": None,
    }
    return SimpleNamespace(**{**base, **vars(given)})


def cases(verl: Any) -> list[Case]:
    """Every comparison."""
    algos, correction = verl.algos, verl.correction

    def loss(name: str, case: str = "", mode: str = "token-mean", old: str = "logp_old", **more: Any) -> Case:
        entry, settings = more.pop("entry", name), more.pop("settings", {})

        def theirs(b: Arrays) -> Theirs:
            function = algos.get_policy_loss_fn(name)
            return learned(
                b,
                lambda x: function(
                    tensor(b[old]), x, tensor(spread(b["advantages"], b["mask"])), tensor(b["mask"]), mode, verl.actor(**settings)
                )[0],
            )

        return Case(peer="verl", name=entry, kind="loss", case=case, theirs=theirs, **more)

    def advantage(name: str, function: Any, case: str = "", **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return Theirs(advantages=function(b, token_rewards(b), tensor(b["mask"]), b["group_id"].astype(object)).numpy())

        return Case(peer="verl", name=name, kind="advantage", case=case, theirs=theirs, what=("advantages",), **more)

    def weight(name: str, case: str = "", kind: str = "token", threshold: Any = 2.0, **more: Any) -> Case:
        normalise = more.pop("normalise", False)

        def theirs(b: Arrays) -> Theirs:
            gap = tensor(b["logp_old"] - b["logp_engine"])
            made = correction.compute_rollout_correction_weights(gap, tensor(b["mask"]), kind, threshold, normalise)[0]
            return weighted(b, made.numpy())

        return Case(
            **{
                "peer": "verl",
                "name": name,
                "kind": "correction",
                "case": case,
                "theirs": theirs,
                "what": ("gradient",),
                "batch": ones,
                **more,
            }
        )

    def rejection(option: str, threshold: Any, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            gap = tensor(b["logp_old"] - b["logp_engine"])
            return weighted(b, correction.compute_rollout_rejection_mask(gap, tensor(b["mask"]), option, threshold)[0].numpy())

        return Case(
            **{
                "peer": "verl",
                "name": f"rollout_rs {option}",
                "kind": "correction",
                "theirs": theirs,
                "what": ("gradient",),
                "batch": ones,
                **more,
            }
        )

    def kl(name: str, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            mask = tensor(b["mask"])
            return learned(b, lambda x: 0.001 * (algos.kl_penalty(x, tensor(b["logp_ref"]), name) * mask).sum() / mask.sum())

        return Case(peer="verl", name=name, kind="kl", theirs=theirs, **more)

    def aggregation(name: str, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return learned(b, lambda x: algos.agg_loss(-x, tensor(b["mask"]), name, loss_scale_factor=256))

        return Case(peer="verl", name=name, kind="aggregation", theirs=theirs, **more)

    def value(b: Arrays) -> Theirs:
        given = [tensor(b[n]) for n in ("returns", "values_old", "mask")]
        return learned(b, lambda x: algos.compute_value_loss(x, *given, 0.5)[0], of="values")

    def grouped(name: str, **settings: Any) -> Any:
        return lambda b, r, m, g: getattr(algos, name)(r, m, g, **settings)[0]

    def otb(name: str) -> Any:
        return lambda b, r, m, g: getattr(algos, name)(r, m, g, tensor(b["logp_old"]), tensor(b["sum_pi_squared_old"]))[0]

    grpo, rloo = "compute_grpo_outcome_advantage", "compute_rloo_outcome_advantage"
    plus = "compute_reinforce_plus_plus_outcome_advantage"
    gae = lambda b, r, m, g: algos.compute_gae_advantage_return(r, tensor(b["values_old"]), m, 1.0, 1.0)[0]
    opo, gpg = "compute_opo_outcome_advantage", "compute_gpg_outcome_advantage"
    return [
        loss("vanilla"),
        loss("vanilla", "ratios up to e^4", batch=far),
        loss(
            "vanilla", "mean per rollout", "seq-mean-token-mean", code="Objective(policy=PolicyGradient(trust=MinClip(dual=3.0)))"
        ),
        loss("dppo_tv", what=("gradient",)),
        loss("dppo_kl", what=("gradient",)),
        loss("gspo"),
        loss(
            "gspo",
            "as published",
            "seq-mean-token-mean",
            settings={"clip_ratio_low": 3e-4, "clip_ratio_high": 4e-4},
            code="gspo()",
        ),
        loss("sapo"),
        loss("gpg"),
        loss("geo_mean"),
        loss("geo_mean", "bounds of the paper", settings={"clip_ratio_low": 0.4, "clip_ratio_high": 0.4}, code="gmpo()"),
        loss("dro", settings={"policy_loss": {"dro_beta": 0.1}}),
        loss("cispo"),
        loss(
            "cispo",
            "no lower bound, cap 5",
            settings={"clip_ratio_low": 10.0, "clip_ratio_high": 4.0},
            code="cispo(cap=5.0)",
        ),
        loss("bypass_mode", old="logp_engine", settings={"policy_loss": {"rollout_correction": _bypass("ppo_clip")}}),
        loss(
            "bypass_mode",
            old="logp_engine",
            settings={"policy_loss": {"rollout_correction": _bypass("reinforce")}},
            entry="bypass_mode/reinforce",
        ),
        loss(
            "clip_cov",
            "all eligible tokens",
            batch=covariant,
            settings={"policy_loss": {"clip_cov_ratio": 1.0}},
            code="clip_cov(fraction=1.0, low=0.2, high=0.2)",
        ),
        loss(
            "clip_cov",
            "one of the eligible tokens",
            batch=covariant,
            what=("gradient",),
            differs="the token that is left out is drawn by torch's global generator there, by its own identity here",
        ),
        loss(
            "kl_cov",
            "three covariant tokens",
            batch=covariant,
            settings={"policy_loss": {"kl_cov_ratio": 0.2}},
            code="kl_cov(fraction=0.2, coef=0.1)",
        ),
        advantage("gae", gae),
        advantage("gae", gae, "tool output inside", batch=holes),
        advantage("grpo", grouped(grpo)),
        advantage("grpo", grouped(grpo), "a group of one", batch=lone, differs=_LONE),
        advantage("grpo_vectorized", grouped("compute_grpo_vectorized_outcome_advantage"), close=1e-5),
        advantage(
            "gdpo",
            lambda b, r, m, g: algos.compute_gdpo_outcome_advantage(
                r, m, g, config=_gdpo(verl), non_tensor_batch=dict(b["components"]), batch=_prompts(b)
            )[0],
            batch=components,
            close=1e-4,
        ),
        advantage("grpo_passk", lambda b, r, m, g: algos.compute_grpo_passk_outcome_advantage(r, m, g, config=_algo(verl))[0]),
        advantage("reinforce_plus_plus_baseline", grouped("compute_reinforce_plus_plus_baseline_outcome_advantage")),
        advantage("rloo", grouped(rloo)),
        advantage("rloo", grouped(rloo), "a group of one", batch=lone, differs=_LONE),
        advantage("rloo_vectorized", grouped("compute_rloo_vectorized_outcome_advantage")),
        advantage("rloo_vectorized", grouped("compute_rloo_vectorized_outcome_advantage"), "a group of one", batch=lone),
        advantage("opo", grouped(opo)),
        advantage("opo", grouped(opo), "tool output inside", batch=holes),
        advantage("reinforce_plus_plus", lambda b, r, m, g: getattr(algos, plus)(r, m, config=_algo(verl, gamma=1.0))[0]),
        advantage(
            "reinforce_plus_plus",
            lambda b, r, m, g: getattr(algos, plus)(r, m, config=_algo(verl, gamma=0.9))[0],
            "gamma 0.9, tool output inside",
            batch=holes,
            code="(Discount(0.9), Whiten('token', ddof=1))",
            close=1e-6,
        ),
        advantage("remax", lambda b, r, m, g: algos.compute_remax_outcome_advantage(r, tensor(b["greedy"]), m)[0], batch=greedy),
        advantage("gpg", grouped(gpg), batch=some_zero),
        advantage(
            "gpg",
            grouped(gpg),
            "as published",
            batch=some_zero,
            code="(Center(), ScaleBySignal())",
            differs="counts rewards that are not 0 there, rollouts of groups that vary in the paper",
        ),
        advantage("optimal_token_baseline", otb("compute_optimal_token_baseline_advantage"), batch=squares),
        advantage(
            "optimal_token_baseline",
            otb("compute_optimal_token_baseline_advantage"),
            "tool output inside",
            batch=lambda b: squares(holes(b)),
            differs="places are columns there, so tool output shifts the baseline",
        ),
        advantage("tir_optimal_token_baseline", otb("compute_multi_turn_optimal_token_baseline_advantage"), batch=squares),
        advantage(
            "tir_optimal_token_baseline",
            otb("compute_multi_turn_optimal_token_baseline_advantage"),
            "tool output inside",
            batch=lambda b: squares(holes(b)),
        ),
        weight("rollout_is token"),
        weight("rollout_is sequence", kind="sequence"),
        weight("rollout_is token lo_hi", threshold="0.5_5.0"),
        weight("rollout_is batch_normalize", normalise=True),
        rejection("token_k1", "0.5_2.0"),
        rejection(
            "token_k1",
            "0.7_5.0",
            case="bounds that are not mirrored",
            code="Reject(measure='ratio', over='token', low=0.7, high=5.0)",
            batch=far_engine,
            differs="compares -log w with the logarithms of the bounds: an upper bound of 5 keeps ratios down to 0.2",
        ),
        *(
            rejection(f"{unit}_{k}", "0.5_2.0" if k == "k1" else 0.5)
            for unit in ("token", "seq_sum", "seq_mean")
            for k in ("k1", "k2", "k3")
            if (unit, k) != ("token", "k1")
        ),
        rejection("seq_max_k2", 0.5),
        rejection("seq_max_k3", 0.5),
        kl("abs"),
        kl("mse"),
        kl("low_var_kl"),
        kl("low_var_kl+"),
        aggregation("token-mean"),
        aggregation("seq-mean-token-sum"),
        aggregation("seq-mean-token-mean"),
        aggregation("seq-mean-token-sum-norm"),
        Case(peer="verl", name="compute_value_loss", kind="value", theirs=value),
    ]


def _algo(verl: Any, **more: Any) -> Any:
    made = verl.algo()
    for name, value in {"norm_adv_by_std_in_grpo": True, **more}.items():
        object.__setattr__(made, name, value)
    return made


def _gdpo(verl: Any) -> Any:
    return Settings(gdpo_reward_keys=["correct", "form"], gdpo_reward_weights=None)


def _prompts(b: Arrays) -> dict[str, Any]:
    prompts = tensor(np.zeros((len(b["mask"]), 2)))
    return {"prompts": prompts, "attention_mask": tensor(np.concatenate([np.ones((len(b["mask"]), 2)), b["mask"]], 1)).long()}


def _bypass(kind: str) -> dict[str, Any]:
    return {
        "loss_type": kind,
        "rollout_is": "token",
        "rollout_is_threshold": 2.0,
        "rollout_rs": None,
        "rollout_rs_threshold": None,
    }


# ---- batches ----------------------------------------------------------------------------------------------------------


def ones(b: Arrays) -> Arrays:
    """Advantages of 1: the gradient is the weight."""
    return {**b, "advantages": np.ones(6)}


def far(b: Arrays) -> Arrays:
    """Large ratios."""
    return {**b, "logp_old": np.where(b["mask"], b["logp_new"] + 10 * (b["logp_old"] - b["logp_new"]), 0.0)}


def far_engine(b: Arrays) -> Arrays:
    """A sampler that is far away."""
    return {**ones(b), "logp_engine": np.where(b["mask"], b["logp_old"] + 5 * (b["logp_engine"] - b["logp_old"]), 0.0)}


def holes(b: Arrays) -> Arrays:
    """Tool output inside the longer rollouts."""
    mask = b["mask"] & ~((np.arange(5) == 1) & (b["length"] > 3)[:, None])
    return {k: np.where(mask, v, 0.0) if np.shape(v) == mask.shape and k != "mask" else v for k, v in {**b, "mask": mask}.items()}


def lone(b: Arrays) -> Arrays:
    """A group of one."""
    return {**b, "group_id": np.array([0, 0, 0, 0, 0, 1])}


def some_zero(b: Arrays) -> Arrays:
    """Some rewards are 0, and a group has no variance."""
    return {**b, "rewards": np.array([0.0, 1.0, 0.5, 1.0, 1.0, 1.0])}


def greedy(b: Arrays) -> Arrays:
    """The greedy answer's reward."""
    return {**b, "greedy": np.array([0.4, 0.4, 0.4, 0.1, 0.1, 0.1])}


def squares(b: Arrays) -> Arrays:
    """The vocabulary's sum of squares, no less than the token's own."""
    own = np.exp(2 * b["logp_old"])
    return {**b, "sum_pi_squared_old": np.where(b["mask"], own + 0.5 * (1 - np.exp(b["logp_old"])) ** 2, 0.0)}


def components(b: Arrays) -> Arrays:
    """Two reward components."""
    parts = {"correct": np.array([1.0, 0, 1, 0, 1, 1]), "form": np.array([0.25, 0.75, 0.5, 1.0, 0.0, 0.5])}
    return {**b, "components": parts, "also": ("components",)}


def covariant(b: Arrays) -> Arrays:
    """Few tokens whose covariance is large."""
    mask = np.ones((6, 5), bool)
    old = np.where(mask, b["logp_old"], 0.0)
    old = np.where(old == 0.0, -0.3, old)
    new = old + 0.01 * np.sign(np.arange(30).reshape(6, 5) % 3 - 1)
    return {
        **b,
        "mask": mask,
        "length": np.full(6, 5),
        "logp_old": old,
        "logp_new": new,
        "advantages": np.array([3.0, -3, 1, -1, 2, -2]),
    }
