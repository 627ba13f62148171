"""The compiled passes behind a decoder: hidden states, and the gradient by all weights, as one step of PyTorch's autograd."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from ctypes import POINTER, byref, c_int32, c_int64, c_uint64, c_void_p
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from assay.core.errors import EngineError
from assay.runtime.compiled.activation_cache import ActivationCache
from assay.runtime.compiled.calls import NO_MEMORY, Sizes, addresses, angles, declare_functions
from assay.runtime.learner.packing import Packing
from assay.runtime.settings import DecoderShape

__all__ = ["CompiledPasses"]

_RECALLED_OTHERWISE = 4

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "assay_train": (c_void_p, [POINTER(Sizes), c_void_p, c_void_p]),
    "assay_train_free": (None, [c_void_p]),
    "assay_train_load": (c_int32, [c_void_p, c_void_p, c_int32, c_void_p]),
    "assay_train_forward": (
        c_int32,
        [c_void_p, c_int32, c_void_p, c_void_p, c_int64, c_void_p, c_void_p, c_int32, c_void_p, c_void_p],
    ),
    "assay_train_nodes": (None, [c_void_p, c_void_p]),
    "assay_train_forget": (None, [c_void_p]),
    "assay_bytes": (c_int64, []),
    "assay_train_backward": (c_int32, [c_void_p, c_void_p, c_int32, c_void_p]),
}


class CompiledPasses:
    """Forward and backward pass of a decoder without its head, in float32.

    What rows of a call begin with is computed once, what stands behind the last token that is read not at all, and what is on the
    `activation_cache` neither. States do not depend on what else a call asks for, and nothing on the number of threads.

    Args:
        library: of `assay.runtime.compiled.build`.
        shape: of the decoder.

    Attributes:
        activation_cache: what a sampler with the same weights has left; None for nothing.
        nodes: tokens of the last call with a gradient, those that rows share counted once.
        recalled: of these, those whose states were in the cache.

    Raises:
        MemoryError: it does not suffice for the weights.
    """

    def __init__(self, library: ctypes.CDLL, shape: DecoderShape) -> None:
        self.shape, self.nodes, self.recalled = shape, 0, 0
        self._loaded = (0, False)  # the digest of the weights that are packed, and whether for a backward pass too
        self.activation_cache: ActivationCache | None = None
        self.functions = declare_functions(library, _SIGNATURES)
        cosine, sine = angles(shape)
        self._pointer: int | None = self.functions.assay_train(Sizes.of(shape), cosine.ctypes.data, sine.ctypes.data)
        if self._pointer is None:
            raise MemoryError(f"the compiled passes have no memory for {shape.parameters:,} weights")
        weakref.finalize(self, self.functions.assay_train_free, self._pointer)

    def hidden_states(self, weights: Sequence[Tensor], ids: Tensor, packing: Packing, wanted: Tensor | None = None) -> Tensor:
        """As `Causal.hidden_states`.

        Args:
            weights: float32, in the order of `assay.runtime.models.model.parameter_shapes`, without a head of its own.
            ids, packing, wanted: as there.

        Raises:
            MemoryError: it does not suffice for what a gradient needs.
            EngineError: the system starts no further thread; or what the sampler left is not what its weights give.
            IndexError: a row has more tokens than the shape has positions, or there is no such id or token.
        """
        at = torch.arange(len(ids)) if wanted is None else wanted.contiguous()
        if packing.longest > self.shape.max_positions:
            raise IndexError(f"a row has {packing.longest} tokens, the shape {self.shape.max_positions} positions")
        for what, found, end in (("ids", ids, self.shape.vocab_size), ("wanted tokens", at, len(ids))):
            if len(found) and not 0 <= int(found.min()) <= int(found.max()) < end:
                raise IndexError(f"{what} reach from {int(found.min())} to {int(found.max())}; there are {end}")
        keep = torch.is_grad_enabled() and any(w.requires_grad for w in weights)
        return cast(Any, _States).apply(self, keep, ids.contiguous(), packing.ends.to(torch.int64), at, *weights)

    def load(self, weights: Sequence[Tensor], keep: bool) -> None:
        """Packs weights, for a backward pass too with ``keep``, unless these bits are packed already."""
        digest = c_uint64()
        self._check_status(self.functions.assay_train_load(self._pointer, addresses(weights), keep, byref(digest)))
        self._loaded = (digest.value, keep or self._loaded == (digest.value, True))

    def forward(self, ids: Tensor, ends: Tensor, at: Tensor, keep: bool) -> tuple[Tensor, _Tape | None]:
        """States ``[M, hidden]`` of the tokens ``at [M]`` by the weights loaded last, and what `backward` reads."""
        out, found = torch.empty(len(at), self.shape.hidden_size), c_void_p()
        self._check_status(
            self.functions.assay_train_forward(
                self._pointer,
                len(ends) - 1,
                ids.data_ptr(),
                ends.data_ptr(),
                len(at),
                at.data_ptr(),
                self.activation_cache.pointer if self.activation_cache else None,
                torch.get_num_threads(),
                out.data_ptr(),
                byref(found) if keep else None,
            )
        )
        if not keep:
            return out, None
        counts = (c_int64 * 2)()
        self.functions.assay_train_nodes(found, counts)
        self.nodes, self.recalled = counts
        return out, _Tape(self, found, self._loaded[0])

    def backward(self, tape: _Tape, weights: Sequence[Tensor], grad: Tensor) -> list[Tensor]:
        """Gradients by ``weights``, with which the tape was made, from that by its states."""
        if self._loaded != (tape.loaded, True):
            self.load(weights, True)
        grad, found = grad.contiguous(), [torch.empty_like(w) for w in weights]
        self._check_status(
            self.functions.assay_train_backward(tape.pointer, grad.data_ptr(), torch.get_num_threads(), addresses(found))
        )
        return found

    def _check_status(self, status: int) -> None:
        if status == NO_MEMORY:
            raise MemoryError("the compiled passes have no memory for what a gradient needs; lower LearnerSettings.micro_tokens")
        if status == _RECALLED_OTHERWISE:
            raise EngineError(
                "what the sampler left of a row is not what its own weights give: memory of this process was written over, or "
                "the library is broken; Native(recall=0) computes everything again"
            )
        if status:
            raise EngineError("the compiled passes stopped: the system starts no further thread; lower Run.threads")


class _Tape:
    """What a forward pass keeps; freed with this."""

    def __init__(self, passes: CompiledPasses, pointer: c_void_p, loaded: int) -> None:
        self.passes, self.pointer, self.loaded = passes, pointer, loaded
        weakref.finalize(self, passes.functions.assay_train_forget, pointer)


class _States(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, passes: CompiledPasses, keep: bool, ids: Tensor, ends: Tensor, at: Tensor, *weights: Tensor) -> Tensor:
        passes.load(weights, keep)
        out, ctx.tape = passes.forward(ids, ends, at, keep)
        ctx.save_for_backward(*weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[reportIncompatibleMethodOverride]
        tape: _Tape = ctx.tape
        found = tape.passes.backward(tape, ctx.saved_tensors, grads[0])
        return (None,) * 5 + tuple(g if needed else None for g, needed in zip(found, ctx.needs_input_grad[5:], strict=True))
