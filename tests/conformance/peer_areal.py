"""AReaL: the losses of `areal.utils.functional`, its normaliser, its M2PO mask."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor, weighted
from peer_loading import Anything, Settings, forget, missing, module, root_of, shells, stand_in, version_of
from peer_verl import far, ones


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    try:
        functional, root = importlib.import_module("areal.utils.functional.functional"), None
    except Exception:
        forget("areal")
        root = root_of("areal", "areal/utils/functional/functional.py")
        packages = (
            "areal",
            "areal.api",
            "areal.utils",
            "areal.infra",
            "areal.utils.functional",
            "areal.trainer",
            "areal.trainer.ppo",
        )
        shells(root, *packages, "areal.experimental")
        stand_in(*missing("einops", "torchdata", "aiohttp", "colorlog", "ray", "uvloop"))
        module("areal.api.cli_args", RejectionSamplingConfig=type("RejectionSamplingConfig", (Settings,), {}))
        importlib.import_module("areal.api").TrainEngine = Anything  # type: ignore[attr-defined]
        for name in ("areal.infra.platforms", "areal.utils.seqpack", "areal.utils.math", "areal.infra.rpc"):
            module(name, is_npu_available=False)
        module("areal.utils.logging", getLogger=lambda *a: Anything())
        for name in (
            "areal.infra.rpc.serialization",
            "areal.trainer.ppo.stats",
            "areal.utils.stats_tracker",
            "areal.utils.perf_tracer",
        ):
            module(name)
        importlib.import_module("areal.infra").TrainController = object  # type: ignore[attr-defined]
        stand_in("areal.experimental.training_service")
        functional = importlib.import_module("areal.utils.functional.functional")
        package = importlib.import_module("areal.utils.functional")
        for name in ("ppo_actor_loss_fn", "reward_overlong_penalty", "sapo_loss_fn"):
            setattr(package, name, getattr(functional, name))
    data = importlib.import_module("areal.utils.data")
    actor = importlib.import_module("areal.trainer.ppo.actor")
    return SimpleNamespace(functional=functional, data=data, actor=actor), version_of("areal", root, "areal")


def cases(areal: Any) -> list[Case]:
    """Every comparison."""
    functional = areal.functional

    def mask(b: Arrays) -> torch.Tensor:
        return torch.tensor(b["mask"])

    def ppo(name: str, case: str = "", **more: Any) -> Case:
        kept = {k: more.pop(k) for k in ("batch", "differs", "code", "what", "close") if k in more}
        decoupled = more.pop("decoupled", None)

        def theirs(b: Arrays) -> Theirs:
            old, engine = tensor(b["logp_old"]), tensor(b["logp_engine"])
            advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))
            rejection = None if decoupled is None else _rejection(**decoupled)
            return learned(
                b,
                lambda x: functional.ppo_actor_loss_fn(
                    x,
                    old,
                    engine if decoupled is not None else old,
                    advantages,
                    0.2,
                    mask(b),
                    rejection_sampling=rejection,
                    **more,
                )[0],
            )

        return Case(peer="areal", name=name, kind="loss", case=case, theirs=theirs, **kept)

    def sapo(name: str, level: str, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            advantages = tensor(spread(b["advantages"], np.ones_like(b["mask"])))
            return learned(
                b,
                lambda x: functional.sapo_loss_fn(
                    x, tensor(b["logp_old"]), advantages, 1.0, 1.05, mask(b), importance_sampling_level=level
                )[0],
            )

        return Case(peer="areal", name=name, kind="loss", theirs=theirs, **more)

    def correction(name: str, **more: Any) -> Case:
        kept = {k: more.pop(k) for k in ("code", "differs") if k in more}

        def theirs(b: Arrays) -> Theirs:
            made = functional.apply_rejection_sampling(
                tensor(b["logp_old"]), tensor(b["logp_engine"]), mask(b), None, _rejection(**more)
            )
            return weighted(b, made.behave_imp_weight.numpy() * made.loss_mask.numpy())

        return Case(peer="areal", name=name, kind="correction", theirs=theirs, what=("gradient",), batch=ones, **kept)

    def normalised(name: str, case: str = "", **more: Any) -> Case:
        kept = {k: more.pop(k) for k in ("batch", "differs", "code") if k in more}
        config = {
            "mean_level": "group",
            "mean_leave1out": False,
            "std_level": "group",
            "std_unbiased": True,
            "eps": 1e-5,
            "group_size": 3,
        }

        def theirs(b: Arrays) -> Theirs:
            found = areal.data.Normalization(Settings(**{**config, **more}))(tensor(b["rewards"]))
            return Theirs(advantages=spread(found.numpy(), b["mask"]))

        return Case(peer="areal", name=name, kind="advantage", case=case, theirs=theirs, what=("advantages",), close=1e-5, **kept)

    def critic(name: str, **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            given = (tensor(b["values_old"]).float(), tensor(b["returns"]).float(), 0.5, mask(b))
            return learned(b, lambda x: functional.ppo_critic_loss_fn(x.float(), *given, **more)[0], of="values")

        return Case(peer="areal", name=name, kind="value", theirs=theirs)

    def m2po(b: Arrays) -> Theirs:
        kept = areal.actor._apply_m2po_masking(
            tensor(b["logp_engine"]).flatten(), tensor(b["logp_old"]).flatten(), mask(b).flatten(), 0.04
        )
        return weighted(b, kept.reshape(b["mask"].shape).double().numpy())

    leftover = {"differs": "rows behind the last full group get mean 0 and spread 0: 1e5 times their reward"}
    return [
        ppo("ppo_actor_loss_fn"),
        ppo("ppo_actor_loss_fn", "ratios up to e^4", batch=far),
        ppo("ppo_actor_loss_fn/c_clip", c_clip=3.0, batch=far),
        ppo("ppo_actor_loss_fn/decoupled", decoupled={}),
        ppo("ppo_actor_loss_fn/decoupled", "cap 1.2", decoupled={"upper": 1.2}, code="areal(cap=1.2, mask=True)"),
        ppo("gspo", importance_sampling_level="sequence"),
        sapo("sapo_loss_fn", "token"),
        sapo("sapo_loss_fn/sequence", "sequence"),
        Case(
            peer="areal",
            name="m2po",
            kind="loss",
            theirs=m2po,
            what=("gradient",),
            batch=ones,
            code="Objective(policy=PolicyGradient(ratio=Ratio('none'), trust=None, "
            "weights=(SecondMoment(budget=0.04, of='old', anchor='engine', harmful=False),)), aggregate=SeqSum())",
        ),
        correction("token mask ratio", upper=5.0),
        correction("token clamp ratio", action="clamp", upper=5.0, lower=0.0),
        correction("sequence mask ratio", level="sequence", upper=1.1, code="IcePop(low=0.0, high=1.1, level='sequence_mean')"),
        correction(
            "token mask kl_k1",
            metric="kl_k1",
            upper=0.1,
            code="(Reject(measure='k1', over='token', low=-0.1), Truncate(cap=inf))",
        ),
        correction(
            "token mask kl_k2",
            metric="kl_k2",
            upper=0.02,
            code="(Reject(measure='k2', over='token', high=0.02), Truncate(cap=inf))",
        ),
        correction(
            "token mask kl_k3",
            metric="kl_k3",
            upper=0.02,
            code="(Reject(measure='k3', over='token', high=0.02), Truncate(cap=inf))",
            differs="of the inverse ratio: exp(-l) - 1 + l",
        ),
        normalised("reward_norm group"),
        normalised("reward_norm group", "groups of 4 in 6 rows", group_size=4, batch=_five, **leftover),
        normalised("reward_norm leave_one_out", mean_leave1out=True, std_level=None),
        critic("ppo_critic_loss_fn"),
        critic("ppo_critic_loss_fn/huber", loss_fn_type="huber"),
    ]


def _rejection(**more: Any) -> Settings:
    base = {"level": "token", "action": "mask", "metric": "ratio", "agg": "mean", "upper": 5.0, "lower": None}
    return Settings(**{**base, **more})


def _five(b: Arrays) -> Arrays:
    return {**b, "group_id": np.array([0, 0, 0, 0, 1, 1])}
