"""How much memory a stage takes, part by part: arithmetic over the shapes of its weights, without torch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.core.errors import DataError
from assay.runtime.engines import Auto, InProcess, Native
from assay.runtime.settings import DecoderShape, HubShape, LearnerSettings, Lora, Muon
from assay.train.run import Reinforce, Run, Stage, learner_of

__all__ = ["Memory", "Weights", "memory_of", "weights_in", "weights_of"]

_FLOAT, _HALF = 4, 2
_ENGINE_ROWS = 512  # most rows that the native engine decodes at once
_IN_LAYER = re.compile(r"\.\d+\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes that training needs, without the activations of a micro-batch; ``cache`` is the most that the engine can need,
    ``engine`` holds the weights that wait there under a `Reinforce.lag` too.
    """

    weights: int
    gradients: int
    optimiser: int
    anchors: int
    engine: int
    cache: int

    @property
    def total(self) -> int:
        """The sum."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class Weights:
    """What is known of a model's weights without reading them.

    Attributes:
        count: all of them.
        linear: name, outputs and inputs of the matrices in numbered layers.
    """

    count: int
    linear: tuple[tuple[str, int, int], ...]

    def trained(self, adapter: Lora | None) -> int:
        """Weights that learn: an adapter's, or all."""
        if adapter is None:
            return self.count
        chosen = [(o, i) for name, o, i in self.linear if not adapter.targets or name.split(".")[-2] in adapter.targets]
        return sum(adapter.rank * (o + i) + (o if adapter.dora else 0) for o, i in chosen)

    @property
    def hidden(self) -> int:
        """Weights in those matrices."""
        return sum(o * i for _, o, i in self.linear)


def weights_of(shape: DecoderShape) -> Weights:
    """Of assay's own decoder."""
    h, d, m = shape.hidden_size, shape.head_dim, shape.intermediate_size
    q, kv = shape.num_heads * d, shape.num_kv_heads * d
    one = {"q_proj": (q, h), "k_proj": (kv, h), "v_proj": (kv, h), "o_proj": (h, q), "gate_proj": (m, h), "up_proj": (m, h)}
    layer = [(f"{name}.weight", o, i) for name, (o, i) in {**one, "down_proj": (h, m)}.items()]
    return Weights(shape.parameters, tuple(layer * shape.num_layers))


def weights_in(folder: Path) -> Weights:
    """Of a model folder, from the headers of its safetensors files.

    Raises:
        DataError: there are none, or one is damaged.
    """
    shapes = dict(_headers(folder))
    if not shapes:
        raise DataError(f"{folder} has no *.safetensors; save the model with save_pretrained")
    count = sum(_product(size) for size in shapes.values())
    linear = [(name, *size) for name, size in shapes.items() if len(size) == 2 and _IN_LAYER.search(name)]
    return Weights(count, tuple((str(n), int(o), int(i)) for n, o, i in linear))


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


def memory_of(run: Run, stage: Stage, shape: DecoderShape | HubShape, weights: Weights, others: int, evaluated: int) -> Memory:
    """Bytes of a stage, by part.

    Args:
        run, stage: settings.
        shape, weights: of the model.
        others: weights of the models that anchors name, together.
        evaluated: attempts of the largest evaluation.
    """
    learner = learner_of(run, stage)
    trained = weights.trained(learner.adapter)
    moments = 2 * trained
    if isinstance(learner.optimizer, Muon):  # one momentum for hidden matrices
        moments -= weights.hidden if learner.adapter is None else trained
    beside = sum(1 for a in learner.anchors if not a.model)
    rows = min(_batch(run), max(evaluated, stage.groups * stage.group_size if isinstance(stage, Reinforce) else 0))
    per_token = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim
    here = isinstance(run.engine, Auto | Native | InProcess)  # a server's memory is its own
    return Memory(
        weights=_FLOAT * weights.count if learner.adapter is None else _frozen(learner) * weights.count + _FLOAT * trained,
        gradients=_FLOAT * trained,
        optimiser=_FLOAT * moments,
        anchors=_FLOAT * (trained * beside + others),
        engine=here * _FLOAT * trained * (1 + _waiting(stage)),
        cache=here * _FLOAT * rows * shape.max_positions * per_token,
    )


def _frozen(learner: LearnerSettings) -> int:
    return _HALF if learner.precision == "bf16" else _FLOAT


def _batch(run: Run) -> int:
    engine: Any = run.engine
    return int(getattr(engine, "max_batch", _ENGINE_ROWS))


def _waiting(stage: Stage) -> int:
    """Copies of the weights that an engine keeps until they are old enough to be served, the newest among them."""
    return stage.lag + 1 if isinstance(stage, Reinforce) and stage.lag else 0
