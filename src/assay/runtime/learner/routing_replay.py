"""The sampler's routing in the learner: which experts a token went to when it was sampled, said to the routers that train.

A router scores all experts and takes the ``k`` best. Here it takes the given ones instead, wherever they are known, and goes on
as it is: the gates' weights are made of its own scores, so the gradient reaches it. Rollout routing replay (R3, 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from assay.core.errors import ConfigError, DataError
from assay.runtime.learner.hub_routing import routers_of

__all__ = ["RoutingReplay"]


class RoutingReplay:
    """Watches the routers of a module that trains, and says to them what to choose.

    Which experts are known comes down with each pass as ``rows.experts`` (`assay.runtime.learner.packing.Packing`), so a layer
    that is computed again in the backward pass chooses again as it did.

    Args:
        module: with routers, in their usual order.
        force: have them choose what is given; otherwise only compare.

    Raises:
        ConfigError: the module has no routers.
    """

    def __init__(self, module: nn.Module, *, force: bool) -> None:
        routers = routers_of(module)
        if not routers:
            raise ConfigError(f"{type(module).__name__} has no routers that transformers names")
        self.force, self._given = force, cast("Tensor | None", None)
        self._alike: list[Tensor | None] = [None] * len(routers)
        for layer, router in enumerate(routers.values()):
            router.forward = self._choose_experts(layer, type(router).__name__, router.forward)
        for around in {outer for name in routers for outer in _enclosing_modules(name)}:
            module.get_submodule(around).register_forward_pre_hook(self._see, with_kwargs=True)

    def _see(self, module: nn.Module, given: Any, named: dict[str, Any]) -> None:
        if "rows" in named:
            self._given = named["rows"].experts
        elif "input_ids" in named:  # a whole pass that knows of no rows
            self._given = None

    def _choose_experts(self, layer: int, name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*given: Any, **named: Any) -> Any:
            experts = self._given
            if experts is None:
                return own(*given, **named)
            if experts.shape[1] != len(self._alike):
                raise DataError(
                    f"the column routed_experts tells of {experts.shape[1]} layers with experts, the model has {len(self._alike)}"
                )
            with _Choice(experts[:, layer], self.force) as choice:
                out = own(*given, **named)
            if choice.alike is None:
                raise ConfigError(
                    f"{name} does not choose its experts by one torch.topk, so its routing can be neither compared "
                    "nor replayed; have the engine leave the column routed_experts out"
                )
            self._alike[layer] = choice.alike
            return out

        return forward

    def alike(self) -> Tensor:
        """``[N]`` of the last pass: share of the layers in which the given experts are those that the router prefers, whatever it
        was made to choose; below 0 where none are given.
        """
        return torch.stack([cast(Tensor, x) for x in self._alike], 1).mean(1)


class _Choice(TorchFunctionMode):
    """Inside, ``torch.topk`` over the experts chooses the ``given`` ones, ``[N, k]``, with -1 for what is not known."""

    def __init__(self, given: Tensor, force: bool) -> None:
        super().__init__()
        self._given, self._force = given, force
        self.alike: Tensor | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func not in (torch.topk, Tensor.topk):
            return out
        if self.alike is not None or out[1].shape != self._given.shape:
            raise DataError(
                f"a router chooses {list(out[1].shape)} experts, the column routed_experts has {list(self._given.shape)}; it is "
                "of another model, or this family chooses in several stages, which cannot be replayed"
            )
        known = (self._given >= 0).all(-1, keepdim=True)
        same = (out[1].sort(-1).values == self._given.sort(-1).values).all(-1)
        self.alike = torch.where(known[:, 0], same.float(), -1.0)
        if not self._force:
            return out
        chosen = torch.where(known, self._given, out[1])
        scores: Tensor = args[0] if args else (kwargs or {})["input"]
        return torch.return_types.topk((scores.gather(-1, chosen), chosen))  # type: ignore[reportAttributeAccessIssue]


def _enclosing_modules(name: str) -> list[str]:
    """The modules that a module lies in, from the outermost on."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(len(parts))]
