"""The engine of a process that samples for a learner elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.manifest import Manifest, digest_kind, manifest_of
from assay.runtime.engine.settings import ModelEngineSpec

if TYPE_CHECKING:
    from assay.core.protocols import Engine, EngineInfo, Tokenizer

__all__ = ["as_served", "digests_of_arrays", "load_sampling_engine"]


def load_sampling_engine(folder: Path, spec: ModelEngineSpec, device: str, threads: int) -> tuple[Engine, Tokenizer]:
    """An engine of the model in a folder, which gets its weights later, and the model's tokenizer.

    Args:
        folder: of the model.
        spec: which engine.
        device: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.
        threads: of torch, in the whole process.
    """
    import torch

    from assay.runtime.machine import set_threads
    from assay.runtime.models.hf import load_model

    set_threads(threads)
    model = load_model(folder)
    cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    return spec.load(model, "cuda" if cuda else "cpu"), model.tokenizer


def as_served(manifest: Manifest, info: EngineInfo) -> Manifest:
    """The weights as an engine takes them: rounded and digested as it says, or as they are where they suit it already.

    Args:
        manifest: full, with arrays.
        info: of the engine.
    """
    theirs = digest_kind(t.digest for t in manifest.tensors.values())
    rounded = any(t.dtype == "bfloat16" for t in manifest.tensors.values())
    if manifest.payload is None or (theirs == info.digests and rounded == (info.dtype == "bfloat16")):
        return manifest
    made = manifest_of(manifest.version, manifest.payload, dtype="bfloat16" if rounded else None)
    return made if rounded else made.round_to(info.dtype)


def digests_of_arrays(manifest: Manifest) -> dict[str, str]:
    """Digest of each tensor's array, computed as the manifest's own were, to compare with them.

    >>> import numpy as np
    >>> made = manifest_of(1, {"w": np.ones(3, np.float32)})
    >>> digests_of_arrays(made) == {"w": made.tensors["w"].digest}
    True
    """
    import torch

    from assay.core.canon import array_digests
    from assay.runtime.kernels.typed import tensor_of
    from assay.runtime.learner.mixed import mixed_digests

    arrays = manifest.payload or {}
    if digest_kind(t.digest for t in manifest.tensors.values()) == "blake2b":
        return array_digests(arrays)
    halves = {n for n, t in manifest.tensors.items() if t.dtype == "bfloat16"}
    tensors = ((n, tensor_of(array)) for n, array in arrays.items())
    return mixed_digests((n, t.view(torch.bfloat16) if n in halves else t) for n, t in tensors)
