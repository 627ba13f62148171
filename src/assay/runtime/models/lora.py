"""Low-rank adapters in a module of transformers, by PEFT: put in, drawn by seed, named as in PEFT's files, merged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.errors import ConfigError, MissingExtraError, nearest
from assay.core.seeds import generator
from assay.runtime.kernels.typed import tensor_of
from assay.runtime.settings import Lora

__all__ = ["adapter_of", "check_targets", "inject", "merge", "peft_config", "peft_names"]

NAME = "default"
PREFIX = "base_model.model."
_LORA = ("lora_A", "lora_B", "lora_magnitude_vector")


def inject(module: nn.Module, settings: Lora) -> None:
    """Puts adapters into ``module``, whose other weights are frozen; they begin as the base does.

    Raises:
        ConfigError: PEFT is not installed, or ``targets`` names no layer, or one whose adapter would not be trained: the head,
            whose weight the learner reads itself, or an embedding.
    """
    _put(module, settings)
    for name, parameter in module.named_parameters():
        learns = any(part in name for part in _LORA)
        parameter.requires_grad_(learns)
        if learns:
            parameter.data = parameter.data.float()
        if "lora_A" in name:
            bound = 1.0 / math.sqrt(parameter.shape[1])  # as PEFT: Kaiming's uniform distribution with a = sqrt(5)
            draw = generator("lora", settings.seed, name).uniform(-bound, bound, tuple(parameter.shape)).astype(np.float32)
            with torch.no_grad():
                parameter.copy_(tensor_of(draw))


def check_targets(module: nn.Module, settings: Lora) -> None:
    """Looks whether adapters can be put into ``module``, which is of no use afterwards: one without numbers, on torch's device
    ``meta``, is enough.

    Raises:
        ConfigError: as `inject`.
    """
    _put(module, settings, empty=True)


def _put(module: nn.Module, settings: Lora, *, empty: bool = False) -> None:
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise MissingExtraError("peft", "lora") from None
    config = LoraConfig(**peft_config(settings, module))
    try:
        with cast(Any, torch.random).fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own patterns for layers that are not adapted
            inject_adapter_in_model(config, module, adapter_name=NAME, low_cpu_mem_usage=empty)
    except ValueError as error:
        linear = sorted(_linear(module))
        raise ConfigError(f"Lora.targets={settings.targets}: {error}; its linear layers are called {linear}") from error
    _check_trained(module, settings)


def _check_trained(module: nn.Module, settings: Lora) -> None:
    """That each target names a layer, and that what is put in there learns.

    Raises:
        ConfigError: as `inject`.
    """
    tuned = _adapted_layers(module)
    head = cast(Any, module).get_output_embeddings()
    linear = sorted({n.rpartition(".")[2] for n, part in tuned.items() if part is not head} | _linear(module))
    for target in settings.targets:
        if not any(name == target or name.endswith(f".{target}") for name in tuned):
            close = nearest(target, linear)
            hint = f"did you mean {close!r}? " if close else ""
            raise ConfigError(
                f"Lora.targets={settings.targets}: no layer is called {target!r}; {hint}its linear layers are called {linear}"
            )
    for name, part in tuned.items():
        kind = "the head" if part is head else "an embedding" if isinstance(part.get_base_layer(), nn.Embedding) else ""
        if kind:
            raise ConfigError(
                f"Lora.targets={settings.targets}: {name} is {kind}, where an adapter would never be trained (logits and "
                f"look-ups read its own weight); leave {name.rpartition('.')[2]!r} out, or train all weights (adapter=None)"
            )


def _adapted_layers(module: nn.Module) -> dict[str, Any]:
    """The layers that have an adapter, by name."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {name: part for name, part in _parts(module) if isinstance(part, BaseTunerLayer)}


def _is_linear(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear) or _turned(part)


def _linear(module: nn.Module) -> set[str]:
    """Last parts of the names of its linear layers, the head and those that have an adapter aside."""
    head = cast(Any, module).get_output_embeddings()
    found = {name.rpartition(".")[2] for name, part in _parts(module) if _is_linear(part) and part is not head}
    return found - {"base_layer", NAME}


def _turned(part: nn.Module) -> bool:
    """Whether it is one of GPT-2's linear layers, whose matrices lie the other way round."""
    return type(part).__name__ == "Conv1D"


def peft_config(settings: Lora, module: nn.Module) -> dict[str, Any]:
    """What PEFT calls ``settings``, for a module."""
    turned = any(_turned(part) for _, part in _parts(module))
    return {
        "r": settings.rank,
        "lora_alpha": settings.alpha,
        "lora_dropout": 0.0,
        "use_dora": settings.dora,
        "use_rslora": settings.rslora,
        "target_modules": list(settings.targets) or "all-linear",
        "task_type": "CAUSAL_LM",
        "fan_in_fan_out": turned,
    }


def adapter_of(module: nn.Module) -> dict[str, Tensor]:
    """The adapter's tensors by parameter name."""
    return {name: p.detach() for name, p in module.named_parameters() if any(part in name for part in _LORA)}


def peft_names(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Parameter name, or such a name already, to the name in PEFT's ``adapter_model.safetensors``.

    >>> peft_names({"model.layers.0.self_attn.q_proj.lora_A.default.weight": 0})
    {'model.layers.0.self_attn.q_proj.lora_A.default.weight': 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'}
    """
    return {name: name if name.startswith(PREFIX) else PREFIX + name.replace(f".{NAME}", "") for name in tensors}


def merge(module: nn.Module) -> None:
    """Adds the adapters to the weights that they adapt, and takes them out."""
    for name, tuned in _adapted_layers(module).items():
        tuned.merge(safe_merge=True)
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent), last, tuned.get_base_layer())


def _parts(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    return cast("Iterator[tuple[str, nn.Module]]", cast(Any, module).named_modules())
