"""A trained model as others load it: written as ``save_pretrained`` does, or as PEFT's adapter, then read back and compared."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file  # type: ignore[reportUnknownVariableType]
from transformers import AutoModelForCausalLM

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.manifest import bfloat16_bits
from assay.core.rollout import Ids
from assay.core.util.event_loop import run_async
from assay.runtime.engine.settings import engine_for
from assay.runtime.kernels.typed import array_of
from assay.runtime.models.adapter_files import write_adapter
from assay.runtime.models.any_model import AnyModel
from assay.runtime.models.finite import check_weights
from assay.runtime.models.hub_files import quietly
from assay.runtime.models.hub_model import Adapter, HubModel, hub_of, kept_buffers
from assay.runtime.models.lora import PREFIX, merge, peft_names
from assay.runtime.models.model import Model
from assay.runtime.settings import Lora
from assay.runtime.text.tokenizer import HubTokenizer
from assay.runtime.text.transformers_ids import TEXTS, auto_tokenizer, first_difference, readable

__all__ = ["TOLERANCE", "Reloaded", "reload_exported", "with_weights", "write_exported"]

TOLERANCE = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.5}
"""Nats by which the written model may differ from the run's own on any probe token. Weights are compared bit by bit besides: this
is for what stands beside them, a config that asks for other arithmetic.
"""
SHARD = "5GB"
Bits = NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """What a reload showed.

    Attributes:
        tensors: compared, each of which holds the bits that it should.
        tokens: whose log-probabilities were compared.
        mean, worst: their differences, nats.
        tolerance: what ``worst`` may be.
        texts: whose ids are the same by both tokenizers.
    """

    tensors: int
    tokens: int
    mean: float
    worst: float
    tolerance: float
    texts: int


def write_exported(
    model: AnyModel,
    folder: Path,
    *,
    dtype: str = "float32",
    base: str | None = None,
    revision: str = "",
    generation: Mapping[str, Any] | None = None,
    shard: str = SHARD,
) -> None:
    """Writes ``model`` into an empty folder.

    Args:
        model: what a run ended with.
        folder: exists, empty.
        dtype: ``float32``, ``bfloat16`` or ``float16``; numbers are rounded to the nearest, ties to even.
        base: None: all weights, an adapter added to them. Else the adapter alone, in PEFT's format, beside a base that its config
            calls so.
        revision: commit of a base that is named as on a hub.
        generation: further fields of ``generation_config.json``.
        shard: most that one file of weights holds.

    Raises:
        ConfigError: an adapter is wanted and there is none, or a weight that ``dtype`` cannot hold.
        UnknownNameError: another dtype.
    """
    if dtype not in TOLERANCE:
        raise UnknownNameError("dtype of an export", dtype, TOLERANCE)
    hub, kind = hub_of(model), getattr(torch, dtype)
    if base is not None:
        if hub.adapter is None:
            raise ConfigError("this model has no adapter: all its weights were trained; export it whole")
        tensors = {name: tensor.to(kind) for name, tensor in hub.adapter.tensors.items()}
        _refuse_overflow(tensors, dtype)
        write_adapter(replace(hub, adapter=Adapter(hub.adapter.settings, tensors)), folder, base, revision)
    else:
        module: Any = whole(hub, kind)
        _refuse_overflow(dict(module.named_parameters()), dtype)
        with quietly():
            module.save_pretrained(folder, max_shard_size=shard)
        _write_generation(folder, hub, generation or {})
    hub.tokenizer.save(folder)
    _write_template(folder, hub.tokenizer)


def whole(model: HubModel, dtype: torch.dtype) -> torch.nn.Module:
    """A module with the adapter, if there is one, added to the weights in float32, and then rounded."""
    if model.adapter is None:
        return model.module(dtype)
    module = model.module(torch.float32)
    merge(module)
    for parameter in module.parameters():  # buffers stay as they are, as in a module that is made in that type
        parameter.data = parameter.data.to(dtype)
    return module


def _refuse_overflow(tensors: Mapping[str, torch.Tensor], dtype: str) -> None:
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            if dtype != "float16" or bool(torch.isnan(tensor).any()):
                check_weights([(name, tensor)], "the model")
            raise ConfigError(f"weight {name} has numbers that {dtype} cannot hold; export float32 or bfloat16")


def _write_generation(folder: Path, model: HubModel, more: Mapping[str, Any]) -> None:
    ends = list(model.tokenizer.stop_ids)
    bos = model.config.get("bos_token_id")
    known = {"bos_token_id": model.tokenizer.bos if bos is None else bos, "pad_token_id": model.tokenizer.pad}
    found = {**known, "eos_token_id": ends[0] if len(ends) == 1 else ends, **more}
    text = json.dumps({k: v for k, v in found.items() if v is not None}, indent=2, sort_keys=True)
    (folder / "generation_config.json").write_text(text + "\n", encoding="utf-8")


def _write_template(folder: Path, tokenizer: HubTokenizer) -> None:
    """The chat template that the run used becomes the one that is taken."""
    text = tokenizer.jinja
    if text is None:
        return
    path = folder / "tokenizer_config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others: Any = config.get("chat_template")
    if isinstance(others, list):
        named = [t for t in cast("list[dict[str, str]]", others) if t["name"] != "default"]
        config["chat_template"] = [{"name": "default", "template": text}, *named]
    else:
        config["chat_template"] = text
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def with_weights(model: AnyModel, path: Path, adapter: Lora | None) -> AnyModel:
    """The model with what a learner trained: all its weights, or an adapter's.

    Args:
        model: what the learner began with.
        path: its ``weights.safetensors``.
        adapter: how an adapter was put in; None where all weights were trained.

    Raises:
        DataError: the file is damaged.
    """
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is missing, truncated or damaged ({error}); name another step") from error
    if adapter is None and isinstance(model, Model):
        return replace(model, tensors=tensors)
    return hub_of(model).with_trained(tensors, adapter)


# ---- reading it back ---------------------------------------------------------------------------------------------------------


def reload_exported(
    model: AnyModel, folder: Path, rows: Sequence[Ids], texts: Sequence[str], *, dtype: str = "float32", base: Path | None = None
) -> Reloaded:
    """Loads what `write_exported` wrote as anybody would, and compares it with the run's own model.

    Every weight must hold the bits that it should, rounded here by other code; log-probabilities of ``rows``, computed by assay's
    engine on the run's weights and by transformers on the written ones, must agree within `TOLERANCE`; ``texts`` must have the
    same ids, as pieces of text and as whole prompts.

    Args:
        model: as written.
        folder: where.
        rows: ``[tokens]`` each, two or more.
        texts: what the tokenizers read, besides the text of ``rows``.
        dtype: as written.
        base: folder of the base, of an adapter.

    Raises:
        DataError: it cannot be loaded, or anything differs; names it.
    """
    hub = hub_of(model)
    try:
        with quietly():
            module = _load(folder, base)
            tokenizers = [auto_tokenizer(folder), *([auto_tokenizer(folder, base)] if base else [])]  # as is, and as the base's
    except Exception as error:  # whatever a library says of files that it cannot read
        line = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"the exported folder cannot be loaded by transformers ({line}); nothing was kept of it") from error
    count = _compare_weights(hub, module, dtype, base is not None)
    read = [*readable(hub.tokenizer, TEXTS), *texts, *(hub.tokenizer.decode(row) for row in rows)]
    texts_read = max(_compare_tokenizers(hub.tokenizer, tokenizer, read) for tokenizer in tokenizers)
    mine = run_async(engine_for(model).score(list(rows)))
    gaps = np.concatenate([np.abs(a[1:] - b) for a, b in zip(mine, _log_probs(module.float(), rows), strict=True)])
    found = Reloaded(
        tensors=count,
        tokens=len(gaps),
        mean=float(gaps.mean()),
        worst=float(gaps.max()),
        tolerance=TOLERANCE[dtype],
        texts=texts_read,
    )
    if not found.worst <= found.tolerance:
        raise DataError(
            f"loaded again by transformers, the exported model's log-probabilities differ from the run's by up to "
            f"{found.worst:.3g} nats (at most {found.tolerance} is rounding to {dtype}) though its weights are right: its config "
            "asks for other arithmetic; nothing was kept of it"
        )
    return found


def _load(folder: Path, base: Path | None) -> Any:
    auto = cast(Any, AutoModelForCausalLM)
    if base is None:
        return auto.from_pretrained(folder, dtype="auto", local_files_only=True, use_safetensors=True).eval()
    from peft import PeftModel

    beneath = auto.from_pretrained(base, dtype=torch.float32, local_files_only=True, use_safetensors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of names in transformers that PEFT still uses
        return cast(Any, PeftModel).from_pretrained(beneath, folder, autocast_adapter_dtype=False).eval()


def _compare_weights(model: HubModel, module: Any, dtype: str, adapter: bool) -> int:
    """Bits against bits; the number of tensors."""
    if adapter:
        own = cast(Adapter, model.adapter).tensors
        names = peft_names(own)
        wanted = {names[n]: t for n, t in own.items()}
        there = {n.replace(".default", ""): p for n, p in module.named_parameters()}
    else:
        mine = whole(model, torch.float32)
        wanted, there = dict(mine.named_parameters()), dict(module.named_parameters())
        _compare_buffers(kept_buffers(mine), kept_buffers(module))
        if missing := sorted(there.keys() ^ wanted.keys()):
            raise DataError(
                f"the exported folder and the run differ in which weights there are: {missing[0]}; nothing was kept of it"
            )
    for name, tensor in wanted.items():
        if not np.array_equal(_round_bits(name, array_of(tensor.detach().float()), dtype), _bits(there[name].detach())):
            raise DataError(f"weight {name.removeprefix(PREFIX)} of the exported folder is not the run's; nothing was kept of it")
    return len(wanted)


def _compare_buffers(own: Mapping[str, torch.Tensor], there: Mapping[str, torch.Tensor]) -> None:
    """Those of a loaded module have the type that transformers gives them, whatever lies in the file."""
    for name in own.keys() | there.keys():
        if name not in own or name not in there or not torch.equal(own[name].to(there[name].dtype), there[name]):
            raise DataError(f"{name} of the exported folder is not the run's; nothing was kept of it")


def _round_bits(name: str, array: NDArray[np.float32], dtype: str) -> Bits:
    """float32 numbers rounded to ``dtype``, as unsigned integers."""
    if dtype == "bfloat16":
        return bfloat16_bits(name, array)
    return array.astype(np.float16).view(np.uint16) if dtype == "float16" else np.ascontiguousarray(array).view(np.uint32)


def _bits(tensor: torch.Tensor) -> Bits:
    if tensor.dtype == torch.float32:
        return np.ascontiguousarray(array_of(tensor)).view(np.uint32)
    return array_of(tensor.contiguous().view(torch.int16)).view(np.uint16)


def _log_probs(module: Any, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
    """``[tokens - 1]`` each, row by row, by the module's own forward pass."""
    out: list[NDArray[np.float32]] = []
    with torch.no_grad():
        for row in rows:
            ids = torch.from_numpy(np.asarray(row, np.int64))  # type: ignore[reportUnknownMemberType]
            logits = module(input_ids=ids[None]).logits[0, :-1].float()
            out.append(array_of(logits.log_softmax(-1).gather(1, ids[1:, None])[:, 0]))
    return out


def _compare_tokenizers(own: HubTokenizer, theirs: Any, texts: Sequence[str]) -> int:
    """The number of texts, which both read by the same ids."""
    found = first_difference(own, theirs, texts)
    if found is None:
        return len(texts)
    text, mine, others = found
    at = next((i for i, (a, b) in enumerate(zip(mine, others, strict=False)) if a != b), min(len(mine), len(others)))
    raise DataError(
        f"the exported tokenizer, loaded by transformers as a {type(theirs).__name__}, reads {text[:60]!r} otherwise than the "
        f"run's: token {at} of {len(mine)} differs; nothing was kept of the export"
    )
