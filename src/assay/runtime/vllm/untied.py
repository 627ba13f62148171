"""A model whose head is its embedding, with a head of its own: what vLLM's CPU backend needs to be told new weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.core.errors import ConfigError
from assay.runtime.vllm.snapshots import read_header

__all__ = ["HEAD", "embedding_in", "untied_copy"]

HEAD = "lm_head.weight"
_INDEX = "model.safetensors.index.json"


def embedding_in(names: Iterable[str]) -> str:
    """The embedding's name among those of a model whose head is tied to it; empty where the model has a head of its own.

    >>> embedding_in(["model.embed_tokens.weight", "model.norm.weight"])
    'model.embed_tokens.weight'
    >>> embedding_in(["model.embed_tokens.weight", "lm_head.weight"])
    ''
    """
    known = set(names)
    tables = [name for name in known if name.endswith(("embed_tokens.weight", "wte.weight", "embed_in.weight"))]
    return tables[0] if HEAD not in known and len(tables) == 1 else ""


def untied_copy(source: Path | str, target: Path | str) -> None:
    """Copies a model folder whose head is tied to its embedding, with the head as a tensor of its own, equal to it.

    vLLM's CPU backend multiplies with a packed copy of the head. It is made when the server starts and, where the head is tied,
    never again: after new weights were loaded the server would go on with the old head, and say nothing. Start it with this copy.

    Args:
        source: a model folder in Hugging Face format, with safetensors.
        target: a folder that is made.

    Raises:
        ConfigError: ``source`` is no model folder with a tied head, or ``target`` exists.
    """
    source, target = Path(source), Path(target)
    if target.exists():
        raise ConfigError(f"{target} exists already; name a new folder or delete it first")
    headers = {file: read_header(file) for file in sorted(source.glob("*.safetensors"))}
    name = embedding_in(name for header, _ in headers.values() for name in header)
    if not name or not (source / "config.json").is_file():
        raise ConfigError(f"{source} is no model folder with a head tied to an embedding: nothing to untie")
    shutil.copytree(source, target)
    file, (header, start) = next((f, h) for f, h in headers.items() if name in h[0])
    _append(file, target / file.name, header, start, name)
    config: dict[str, Any] = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (target / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}, indent=2), encoding="utf-8")
    if (target / _INDEX).is_file():
        index: dict[str, Any] = json.loads((target / _INDEX).read_text(encoding="utf-8"))
        index["weight_map"][HEAD] = file.name
        (target / _INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")


def _append(source: Path, target: Path, header: dict[str, Any], start: int, name: str) -> None:
    """Writes a safetensors file once more, with the head behind all else."""
    begin, end = header[name]["data_offsets"]
    size = source.stat().st_size - start
    head = {**header[name], "data_offsets": [size, size + end - begin]}
    said = json.dumps({"__metadata__": {"format": "pt"}, **header, HEAD: head}).encode()
    said += b" " * (-len(said) % 8)
    with source.open("rb") as old, target.open("wb") as new:
        new.write(len(said).to_bytes(8, "little") + said)
        old.seek(start)
        shutil.copyfileobj(old, new, 1 << 24)
        old.seek(start + begin)
        new.write(old.read(end - begin))
