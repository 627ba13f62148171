"""Processes to follow: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.simulation.cells import Ant, Ball, Elementary, Life, Robot, Turing
from assay_tasks.simulation.flows import BoardGame, Elevator, Inventory, Lights, Queue, StateMachine

__all__ = ["simulation"]


def simulation() -> Problems:
    """Processes to follow step by step: automata, walkers, machines, queues, stock, lights, games."""
    problems = (
        Elementary(),
        Life(),
        Ant(),
        Robot(),
        Ball(),
        Turing(),
        Queue(),
        Inventory(),
        Elevator(),
        Lights(),
        StateMachine(),
        BoardGame(),
    )
    return Problems(name="simulation", summary="Processes to follow step by step.", problems=problems)
