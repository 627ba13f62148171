"""Weights of the terms of an objective that follow how their losses have gone of late (RECAP)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import check_positive
from assay.objective.objective import Objective

__all__ = ["BalanceLosses", "LossBalance", "balanced_weights"]

F = NDArray[np.float64]


def balanced_weights(losses: F, temperature: float = 5.0, floor: float = 1e-6, sign: float = 1.0) -> F:
    """``lambda = K softmax(s / T)`` of K objectives, ``s_k = c_k + i_k``.

    Args:
        losses: ``[2 W, K]`` of the last steps, oldest first. Convergence ``c_k = earlier_k / later_k``, the quotient of the means
            of both halves; instability ``i_k = sd_k / (earlier_k + later_k)``, ``sd_k`` the root of the mean squared distance of
            all 2 W from ``later_k``, with ``2 W - 1`` in the denominator.
        temperature: ``T``.
        floor: least value of a loss.
        sign: 1 as the paper's formula has it, which raises what *fell*; -1 as its prose has it, which raises what did not.

    Returns:
        ``[K]`` weights that add up to K.

    Source: RECAP (arXiv 2510.21978).

    >>> steady = np.array([[1.0, 1.0], [0.5, 1.0]])
    >>> bool((balanced_weights(np.ones((4, 3))) == 1.0).all()), round(float(balanced_weights(steady).sum()), 6)
    (True, 2.0)
    """
    x = np.maximum(np.asarray(losses, np.float64), floor)
    half = len(x) // 2
    earlier, later = x[:half].mean(axis=0), x[half:].mean(axis=0)
    spread = np.sqrt(((x - later) ** 2).sum(axis=0) / max(len(x) - 1, 1))
    return softmax_weights(earlier / later, spread / (earlier + later), temperature, sign)


def softmax_weights(convergence: F, instability: F, temperature: float = 5.0, sign: float = 1.0) -> F:
    """``K softmax(sign (c + i) / T)``; scaling a loss changes neither c nor i.

    >>> softmax_weights(np.array([2.0, 1.0]), np.zeros(2)).round(4).tolist()
    [1.0997, 0.9003]
    >>> softmax_weights(np.array([2.0, 1.0]), np.zeros(2), sign=-1.0).round(4).tolist()
    [0.9003, 1.0997]
    """
    score = sign * (convergence + instability) / temperature
    share = np.exp(score - score.max())
    return len(share) * share / share.sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceLosses:
    """Weighs the K terms of a stage's objective anew at each step: ``sum_k lambda_k L_k``, `balanced_weights` of the losses of
    the last ``2 window`` steps, which add up to K (the paper divides by K); all 1 before there are so many.

    A term that learns from advantages has a surrogate loss around 0, so its stand-in is ``1 - reward``, of the step's own
    rollouts; of other terms it is their loss.

    Attributes:
        window: ``W``, steps of each half.
        temperature: ``T`` of the softmax.
        raises: ``fallen``: the formula, which raises the weights of losses that fell; ``stuck``: the prose, the other way round.

    Raises:
        ConfigError, UnknownNameError: a value out of range.

    Carries: RECAP (arXiv 2510.21978), its weights; its data come from `RowSource`. Unsure: the window, and what stands for a
    surrogate loss.

    >>> BalanceLosses(window=4).raises
    'fallen'
    """

    window: int = 10
    temperature: float = 5.0
    raises: str = "fallen"

    def __post_init__(self) -> None:
        check_positive(self, "window")
        if not self.temperature > 0:
            raise ConfigError(f"BalanceLosses.temperature={self.temperature}; use a number above 0")
        if self.raises not in ("fallen", "stuck"):
            raise UnknownNameError("BalanceLosses.raises", self.raises, ("fallen", "stuck"))

    def check(self, objective: Objective) -> None:
        """Raises ConfigError where there is nothing to balance."""
        names = [term.name for term in objective.losses]
        if len(names) < 2:
            raise ConfigError(
                f"Reinforce.balance weighs the terms of an objective against each other, and there is one, "
                f"{', '.join(map(repr, names))}: add terms, such as grpo() + Nll(streams=('expert',)) with sources, or leave it "
                "out"
            )

    def build(self, objective: Objective) -> LossBalance:
        """At work."""
        return LossBalance(self, objective)


class LossBalance:
    """`BalanceLosses` at work.

    Args:
        settings: as above.
        objective: whose terms are weighed.
    """

    def __init__(self, settings: BalanceLosses, objective: Objective) -> None:
        self._settings = settings
        self._names = [term.name for term in objective.losses]
        self._rewarded = {term.name for term in objective.losses if term.terminal}
        self._history: list[list[float]] = []

    def weights(self) -> dict[str, float]:
        """Of each term, for the next step."""
        if len(self._history) < 2 * self._settings.window:
            return dict.fromkeys(self._names, 1.0)
        sign = 1.0 if self._settings.raises == "fallen" else -1.0
        found = balanced_weights(np.array(self._history), self._settings.temperature, sign=sign)
        return dict(zip(self._names, found.tolist(), strict=True))

    def observe(self, metrics: Mapping[str, float], used: Mapping[str, float]) -> None:
        """Takes in the losses of a step; one that lacks a term's, as a step without its rows, is left out.

        Args:
            metrics: of the step.
            used: the weights that its losses were multiplied with.
        """
        found = [self._loss(name, metrics, used) for name in self._names]
        if None not in found:
            self._history = [*self._history, [float(x) for x in found if x is not None]][-2 * self._settings.window :]

    def _loss(self, name: str, metrics: Mapping[str, float], used: Mapping[str, float]) -> float | None:
        if name in self._rewarded:
            reward = metrics.get("reward/mean")
            return None if reward is None else 1.0 - reward
        loss = metrics.get(f"loss/{name}")
        return None if loss is None else loss / used[name]

    def state_dict(self) -> dict[str, Any]:
        """The losses of the last steps."""
        return {"history": self._history}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`."""
        rows: Sequence[Sequence[float]] = state["history"]
        self._history = [[float(x) for x in row] for row in rows]
