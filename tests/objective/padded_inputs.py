"""Padded inputs for any method, made from what it says that it reads."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.core.seeds import generator
from assay.objective import Objective
from assay.objective.padded_batch import required_inputs


def random_inputs(objective: Objective, seed: int = 0, groups: int = 3, size: int = 4, width: int = 6) -> dict[str, Any]:
    """A batch with unequal lengths, holes in the mask, a rollout without loss tokens, and one without verdict."""
    rng = generator("tests/padded", seed)
    want, total = required_inputs(objective), groups * size
    lengths = rng.integers(1, width + 1, total)
    lengths[3] = 0
    mask = np.arange(width) < lengths[:, None]
    mask &= (rng.random(mask.shape) < 0.8) | (np.arange(width) == 0)
    inputs: dict[str, Any] = {"mask": mask, "group_id": np.repeat(np.arange(groups), size), "valid": np.arange(total) != 5}
    outputs = {name: form[1] for term in objective.losses for name, form in term.heads.items()}
    for name in (*want.live, *want.columns):
        inputs[name] = column(name, mask, rng, outputs.get(name, 1))
    for name in want.rollout_columns:
        inputs[name] = rng.random(total) < 0.3 if name == "truncated" else rng.random(total)
    if want.uses_reward:
        inputs["rewards"] = rng.integers(0, 3, total) / 2.0
    return inputs


def column(name: str, mask: np.ndarray, rng: np.random.Generator, outputs: int = 1) -> np.ndarray:
    """``[B, T]``, or ``[B, T, outputs]``; NaN outside the mask, where nobody may look."""
    if outputs > 1:
        return np.where(mask[:, :, None], rng.normal(size=(*mask.shape, outputs)), np.nan)
    values = rng.normal(size=mask.shape)
    if name.startswith("logp"):
        values = -np.abs(values) - 0.05
    elif name.startswith("entropy"):
        values = np.abs(values)
    return np.where(mask, values, np.nan)


def nudged(inputs: Mapping[str, Any], name: str, row: int, token: int, by: float) -> dict[str, Any]:
    """The inputs with one number moved."""
    values = np.array(inputs[name], np.float64)
    values[row, token] += by
    return {**inputs, name: values}
