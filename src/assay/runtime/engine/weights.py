"""The arrays that a decode path reads: fused per layer, each still addressable under its Hugging Face name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from assay.core.columns import Array
from assay.core.manifest import Manifest
from assay.runtime.engine.new_weights import fitting
from assay.runtime.kernels.typed import split
from assay.runtime.learner.publishing import check_kind, digests_of, make_manifest, served_dtype
from assay.runtime.models.model import parameter_shapes
from assay.runtime.settings import DecoderShape

__all__ = ["LayerWeights", "ServedWeights"]

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """One layer, as `torch.nn.functional.linear` reads it: rows are outputs.

    Attributes:
        norm1, norm2: ``[hidden]``.
        qkv: ``[(heads + 2 kv_heads) * head_dim, hidden]``, queries, keys, values behind one another.
        q_norm, k_norm: ``[head_dim]``; None without ``qk_norm``.
        out: ``[hidden, heads * head_dim]``.
        gate_up: ``[2 * intermediate, hidden]``.
        down: ``[hidden, intermediate]``.
    """

    norm1: torch.Tensor
    norm2: torch.Tensor
    qkv: torch.Tensor
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


class ServedWeights:
    """An engine's own copy of the weights.

    ``tensors`` are views of exactly the buffers that the decode path multiplies with, so a digest of a view is a digest of
    what is served. A tied head is the embedding's own array and is listed as ``lm_head.weight`` too.

    Args:
        shape: of the decoder.
        source: name to float32 tensor; copied. Zeros where a name is missing.
        dtype: ``float32``, or ``bfloat16``: manifests hold such arrays, and the tensors the same numbers as float32.
        kind: of the digests, as in `EngineInfo.digests`.

    Raises:
        ConfigError: another dtype or digest.
    """

    def __init__(
        self, shape: DecoderShape, source: Mapping[str, torch.Tensor], dtype: str = "float32", kind: str = "blake2b"
    ) -> None:
        self.shape, self.dtype, self.kind, self._served = shape, dtype, check_kind(kind), served_dtype(dtype)
        self.tensors: dict[str, torch.Tensor] = {}
        sizes = parameter_shapes(shape)
        self.embedding = self._one(EMBEDDING, sizes)
        self.layers = [self._layer(f"model.layers.{i}.", sizes) for i in range(shape.num_layers)]
        self.norm = self._one("model.norm.weight", sizes)
        if shape.tied:
            self.tensors[HEAD] = self.embedding
        else:
            self._one(HEAD, sizes)
        self._digests: dict[str, str] | None = None
        for name in sizes.keys() & source.keys():
            self.tensors[name].copy_(source[name].to(self._served))

    @property
    def head(self) -> torch.Tensor:
        """``[vocabulary, hidden]`` the head that logits come from."""
        return self.tensors[HEAD]

    def _one(self, name: str, sizes: Mapping[str, tuple[int, ...]]) -> torch.Tensor:
        self.tensors[name] = torch.zeros(sizes[name])
        return self.tensors[name]

    def _fuse_tensors(self, names: tuple[str, ...], sizes: Mapping[str, tuple[int, ...]]) -> torch.Tensor:
        rows = [sizes[n][0] for n in names]
        buffer = torch.zeros(sum(rows), sizes[names[0]][1])
        self.tensors.update(zip(names, split(buffer, rows), strict=True))
        return buffer

    def _layer(self, prefix: str, sizes: Mapping[str, tuple[int, ...]]) -> LayerWeights:
        def one(name: str) -> torch.Tensor:
            return self._one(f"{prefix}{name}.weight", sizes)

        def fuse(*names: str) -> torch.Tensor:
            return self._fuse_tensors(tuple(f"{prefix}{n}.weight" for n in names), sizes)

        qk = self.shape.qk_norm
        return LayerWeights(
            norm1=one("input_layernorm"),
            norm2=one("post_attention_layernorm"),
            qkv=fuse("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            q_norm=one("self_attn.q_norm") if qk else None,
            k_norm=one("self_attn.k_norm") if qk else None,
            out=one("self_attn.o_proj"),
            gate_up=fuse("mlp.gate_proj", "mlp.up_proj"),
            down=one("mlp.down_proj"),
        )

    def verify_manifest(self, manifest: Manifest) -> Mapping[str, Array]:
        """The payload of a manifest, checked to fit: all tensors of a full one, some of a delta.

        Raises:
            EngineError: no payload, one that is not what the manifest names, a delta on other weights than the served ones, or
                names, shapes or types that differ from the served ones.
        """
        return fitting(manifest, parameter_shapes(self.shape), self.dtype, self.kind, self.identity)

    def load(self, arrays: Mapping[str, Array]) -> None:
        """Copies verified arrays into the served ones."""
        self._digests = None
        for name, array in arrays.items():
            if self.dtype == "float32":
                np.copyto(self.tensors[name].numpy(), array)
            else:
                np.left_shift(array, np.uint32(16), out=self.tensors[name].numpy().view(np.uint32), dtype=np.uint32)

    def digests(self, anew: bool = False) -> dict[str, str]:
        """Digest of each served array, computed from the arrays themselves once per `load`, or ``anew``."""
        if self._digests is None or anew:
            self._digests = digests_of({n: t.to(self._served) for n, t in self.tensors.items()}, self.kind)
        return dict(self._digests)

    def identity(self, kind: str = "") -> str:
        """The `Manifest.digest` of what is served, computed anew from the arrays, by digests of that kind; empty: its own."""
        tensors = {name: self.tensors[name] for name in parameter_shapes(self.shape)}
        return make_manifest(0, tensors, self.dtype, kind or self.kind).digest
