"""How good a policy is: returns of whole episodes, scores between a random policy and an expert, values against returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from assay.core import ConfigError
from assay.core.seeds import derive, derive_each
from assay.measure import Interval, bootstrap
from assay_control.data.behaviours import RandomActions, Scripted
from assay_control.data.recipes import collect_episodes
from assay_control.records import Array, Choices, WorldStep
from assay_control.worlds.base import World

__all__ = ["PolicyEvaluation", "References", "evaluate_policy", "normalise_return", "references"]

REFERENCE_EPISODES = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyEvaluation:
    """Episodes of a policy without noise.

    Attributes:
        returns: ``[n]`` undiscounted.
        discounted: ``[n]`` discounted from the start.
        costs: ``[n]`` sums of costs.
        lengths: ``[n]`` steps.
        terminated: ``[n]`` whether each ended by itself.
    """

    returns: Array
    discounted: Array
    costs: Array
    lengths: Array
    terminated: Array

    def mean(self) -> Interval:
        """Of the returns, with a bootstrap interval over episodes."""
        return bootstrap(self.returns)


def evaluate_policy(
    world: World, act: Callable[[Array], Array], episodes: int, seed: int, discount: float = 1.0
) -> PolicyEvaluation:
    """Plays ``episodes`` beside each other.

    Args:
        world: to act in.
        act: actions for ``[n, O]`` raw observations; where it has a method ``observe``, that is told of each step.
        episodes: how many.
        seed: of their starts, which no collection ever has.
        discount: of ``discounted``.

    >>> from assay_control import CartPole
    >>> place = CartPole(horizon=50)
    >>> evaluate_policy(place, place.control, 3, 0).returns.tolist()
    [50.0, 50.0, 50.0]
    """
    starts = [np.array(derive_each("control/evaluate", seed, "", episodes), np.uint64)]
    running = world.open(episodes, lambda n: starts.pop() if starts else np.arange(n, dtype=np.uint64))
    alive = np.ones(episodes, bool)
    returns, discounted, costs = np.zeros(episodes), np.zeros(episodes), np.zeros(episodes)
    lengths, terminated = np.zeros(episodes, np.int64), np.zeros(episodes, bool)
    factor = 1.0
    observe: Callable[[WorldStep], None] | None = getattr(act, "observe", None)
    for _ in range(world.horizon):
        step = running.step(act(running.observation))
        if observe is not None:
            observe(step)
        returns += alive * step.reward
        discounted += alive * factor * step.reward
        costs += alive * step.cost
        lengths += alive
        terminated |= alive & step.terminated
        alive = alive & ~step.done
        factor *= discount
        if not alive.any():
            break
    return PolicyEvaluation(returns=returns, discounted=discounted, costs=costs, lengths=lengths, terminated=terminated)


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Returns between which scores are normalised.

    Attributes:
        random: of random actions, with its interval over 200 episodes.
        expert: of the world's controller.
    """

    random: Interval
    expert: Interval


@lru_cache(maxsize=64)
def references(world: World) -> References | None:
    """The references of a world, measured with 200 episodes each; None where it has no controller, or one no better than chance.

    >>> from assay_control import Pendulum
    >>> found = references(Pendulum())
    >>> -1350 < found.random.value < -1100, -220 < found.expert.value < -110
    (True, True)
    """
    if getattr(world, "control", None) is None:
        return None
    seed = derive("control/references", 0)
    found: list[Interval] = []
    for behaviour in (RandomActions(), Scripted()):
        episodes = collect_episodes(world, behaviour, REFERENCE_EPISODES, seed)
        found.append(bootstrap([e.total for e in episodes]))
    return References(random=found[0], expert=found[1]) if found[1].value > found[0].value else None


def normalise_return(value: float, found: References) -> float:
    """``100 (G - G_random) / (G_expert - G_random)``: 0 is a random policy, 100 the expert.

    Source: Fu et al. 2020, arXiv 2004.07219.

    Raises:
        ConfigError: the expert is no better than chance.

    >>> from assay.measure import Interval
    >>> round(normalise_return(1617, References(random=Interval(-20.272305, 0, 0), expert=Interval(3234.3, 0, 0))), 2)
    50.31
    """
    if found.expert.value <= found.random.value:
        raise ConfigError(f"the expert's return {found.expert} is not above that of random actions, {found.random}: no score")
    return 100 * (value - found.random.value) / (found.expert.value - found.random.value)


def is_discrete(world: World) -> bool:
    """Whether its actions are choices."""
    return isinstance(world.actions, Choices)
