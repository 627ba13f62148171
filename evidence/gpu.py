"""Arithmetic of the measurements on a GPU: shapes, work, floating-point operations, peaks, medians, and records of rows.

``benchmarks/gpu.py`` measures and writes one record per row; `evidence.gpu_page` makes the page of them. Nothing here needs
torch or a GPU.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.core import DataError, UnknownNameError
from assay.runs import read_json, write_json
from assay.runtime import DecoderShape
from assay.train import weights_of

__all__ = [
    "KINDS",
    "PEAKS",
    "SHAPES",
    "WORK",
    "Row",
    "Spread",
    "Work",
    "recorded_row",
    "mfu",
    "peak_of",
    "record",
    "rows_of",
    "training_flops",
]

_QWEN3: dict[str, Any] = {
    "vocab_size": 151936,
    "num_layers": 28,
    "num_heads": 16,
    "num_kv_heads": 8,
    "head_dim": 128,
    "max_positions": 4096,
    "rope_theta": 1e6,
}
SHAPES: Mapping[str, DecoderShape] = {
    "0.6B": DecoderShape(hidden_size=1024, intermediate_size=3072, **_QWEN3),
    "1.7B": DecoderShape(hidden_size=2048, intermediate_size=6144, **_QWEN3),
    "tiny": DecoderShape(
        vocab_size=512,
        hidden_size=64,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        intermediate_size=128,
        max_positions=128,
    ),
}
"""Sizes of Qwen3-0.6B and Qwen3-1.7B, whose positions are cut to what is measured, and one with which a CPU tries the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is done in each repeat of a row.

    Attributes:
        batch: rollouts that are decoded at once, each at a prompt of its own.
        prompt, answer: tokens of each; no answer ends before.
        groups, group_size: of a step of reinforcement learning.
        rows, length: of a step that only trains; the first eighth of a row is its prompt, which carries no loss.
        micro: tokens of a micro-batch.
        repeats: measured ones; one more before them warms up.

    Raises:
        DataError: a step's rollouts do not go into micro-batches of equal size, so that another trainer would do other work.
    """

    batch: int
    prompt: int
    answer: int
    groups: int
    group_size: int
    rows: int
    length: int
    micro: int
    repeats: int

    def __post_init__(self) -> None:
        if self.micro_rows < 1 or self.rollouts % self.micro_rows:
            raise DataError(
                f"Work.micro={self.micro}: {self.rollouts} rollouts of {self.prompt} + {self.answer} tokens do not go into equal "
                "micro-batches; choose a multiple of the tokens of a rollout whose quotient divides the rollouts"
            )

    @property
    def rollouts(self) -> int:
        """Of a step."""
        return self.groups * self.group_size

    @property
    def micro_rows(self) -> int:
        """Rollouts in a micro-batch."""
        return self.micro // (self.prompt + self.answer)


_REAL = Work(batch=64, prompt=256, answer=256, groups=8, group_size=8, rows=16, length=2048, micro=8192, repeats=6)
WORK: Mapping[str, Work] = {
    "0.6B": _REAL,
    "1.7B": _REAL,
    "tiny": Work(batch=4, prompt=16, answer=8, groups=2, group_size=2, rows=4, length=32, micro=48, repeats=2),
}

KINDS: Mapping[str, str] = {
    "decode": "the engine in process",
    "decode-compiled": "the engine in process, its step compiled",
    "train": "forward and backward passes of the learner",
    "train-compiled": "forward and backward passes of the learner, its layers compiled",
    "step": "assay's loop",
    "step-compiled": "assay's loop, the engine's step compiled",
    "trl": "TRL's GRPOTrainer, `generate`",
    "trl-static": "TRL's GRPOTrainer, `generate` with a static cache, bf16 weights",
    "trl-batch": "TRL's GRPOTrainer, `generate_batch`, bf16 weights",
}
"""Kind of row to what it measures, in the order in which they are measured."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: a kind at a size."""

    kind: str
    size: str

    @property
    def name(self) -> str:
        """Of its record's file."""
        return f"{self.kind}-{self.size}"


def rows_of(asked: Sequence[str], sizes: Sequence[str]) -> tuple[Row, ...]:
    """The rows of some kinds at some sizes, or single ones by their name, in the order of `KINDS` and of the sizes.

    Raises:
        UnknownNameError: no such kind, row or size.

    >>> [row.name for row in rows_of(["train", "decode-1.7B"], ["0.6B"])]
    ['decode-1.7B', 'train-0.6B']
    """
    for size in sizes:
        if size not in SHAPES:
            raise UnknownNameError("size", size, SHAPES)
    every = {Row(kind, size).name: Row(kind, size) for kind in KINDS for size in SHAPES}
    for name in asked:
        if name not in KINDS and name not in every:
            raise UnknownNameError("row", name, [*KINDS, *every])
    return tuple(r for r in every.values() if r.name in asked or (r.kind in asked and r.size in sizes))


# ---- arithmetic


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some repeats, and an interval for the true one: the range of what was seen.

    The range of ``n`` independent repeats misses the median of what they are drawn from with probability ``2 ** (1 - n)``, when
    all lie on one side of it (David & Nagaraja 2003, "Order Statistics", section 7.1): six cover it with 97 %.

    >>> found = Spread((3.0, 1.0, 2.0, 5.0))
    >>> found.median, found.low, found.high, found.confidence
    (2.5, 1.0, 5.0, 0.875)
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise DataError(f"a median of {len(self.values)} repeats has no interval; measure at least two")

    @property
    def median(self) -> float:
        """Of the repeats."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    @property
    def confidence(self) -> float:
        """With which the interval covers the median."""
        return 1.0 - 2.0 ** (1 - len(self.values))


def training_flops(shape: DecoderShape, lengths: Iterable[int], read: int) -> float:
    """Floating-point operations of a forward and a backward pass.

    A weight of a matrix costs 2 per token in the forward pass and twice that in the backward pass (Kaplan et al. 2020, "Scaling
    Laws for Neural Language Models", section 2.1); attention costs 4 per head, dimension and pair of query and key, and twice
    that (Chowdhery et al. 2022, "PaLM", appendix B, there for all pairs). Here a query has the keys up to its own alone, the head
    works at those tokens alone that it is read at, and looking an embedding up costs nothing. What is computed a second time is
    not counted.

    Args:
        shape: of the decoder.
        lengths: of the rows.
        read: tokens whose log-probability is read.

    >>> one = {"num_layers": 1, "num_heads": 1, "num_kv_heads": 1, "head_dim": 4}
    >>> small = DecoderShape(vocab_size=10, hidden_size=4, intermediate_size=8, **one)
    >>> matrices, head, attention = 4 * 4 * 4 + 3 * 4 * 8, 10 * 4, 4 * (1 + 2 + 3)
    >>> training_flops(small, [3], 2) == 6 * matrices * 3 + 6 * head * 2 + 12 * attention
    True
    """
    rows = list(lengths)
    pairs = sum(n * (n + 1) // 2 for n in rows)
    matrices = 6.0 * weights_of(shape).hidden * sum(rows) + 6.0 * shape.vocab_size * shape.hidden_size * read
    return matrices + 12.0 * shape.num_layers * shape.num_heads * shape.head_dim * pairs


PEAKS: tuple[tuple[str, float], ...] = (
    ("NVIDIA B200", 2250e12),
    ("NVIDIA GH200", 989e12),
    ("NVIDIA H200 NVL", 835e12),
    ("NVIDIA H200", 989e12),
    ("NVIDIA H100 NVL", 835e12),
    ("NVIDIA H100 PCIe", 756e12),
    ("NVIDIA H100", 989e12),
    ("NVIDIA A100", 312e12),
    ("NVIDIA L40S", 362e12),
    ("NVIDIA L4", 121e12),
    ("NVIDIA GeForce RTX 4090", 165e12),
)
"""Dense bfloat16 operations per second by the beginning of a device's name: the vendor's data sheets, the first that fits."""


def peak_of(device: str) -> float | None:
    """Peak of a device by its name as CUDA tells it; None of one that is not known here.

    >>> peak_of("NVIDIA H100 80GB HBM3"), peak_of("NVIDIA L40S"), peak_of("Acme 9000")
    (989000000000000.0, 362000000000000.0, None)
    """
    return next((peak for name, peak in PEAKS if device == name or device.startswith((f"{name} ", f"{name}-"))), None)


def mfu(flops: float, seconds: float, device: str) -> float | None:
    """Model FLOPs utilisation (Chowdhery et al. 2022): operations per second over the device's peak; None where that is unknown.

    >>> mfu(989e12, 2.0, "NVIDIA H200")
    0.5
    """
    peak = peak_of(device)
    return None if peak is None else flops / seconds / peak


# ---- records


def record(folder: Path, row: Row, work: Work, where: Mapping[str, Any], numbers: Mapping[str, Any]) -> Path:
    """Writes what was measured of a row.

    Args:
        folder: of the records.
        row, work: what was measured.
        where: ``device`` (``cuda`` or ``cpu``), ``gpu`` (its name), and versions.
        numbers: plain JSON.

    Raises:
        DataError: a number that is NaN or infinite.
    """
    for name, value in _numbers(numbers):
        if not math.isfinite(value):
            raise DataError(f"{row.name}: {name} is {value}; nothing is written")
    path = folder / f"{row.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, {"row": row.name, "work": asdict(work), "where": dict(where), "numbers": dict(numbers)})
    return path


def _numbers(value: Any, name: str = "a number") -> Iterable[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _numbers(inner, str(key))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list | tuple):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _numbers(inner, name)
    elif isinstance(value, float):
        yield name, value


def recorded_row(folder: Path, row: Row, work: Work, where: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The record of a row, if it was measured with the same work on such a device with these versions; else None: measure it."""
    path = folder / f"{row.name}.json"
    if not path.exists():
        return None
    found: Mapping[str, Any] = read_json(path)
    return found if found.get("work") == asdict(work) and found.get("where") == dict(where) else None
