"""ROLL: losses of its RLVR worker, its aggregation, its returns."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, token_rewards
from peer_loading import Anything, root_of, taken, version_of
from peer_verl import far, holes


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    root = root_of("roll", "roll/pipeline/rlvr/actor_pg_worker.py")
    folder = root / "roll"
    numeric = ["agg_loss", "masked_mean", "masked_sum", "masked_var", "masked_whiten", "compute_approx_kl", "reward_norm"]
    functional = taken(folder / "utils" / "functionals.py", [*numeric, "compute_gae_advantage_return"], DataProto=object)
    names = [f"ActorPGWorker._compute_{n}_loss" for n in ("vanilla_pg", "ppo", "tis", "topr", "cispo", "kimi15")]
    worker = taken(
        folder / "pipeline" / "rlvr" / "actor_pg_worker.py",
        _present(folder, names),
        DataProto=object,
        agg_loss=functional.agg_loss,
    )
    agentic = taken(
        folder / "pipeline" / "agentic" / "utils.py",
        ["compute_agentic_reinforce_return", "compute_segment_masked_mean"],
        DataProto=object,
        Tensor=torch.Tensor,
    )
    return SimpleNamespace(functional=functional, worker=worker, agentic=agentic), version_of("roll", root, "roll")


def _present(folder: Any, names: list[str]) -> list[str]:
    text = (folder / "pipeline" / "rlvr" / "actor_pg_worker.py").read_text(encoding="utf-8")
    return [n for n in names if f"def {n.partition('.')[2]}(" in text]


def cases(roll: Any) -> list[Case]:
    """Every comparison."""
    worker, functional = roll.worker, roll.functional
    me = SimpleNamespace(
        _cached_metrics={},
        _topr_sample_logged=True,
        _cispo_config_logged=True,
        _kimi15_config_logged=True,
        logger=Anything(),
        _get_or_cache_config=lambda key, default: default,
        pipeline_config=SimpleNamespace(
            pg_clip=0.2, pg_clip_low=0.2, pg_clip_high=0.2, use_pg_clip_range=False, dual_clip_loss=True
        ),
    )

    def loss(name: str, call: Any, case: str = "", **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            old, advantages = tensor(b["logp_old"]), tensor(spread(b["advantages"], np.ones_like(b["mask"])))

            def total(x: torch.Tensor) -> torch.Tensor:
                each = call(b, (x - old).exp(), x, old, advantages)
                return functional.agg_loss(each, tensor(b["mask"]), "seq-mean-token-mean")

            return learned(b, total)

        return Case(peer="roll", name=name, kind="loss", case=case, theirs=theirs, **more)

    def scores(b: Arrays) -> Any:
        return SimpleNamespace(batch={"scores": tensor(b["advantages"])})

    def ppo(b: Arrays, r: Any, x: Any, o: Any, a: Any) -> torch.Tensor:
        mask = tensor(b["mask"])
        return worker._compute_ppo_loss(me, r, a, mask, {"final_response_mask": mask.sum()}, {})

    def aggregation(name: str, code: str = "", **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            return learned(b, lambda x: functional.agg_loss(-x, tensor(b["mask"]), name))

        return Case(peer="roll", name=name, kind="aggregation", theirs=theirs, code=code, **more)

    def gae(b: Arrays) -> Theirs:
        return Theirs(
            advantages=functional.compute_gae_advantage_return(token_rewards(b), tensor(b["values_old"]), 1.0, 0.95)[0].numpy()
        )

    def agentic(b: Arrays) -> Theirs:
        made = roll.agentic.compute_agentic_reinforce_return(tensor(b["token_reward"]), 0.9, 1.0, tensor(b["mask"]))[0]
        return Theirs(advantages=made.numpy())

    return [
        loss("ppo", ppo),
        loss("ppo", ppo, "ratios up to e^4", batch=far),
        loss("tis", lambda b, r, x, o, a: worker._compute_tis_loss(me, r, x, o, a, None)),
        loss("topr", lambda b, r, x, o, a: worker._compute_topr_loss(me, r, x, o, a, scores(b)), "scores are the advantages"),
        loss(
            "topr",
            lambda b, r, x, o, a: worker._compute_topr_loss(
                me, r, x, o, a, SimpleNamespace(batch={"scores": torch.ones(6, dtype=torch.float64)})
            ),
            "all scores positive",
            differs="split by the raw score: a rollout with A < 0 is not tapered",
        ),
        loss("cispo", lambda b, r, x, o, a: worker._compute_cispo_loss(me, r, x, a)),
        loss("kimi15", lambda b, r, x, o, a: worker._compute_kimi15_loss(me, r, x, o, a)),
        aggregation("token-mean", batch=_filled, differs="the mask is ignored: masked tokens count"),
        aggregation("seq-mean-token-mean"),
        aggregation("seq-mean-token-sum-norm", "Constant(length=5)", differs="not divided by the number of rollouts"),
        Case(peer="roll", name="gae", kind="advantage", theirs=gae, what=("advantages",)),
        Case(
            peer="roll",
            name="gae",
            kind="advantage",
            case="tool output inside",
            theirs=gae,
            what=("advantages",),
            batch=holes,
            differs="values at tool output enter the estimate",
        ),
        Case(
            peer="roll",
            name="agentic_reinforce",
            kind="advantage",
            case="rewards at the last token of a turn",
            theirs=agentic,
            what=("advantages",),
            batch=_turns,
            code="(TokenReward('token_reward', alone=True), Turns('call', 0.9))",
        ),
        Case(
            peer="roll",
            name="agentic_reinforce",
            kind="advantage",
            case="rewards inside a turn",
            theirs=agentic,
            what=("advantages",),
            batch=lambda b: _turns(b, inside=True),
            code="(TokenReward('token_reward', alone=True), Turns('call', 0.9))",
            differs="only the last token of a turn is read",
        ),
    ]


def _filled(b: Arrays) -> Arrays:
    """Something stands outside the mask too."""
    return {**b, "logp_new": np.where(b["mask"], b["logp_new"], -1.0)}


def _turns(b: Arrays, inside: bool = False) -> Arrays:
    """Two turns with tool output between them."""
    mask = np.tile([True, True, False, True, True], (6, 1))
    call = np.tile([0.0, 0, 0, 1, 1], (6, 1))
    reward = np.zeros((6, 5))
    reward[:, 1], reward[:, 4] = 0.5, np.arange(6) / 5
    if inside:
        reward[:, 0] = 0.25
    made = {k: np.where(mask, np.where(v == 0, -0.5, v), 0.0) for k, v in b.items() if np.shape(v) == mask.shape and k != "mask"}
    return {**b, **made, "mask": mask, "call": call, "token_reward": reward, "length": np.full(6, 4)}
