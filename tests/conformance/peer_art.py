"""ART: its one loss function."""

import importlib
from typing import Any

import torch
from peer_comparing import Arrays, Case, Theirs, learned, spread, tensor
from peer_loading import forget, missing, module, root_of, shells, stand_in, version_of
from peer_verl import far


def load() -> tuple[Any, str]:
    """The function, and the version."""
    try:
        found, root = importlib.import_module("art.loss"), None
    except Exception:
        forget("art")
        root = root_of("art", "art/loss.py")
        shells(root, "art", "art.utils")
        stand_in(*missing("dotenv", "openai", "weave"))
        module("art.dev", TrainConfig=dict)
        found = importlib.import_module("art.loss")
    return found, version_of("art", root, "openpipe-art")


def _before(values: Any) -> torch.Tensor:
    return torch.cat([torch.zeros(6, 1, dtype=torch.float64), tensor(values)], 1)


def cases(art: Any) -> list[Case]:
    """Every comparison."""

    def loss(name: str, case: str = "", **more: Any) -> Case:
        kept = {k: more.pop(k) for k in ("batch", "differs", "code", "what") if k in more}
        original = more.pop("original", False)

        def theirs(b: Arrays) -> Theirs:
            inputs = {
                "logprobs": _before(b["logp_old"]),
                "advantages": _before(spread(b["advantages"], b["mask"])),
                "assistant_mask": _before(b["mask"]),
                "weights": _before(b["mask"]),
                "group_ids": (1 + torch.arange(6))[:, None].expand(6, 6),
            }
            if original:
                inputs["original_logprobs"] = _before(b["logp_engine"])

            def total(x: torch.Tensor) -> torch.Tensor:
                live = torch.cat([x, torch.zeros(6, 1, dtype=x.dtype)], 1)
                return art.loss_fn(inputs, live, None, None, dict(more)).policy_loss

            return learned(b, total)

        return Case(peer="art", name=name, kind="loss", case=case, theirs=theirs, **kept)

    truncated = "replace(cispo(), policy=PolicyGradient(trust=WeightClip(), weights=(Truncate(cap=1.1),)))"
    return [
        loss("loss_fn"),
        loss("loss_fn", "ratios up to e^4", batch=far),
        loss("loss_fn/ppo", ppo=True),
        loss("loss_fn/sequence", importance_sampling_level="sequence"),
        loss("loss_fn/average", importance_sampling_level="average"),
        loss("loss_fn/geometric_average", importance_sampling_level="geometric_average"),
        loss(
            "loss_fn", "with truncated_importance_sampling 1.1", truncated_importance_sampling=1.1, original=True, code=truncated
        ),
        loss(
            "loss_fn",
            "truncated_importance_sampling 2, no sampler's log-probabilities",
            truncated_importance_sampling=2.0,
            differs="multiplies by the ratio a second time",
        ),
    ]
