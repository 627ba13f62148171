"""Critics beside a policy: heads on its hidden states or on those of trunks of their own, and how they move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from assay.core.errors import CheckpointError, PlanError
from assay.runtime.kernels.typed import l2_norm
from assay.runtime.learner.anchor_models import device_of
from assay.runtime.learner.critics import LinearHead, States, TrainedPart, TrunkPart, states
from assay.runtime.learner.optim import Optimizer
from assay.runtime.learner.packing import Packing
from assay.runtime.models.finite import check_gradient
from assay.runtime.models.model import Model
from assay.runtime.settings import AdamW, LearnerSettings

if TYPE_CHECKING:
    from assay.runtime.models.hub_model import HubModel

__all__ = ["Found", "Heads", "Kept"]

SOURCES = ("old", "now", "target")

Found = dict[tuple[str, bool], States]
"""What heads read, by the name of their trunk (empty: the policy) and whether it is that by target weights."""

Kept = Mapping[str, tuple[list[object], Mapping[str, Tensor], Mapping[str, Tensor]]]
"""Meaning, weights and target weights, by the name of a head or trunk."""


class Heads:
    """All heads of a learner, by name, and the trunks below them.

    Args:
        settings: the learner's.
        start: the policy's starting weights, which trunks begin with.
    """

    def __init__(self, settings: LearnerSettings, start: Model | HubModel) -> None:
        optimizer = settings.optimizer
        others = optimizer if isinstance(optimizer, AdamW) else optimizer.others
        self.clip_norm = settings.clip_norm
        width, device = start.shape.hidden_size, device_of(settings)
        self._heads = {s.name: LinearHead(s, width, others, device) for s in settings.heads}
        self._trunks = {s.name: TrunkPart(s, start, settings) for s in settings.trunks}
        self._parts: dict[str, TrainedPart] = {**self._heads, **self._trunks}

    def __contains__(self, name: object) -> bool:
        return name in self._heads

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """``NAME/weight`` and ``NAME/bias`` of heads, ``NAME/PARAMETER`` of trunks."""
        return {f"{name}/{key}": p for name, part in self._parts.items() for key, p in part.parameters.items()}

    # ---- columns

    def behind(self, names: Iterable[str]) -> bool:
        """Whether one of them reads the state behind a token."""
        return any(self._heads[name].settings.behind for name in names)

    def on_policy(self, names: Iterable[str]) -> list[str]:
        """Those which read the policy's own states."""
        return [name for name in names if not self._heads[name].settings.trunk]

    def trunk_states(self, ids: Tensor, packing: Packing, where: Tensor, columns: Iterable[str]) -> Found:
        """The states of trunks that heads read for ``columns`` (names of heads, alone or with a source)."""
        asked: dict[tuple[str, bool], list[str]] = {}
        for column in columns:
            head = self._heads[self.head_of(column) or ""]
            if head.settings.trunk:
                asked.setdefault((head.settings.trunk, column.endswith("_target")), []).append(head.name)
        return {
            (trunk, target): states(self._trunks[trunk].decoder(target), ids, packing, where, self.behind(names))
            for (trunk, target), names in asked.items()
        }

    def live(self, name: str, found: Found) -> Tensor:
        """``[M]``, or ``[M, k]`` of ``k > 1``: outputs with gradient."""
        head = self._heads[name]
        outputs = head.outputs(found[head.settings.trunk, False], head.parameters)
        return outputs if head.settings.outputs > 1 else outputs[:, 0]

    def head_of(self, column: str) -> str | None:
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

    def values(self, column: str, found: Found) -> Tensor:
        """``[M]`` values for a column of one of the heads."""
        head, target = self._heads[self.head_of(column) or ""], column.endswith("_target")
        states_ = found[head.settings.trunk, target and bool(head.settings.trunk)]
        return head.values(head.outputs(states_, head.target if target else head.parameters))

    # ---- the step

    def clear(self) -> None:
        """Zero gradients."""
        for part in self._parts.values():
            part.gradient.zero_()

    @property
    def gradients(self) -> dict[str, Tensor]:
        """The gradient of each head and trunk, one buffer."""
        return {name: part.gradient for name, part in self._parts.items()}

    def clip(self, step: int) -> dict[str, float]:
        """Gradient norm of each head and trunk before clipping, under ``grad/NAME``.

        Raises:
            NonFiniteError: one is NaN or infinite.
        """
        norms = {f"grad/{name}": float(l2_norm(part.gradient)) for name, part in self._parts.items()}
        for norm, (name, part) in zip(norms.values(), self._parts.items(), strict=True):
            check_gradient(norm, step, {f"{name}/{n}": p for n, p in part.parameters.items()})
            if 0 < self.clip_norm < norm:
                part.gradient.mul_(self.clip_norm / (norm + 1e-6))
        return norms

    def step(self, factor: float, place: int) -> None:
        """Moves each head and trunk whose turn it is, and its target weights after it."""
        for part in self._parts.values():
            if (place + 1) % part.period == 0:
                part.step(factor)

    # ---- state

    def export_heads(self) -> Kept:
        """What another learner can take over."""
        return {
            name: (
                part.meaning,
                {n: p.detach().cpu() for n, p in part.parameters.items()},
                {n: t.detach().cpu() for n, t in part.target.items()},
            )
            for name, part in self._parts.items()
        }

    def load_heads(self, before: Kept) -> None:
        """Takes the weights and target weights of another learner's heads and trunks that have the same name and meaning."""
        for name, part in self._parts.items():
            if name in before and before[name][0] == part.meaning:
                part.take(*before[name][1:])

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """``heads`` (weights and target weights) and ``heads_optimizer``, trunks among them; nothing without heads."""
        if not self._heads:
            return {}
        weights: dict[str, Tensor] = {n: p.detach() for n, p in self.parameters.items()}
        weights |= {f"{name}/target/{key}": t for name, part in self._parts.items() for key, t in part.target.items()}
        states = {f"{name}/{key}": t for name, part in self._parts.items() for key, t in part.optimizer.tensors().items()}
        return {"heads": weights, "heads_optimizer": states}

    def facts(self) -> dict[str, object]:
        """What a checkpoint's heads and trunks must be alike in; nothing without heads."""
        return {"heads": {name: part.facts for name, part in self._parts.items()}} if self._heads else {}

    def load_optimizers(self, optimizers: Mapping[str, Tensor]) -> list[Optimizer]:
        """Optimisers with the states that `tensors` gave, in place of the present ones once `load` is given them.

        Raises:
            CheckpointError: names or shapes are not those of these heads.
        """
        made: list[Optimizer] = []
        for key in optimizers:
            if key.partition("/")[0] not in self._parts:
                raise CheckpointError(f"state of value heads: {key!r} is unknown here; the checkpoint is of other heads")
        for name, part in self._parts.items():
            made.append(part.fresh())
            made[-1].load_tensors({k.removeprefix(f"{name}/"): t for k, t in optimizers.items() if k.startswith(f"{name}/")})
        return made

    def load(self, weights: Mapping[str, Tensor], optimizers: Sequence[Optimizer]) -> None:
        """Restores what `tensors` gave."""
        for (name, part), optimizer in zip(self._parts.items(), optimizers, strict=True):
            part.optimizer = optimizer
            mine = {k.removeprefix(f"{name}/"): t for k, t in weights.items() if k.startswith(f"{name}/")}
            part.take(mine, {k.removeprefix("target/"): t for k, t in mine.items() if k.startswith("target/")})
