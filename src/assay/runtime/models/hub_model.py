"""Any causal language model of transformers as plain values: config, weights under its module's names, tokenizer, adapter."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.core_model_loading import revert_weight_conversion
from transformers.initialization import no_init_weights

from assay.core.errors import ConfigError, DataError
from assay.runtime.learner.causal import copy_in
from assay.runtime.models.lora import adapter_of, inject, merge
from assay.runtime.models.model import Model
from assay.runtime.models.model_files import config_of
from assay.runtime.settings import HubShape, Lora
from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["Adapter", "HubModel", "with_adapter", "hub_config", "hub_of", "kept_buffers", "merge_adapter", "parameter_shapes"]


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """A trained or untrained adapter: how it was put in, and its tensors by parameter name."""

    settings: Lora
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class HubModel:
    """What a folder of any ``AutoModelForCausalLM`` holds.

    Attributes:
        config: ``config.json``.
        tensors: weights, float32 or bfloat16, and persistent buffers by the names of transformers' module, tied ones once.
        tokenizer: its tokenizer; needs no more ids than the embedding has rows.
        adapter: beside these weights; None for none.
        origin: folder that holds just these weights; empty where none does.
        shape: sizes.

    Raises:
        ConfigError: an architecture that transformers has no causal language model for, or a tokenizer with more ids than the
            head has rows.
    """

    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    tokenizer: HubTokenizer
    adapter: Adapter | None = None
    origin: str = ""
    shape: HubShape = field(init=False)

    def __post_init__(self) -> None:
        full = hub_config(self.config).to_dict()  # defaults of the family filled in
        named = {"architectures": self.config.get("architectures") or [self.config.get("model_type")]}
        try:
            shape = HubShape.of({**full, **named}, sum(t.numel() for t in self.tensors.values()))
        except KeyError as error:
            raise ConfigError(
                f"config.json of {named['architectures'][0]} has no {error}: assay trains models with attention, whose configs "
                "tell its heads"
            ) from error
        object.__setattr__(self, "shape", shape)
        if self.tokenizer.size > shape.vocab_size:
            raise ConfigError(
                f"the tokenizer has {self.tokenizer.size} ids, but the head of {shape.architecture} has {shape.vocab_size} rows: "
                "it is another model's; give the tokenizer that belongs to the weights"
            )

    def with_trained(self, tensors: Mapping[str, Tensor], adapter: Lora | None) -> HubModel:
        """The model behind training: with other weights, or beside them with the tensors of an adapter."""
        if adapter is None:
            return replace(self, tensors={**self.tensors, **tensors}, adapter=None, origin="")
        whole = self if self.adapter is not None and self.adapter.settings == adapter else merge_adapter(self)
        return replace(whole, adapter=Adapter(adapter, tensors))

    def base(self) -> HubModel:
        """The model without its adapter."""
        return replace(self, adapter=None)

    def with_adapter(self, settings: Lora) -> HubModel:
        """The model beside a fresh adapter; one that it has is left out."""
        module = self.base().module()
        inject(module, settings)
        return replace(self, adapter=Adapter(settings, adapter_of(module)))

    def checkpoint_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of the base by the names, and in the pieces, in which ``save_pretrained`` writes them: what checkpoints have.

        transformers holds the experts of a layer in one tensor, whose checkpoints have each for itself; most other tensors are
        called alike in both.

        Args:
            tensors: by the names of transformers' module; numbers of any type.
        """
        return cast(Any, revert_weight_conversion)(self.meta_module(), dict(tensors))

    def constants(self) -> dict[str, Tensor]:
        """The persistent buffers: numbers that stand in checkpoints and that no learner publishes."""
        own = {name for name, _ in self.meta_module().named_parameters()}
        return {name: tensor for name, tensor in self.tensors.items() if name not in own}

    def meta_module(self) -> nn.Module:
        """A module of transformers without numbers, on torch's device ``meta``."""
        with torch.device("meta"), no_init_weights():
            return cast(Any, AutoModelForCausalLM).from_config(hub_config(self.config))

    def module(self, dtype: torch.dtype = torch.float32, device: str | torch.device = "cpu") -> nn.Module:
        """A fresh module of transformers with copies of the weights and, where there is one, the adapter; no dropout, no noise.

        Args:
            dtype: of the weights; an adapter's are always float32.
            device: where they lie.

        Raises:
            DataError: weights that do not fit the config.
        """
        config = hub_config(self.config)
        with cast(Any, torch.random).fork_rng(devices=[]), no_init_weights():
            made: Any = cast(Any, AutoModelForCausalLM).from_config(config, dtype=dtype)
        made.tie_weights()
        own: dict[str, Tensor] = dict(made.named_parameters())
        for name, buffer in made.named_buffers():
            if name in self.tensors:  # in its own type: an expert's bias of 16 bits would choose others
                buffer.data = buffer.data.to(self.tensors[name].dtype)
                own[name] = buffer
        copy_in(own, self.tensors, self.shape.architecture, DataError)
        quiet(made)
        if self.adapter is not None:
            inject(made, self.adapter.settings)
            load_adapter(made, self.adapter)
        return made.to(device)


def kept_buffers(module: nn.Module) -> dict[str, Tensor]:
    """Numbers that a model computes with, that no gradient moves, and that stand in its files: biases of DeepSeek's experts,
    scales of Gemma 4's layers.
    """
    saved: Mapping[str, Tensor] = cast(Any, module).state_dict()
    return {name: buffer for name, buffer in module.named_buffers() if name in saved}


def parameter_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and sizes of the weights that a ``config.json`` describes, tied ones once; no number is allocated.

    Raises:
        ConfigError: transformers does not know the kind, or has no causal language model of it.
    """
    found = hub_config(config)
    try:
        with torch.device("meta"), no_init_weights():
            made: Any = cast(Any, AutoModelForCausalLM).from_config(found)
    except ValueError as error:
        raise ConfigError(f"transformers has no causal language model of this config ({_first_line(error)})") from error
    made.tie_weights()
    return {name: tuple(p.shape) for name, p in made.named_parameters()}


def hub_config(config: Mapping[str, Any]) -> PreTrainedConfig:
    """The config object of a ``config.json``.

    Raises:
        ConfigError: transformers does not know the kind, or it would need code of its own.
    """
    given = copy.deepcopy(dict(config))
    kind = given.pop("model_type", None)
    named = ", ".join(given.get("architectures") or []) or kind
    if given.get("auto_map"):
        raise ConfigError(
            f"{named}: this model brings code of its own (auto_map), which is never run; use one that transformers knows"
        )
    if given.get("quantization_config"):
        raise ConfigError(f"{named}: quantised weights cannot be trained; use the model that they were made from")
    try:
        return cast(Any, AutoConfig).for_model(str(kind), **given)
    except Exception as error:  # its configs check themselves, with errors of their own
        raise ConfigError(
            f"config.json of {named}: transformers cannot read it ({_first_line(error)}); is transformers up to date?"
        ) from error


def load_adapter(module: nn.Module, adapter: Adapter) -> None:
    """Copies an adapter's tensors into a module that has room for them.

    Raises:
        DataError: they are of another base or of other settings.
    """
    own = adapter_of(module)
    if own.keys() != adapter.tensors.keys() or any(own[n].shape != t.shape for n, t in adapter.tensors.items()):
        wrong = sorted(n for n in own.keys() | adapter.tensors.keys() if _size(own, n) != _size(adapter.tensors, n))
        raise DataError(
            f"the adapter does not fit its base: {wrong[0]} differs; it was trained on another model, or with other settings"
        )
    with torch.no_grad():
        for name, tensor in adapter.tensors.items():
            own[name].copy_(tensor)


def _size(tensors: Mapping[str, Tensor], name: str) -> tuple[int, ...] | None:
    return tuple(tensors[name].shape) if name in tensors else None


def quiet(module: nn.Module) -> None:
    """No dropout and no noise, in whatever mode the module is: a policy's log-probabilities are a function of its tokens."""
    module.eval()
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        for name in ("attention_dropout", "router_jitter_noise", "jitter_noise"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)


def hub_of(model: Model | HubModel) -> HubModel:
    """The same model as one of transformers."""
    if isinstance(model, HubModel):
        return model
    return HubModel(config=config_of(model.shape), tensors=model.tensors, tokenizer=model.tokenizer)


def with_adapter(model: HubModel, settings: Lora | None) -> HubModel:
    """The model with an adapter as ``settings`` say: its own where that is of this kind, else a fresh one beside weights into
    which its own was merged; without settings merged alone.
    """
    if settings is None or (model.adapter is not None and model.adapter.settings == settings):
        return merge_adapter(model) if settings is None else model
    return merge_adapter(model).with_adapter(settings)


def merge_adapter(model: HubModel) -> HubModel:
    """The model with its adapter added to its weights."""
    if model.adapter is None:
        return model
    module = model.module()
    merge(module)
    kinds = {name: tensor.dtype for name, tensor in model.tensors.items()}
    tensors = {name: p.detach().to(kinds[name]) for name, p in module.named_parameters()}
    return replace(model, tensors={**model.tensors, **tensors}, adapter=None, origin="")


def _first_line(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:200]
