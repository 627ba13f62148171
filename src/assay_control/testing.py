"""Checks that a world, a source or a method of one's own keeps the laws that the others keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import generator
from assay.core.seeds import derive_each
from assay_control.data.behaviours import random_actions
from assay_control.lazy_torch import torch
from assay_control.parts.base import ControlMethod, Noise, Source, TransitionBatch
from assay_control.parts.buffer import Buffer
from assay_control.records import Array, Transitions
from assay_control.run import ControlRun
from assay_control.run_folders import state_digest
from assay_control.session import Session
from assay_control.worlds.base import RunningWorld, World

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["check_method", "check_source", "check_world"]


def _seeds(name: str) -> Any:
    given = [0]

    def seeds(count: int) -> Array:
        made = derive_each(name, 0, str(given[0]), count)
        given[0] += count
        return np.array(made, np.uint64)

    return seeds


def check_world(world: World, steps: int = 60, copies: int = 4, restores: bool = True, alone: bool = True) -> None:
    """Checks a world.

    Shapes and finite numbers; equal seeds give equal steps; a copy does not depend on who runs beside it; an episode ends at the
    horizon, and never both ways at once; a state that was restored goes on as before.

    Args:
        world: to be checked.
        steps: of each walk.
        copies: beside each other.
        restores: whether its state can be saved.
        alone: whether a copy does not depend on who runs beside it; False for agents that meet.

    Raises:
        AssertionError: says which law is broken.

    >>> from assay_control import CartPole
    >>> check_world(CartPole())
    """
    first, second = (world.open(copies, _seeds("check/world")) for _ in range(2))
    for t in range(steps):
        action = random_actions(world.actions, generator("check/actions", 0, index=t), copies)
        assert first.observation.shape == (copies, world.observation_size), "observation has another shape than declared"
        a, b = first.step(action), second.step(action)
        for name in ("observation", "reward", "cost", "terminated", "truncated"):
            one, other = getattr(a, name), getattr(b, name)
            assert len(one) == copies and np.isfinite(one).all(), f"step {t}: {name} has another length or is not finite"
            assert np.array_equal(one, other), f"step {t}: {name} differs under equal seeds and actions"
        assert not (a.terminated & a.truncated).any(), f"step {t}: an episode cannot end by itself and be cut at once"
    if restores:
        _check_restore(world, first, copies)
    if alone:
        _check_alone(world)
    _check_horizon(world)


def _check_restore(world: World, running: RunningWorld, copies: int) -> None:
    state = {name: np.array(value) for name, value in running.state().items()}
    later: list[Mapping[str, Array]] = []
    for _ in range(2):
        running.restore(state)
        for t in range(3):
            step = running.step(random_actions(world.actions, generator("check/later", 0, index=t), copies))
        later.append({"observation": step.observation, "reward": step.reward})  # pyright: ignore[reportPossiblyUnboundVariable]
    for name, value in later[0].items():
        assert np.array_equal(value, later[1][name]), f"after restore, {name} differs: state() does not hold all of the state"


def _check_alone(world: World) -> None:
    seeds = np.array(derive_each("check/alone", 0, "", 2), np.uint64)
    both = world.open(2, lambda n: seeds[:n])
    alone = world.open(1, lambda n: seeds[:n])
    action = random_actions(world.actions, generator("check/alone", 0), 2)
    one, other = both.step(action), alone.step(action[:1])
    assert np.allclose(one.observation[0], other.observation[0]), "a copy depends on who runs beside it"


def _check_horizon(world: World) -> None:
    running = world.open(1, _seeds("check/horizon"))
    for t in range(world.horizon + 1):
        step = running.step(random_actions(world.actions, generator("check/horizon", 0, index=t), 1))
        if step.done[0]:
            return
    raise AssertionError(f"no episode ended within the horizon of {world.horizon} steps")


def check_source(source: Source, data: Transitions, buffer: Buffer | None = None) -> None:
    """Checks a source: equal numbers give equal batches of the declared size, other numbers others, and rows are rows of the
    data.

    Raises:
        AssertionError: says which law is broken.

    >>> from assay_control import Evenly, dataset, transitions
    >>> check_source(Evenly(batch=8), transitions(dataset("pendulum/random").cached(), 0.99))
    """
    drawer, again = (source.open(data, buffer, 0) for _ in range(2))
    first, same, other = drawer.draw(3), again.draw(3), drawer.draw(4)
    assert len(first) == source.batch, f"a batch has {len(first)} rows, declared are {source.batch}"
    for name in ("observation", "action", "reward", "next_observation", "terminal"):
        assert torch.equal(getattr(first, name), getattr(same, name)), f"{name}: batch 3 differs between two openings"
    assert not torch.equal(first.index, other.index), "two batches have the same rows: the number of the batch has no effect"
    offline = first.index[first.stream == 0].numpy()
    assert np.array_equal(data.reward[offline], first.reward[first.stream == 0].numpy()), "rows are not those that index names"


def check_method(method: ControlMethod, run: ControlRun, steps: int = 6) -> None:
    """Checks a method by a short run.

    An offline phase takes no step of the world; each update changes its owner alone; a target drops what follows a terminal step
    and nothing else, whatever stands there; equal seeds give equal bits; and a run that is saved and restored goes on with the
    same bits.

    Args:
        method: to be checked.
        run: with data or a world that suit it; its method is replaced.
        steps: of the loop.

    Raises:
        AssertionError: says which law is broken.

    >>> from assay_control import IQL, dataset
    >>> check_method(IQL(width=8), ControlRun(method=IQL(), data=dataset("pendulum/mixed"), episodes=1))
    """
    run = dataclasses.replace(run, method=method, steps=4 * steps)
    session = _walk(Session(run), steps)
    parts = session.method
    if not any(parts.schedule.phase(step).collect for step in range(1, steps + 1)):
        assert session.acted == 0 and session.started == (parts.copies if session.running is not None else 0), (
            "an offline phase stepped the world"
        )
    assert state_digest(session) == state_digest(_walk(Session(run), steps)), "equal seeds gave different bits"
    restored = Session(run)
    restored.restore(session.counters(), session.arrays())
    assert state_digest(_walk(session, steps)) == state_digest(_walk(restored, steps)), "after a restore the bits differ"
    if session.updates:
        _check_owners(session)
        _check_terminal(session)


def _walk(session: Session, steps: int) -> Session:
    for step in range(session.step + 1, session.step + steps + 1):
        phase = session.method.schedule.phase(step)
        if phase.collect:
            session.collect(phase)
        for _ in range(phase.updates):
            session.update({})
        session.step = step
    return session


def _check_owners(session: Session) -> None:
    rows, noise = session.drawer.draw(session.updates), Noise(session.run.seed, session.updates)
    for part in session.method.updates:
        before = {name: net.flat.clone() for name, net in session.nets.networks.items()}
        target = part.target(rows, session.nets, noise, session.method.discount) if part.target is not None else None
        assert target is None or not target.requires_grad, f"the target of {part.owner!r} lets gradients through"
        session.nets[part.owner].descend(part.fit(rows, session.nets, target, noise, None))
        changed = {name for name, net in session.nets.networks.items() if not torch.equal(net.flat.detach(), before[name])}
        assert changed <= {part.owner}, f"the update of {part.owner!r} changed {sorted(changed - {part.owner})}"


def _check_terminal(session: Session) -> None:
    rows = session.drawer.draw(session.updates)
    for part in session.method.updates:
        if part.target is None:
            continue

        def of(made: TransitionBatch, discount: float, target: Any = part.target) -> Tensor:
            return target(made, session.nets, Noise(0, 0), discount)

        gamma = session.method.discount
        ended = dataclasses.replace(rows, terminal=torch.ones_like(rows.terminal))
        poisoned = dataclasses.replace(ended, next_observation=torch.full_like(rows.next_observation, float("nan")))
        assert torch.isfinite(of(poisoned, gamma)).all(), f"the target of {part.owner!r} reads what follows a terminal step"
        if not torch.equal(of(rows, gamma), of(rows, 0.0)):  # it bootstraps
            assert torch.equal(of(ended, gamma), rows.reward.expand_as(of(ended, gamma))), (
                f"the target of {part.owner!r} at a terminal step is not the reward"
            )
