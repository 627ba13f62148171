"""A run that takes about a second: a two-layer model, a few steps of warm-up and RL, with replay and every kind of write."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from assay.core.rollout import Sampling
from assay.guide import Compose, Recent, SuccessVariance
from assay.objective.methods import grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, Muon, Schedule
from assay.tasks import SortDigits
from assay.train import storage
from assay.train.models import Scratch
from assay.train.run import Evaluation, Reinforce, Run, WarmUp

SHAPE = DecoderShape(
    hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=32
)


def tiny(seed: int = 0, warm: int = 30, rl: int = 6) -> Run:
    """Two stages; the replay, the curriculum and both optimisers carry state over every checkpoint."""
    schedule = Schedule(kind="linear", start=0.5, floor=0.1)
    return Run(
        name="tiny",
        seed=seed,
        model=Scratch(shape=SHAPE, seed=seed),
        tasks=SortDigits(levels=(1, 2, 3)),
        stages=(
            WarmUp(
                steps=warm, batch=32, demonstrations=200, levels=(1, 2),
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=schedule),
            ),
            Reinforce(
                steps=rl, groups=4, group_size=4, objective=grpo(), curriculum=SuccessVariance(),
                learner=LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=schedule),
                replay=Recent(capacity=8), composer=Compose(replay_share=0.25),
            ),
        ),
        sampling=Sampling(max_new_tokens=5),
        evaluation=Evaluation(every=6, per_level=3, final_per_level=4),
        checkpoint_every=4,
        rollouts_every=2,
    )  # fmt: skip


def in_child(work: Callable[[], None]) -> int:
    """Runs ``work`` in a forked process; its exit status: 0, 1 after an exception, or minus the signal that killed it."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_at(number: int) -> None:
    """From now on the ``number``-th write point (from 0) is this process's last."""
    seen = -1

    def hook(point: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    storage.on_write = hook


def points_into(path: Path) -> None:
    """Records the name of each write point, one per line."""

    def hook(point: str) -> None:
        with path.open("a") as file:
            file.write(point + "\n")

    storage.on_write = hook
