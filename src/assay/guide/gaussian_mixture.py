"""Mixtures of normal distributions, fitted by expectation maximisation; the number of components by Akaike's criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.seeds import generator

__all__ = ["GaussianMixture", "best_mixture", "fit_mixture"]

F = NDArray[np.float64]

ROUNDS = 60
"""Of expectation and maximisation, at most."""

RIDGE = 1e-4
"""Added to variances: points of a grid repeat, and a component of one point alone would have none."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMixture:
    """Components of full covariance.

    Attributes:
        weights: ``[k]``, sum to 1.
        means: ``[k, d]``.
        covariances: ``[k, d, d]``.
        likelihood: log-likelihood of the points that it was fitted to.
    """

    weights: F
    means: F
    covariances: F
    likelihood: float

    def log_densities(self, points: F) -> F:
        """``[n, k]`` log-density of points ``[n, d]`` under each component, its weight left out."""
        out = np.empty((len(points), len(self.means)))
        for k, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            root = cast("F", np.linalg.cholesky(covariance))
            z = cast("F", np.linalg.solve(root, (points - mean).T))
            out[:, k] = -0.5 * (z**2).sum(0) - np.log(np.diag(root)).sum() - 0.5 * len(mean) * np.log(2 * np.pi)
        return out

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 parameters - 2 log-likelihood: lower is better.

        >>> points = np.concatenate([np.zeros((50, 1)), np.ones((50, 1))]) + 0.01 * np.arange(100)[:, None] % 0.1
        >>> fit_mixture(points, 2).aic < fit_mixture(points, 1).aic
        True
        """
        k, d = self.means.shape
        return 2.0 * (k * (d + d * (d + 1) / 2) + k - 1) - 2.0 * self.likelihood

    def to_list(self) -> list[Any]:
        """As JSON holds it."""
        return [self.weights.tolist(), self.means.tolist(), self.covariances.tolist(), self.likelihood]

    @classmethod
    def from_list(cls, saved: list[Any]) -> GaussianMixture:
        """From `to_list`."""
        weights, means, covariances = (np.array(x, np.float64) for x in saved[:3])
        return cls(weights, means, covariances, float(saved[3]))


def fit_mixture(points: F, components: int, seed: int = 0) -> GaussianMixture:
    """Expectation maximisation from centres drawn far apart.

    Args:
        points: ``[n, d]``.
        components: how many.
        seed: chooses the first centres.
    """
    n, d = points.shape
    rng: Any = generator("mixture", seed, f"{n}", components)
    centres: Any = points[[int(rng.integers(n))]]
    while len(centres) < components:
        far: F = ((points[:, None] - centres[None]) ** 2).sum(-1).min(1)
        total = float(far.sum())
        chance: F = far / total if total > 0 else np.ones(n) / n
        centres = np.concatenate([centres, points[[int(rng.choice(n, p=chance))]]])
    spread: Any = np.cov(points.T, bias=True).reshape(d, d) + RIDGE * np.eye(d)
    found = GaussianMixture(
        np.full(components, 1 / components), centres, np.repeat(spread[None] / components, components, 0), -np.inf
    )
    for _ in range(ROUNDS):
        logs = found.log_densities(points) + np.log(found.weights)
        top = logs.max(1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(logs - top).sum(1))
        share = np.exp(logs - total[:, None])
        mass = share.sum(0) + 1e-9
        means = share.T @ points / mass[:, None]
        apart = points[:, None] - means[None]
        covariances = np.einsum("nk,nki,nkj->kij", share, apart, apart) / mass[:, None, None] + RIDGE * np.eye(d)
        gain = float(total.sum()) - found.likelihood
        found = GaussianMixture(mass / mass.sum(), means, covariances, float(total.sum()))
        if gain < 1e-3:
            break
    return found


def best_mixture(points: F, least: int, most: int, seed: int = 0) -> GaussianMixture:
    """The fit of lowest `GaussianMixture.aic` among ``least`` to ``most`` components."""
    return min((fit_mixture(points, k, seed) for k in range(least, most + 1)), key=lambda fit: fit.aic)
