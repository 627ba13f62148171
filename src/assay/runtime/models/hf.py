"""Model folders in Hugging Face format: written and read without transformers, loadable by it.

A folder holds ``config.json``, ``generation_config.json``, ``model.safetensors`` (or shards with
``model.safetensors.index.json``), ``tokenizer.json`` and ``tokenizer_config.json``.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file  # type: ignore[reportUnknownVariableType]

from assay.core.errors import ConfigError, DataError, StorageError
from assay.core.util.folder_digest import check_seal
from assay.core.util.paths import share_files
from assay.runtime.models.finite import check_weights
from assay.runtime.models.model import Model, check_tensors
from assay.runtime.models.model_files import (
    CONFIG,
    GENERATION,
    INDEX,
    STILL,
    SUPPORTED,
    WEIGHTS,
    config_of,
    read_json,
    weight_map,
)
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import HubTokenizer

if TYPE_CHECKING:
    from assay.runtime.models.hub_model import HubModel

__all__ = ["load_decoder", "load_model", "save_model"]


def save_model(model: Model | HubModel, folder: Path | str) -> None:
    """Writes a model folder that ``transformers.AutoModelForCausalLM`` and ``AutoTokenizer`` load.

    Everything is written and flushed beside ``folder`` first and then renamed, so a folder of that name is always whole.

    Raises:
        ConfigError: ``folder`` exists and is not empty.
        StorageError: the disk is full or the place not writable.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from assay.runtime import DecoderShape, char_tokenizer, init_model
    >>> model = init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     save_model(model, Path(place) / "model")
    ...     again = load_model(Path(place) / "model")
    >>> again.shape == model.shape, again.tokenizer.decode(again.tokenizer.encode("42"))
    (True, '42')
    """
    target = Path(folder)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise ConfigError(f"{target} exists already; name a new folder or delete it first")
    fresh: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.parent / f".{target.name}.{secrets.token_hex(4)}"
        fresh.mkdir()
        _write(model, fresh)
        os.replace(fresh, target)
        _flush(target.parent)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"could not write the model to {target}: {error}; free some space or name another place") from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def _write(model: Model | HubModel, folder: Path) -> None:
    if not isinstance(model, Model):
        from assay.runtime.models.hub_files import write_hub

        write_hub(model, folder)
    else:
        _write_decoder(model, folder)
    share_files(folder)
    for path in folder.rglob("*"):
        _flush(path)
    _flush(folder)


def _write_decoder(model: Model, folder: Path) -> None:
    tensors = {n: t.detach().contiguous() for n, t in model.tensors.items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    stops, pad = model.tokenizer.stop_ids, model.tokenizer.pad
    ends = {
        "bos_token_id": model.tokenizer.bos,
        "eos_token_id": stops[0] if len(stops) == 1 else list(stops),
        "pad_token_id": pad,
    }
    _write_json(folder / CONFIG, {**config_of(model.shape), **ends})
    _write_json(folder / GENERATION, ends)
    model.tokenizer.save(folder)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load_model(folder: Path | str) -> Model | HubModel:
    """Reads a model folder that `save_model` or transformers' ``save_pretrained`` wrote: for assay's own decoder where it has the
    architecture and its options, for transformers otherwise, with an adapter where one lies in ``adapter/``.

    Raises:
        ConfigError: transformers does not know the architecture either.
        DataError: as `load_decoder`.
        CheckpointError: a file is not what a run wrote there (`assay.core.util.folder_digest`).
    """
    place = Path(folder)
    check_seal(place)
    if not (place / "adapter_config.json").is_file():
        _check_folder(place)
        config = read_json(place / CONFIG)
        try:
            shape_of(config, place / CONFIG)
        except ConfigError:
            pass
        else:
            if not (place / "adapter").is_dir():
                return load_decoder(place)
    from assay.runtime.models.hub_files import load_hub  # transformers takes seconds to import: only where it is used

    return load_hub(place)


def load_decoder(folder: Path | str) -> Model:
    """Reads a model folder for assay's own decoder; weights become float32.

    A pickled ``pytorch_model.bin`` is never read: loading one runs its code.

    Raises:
        ConfigError: an architecture or option that assay's decoder does not have, a tokenizer with more ids than the weights have
            rows, or a chat template that is no Jinja; names it.
        DataError: a file is missing, truncated or damaged, tensors do not fit the config, or one holds NaN or an infinity; names
            the file or the tensor.
    """
    place = Path(folder)
    _check_folder(place)
    config = read_json(place / CONFIG)
    shape = shape_of(config, place / CONFIG)
    tensors = _read_weights(place)
    if shape.tied:
        tensors.pop("lm_head.weight", None)
    check_tensors(shape, {n: tuple(t.shape) for n, t in tensors.items()}, str(place))
    check_weights(tensors.items(), str(place))
    ends: Any = config.get("eos_token_id")  # one id or several
    eos = next((int(i) for i in (ends if isinstance(ends, list) else [ends]) if i is not None), None)  # type: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    return Model(shape=shape, tensors=tensors, tokenizer=HubTokenizer.load(place, eos=eos, rows=shape.vocab_size))


def _check_folder(place: Path) -> None:
    if not place.is_dir():
        raise DataError(f"{place} is no model folder; give a folder with {CONFIG}, {WEIGHTS} and tokenizer.json")


# ---- config ----------------------------------------------------------------------------------------------------------


def shape_of(config: Mapping[str, Any], path: Path) -> DecoderShape:
    """The shape that a ``config.json`` describes; ``path`` stands in errors.

    Raises:
        ConfigError: an unsupported architecture or option.
        DataError: a needed field is missing.
    """
    kind = _kind(config, path)
    _refuse_options(config, path)
    rope = dict(config.get("rope_parameters") or {})
    heads = _field(config, "num_attention_heads", path)
    hidden = _field(config, "hidden_size", path)
    qwen = kind == "qwen3"
    return DecoderShape(
        vocab_size=_field(config, "vocab_size", path),
        hidden_size=hidden,
        num_layers=_field(config, "num_hidden_layers", path),
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or (128 if qwen else hidden // heads),
        intermediate_size=_field(config, "intermediate_size", path),
        max_positions=config.get("max_position_embeddings") or (32768 if qwen else 2048),
        rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
        norm_eps=float(config.get("rms_norm_eps") or 1e-6),
        tied=bool(config.get("tie_word_embeddings", False)),
        qk_norm=qwen,
        rope_pairs=_turning(rope),
    )


def _turning(rope: Mapping[str, Any]) -> int | None:
    """How many pairs turn, where LongRoPE's factors are 1 for these and stop all others; None without LongRoPE."""
    if rope.get("rope_type") != "longrope":
        return None
    return list(rope["short_factor"]).count(1.0)


def _stops_pairs(rope: Mapping[str, Any]) -> bool:
    """Whether LongRoPE is used for nothing but to stop the pairs of lower frequencies."""
    short, long = list(rope.get("short_factor") or []), list(rope.get("long_factor") or [])
    turned = short.count(1.0)
    known = short == long and bool(short) and short[:turned] == [1.0] * turned and all(f >= STILL for f in short[turned:])
    return known and rope.get("rope_type") == "longrope" and rope.get("attention_factor") == 1.0


def _kind(config: Mapping[str, Any], path: Path) -> str:
    named: list[str] = list(config.get("architectures") or [])
    for architecture in named:
        if architecture in SUPPORTED:
            return SUPPORTED[architecture]
    if not named and config.get("model_type") in SUPPORTED.values():
        return str(config["model_type"])
    found = ", ".join(named) or config.get("model_type") or "no architecture"
    raise ConfigError(f"{path}: {found} is not supported; assay's decoder reads {' and '.join(SUPPORTED)}")


def _refuse_options(config: Mapping[str, Any], path: Path) -> None:
    """Options that would change the numbers and that the decoder does not have."""
    rope: dict[str, Any] = dict(config.get("rope_parameters") or {})
    scaling: dict[str, Any] = dict(config.get("rope_scaling") or {})
    layers: list[str] = list(config.get("layer_types") or [])
    kinds = {str(d.get("rope_type", d.get("type", "default"))) for d in (rope, scaling)} - {"default"}
    if _stops_pairs(rope):
        kinds -= {"longrope"}
    found = {
        "attention_bias": bool(config.get("attention_bias")),
        "mlp_bias": bool(config.get("mlp_bias")),
        f"rope scaling {sorted(kinds)}": bool(kinds),
        "partial_rotary_factor": float(rope.get("partial_rotary_factor", config.get("partial_rotary_factor")) or 1.0) != 1.0,
        f"hidden_act={config.get('hidden_act')!r}": config.get("hidden_act", "silu") != "silu",
        "sliding-window attention": bool(config.get("use_sliding_window")) or any(k != "full_attention" for k in layers),
        "quantization_config": bool(config.get("quantization_config")),
    }
    for option, present in found.items():
        if present:
            raise ConfigError(f"{path}: {option} is not supported by assay's decoder; use a model without it")


def _field(config: Mapping[str, Any], name: str, path: Path) -> int:
    value = config.get(name)
    if not isinstance(value, int):
        raise DataError(f"{path} has no whole number {name!r} (found {value!r}); it describes no decoder")
    return value


# ---- weights ---------------------------------------------------------------------------------------------------------


def _read_weights(folder: Path) -> dict[str, torch.Tensor]:
    if (folder / WEIGHTS).is_file():
        return _read_shard(folder / WEIGHTS)
    if not (folder / INDEX).is_file():
        raise DataError(f"{folder} has neither {WEIGHTS} nor {INDEX}; save the model with save_pretrained (safetensors)")
    places: dict[str, str] = weight_map(folder / INDEX)
    out: dict[str, torch.Tensor] = {}
    for shard in sorted(set(places.values())):
        if not (folder / shard).is_file():
            raise DataError(f"{folder / INDEX} names {shard}, which is missing; copy it again from the model's source")
        held = _read_shard(folder / shard)
        out |= {name: tensor for name, tensor in held.items() if places.get(name) == shard}
    return out


def _read_shard(path: Path) -> dict[str, torch.Tensor]:
    try:
        held = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is truncated or damaged ({error}); copy it again from its source") from error
    return {n: t.to(torch.float32, copy=True) for n, t in held.items() if not n.endswith("rotary_emb.inv_freq")}
