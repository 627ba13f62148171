"""slime: the functions of `slime.utils.ppo_utils`."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, token_rewards
from peer_loading import forget, root_of, shells, uncompiled, version_of
from peer_verl import far, holes


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    try:
        found, root = uncompiled(lambda: importlib.import_module("slime.utils.ppo_utils")), None
    except Exception:
        forget("slime")
        root = root_of("slime", "slime/utils/ppo_utils.py")
        shells(root, "slime", "slime.utils")
        found = uncompiled(lambda: importlib.import_module("slime.utils.ppo_utils"))
    return found, version_of("slime", root, "slime")


def cases(slime: Any) -> list[Case]:
    """Every comparison."""

    def rows(values: torch.Tensor, b: Arrays) -> torch.Tensor:
        mask = tensor(b["mask"])
        return ((values * mask).sum(1) / mask.sum(1)).mean()

    def tokens(values: torch.Tensor, b: Arrays) -> torch.Tensor:
        mask = tensor(b["mask"])
        return (values * mask).sum() / mask.sum()

    def policy(name: str, way: Any = rows, case: str = "", dual: Any = None, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))
            return learned(
                b, lambda x: way(slime.compute_policy_loss(tensor(b["logp_old"]) - x, advantages, 0.2, 0.2, dual)[0], b)
            )

        return Case(peer="slime", name=name, kind="loss", case=case, theirs=theirs, **more)

    def gspo(b: Arrays) -> Theirs:
        advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))

        def loss(x: torch.Tensor) -> torch.Tensor:
            old, mask = tensor(b["logp_old"]), tensor(b["mask"])
            gap = slime.compute_gspo_kl(list(x), list(old), list(x), list(mask))
            gap = torch.stack(list(gap)) if isinstance(gap, (list, tuple)) else gap.reshape(x.shape)
            return rows(slime.compute_policy_loss(gap, advantages, 0.2, 0.2, None)[0], b)

        return learned(b, loss)

    def cispo(low: float, high: float) -> Any:
        def theirs(b: Arrays) -> Theirs:
            advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))
            return learned(
                b, lambda x: tokens(slime.compute_cispo_loss(tensor(b["logp_old"]) - x, x, advantages, low, high)[0], b)
            )

        return theirs

    def opsm(b: Arrays) -> Theirs:
        advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))

        def loss(x: torch.Tensor) -> torch.Tensor:
            old, mask = tensor(b["logp_old"]), tensor(b["mask"])
            kept, _ = slime.compute_opsm_mask(SimpleNamespace(opsm_delta=0.05), list(x), list(old), list(advantages), list(mask))
            kept = torch.stack(list(kept)) if isinstance(kept, (list, tuple)) else kept.reshape(x.shape)
            return rows(slime.compute_policy_loss(old - x, advantages, 0.2, 0.2, None)[0] * kept.detach(), b)

        return learned(b, loss)

    def gae(b: Arrays) -> Theirs:
        return Theirs(advantages=slime.vanilla_gae(token_rewards(b), tensor(b["values_old"]), 1.0, 0.95)[0].numpy())

    def kl(name: str, kind: str) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return learned(b, lambda x: 0.001 * tokens(slime.compute_approx_kl(x, tensor(b["logp_ref"]), kind), b))

        return Case(peer="slime", name=name, kind="kl", theirs=theirs)

    lam = "(Gae(gamma=1.0, lam=0.95),)"
    return [
        policy("ppo"),
        policy("ppo", case="ratios up to e^4", batch=far),
        policy("ppo/eps_c", dual=3.0, batch=far),
        policy("ppo/per_token", tokens),
        Case(peer="slime", name="gspo", kind="loss", theirs=gspo),
        Case(peer="slime", name="cispo", kind="loss", theirs=cispo(0.2, 0.2)),
        Case(
            peer="slime", name="cispo", kind="loss", case="no lower bound, cap 5", theirs=cispo(1.0, 4.0), code="cispo(cap=5.0)"
        ),
        Case(peer="slime", name="opsm", kind="loss", case="delta 0.05", theirs=opsm, code="opsm(delta=0.05, anchor='old')"),
        Case(peer="slime", name="ppo", kind="advantage", theirs=gae, what=("advantages",), code=lam),
        Case(
            peer="slime",
            name="ppo",
            kind="advantage",
            case="tool output inside",
            theirs=gae,
            what=("advantages",),
            code=lam,
            batch=holes,
            differs="values at tool output enter the estimate",
        ),
        kl("k2", "k2"),
        kl("low_var_kl", "low_var_kl"),
    ]
