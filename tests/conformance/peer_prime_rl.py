"""prime-rl: the losses of its trainer and the scoring of its algorithms."""

import asyncio
import importlib
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor
from peer_loading import Settings, forget, missing, module, root_of, shells, stand_in, taken, uncompiled, version_of


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    name = "prime_rl.trainer.rl.loss"
    try:
        losses, root = uncompiled(lambda: importlib.import_module(name)), None
        folder = importlib.import_module("prime_rl").__path__[0]
    except Exception:
        forget("prime_rl")
        root = root_of("prime_rl", "prime_rl/trainer/rl/loss.py")
        shells(root, "prime_rl", "prime_rl.configs", "prime_rl.trainer", "prime_rl.trainer.rl", "prime_rl.utils")
        kinds = ("CustomLossConfig", "DefaultLossConfig", "IPOLossConfig", "LossConfig")
        module("prime_rl.configs.trainer", **{k: type(k, (Settings,), {}) for k in kinds})
        module("prime_rl.utils.utils", import_object=None)
        stand_in(*missing("beartype", "jaxtyping"))
        losses, folder = uncompiled(lambda: importlib.import_module(name)), str(root / "prime_rl")
    from pathlib import Path

    return SimpleNamespace(losses=losses, algo=Path(folder) / "orchestrator" / "algo"), version_of("prime_rl", root, "prime-rl")


def cases(prime: Any) -> list[Case]:
    """Every comparison."""
    losses = prime.losses

    def loss(name: str, function: str, config: Any, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            def total(x: torch.Tensor) -> torch.Tensor:
                parts = []
                for i, here in enumerate(b["mask"]):
                    given = losses.LossInputs(
                        trainer_logprobs=x[i],
                        inference_logprobs=tensor(b["logp_engine"])[i],
                        ref_logprobs=tensor(b["logp_teacher"])[i],
                        advantages=tensor(spread(b["advantages"], b["mask"]))[i],
                        loss_mask=torch.tensor(here),
                    )
                    call = getattr(losses, function)
                    parts.append((call(given, config) if config else call(given)).loss)
                return torch.stack(parts).sum() / tensor(b["mask"]).sum()

            return learned(b, total)

        return Case(peer="prime_rl", name=name, kind="loss", theirs=theirs, **more)

    def scored(name: str, cls: str, file: str, case: str = "", state: Any = None, agents: Any = None, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            function = taken(
                prime.algo / file,
                [f"{cls}.score_group"],
                iter_trainable_traces=_traces,
                defaultdict=defaultdict,
                assign_advantages=lambda trace, value: setattr(trace, "advantage", value),
                vf=SimpleNamespace(Episode=object, Trace=object),
            ).score_group
            out = np.zeros(6)
            for group in (0, 1):
                rows = np.flatnonzero(b["group_id"] == group)
                episodes = [
                    SimpleNamespace(
                        id=i,
                        traces=[
                            SimpleNamespace(reward=b["rewards"][i], agent=SimpleNamespace(name=agents[i] if agents else "a"))
                        ],
                    )
                    for i in rows
                ]
                asyncio.run(function(state() if state else SimpleNamespace(length_penalty=None), episodes))
                out[rows] = [e.traces[0].advantage for e in episodes]
            return Theirs(advantages=spread(out, b["mask"]))

        return Case(peer="prime_rl", name=name, kind="advantage", case=case, theirs=theirs, what=("advantages",), **more)

    default = Settings(dppo_mask_low=0.2, dppo_mask_high=0.2, adv_tau=1.0, kl_tau=1e-3)
    ipo = Settings(ipo_threshold=0.1, adv_tau=1.0, kl_tau=1e-3)
    roles = ["a", "b", "a", "a", "b", "b"]
    return [
        loss("default", "default_loss_fn", default, what=("gradient",), close=1e-5),
        loss("ipo", "ipo_loss_fn", ipo, what=("gradient",), close=1e-5),
        loss("ref_kl", "ref_kl_loss_fn", None, what=("gradient",), close=1e-5),
        loss("ce", "ce_loss_fn", None, close=1e-5),
        scored("grpo", "GRPOAlgorithm", "grpo.py"),
        scored("max_rl", "MaxRLAlgorithm", "max_rl.py", state=SimpleNamespace),
        scored(
            "rae",
            "RAEAlgorithm",
            "rae.py",
            "baselines that start at 0",
            state=lambda: SimpleNamespace(baselines=defaultdict(float), decay=0.95),
            batch=lambda b: {**b, "role": np.zeros(6)},
            differs="a baseline moves inside the batch, rollout by rollout; here once, behind it",
        ),
        scored(
            "hierarchical_grpo",
            "HierarchicalGRPOAlgorithm",
            "hierarchical_grpo.py",
            "agents of one group",
            state=lambda: SimpleNamespace(episode_agents=set()),
            agents=roles,
            batch=lambda b: {**b, "peers": np.array([ord(r) for r in roles], float)},
        ),
    ]


def _traces(episodes: Any) -> Any:
    for episode in episodes:
        for trace in episode.traces:
            yield episode, trace
