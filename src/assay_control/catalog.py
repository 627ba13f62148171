"""What has a name: worlds, data sets, methods. A new one is a line here, and the command line, the checks and the docs know
it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from assay.core import FrozenMap, UnknownNameError
from assay_control.data.behaviours import RandomActions, Scripted, Wander
from assay_control.data.preferences import PreferredRewards
from assay_control.data.recipes import Corrupted, Dataset, OfflineData, Share
from assay_control.parts.base import ControlMethod
from assay_control.worlds.base import World
from assay_control.worlds.cartpole import CartPole
from assay_control.worlds.hazards import HazardPoint
from assay_control.worlds.maze import PointMaze
from assay_control.worlds.near_real import DelayLine
from assay_control.worlds.pendulum import Pendulum

__all__ = ["DATASETS", "METHODS", "WORLDS", "dataset", "method", "world"]

WORLDS: FrozenMap = FrozenMap(
    {
        "cart-pole": "assay_control.worlds.cartpole:CartPole",
        "codes": "assay_control.worlds.codes:CheckMatrix",
        "corridor": "assay_control.worlds.tabular:Corridor",
        "delay": "assay_control.worlds.near_real:DelayLine",
        "die": "assay_control.worlds.dies:ExtrusionDie",
        "hazard": "assay_control.worlds.hazards:HazardPoint",
        "maze": "assay_control.worlds.maze:PointMaze",
        "motor": "assay_control.worlds.motor:Motor",
        "offloading": "assay_control.worlds.offloading:Offloading",
        "pendulum": "assay_control.worlds.pendulum:Pendulum",
        "portfolio": "assay_control.worlds.near_real:Portfolio",
    }
)
"""Name to ``module:class``."""

METHODS: FrozenMap = FrozenMap(
    {
        "awac": "assay_control.methods.offline:normalised_awac",
        "awr": "assay_control.methods.offline:normalised_awr",
        "bc": "assay_control.methods.offline:BC",
        "cql": "assay_control.methods.offline:CQL",
        "dqn": "assay_control.methods.online:DQN",
        "dt": "assay_control.methods.sequence:DecisionTransformer",
        "edac": "assay_control.methods.ensembles:EDAC",
        "f-dvl": "assay_control.methods.published:DVL",
        "fisor": "assay_control.methods.safe:FISOR",
        "ggd-sac": "assay_control.methods.imitation:GGDSAC",
        "iql": "assay_control.methods.offline:IQL",
        "mbpo": "assay_control.methods.models:MBPO",
        "modt": "assay_control.methods.sequence:MultiObjectiveDT",
        "moorl": "assay_control.methods.imitation:MOORL",
        "mopo": "assay_control.methods.models:MOPO",
        "ppo": "assay_control.methods.online:PPO",
        "prdc": "assay_control.methods.published:PRDC",
        "rebrac": "assay_control.methods.ensembles:ReBRAC",
        "recoil": "assay_control.methods.imitation:ReCOIL",
        "riql": "assay_control.methods.published:RIQL",
        "rlpd": "assay_control.methods.online:RLPD",
        "ro2o": "assay_control.methods.ensembles:RO2O",
        "sac": "assay_control.methods.online:SAC",
        "td3": "assay_control.methods.online:TD3",
        "td3-bc": "assay_control.methods.offline:TD3BC",
        "vagram": "assay_control.methods.models:VaGraM",
        "wsrl": "assay_control.methods.published:WSRL",
    }
)
"""Name to ``module:class``."""


def _of(world: World, *shares: tuple[Any, int]) -> Dataset:
    return Dataset(world=world, shares=tuple(Share(behaviour=b, episodes=n) for b, n in shares))


def _hazardous() -> Dataset:
    place = HazardPoint()
    blind = Scripted(noise=0.3, of=dataclasses.replace(place, radius=0.01))
    return _of(place, (Scripted(noise=0.3), 40), (blind, 80), (RandomActions(), 40))


def _conservative() -> Dataset:
    return _of(DelayLine(), (Scripted(gain=0.3, noise=0.3), 60))


def _stitch_dataset() -> Dataset:
    maze = PointMaze()
    anywhere = dataclasses.replace(maze, begin=None)
    return Dataset(world=maze, shares=(Share(behaviour=Wander(), episodes=300, length=19, world=anywhere),))


DATASETS: dict[str, tuple[Callable[[], OfflineData], str]] = {
    "cart-pole/expert": (lambda: _of(CartPole(), (Scripted(), 20)), "20 episodes of the controller"),
    "cart-pole/mixed": (
        lambda: _of(CartPole(), (RandomActions(), 380), (Scripted(noise=0.3), 20)),
        "380 random episodes, 20 of the controller with a share of random choices",
    ),
    "cart-pole/random": (lambda: _of(CartPole(), (RandomActions(), 400)), "400 random episodes"),
    "delay/conservative": (_conservative, "60 episodes of a slow controller with noise, as of a plant that runs already"),
    "hazard/mixed": (_hazardous, "40 careful episodes, 80 that fly through the hazard, 40 random"),
    "maze/expert": (lambda: _of(PointMaze(), (Scripted(noise=0.2), 50)), "50 shortest ways from the start of tests"),
    "maze/stitched": (
        _stitch_dataset,
        "300 short walks between places that have nothing to do with the goal: the way must be put together from pieces",
    ),
    "pendulum/corrupted": (
        lambda: Corrupted(base=_of(Pendulum(), (Scripted(noise=0.3), 100)), what="dynamics", rate=0.3, scale=2.0),
        "as expert, with three in ten next observations wrong",
    ),
    "pendulum/expert": (lambda: _of(Pendulum(), (Scripted(noise=0.3), 100)), "100 episodes of the controller with noise"),
    "pendulum/medium": (lambda: _of(Pendulum(), (Scripted(gain=0.5, noise=0.3), 100)), "100 episodes of a weak controller"),
    "pendulum/mixed": (
        lambda: _of(Pendulum(), (RandomActions(), 190), (Scripted(noise=0.3), 10)),
        "190 random episodes and 10 of the controller with noise",
    ),
    "pendulum/weak": (
        lambda: _of(Pendulum(), (Scripted(gain=0.5, noise=0.3), 40)),
        "40 episodes of a weak controller, to go on from by acting",
    ),
    "pendulum/preferred": (
        lambda: PreferredRewards(
            base=_of(Pendulum(), (RandomActions(), 60), (Scripted(gain=0.5, noise=0.3), 60), (Scripted(noise=0.3), 30))
        ),
        "150 episodes of three kinds, whose rewards are learned from 400 comparisons, one in ten of them wrong",
    ),
    "pendulum/random": (lambda: _of(Pendulum(), (RandomActions(), 100)), "100 random episodes"),
}
"""Name to a function that makes the recipe, and what it is."""


def dataset(name: str) -> OfflineData:
    """The data set of that name.

    Raises:
        UnknownNameError: there is none; says the nearest.

    >>> len(dataset("pendulum/mixed").cached())
    200
    """
    if name not in DATASETS:
        raise UnknownNameError("data set", name, list(DATASETS))
    return DATASETS[name][0]()


def world(name: str) -> World:
    """The world of that name with its default settings.

    Raises:
        UnknownNameError: there is none; says the nearest.

    >>> world("pendulum").horizon
    200
    """
    return cast("World", _make_named("world", name, WORLDS))


def method(name: str) -> ControlMethod:
    """The method of that name with its default settings.

    Raises:
        UnknownNameError: there is none; says the nearest.

    >>> [update.owner for update in method("iql").compose().updates]
    ['v', 'q', 'pi']
    """
    return cast("ControlMethod", _make_named("method", name, METHODS))


def _make_named(what: str, name: str, known: FrozenMap) -> object:
    if name not in known:
        raise UnknownNameError(what, name, list(known))
    module, _, found = str(known[name]).partition(":")
    return getattr(import_module(module), found)()
