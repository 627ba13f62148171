"""Settings of models, optimisers and learners: plain values, importable without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import later
from assay.core.import_path import filed_as
from assay.core.plan import Offers
from assay.runtime.anchors import Anchor, check_names

__all__ = [
    "AdamW",
    "DecoderShape",
    "HubShape",
    "LearnerSettings",
    "LearningRateSchedule",
    "Lora",
    "Mesh",
    "Muon",
    "Trunk",
    "ValueHead",
]

FORMS = ("scalar", "bernoulli", "two_hot", "hl_gauss")
"""How the outputs of a value head stand for a value."""

UNBOUNDED = 1 << 20
"""Positions of a model whose config names no bound."""

_TAKEN = ("ids", "mask", "call", "weight_version", "advantage", "returns")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """Shape of a Llama- or Qwen3-family decoder, as Hugging Face configs name it.

    Attributes:
        vocab_size, hidden_size, num_layers, num_heads, num_kv_heads, head_dim, intermediate_size: sizes.
        max_positions: longest row.
        rope_theta, norm_eps: numeric constants.
        rope_pairs: pairs of dimensions of a head that turn with the position, those of the highest frequencies; the others stay
            as they are, blind to it. All of them when None.
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
    rope_pairs: int | None = None

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
        if self.rope_pairs is not None and not 0 <= self.rope_pairs <= self.head_dim // 2:
            raise ConfigError(
                f"DecoderShape.rope_pairs={self.rope_pairs}; a head of {self.head_dim} dimensions has 0 to {self.head_dim // 2} "
                "pairs to turn; None turns all"
            )

    @property
    def parameters(self) -> int:
        """Number of weights, a tied head counted once."""
        h, d = self.hidden_size, self.head_dim
        attention = h * d * (2 * self.num_heads + 2 * self.num_kv_heads) + (2 * d if self.qk_norm else 0)
        layer = attention + 3 * h * self.intermediate_size + 2 * h
        return self.vocab_size * h * (1 if self.tied else 2) + self.num_layers * layer + h


HEAD_ELEMENTS = {"cpu": 1 << 22, "cuda": 1 << 27}
"""Logits in one chunk of the head, by device: 16 MiB in fp32 stay near a CPU's caches; on CUDA 512 MiB, since each chunk reads
and writes the gradient of the head's whole weight once, which only many hundred positions outweigh."""
HEAD_ROWS = 64
"""Fewest positions in one chunk of the head, whatever the vocabulary."""


def head_rows(vocabulary: int, device: str = "cpu") -> int:
    """Most positions whose logits are computed at once.

    >>> head_rows(151936), head_rows(151936, "cuda"), head_rows(32000, "cuda")
    (64, 883, 4194)
    """
    return max(HEAD_ROWS, HEAD_ELEMENTS.get(device, HEAD_ELEMENTS["cpu"]) // vocabulary)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubShape:
    """Sizes of any other causal language model, as its Hugging Face config tells them.

    Attributes:
        architecture: class in transformers.
        vocab_size, hidden_size, num_layers, num_kv_heads, head_dim: sizes.
        max_positions: longest row.
        parameters: number of weights, tied ones counted once.
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_kv_heads: int
    head_dim: int
    max_positions: int
    parameters: int

    @staticmethod
    def of(config: Mapping[str, Any], parameters: int) -> HubShape:
        """The shape that a ``config.json`` tells, whatever a family calls its sizes.

        Raises:
            KeyError, TypeError, ValueError: it tells no such sizes.
        """
        text: Mapping[str, Any] = config.get("text_config") or config

        def size(*names: str, default: int | None = None) -> int:
            found = next((text[n] for n in names if text.get(n) is not None), default)
            if found is None:
                raise KeyError(names[0])
            if not isinstance(found, int | float):
                raise ValueError(f"{names[0]}={found!r} is no number")
            return int(found)

        hidden = size("hidden_size", "n_embd", "d_model")
        heads = size("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")
        return HubShape(
            architecture=str((config.get("architectures") or [config.get("model_type")])[0]),
            vocab_size=size("vocab_size"),
            hidden_size=hidden,
            num_layers=size("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
            num_kv_heads=size("num_key_value_heads", default=heads),
            head_dim=size("head_dim", default=hidden // heads),
            max_positions=size("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", default=UNBOUNDED),
            parameters=parameters,
        )


@filed_as("assay.runtime.settings:Schedule")
@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateSchedule:
    """Learning-rate factor over steps: linear warm-up, then constant, linear or cosine decay to ``floor``.

    Attributes:
        kind: ``constant``, ``linear`` or ``cosine``.
        warmup: steps of linear rise from 0.
        start: share of the total steps at which the decay begins.
        floor: last factor.

    >>> s = LearningRateSchedule(kind="linear", start=0.5)
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
            raise ConfigError("Schedule.start and floor do nothing with kind='constant'; set both to 0, or use another kind")

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
class ValueHead:
    """A critic: a linear head on last hidden states, the policy's or those of a `Trunk`. It is never published.

    Its outputs, with gradient, are the live column ``NAME``. The values that they stand for fill ``NAME_old`` (at the start of
    the rollout batch), ``NAME_now`` (before the step) and ``NAME_target`` (before the step, by the target weights).

    Attributes:
        name: of the column.
        form: ``scalar``: the output is the value. ``bernoulli``: the value is ``low + (high - low) sigmoid(output)``. ``two_hot``
            and ``hl_gauss``: the mean under a softmax over bins, whose centres reach from ``low`` to ``high``, or stand amid
            equal parts of that range.
        outputs: numbers per token: the bins, 1 without any.
        low, high: range of the values; a scalar has none.
        behind: False: a token's entry is the value of the state in which it is chosen, ``V(s_t)``. True: of the state behind it,
            ``Q(s_t, a_t)``.
        trunk: name of the `Trunk` whose states it reads; empty: the policy's.
        detach: its loss teaches the head alone, and nothing of the policy or trunk below it.
        init: spread of its first outputs, in units of a hidden state's norm; 0 starts every value at the middle of its range (a
            scalar at 0). Two heads that shall differ need it.
        optimizer: its own; the learner's (for `Muon` that of the other tensors) when None.
        period: it moves at every ``period``-th step; what its gradient was at the others is dropped.
        tau: target weights, which follow it by ``target += tau (head - target)`` each time it moves; 0 for none. They read the
            trunk's target weights where that has any.

    >>> ValueHead(form="hl_gauss", outputs=51, low=-0.1, high=1.1).spec
    ('hl_gauss', 51, -0.1, 1.1)
    """

    name: str = "values"
    form: str = "scalar"
    outputs: int = 1
    low: float = 0.0
    high: float = 1.0
    behind: bool = False
    trunk: str = ""
    detach: bool = False
    init: float = 0.0
    optimizer: AdamW | None = None
    period: int = 1
    tau: float = 0.0

    def __post_init__(self) -> None:
        taken = (
            self.name in _TAKEN or self.name.startswith(("logp", "entropy")) or self.name.endswith(("_old", "_now", "_target"))
        )
        if taken or not self.name.isidentifier():
            raise ConfigError(f"ValueHead.name={self.name!r} names a column of its own; use a word such as 'values'")
        if self.form not in FORMS:
            raise UnknownNameError("form of a value head", self.form, FORMS)
        if (self.outputs > 1) != (self.form in ("two_hot", "hl_gauss")) or self.outputs < 1:
            raise ConfigError(
                f"ValueHead(form={self.form!r}, outputs={self.outputs}): 'two_hot' and 'hl_gauss' have two outputs or more, "
                "'scalar' and 'bernoulli' one"
            )
        if not -math.inf < self.low < self.high < math.inf:
            raise ConfigError(f"ValueHead(low={self.low}, high={self.high}): use finite numbers, low below high")
        _check(self, "init", 0)
        _check(self, "period", 1)
        _check(self, "tau", 0, 1)

    @property
    def spec(self) -> tuple[str, int, float, float]:
        """Form, outputs and range: what a loss that fits it must agree with."""
        return ("scalar", 1, 0.0, 0.0) if self.form == "scalar" else (self.form, self.outputs, self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trunk:
    """A model of critics' own, below one head or several: it begins as a copy of the policy, and only their losses move it.

    A head on the policy's states sees what the policy needs to choose a token; whether an answer is right may not stand there.
    A trunk costs another model's memory, passes and optimiser state. It is never published.

    Attributes:
        name: of its weights and of its gradient's norm, ``grad/NAME``.
        optimizer: its own; the learner's when None.
        period: it moves at every ``period``-th step; what its gradient was at the others is dropped.
        tau: target weights, which follow it by ``target += tau (trunk - target)`` each time it moves, and which the target
            weights of its heads read; 0 for none.

    >>> LearnerSettings(trunks=(Trunk(tau=0.1),), heads=(ValueHead(trunk="critic", tau=0.1),)).offers.targets
    ('values',)
    """

    name: str = "critic"
    optimizer: AdamW | Muon | None = None
    period: int = 1
    tau: float = 0.0

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ConfigError(f"Trunk.name={self.name!r} is no word; use one such as 'critic'")
        _check(self, "period", 1)
        _check(self, "tau", 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Low-rank adapters (Hu et al. 2021) on linear layers: they are trained, the base stays as it is. By PEFT.

    A layer's output gains ``scale * B(A(x))``, ``scale = alpha / rank`` (``alpha / sqrt(rank)`` with ``rslora``). ``B`` begins as
    zero, so that the adapted model begins as the base; ``A`` is drawn by a seed of its own and the layer's name.

    Attributes:
        rank: of the matrices.
        alpha: scale times rank.
        targets: last parts of the names of the layers that are adapted; empty: all linear layers but the head.
        dora: also learn the length of each row (weight-decomposed, Liu et al. 2024).
        rslora: scale by the root of the rank (Kalajdzievski 2023).
        seed: of ``A``.

    >>> Lora(rank=16).alpha
    32.0
    """

    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = ()
    dora: bool = False
    rslora: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self, "rank", 1)
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise ConfigError(f"Lora.alpha={self.alpha}; use a number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """How many processes share a learner: `assay.runtime.MeshLearner`, with FSDP2. All of them share weights and optimiser state.

    Attributes:
        data: ranks, or sets of ranks, over which the rows of a batch are distributed.
        context: ranks in each set, which share the tokens of its rows: for rows too long for one.
        timeout: seconds that a rank waits for the others within a call.

    All are on this machine; on CUDA each has a device of its own.

    >>> Mesh(data=2, context=2).size
    4
    """

    data: int = 1
    context: int = 1
    timeout: float = 600.0

    def __post_init__(self) -> None:
        _check(self, "data", 1)
        _check(self, "context", 1)
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ConfigError(f"Mesh.timeout={self.timeout} s; use a number above 0")

    @property
    def size(self) -> int:
        """Ranks in all; 1 is this process alone."""
        return self.data * self.context

    def check(self, settings: LearnerSettings) -> None:
        """Refuses a learner that cannot be shared.

        Raises:
            ConfigError: its optimiser needs whole matrices, its layers are compiled, or its critics or anchors read what lies on
                another rank.
        """
        if self.size > 1 and isinstance(settings.optimizer, Muon):
            raise ConfigError(
                f"Run.mesh has {self.size} ranks, and LearnerSettings.optimizer is Muon(): Muon steps whole matrices, and each "
                "rank has a part of them; use AdamW(), or Mesh()"
            )
        if self.size > 1 and settings.compile:
            raise ConfigError(
                f"Run.mesh has {self.size} ranks, and LearnerSettings.compile is on: layers that lie in parts are not compiled; "
                "leave it out, or use Mesh()"
            )
        if self.context == 1:
            return
        for what, found in (("heads", settings.heads), ("privileged anchors", [a for a in settings.anchors if a.privileged])):
            if found:
                raise ConfigError(
                    f"Run.mesh.context={self.context} with {what} ({', '.join(p.name for p in found)}): they read what lies "
                    "on another rank; use Mesh(data=...)"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """How a learner steps.

    Attributes:
        optimizer: `AdamW` or `Muon`.
        schedule: learning-rate factor over the stage.
        clip_norm: global gradient norm is scaled down to this; 0 means no clipping.
        precision: ``fp32``, or ``bf16`` for autocast matrix products with fp32 master weights; weights that an adapter leaves
            frozen are then held in bf16.
        adapter: train a `Lora` instead of all weights.
        checkpointing: keep only the layers' inputs and compute the rest again in the backward pass: less memory, more time.
        kernel: compute float32 passes of assay's own decoder, and optimisers' steps on a CPU, by the library that is compiled for
            this processor on first use, where there is a C++ compiler: the same up to rounding as with PyTorch, but faster.
        compile: compile the layers (`assay.runtime.kernels.compile`): worth its minutes on CUDA, in bf16 and in long runs alone.
            Their activations take about six tenths of the memory.
        replay_routing: of a mixture of experts, send each token where the engine sent it, wherever that is known; gates' weights
            are computed anew and learn. The engine then tells of it (the column ``routed_experts``), or the run is refused.
        device: where it computes: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.
        micro_tokens: most tokens in one micro-batch. More take more memory, and each micro-batch costs a little by itself. In the
            compiled passes two threads have work from 2,048 on, four from 4,096, eight from 8,192; several ranks share out whole
            micro-batches.
        anchors: weights beside the policy's that columns are computed with: the reference, teachers, lagged copies. By default
            ``ref``, what the stage starts from, frozen.
        heads: critics, trained in the same gradient pass. Each one's gradient is clipped and applied by itself.
        trunks: models of the critics' own, which heads read that name them.
        policy_after: steps at the start of a stage in which only the heads move.
        policy_every: from then on the policy moves at every ``policy_every``-th step, the heads at each.
    """

    optimizer: AdamW | Muon = field(default_factory=AdamW)
    schedule: LearningRateSchedule = field(default_factory=LearningRateSchedule)
    clip_norm: float = 1.0
    precision: str = "fp32"
    adapter: Lora | None = None
    checkpointing: bool = False
    kernel: bool = later(True)
    compile: bool = later(False)
    replay_routing: bool = False
    device: str = "cpu"
    micro_tokens: int = 4096
    anchors: tuple[Anchor, ...] = (Anchor(),)
    heads: tuple[ValueHead, ...] = ()
    trunks: tuple[Trunk, ...] = ()
    policy_after: int = 0
    policy_every: int = 1

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16"):
            raise ConfigError(f"LearnerSettings.precision={self.precision!r}; use 'fp32' or 'bf16'")
        if self.device not in ("cpu", "cuda", "auto"):
            raise ConfigError(f"LearnerSettings.device={self.device!r}; use 'cpu', 'cuda' or 'auto'")
        if self.compile and (self.checkpointing or self.precision == "fp32"):
            what = "checkpointing=True" if self.checkpointing else "precision='fp32'"
            raise ConfigError(
                f"LearnerSettings(compile=True, {what}): layers are compiled for bf16, and not where they are computed again; "
                "leave one of them out"
            )
        _check(self, "micro_tokens", 1)
        _check(self, "clip_norm", 0)
        _check(self, "policy_after", 0)
        _check(self, "policy_every", 1)
        check_names(self.anchors)
        names = [part.name for part in (*self.heads, *self.trunks)]
        if len(set(names)) < len(names):
            raise ConfigError(f"LearnerSettings.heads and trunks are called {names}; give each a name of its own")
        self._check_trunks()
        if (self.policy_after or self.policy_every > 1) and not self.heads:
            raise ConfigError(
                f"LearnerSettings(policy_after={self.policy_after}, policy_every={self.policy_every}): without heads nothing "
                "would move at the steps between; leave both at their defaults or give heads=(ValueHead(),)"
            )

    def _check_trunks(self) -> None:
        """Refuses heads without the trunk that they name, and trunks that would stay as they are or keep what nobody reads."""
        names = [t.name for t in self.trunks]
        for head in self.heads:
            if head.trunk and head.trunk not in names:
                raise ConfigError(
                    f"ValueHead(name={head.name!r}, trunk={head.trunk!r}): LearnerSettings.trunks are {names}; give "
                    f"trunks=(Trunk(name={head.trunk!r}),)"
                )
        for trunk in self.trunks:
            mine = [h for h in self.heads if h.trunk == trunk.name]
            if all(h.detach for h in mine):
                raise ConfigError(
                    f"Trunk(name={trunk.name!r}): no head teaches it, so it would stay as it is; give "
                    f"heads=(ValueHead(trunk={trunk.name!r}),), detach=False"
                )
            if trunk.tau and not any(h.tau for h in mine):
                raise ConfigError(
                    f"Trunk(name={trunk.name!r}, tau={trunk.tau}): none of its heads has target weights, so nothing would read "
                    "the trunk's; give one a tau too"
                )

    @property
    def offers(self) -> Offers:
        """What `TorchLearner` can do for an objective: each anchor is a model beside the policy, each head a live column.

        >>> LearnerSettings(anchors=(Anchor(), Anchor("teacher", model="runs/teacher"))).offers.models
        ('policy', 'ref', 'teacher')
        """
        return Offers(
            live=("logp_new", "entropy", *(h.name for h in self.heads)),
            models=("policy", *(a.name for a in self.anchors)),
            heads={h.name: h.spec for h in self.heads},
            targets=tuple(h.name for h in self.heads if h.tau),
        )


def _check(part: object, name: str, low: float, high: float = math.inf, *, below: bool = False) -> None:
    """Raises ConfigError unless the field is finite and in [low, high], or in [low, high) with ``below``."""
    value: float = getattr(part, name)
    if not (math.isfinite(value) and low <= value <= high) or (below and value == high):
        bounds = f"at least {low}" if math.isinf(high) else f"in [{low}, {high}{')' if below else ']'}"
        raise ConfigError(f"{type(part).__name__}.{name}={value}; use a number {bounds}")
