"""The few torch calls whose stubs say nothing, with types: the one place that vouches for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from assay.core.columns import Array

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = ["add_up", "array_of", "gather_objects", "group_of", "l2_norm", "local_of", "split", "tensor_of"]


def tensor_of(array: Array) -> Tensor:
    """A tensor on the array's memory; the array must be writable."""
    return cast(Any, torch).from_numpy(array)


def array_of(tensor: Tensor) -> Array:
    """A detached tensor's memory as an array; a copy of one that lies on another device."""
    return cast(Any, tensor.detach().cpu()).numpy()


def split(tensor: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Views of consecutive parts along the first axis."""
    return cast(Any, tensor).split(list(sizes))


def l2_norm(tensor: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Euclidean norm over ``dim`` (kept, with size 1), or over everything as a scalar tensor."""
    return cast(Any, torch.linalg).vector_norm(tensor, dim=dim, keepdim=dim is not None)


def local_of(tensor: Tensor) -> Tensor:
    """The memory of this rank's part of a ``DTensor``; of another tensor its own."""
    return cast(Any, tensor)._local_tensor.detach() if hasattr(tensor, "_local_tensor") else tensor.detach()


def gather_objects(into: list[Any], own: object, group: ProcessGroup | None) -> None:
    """Fills ``into`` with what every rank of a process group has as its ``own``, in the order of the ranks; by pickle."""
    import torch.distributed as dist

    cast(Any, dist).all_gather_object(into, own, group=group)


def add_up(tensor: Tensor, group: ProcessGroup | None) -> None:
    """Puts the sum over the ranks of a process group in the tensor's place."""
    import torch.distributed as dist

    cast(Any, dist).all_reduce(tensor, group=group)


def group_of(members: Sequence[int]) -> ProcessGroup:
    """A process group of some ranks; every rank must ask for it."""
    import torch.distributed as dist

    return cast(Any, dist).new_group(list(members))
