"""Settings of models, optimisers and learners: plain values, importable without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from assay.core.errors import ConfigError
from assay.core.plan import Offers

__all__ = ["AdamW", "DecoderShape", "LearnerSettings", "Muon", "Schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """Shape of a Llama- or Qwen3-family decoder, as Hugging Face configs name it.

    Attributes:
        vocab_size, hidden_size, num_layers, num_heads, num_kv_heads, head_dim, intermediate_size: sizes.
        max_positions: longest row.
        rope_theta, norm_eps: numeric constants.
        tied: the head is the embedding.
        qk_norm: RMS norm on each query and key head (Qwen3).
    """

    vocab_size: int = 32
    hidden_size: int = 96
    num_layers: int = 3
    num_heads: int = 3
    num_kv_heads: int = 3
    head_dim: int = 32
    intermediate_size: int = 256
    max_positions: int = 128
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    tied: bool = True
    qk_norm: bool = True

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "intermediate_size", "max_positions"):
            _check(self, name, 1)
        _check(self, "num_layers", 0)
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(
                f"DecoderShape.num_heads={self.num_heads} is no multiple of num_kv_heads={self.num_kv_heads}; "
                "query heads share key-value heads evenly"
            )
        if self.head_dim % 2:
            raise ConfigError(f"DecoderShape.head_dim={self.head_dim} is odd; rotary embeddings turn pairs")

    @property
    def parameters(self) -> int:
        """Number of weights, a tied head counted once."""
        h, d = self.hidden_size, self.head_dim
        attention = h * d * (2 * self.num_heads + 2 * self.num_kv_heads) + (2 * d if self.qk_norm else 0)
        layer = attention + 3 * h * self.intermediate_size + 2 * h
        return self.vocab_size * h * (1 if self.tied else 2) + self.num_layers * layer + h


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Learning-rate factor over steps: linear warm-up, then constant, linear or cosine decay to ``floor``.

    Attributes:
        kind: ``constant``, ``linear`` or ``cosine``.
        warmup: steps of linear rise from 0.
        start: share of the total steps at which the decay begins.
        floor: last factor.

    >>> s = Schedule(kind="linear", start=0.5)
    >>> [s.factor(k, 100) for k in (0, 50, 75, 100)]
    [1.0, 1.0, 0.5, 0.0]
    """

    kind: str = "constant"
    warmup: int = 0
    start: float = 0.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("constant", "linear", "cosine"):
            raise ConfigError(f"Schedule.kind={self.kind!r}; use 'constant', 'linear' or 'cosine'")
        _check(self, "warmup", 0)
        _check(self, "start", 0, 1)
        _check(self, "floor", 0, 1)
        if self.kind == "constant" and (self.start or self.floor):
            raise ConfigError("Schedule.start and floor do nothing with kind='constant'; use 'linear' or 'cosine'")

    def factor(self, step: int, total: int) -> float:
        """Factor at a step counted from 0, in a stage of ``total`` steps."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        if self.kind == "constant" or total <= 0:
            return 1.0
        begin = max(self.start * total, float(self.warmup))
        share = min(1.0, max(0.0, (step - begin) / max(1.0, total - begin)))
        curve = 1.0 - share if self.kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * share))
        return self.floor + (1.0 - self.floor) * curve


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """AdamW (Loshchilov & Hutter 2019) with decoupled weight decay, which spares norm scales.

    Attributes:
        lr: learning rate at schedule factor 1.
        beta1, beta2: decay of the first and second moment.
        eps: added to the root of the second moment.
        weight_decay: share of a matrix removed per unit of learning rate.
    """

    lr: float = 5e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "weight_decay"):
            _check(self, name, 0)
        for name in ("beta1", "beta2"):
            _check(self, name, 0, 1, below=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Muon:
    """Muon (Jordan et al. 2024) on hidden matrices, AdamW on embeddings, norms and heads.

    Attributes:
        lr: length of a step in spectral norm, times ``sqrt(max(1, rows / columns))``.
        momentum: decay of the gradient average that five Newton-Schulz steps orthogonalise.
        nesterov: look one step ahead: mix the new gradient into the average once more.
        weight_decay: share of a matrix removed per unit of learning rate.
        others: settings for all that is no hidden matrix.
    """

    lr: float = 4e-3
    momentum: float = 0.95
    nesterov: bool = True
    weight_decay: float = 0.0
    others: AdamW = field(default_factory=lambda: AdamW(lr=4e-3))

    def __post_init__(self) -> None:
        for name in ("lr", "weight_decay"):
            _check(self, name, 0)
        _check(self, "momentum", 0, 1, below=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """How a learner steps.

    Attributes:
        optimizer: `AdamW` or `Muon`.
        schedule: learning-rate factor over the stage.
        clip_norm: global gradient norm is scaled down to this; 0 means no clipping.
        precision: ``fp32``, or ``bf16`` for autocast matrix products with fp32 master weights.
        micro_tokens: most tokens in one micro-batch; about 2,000 keep a small model's activations in a CPU's caches.
    """

    optimizer: AdamW | Muon = field(default_factory=AdamW)
    schedule: Schedule = field(default_factory=Schedule)
    clip_norm: float = 1.0
    precision: str = "fp32"
    micro_tokens: int = 2048

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16"):
            raise ConfigError(f"LearnerSettings.precision={self.precision!r}; use 'fp32' or 'bf16'")
        _check(self, "micro_tokens", 1)
        _check(self, "clip_norm", 0)

    @property
    def offers(self) -> Offers:
        """What `TorchLearner` can do for an objective; ``ref`` is a frozen copy of the weights that a stage starts from.

        >>> LearnerSettings().offers.models
        ('policy', 'ref')
        """
        return Offers(live=("logp_new", "entropy"), models=("policy", "ref"))


def _check(part: object, name: str, low: float, high: float = math.inf, *, below: bool = False) -> None:
    """Raises ConfigError unless the field is finite and in [low, high], or in [low, high) with ``below``."""
    value: float = getattr(part, name)
    if not (math.isfinite(value) and low <= value <= high) or (below and value == high):
        bounds = f"at least {low}" if math.isinf(high) else f"in [{low}, {high}{')' if below else ']'}"
        raise ConfigError(f"{type(part).__name__}.{name}={value}; use a number {bounds}")
