"""The engine of a process that samples for a learner elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.runtime.engine.settings import ModelEngineSpec

if TYPE_CHECKING:
    from assay.core.protocols import Engine, Tokenizer

__all__ = ["load_sampling_engine"]


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
