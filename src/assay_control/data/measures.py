"""What data are like: how good, how much of the space they cover, how much weighting could gain."""

from __future__ import annotations

import numpy as np

from assay.core import ConfigError, DataError
from assay_control.records import Array, Transitions

__all__ = [
    "coverage",
    "joint_coverage",
    "positive_semivariance",
    "return_advantages",
    "scale_values",
    "trajectory_quality",
    "trajectory_weights",
]


def trajectory_quality(returns: Array, low: float, high: float) -> float:
    """TQ: mean return between that of a random policy (0) and of an expert (1), ``(mean(G) - low) / (high - low)``.

    Source: Schweighofer et al. 2021, arXiv 2111.04714.

    Raises:
        ConfigError: the references are not in order.

    >>> trajectory_quality(np.array([10.0, 20.0]), 0.0, 20.0)
    0.75
    """
    if not low < high:
        raise ConfigError(f"trajectory_quality(low={low}, high={high}): the expert's return must be above the random policy's")
    return float((np.mean(returns) - low) / (high - low))


def _cells(rows: Transitions, bins: int, low: Array, high: Array) -> int:
    """Distinct pairs of a state and an action, each coordinate cut into ``bins``."""
    if bins < 2:
        raise ConfigError(f"bins={bins}; use at least 2")
    span = np.where(high > low, high - low, 1.0)
    state = np.clip(((rows.observation - low) / span * bins).astype(np.int64), 0, bins - 1)
    action = (
        rows.action[:, None] if rows.action.ndim == 1 else np.clip(((rows.action + 1) / 2 * bins).astype(np.int64), 0, bins - 1)
    )
    return len(np.unique(np.concatenate([state, action], axis=1), axis=0))


def coverage(rows: Transitions, reference: Transitions, bins: int = 10) -> float:
    """SACo: distinct state-action pairs over those of a reference, ``u(D) / u(D_ref)``.

    Source: Schweighofer et al. 2021, arXiv 2111.04714. Continuous coordinates are cut into ``bins`` between the reference's ends.

    Raises:
        ConfigError: fewer than 2 bins.
    """
    low, high = reference.observation.min(0), reference.observation.max(0)
    return _cells(rows, bins, low, high) / _cells(reference, bins, low, high)


def joint_coverage(rows: Transitions) -> float:
    """Distinct pairs after rounding to 4 decimals over the data's own rows; another measure than `coverage`.

    Source: the released code of OG-MARL, Formanek et al. 2023, arXiv 2302.00521.
    """
    action = rows.action[:, None] if rows.action.ndim == 1 else rows.action
    pairs = np.round(np.concatenate([rows.observation, action], axis=1), 4)
    return len(np.unique(pairs, axis=0)) / len(rows)


def positive_semivariance(returns: Array) -> float:
    """PSV: ``E[max(G - E[G], 0)^2]``, how far returns reach above their mean; what weighting can gain grows with it.

    Source: Hong et al. 2023, arXiv 2306.13085.

    >>> round(positive_semivariance(np.array([0.0, 0, 0, 0, 1])), 3)
    0.128
    """
    return float(np.mean(np.maximum(returns - np.mean(returns), 0.0) ** 2))


def scale_values(values: Array) -> Array:
    """Between 0 for the least and 1 for the greatest; all 0 where they are alike.

    >>> scale_values(np.array([1.0, 2.0, 5.0])).tolist()
    [0.0, 0.25, 1.0]
    """
    span = float(np.ptp(values))
    return (values - values.min()) / span if span > 0 else np.zeros_like(values, dtype=np.float64)


def return_advantages(rows: Transitions) -> Array:
    """``[E]`` return of each episode less what a linear regression on its first observation expects."""
    first = rows.observation[rows.first].astype(np.float64)
    design = np.concatenate([first, np.ones((len(first), 1))], axis=1)
    returns = rows.returns()
    weights = np.linalg.lstsq(design, returns, rcond=None)[0]
    return returns - design @ weights


def trajectory_weights(values: Array, temperature: float) -> Array:
    """``[E]`` weights of episodes, ``softmax(scaled(values) / temperature)``.

    Source: Hong et al. 2023, arXiv 2306.13085 (RW with returns, AW with `return_advantages`).

    Raises:
        ConfigError: the temperature is not positive.
        DataError: no value.

    >>> trajectory_weights(np.array([0.0, 0.5, 1.0]), 0.1).round(4).tolist()
    [0.0, 0.0067, 0.9933]
    """
    if temperature <= 0:
        raise ConfigError(f"temperature={temperature}; use a positive number (0.1 in the paper; a large one draws evenly)")
    if not len(values):
        raise DataError("no episodes to weight")
    exponent = scale_values(values) / temperature
    weights = np.exp(exponent - exponent.max())
    return weights / weights.sum()
