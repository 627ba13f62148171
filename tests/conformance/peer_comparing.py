"""What is compared: a name of another library, on seeded batches, with the composition that `assay.objective.peers` gives it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from assay.core.seeds import generator
from assay.objective import evaluate
from assay.objective.padded_batch import required_inputs
from assay.objective.peers import match

SEEDS = range(3)

Arrays = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Theirs:
    """What a library computed: the parts that it has."""

    loss: float | None = None
    gradient: np.ndarray | None = None
    advantages: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A comparison.

    Attributes:
        peer, name, kind: an entry of `assay.objective.peers`.
        theirs: from a batch to what the library makes of it.
        what: the parts compared.
        case: what is special about the batch, or the settings.
        code: our side, where it is not the entry's code: other settings of it.
        batch: changes the batch.
        differs: why a difference is expected, in one line; empty where none is.
        close: relative tolerance: above what their small epsilons and single precision do.
    """

    peer: str
    name: str
    kind: str
    theirs: Callable[[Arrays], Theirs]
    what: Sequence[str] = ("loss", "gradient")
    case: str = ""
    code: str = ""
    batch: Callable[[Arrays], Arrays] = lambda b: b
    differs: str = ""
    close: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a comparison found.

    Attributes:
        apart: part to the largest relative difference over the batches.
        same: all of them are within the tolerance.
        error: what went wrong instead.
    """

    peer: str
    name: str
    kind: str
    case: str
    code: str
    differs: str
    apart: Mapping[str, float] = field(default_factory=dict)
    same: bool = False
    error: str = ""


def batch(seed: int) -> Arrays:
    """Two prompts with three rollouts each, unequal lengths, ratios on both sides of every usual bound."""
    rng = generator("conformance", seed)
    lengths = np.array([5, 3, 4, 2, 5, 1])[rng.permutation(6)]
    mask = np.arange(5) < lengths[:, None]

    def logp(spread: float, around: np.ndarray | None = None) -> np.ndarray:
        if around is None:
            return -np.abs(rng.normal(size=mask.shape)) - 0.05
        return np.minimum(around + spread * rng.normal(size=mask.shape), -1e-3)

    old = logp(1.0)
    made: Arrays = {
        "mask": mask,
        "logp_old": old,
        "logp_new": logp(0.4, old),
        "logp_engine": logp(0.2, old),
        "logp_ref": logp(0.5, old),
        "logp_teacher": logp(0.8, old),
        "group_id": np.array([0, 0, 0, 1, 1, 1]),
        "rewards": np.concatenate([rng.permutation([0.0, 0.25, 1.0]), rng.permutation([0.1, 0.5, 0.8])]),
        "advantages": np.round(rng.normal(size=6), 3),
        "values": rng.normal(size=mask.shape),
        "values_old": rng.normal(size=mask.shape),
        "returns": rng.normal(size=mask.shape),
        "length": lengths,
    }
    return {k: np.where(mask, v, 0.0) if np.shape(v) == mask.shape and k != "mask" else v for k, v in made.items()}


def ours(case: Case, arrays: Arrays) -> Theirs:
    """The same by `evaluate`."""
    entry = match(case.peer, case.name, case.kind)
    objective = (replace(entry, code=case.code) if case.code else entry).objective()
    want = required_inputs(objective)
    names = {"mask", *want.live, *want.columns, *want.rollout_columns, *({"values_old"} & set(want.derived))}
    if want.uses_reward:
        names |= {"rewards", "group_id"} if case.kind == "advantage" else {"advantages"}
        names |= {n for n in ("components", "rewards") if n in arrays.get("also", ())}
    elif want.grouped:
        names |= {"group_id"}
    if "components" in names:
        names -= {"rewards"}
    found = evaluate(objective, {n: arrays[n] for n in names})
    return Theirs(loss=found.loss, gradient=found.gradient.get("values", found.gradient["logp_new"]), advantages=found.advantages)


def compare(case: Case) -> Found:
    """The largest relative difference of each part over the seeded batches."""
    apart = dict.fromkeys(case.what, 0.0)
    base = Found(
        peer=case.peer,
        name=case.name,
        kind=case.kind,
        case=case.case,
        differs=case.differs,
        code=case.code or match(case.peer, case.name, case.kind).code,
    )
    try:
        for seed in SEEDS:
            arrays = case.batch(batch(seed))
            theirs, mine = case.theirs(arrays), ours(case, arrays)
            for part in case.what:
                a, b = np.asarray(getattr(theirs, part), np.float64), np.asarray(getattr(mine, part), np.float64)
                if part == "advantages":
                    a, b = a * arrays["mask"], b * arrays["mask"]
                size = max(float(np.abs(b).max()), float(np.abs(a).max()), 1e-12)
                apart[part] = max(apart[part], float(np.nan_to_num(np.abs(a - b), nan=np.inf).max()) / size)
    except Exception as error:
        return replace(base, error=f"{type(error).__name__}: {error}"[:300])
    return replace(base, apart=apart, same=max(apart.values()) <= case.close)


def plain(found: Found) -> dict[str, Any]:
    """As JSON holds it: differences with one digit, so that a page does not change with the machine."""
    return {**asdict(found), "apart": {k: float(f"{v:.0e}") if v > 1e-12 else 0.0 for k, v in found.apart.items()}}


# ---- for the callers of libraries -------------------------------------------------------------------------------------


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(values, np.float64))


def learned(arrays: Arrays, loss: Callable[[torch.Tensor], torch.Tensor], of: str = "logp_new") -> Theirs:
    """Loss and its gradient by ``logp_new``."""
    live = tensor(arrays[of]).requires_grad_(True)
    value = loss(live)
    value.backward()
    gradient = live.grad if live.grad is not None else torch.zeros_like(live)
    return Theirs(loss=float(value.detach()), gradient=np.where(arrays["mask"], gradient.numpy(), 0.0))


def weighted(arrays: Arrays, weights: Any) -> Theirs:
    """A detached weight per token, as the gradient of a policy term with advantage 1, summed over tokens, averaged over rows."""
    each = np.broadcast_to(np.asarray(weights, np.float64), arrays["mask"].shape)
    rows = arrays["mask"].any(1).sum()
    return Theirs(gradient=np.where(arrays["mask"], -each / rows, 0.0))


def spread(values: Any, mask: Any) -> np.ndarray:
    """``[B, T]`` of values per row or per token."""
    each = np.asarray(values, np.float64)
    return np.where(mask, each[:, None] if each.ndim == 1 else each, 0.0)


def token_rewards(arrays: Arrays) -> torch.Tensor:
    """The outcome at each rollout's last loss token."""
    out, mask = np.zeros(arrays["mask"].shape), arrays["mask"]
    for i, row in enumerate(mask):
        if row.any():
            out[i, np.flatnonzero(row)[-1]] = arrays["rewards"][i]
    return tensor(out)
