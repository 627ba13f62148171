"""The parameters of a Hugging Face module as served weights: named, swapped and digested in the module itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.columns import Array
from assay.core.errors import ConfigError
from assay.core.manifest import Manifest
from assay.runtime.engine.new_weights import fitting
from assay.runtime.kernels.typed import tensor_of
from assay.runtime.learner.publishing import TensorsInPlace, check_kind, digests_of, make_manifest

__all__ = ["ModuleWeights"]

HEAD = "lm_head.weight"


class ModuleWeights:
    """What manifests name of a module: its parameters, tied ones once, or those that are trained.

    The tensors are the module's very parameters, so a digest of one is a digest of what is served.

    Args:
        module: its parameters are cast to ``dtype`` in place where they have another floating type; buffers stay as they are.
        dtype: ``float32`` or ``bfloat16``.
        trained: names of the parameters that manifests hold; None for all.
        kind: of the digests, as in `EngineInfo.digests`.

    Raises:
        ConfigError: a trained name that the module lacks, a parameter that is no floating-point number, another dtype or digest.
    """

    def __init__(self, module: nn.Module, dtype: str, trained: Collection[str] | None = None, kind: str = "blake2b") -> None:
        if dtype not in ("float32", "bfloat16"):
            raise ConfigError(f"an engine serves float32 or bfloat16, not dtype={dtype!r}")
        self.dtype, self.kind, self._module = dtype, check_kind(kind), cast(Any, module)
        named = dict(module.named_parameters())
        unknown = sorted({*(trained or ())} - named.keys())
        if unknown:
            raise ConfigError(
                f"trained={unknown[0]!r} is no parameter of {type(module).__name__}; names are those of named_parameters(), such "
                f"as {next(iter(named))!r}"
            )
        for name, parameter in named.items():
            if not parameter.is_floating_point():
                raise ConfigError(
                    f"parameter {name!r} is {parameter.dtype}: quantised weights cannot be swapped; load it unquantised"
                )
            if parameter.dtype != getattr(torch, dtype):
                parameter.data = parameter.data.to(getattr(torch, dtype))
        self._names = [n for n in named if trained is None or n in trained]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The served tensors: the parameters that the module has now."""
        named = dict(self._module.named_parameters())
        return {name: named[name] for name in self._names}

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each served tensor."""
        return {name: tuple(t.shape) for name, t in self.tensors.items()}

    def verify_manifest(self, manifest: Manifest) -> Mapping[str, Array]:
        """The payload of a manifest, checked to fit: all tensors of a full one, some of a delta.

        Raises:
            EngineError: as `assay.runtime.engine.new_weights.fitting` says.
        """
        return fitting(manifest, self.sizes, self.dtype, self.kind, self.identity)

    @torch.no_grad()
    def load(self, arrays: Mapping[str, Array]) -> None:
        """Copies verified arrays into the module's parameters; what lies on a device from there, rounded on the way."""
        tensors = self.tensors
        if isinstance(arrays, TensorsInPlace):
            for name, tensor in arrays.tensors.items():
                tensors[name].copy_(tensor)
            return
        for name, array in arrays.items():
            given = tensor_of(array if array.flags.writeable else np.array(array))
            tensors[name].copy_(given.view(torch.bfloat16) if self.dtype == "bfloat16" else given)

    def digests(self) -> dict[str, str]:
        """Digest of each served tensor; that of a tied head, as the module multiplies with it, also as ``lm_head.weight``."""
        tensors = self.tensors
        found = digests_of(tensors, self.kind)
        head, embedding = (
            getattr(part, "weight", None) for part in (self._module.get_output_embeddings(), self._module.get_input_embeddings())
        )
        if HEAD not in found and head is embedding and any(head is t for t in tensors.values()):
            found[HEAD] = next(digest for name, digest in found.items() if tensors[name] is head)
        return found

    def identity(self, kind: str = "") -> str:
        """The `Manifest.digest` of what is served, computed anew from the parameters, by digests of that kind; empty: its own."""
        return make_manifest(0, self.tensors, self.dtype, kind or self.kind).digest
