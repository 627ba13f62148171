"""What a model's small files say of it: sizes, context, how it is talked to. No weights are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from assay.core.errors import DataError
from assay.core.util.hub import fetch
from assay.core.util.jsonl import parsed_json
from assay.runtime.models.adapter_base import ADAPTER_CONFIG, whole_of
from assay.runtime.models.hub_names import hub_name
from assay.runtime.settings import DecoderShape, HubShape
from assay.train.memory import WeightSizes, sizes_of, weights_in, weights_of
from assay.train.models import Folder, Scratch, model_folder

if TYPE_CHECKING:
    from assay.runtime.text.tokenizer import HubTokenizer

__all__ = [
    "Kind",
    "ModelFacts",
    "decoder_of",
    "facts_in",
    "facts_of_config",
    "facts_of_scratch",
    "shape_in",
    "small_files",
    "template_in",
    "tokenizer_in",
]

Kind = Literal["base", "chat", "thinking"]
"""Without a chat template; with one; with one that lets the model think."""

_SMALL_FILES = ("*.json", "*.jinja")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What settings are derived from.

    Attributes:
        shape: sizes.
        weights: their number, and the matrices of the layers.
        kind: how the model is talked to.
        family: in words, such as ``qwen3``.
    """

    shape: DecoderShape | HubShape
    weights: WeightSizes
    kind: Kind = "base"
    family: str = ""

    @property
    def count(self) -> int:
        """Number of weights."""
        return self.weights.count


def small_files(source: Folder) -> Path:
    """The folder with config and tokenizer of a model: of a name on the hub, without the weights.

    Raises:
        ConfigError: there is no such folder, or it holds no model.
        HubError: neither the cache nor the hub has the name.
    """
    name = hub_name(source.path)
    if name is None:
        return whole_of(model_folder(Path(source.path)))
    return whole_of(fetch(name, "model", _SMALL_FILES, _lacking).folder)


def _lacking(folder: Path) -> str:
    if (folder / ADAPTER_CONFIG).is_file():
        return ""
    return next((f"no {name}" for name in ("config.json", "tokenizer.json") if not (folder / name).is_file()), "")


def facts_in(folder: Path) -> ModelFacts:
    """The facts of a model folder; weights that are not there are counted from the config.

    Raises:
        DataError: its config cannot be read, or does not describe a decoder.
        ConfigError: transformers does not know the family, where that is needed to count.
    """
    path = folder / "config.json"
    config = parsed_json(path)
    if any(folder.glob("*.safetensors")) or _own(config):
        shape = shape_in(path)
        weights = weights_of(shape) if isinstance(shape, DecoderShape) else weights_in(folder)
        found = ModelFacts(shape=shape, weights=weights, family=_family(config))
    else:
        found = facts_of_config(config)
    return replace(found, kind=_kind(folder))


def facts_of_config(config: Mapping[str, Any], kind: Kind = "base") -> ModelFacts:
    """The facts that a ``config.json`` alone tells; of families that assay has no decoder for, by transformers' own module
    without numbers.

    Raises:
        ConfigError: transformers does not know the family.
    """
    if _own(config):
        shape = decoder_of(config)
        return ModelFacts(shape=shape, weights=weights_of(shape), kind=kind, family=_family(config))
    from assay.runtime.models.hub_model import parameter_shapes

    weights = sizes_of(parameter_shapes(config), config)
    return ModelFacts(shape=HubShape.of(config, weights.count), weights=weights, kind=kind, family=_family(config))


def facts_of_scratch(source: Scratch) -> ModelFacts:
    """The facts of fresh weights."""
    shape = source.decoder
    return ModelFacts(shape=shape, weights=weights_of(shape), family="fresh")


def tokenizer_in(folder: Path, rows: int) -> HubTokenizer:
    """The tokenizer of a model folder.

    Args:
        folder: with ``tokenizer.json`` and ``config.json``.
        rows: of the model's embedding.

    Raises:
        DataError, ConfigError: as `HubTokenizer.load`.
    """
    from assay.runtime.text.tokenizer import HubTokenizer

    return HubTokenizer.load(folder, eos=_end(folder / "config.json"), rows=rows)


def _end(path: Path) -> int | None:
    """The id that ends an answer where the tokenizer's own files name none; a config may name several."""
    ends: Any = parsed_json(path).get("eos_token_id")
    known: list[Any] = cast("list[Any]", ends) if isinstance(ends, list) else [ends]
    return next((int(i) for i in known if i is not None), None)


def _own(config: Mapping[str, Any]) -> bool:
    return str(config.get("model_type", "")).lower() in ("qwen3", "llama")


def _family(config: Mapping[str, Any]) -> str:
    return str(config.get("model_type", ""))


def _kind(folder: Path) -> Kind:
    """By the chat template that the folder brings."""
    text = template_in(folder)
    if not text:
        return "base"
    return "thinking" if "enable_thinking" in text or "<think>" in text else "chat"


def template_in(folder: Path) -> str:
    """The chat template that a model folder brings, a Jinja text; empty without one.

    Raises:
        DataError: its tokenizer's config cannot be read.
    """
    told: Any = {}
    if (folder / "tokenizer_config.json").is_file():
        told = parsed_json(folder / "tokenizer_config.json")
    text = str(told.get("chat_template") or "")
    if told.get("assay_template"):  # a character tokenizer of assay's, whose turns are written bare
        text = ""
    if (folder / "chat_template.jinja").is_file():
        text = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    return text


# ---- shapes -----------------------------------------------------------------------------------------------------------


def shape_in(path: Path) -> DecoderShape | HubShape:
    """The few numbers of a ``config.json`` that decide sizes; whether the model can be run is for the runtime to say.

    Raises:
        DataError: it cannot be read, or describes no decoder.
    """
    try:
        config = parsed_json(path)
        if not _own(config):
            other = HubShape.of(config, 0)  # first of all, is it one at all?
            return replace(other, parameters=weights_in(path.parent).count)
        return decoder_of(config)
    except DataError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: {type(error).__name__} {error}; it does not describe a decoder") from None


def decoder_of(config: Mapping[str, Any]) -> DecoderShape:
    """The shape of a decoder of the Llama or Qwen3 family.

    Raises:
        KeyError, ValueError: a size is missing, or no whole number.
    """
    heads, hidden = _whole(config, "num_attention_heads"), _whole(config, "hidden_size")
    qwen = str(config["model_type"]).lower() == "qwen3"
    return DecoderShape(
        vocab_size=_whole(config, "vocab_size"),
        hidden_size=hidden,
        num_layers=_whole(config, "num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=_whole(config, "num_key_value_heads", heads),
        head_dim=_whole(config, "head_dim", 128 if qwen else hidden // heads),
        intermediate_size=_whole(config, "intermediate_size"),
        max_positions=_whole(config, "max_position_embeddings", 32768 if qwen else 2048),
        tied=bool(config.get("tie_word_embeddings", False)),
        qk_norm=qwen,
    )


def _whole(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    found = config[name] if default is None else config.get(name) or default
    if not isinstance(found, int):
        raise ValueError(f"{name}={found!r} is no whole number")
    return found
