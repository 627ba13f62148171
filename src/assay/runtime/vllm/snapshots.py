"""Weights as files for a server to read: written beside, renamed when whole, the newest two kept."""

from __future__ import annotations

import json
import mmap
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.columns import Array
from assay.core.errors import CheckpointError, ConfigError, EngineError
from assay.core.manifest import Manifest, digest_kind
from assay.core.util.owned_folder import OwnedFolder
from assay.runtime.vllm.checkpoint import TensorRows, checkpoint_names, whole

__all__ = ["WeightFile", "WeightFiles", "is_adapter", "read_header", "shapes_in"]

WEIGHTS, ADAPTER = "model.safetensors", "adapter_model.safetensors"
_BESIDE = ("config.json", "generation_config.json", "tokenizer", "special_tokens", "chat_template", "vocab", "merges")
_PEFT = "base_model.model."
_ARRAYS = {"float32": np.dtype("<f4"), "bfloat16": np.dtype("<u2")}


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A manifest whose arrays are in a folder, and which has none itself any more; ``parts``: names in the file to their rows."""

    manifest: Manifest
    path: Path
    parts: Mapping[str, TensorRows]

    def array(self, name: str) -> Array:
        """One of the manifest's tensors as it is in the file; bfloat16 as uint16 bit patterns.

        Raises:
            CheckpointError: the file is damaged or gone.
        """
        file = self.path / WEIGHTS
        header, start = read_header(file)
        data, kind = bytearray(), "<f4"
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
            for written in checkpoint_names(name, self.parts):
                begin, end = header[written]["data_offsets"]
                kind = "<u2" if header[written]["dtype"] == "BF16" else "<f4"
                if len(piece := view[start + begin : start + end]) != end - begin:
                    raise CheckpointError(f"{file} is cut off at tensor {written!r}")
                data += piece
        return np.frombuffer(data, kind).reshape(self.manifest.tensors[name].shape)


class WeightFiles:
    """Writes versions into a folder, each as a folder of its own.

    Args:
        folder: made where missing; a temporary one when empty, removed by `close`.
        beside: folder whose config and tokenizer files go beside full weights; None for none.
        nonce: begins the names, so that two engines may write into one folder.

    Raises:
        ConfigError: the folder cannot be written.
    """

    def __init__(self, folder: str, beside: Path | None, nonce: str) -> None:
        self._own = OwnedFolder("assay-vllm-") if not folder else None
        self.folder, self._beside, self._nonce, self._count = (
            Path(self._own.path if self._own else folder).resolve(),
            beside,
            nonce,
            0,
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"VllmSettings.folder={folder!r} cannot be written: {error}; name one that the server sees too"
            ) from None

    def full(self, manifest: Manifest, parts: Mapping[str, TensorRows] | None = None) -> WeightFile:
        """Writes all tensors with config and tokenizer files; ``parts`` are names in the file to what stands under them, the
        manifest's own when None.

        Raises:
            EngineError: the disk is full or the folder cannot be written; what was there stays.
        """
        beside = [f for f in self._beside.iterdir() if f.is_file() and f.name.startswith(_BESIDE)] if self._beside else []
        parts = whole({n: t.shape for n, t in manifest.tensors.items()}) if parts is None else parts
        return self._write(manifest, WEIGHTS, {f.name: f.read_bytes() for f in beside}, parts)

    def adapter(self, manifest: Manifest, config: Mapping[str, Any]) -> WeightFile:
        """Writes an adapter as PEFT does, its tensors under PEFT's names or those of parameters; raises like `full`."""
        parts = {
            name if name.startswith(_PEFT) else _PEFT + name.replace(".default.", "."): TensorRows(name, 0, info.shape)
            for name, info in manifest.tensors.items()
        }
        return self._write(
            manifest, ADAPTER, {"adapter_config.json": json.dumps(dict(config), indent=2, default=_sets_to_lists).encode()}, parts
        )

    def _write(self, manifest: Manifest, file: str, beside: Mapping[str, bytes], parts: Mapping[str, TensorRows]) -> WeightFile:
        self._count += 1
        path = self.folder / f"{self._nonce}-{self._count}-v{manifest.version}"
        aside = path.with_name(f".{path.name}.part")
        try:
            aside.mkdir()
            for name, data in beside.items():
                (aside / name).write_bytes(data)
            save_tensors(aside / file, manifest, parts)
            told = {
                "version": manifest.version,
                "digest": manifest.digest,
                "tensors": {n: t.digest for n, t in manifest.tensors.items()},
            }
            (aside / "manifest.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
            aside.rename(path)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise EngineError(
                f"weight version {manifest.version} cannot be written to {path} for the server: {error}; it keeps its old weights"
            ) from error
        return WeightFile(Manifest(version=manifest.version, tensors=manifest.tensors), path, parts)

    def keep(self, *newest: WeightFile | None) -> None:
        """Removes every version that this engine wrote but these."""
        kept = {s.path for s in newest if s is not None}
        for path in self.folder.glob(f"{self._nonce}-*"):
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Removes what this engine wrote."""
        self.keep()
        if self._own:
            self._own.close()


def save_tensors(file: Path, manifest: Manifest, parts: Mapping[str, TensorRows]) -> None:
    """The arrays of a manifest as a safetensors file, straight from memory; ``parts`` are names in the file, to their rows."""
    from safetensors import TensorSpec, serialize_file

    whole_ones = {name: np.ascontiguousarray(array) for name, array in (manifest.payload or {}).items()}
    arrays = {name: rows.of(whole_ones[rows.source]) for name, rows in parts.items()}
    specs = {
        name: TensorSpec(
            dtype="bfloat16" if manifest.tensors[parts[name].source].dtype == "bfloat16" else "float32",
            shape=list(array.shape),
            data_ptr=array.ctypes.data,
            data_len=array.nbytes,
        )
        for name, array in arrays.items()
    }
    serialize_file(specs, file, {"format": "pt"})
    del arrays  # alive until here: the file was written from their memory


def check_manifest(manifest: Manifest, dtype: str, shapes: Mapping[str, tuple[int, ...]] | None) -> None:
    """Holds a manifest to what a server that serves ``dtype`` can read; ``shapes`` are of all tensors, where it must have all.

    Raises:
        EngineError: a delta, no arrays, or names, shapes or types that do not fit: a server told to load these could fail for
            good, or silently keep what is missing.
    """
    said, kept = f"weight version {manifest.version}", "the server keeps its old weights"
    if manifest.kind != "full":
        raise EngineError(f"{said} is a delta; vLLM reads whole versions: publish full manifests. {kept.capitalize()}")
    if manifest.payload is None or manifest.payload.keys() != manifest.tensors.keys():
        raise EngineError(
            f"{said} names {len(manifest.tensors)} tensors and carries {len(manifest.payload or ())} arrays; {kept}"
        )
    if digest_kind(info.digest for info in manifest.tensors.values()) != "blake2b":
        raise EngineError(
            f"{said} is digested by 'mixed'; publish it with digests='blake2b', which is held to what is sent. {kept}"
        )
    if shapes is not None and (odd := sorted(shapes.keys() ^ manifest.tensors.keys())):
        what = "lacks" if odd[0] in shapes else "has the unknown"
        raise EngineError(f"{said} {what} tensor {odd[0]!r} ({len(odd)} such names); {kept}")
    for name, array in manifest.payload.items():
        told = manifest.tensors[name].dtype
        if (told == "bfloat16") != (dtype == "bfloat16") or array.dtype != _ARRAYS[dtype]:
            raise EngineError(
                f"{said}: tensor {name!r} is {told}, the server serves {dtype}; hand it over as Manifest.round_to({dtype!r}). "
                f"{kept.capitalize()}"
            )
        if shapes is not None and tuple(array.shape) != shapes[name]:
            raise EngineError(f"{said}: tensor {name!r} has shape {tuple(array.shape)} instead of {shapes[name]}; {kept}")


def is_adapter(manifest: Manifest) -> bool:
    """Whether all tensors are an adapter's, by PEFT's names."""
    return bool(manifest.tensors) and all(".lora_" in name for name in manifest.tensors)


def read_header(file: Path) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and where its data begins.

    Raises:
        CheckpointError: it is none, or gone.
    """
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header: dict[str, Any] = json.loads(stream.read(length)) if 0 < length < 1 << 28 else {}
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read as safetensors: {error}") from None
    header.pop("__metadata__", None)
    return header, 8 + length


def shapes_in(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor in a model folder's safetensors files; empty where there are none."""
    found: dict[str, tuple[int, ...]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= {name: tuple(entry["shape"]) for name, entry in read_header(file)[0].items()}
    return found


def _sets_to_lists(value: object) -> Any:
    """Sets, as PEFT has them in its settings, as lists."""
    return sorted(cast("set[str]", value)) if isinstance(value, set | frozenset) else str(value)
