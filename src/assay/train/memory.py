"""How much memory a stage takes, part by part, and what would make it less: arithmetic over shapes, without torch.

What a gradient pass keeps of a micro-batch is told from the matrices of the layers: each keeps its input, and what follows keeps
its output. Per token that is ``c * sum(inputs + outputs)`` bytes, with ``c`` of 5 in float32 and 3.5 under bfloat16 autocast, 4.4
and 3 where an adapter leaves the matrices frozen: norms, residuals and gates come on top of the 4 or 2 of a plain sum. The ``c``
are measured on random models of twelve families and hold within a factor of 1.5 (``tests/train/test_memory.py`` counts the bytes
that live). For comparison: Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", count ``34
h`` bytes a token for a layer of GPT in 16 bits, whose sum is ``18 h``: 1.9 each, without what a float32 residual stream adds.

assay's compiled passes keep less: the stream twice, what attention reads and gives, and the gates; of what the engine has kept
(`Native.recall`) nothing. Beside that they hold the weights packed for either pass, and as many sums of gradients as a
micro-batch has thousands of tokens, eight at most.

With checkpointing the input of each layer is kept, ``4 h`` bytes, and one layer at a time is computed again. Attention with soft
caps (Gemma 2) keeps three and a half matrices ``[heads, row, row]`` of scores besides. Compiled layers keep six tenths: the
compiler computes again what is cheap (measured with inductor on a CPU, on Qwen3 and GPT-2; ``unverified`` on CUDA).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from assay.core.errors import DataError
from assay.runtime.engine.settings import EngineFootprint, EngineSpec, LocalEngineSpec
from assay.runtime.settings import DecoderShape, HubShape, LearnerSettings, Lora, Muon, head_rows
from assay.train.async_checks import own_engine
from assay.train.run import Run
from assay.train.sampler_memory import sampler_memory
from assay.train.stage import Stage
from assay.train.stage_learner import learner_of

__all__ = [
    "MemoryEstimate",
    "WeightSizes",
    "activations_of",
    "head_of",
    "memory_of",
    "savings",
    "sizes_of",
    "weights_in",
    "weights_of",
]

_FLOAT, _HALF = 4, 2
_IN_LAYER = re.compile(r"\.\d+\.")


_KEPT = {("fp32", False): 5.0, ("bf16", False): 3.5, ("fp32", True): 4.4, ("bf16", True): 3.0}
"""Bytes per token and number in and out of the layers' matrices, by precision and whether an adapter is trained."""
_COMPILED = 0.6
"""Share of that which compiled layers keep."""
_SCORES = 3.5
"""Matrices of scores that attention with soft caps keeps."""
_BLOCK, _LANE, _LANES = 384, 1024, 8
"""Tokens that compiled passes take through all layers at once, those that are worth a sum of gradients, and most such sums."""
_LINE = 16
"""Numbers of a line of memory, and tokens for whose states room is made at once."""
_SMALL, _POSITIONS, _PRODUCTS = 4096, 96, 1 << 24
"""Of the compiled head: tokens of the largest vocabulary, positions at once, and products that are worth a sum of gradients."""
_CHUNKS = 4
"""Chunks of logits that live together in the head's backward pass, with entropies or other statistics; two without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes that training needs in this process; where ranks share the learner, rank 0, which has its part and the engine.

    Attributes:
        weights, gradients, optimiser, anchors: of the learner, critics' trunks included.
        activations: of a micro-batch of `LearnerSettings.micro_tokens`, in the gradient pass.
        head: a chunk of logits, and the gradient of the head's weights, as far as these need more than a layer does.
        engine: its weights, with those that wait there under a `Reinforce.lag`.
        cache: the most keys and values that the engine can need.
        recalled: states of sampled tokens that wait for the gradient pass (`Native.recall`), at most.
        samplers: of all processes of this machine that sample beside learning, and the weights that wait for them.
    """

    weights: int
    gradients: int
    optimiser: int
    anchors: int
    activations: int
    head: int
    engine: int
    cache: int
    recalled: int
    samplers: int = 0

    @property
    def total(self) -> int:
        """The sum."""
        return sum(asdict(self).values())

    @property
    def parts(self) -> dict[str, int]:
        """By name for people."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimiser": self.optimiser,
            "anchors": self.anchors,
            "activations of a micro-batch, about": self.activations,
            "logits beyond that": self.head,
            "engine's weights": self.engine,
            "key-value cache at most": self.cache,
            "states of sampled tokens at most": self.recalled,
            **({"sampler processes at most": self.samplers} if self.samplers else {}),
        }


@dataclass(frozen=True, slots=True)
class WeightSizes:
    """What is known of a model's weights without reading them.

    Attributes:
        count: all of them.
        linear: name, outputs and inputs of the matrices in numbered layers.
        share: of its experts' matrices that a token meets.
        capped: heads of attention with soft caps; 0 without.
    """

    count: int
    linear: tuple[tuple[str, int, int], ...]
    share: float = 1.0
    capped: int = 0

    def trainable_count(self, adapter: Lora | None) -> int:
        """Weights that learn: an adapter's, or all."""
        if adapter is None:
            return self.count
        chosen = [(o, i) for name, o, i in self.linear if not adapter.targets or name.split(".")[-2] in adapter.targets]
        return sum(adapter.rank * (o + i) + (o if adapter.dora else 0) for o, i in chosen)

    @property
    def met(self) -> float:
        """Numbers that go into the matrices of all layers and come out of them, for one token."""
        return sum((o + i) * (self.share if ".experts." in name else 1.0) for name, o, i in self.linear)

    @property
    def hidden(self) -> int:
        """Weights in those matrices."""
        return sum(o * i for _, o, i in self.linear)


def weights_of(shape: DecoderShape) -> WeightSizes:
    """Of assay's own decoder."""
    h, d, m = shape.hidden_size, shape.head_dim, shape.intermediate_size
    q, kv = shape.num_heads * d, shape.num_kv_heads * d
    one = {"q_proj": (q, h), "k_proj": (kv, h), "v_proj": (kv, h), "o_proj": (h, q), "gate_proj": (m, h), "up_proj": (m, h)}
    layer = [(f"{name}.weight", o, i) for name, (o, i) in {**one, "down_proj": (h, m)}.items()]
    return WeightSizes(shape.parameters, tuple(layer * shape.num_layers))


def weights_in(folder: Path) -> WeightSizes:
    """Of a model folder, from the headers of its safetensors files.

    Raises:
        DataError: there are none, or one is damaged.
    """
    shapes = dict(_headers(folder))
    if not shapes:
        raise DataError(f"{folder} has no *.safetensors; save the model with save_pretrained")
    return sizes_of(shapes, _config(folder))


def sizes_of(shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> WeightSizes:
    """Of tensors by their names.

    Args:
        shapes: of all weights.
        config: what ``config.json`` says of experts and soft caps.

    >>> sizes_of({"layers.0.up.weight": (8, 4), "norm.weight": (4,)}, {}).count
    36
    """
    count = sum(_product(size) for size in shapes.values())
    experts = config.get("num_local_experts") or config.get("num_experts")
    share = float(config.get("num_experts_per_tok") or 1) / float(experts) if experts else 1.0
    capped = int(config.get("num_attention_heads") or 0) if config.get("attn_logit_softcapping") else 0
    linear = [(name, *size) for name, size in shapes.items() if len(size) == 2 and _IN_LAYER.search(name)]
    return WeightSizes(count, tuple((str(n), int(o), int(i)) for n, o, i in linear), share, capped)


def _config(folder: Path) -> Mapping[str, Any]:
    """What the model's config says; nothing where it is damaged, which others will say."""
    try:
        found: Any = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    inner: Any = cast("Mapping[str, Any]", found).get("text_config") if isinstance(found, Mapping) else None
    return cast("Mapping[str, Any]", inner if isinstance(inner, Mapping) else found if isinstance(found, Mapping) else {})


def _headers(folder: Path) -> Iterable[tuple[str, tuple[int, ...]]]:
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with path.open("rb") as file:
                header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        except (OSError, ValueError, MemoryError) as error:
            raise DataError(f"{path} is truncated or damaged ({error}); copy it again from its source") from error
        yield from ((name, tuple(info["shape"])) for name, info in header.items() if name != "__metadata__")


def _product(size: tuple[int, ...]) -> int:
    out = 1
    for n in size:
        out *= n
    return out


def memory_of(
    run: Run, stage: Stage, shape: DecoderShape | HubShape, weights: WeightSizes, others: int, evaluated: int
) -> MemoryEstimate:
    """Bytes of a stage, by part.

    Args:
        run, stage: settings.
        shape, weights: of the model.
        others: weights of the models that anchors name, together.
        evaluated: rollouts of the largest evaluation.
    """
    learner = learner_of(run, stage)
    trained = weights.trainable_count(learner.adapter)
    trunks = len(learner.trunks) * weights.count
    moments, ranks = 2 * trained, run.mesh.size
    if isinstance(learner.optimizer, Muon):  # one momentum for hidden matrices
        moments -= weights.hidden if learner.adapter is None else trained
    beside = sum(1 for a in learner.anchors if not a.model)
    groups, size = stage.sampled
    engine = _engine(own_engine(run, stage), learner, shape)
    rows = min(engine.max_batch, max(evaluated, groups * size))
    per_token = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim
    here, served = bool(engine.weight), engine.weight
    shared = learner.adapter is None or served == _frozen_bytes(learner)
    own = _FLOAT * weights.count if learner.adapter is None else _frozen_bytes(learner) * weights.count + _FLOAT * trained
    return MemoryEstimate(
        weights=own // ranks + _FLOAT * sum(weights.count * (1 + bool(t.tau)) for t in learner.trunks),
        gradients=_FLOAT * (trained // ranks + trunks),
        optimiser=_FLOAT * (moments // ranks + 2 * trunks),
        anchors=_FLOAT * (trained * beside + others) // ranks,
        activations=activations_of(learner, shape, weights) // run.mesh.context,
        head=head_of(learner, shape, weights),
        engine=engine.packed * weights.count
        + here
        * (
            (served if learner.adapter is None else _FLOAT) * trained * (1 + (stage.lag + 1 if stage.lag else 0))
            if shared
            else served * weights.count + _FLOAT * trained
        ),
        cache=served * rows * engine.context * per_token,
        recalled=_recalled_bytes(run, stage, shape, engine.recall),
        samplers=sampler_memory(stage, engine, weights.count, trained, per_token),
    )


def _recalled_bytes(run: Run, stage: Stage, shape: DecoderShape | HubShape, most: int) -> int:
    """Bytes of states that the native engine keeps of a step's rollouts and of their prompts, all as long as can be."""
    groups, size = stage.sampled
    learner = stage.learner
    if not (
        most
        and groups
        and run.mesh.size == 1
        and not (stage.lag or stage.asynchronous)
        and isinstance(shape, DecoderShape)
        and _compiled(learner)
    ):
        return 0

    def up(n: int) -> int:
        return -(-n // _LINE) * _LINE

    q, kv = shape.num_heads * shape.head_dim, 2 * shape.num_kv_heads * shape.head_dim
    layer = 2 * up(shape.hidden_size) + up(q + kv) + up(q) + up(2 * shape.intermediate_size)
    token = _FLOAT * (shape.num_layers * layer + up(shape.hidden_size))
    new = run.sampling.max_new_tokens
    tokens = groups * (size * up(new) + up(shape.max_positions - new))
    return min(most, tokens * token)


def activations_of(learner: LearnerSettings, shape: DecoderShape | HubShape, weights: WeightSizes) -> int:
    """Bytes that the gradient pass of a micro-batch needs; see the module's text."""
    kept, passing = _activations(learner, shape, weights)
    casts = _HALF * weights.hidden if learner.precision == "bf16" and learner.adapter is None else 0  # autocast's copies
    return kept + passing + casts


def _activations(learner: LearnerSettings, shape: DecoderShape | HubShape, weights: WeightSizes) -> tuple[int, int]:
    """Bytes of a micro-batch that are kept until its backward pass, and those that come and go in it."""
    tokens = learner.micro_tokens
    if isinstance(shape, DecoderShape) and _compiled(learner):
        return _compiled_activations(tokens, shape)
    layers = _KEPT[learner.precision, learner.adapter is not None] * weights.met * (_COMPILED if learner.compile else 1.0)
    layers += _SCORES * _FLOAT * weights.capped * min(tokens, shape.max_positions) * shape.num_layers
    passing = float(_FLOAT * max((o + i for _, o, i in weights.linear), default=0))
    if learner.checkpointing:
        passing += layers / max(1, shape.num_layers)
        layers = _FLOAT * shape.hidden_size * shape.num_layers
    states = 3 * _FLOAT * shape.hidden_size  # the embedding, the last norm, what the head reads
    return int(tokens * (layers + states)), int(tokens * passing)


def _compiled(learner: LearnerSettings) -> bool:
    """Whether the passes of assay's own decoder are the compiled ones, where there is a compiler."""
    plain = learner.adapter is None and learner.precision == "fp32" and not (learner.checkpointing or learner.compile)
    return learner.kernel and plain and not _on_cuda(learner)


def _compiled_activations(tokens: int, shape: DecoderShape) -> tuple[int, int]:
    """As `_activations`, of the compiled passes on one thread; a row in memory ends on whole vectors, and one more."""

    def wide(n: int) -> int:
        return -(-n // 32) * 32 + 16

    h, m, q = wide(shape.hidden_size), wide(shape.intermediate_size), wide(shape.num_heads * shape.head_dim)
    kv = shape.num_kv_heads * shape.head_dim
    qkv, both = wide(shape.num_heads * shape.head_dim + 2 * kv), wide(2 * shape.intermediate_size)
    kept = shape.num_layers * (2 * h + qkv + q + both) + 4 * h  # states behind the last layer, and their gradients
    passing = min(tokens, _BLOCK) * (3 * h + 2 * m + both + q + 3 * qkv + 2 * kv)
    lanes = max(1, min(_LANES, tokens // _LANE))
    copies = 3 + (1 << lanes.bit_length() - 1)  # packed for either pass, sums, and gradients as they are handed over
    return _FLOAT * (tokens * kept + passing + copies * shape.parameters), 0  # what was made once is kept


def head_of(learner: LearnerSettings, shape: DecoderShape | HubShape, weights: WeightSizes) -> int:
    """Bytes of the logits that live at once, and of the head's gradient before it is added, beyond what layers need later on.

    Of log-probabilities and entropies; other statistics of a small vocabulary take some megabytes more.
    """
    cuda = _on_cuda(learner)
    if isinstance(shape, DecoderShape) and learner.kernel and not cuda and shape.vocab_size <= _SMALL:
        matrix = shape.vocab_size * shape.hidden_size
        copies = 2 + max(1, min(_LANES, learner.micro_tokens * matrix // _PRODUCTS))  # packed, sums, and as it is handed over
        needed = 2 * _POSITIONS * shape.vocab_size + copies * matrix
        return max(0, _FLOAT * needed - _activations(learner, shape, weights)[1])
    chunk = min(learner.micro_tokens, head_rows(shape.vocab_size, "cuda" if cuda else "cpu")) * shape.vocab_size
    matrix = shape.vocab_size * shape.hidden_size if learner.adapter is None else 0
    rounded = _HALF * matrix if cuda and learner.precision == "bf16" else 0  # the weight as products take it there
    return max(0, _FLOAT * (_CHUNKS * chunk + matrix) + rounded - _activations(learner, shape, weights)[1])


def savings(
    run: Run, stage: Stage, shape: DecoderShape | HubShape, weights: WeightSizes, others: int, evaluated: int
) -> list[tuple[str, int]]:
    """Settings that would take less memory, and how many bytes less each, most first; arguments as those of `memory_of`.

    What saves less than a hundredth of the whole is left out.
    """
    learner = stage.learner
    now = memory_of(run, stage, shape, weights, others, evaluated).total
    micro, engine = max(1, learner.micro_tokens // 2), run.engine
    tried: list[tuple[str, Run, Stage]] = [(f"micro_tokens={micro}", run, _with(stage, micro_tokens=micro))]
    if not learner.checkpointing:
        tried.append(("checkpointing=True", run, _with(stage, checkpointing=True)))
    if learner.adapter is None and not learner.trunks:
        tried.append(("adapter=Lora(rank=16)", run, _with(stage, adapter=Lora(rank=16))))
    if learner.precision == "fp32":
        tried.append(("precision='bf16'", run, _with(stage, precision="bf16")))
    if isinstance(engine, LocalEngineSpec):
        tried += [(name, replace(run, engine=less), stage) for name, less in engine.smaller()]
    tried += [(name, run, less) for name, less in stage.smaller()]
    found = [(name, now - memory_of(r, s, shape, weights, others, evaluated).total) for name, r, s in tried]
    return sorted((f for f in found if f[1] > now / 100), key=lambda f: -f[1])


def _with(stage: Stage, **changes: Any) -> Stage:
    return replace(stage, learner=replace(stage.learner, **changes))


def _on_cuda(learner: LearnerSettings) -> bool:
    """Where the learner computes; ``auto`` as this machine has it."""
    if learner.device != "auto":
        return learner.device == "cuda"
    from assay.runtime.machine import gpus

    return bool(gpus())


def _frozen_bytes(learner: LearnerSettings) -> int:
    return _HALF if learner.precision == "bf16" else _FLOAT


def _engine(spec: EngineSpec, learner: LearnerSettings, shape: DecoderShape | HubShape) -> EngineFootprint:
    """What the engine takes; nothing where it is elsewhere: a server's memory is its own."""
    if not isinstance(spec, LocalEngineSpec):
        return EngineFootprint(max_batch=0, weight=0, packed=0, context=0)
    own = isinstance(shape, DecoderShape)
    return spec.footprint(shape.max_positions, own=own, adapter=learner.adapter is not None, cuda=_on_cuda(learner))
