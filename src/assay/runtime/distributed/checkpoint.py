"""A learner's tensors in files that several ranks write and any number of ranks reads, by ``torch.distributed.checkpoint``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from assay.core.errors import CheckpointError
from assay.runtime.kernels.typed import local_of
from assay.runtime.learner.optim import check_tensors

__all__ = ["FOLDER", "read", "write"]

FOLDER = "shards"
Parts = Mapping[str, Mapping[str, Tensor]]


def write(folder: Path, parts: Parts) -> None:
    """Writes each part's tensors below ``folder/shards``, each rank its own; a collective.

    Args:
        folder: the same on all ranks.
        parts: part to name to tensor: a ``DTensor`` that lies on several ranks, or what every rank has whole.

    Raises:
        OSError: the folder cannot be written.
    """
    flat = {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}
    try:
        cast(Any, dcp).save(flat, checkpoint_id=folder / FOLDER)
    except CheckpointException as error:
        raise _cause(error) from error


def read(
    folder: Path,
    wanted: Mapping[str, Mapping[str, Sequence[int]] | None],
    allocate: Callable[[str, str, tuple[int, ...]], Tensor],
) -> dict[str, dict[str, Tensor]]:
    """What of that which `write` wrote is this rank's, on as many ranks as now there are; a collective.

    Args:
        folder: the same on all ranks.
        wanted: part to tensor name to whole shape; of a part with None the owner checks the tensors.
        allocate: part, name and whole shape to a tensor that takes it: a ``DTensor``, or a plain one for all of it.

    Raises:
        CheckpointError: a file is missing, damaged, or has other tensors or shapes; names the first.
    """
    place = folder / FOLDER
    try:
        metadata = cast(Any, dcp).FileSystemReader(place).read_metadata().state_dict_metadata
        sizes = {key: tuple(entry.size) for key, entry in metadata.items() if isinstance(entry, TensorStorageMetadata)}
        for part, shapes in wanted.items():
            if shapes is not None:
                _check(place, part, shapes, sizes)
        flat: dict[str, Any] = {key: allocate(*_place(key), size) for key, size in sizes.items()}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled")  # a single process is meant
            cast(Any, dcp).load(flat, checkpoint_id=place, no_dist=not dist.is_initialized())
    except CheckpointError:
        raise
    except (Exception, CheckpointException) as error:  # whatever the reader says of files that are not whole
        raise CheckpointError(f"{place} is damaged ({_first_line(error)}); restore the folder from a copy") from error
    parts: dict[str, dict[str, Tensor]] = {}
    for key, tensor in flat.items():
        part, name = _place(key)
        parts.setdefault(part, {})[name] = local_of(tensor)
    return parts


def _place(key: str) -> tuple[str, str]:
    part, _, name = key.partition("/")
    return part, name


def _check(place: Path, part: str, shapes: Mapping[str, Sequence[int]], sizes: Mapping[str, tuple[int, ...]]) -> None:
    found = {key.split("/", 1)[1]: torch.empty(size, device="meta") for key, size in sizes.items() if key.startswith(f"{part}/")}
    check_tensors(f"{place}: {part}", shapes, found)


def _cause(error: CheckpointException) -> OSError:
    """The first failure to write, of any rank."""
    found = [e for e, _ in error.failures.values() if isinstance(e, OSError)]
    return found[0] if found else OSError(_first_line(error))


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
