"""Speed of control: steps of worlds and updates of methods per CPU-second, on one thread.

    python benchmarks/control.py

Update speeds are given at 64 and at 256 units a layer, with the batches that go with them (128 and 256 rows).
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import torch

from assay_control import IQL, METHODS, WORLDS, CartPole, Choices, ControlRun, Session, dataset, method, world

STEPS, UPDATES, COPIES = 1000, 200, 20


def world_speed(name: str) -> float:
    """Steps of single copies per CPU-second, twenty copies beside each other."""
    made = world(name)
    running = made.open(COPIES, lambda n: np.arange(n, dtype=np.uint64))
    space = made.actions
    action = np.zeros(COPIES, np.int64) if isinstance(space, Choices) else np.zeros((COPIES, space.size))
    begun = time.process_time()
    for _ in range(STEPS):
        running.step(action)
    return STEPS * COPIES / (time.process_time() - begun)


def update_speed(name: str, width: int, batch: int) -> float:
    """Updates per CPU-second; where a method acts, its steps in the world included."""
    made: Any = method(name)
    changes = {"width": width, "batch": batch, "start": 300, "offline": 10**6}
    fields = {f.name for f in dataclasses.fields(made)}
    made = dataclasses.replace(made, **{k: v for k, v in changes.items() if k in fields})
    run = ControlRun(method=made, world=CartPole()) if name == "dqn" else ControlRun(method=made, data=dataset("pendulum/mixed"))
    session = Session(dataclasses.replace(run, steps=2000))
    begun, before = 0.0, 0
    while session.updates < before + UPDATES or not begun:
        session.step += 1
        phase = session.method.schedule.phase(session.step)
        if phase.updates and not begun:
            begun, before = time.process_time(), session.updates
        if phase.collect:
            session.collect(phase)
        for _ in range(phase.updates):
            session.update(None)
    return (session.updates - before) / (time.process_time() - begun)


def main() -> None:
    """Prints both tables."""
    torch.set_num_threads(1)
    Session(ControlRun(method=IQL(), data=dataset("pendulum/mixed"))).update(None)  # loads what all of them load
    print("| world | steps per CPU-second |\n|---|---|")
    for name in WORLDS:
        print(f"| {name} | {world_speed(name):,.0f} |")
    print("\n| method | updates per CPU-second, width 64, batch 128 | width 256, batch 256 |\n|---|---|---|")
    for name in METHODS:
        print(f"| {name} | {update_speed(name, 64, 128):,.0f} | {update_speed(name, 256, 256):,.0f} |")


if __name__ == "__main__":
    main()
