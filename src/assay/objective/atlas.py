"""Which named methods are the same, and when: gradients compared by `evaluate` on random batches under named conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.core.errors import DataError, PlanError
from assay.core.seeds import generator
from assay.objective.evaluation import evaluate
from assay.objective.methods import methods
from assay.objective.objective import Objective
from assay.objective.padded_batch import required_inputs
from assay.objective.reducers import F

__all__ = ["CONDITIONS", "SEEDS", "Condition", "batch", "equivalences", "left_out", "atlas_page"]

SEEDS: Sequence[int] = range(5)
"""Batches under each condition."""

CLOSE = 1e-5
"""Largest distance of two gradients, each divided by its length over all batches: above what an epsilon in a divisor does."""

_GROUPS, _SIZE, _WIDTH = 3, 4, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a batch is like.

    Attributes:
        says: in words.
        no_mismatch: the sampler's log-probabilities are those of the trainer's old policy.
        fresh: the old policy is the current one.
        at_reference: the reference is the current policy.
        small_steps: ratios between 0.9998 and 1.0002.
        equal_lengths: all rollouts are equally long.
        one_prompt: all rollouts answer one prompt.
        binary: rewards are 0 or 1; otherwise any numbers, and in one batch a prompt without variance.
    """

    says: str
    no_mismatch: bool = False
    fresh: bool = False
    at_reference: bool = False
    small_steps: bool = False
    equal_lengths: bool = False
    one_prompt: bool = False
    binary: bool = False


_HERE = {"no_mismatch": True, "fresh": True, "at_reference": True}

CONDITIONS: Mapping[str, Condition] = {
    "any batch": Condition(says="nothing in particular"),
    "no mismatch": Condition(says="sampler and trainer agree", no_mismatch=True),
    "small steps": Condition(says="no mismatch, and no ratio leaves any bound", no_mismatch=True, small_steps=True),
    "one update": Condition(says="the old policy is the current one", fresh=True),
    "on policy": Condition(says="one update, no mismatch", no_mismatch=True, fresh=True),
    "at the reference": Condition(says="on policy, and the reference is the policy", **_HERE),
    "equal lengths": Condition(says="at the reference, rollouts equally long", **_HERE, equal_lengths=True),
    "one prompt": Condition(says="at the reference, one prompt", **_HERE, one_prompt=True),
    "binary rewards": Condition(says="at the reference, rewards 0 or 1", **_HERE, binary=True),
    "all of these": Condition(
        says="at the reference, equal lengths, one prompt, rewards 0 or 1",
        **_HERE,
        equal_lengths=True,
        one_prompt=True,
        binary=True,
    ),
}
"""Name to condition."""


def equivalences(objectives: Mapping[str, Objective] | None = None) -> dict[str, list[tuple[str, ...]]]:
    """The classes of methods whose gradients are the same up to one positive factor, on all batches under a condition.

    Args:
        objectives: name to composition; the named methods under their default settings when None.

    Returns:
        Condition to its classes of two or more, each in alphabetical order; a method without any gradient there is in none.

    >>> from assay.objective import cispo, dapo, gspo
    >>> found = equivalences({"a": dapo(), "b": dapo(filter_groups=False), "c": cispo()})
    >>> found["any batch"], found["on policy"]
    ([], [('b', 'c')])
    """
    given = _named_objectives() if objectives is None else objectives
    compared = {name: o for name, o in sorted(given.items()) if not _reason(o)}
    return {name: _classes(compared, condition) for name, condition in CONDITIONS.items()}


def left_out() -> dict[str, str]:
    """Named methods that cannot be compared on these batches, each with the reason."""
    return {name: reason for name, o in _named_objectives().items() if (reason := _reason(o))}


def batch(objective: Objective, condition: Condition, seed: int) -> dict[str, Any]:
    """Inputs of `evaluate` under a condition: every column a function of its name and the seed, the same for all methods."""
    want, total = required_inputs(objective), _GROUPS * _SIZE
    rng = generator("atlas/batch", seed)
    lengths = np.full(total, _WIDTH) if condition.equal_lengths else rng.integers(1, _WIDTH + 1, total)
    inputs: dict[str, Any] = {"mask": np.arange(_WIDTH) < lengths[:, None], "group_id": np.repeat(np.arange(_GROUPS), _SIZE)}
    if condition.one_prompt:
        inputs["group_id"] = np.zeros(total, np.int64)
    outputs = _outputs(objective)
    for name in (*want.live, *want.columns):
        inputs[name] = _column(name, condition, seed)
        if outputs.get(name, 1) > 1:
            inputs[name] = np.multiply.outer(inputs[name], np.linspace(-1.0, 1.0, outputs[name]))
    inputs |= {name: _rollout_values(name, seed) for name in want.rollout_columns}
    if want.uses_reward:
        inputs["rewards"] = _rewards(condition, seed)
    return inputs


def atlas_page() -> str:
    """The atlas as a page with one table."""
    found, missing = equivalences(), left_out()
    rows = "\n".join(
        f"| **{name}**: {CONDITIONS[name].says} | {'; '.join(', '.join(c) for c in classes) or 'none'} |"
        for name, classes in found.items()
    )
    reasons = "\n".join(f"- `{name}`: {reason}" for name, reason in missing.items())
    return f"""# Atlas: which methods are the same, and when

Named methods under their default settings, compared by their gradients with respect to all that has one, on {len(SEEDS)}
random batches of {_GROUPS * _SIZE} rollouts under each condition. Methods stand together where the gradients are equal up to
one positive factor for all batches, which a learning rate makes up for; what differs by less than {CLOSE:g} of its length is
equal, so that an epsilon in a divisor does not part them. Methods that stand alone are not shown.

    python -m evidence atlas        # this page; assay methods --atlas prints the table

| condition | the same gradient |
|---|---|
{rows}

{f"Not compared:{chr(10) * 2}{reasons}{chr(10)}" if missing else "All named methods are compared."}
"""


def _named_objectives() -> dict[str, Objective]:
    return {name: method.objective() for name, method in methods().items()}


def _reason(objective: Objective) -> str:
    """Why a method cannot be evaluated on these batches; empty when it can."""
    try:
        evaluate(objective, batch(objective, CONDITIONS["any batch"], 0))
    except (DataError, PlanError) as error:
        return str(error).partition(": ")[0].partition("; ")[0]
    return ""


def _classes(objectives: Mapping[str, Objective], condition: Condition) -> list[tuple[str, ...]]:
    found: list[tuple[F, list[str]]] = []
    columns = sorted({(c, _outputs(o).get(c, 1)) for o in objectives.values() for c in o.plan().live})
    for name, objective in objectives.items():
        direction = _direction(objective, condition, columns)
        if not direction.any():
            continue
        near = [names for other, names in found if np.linalg.norm(direction - other) < CLOSE]
        if near:
            near[0].append(name)
        else:
            found.append((direction, [name]))
    return [tuple(names) for _, names in found if len(names) > 1]


def _outputs(objective: Objective) -> dict[str, int]:
    """Numbers per token of the heads."""
    return {name: form[1] for term in objective.losses for name, form in term.heads.items()}


def _direction(objective: Objective, condition: Condition, columns: Sequence[tuple[str, int]]) -> F:
    """All gradients on all batches as one vector of length 1; 0 when there are none.

    Args:
        columns: names with their numbers per token, one part of the vector each.
    """
    parts: list[F] = []
    for seed in SEEDS:
        gradient = evaluate(objective, batch(objective, condition, seed)).gradient
        mine = {(c, _outputs(objective).get(c, 1)): g.ravel() for c, g in gradient.items()}
        parts += [mine.get(key, np.zeros(_GROUPS * _SIZE * _WIDTH * key[1])) for key in columns]
    whole = np.concatenate(parts)
    length = float(np.linalg.norm(whole))
    return whole / length if length > 0 else whole


def _column(name: str, condition: Condition, seed: int) -> F:
    """``[B, T]`` a token column."""
    same = {
        "logp_engine": "logp_old" if condition.no_mismatch else "",
        "logp_old": "logp_new" if condition.fresh else "",
        "logp_ref": "logp_new" if condition.at_reference else "",
    }.get(name, "")
    if same:
        return _column(same, condition, seed)
    values = generator("atlas/column", seed, name).normal(size=(_GROUPS * _SIZE, _WIDTH))
    if name == "logp_old" and condition.small_steps:
        return _column("logp_new", condition, seed) + 1e-4 * np.tanh(values)
    if name.startswith("logp"):
        return -np.abs(values) - 0.05
    if name.startswith("sum_pi_squared"):
        return np.clip(np.abs(values), 0.0, 1.0)
    if name in ("call", "segment", "state"):
        return np.floor(np.arange(_WIDTH) / 2) * np.ones_like(values)
    return np.abs(values)


def _rollout_values(name: str, seed: int) -> F:
    """``[B]`` a column of the rollouts."""
    return generator("atlas/attempt", seed, name).integers(0, 2, _GROUPS * _SIZE).astype(np.float64)


def _rewards(condition: Condition, seed: int) -> F:
    rng = generator("atlas/rewards", seed)
    rewards = rng.random((_GROUPS, _SIZE))
    if condition.binary:
        rewards = (rewards > np.median(rewards, axis=1, keepdims=True)).astype(np.float64)
        rewards[:, 0] = rng.integers(0, 2, _GROUPS)
    elif not seed:
        rewards[0] = 0.5
    return rewards.ravel()
