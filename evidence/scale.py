"""What a step costs as a run grows, and what a long run holds: measured through the training loop as it is."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from assay.core import DataError, Sampling
from assay.lab import RandomReward, Rewarded, load_average
from assay.objective import grpo
from assay.runtime import AdamW, DecoderShape, LearnerSettings
from assay.train import Evaluation, Folder, Reinforce, Run, Scratch, scratch_tokenizer, train
from assay_tasks import SortDigits

__all__ = ["AXES", "Cost", "Held", "Point", "Watch", "long_run", "measure", "shape_of"]

GROUP = 8
"""Attempts at a prompt."""

STEPS = 3
"""Steps of a measurement, of which the first is not counted: it makes what later ones use again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A size of a step.

    Attributes:
        width, layers: of the decoder (`shape_of`).
        attempts: in a step, `GROUP` of each prompt.
        tokens: of each answer; none ends before.

    >>> Point(width=128, layers=5).parameters
    996992
    """

    width: int = 128
    layers: int = 5
    attempts: int = 64
    tokens: int = 32

    @property
    def parameters(self) -> int:
        """Weights of the decoder."""
        return shape_of(self).parameters


ONE_MILLION = Point()

AXES: Mapping[str, tuple[Point, ...]] = {
    "attempts": tuple(replace(ONE_MILLION, attempts=n) for n in (16, 32, 64, 128, 256, 512, 1024)),
    "tokens": tuple(replace(ONE_MILLION, tokens=n) for n in (8, 16, 32, 64, 128, 256, 512)),
    "parameters": tuple(
        replace(ONE_MILLION, width=width, layers=layers)
        for width, layers in ((64, 2), (96, 3), (128, 5), (224, 5), (352, 7), (512, 9))
    ),
}
"""What grows, one at a time: attempts in a step, tokens of an answer, weights of the decoder."""


def shape_of(point: Point) -> DecoderShape:
    """A decoder of heads 32 wide, whose feed-forward part is 8/3 as wide as its states, for the characters of ASCII."""
    heads = max(1, point.width // 32)
    return DecoderShape(
        vocab_size=scratch_tokenizer(Scratch()).size,
        hidden_size=point.width,
        num_layers=point.layers,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=32,
        intermediate_size=point.width * 8 // 3 // 16 * 16,
        max_positions=max(64, point.tokens + 32),
    )


# ---- the cost of a step ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a step took, in seconds.

    Attributes:
        cpu, wall: of the whole step.
        parts: CPU-seconds by part (`assay.core.timing`).
        tokens: sampled in it.
        load: of the machine when it was measured.
    """

    cpu: float
    wall: float
    parts: Mapping[str, float]
    tokens: float
    load: float


def measure(point: Point) -> Cost:
    """The mean step of a run of GRPO, its first step left out.

    Weights are random, and the token that ends an answer is all but impossible, so that each answer has its full length and all
    differ. A coin is tossed for each attempt, so that every step updates.

    Raises:
        DataError: answers ended early, or a step had nothing to learn from.

    >>> measure(Point(width=32, layers=1, attempts=16, tokens=4)).tokens
    64.0
    """
    with tempfile.TemporaryDirectory() as place:
        steps = _Metrics()
        train(
            _run(point, Path(place) / "model"),
            Path(place) / "run",
            progress=False,
            watch=lambda run, folder, first: [steps],
            profile=True,
        )
    lines = steps.lines
    spent = np.diff([line["time/cpu"] for line in lines])
    counted = lines[1:]
    wanted = point.attempts * point.tokens
    if any(line["tokens/sampled"] != wanted or not line.get("proof/state") for line in counted):
        raise DataError(f"a step of {point} did not sample {wanted} tokens, or had nothing to learn from: {counted}")
    prefix = "time/profile_cpu/"
    parts = {name.removeprefix(prefix) for line in counted for name in line if name.startswith(prefix)}
    return Cost(
        cpu=float(spent.mean()),
        wall=float(np.mean([line["time/step"] for line in counted])),
        parts={name: float(np.mean([line.get(prefix + name, 0.0) for line in counted])) for name in sorted(parts)},
        tokens=float(wanted),
        load=load_average(),
    )


def _run(point: Point, folder: Path) -> Run:
    source = SortDigits(levels=(4,))
    _save_unending(point, folder)
    return Run(
        name="scale",
        model=Folder(str(folder)),
        tasks=Rewarded(source=source, scorer=RandomReward()),
        stages=(
            Reinforce(
                steps=STEPS,
                groups=point.attempts // GROUP,
                group_size=GROUP,
                objective=grpo(kl=0.0),
                learner=LearnerSettings(optimizer=AdamW(lr=1e-5)),
            ),
        ),
        sampling=Sampling(max_new_tokens=point.tokens),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=STEPS,
    )


def _save_unending(point: Point, folder: Path) -> None:
    """A random model that does not end: the first number of each state is large, and speaks against the token that would."""
    from assay.runtime import init_model, save_model

    tokenizer = scratch_tokenizer(Scratch())
    model = init_model(shape_of(point), tokenizer, 0)
    table = model.tensors["model.embed_tokens.weight"]
    table[:, 0] = 2.0
    table[tokenizer.eos, 0] = -2.0
    save_model(model, folder)


@dataclass(slots=True)
class _Metrics:
    """Keeps the numbers of the steps of RL."""

    lines: list[Mapping[str, float]] = field(default_factory=list[Mapping[str, float]])

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """One line."""
        if "tokens/sampled" in metrics:
            self.lines.append(metrics)

    def close(self) -> None:
        """Nothing."""


# ---- what a long run holds -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a process holds behind a step.

    Attributes:
        step: of the run.
        resident: bytes of memory.
        objects: that Python's collector knows, garbage left out.
        files, threads: open descriptors, and threads.
        cpu: seconds that the process has computed.
    """

    step: int
    resident: int
    objects: int
    files: int
    threads: int
    cpu: float


@dataclass(slots=True)
class Watch:
    """A tracker that looks at its own process every so many steps (Linux).

    >>> watch = Watch(every=2)
    >>> for step in range(5):
    ...     watch.log(step, {})
    >>> [held.step for held in watch.held], watch.held[-1].resident > 1_000_000
    ([0, 2, 4], True)
    """

    every: int
    held: list[Held] = field(default_factory=list[Held])

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Looks, where it is time."""
        if step % self.every or (self.held and self.held[-1].step == step):
            return
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        times = os.times()
        self.held.append(
            Held(
                step=step,
                resident=pages * os.sysconf("SC_PAGE_SIZE"),
                objects=len(gc.get_objects()),
                files=len(os.listdir("/proc/self/fd")),
                threads=len(os.listdir("/proc/self/task")),
                cpu=times.user + times.system,
            )
        )

    def close(self) -> None:
        """Nothing."""


def long_run(steps: int) -> Run:
    """A run of a tiny model that does all that runs do, at some ten milliseconds a step: curriculum, evaluations, checkpoints,
    attempts written at each step.
    """
    return Run(
        name="long",
        model=Scratch(
            shape=DecoderShape(
                hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=32
            )
        ),
        tasks=SortDigits(levels=(1, 2, 3)),
        stages=(Reinforce(steps=steps, groups=4, group_size=4, learner=LearnerSettings(optimizer=AdamW(lr=1e-3))),),
        sampling=Sampling(max_new_tokens=5),
        evaluation=Evaluation(every=100, per_level=3, final_per_level=4),
        checkpoint_every=100,
        rollouts_every=1,
    )
