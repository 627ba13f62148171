"""Folders of any causal language model of transformers, with an adapter beside it in PEFT's format, read and written."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM
from transformers.utils import logging as hub_logging

from assay.core.errors import ConfigError, DataError
from assay.runtime.models.adapter_base import ADAPTER_CONFIG, base_of
from assay.runtime.models.adapter_files import with_adapter, write_adapter
from assay.runtime.models.hub_model import HubModel, hub_config, kept_buffers
from assay.runtime.models.model_files import INDEX, WEIGHTS, read_json, weight_map
from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["ADAPTER", "load_hub", "quietly", "write_hub"]

ADAPTER = "adapter"
COPIED = 1 << 30
"""Bytes of weights up to which a folder is copied; larger ones share their files with it by hard links."""


def load_hub(folder: Path) -> HubModel:
    """Reads a model folder, or a folder of an adapter whose base is where its config says.

    Raises:
        ConfigError: an architecture that transformers does not know, or an adapter of a kind that is not read.
        DataError: a file is missing or damaged, weights do not fit the config, or the adapter belongs to another base.
    """
    if (folder / ADAPTER_CONFIG).is_file():
        return with_adapter(_load_base(base_of(folder)), folder)
    model = _load_base(folder)
    return with_adapter(model, folder / ADAPTER) if (folder / ADAPTER).is_dir() else model


def _load_base(folder: Path) -> HubModel:
    path = folder / "config.json"
    config = read_json(path)
    if not config.get("model_type"):
        raise DataError(f"{path} names no model_type, so that nothing says what model it is; copy it again from its source")
    try:
        hub_config(config)
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from error
    if (folder / INDEX).is_file() and not (folder / WEIGHTS).is_file():
        weight_map(folder / INDEX)
    with quietly():
        try:
            module, info = cast(Any, AutoModelForCausalLM).from_pretrained(
                folder, dtype="auto", local_files_only=True, use_safetensors=True, output_loading_info=True
            )
        except ValueError as error:
            raise ConfigError(f"{path}: transformers has no causal language model for it ({_line(error)})") from error
        except (OSError, SafetensorError, RuntimeError) as error:
            raise DataError(f"{folder} holds no readable weights ({_line(error)}); copy it again from its source") from error
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[what]:
            raise DataError(f"{folder}: its weights do not fit its config, {what.replace('_', ' ')} {_few(info[what])}")
    ends: Any = config.get("eos_token_id")
    eos = next((int(i) for i in cast("list[Any]", ends if isinstance(ends, list) else [ends]) if i is not None), None)
    tensors = {name: p.detach() for name, p in (*module.named_parameters(), *kept_buffers(module).items())}
    tokenizer = HubTokenizer.load(folder, eos=eos, rows=int(module.get_input_embeddings().weight.shape[0]))
    return HubModel(config=config, tensors=tensors, tokenizer=tokenizer, origin=str(folder.resolve()))


def write_hub(model: HubModel, folder: Path) -> None:
    """Writes the base as ``save_pretrained`` does, the tokenizer, and an adapter under ``adapter/``, into an empty folder."""
    if model.origin and Path(model.origin).is_dir():
        _share(Path(model.origin), folder)
    else:
        dtypes = {t.dtype for t in model.tensors.values() if t.is_floating_point()}
        module: Any = model.base().module(dtypes.pop() if len(dtypes) == 1 else torch.float32)
        with quietly():
            module.save_pretrained(folder)
    model.tokenizer.save(folder)
    if model.adapter is not None:
        (folder / ADAPTER).mkdir()
        write_adapter(model, folder / ADAPTER, "..")


def _share(origin: Path, folder: Path) -> None:
    """A folder with the files of another: copies of small ones, hard links to large ones where the file system allows."""
    weights = [p for p in origin.iterdir() if p.suffix == ".safetensors"]
    small = sum(p.stat().st_size for p in weights) <= COPIED
    for path in (*weights, *(origin / n for n in ("config.json", "generation_config.json", "model.safetensors.index.json"))):
        if not path.exists():
            continue
        try:
            if small:
                raise OSError
            os.link(path.resolve(), folder / path.name)
        except OSError:
            shutil.copyfile(path, folder / path.name)


@contextmanager
def quietly() -> Generator[None]:
    """Keeps transformers' progress bars and reports to itself: what goes wrong is raised."""
    bars, level = hub_logging.is_progress_bar_enabled(), hub_logging.get_verbosity()
    hub_logging.disable_progress_bar()
    hub_logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        hub_logging.set_verbosity(level)
        if bars:
            hub_logging.enable_progress_bar()


def _few(names: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, names))[:3])


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
