"""Adapters in PEFT's format: ``adapter_config.json`` and ``adapter_model.safetensors``, which says what base it belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file  # type: ignore[reportUnknownVariableType]
from torch import Tensor

from assay.core.canon import array_digest, digest
from assay.core.errors import ConfigError, DataError
from assay.core.util.paths import share_files
from assay.runtime.kernels.typed import array_of
from assay.runtime.models.adapter_base import ADAPTER_CONFIG
from assay.runtime.models.finite import check_weights
from assay.runtime.models.hub_model import Adapter, HubModel
from assay.runtime.models.lora import NAME, PREFIX, peft_config, peft_names
from assay.runtime.models.model_files import read_json
from assay.runtime.settings import Lora

__all__ = ["base_digest", "with_adapter", "write_adapter"]

ADAPTER_WEIGHTS = "adapter_model.safetensors"
_REFUSED: dict[str, tuple[object, ...]] = {
    "modules_to_save": (None, []),
    "bias": ("none", None),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
    "target_parameters": (None, []),
    "layers_to_transform": (None,),
    "use_qalora": (False, None),
    "lora_bias": (False, None),
    "trainable_token_indices": (None,),
    "layer_replication": (None,),
}
"""Options of PEFT that change the numbers and that are not read, with the values that leave them off."""


def write_adapter(model: HubModel, folder: Path, base: str, revision: str = "") -> None:
    """Writes the adapter as PEFT does; ``base`` is where its base lies, as a path from there or a name on a hub, there
    at ``revision``.

    Raises:
        ConfigError: there is none.
    """
    if model.adapter is None:
        raise ConfigError("the model has no adapter to write")
    tensors, names = model.adapter.tensors, peft_names(model.adapter.tensors)
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": base,
        "inference_mode": True,
        "bias": "none",
        **({"revision": revision} if revision else {}),
        **peft_config(model.adapter.settings, model.base().module()),
    }
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    said = {"format": "pt", "base": base_digest(model), "seed": str(model.adapter.settings.seed)}
    made = {names[n]: t.detach().contiguous() for n, t in tensors.items()}
    save_file(made, folder / ADAPTER_WEIGHTS, metadata=said)
    share_files(folder)


def base_digest(model: HubModel) -> str:
    """Tells one base from another without reading all of it: by names, shapes, and the beginning of each tensor."""
    said = {n: [list(t.shape), array_digest(_beginning(t))] for n, t in model.tensors.items()}
    return digest(said)


def _beginning(tensor: Tensor) -> np.ndarray[Any, Any]:
    return array_of(tensor.detach().flatten()[:4096].float())


def with_adapter(model: HubModel, folder: Path) -> HubModel:
    """The base ``model`` with the adapter in ``folder``.

    Raises:
        ConfigError: an adapter of a kind that is not read.
        DataError: a file is missing or damaged, a tensor holds NaN or an infinity, or the adapter belongs to another base.
    """
    config, path = read_json(folder / ADAPTER_CONFIG), folder / ADAPTER_WEIGHTS
    _refuse_options(config, folder / ADAPTER_CONFIG)
    try:
        with cast(Any, safe_open)(path, "pt") as file:
            said: Mapping[str, str] = file.metadata() or {}
        held = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is missing, truncated or damaged ({error}); copy it again from its source") from error
    if said.get("base", base_digest(model)) != base_digest(model):
        raise DataError(f"{folder} was trained beside another base than the one here; give the one that it belongs to")
    settings = _settings(config, int(said.get("seed", "0")), held)
    check_weights(held.items(), str(path))
    back = {name.removeprefix(PREFIX): tensor.float() for name, tensor in held.items()}
    try:
        fresh = cast(Adapter, model.with_adapter(settings).adapter)
    except ConfigError as error:
        raise ConfigError(f"{folder / ADAPTER_CONFIG}: {error}; of a trained adapter, merge it with PEFT") from error
    own = {n.replace(f".{NAME}", ""): n for n in fresh.tensors}
    made = model.with_trained({own.get(name, name): tensor for name, tensor in back.items()}, settings)
    made.module()  # its names and shapes fit, or a DataError says which do not
    return made


def _refuse_options(config: Mapping[str, Any], path: Path) -> None:
    """Kinds and options that would change the numbers and that are not read."""
    if config.get("peft_type") != "LORA":
        raise ConfigError(f"{path}: peft_type={config.get('peft_type')!r}; only LoRA and DoRA are read")
    for option, neutral in _REFUSED.items():
        if option in config and config[option] not in neutral:
            raise ConfigError(f"{path}: {option}={config[option]!r} is not read; merge the adapter with PEFT")


def _settings(config: Mapping[str, Any], seed: int, held: Iterable[str]) -> Lora:
    """As the config says; of a pattern for layers, the layers whose tensors there are."""
    named: Any = config.get("target_modules")
    targets = tuple(sorted(cast("list[str]", named))) if isinstance(named, list) else ()
    if isinstance(named, str) and named != "all-linear":
        layers = (name.removeprefix(PREFIX).removesuffix(".lora_A.weight") for name in held if name.endswith(".lora_A.weight"))
        targets = tuple(sorted(layers))
    return Lora(
        rank=int(config["r"]),
        alpha=float(config["lora_alpha"]),
        dora=bool(config.get("use_dora")),
        rslora=bool(config.get("use_rslora")),
        targets=targets,
        seed=seed,
    )
