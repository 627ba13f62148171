"""The loop of control: choose a phase, collect, update, report. Offline and online runs walk it alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from assay_control.evaluation import PolicyEvaluation, evaluate_policy, normalise_return, references
from assay_control.lazy_torch import to_tensor, torch
from assay_control.parts.base import Log
from assay_control.records import Array, WorldStep
from assay_control.session import PolicyPlayer, Session

__all__ = ["Recorder", "evaluate", "walk"]


class Recorder(Protocol):
    """Takes what a run reports."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None: ...

    def evaluation(self, step: int, found: PolicyEvaluation) -> None: ...

    def checkpoint(self, session: Session) -> None: ...


@dataclass(frozen=True, slots=True)
class Due:
    """Whether something is due at a step: every so many, and at the last."""

    every: int
    last: int

    def __call__(self, step: int) -> bool:
        return step == self.last or bool(self.every and step % self.every == 0)


def walk(session: Session, recorder: Recorder, stop: Callable[[], bool] = lambda: False) -> None:
    """Takes a session from its step to the run's last.

    Args:
        session: to be changed.
        recorder: takes metrics, evaluations and checkpoints.
        stop: asked after each step; True ends the walk behind a checkpoint.
    """
    run = session.run
    log_due, evaluate_due, checkpoint_due = (Due(n, run.steps) for n in (run.log_every, run.evaluate_every, run.checkpoint_every))
    while session.step < run.steps:
        step = session.step + 1
        phase = session.method.schedule.phase(step)  # which parts run, how much is collected
        values: dict[str, float] = {}
        if phase.collect:
            values |= session.collect(phase)  # act in the world, into the buffer
        log: Log | None = {} if log_due(step) or evaluate_due(step) else None
        for number in range(phase.updates):
            session.update(log if number + 1 == phase.updates else None)  # draw, target, loss, descend, average
        session.step = step
        if evaluate_due(step):
            found, measured = evaluate(session)
            recorder.evaluation(step, found)
            values |= measured
        if log is not None:
            recorder.metrics(step, values | {name: float(value) for name, value in log.items()})
        if (stopped := stop()) or checkpoint_due(step):
            recorder.checkpoint(session)
        if stopped:
            return


class _Watched:
    """A player whose first observations and actions are kept."""

    def __init__(self, player: PolicyPlayer) -> None:
        self._player = player
        self.observation: Array = np.zeros(0)
        self.action: Array = np.zeros(0)

    def __call__(self, observation: Array) -> Array:
        action = self._player(observation)
        if not len(self.action):
            self.observation, self.action = observation, action
        return action

    def observe(self, step: WorldStep) -> None:
        self._player.observe(step)


def evaluate(session: Session) -> tuple[PolicyEvaluation, dict[str, float]]:
    """Episodes without noise, and their numbers: the return, the score, and what the critic expected of the first actions."""
    run = session.run
    world, method = run.evaluated_in, session.method
    act = _Watched(session.player(run.episodes))
    found = evaluate_policy(world, act, run.episodes, run.seed, method.discount)
    values = {"eval/return": float(found.returns.mean()), "eval/length": float(found.lengths.mean())}
    if found.costs.any():
        values["eval/cost"] = float(found.costs.mean())
    if (known := references(world)) is not None:
        values["eval/score"] = normalise_return(values["eval/return"], known)
    if "q" in session.nets.networks:
        with torch.no_grad():
            observation = to_tensor(session.scale_observation(act.observation))
            q = session.nets.least_q(observation, to_tensor(act.action)).numpy()
        factor, offset = method.reward
        gamma = method.discount
        ahead = found.lengths if gamma == 1 else (1 - gamma**found.lengths) / (1 - gamma)
        values["eval/q"] = float(q.mean())
        values["eval/q_bias"] = float(np.mean(q - (found.discounted * factor + offset * ahead)))
    return found, values
