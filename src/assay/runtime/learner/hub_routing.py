"""Which experts the tokens of a mixture-of-experts module are routed to, read from its routers as they run."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay.core.errors import ConfigError
from assay.runtime.engine.sequences import ColumnKind

__all__ = ["Routing", "routers_of"]


class Routing:
    """Watches the routers of a module: those that it says its ``router_logits`` come from.

    Attributes:
        kind: ``[layers, k]`` int16 per token, layers with experts alone; -1 of a token of which nothing is known.

    Raises:
        ConfigError: the module has no routers, or they do not say which experts they chose.
    """

    def __init__(self, module: nn.Module) -> None:
        routers = list(routers_of(module).values())
        if not routers:
            raise ConfigError(
                f"the column routed_experts is of models with experts, and transformers names no routers of "
                f"{type(module).__name__}; leave the column out"
            )
        self._chosen: list[Tensor | None] = [None] * len(routers)
        for layer, router in enumerate(routers):
            router.register_forward_hook(self._watch(layer, type(router).__name__))
        self._width = int(cast(Any, module).config.get_text_config(decoder=True).num_experts_per_tok)

    @property
    def kind(self) -> ColumnKind:
        """Type and shape per token."""
        return ColumnKind("int16", (len(self._chosen), self._width), -1)

    def _watch(self, layer: int, name: str) -> Any:
        def record_routing(_: nn.Module, __: Any, out: Any) -> None:
            parts = cast("tuple[Any, ...]", out) if isinstance(out, tuple) else ()
            chosen = [x for x in parts if isinstance(x, Tensor) and not x.is_floating_point()]
            if len(chosen) != 1 or chosen[0].shape[-1] != self._width:
                raise ConfigError(f"{name} does not return the experts that it chose; leave the column routed_experts out")
            self._chosen[layer] = chosen[0]

        return record_routing

    def of_rows(self, last: NDArray[np.int64] | None = None, span: int = 1) -> NDArray[np.int16]:
        """``[n, layers, k]`` of the last pass over ``[n, span]`` tokens, at each row's index ``last`` (0 if None)."""
        chosen = self._of_pass(span)
        return chosen[np.arange(len(chosen)), 0 if last is None else last]

    def of_prompts(self, last: NDArray[np.int64], span: int) -> list[NDArray[np.int16]]:
        """``[last + 1, layers, k]`` of each row of the last pass over ``[n, span]`` tokens: at a token those of the position
        before it, behind which it stands, as for tokens that are drawn; -1 at the first.
        """
        nothing = np.full((1, *self.kind.trailing), -1, np.int16)
        return [np.concatenate([nothing, row[:end]]) for row, end in zip(self._of_pass(span), last.tolist(), strict=True)]

    def _of_pass(self, span: int) -> NDArray[np.int16]:
        """``[n, span, layers, k]``."""
        parts = [cast(Tensor, x).view(-1, span, self._width) for x in self._chosen]
        return torch.stack(parts, 2).to(torch.int16).cpu().numpy()


def routers_of(module: nn.Module) -> dict[str, nn.Module]:
    """The routers of a module by name, in order: those that it says its ``router_logits`` come from; none of a dense one."""
    kinds = _router_types(module)
    parts = cast(Any, module).named_modules()
    return {name: part for name, part in parts if type(part) in kinds}


def _router_types(module: nn.Module) -> set[type]:
    """Classes of the routers, from the outputs that transformers can record of the module or of a part of it."""
    found: set[type] = set()
    for part in module.modules():
        outputs: dict[str, Any] = getattr(part, "_can_record_outputs", None) or {}
        recorded = outputs.get("router_logits", [])
        several = cast("list[Any]", recorded) if isinstance(recorded, list) else [recorded]
        found.update(getattr(one, "target_class", one) for one in several)
    return found
