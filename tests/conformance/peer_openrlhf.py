"""OpenRLHF: `PolicyLoss`, `ValueLoss`, divergences, and the estimators of its experience maker."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, token_rewards
from peer_loading import forget, missing, root_of, shells, stand_in, taken, version_of
from peer_verl import far, holes


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    try:
        loss, root = importlib.import_module("openrlhf.models.loss"), None
        folder = importlib.import_module("openrlhf").__path__[0]
    except Exception:
        forget("openrlhf")
        root = root_of("openrlhf", "openrlhf/models/loss.py")
        shells(root, "openrlhf", "openrlhf.models")
        stand_in(*missing("deepspeed", "peft", "flash_attn"))
        loss, folder = importlib.import_module("openrlhf.models.loss"), str(root / "openrlhf")
    from pathlib import Path

    utils = importlib.import_module("openrlhf.models.utils")
    maker = Path(folder) / "trainer" / "ppo_utils" / "experience_maker.py"
    names = [f"{c}.{f}" for c, f in _methods(maker)]
    return SimpleNamespace(loss=loss, utils=utils, maker=taken(maker, names)), version_of("openrlhf", root, "openrlhf")


def _methods(path: Any) -> list[tuple[str, str]]:
    import ast

    wanted = {"get_advantages_and_returns", "get_cumulative_returns"}
    return [
        (c.name, f.name)
        for c in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(c, ast.ClassDef)
        for f in c.body
        if isinstance(f, ast.FunctionDef) and f.name in wanted
    ]


def cases(openrlhf: Any) -> list[Case]:
    """Every comparison."""

    def policy(name: str, case: str = "", roll: bool = False, **more: Any) -> Case:
        kept = {k: more.pop(k) for k in ("batch", "differs", "code", "what", "close") if k in more}

        def theirs(b: Arrays) -> Theirs:
            advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))
            function = openrlhf.loss.PolicyLoss(**more)
            last = (tensor(b["logp_engine"]),) if roll else ()
            return learned(b, lambda x: function(x, tensor(b["logp_old"]), advantages, tensor(b["mask"]), *last)[0])

        return Case(peer="openrlhf", name=name, kind="loss", case=case, theirs=theirs, **kept)

    def corrected(name: str, weights: str, **more: Any) -> Case:
        code = f"Objective(policy=PolicyGradient(trust=MinClip(), weights={weights}), aggregate=Token())"
        return policy("ppo", f"with the correction {name}", roll=True, code=code, **more)

    def value(b: Arrays) -> Theirs:
        given = [tensor(b[n]) for n in ("values_old", "returns", "mask")]
        return learned(b, lambda x: openrlhf.loss.ValueLoss(0.5)(x, *given), of="values")

    def gae(b: Arrays) -> Theirs:
        function, mask = openrlhf.maker.get_advantages_and_returns, tensor(b["mask"])
        made = function(None, tensor(b["values_old"]), token_rewards(b), mask, 1.0, 0.95)[0]
        return Theirs(advantages=made.numpy())

    def kl(name: str, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            mask = tensor(b["mask"])
            return learned(
                b,
                lambda x: (
                    0.01
                    * (openrlhf.utils.compute_approx_kl(x, tensor(b["logp_ref"]), kl_estimator=name) * mask).sum()
                    / mask.sum()
                ),
            )

        return Case(peer="openrlhf", name=name, kind="kl", theirs=theirs, **more)

    def group_norm(b: Arrays) -> Theirs:
        rewards = torch.tensor(b["rewards"], dtype=torch.float32).reshape(2, 3)
        made = (rewards - rewards.mean(-1, keepdim=True)) / (rewards.std(-1, keepdim=True) + 1e-9)
        return Theirs(advantages=spread(made.reshape(-1).double().numpy(), b["mask"]))

    both = "(IcePop(low=0.9, high=1.1, level='sequence_mean', unit=True), Truncate(cap=inf))"
    return [
        policy("ppo"),
        policy("ppo", "ratios up to e^4", batch=far),
        policy("ppo/token_level_loss False", token_level_loss=False),
        policy("ppo/dual_clip", dual_clip=3.0, batch=far),
        policy("gspo", policy_loss_type="gspo"),
        policy("gspo", "bounds of the paper", policy_loss_type="gspo", clip_eps_low=3e-4, clip_eps_high=4e-4, code="gspo()"),
        corrected(
            "token mask",
            "(IcePop(low=0.9, high=1.1),)",
            is_correction_level="token",
            is_correction_mode="mask",
            is_correction_threshold=(0.9, 1.1),
        ),
        corrected(
            "token clip",
            "(Truncate(low=0.9, cap=1.1),)",
            is_correction_level="token",
            is_correction_mode="clip",
            is_correction_threshold=(0.9, 1.1),
        ),
        corrected("seq mask", both, is_correction_level="seq", is_correction_mode="mask", is_correction_threshold=(0.9, 1.1)),
        corrected(
            "token mask binary_kl",
            "(Reject(measure='kl', over='token', high=0.01), Truncate(cap=inf))",
            is_correction_level="token",
            is_correction_gating="binary_kl",
            is_correction_threshold=(0, 0.01),
        ),
        corrected(
            "token mask tv",
            "(Reject(measure='tv', over='token', high=0.05), Truncate(cap=inf))",
            is_correction_level="token",
            is_correction_gating="tv",
            is_correction_threshold=(0, 0.05),
        ),
        policy(
            "gspo",
            "beside a correction",
            roll=True,
            policy_loss_type="gspo",
            is_correction_level="token",
            differs="the ratio is anchored at the sampler and every gate is skipped",
        ),
        Case(peer="openrlhf", name="ValueLoss", kind="value", theirs=value),
        Case(
            peer="openrlhf",
            name="gae",
            kind="advantage",
            case="before whitening",
            theirs=gae,
            what=("advantages",),
            code="(Gae(gamma=1.0, lam=0.95),)",
        ),
        Case(
            peer="openrlhf",
            name="gae",
            kind="advantage",
            case="before whitening, tool output inside",
            theirs=gae,
            what=("advantages",),
            code="(Gae(gamma=1.0, lam=0.95),)",
            batch=holes,
            differs="values at tool output count as 0 and the sum decays through them",
        ),
        Case(
            peer="openrlhf",
            name="group_norm",
            kind="advantage",
            case="its formula, in single precision",
            theirs=group_norm,
            what=("advantages",),
            close=1e-5,
        ),
        Case(
            peer="openrlhf",
            name="group_norm",
            kind="advantage",
            case="its formula, rewards of 0.9",
            theirs=group_norm,
            what=("advantages",),
            batch=lambda b: {**b, "rewards": np.full(6, 0.9)},
            differs="rounding noise of a constant group over 1e-9; here exactly 0",
        ),
        kl("k2"),
        kl("k3"),
    ]
