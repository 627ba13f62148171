"""A run of half a CPU-second: a two-layer model, a few steps of warm-up and RL, with replay and every kind of write."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.ctypeslib
import numpy.ma
import tomli_w  # noqa: F401
import torch

# What every run loads, loaded once for the many children that are forked here:
import assay.runtime.distributed.worker
import assay.runtime.engine.native
import assay.runtime.engine.stale
import assay.runtime.learner.learner
import assay.runtime.models.hf
import assay.train.reinforce_checks
import assay.train.reinforce_runner  # noqa: F401
from assay.core.manifest import Manifest
from assay.core.protocols import Engine
from assay.core.rollout import Sampling
from assay.guide import Compose, Recent, SuccessVariance
from assay.objective.methods import dpo, grpo
from assay.runs import storage
from assay.runs.storage import read_json
from assay.runtime.learner.publishing import make_manifest
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.train.driver import resume, train
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import ContaminationCheck, Evaluation, Run
from assay.train.stages import Imitate, Prefer, WarmUp
from assay_tasks import SortDigits

SHAPE = DecoderShape(
    hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=32
)
SCHEDULE = LearningRateSchedule(kind="linear", start=0.5, floor=0.1)


def warm_up(**changes: Any) -> WarmUp:
    given: dict[str, Any] = {
        "steps": 30,
        "batch": 32,
        "demonstrations": 200,
        "levels": (1, 2),
        "learner": LearnerSettings(optimizer=Muon(lr=4e-3), schedule=SCHEDULE),
    }
    return WarmUp(**(given | changes))


def reinforce(**changes: Any) -> Reinforce:
    given: dict[str, Any] = {
        "steps": 6,
        "groups": 4,
        "group_size": 4,
        "objective": grpo(),
        "curriculum": SuccessVariance(),
        "learner": LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=SCHEDULE),
    }
    return Reinforce(**(given | changes))


def tiny(seed: int = 0, warm: int = 10, rl: int = 6) -> Run:
    """Two stages; the replay, the curriculum and both optimisers carry state over every checkpoint."""
    return Run(
        name="tiny",
        seed=seed,
        model=Scratch(shape=SHAPE, seed=seed),
        tasks=SortDigits(levels=(1, 2, 3)),
        stages=(
            warm_up(steps=warm),
            reinforce(steps=rl, replay=Recent(capacity=8), composer=Compose(replay_share=0.25)),
        ),
        sampling=Sampling(max_new_tokens=5),
        evaluation=Evaluation(every=6, per_level=3, final_per_level=4),
        checkpoint_every=4,
        rollouts_every=2,
    )


def on_tiny_base(rl: int = 4) -> Run:
    """RL from a base in the cache (``$ASSAY_CACHE``), which is a warm-up of 8 steps."""
    whole = tiny(warm=8)
    base = replace(whole, name="tiny-base", stages=whole.stages[:1])
    return replace(whole, name="on-base", model=Built(run=base), stages=(reinforce(steps=rl),))


def only_rl(**changes: Any) -> Run:
    """RL alone from fresh weights."""
    return replace(tiny(), stages=(reinforce(**changes),))


SORTED = [
    {"prompt": f"S{a}{b}>", "chosen": min(f"{a}{b}", f"{b}{a}"), "rejected": max(f"{a}{b}", f"{b}{a}")}
    for a in range(10)
    for b in range(10)
    if a != b
]
"""Ninety pairs: two digits, in order and the other way round."""


def prefer(**changes: Any) -> Prefer:
    given: dict[str, Any] = {
        "data": SORTED,
        "steps": 6,
        "batch": 16,
        "objective": dpo(),
        "learner": LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=SCHEDULE),
    }
    return Prefer(**(given | changes))


SHOWN = [{"prompt": row["prompt"], "completion": row["chosen"]} for row in SORTED]
"""Ninety demonstrations: two digits, in order."""


def imitate(**changes: Any) -> Imitate:
    given: dict[str, Any] = {
        "data": SHOWN,
        "steps": 6,
        "batch": 16,
        "learner": LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=SCHEDULE),
    }
    return Imitate(**(given | changes))


def imitating(*stages: Any, **changes: Any) -> Run:
    """Demonstrations, then preferences, then RL, or the stages given; of all questions, held out or not."""
    whole = (imitate(**changes), prefer(steps=2), reinforce(steps=3))
    known = ContaminationCheck(mode="off")
    return replace(tiny(), name="imitating", stages=stages or whole, checkpoint_every=3, contamination=known)


def preferring(*stages: Any, **changes: Any) -> Run:
    """Preferences after a short warm-up, and then RL, or the stages given.

    The pairs are all that there are, those that the tasks hold out too.
    """
    whole = (warm_up(steps=4), prefer(**changes), reinforce(steps=3, objective=dpo()))
    known = ContaminationCheck(mode="off")
    return replace(tiny(), name="preferring", stages=stages or whole, checkpoint_every=3, contamination=known)


def in_child(work: Callable[[], object]) -> int:
    """Runs ``work`` in a forked process; its exit status: 0, 1 after an exception, or minus the signal that killed it."""
    return ended(started(work))


def started(work: Callable[[], object]) -> int:
    """Pid of a forked process that runs ``work``."""
    import torch._dynamo  # noqa: F401  the first optimiser imports it: a second that children need not spend again

    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        gc.freeze()  # what the parent left behind may need its threads to be freed, which are not here: it is no garbage of ours
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def at_point(number: int, act: Callable[[], None]) -> None:
    """Arms this process: ``act`` at the ``number``-th write point (from 0) from now on."""
    seen = -1

    def hook(point: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            act()

    storage.on_write = hook


def kill_at(number: int) -> None:
    """From now on the ``number``-th write point (from 0) is this process's last."""
    at_point(number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def at_named(name: str, act: Callable[[], None]) -> None:
    """Arms this process: ``act`` at each write point called ``name``."""

    def hook(point: str) -> None:
        if point == name:
            act()

    storage.on_write = hook


def points_into(path: Path) -> None:
    """Records the name of each write point, one per line."""

    def hook(point: str) -> None:
        with path.open("a") as file:
            file.write(point + "\n")

    storage.on_write = hook


def digest_of(folder: Path) -> str:
    return str(read_json(folder / "done.json")["digest"])


def trained(run: Run, folder: Path, prepare: Callable[[], object] = lambda: None) -> str:
    """Digest of a run trained in a child."""

    def work() -> None:
        prepare()
        assert train(run, folder).finished

    assert in_child(work) == 0
    return digest_of(folder)


def resumed(folder: Path, run: Run | None = None, **options: Any) -> str:
    """Digest of a run gone on with in a child; one that was killed before it had a name is begun."""

    def work() -> None:
        if run is not None and not (folder / "run.toml").exists():
            assert train(run, folder).finished
        else:
            assert resume(folder, **options).finished

    assert in_child(work) == 0
    return digest_of(folder)


def manifest_for(engine: Engine, version: int, arrays: Mapping[str, Any]) -> Manifest:
    """Of weights that no learner made, as the engine takes them."""
    told = engine.info()
    return make_manifest(version, {n: torch.from_numpy(np.asarray(a)) for n, a in arrays.items()}, told.dtype, told.digests)
