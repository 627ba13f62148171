"""What an engine in this process asks of a manifest before it takes its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from assay.core.columns import Array
from assay.core.errors import EngineError
from assay.core.manifest import Manifest
from assay.runtime.learner.publishing import TensorsInPlace

__all__ = ["fitting"]

_STORED = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(np.uint16)}


def fitting(
    manifest: Manifest, sizes: Mapping[str, tuple[int, ...]], dtype: str, digests: str, identity: Callable[[str], str]
) -> Mapping[str, Array]:
    """The payload of a manifest, checked to fit: all tensors of a full one, some of a delta.

    Args:
        manifest: as received.
        sizes: shape of each tensor that is served.
        dtype: ``float32``, or ``bfloat16`` for uint16 bit patterns that the manifest names so (`Manifest.round_to`).
        digests: the kind that the engine makes of itself.
        identity: gives the `Manifest.digest` of what is served now by digests of a kind; asked only for a delta, which may name
            what it changes by either.

    Raises:
        EngineError: no payload, one that is not what the manifest names, a delta on other weights than the served ones, or
            names, shapes or types that differ from the served ones.

    Returns:
        Arrays by name, or the payload itself where that is a `TensorsInPlace`.
    """
    said = f"weight version {manifest.version}"
    if manifest.payload is None:
        raise EngineError(f"{said} carries no arrays; an engine in this process takes manifests whose arrays travel with them")
    if manifest.kind == "delta" and manifest.base not in (served := {of: identity(of) for of in ("mixed", "blake2b")}).values():
        raise EngineError(
            f"{said} changes the weights with digest {manifest.base}, but the engine serves those with digest {served[digests]}; "
            "swap a full manifest in first"
        )
    laid = manifest.payload if isinstance(manifest.payload, TensorsInPlace) else None
    payload = manifest.payload if laid else {n: np.asarray(a) for n, a in manifest.payload.items()}
    full = sizes.keys() if manifest.kind == "full" else manifest.tensors.keys()
    for what, names in {
        "has the unknown": payload.keys() - sizes.keys(),
        "lacks": (full | manifest.tensors.keys()) - payload.keys(),
        "carries, but does not name,": payload.keys() - manifest.tensors.keys(),
    }.items():
        if names:
            raise EngineError(f"{said} {what} tensor {min(names)!r}; the engine keeps its old weights")
    for name, size in sizes.items():
        if name not in payload:
            continue
        given = laid.tensors[name] if laid else payload[name]
        kind, stored = (laid.dtype, dtype) if laid else (given.dtype, _STORED[dtype])
        named = dtype == "float32" or manifest.tensors[name].dtype == dtype
        if tuple(given.shape) != size or kind != stored or not named:
            raise EngineError(
                f"{said}: tensor {name!r} is {kind}{tuple(given.shape)}, the engine serves {dtype}{size}; it keeps "
                "its old weights"
            )
    return payload
