"""A decoder as plain values: its shape, its weights under Hugging Face names, and its tokenizer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from assay.core.errors import ConfigError, DataError
from assay.core.seeds import generator
from assay.runtime.kernels.typed import tensor_of
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["Model", "init_model", "parameter_shapes", "with_arrays"]

INITS = ("normal", "fan_in")


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What a model folder holds.

    Attributes:
        shape: sizes and constants.
        tensors: float32 weights by Hugging Face name, exactly those of `parameter_shapes`.
        tokenizer: its tokenizer; needs no more ids than the embedding has rows.

    Raises:
        DataError: a tensor is missing, unknown, of another shape, or not float32.
        ConfigError: the tokenizer has more ids than the embedding has rows.
    """

    shape: DecoderShape
    tensors: Mapping[str, torch.Tensor]
    tokenizer: HubTokenizer

    def __post_init__(self) -> None:
        check_tensors(self.shape, {n: tuple(t.shape) for n, t in self.tensors.items()}, "the model")
        for name, tensor in self.tensors.items():
            if tensor.dtype != torch.float32:
                raise DataError(f"tensor {name!r} is {tensor.dtype}; a Model holds float32, convert it with .float()")
        if self.tokenizer.size > self.shape.vocab_size:
            raise ConfigError(
                f"the tokenizer has {self.tokenizer.size} ids but DecoderShape.vocab_size={self.shape.vocab_size}; "
                "give the embedding at least one row per id"
            )


def parameter_shapes(shape: DecoderShape) -> dict[str, tuple[int, ...]]:
    """Name to shape of every weight of Qwen3ForCausalLM (``qk_norm``) or LlamaForCausalLM, in file order.

    >>> names = parameter_shapes(DecoderShape(num_layers=1))
    >>> len(names), names["model.layers.0.mlp.gate_proj.weight"], "lm_head.weight" in names
    (13, (256, 96), False)
    """
    h, d, m = shape.hidden_size, shape.head_dim, shape.intermediate_size
    out: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (shape.vocab_size, h)}
    for i in range(shape.num_layers):
        layer: dict[str, tuple[int, ...]] = {
            "input_layernorm": (h,),
            "self_attn.q_proj": (shape.num_heads * d, h),
            "self_attn.k_proj": (shape.num_kv_heads * d, h),
            "self_attn.v_proj": (shape.num_kv_heads * d, h),
            "self_attn.o_proj": (h, shape.num_heads * d),
        }
        if shape.qk_norm:
            layer |= {"self_attn.q_norm": (d,), "self_attn.k_norm": (d,)}
        layer |= {
            "post_attention_layernorm": (h,),
            "mlp.gate_proj": (m, h),
            "mlp.up_proj": (m, h),
            "mlp.down_proj": (h, m),
        }
        out |= {f"model.layers.{i}.{name}.weight": size for name, size in layer.items()}
    out["model.norm.weight"] = (h,)
    if not shape.tied:
        out["lm_head.weight"] = (shape.vocab_size, h)
    return out


def check_tensors(shape: DecoderShape, found: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raises DataError unless ``found`` (name to shape) holds exactly the weights of ``shape``; ``where`` names their source."""
    wanted = parameter_shapes(shape)
    missing = [n for n in wanted if n not in found]
    unknown = sorted(n for n in found if n not in wanted)
    wrong = [n for n in wanted if n in found and tuple(found[n]) != wanted[n]]
    if missing:
        raise DataError(f"{where} lacks {_some(missing)}; {_kind(shape)} needs {len(wanted)} tensors")
    if unknown:
        raise DataError(f"{where} has {_some(unknown)}, which {_kind(shape)} does not use")
    if wrong:
        name = wrong[0]
        raise DataError(f"{where}: tensor {name!r} has shape {tuple(found[name])}, {_kind(shape)} needs {wanted[name]}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _kind(shape: DecoderShape) -> str:
    tied = "tied" if shape.tied else "untied"
    return f"a {'Qwen3' if shape.qk_norm else 'Llama'} decoder of {shape.num_layers} layers ({tied} head)"


def init_model(shape: DecoderShape, tokenizer: HubTokenizer, seed: int, *, init: str = "normal") -> Model:
    """A model with random weights, each tensor a function of its own name and ``seed``.

    Args:
        shape: sizes.
        tokenizer: goes with it.
        seed: of the weights.
        init: ``normal``: N(0, 0.02), projections back into the residual stream divided by sqrt(2 layers) (GPT-2).
            ``fan_in``: hidden matrices N(0, 1/fan_in), better for narrow models (below about 500 wide), where 0.02 starts
            every layer near zero. Embeddings and heads are N(0, 0.02) and norms 1 in both.

    Raises:
        ConfigError: unknown ``init``, or a tokenizer larger than the embedding.

    >>> from assay.runtime import char_tokenizer
    >>> model = init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0)
    >>> sum(tensor.numel() for tensor in model.tensors.values()) == model.shape.parameters
    True
    """
    if init not in INITS:
        raise ConfigError(f"init_model: init={init!r}; use one of {INITS}")
    tensors: dict[str, torch.Tensor] = {}
    for name, size in parameter_shapes(shape).items():
        if len(size) == 1:
            tensors[name] = torch.ones(size)
            continue
        draw = generator("init-weights", seed, name).standard_normal(size, dtype=np.float32)
        tensors[name] = tensor_of(draw * np.float32(_std(name, size, shape.num_layers, init)))
    return Model(shape=shape, tensors=tensors, tokenizer=tokenizer)


def _std(name: str, size: tuple[int, ...], layers: int, init: str) -> float:
    if ".layers." not in name:
        return 0.02
    if init == "fan_in":
        return 1.0 / math.sqrt(size[1])
    return 0.02 / math.sqrt(2 * layers) if name.endswith(("o_proj.weight", "down_proj.weight")) else 0.02


def with_arrays(model: Model, arrays: Mapping[str, np.ndarray[Any, np.dtype[Any]]]) -> Model:
    """``model`` with other weights, copied from float32 arrays by name (a manifest's payload)."""
    return replace(model, tensors={name: tensor_of(np.array(array, np.float32)) for name, array in arrays.items()})
