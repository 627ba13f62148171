"""Where the base of an adapter's folder lies: here, or on a hub. Importable without torch."""

from __future__ import annotations

from pathlib import Path

from assay.core.errors import DataError, HubError
from assay.core.util.hub import HubName, Snapshot
from assay.core.util.jsonl import parsed_json
from assay.runtime.models.hub_names import ADAPTER_CONFIG, base_on_hub, hub_name

__all__ = ["ADAPTER_CONFIG", "base_of", "named_base", "whole_of"]


def base_of(folder: Path) -> Path:
    """The folder of an adapter's base, as its config names it: a path, also from there, or a name on the hub.

    Raises:
        DataError: it is no folder here, and no name.
        HubError: a name that neither the cache nor the hub gives; says which adapter asks for it.
    """
    found = _base(folder)
    return found if isinstance(found, Path) else found.folder


def named_base(folder: Path) -> HubName | None:
    """Name and commit of an adapter's base that is on the hub; None of one that lies here, and of a folder without adapter.

    Raises:
        DataError, HubError: as `base_of`.
    """
    found = _base(folder) if (folder / ADAPTER_CONFIG).is_file() else None
    return found.name if isinstance(found, Snapshot) else None


def whole_of(folder: Path) -> Path:
    """The folder with config, weights and tokenizer of a model: itself, or the base of an adapter that lies there alone.

    Raises:
        DataError, HubError: as `base_of`.
    """
    return base_of(folder) if (folder / ADAPTER_CONFIG).is_file() else folder


def _base(folder: Path) -> Path | Snapshot:
    path = folder / ADAPTER_CONFIG
    config = parsed_json(path)
    named, revision = (str(config.get(key) or "") for key in ("base_model_name_or_path", "revision"))
    for place in (folder / named, Path(named)):
        if (place / "config.json").is_file():
            return place.resolve()
    name = hub_name(named)
    if name is None:
        raise DataError(
            f"{path}: its base {named!r} is no folder here, and no name on the hub; get it, and name its folder there"
        )
    try:
        return base_on_hub(HubName(name.repo, revision or name.revision))
    except HubError as error:
        raise HubError(f"{path} names its base on the hub: {error}") from error
