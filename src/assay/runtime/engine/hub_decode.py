"""The decode path of any Hugging Face causal LM: transformers' modules over slots for keys and values that are ours.

Prompts pass through the module whole, with transformers' own causal masks; then each row grows by one token a step. A step names
every row's position and mask, so the module must heed both: a trial at construction compares a few steps with plain passes over
the same tokens, and refuses a module that answers otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from assay.core.columns import Array
from assay.core.errors import ConfigError
from assay.core.rollout import Ids, ids_of
from assay.runtime.engine.decode import chunks, pad_rows
from assay.runtime.engine.hub_cache import HubPrefill, SlotCache, visible
from assay.runtime.engine.sequences import ColumnKind
from assay.runtime.kernels.typed import tensor_of
from assay.runtime.learner.hub_routing import Routing
from assay.runtime.models.finite import check_weights

__all__ = ["HubDecodePath"]

_LOGIT_ELEMENTS = 1 << 24  # most logits held at once when scoring
_HEADS = (5, 2)  # prompt lengths of the trial, and the steps behind each
_STEPS = 5
_WINDOWS = ("window_size", "attention_window", "attention_window_size")  # of layers with masks of their own, as GPT-Neo's
_TRIAL_WINDOW = 3  # so that the trial's few tokens leave it
_CLOSE = {torch.float32: 1e-4, torch.bfloat16: 0.25}  # nats; a logit of 16 to 32 is itself a multiple of 0.125 in bfloat16


class HubDecodePath:
    """Forward passes of one module over its own parameters and a `SlotCache`.

    Args:
        module: an ``AutoModelForCausalLM``, in evaluation mode, all of it on one device.
        max_slots: most rows at once.
        context: longest prompt plus completion.
        routed: tell of the experts that each token was routed to (`kinds` then has ``routed_experts``).
        static: compute every step over all slots and their whole length, so that shapes stay the same, and compile it.

    Raises:
        ConfigError: a module that cannot be decoded this way; says why, and what to do.
        DataError: a weight holds NaN or an infinity.
    """

    def __init__(self, module: nn.Module, max_slots: int, context: int, *, routed: bool = False, static: bool = False) -> None:
        self.module, self._max_slots, self._context = cast(Any, module), max_slots, context
        self._config = self._text_config()
        parameter = next(module.parameters())
        self.device, self.dtype = parameter.device, parameter.dtype
        self._routing = Routing(module) if routed else None
        self._step = self._forward
        self.vocabulary = self._try_static(static)
        self.kinds: Mapping[str, ColumnKind] = {"routed_experts": self._routing.kind} if self._routing else {}
        self._static = static
        if static:
            self._step = _compile_forward(self._forward, self.device)

    # ---- what a module is ------------------------------------------------------------------------------------------------

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(
            f"{type(self.module).__name__} cannot be decoded in this process: {why}; serve it with the vLLM engine"
        )

    def _text_config(self) -> Any:
        """The decoder's settings, once they are known to be of a kind that is decoded here."""
        config = self.module.config.get_text_config(decoder=True)
        if config.is_encoder_decoder:
            raise self._refusal("it is an encoder and a decoder")
        others = {*(getattr(config, "layer_types", None) or ())} - {"full_attention", "sliding_attention"}
        if others:
            raise self._refusal(f"it has layers of type {min(others)!r}, known here are full_attention and sliding_attention")
        window = next((w for name in _WINDOWS if (w := getattr(config, name, None)) is not None), None)
        if isinstance(window, int) and window < self._context:  # a short trial would not see it
            raise self._refusal(
                f"its layers see the last {window} places of the cache, whatever row they are of; give a context of {window} "
                "or less"
            )
        if config._attn_implementation not in ("eager", "sdpa"):
            raise ConfigError(
                f"{type(self.module).__name__}: attention {config._attn_implementation!r} takes no mask per row; "
                'load the model with attn_implementation="sdpa" or "eager"'
            )
        self._check_rotary(config)
        return config

    def _check_rotary(self, config: Any) -> None:
        """Refuses contexts in which the angles of a row would depend on how long its neighbours are."""
        given: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
        nested = [cast("dict[str, Any]", v) for v in given.values() if isinstance(v, dict)]
        for rope in (given, *nested):  # of all layers, or by their type
            kind = rope.get("rope_type")
            edge = rope.get("original_max_position_embeddings") or getattr(config, "max_position_embeddings", self._context)
            varies = kind == "dynamic" or (kind == "longrope" and rope.get("long_factor") != rope.get("short_factor"))
            if varies and self._context > edge:
                raise ConfigError(
                    f"{type(self.module).__name__}: behind position {edge} its rotary angles ({kind}) depend on the longest row "
                    f"of a batch; use context={edge} or less, not {self._context}, or the vLLM engine"
                )

    def _windows(self) -> dict[str, int | None]:
        """Kinds of attention with how far back a token sees; None for all the way."""
        window = getattr(self._config, "sliding_window", None)
        kinds = {*(getattr(self._config, "layer_types", None) or ["sliding_attention" if window else "full_attention"])}
        return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}

    # ---- passes -------------------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def step(self, tokens: NDArray[np.int64], positions: NDArray[np.int64]) -> Tensor:
        """Appends one token to each of the first ``B`` rows.

        Args:
            tokens: ``[B]`` ids.
            positions: ``[B]`` where they stand in their rows.

        Returns:
            ``[B, vocabulary]`` float32 logits of what comes next.
        """
        rows, span = len(tokens), int(positions.max()) + 1
        if self._static:  # idle rows write to the start of their own slots, which a new row overwrites
            idle = np.zeros(self.cache.slots - rows, np.int64)
            tokens, positions = np.concatenate([tokens, idle]), np.concatenate([positions, idle])
            span = self.cache.length
        ids, at = tensor_of(tokens).to(self.device), tensor_of(positions).to(self.device)
        self.cache.aim(at, span)
        masks = {kind: visible(at, span, window, self.dtype) for kind, window in self._windows().items()}
        logits = self._step(ids[:, None], at[:, None], masks if len(masks) > 1 else next(iter(masks.values())))
        return logits[:rows].clone() if self._static else logits

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor | dict[str, Tensor]) -> Tensor:
        out = self.module(input_ids=ids, position_ids=positions, attention_mask=mask, past_key_values=self.cache, use_cache=True)
        return out.logits[:, -1].float()

    def extras(self) -> Mapping[str, Array]:
        """The experts of each row's last token, where they are asked for."""
        return {"routed_experts": self._routing.of_rows()} if self._routing else {}

    @torch.inference_mode()
    def prefill(self, prompts: Sequence[Ids]) -> HubPrefill:
        """Whole prompts in one pass, padded on the right; padding is behind everything that counts, so it changes nothing."""
        last = np.array([len(p) for p in prompts], np.int64) - 1
        span, cache = int(last.max()) + 1, DynamicCache()
        with _only(self.module.get_output_embeddings(), tensor_of(last).to(self.device)):
            logits = self._pass(pad_rows(prompts, span), 0, cache)[:, -1].float()
        kept = [(cast(Any, x).keys, cast(Any, x).values) for x in cache.layers]
        if self._routing is None:
            return HubPrefill(kept, logits, {}, {})
        columns, told = self._routing.of_rows(last, span), self._routing.of_prompts(last, span)
        return HubPrefill(kept, logits, {"routed_experts": columns}, {"routed_experts": told})

    def _pass(self, ids: Tensor, start: int, cache: DynamicCache) -> Tensor:
        """``[n, T]`` ids at positions from ``start`` on, behind what the cache holds; logits ``[n, T, vocabulary]``."""
        positions = torch.arange(start, start + ids.shape[1], device=self.device).expand(len(ids), -1)
        return self.module(input_ids=ids.to(self.device), position_ids=positions, past_key_values=cache, use_cache=True).logits

    @torch.inference_mode()
    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probability at temperature 1 of each token given those before it; 0 for the first of a row."""
        out = [np.zeros(len(r), np.float32) for r in rows]
        for part in chunks([len(r) for r in rows]):
            span = len(rows[part[-1]])
            if span < 2:
                continue
            ids, cache = pad_rows([rows[i] for i in part], span), DynamicCache()
            piece = max(1, _LOGIT_ELEMENTS // (self.vocabulary * len(part)))
            for start in range(0, span - 1, piece):
                end = min(start + piece, span - 1)
                logits = self._pass(ids[:, start:end], start, cache).float()
                wanted = ids[:, start + 1 : end + 1, None].to(self.device)
                logp = logits.log_softmax(-1).gather(-1, wanted)[..., 0].cpu().numpy()
                for i, values in zip(part, logp, strict=True):
                    known = max(0, len(rows[i]) - 1 - start)
                    out[i][start + 1 : end + 1] = values[:known]
        return out

    # ---- the trial ----------------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def _try_static(self, static: bool) -> int:
        """Finds out what a slot holds, and whether steps give what a plain pass gives; the size of the vocabulary."""
        self._static = False
        kept: int | None = getattr(self._config, "sliding_window", None)
        if kept is not None:
            self._config.sliding_window = min(_TRIAL_WINDOW, kept)
        try:
            gap, vocabulary = self._gap(static)
        except ConfigError:
            raise
        except Exception as error:
            raise self._refusal(f"it fails at steps over a cache of keys and values ({type(error).__name__}: {error})") from error
        finally:
            if kept is not None:
                self._config.sliding_window = kept
        if not gap <= _CLOSE[self.dtype]:
            check_weights(self.module.named_parameters(), type(self.module).__name__)  # or else they are to blame
            raise self._refusal(
                f"single steps at a position and a mask per row give other log-probabilities than one pass (by {gap:.2g} nats)"
            )
        return vocabulary

    def _gap(self, static: bool) -> tuple[float, int]:
        """Difference in log-probability between steps and plain passes over two short rows: root mean square over the vocabulary,
        where it is largest; and the vocabulary.
        """
        size = int(self.module.get_input_embeddings().weight.shape[0])
        heads = np.minimum(_HEADS, self._context - 1)
        steps, two = min(_STEPS, self._context - int(heads.max())), np.arange(2)
        rows = [ids_of([(7 * i + 3 * row + 1) % size for i in range(head + steps)]) for row, head in enumerate(heads.tolist())]
        plain = [self.module(input_ids=tensor_of(np.array(r, np.int64))[None].to(self.device)).logits[0].float() for r in rows]
        first = self.prefill([r[:h] for r, h in zip(rows, heads, strict=True)])
        if not first.layers:
            raise self._refusal("it keeps no keys and values of attention")
        self.cache = SlotCache(first.layers, 2, self._context)
        self.cache.reserve(2, int(heads.max()) + steps, 0)
        self.cache.place(first, two, two)
        found = [first.logits]
        for at in (heads + t for t in range(steps)):
            found.append(self.step(np.array([int(r[p]) for r, p in zip(rows, at, strict=True)], np.int64), at))
        wanted = torch.stack([torch.stack([x[h + t - 1] for x, h in zip(plain, heads, strict=True)]) for t in range(steps + 1)])
        gap = torch.stack(found).log_softmax(-1) - wanted.log_softmax(-1)
        self.cache = SlotCache(first.layers, self._max_slots, self._context, static=static)
        return float(gap.square().mean(-1).sqrt().max()), int(first.logits.shape[-1])


@contextmanager
def _only(head: nn.Module, last: Tensor) -> Generator[None]:
    """Inside, the head sees of ``[n, T, hidden]`` only the states at ``last``, ``[n, 1, hidden]``; no others are wanted."""

    def narrow_cache(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return given[0][torch.arange(len(last), device=last.device), last][:, None], *given[1:]

    handle = head.register_forward_pre_hook(narrow_cache)
    try:
        yield
    finally:
        handle.remove()


def _compile_forward(forward: Callable[..., Tensor], device: torch.device) -> Callable[..., Tensor]:
    return cast(Any, torch).compile(forward, mode="reduce-overhead" if device.type == "cuda" else "default", dynamic=False)
