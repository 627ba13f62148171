"""Critics beside a policy: linear heads on its hidden states, their target weights and their optimisers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from assay.core.errors import CheckpointError, PlanError
from assay.core.seeds import generator
from assay.runtime.decoder import Decoder
from assay.runtime.finite import check_gradient
from assay.runtime.optim import AdamWOptimizer
from assay.runtime.packing import Packing
from assay.runtime.settings import AdamW, LearnerSettings, ValueHead
from assay.runtime.typed import l2_norm, split, tensor_of

__all__ = ["Heads", "States", "flat_gradient", "states"]

SOURCES = ("old", "now", "target")

States = tuple[Tensor, Tensor]
"""``[M, hidden]`` twice: the states in which some tokens are chosen, and those behind them."""


def states(decoder: Decoder, ids: Tensor, packing: Packing, where: Tensor, behind: bool) -> States:
    """Hidden states before and behind the tokens ``where [M]``; both the former unless ``behind`` asks for the latter."""
    if not behind:
        before = decoder.hidden(ids, packing, where - 1)
        return before, before
    both = torch.cat([where - 1, where])
    wanted, place = cast("tuple[Tensor, Tensor]", cast(Any, torch).unique(both, return_inverse=True))
    found = decoder.hidden(ids, packing, wanted)
    return found.index_select(0, place[: len(where)]), found.index_select(0, place[len(where) :])


def flat_gradient(parameters: Iterable[torch.nn.Parameter]) -> Tensor:
    """One buffer whose slices are the parameters' gradients: norm, clipping and clearing are one call each."""
    given = list(parameters)
    flat = torch.zeros(sum(p.numel() for p in given))
    for parameter, part in zip(given, split(flat, [p.numel() for p in given]), strict=True):
        parameter.grad = part.view(parameter.shape)
    return flat


class _Head:
    """One head: weights, target weights, gradient, optimiser."""

    def __init__(self, settings: ValueHead, width: int, others: AdamW) -> None:
        self.settings = settings
        draw = generator("value-head", 0, settings.name).standard_normal((settings.outputs, width), dtype=np.float32)
        spread = np.float32(settings.init / np.sqrt(width))
        weight = torch.nn.Parameter(tensor_of(draw * spread))
        self.parameters = {"weight": weight, "bias": torch.nn.Parameter(torch.zeros(settings.outputs))}
        self.target = {n: p.detach().clone() for n, p in self.parameters.items()} if settings.tau else {}
        self.gradient = flat_gradient(self.parameters.values())
        self.optimizer = AdamWOptimizer(settings.optimizer or others, self.parameters)

    def outputs(self, found: States, weights: Mapping[str, Tensor]) -> Tensor:
        """``[M, k]`` in fp32."""
        hidden = found[1 if self.settings.behind else 0]
        with torch.autocast("cpu", enabled=False):
            hidden = (hidden.detach() if self.settings.detach else hidden).float()
            return functional.linear(hidden, weights["weight"], weights["bias"])

    def values(self, outputs: Tensor) -> Tensor:
        """``[M]`` what outputs ``[M, k]`` stand for."""
        s = self.settings
        if s.form == "scalar":
            return outputs[:, 0]
        if s.form == "bernoulli":
            return s.low + (s.high - s.low) * outputs[:, 0].sigmoid()
        margin = (s.high - s.low) / s.outputs / 2 if s.form == "hl_gauss" else 0.0
        return outputs.softmax(1) @ torch.linspace(s.low + margin, s.high - margin, s.outputs)


class Heads:
    """All heads of a learner, by name.

    Args:
        settings: the learner's.
        width: size of a hidden state.
    """

    def __init__(self, settings: LearnerSettings, width: int) -> None:
        optimizer = settings.optimizer
        others = optimizer if isinstance(optimizer, AdamW) else optimizer.others
        self.clip_norm = settings.clip_norm
        self._heads = {s.name: _Head(s, width, others) for s in settings.heads}

    def __contains__(self, name: object) -> bool:
        return name in self._heads

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """``NAME/weight`` and ``NAME/bias``."""
        return {f"{name}/{key}": p for name, head in self._heads.items() for key, p in head.parameters.items()}

    # ---- columns

    def behind(self, names: Iterable[str]) -> bool:
        """Whether one of them reads the state behind a token."""
        return any(self._heads[name].settings.behind for name in names)

    def live(self, name: str, found: States) -> Tensor:
        """``[M]``, or ``[M, k]`` of ``k > 1``: outputs with gradient."""
        head = self._heads[name]
        outputs = head.outputs(found, head.parameters)
        return outputs if head.settings.outputs > 1 else outputs[:, 0]

    def named(self, column: str) -> str | None:
        """The head that fills a column (``NAME``, ``NAME_old``, ``NAME_now``, ``NAME_target``); None where none does.

        Raises:
            PlanError: the head has no target weights.
        """
        name, _, source = column.rpartition("_")
        if name not in self or source not in SOURCES:
            return column if column in self else None
        if source == "target" and not self._heads[name].settings.tau:
            raise PlanError(f"{column!r} asks for target weights, and the head has none: use ValueHead(name={name!r}, tau=...)")
        return name

    def values(self, column: str, found: States) -> Tensor:
        """``[M]`` values for a column of one of the heads."""
        head = self._heads[self.named(column) or ""]
        return head.values(head.outputs(found, head.target if column.endswith("_target") else head.parameters))

    # ---- the step

    def clear(self) -> None:
        """Zero gradients."""
        for head in self._heads.values():
            head.gradient.zero_()

    @property
    def gradients(self) -> dict[str, Tensor]:
        """Each head's gradient, one buffer."""
        return {name: head.gradient for name, head in self._heads.items()}

    def clip(self, step: int) -> dict[str, float]:
        """Gradient norm of each head before clipping, under ``grad/NAME``.

        Raises:
            NonFiniteError: one is NaN or infinite.
        """
        norms = {f"grad/{name}": float(l2_norm(head.gradient)) for name, head in self._heads.items()}
        for norm, head in zip(norms.values(), self._heads.values(), strict=True):
            check_gradient(norm, step, {f"{head.settings.name}/{n}": p for n, p in head.parameters.items()})
            if 0 < self.clip_norm < norm:
                head.gradient.mul_(self.clip_norm / (norm + 1e-6))
        return norms

    @torch.no_grad()
    def step(self, factor: float, place: int) -> None:
        """Moves each head whose turn it is, and its target weights after it."""
        for head in self._heads.values():
            if (place + 1) % head.settings.period:
                continue
            head.optimizer.step(factor)
            for name, target in head.target.items():
                target.lerp_(head.parameters[name], head.settings.tau)

    # ---- state

    @torch.no_grad()
    def carry(self, before: Heads) -> None:
        """Takes the weights and target weights of another learner's heads that have the same name and mean the same."""
        for name, head in self._heads.items():
            old = before._heads.get(name)
            if old is None or (old.settings.spec, old.settings.behind) != (head.settings.spec, head.settings.behind):
                continue
            for key, parameter in head.parameters.items():
                parameter.copy_(old.parameters[key])
            for key, target in head.target.items():
                target.copy_(old.target.get(key, old.parameters[key]))

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """``heads`` (weights and target weights) and ``heads_optimizer``; nothing without heads."""
        if not self._heads:
            return {}
        weights: dict[str, Tensor] = {n: p.detach() for n, p in self.parameters.items()}
        weights |= {f"{name}/target/{key}": t for name, head in self._heads.items() for key, t in head.target.items()}
        states = {f"{name}/{key}": t for name, head in self._heads.items() for key, t in head.optimizer.tensors().items()}
        return {"heads": weights, "heads_optimizer": states}

    def facts(self) -> dict[str, object]:
        """What a checkpoint's heads must be alike in; nothing without heads."""
        made = {n: [*h.settings.spec, h.settings.behind, bool(h.settings.tau)] for n, h in self._heads.items()}
        return {"heads": made} if made else {}

    def staged(self, optimizers: Mapping[str, Tensor]) -> list[AdamWOptimizer]:
        """Optimisers with the states that `tensors` gave, in place of the present ones once `load` is given them.

        Raises:
            CheckpointError: names or shapes are not those of these heads.
        """
        made: list[AdamWOptimizer] = []
        for key in optimizers:
            if key.partition("/")[0] not in self:
                raise CheckpointError(f"state of value heads: {key!r} is unknown here; the checkpoint is of other heads")
        for name, head in self._heads.items():
            made.append(AdamWOptimizer(head.optimizer.settings, head.parameters))
            made[-1].load_tensors({k.removeprefix(f"{name}/"): t for k, t in optimizers.items() if k.startswith(f"{name}/")})
        return made

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor], optimizers: Sequence[AdamWOptimizer]) -> None:
        """Restores what `tensors` gave."""
        for (name, head), optimizer in zip(self._heads.items(), optimizers, strict=True):
            head.optimizer = optimizer
            for key, parameter in head.parameters.items():
                parameter.copy_(weights[f"{name}/{key}"])
            for key, target in head.target.items():
                target.copy_(weights[f"{name}/target/{key}"])
