"""Loops around whole runs: which mixture, or which task, is to be trained on next, by how the runs before ended.

Their protocol is `propose` and `observe`, as a curriculum's is draw and observe, but an experience is a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.seeds import generator

__all__ = ["MixtureSearch", "TransferSearch"]

F = NDArray[np.float64]
Mixture = tuple[float, ...]

SPLITS, HELD_OUT = 5, 0.2
RIDGES = (1e-8, 1e-4, 1e-2, 1e-1, 1.0)
ROUNDS, SAMPLES, ELITE = 30, 200, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureSearch:
    """MoDoMoDo: predicts the outcome of a run from the mixture that it trains on, and proposes the best mixture.

    Outcomes are fitted by ``a + b'w + w'Cw`` over all mixtures ``w`` that were tried. Since shares sum to 1, the products
    ``w_i w_j`` span all of it: ``m (m + 1) / 2`` coefficients for ``m`` parts, under a ridge penalty. The penalty is the one with
    the least squared error over 5 random splits. The proposal maximises the fit over the simplex, by a search whose mean and
    covariance follow its best samples, begun at the tried mixtures. The seed mixtures alone do not determine the fit: it has to
    see others, as `heuristics` gives.

    Source: MoDoMoDo (arXiv 2505.24871). UNSURE: its ridge strength, chosen here by cross-validation, its number of proposals, and
    how its heuristic corrects for inflated variances (`effects`).

    Attributes:
        parts: names of what is mixed, at least two.
        seed: of splits and samples.

    Raises:
        ConfigError: fewer than two parts, or a name twice.

    >>> search = MixtureSearch(parts=("sums", "knots"))
    >>> search.seeds()
    [(0.5, 0.5), (1.0, 0.0), (0.0, 1.0)]
    >>> tried = {w: w[0] * (2.0 - 2.0 * w[0]) for w in [*search.seeds(), (0.2, 0.8), (0.7, 0.3)]}
    >>> [round(share, 2) for share in search.propose(tried)]
    [0.5, 0.5]
    """

    parts: tuple[str, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or len(set(self.parts)) < len(self.parts):
            raise ConfigError(f"MixtureSearch.parts={self.parts}; name at least two parts, each once")

    def seeds(self) -> list[Mixture]:
        """The mixtures to begin with: all parts alike, each alone, and all but each; those that are equal once."""
        m = len(self.parts)
        eye = np.eye(m)
        rows = [np.full(m, 1.0 / m), *eye, *((1.0 - eye) / (m - 1))]
        return list(dict.fromkeys(tuple(float(x) for x in row) for row in rows))

    def heuristics(self, alone: F, gains: Sequence[float], tried: Mapping[Mixture, float] | None = None) -> list[Mixture]:
        """Mixtures by what the seed mixtures scored.

        Args:
            alone: ``[m, m]`` score on each part, of the run that trained on one part alone, row by row.
            gains: per part, outcome with all parts minus outcome without it.
            tried: mixture to its outcome, for the last heuristic; None leaves that out.

        Returns:
            In proportion to a part's own score where it is trained alone, to the mean of its scores on the others, to the mean
            of both, to what it gains, and to its `effects`, where one is positive. Those without a positive weight are left out.
        """
        m = len(self.parts)
        own, others = np.diag(alone), (alone.sum(1) - np.diag(alone)) / (m - 1)
        found = [own, others, 0.5 * (own + others), np.asarray(gains, np.float64)]
        found += [] if tried is None else [self.effects(tried)]
        positive = [np.maximum(weights, 0.0) for weights in found]
        return [tuple(float(x) for x in w / w.sum()) for w in positive if w.sum() > 0.0]

    def effects(self, tried: Mapping[Mixture, float], ridge: float = 0.1) -> F:
        """``[m]`` how much each part's share raises the outcome, less where other shares tell it as well.

        With the standardised shares ``z`` of the mixtures, their correlations ``R`` and ``A = (R + ridge I)^-1``, a linear fit
        has ``b = A mean(z (y - mean y))``, whose variance is inflated by the diagonal ``v`` of ``A R A``; the effect is
        ``b / sqrt(v)`` per unit of share. Shares sum to 1, so that without a penalty they could not be told apart at all.

        Args:
            tried: mixture to its outcome; of a part that always has one share the effect is 0.
            ridge: the penalty.

        Raises:
            DataError: as `fit`.

        >>> search = MixtureSearch(parts=("a", "b"))
        >>> search.effects({(0.5, 0.5): 0.5, (1.0, 0.0): 0.8, (0.0, 1.0): 0.2}).round(4).tolist()
        [0.6, -0.6]
        """
        self._check(tried)
        shares, y = np.array([*tried]), np.array([*tried.values()])
        spread: F = np.asarray(shares.std(0), np.float64)
        scale: F = np.where(spread > 0, spread, 1.0)
        z: F = (shares - shares.mean(0)) / scale
        told: F = z.T @ z / len(z)
        inverse: F = np.asarray(np.linalg.inv(told + ridge * np.eye(len(told))), np.float64)
        fitted: F = inverse @ (z.T @ (y - y.mean())) / len(z)
        inflated: F = np.diag(inverse @ told @ inverse)
        found: F = np.zeros(len(told))
        moved = inflated > 0
        found[moved] = fitted[moved] / np.sqrt(inflated[moved]) / scale[moved]
        return found

    def fit(self, tried: Mapping[Mixture, float]) -> F:
        """``[m (m + 1) / 2]`` coefficients of the products ``w_i w_j``, ``i <= j``, row by row.

        Raises:
            DataError: nothing was tried, a mixture that is none, or an outcome that is not finite.
        """
        self._check(tried)
        x, y = self.products(np.array([*tried])), np.array([*tried.values()])
        return _ridge(x, y, self._best_ridge(x, y))

    def products(self, mixtures: F) -> F:
        """``[n, m (m + 1) / 2]`` products of the shares of ``[n, m]`` mixtures."""
        i, j = np.triu_indices(len(self.parts))
        return mixtures[:, i] * mixtures[:, j]

    def propose(self, tried: Mapping[Mixture, float]) -> Mixture:
        """The mixture whose outcome the fit predicts to be best.

        Args:
            tried: mixture to its outcome, the higher the better.

        Raises:
            DataError: as `fit`.
        """
        weights = self.fit(tried)
        rng = generator("guide/mixtures", self.seed, "propose", len(tried))
        order = sorted(tried, key=lambda w: -float(tried[w]))[:ELITE]
        best = np.array(order)
        for _ in range(ROUNDS):
            spread = np.cov(best.T) + 1e-4 * np.eye(len(self.parts)) if len(best) > 1 else 0.05 * np.eye(len(self.parts))
            drawn = rng.multivariate_normal(best.mean(0), np.atleast_2d(spread), SAMPLES)
            candidates = np.concatenate([best, _onto_simplex(drawn)])
            best = candidates[np.argsort(-(self.products(candidates) @ weights), kind="stable")[:ELITE]]
        return tuple(float(x) for x in best[0])

    def _best_ridge(self, x: F, y: F) -> float:
        """The penalty with the least squared error on what a fit did not see."""
        out = max(1, round(HELD_OUT * len(y)))
        if len(y) - out < 2:
            return RIDGES[-1]
        orders = [generator("guide/mixtures", self.seed, "split", k).permutation(len(y)) for k in range(SPLITS)]

        def error(ridge: float) -> float:
            return sum(float(((x[o[:out]] @ _ridge(x[o[out:]], y[o[out:]], ridge) - y[o[:out]]) ** 2).sum()) for o in orders)

        return min(RIDGES, key=error)

    def _check(self, tried: Mapping[Mixture, float]) -> None:
        if not tried:
            raise DataError("MixtureSearch: no mixture was tried yet; run those of seeds() first")
        for mixture, outcome in tried.items():
            if len(mixture) != len(self.parts) or min(mixture) < 0.0 or abs(sum(mixture) - 1.0) > 1e-9:
                raise DataError(f"MixtureSearch: {mixture} is no mixture of {self.parts}: give a share of each, which sum to 1")
            if not np.isfinite(outcome):
                raise DataError(f"MixtureSearch: the outcome of {mixture} is {outcome}; leave out runs that failed")


def _ridge(x: F, y: F, ridge: float) -> F:
    """Coefficients of ``y`` on ``x``. A constant is itself a pattern of coefficients, since ``(w_1 + ... + w_m)^2 = 1``: the
    penalty is on the difference from the mean of ``y``, not on the level.
    """
    m = round((np.sqrt(8 * x.shape[1] + 1) - 1) / 2)
    i, j = np.triu_indices(m)
    level = np.where(i == j, 1.0, 2.0)  # (w_1 + ... + w_m)^2 = 1
    mean = float(y.mean())
    found = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ (y - mean))
    return found + mean * level


def _onto_simplex(points: F) -> F:
    """The nearest mixture to each of ``[n, m]`` points."""
    ordered: F = -np.sort(-points, axis=1)
    sums: F = np.cumsum(ordered, axis=1) - 1.0
    excess: F = ordered - sums / np.arange(1.0, points.shape[1] + 1.0)
    many: NDArray[np.int64] = np.count_nonzero(excess > 0, axis=1)
    shift: F = np.take_along_axis(sums, many[:, None] - 1, axis=1)[:, 0] / many
    found: F = np.maximum(points - shift[:, None], 0.0)
    return found / found.sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferSearch:
    """MBTL: which task to train on next, so that all tasks are served by one of the models trained so far.

    A Gaussian process models the performance ``J(x)`` of a run that trains at context ``x``, at ``x``. Elsewhere it is expected
    to fall in a line: ``J(x) - slope |x - x'|``. With ``V(x')`` the best so far of what was expected at ``x'``, the next context
    is that with the greatest mean over ``x'`` of ``max(0, m(x) + beta s(x) - slope |x - x'| - V(x'))``, of those not trained yet;
    the first is the middle one.

    Source: Model-based transfer learning (arXiv 2408.04498) and its code: a kernel constant times RBF, noise 0.1. There the
    kernel's two numbers are found by 9 restarts of an optimiser, here on a grid, by the same marginal likelihood, the smoother
    of equal ones.

    Attributes:
        contexts: one number per task, such as its level or length, ascending.
        slope: loss of performance per unit of distance; performance lies in [0, 1]. `fit_slope` estimates it.
        exploration: ``beta`` in run ``k``, counted from 0: ``one``, ``inverse`` for ``1 / (k + 1)``, ``log`` for
            ``sqrt(ln(k + 1))``.

    Raises:
        ConfigError: no contexts or not ascending, a negative slope, or another word.

    >>> search = TransferSearch(contexts=(3, 4, 5, 6, 7), slope=0.2)
    >>> search.propose({})
    5
    >>> search.propose({5: 0.9}) in (3, 7)
    True
    >>> search.serving({5: 0.9, 3: 0.4})
    {3: 5, 4: 5, 5: 5, 6: 5, 7: 5}
    """

    contexts: tuple[float, ...]
    slope: float = 0.005
    exploration: str = "one"

    def __post_init__(self) -> None:
        if not self.contexts or any(b <= a for a, b in zip(self.contexts, self.contexts[1:], strict=False)):
            raise ConfigError(f"TransferSearch.contexts={self.contexts}; give the tasks' numbers, ascending, each once")
        if not 0.0 <= self.slope < float("inf"):
            raise ConfigError(f"TransferSearch.slope={self.slope}; use the loss per unit of distance, at least 0")
        if self.exploration not in ("one", "inverse", "log"):
            raise ConfigError(f"TransferSearch.exploration={self.exploration!r}; use 'one', 'inverse' or 'log'")

    def propose(self, trained: Mapping[float, float]) -> float:
        """The context to train at next.

        Args:
            trained: context to the performance there of the run that trained there, in [0, 1].

        Raises:
            DataError: a context that there is not, a performance that is not finite, or every context is trained.
        """
        for x, y in trained.items():
            if x not in self.contexts or not np.isfinite(y):
                raise DataError(f"TransferSearch: performance {y} at {x}; give a finite one for contexts of {self.contexts}")
        left = [x for x in self.contexts if x not in trained]
        if not left:
            raise DataError(f"TransferSearch: all of {self.contexts} are trained; there is nothing left to propose")
        if not trained:
            return self.contexts[len(self.contexts) // 2]
        mean, deviation = _gaussian_process(np.array([*trained]), np.array([*trained.values()]), np.array(left))
        hoped = mean + self._beta(len(trained)) * deviation
        everywhere = np.array(self.contexts)
        expected = hoped[:, None] - self.slope * np.abs(np.array(left)[:, None] - everywhere)
        gain = np.maximum(0.0, expected - self.expected_return(trained)).mean(axis=1)
        return left[int(np.argmax(gain))]

    def expected_return(self, trained: Mapping[float, float]) -> F:
        """``[contexts]`` best of what the trained models are expected to reach at each context."""
        return self._transfers(trained).max(axis=0)

    def serving(self, trained: Mapping[float, float]) -> dict[float, float]:
        """For each context the one whose model serves it, as far as is expected."""
        sources = [*trained]
        best = self._transfers(trained).argmax(axis=0).tolist()
        return {x: sources[i] for x, i in zip(self.contexts, best, strict=True)}

    def fit_slope(self, transfers: Mapping[tuple[float, float], float]) -> float:
        """The slope that observed transfers have by least squares, at least 0.

        Args:
            transfers: (trained at, judged at) to performance; those judged where they were trained give the level of a source.
        """
        gaps = [(abs(x - z), transfers[x, x] - y) for (x, z), y in transfers.items() if x != z and (x, x) in transfers]
        squares = sum(d * d for d, _ in gaps)
        return max(0.0, sum(d * g for d, g in gaps) / squares) if squares else 0.0

    def _transfers(self, trained: Mapping[float, float]) -> F:
        x, y = np.array([*trained]), np.array([*trained.values()])
        return y[:, None] - self.slope * np.abs(x[:, None] - np.array(self.contexts))

    def _beta(self, k: int) -> float:
        return {"one": 1.0, "inverse": 1.0 / (k + 1), "log": float(np.sqrt(np.log(k + 1)))}[self.exploration]


NOISE = 0.1


def _gaussian_process(x: F, y: F, at: F) -> tuple[F, F]:
    """Mean and standard deviation at ``at``, after observations; the kernel's numbers by marginal likelihood on a grid."""
    span = max(1e-9, float(np.ptp(np.concatenate([x, at]))))

    def fit_gaussian_process(constant: float, length: float) -> tuple[float, F, F]:
        def kernel(a: F, b: F) -> F:
            return constant * np.exp(-0.5 * ((a[:, None] - b) / length) ** 2)

        root = np.linalg.cholesky(kernel(x, x) + NOISE**2 * np.eye(len(x)))
        white = np.linalg.solve(root, y)
        across = np.linalg.solve(root, kernel(x, at))
        likelihood = -0.5 * float(white @ white) - float(np.log(np.diag(root)).sum())
        return likelihood, across.T @ white, np.sqrt(np.maximum(constant - (across**2).sum(axis=0), 0.0))

    grid = [(c, span * share) for c in (0.01, 0.1, 0.3, 1.0, 3.0) for share in (1.6, 0.8, 0.4, 0.2, 0.1, 0.05)]
    _, mean, deviation = max((fit_gaussian_process(c, length) for c, length in grid), key=lambda found: found[0])
    return mean, deviation
