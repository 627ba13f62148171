"""Curricula over cells that follow the size of advantages or the gap to a target: SEC, DUMP, RuleReasoner, Exp3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import later
from assay.core.group import Outcome
from assay.guide.cell_curricula import CellRule, Memory, Standing

__all__ = ["Dump", "Exp3", "RuleReasoner", "Sec", "softmax"]


def softmax(scores: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """``[n]`` probabilities proportional to ``exp(scores / temperature)``.

    >>> softmax(np.array([0.0, 0.0]), 0.5).tolist()
    [0.5, 0.5]
    """
    powers = np.exp((scores - scores.max()) / temperature)
    return powers / powers.sum()


def _check(part: object, positive: Sequence[str], shares: Sequence[str]) -> None:
    for name in (*positive, *shares):
        value = getattr(part, name)
        if not 0.0 < value < float("inf") or (name in shares and value > 1.0):
            raise ConfigError(f"{type(part).__name__}.{name}={value}; use a number {'in (0, 1]' if name in shares else '> 0'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sec(CellRule):
    """SEC: cells are the arms of a bandit whose reward is the mean absolute advantage of their groups.

    After a batch with mean absolute advantage ``u`` in a cell, ``Q`` becomes ``alpha u + (1 - alpha) Q``, from 0; draws are by
    ``softmax(Q / temperature)``. Under advantages normalised by their standard deviation ``u`` is ``2 sqrt(p (1 - p))`` for
    binary rewards of success ``p``: largest where half succeed.

    Source: Self-Evolving Curriculum (arXiv 2505.14970). UNSURE: its authors tune ``alpha`` and ``temperature`` per task; the
    defaults here are of a reimplementation.

    Attributes:
        alpha: weight of the newest batch, in (0, 1].
        temperature: of the softmax.

    Raises:
        ConfigError: a value out of range.

    >>> Sec().build({"sort": (3, 4)}, seed=0).propensities.tolist()
    [0.5, 0.5]
    """

    alpha: float = 0.1
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _check(self, ["temperature"], ["alpha"])

    @property
    def memory(self) -> Memory:
        """One move per batch, from 0."""
        return Memory(decay=1.0 - self.alpha, prior=0.0, per_batch=True)

    @property
    def signal_name(self) -> str:
        """Mean absolute advantage."""
        return "advantage"

    def signal(self, outcome: Outcome) -> Sequence[float]:
        """The mean absolute advantage of a group: of its rollouts, so that each prompt counts once."""
        sizes = outcome.magnitudes
        return (sum(sizes) / len(sizes),) if sizes else ()

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` ``softmax(Q / temperature)``."""
        return softmax(standing.value, self.temperature)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump(CellRule):
    """DUMP: an upper confidence bound on the mean absolute advantage of each cell.

    With the last ``window`` absolute advantages of cell ``j``, ``n_j`` of them in all and ``N`` over the cells, its score is
    ``mean + sqrt(2 ln(N + 1) / (n_j + 1))``; draws are by ``softmax(score / temperature)``, evenly at first.

    Source: DUMP (arXiv 2504.09710), as in its paper; its authors' code updates from validation instead.

    Attributes:
        window: advantages remembered per cell.
        temperature: of the softmax.

    Raises:
        ConfigError: a value out of range.

    >>> Dump().build({"sort": (3, 4)}, seed=0).propensities.tolist()
    [0.5, 0.5]
    """

    window: int = 300
    temperature: float = 0.1

    def __post_init__(self) -> None:
        _check(self, ["window", "temperature"], [])

    @property
    def memory(self) -> Memory:
        """The last ``window`` absolute advantages."""
        return Memory(prior=0.0, window=self.window)

    @property
    def signal_name(self) -> str:
        """Mean absolute advantage."""
        return "advantage"

    def signal(self, outcome: Outcome) -> Sequence[float]:
        """The absolute advantage of each rollout."""
        return outcome.magnitudes

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` softmax of the upper confidence bounds."""
        mean = np.array([sum(values) / len(values) if values else 0.0 for values in standing.recent])
        bound = np.sqrt(2.0 * np.log(standing.count.sum() + 1.0) / (standing.count + 1.0))
        return softmax(mean + bound, self.temperature)


def faded_means(queues: Sequence[Sequence[float]], fading: Literal["harmonic", "geometric"]) -> NDArray[np.float64]:
    """``[cells]`` the mean of each queue, oldest first, by weights that fall with age; 0 where it is empty.

    >>> [round(float(faded_means([[0.0, 0.5, 1.0]], how)[0]), 4) for how in ("harmonic", "geometric")]
    [0.6818, 0.7143]
    """
    ages = np.arange(max(map(len, queues), default=0))
    fall = 1.0 / (ages + 1.0) if fading == "harmonic" else 0.5**ages
    return np.array([np.average(seen[::-1], weights=fall[: len(seen)]) if len(seen) else 0.0 for seen in queues], np.float64)


def _check_queue(queue: int, fading: str) -> None:
    if queue < 0:
        raise ConfigError(f"RuleReasoner.queue={queue}; use a number of batches, or 0 for the average")
    if fading not in ("harmonic", "geometric"):
        raise UnknownNameError("RuleReasoner.fading", fading, ("harmonic", "geometric"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReasoner(CellRule):
    """RuleReasoner's domain-aware sampling: cells are drawn by how far their reward is from a target.

    After a batch with mean success ``m`` in a cell, its average becomes ``decay r + (1 - decay) m``, the first one ``m`` itself.
    A cell weighs ``exp(max(0, target - r) / temperature) + floor``, with ``r`` 0 before the cell was seen.

    Source: RuleReasoner (arXiv 2506.08672), the paper's form; in its authors' code the floor stands inside the exponential, where
    it cancels, and a domain that a batch lacks is never drawn again. Its variant over a queue of the last ``queue`` batches that
    had the cell takes for ``r`` the mean of their means, the newest with weight 1 and the ``k``-th before it with ``1 / (k + 1)``
    (``harmonic``) or ``1 / 2^k`` (``geometric``).

    Attributes:
        decay: share of the old average kept per batch, in [0, 1); without a queue.
        temperature: of the softmax.
        floor: added to each cell's weight.
        target: success at which nothing is left to gain.
        queue: batches of a cell that are remembered one by one; 0 for the average.
        fading: how the weights in a queue fall with age.

    Raises:
        ConfigError: a value out of range.
        UnknownNameError: another fading.

    >>> RuleReasoner().build({"sort": (3, 4)}, seed=0).propensities.tolist()
    [0.5, 0.5]
    """

    decay: float = 0.5
    temperature: float = 0.5
    floor: float = 0.1
    target: float = 1.0
    queue: int = later(0)
    fading: Literal["harmonic", "geometric"] = later("harmonic")

    def __post_init__(self) -> None:
        _check(self, ["temperature", "floor"], ["target"])
        _check_queue(self.queue, self.fading)
        if not 0.0 <= self.decay < 1.0:
            raise ConfigError(f"RuleReasoner.decay={self.decay}; use a share in [0, 1), or the average never moves")

    @property
    def memory(self) -> Memory:
        """One move per batch; the first batch counts whole. With a queue, the means of the last batches."""
        return Memory(decay=self.decay, prior=None, per_batch=True, window=self.queue, by_batch=self.queue > 0)

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` exponential of the gaps, and the floor."""
        reward = faded_means(standing.recent, self.fading) if self.queue else standing.success
        power = np.maximum(0.0, self.target - reward) / self.temperature
        # A constant factor changes no share: without it a low temperature gives powers beyond the largest number.
        shift = max(0.0, float(power.max()) - 700.0)
        return np.exp(power - shift) + self.floor * np.exp(-shift)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exp3(CellRule):
    """Exp3: a bandit whose estimates stay unbiased however the draws lean, because each is divided by its draw's probability.

    A group with success ``s`` gains ``g = 4 s (1 - s)``, the variance of a binary reward as a share of the largest. With the
    probability ``p`` of its draw, its cell's total ``G`` grows by ``g / p``: in expectation by ``g`` at each draw, whichever cell
    is drawn. Of ``K`` cells, one is drawn with probability ``(1 - gamma) softmax(gamma G / K) + gamma / K``. A rare draw thus
    counts for all the draws that it stands for, where averages (`Sec`, `Dump`) only see a cell as often as they draw it.

    Source: Auer, Cesa-Bianchi, Freund, Schapire 2002 (The nonstochastic multiarmed bandit problem, section 3); as a curriculum of
    tasks Graves et al. 2017 (arXiv 1704.03003), whose Exp3.S also forgets and whose gain is a change of the loss.

    Attributes:
        gamma: share of draws that are uniform, in (0, 1]; the larger, the faster the weights move, too.

    Raises:
        ConfigError: a value out of range.

    >>> Exp3().build({"sort": (3, 4)}, seed=0).propensities.tolist()
    [0.5, 0.5]
    """

    gamma: float = 0.1

    def __post_init__(self) -> None:
        _check(self, [], ["gamma"])

    @property
    def memory(self) -> Memory:
        """Gains are summed, from 0."""
        return Memory(prior=0.0, total=True)

    @property
    def signal_name(self) -> str:
        """Total gain, each divided by the probability of its draw."""
        return "gain"

    def signal(self, outcome: Outcome) -> Sequence[float]:
        """The gain of a group over the probability with which its cell was drawn."""
        success = outcome.group.success
        return () if success is None else (4.0 * success * (1.0 - success) / outcome.group.draw.propensity,)

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        """``[cells]`` probabilities, at least ``gamma / cells`` each: no gain is ever multiplied by more than the inverse."""
        cells = len(standing.cells)
        return (1.0 - self.gamma) * softmax(self.gamma * standing.value / cells, 1.0) + self.gamma / cells
