"""A learner's files: tensors as safetensors, the rest as JSON with a digest of each tensor file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor

from assay.core.canon import plain
from assay.core.errors import CheckpointError
from assay.runtime.learner.optim import check_tensors

__all__ = ["read", "read_facts", "write"]

FORMAT = 3
COUNTERS = ("version", "place", "anchored", "gradients")
Parts = Mapping[str, Mapping[str, Tensor]]


def write(folder: Path, parts: Parts, facts: Mapping[str, object]) -> None:
    """Writes each part as ``PART.safetensors`` and ``facts`` with the files' digests as ``learner.json``; without parts the
    latter alone.

    Raises:
        OSError: the folder cannot be written.
    """
    digests: dict[str, str] = {}
    for name, tensors in parts.items():
        data = dump_tensors({n: t.contiguous() for n, t in tensors.items()})
        (folder / f"{name}.safetensors").write_bytes(data)
        digests[name] = _digest(data)
    text = json.dumps({"format": FORMAT, **plain(facts), "digests": digests}, indent=1, sort_keys=True)
    (folder / "learner.json").write_text(text + "\n", encoding="utf-8")


def read_facts(folder: Path, facts: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, str]]:
    """The counters (``version``, ``place``, ``anchored``: anchors' versions, ``gradients``: which tensors had none yet), and the
    digests of the tensor files.

    Args:
        folder: where to read.
        facts: the reading learner's; all but the counters must be equal.

    Raises:
        CheckpointError: the file is missing, damaged or foreign; names it and what differs.
    """
    text = _bytes(folder / "learner.json")
    try:
        found: dict[str, Any] = json.loads(text)
        counters: dict[str, Any] = {"version": int(found["version"]), "place": int(found["place"])}
        counters["anchored"] = {str(k): int(v) for k, v in found.get("anchored", {}).items()}
        counters["gradients"] = dict(found.get("gradients", {}))
        digests = {str(k): str(v) for k, v in found["digests"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{folder / 'learner.json'} is damaged: {error!r}; restore the folder from a copy") from None
    ours: dict[str, Any] = plain({"format": FORMAT, **facts})
    for key in (*ours, *sorted(found.keys() - ours.keys() - {"digests"})):
        if key not in COUNTERS and found.get(key) != ours.get(key):
            raise CheckpointError(
                f"{folder} belongs to another learner: {key} is {found.get(key)!r} there and {ours.get(key)!r} here"
            )
    if counters["anchored"].keys() != ours.get("anchored", {}).keys():
        raise CheckpointError(f"{folder / 'learner.json'} is damaged: it lacks versions of anchors; restore it from a copy")
    return counters, digests


def read(
    folder: Path, digests: Mapping[str, str], wanted: Mapping[str, Mapping[str, Sequence[int]] | None]
) -> dict[str, dict[str, Tensor]]:
    """The parts that `write` wrote.

    Args:
        folder: where to read.
        digests: of the files.
        wanted: part to tensor name to shape; of a part with None the owner checks the tensors.

    Raises:
        CheckpointError: a file is missing, damaged or foreign; names it and what differs.
    """
    parts: dict[str, dict[str, Tensor]] = {}
    for name, shapes in wanted.items():
        path = folder / f"{name}.safetensors"
        data = _bytes(path)
        if _digest(data) != digests.get(name):
            raise CheckpointError(f"{path} is damaged: its digest is not the one in learner.json; restore the folder from a copy")
        try:
            parts[name] = parse_tensors(data)
        except SafetensorError as error:
            raise CheckpointError(f"{path} is no safetensors file: {error}") from None
        if shapes is not None:
            check_tensors(str(path), shapes, parts[name])
    return parts


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: {path.parent} is no complete learner checkpoint") from None


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
