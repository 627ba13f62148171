"""assay's own engine: small decoders on CPU, continuous batching, token in and token out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from assay.core.protocols import EngineInfo
from assay.runtime.compiled import build
from assay.runtime.compiled.activation_cache import ActivationCache
from assay.runtime.compiled.decode_path import CompiledRunner
from assay.runtime.engine.backend import SteppedRunner
from assay.runtime.engine.decode import DecodePath
from assay.runtime.engine.scheduler import RunningBatch, check_settings
from assay.runtime.engine.weights import ServedWeights
from assay.runtime.models.model import Model

__all__ = ["NativeEngine"]


class NativeEngine(RunningBatch[Any]):
    """Decodes many requests as one running batch (implements `assay.core.protocols.Engine`).

    A prompt that several waiting requests share passes through the model once; requests join between any two steps and leave as
    they end. A token depends on its request alone (prompt, seed, position, weights) up to rounding: noise is counter based, never
    drawn in batch order. Requests are admitted in the order of their arrival, so the same program gives the same bits.

    Args:
        model: its weights are copied; later changes to it are not seen.
        max_batch: most rows that run at once; further requests wait.
        columns: token columns that completions carry: ``entropy`` of the sampled distribution, nats, or none.
        dtype: of the weights served, ``float32`` or ``bfloat16``. With the latter the library's products take bfloat16 on both
            sides and add up in float32, all else is float32; PyTorch's products are float32 of the rounded weights.
        kernel: decode with the library that is compiled for this processor on first use, several tokens of each row at a time;
            PyTorch decodes otherwise, and where there is no C++ compiler, which one warning says.
        recall: bytes of states that the library leaves in the `activation_cache`, in float32.
        digests: how checksums are made, as in `EngineInfo.digests`: ``blake2b``, or ``mixed``, which takes less than a tenth of
            the time and finds faults, not forgery.

    Attributes:
        activation_cache: what was computed of the tokens that were sampled while it was open, for a learner that follows it; None
            where nothing is left.
        counters: what was computed so far: ``prefill_prompts``, ``prefill_tokens`` (without padding), ``steps``,
            ``decode_tokens`` (rows times steps behind the prefill), ``sampled_tokens``.

    Raises:
        ConfigError: ``max_batch`` below 1, or another dtype or digest.
        UnknownNameError: an unknown column.

    >>> import asyncio
    >>> from assay.core import Request, Sampling
    >>> from assay.runtime import DecoderShape, char_tokenizer, init_model
    >>> model = init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0)
    >>> engine = NativeEngine(model)
    >>> prompt = model.tokenizer.encode("42")
    >>> wanted = [Request(id=str(i), prompt=prompt, seed=i, sampling=Sampling(max_new_tokens=3)) for i in range(4)]
    >>> async def sample():
    ...     return await asyncio.gather(*(engine.generate(request) for request in wanted))
    >>> [len(completion.ids) for completion in asyncio.run(sample())], engine.counters["prefill_tokens"]
    ([3, 3, 3, 3], 2)
    """

    def __init__(
        self,
        model: Model,
        *,
        max_batch: int = 512,
        columns: tuple[str, ...] = ("entropy",),
        dtype: str = "float32",
        kernel: bool = True,
        recall: int = 0,
        digests: str = "blake2b",
    ) -> None:
        check_settings("NativeEngine", max_batch, columns, ["entropy"])
        self.weights = ServedWeights(model.shape, model.tensors, dtype, digests)
        info = EngineInfo(
            version=0,
            vocabulary=model.shape.vocab_size,
            context=model.shape.max_positions,
            dtype=dtype,
            columns=columns,
            digests=digests,
        )
        built = build.kernel() if kernel else None
        runner: Any
        if built:
            runner = CompiledRunner(built, self.weights, recall if dtype == "float32" else 0)
        else:
            runner = SteppedRunner(DecodePath(self.weights, max_batch))
        self.activation_cache: ActivationCache | None = runner.activation_cache if built else None
        super().__init__(
            runner,
            runner if built else self.weights,
            info,
            max_batch=max_batch,
            columns=columns,
            decode=model.tokenizer.decode,
        )

    def record_states(self) -> AbstractContextManager[None]:
        """Inside, what is computed of sampled tokens is left in the `activation_cache`, where there is one."""
        return self.activation_cache.open() if self.activation_cache else nullcontext()
