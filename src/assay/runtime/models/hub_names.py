"""Models by their names on a hub: which texts are names, and what of a repository is fetched. Importable without torch."""

from __future__ import annotations

import json
from pathlib import Path

from assay.core.util.hub import PREFIX, HubName, Snapshot, fetch

__all__ = ["ADAPTER_CONFIG", "base_on_hub", "hub_name", "on_hub"]

ADAPTER_CONFIG = "adapter_config.json"
_MODEL_FILES = ("*.json", "*.safetensors", "*.jinja")


def hub_name(path: str | Path) -> HubName | None:
    """The name on the hub that ``path`` is; None where it, or what it would lie in, is a folder here."""
    place, text = Path(path), str(path)
    local = place.exists() or (place.parent.is_dir() and not text.startswith(PREFIX))
    return None if local else HubName.read(text)


def on_hub(name: HubName) -> Snapshot:
    """The files of a model: safetensors, configs, tokenizer; or those of an adapter.

    Raises:
        HubError: as `assay.core.util.hub.fetch`.
    """
    return fetch(name, "model", _MODEL_FILES, lacking)


def base_on_hub(name: HubName) -> Snapshot:
    """The files of a whole model.

    Raises:
        HubError: as `assay.core.util.hub.fetch`; also of an adapter.
    """
    return fetch(name, "model", _MODEL_FILES, _lacking_whole)


def lacking(folder: Path) -> str:
    """What of a model, or of an adapter, is missing in a folder; empty for nothing."""
    if (folder / ADAPTER_CONFIG).is_file():
        return "" if (folder / "adapter_model.safetensors").is_file() else "no adapter_model.safetensors"
    return _lacking_whole(folder)


def _lacking_whole(folder: Path) -> str:
    index = folder / "model.safetensors.index.json"
    needed = ["config.json", "tokenizer.json"]
    if index.is_file():
        try:
            needed += sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError):
            return f"a damaged {index.name}"
    else:
        needed.append("model.safetensors")
    missing = [name for name in needed if not (folder / name).is_file()]
    return f"no {missing[0]}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "") if missing else ""
