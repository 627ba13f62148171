"""vLLM's checksums of its own parameters, told as digests of the tensors that they came from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, MutableSet
from typing import Protocol

import numpy as np

from assay.core.canon import array_digest
from assay.core.columns import Array
from assay.core.manifest import Manifest
from assay.runtime.vllm.checkpoint import TensorRows

__all__ = ["SentVersion", "compare_checksums", "parameters"]


class SentVersion(Protocol):
    """A version as a server was sent it."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def parts(self) -> Mapping[str, TensorRows]: ...

    def array(self, name: str) -> Array: ...


EMPTY = hashlib.sha256(b"").hexdigest()
"""The checksum of a parameter that is kept in another form (the CPU server packs the weights of linear layers anew, and leaves an
empty one in their place): equal before and after any update, so it witnesses nothing."""

_PLACE = re.compile(r"dp\d+:pp\d+:pcp(\d+):tp(\d+):")
_FUSED = (("qkv_proj", ("q_proj", "k_proj", "v_proj")), ("gate_up_proj", ("gate_proj", "up_proj")))
_TABLES = ("embed_tokens.weight", "lm_head.weight", "wte.weight", "embed_in.weight", "embed_out.weight")
_EXPERT = re.compile(r"(.*\.experts)\.\d+\.")
_EXPERTS = re.compile(r"(.*\.experts)\.(?:routed_experts\.)?(w13|w2)_weight")
_STACKED = {"w13": "gate_up_proj", "w2": "down_proj"}
"""What transformers calls the tensors that hold all experts of a layer, by what vLLM calls them."""
_PADDED = 64  # rows of embeddings and heads come in multiples of this


def parameters(checksums: Mapping[str, str]) -> dict[str, str]:
    """The server's parameters that its checksums tell something of: name to sha256.

    Left out are empty ones and those of which each of several devices holds a part. Copies that should be equal and are not get a
    checksum that no tensor has.
    """
    found: dict[str, set[str]] = {}
    parts = False
    for place, sha in checksums.items():
        if match := _PLACE.match(place):
            parts = parts or match[1] != "0" or match[2] != "0"
        name = _PLACE.sub("", place, count=1).replace(".base_layer.", ".")
        found.setdefault(name, set()).add(sha)
    told = {name: shas for name, shas in found.items() if EMPTY not in shas and not (parts and len(shas) > 1)}
    return {name: next(iter(shas)) if len(shas) == 1 else "copies that differ" for name, shas in told.items()}


def compare_checksums(sent: SentVersion, served: Mapping[str, str], laid: MutableSet[str]) -> dict[str, str]:
    """Digest by tensor: the manifest's own where the server holds the bytes it was sent, else a text that says what it holds.

    Args:
        sent: what it was sent; its arrays are held to the manifest too.
        served: from `parameters`. A tensor for which it has no name is left out.
        laid: parameters of experts that this server was once seen to keep as they are sent, to which those seen now are added.
            How the others lie depends on its kernels, so of these nothing is told.
    """
    told: dict[str, str] = {}
    for name, members in _sources(sent.parts, served).items():
        arrays = {member: sent.array(member) for member in members}
        damaged = {m for m, a in arrays.items() if array_digest(a) != sent.manifest.tensors[m].digest}
        held = served[name] in set(_likely(name, list(arrays.values())))
        if experts := _EXPERTS.fullmatch(name):
            laid |= {name} if held else set()
        for member in members:
            digest = sent.manifest.tensors[member].digest
            if member in damaged:
                told[member] = f"{getattr(sent, 'path', 'memory')} holds other bytes than were published"
            elif not experts or name in laid:
                told[member] = digest if held else f"the server's {name} has sha256 {served[name]}"
    return told


def _sources(parts: Mapping[str, TensorRows], served: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Server parameter to the model's tensors that it is made of, in order."""
    whole, experts, known = dict[str, str](), dict[tuple[str, str], str](), set[str]()
    for written, rows in parts.items():
        if block := _EXPERT.match(written):
            experts[block[1], rows.source.rpartition(".")[2]] = rows.source
        elif rows.source not in known:  # a head that is sent beside its embedding tells of nothing else
            whole[written] = rows.source
            known.add(rows.source)
    found: dict[str, tuple[str, ...]] = {}
    for name in served:
        if name in whole:
            found[name] = (whole[name],)
        elif (match := _EXPERTS.fullmatch(name)) and (source := experts.get((match[1], _STACKED[match[2]]))):
            found[name] = (source,)
        for fused, halves in _FUSED:
            members = [name.replace(f".{fused}.", f".{half}.") for half in halves]
            if f".{fused}." in name and all(member in whole for member in members):
                found[name] = tuple(whole[member] for member in members)
    return found


def _likely(name: str, arrays: list[Array]) -> Iterator[str]:
    """sha256 of the forms in which a server may hold tensors: behind one another, with rows of zeros, or transposed."""
    array = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    yield _sha(array)
    if name.endswith(_TABLES) and (short := -len(array) % _PADDED):
        yield _sha(np.concatenate([array, np.zeros((short, *array.shape[1:]), array.dtype)]))
    if len(arrays) == 1 and array.ndim == 2:
        yield _sha(array.T)
    if array.ndim == 3 and array.shape[1] % 2 == 0:  # experts, for kernels that want the up projection first
        yield _sha(np.roll(array, array.shape[1] // 2, axis=1))


def _sha(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()
