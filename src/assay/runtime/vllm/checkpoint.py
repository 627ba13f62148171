"""What a model's tensors are called, and how they are cut, in the checkpoints that servers read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from assay.core.columns import Array
from assay.core.errors import ConfigError
from assay.core.manifest import Manifest, manifest_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TensorRows", "add_tensors", "constants", "cut", "checkpoint_names", "whole"]

_WIDE = 2  # columns of row numbers: dimensions of one would be taken away by some conversions


@dataclass(frozen=True, slots=True)
class TensorRows:
    """Rows of one of a model's tensors, which are a tensor of its checkpoint.

    Attributes:
        source: the model's tensor; its last dimension is a row's length, and rows are counted through all others.
        first: of the rows.
        shape: of the tensor in the checkpoint.

    >>> import numpy as np
    >>> fused = np.arange(8).reshape(2, 2, 2)  # two experts, each with a gate and an up projection of one row
    >>> TensorRows("experts.gate_up_proj", 3, (1, 2)).of(fused)  # the second expert's up projection
    array([[6, 7]])
    """

    source: str
    first: int
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many rows."""
        return prod(self.shape[:-1])

    def of(self, array: Array) -> Array:
        """These rows of an array of the source's shape, without a copy where that is contiguous."""
        length = self.shape[-1] if self.shape else 1
        return array.reshape(-1, length)[self.first : self.first + self.count].reshape(self.shape)


@runtime_checkable
class NamesCheckpointTensors(Protocol):
    """A model whose checkpoints may name and cut tensors otherwise than it does itself."""

    def checkpoint_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors by the names, and in the pieces, in which a checkpoint has them."""
        ...

    def constants(self) -> dict[str, Tensor]:
        """Those of its tensors that a checkpoint has and no learner publishes."""
        ...


def constants(model: object) -> dict[str, Array]:
    """Tensors that a server must be sent beside what a learner publishes, as float32."""
    from assay.runtime.kernels.typed import array_of

    found = model.constants() if isinstance(model, NamesCheckpointTensors) else {}
    return {name: array_of(tensor.detach().float().cpu()) for name, tensor in found.items()}


def add_tensors(manifest: Manifest, more: Mapping[str, Array]) -> Manifest:
    """A manifest with further tensors."""
    made = manifest_of(manifest.version, more)
    return replace(manifest, tensors={**manifest.tensors, **made.tensors}, payload={**(manifest.payload or {}), **more})


def whole(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, TensorRows]:
    """Tensors under their own names, uncut.

    >>> whole({"norm": (4,)})
    {'norm': TensorRows(source='norm', first=0, shape=(4,))}
    """
    return {name: TensorRows(name, 0, shape) for name, shape in shapes.items()}


def cut(model: object, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, TensorRows]:
    """Names in a model's checkpoints to what stands under them, of tensors of the given shapes.

    The model is asked once, with the numbers of the rows in place of the rows: what it says of these holds of all weights.

    Raises:
        ConfigError: a tensor of its checkpoints is no run of rows of one of its own.
    """
    if not isinstance(model, NamesCheckpointTensors):
        return whole(shapes)
    import torch

    starts, probes, total = list[int](), dict[str, Any](), 0
    for name, shape in shapes.items():
        numbers = torch.arange(total, total + prod(shape[:-1]), dtype=torch.int32)
        probes[name] = numbers[:, None].repeat(1, _WIDE).reshape(*shape[:-1], _WIDE) if shape else numbers[0]
        starts.append(total)
        total += len(numbers)
    names, ends, found = list(shapes), [*starts[1:], total], dict[str, TensorRows]()
    for name, tensor in model.checkpoint_tensors(probes).items():
        first, last = _run(tensor)
        at = bisect_right(starts, first) - 1
        if last > ends[at] or last < first:
            raise ConfigError(
                f"tensor {name!r} of this model's checkpoints is no run of rows of one of its own, and a server is sent nothing "
                "else; sample in process: engine=InProcess()"
            )
        found[name] = TensorRows(names[at], first - starts[at], (*tensor.shape[:-1], *shapes[names[at]][-1:]))
    if sum(rows.count for rows in found.values()) != total:
        raise ConfigError("checkpoints of this model leave out some of its tensors; sample in process: engine=InProcess()")
    return found


def _run(tensor: Tensor) -> tuple[int, int]:
    """The first of the rows whose numbers a tensor holds, and the one behind the last, -1 where they are no such run."""
    import torch

    numbers = tensor.reshape(-1, *tensor.shape[-1:])
    first = int(numbers.flatten()[0])
    run = torch.arange(first, first + len(numbers), dtype=torch.int32)
    whole_rows = tensor.shape[-1:] in ((), (_WIDE,))
    same = whole_rows and torch.equal(numbers, run[:, None].expand_as(numbers) if tensor.dim() else run)
    return first, first + len(numbers) if same else -1


def checkpoint_names(name: str, parts: Mapping[str, TensorRows]) -> list[str]:
    """Names in the checkpoint whose tensors, one behind another, are all rows of the model's tensor ``name``.

    >>> parts = {"b": TensorRows("fused", 2, (2, 3)), "a": TensorRows("fused", 0, (2, 3)), "a again": TensorRows("fused", 0,
    ...     (2, 3))}
    >>> checkpoint_names("fused", parts)
    ['a', 'b']
    """
    found, reached = list[str](), 0
    pieces = [(rows.first, written, rows) for written, rows in parts.items() if rows.source == name]
    for first, written, rows in sorted(pieces, key=lambda piece: piece[0]):
        if first == reached:
            found.append(written)
            reached += rows.count
    return found
