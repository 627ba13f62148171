"""An engine in this process for any Hugging Face causal LM: transformers' modules under assay's running batch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

import torch
from torch import nn

from assay.core.errors import ConfigError
from assay.core.protocols import EngineInfo
from assay.runtime.engine.backend import SteppedRunner
from assay.runtime.engine.hub_cache import HubPrefill
from assay.runtime.engine.hub_decode import HubDecodePath
from assay.runtime.engine.hub_weights import ModuleWeights
from assay.runtime.engine.scheduler import RunningBatch, check_settings

__all__ = ["TransformersEngine"]


class TransformersEngine(RunningBatch[HubPrefill]):
    """Samples from an ``AutoModelForCausalLM`` as one running batch (implements `assay.core.protocols.Engine`).

    Everything that `NativeEngine` says of requests, noise, swaps and spans holds here: prompts that waiting requests share pass
    through the module once, requests join between any two steps, and a token depends on its request alone up to rounding. Keys
    and values lie in slots of this engine's own; positions and masks are given to the module row by row. Decoders whose state is
    attention's keys and values over all tokens or a sliding window can be served so; a trial at construction refuses others.

    Args:
        module: taken over, not copied: moved to ``device``, cast to ``dtype``, put into evaluation mode. Parameters may be shared
            with another module as long as nothing is to be moved or cast.
        context: longest prompt plus completion, at most the model's own.
        max_batch: most rows that run at once; further requests wait.
        dtype: of the weights served, ``float32`` or ``bfloat16``; logits become float32 before any softmax.
        device: ``cpu`` or ``cuda``. CUDA runs the same code; no measurement stands behind it here.
        columns: token columns that completions carry: ``entropy`` of the sampled distribution, nats; ``routed_experts``, of
            models with experts: ``[layers, k]`` int16 ids, the experts of the position that the token was drawn behind, and in
            `Completion.prompt` of the prompt's tokens too.
        trained: parameter names that manifests hold; None for all. With adapters these are the adapters' tensors.
        compile: compile the step, over all slots and their whole length. It pays on CUDA, where steps are short; untried there.
        decode: ids to text, for requests that end at texts (`Sampling.stop`); None: such requests are refused.
        digests: how checksums are made, as `EngineInfo.digests`: ``mixed`` ones compare with those of
            ``publish(dtype, "mixed")`` alone.

    Raises:
        ConfigError: a module that does not fit (see `HubDecodePath`), a context beyond the model's, settings that exclude one
            another.
        UnknownNameError: an unknown column.

    >>> import asyncio
    >>> from transformers import AutoModelForCausalLM, GPT2Config
    >>> from assay.core import Request, Sampling, ids_of
    >>> config = GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2, n_positions=16, bos_token_id=None, eos_token_id=None)
    >>> engine = TransformersEngine(AutoModelForCausalLM.from_config(config), 16)
    >>> request = Request(id="0", prompt=ids_of([3, 1, 4]), seed=7, sampling=Sampling(max_new_tokens=5))
    >>> len(asyncio.run(engine.generate(request)).ids), engine.info().vocabulary
    (5, 32)
    """

    def __init__(
        self,
        module: nn.Module,
        context: int,
        *,
        max_batch: int = 512,
        dtype: str = "float32",
        device: str = "cpu",
        columns: tuple[str, ...] = ("entropy",),
        trained: Collection[str] | None = None,
        compile: bool = False,
        decode: Callable[[list[int]], str] | None = None,
        digests: str = "blake2b",
    ) -> None:
        check_settings("TransformersEngine", max_batch, columns, ["entropy", "routed_experts"])
        routed = "routed_experts" in columns
        if routed and compile:
            raise ConfigError(
                "the column routed_experts is read while the module runs, which a compiled step does not show; drop one"
            )
        longest = getattr(cast(Any, module).config.get_text_config(decoder=True), "max_position_embeddings", None)
        if context < 2 or (longest is not None and context > longest):
            raise ConfigError(f"context={context}: {type(module).__name__} has positions for 2 to {longest} tokens")
        if torch.device(device).type == "cuda" and not torch.cuda.is_available():
            raise ConfigError(f"device={device!r}: torch {torch.__version__} finds no CUDA device here; use device='cpu'")
        module.to(device).eval()
        self.weights = ModuleWeights(module, dtype, trained, digests)
        path = HubDecodePath(module, max_batch, context, routed=routed, static=compile)
        info = EngineInfo(version=0, vocabulary=path.vocabulary, context=context, dtype=dtype, columns=columns, digests=digests)
        super().__init__(SteppedRunner(path), self.weights, info, max_batch=max_batch, columns=columns, decode=decode)
