"""Optimisers over named parameters, with states that can be saved and restored exactly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from assay.core.errors import CheckpointError
from assay.runtime.compiled import build
from assay.runtime.compiled.adamw import adamw_step
from assay.runtime.compiled.calls import suits
from assay.runtime.compiled.muon import muon_step
from assay.runtime.kernels.typed import l2_norm
from assay.runtime.settings import AdamW, Muon

__all__ = ["AdamWOptimizer", "MuonOptimizer", "Optimizer", "build_optimizer", "newton_schulz"]

Named = Mapping[str, torch.nn.Parameter]
_IN_LAYER = re.compile(r"\.\d+\.")
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def newton_schulz(matrices: Tensor, steps: int = 5) -> Tensor:
    """Nearly the closest semi-orthogonal matrices: the quintic Newton-Schulz iteration of Muon (Jordan et al. 2024), in fp32.

    Singular values end between about 0.68 and 1.14, which is as good as 1 for a step direction.

    Args:
        matrices: ``[n, rows, columns]``.
        steps: iterations.

    Returns:
        ``[n, rows, columns]``; a zero matrix stays zero.

    >>> bool((newton_schulz(torch.eye(3)[None] * 7.0)[0] - torch.eye(3)).abs().max() < 0.35)
    True
    """
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / l2_norm(x, (-2, -1)).clamp_min(1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class AdamWOptimizer:
    """AdamW (Loshchilov & Hutter 2019); weight decay on matrices only, not on norm scales.

    Args:
        settings: learning rate, moments, decay.
        parameters: name to parameter.
        kernel: move float32 tensors on a CPU by the compiled library, where there is a compiler: the same up to rounding.
    """

    def __init__(self, settings: AdamW, parameters: Named, kernel: bool = False) -> None:
        self.settings, self.parameters = settings, dict(parameters)
        matrices = [p for p in self.parameters.values() if p.dim() > 1]
        scales = [p for p in self.parameters.values() if p.dim() <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": scales, "weight_decay": 0.0},
        ]
        self.inner: Any = torch.optim.AdamW(
            [g for g in groups if g["params"]],
            lr=settings.lr,
            betas=(settings.beta1, settings.beta2),
            eps=settings.eps,
            fused=True,
        )
        self._library = build.kernel() if kernel and suits(list(self.parameters.values())) else None

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One update from the parameters' gradients, at ``factor`` times the learning rate."""
        if self._library is not None:
            moved = {p: p.grad for p in self.parameters.values() if p.grad is not None}
            states = [self.inner.state[p] or self._initial_state(p) for p in moved]
            adamw_step(self._library, self.settings, self.settings.lr * factor, list(moved), list(moved.values()), states)
            return
        for group in self.inner.param_groups:
            group["lr"] = self.settings.lr * factor
        self.inner.step()

    def _initial_state(self, parameter: torch.nn.Parameter) -> dict[str, Tensor]:
        self.inner.state[parameter] = made = {
            "step": torch.zeros(()),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
        return made

    def tensors(self) -> dict[str, Tensor]:
        """The whole state as ``NAME/PARAMETER`` to tensor; empty before the first step."""
        out: dict[str, Tensor] = {}
        for name, parameter in self.parameters.items():
            for key, value in self.inner.state.get(parameter, {}).items():
                out[f"{key}/{name}"] = value
        return out

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores what `tensors` gave.

        Raises:
            CheckpointError: names or shapes are not those of this optimiser.
        """
        keys = {"step": False, "exp_avg": True, "exp_avg_sq": True} if tensors else {}
        wanted = {
            f"{key}/{name}": p.shape if like else torch.Size(())
            for name, p in self.parameters.items()
            for key, like in keys.items()
        }
        check_tensors("AdamW state", wanted, tensors)
        self.inner.state.clear()
        for name, parameter in self.parameters.items() if tensors else ():
            mine = {key: tensors[f"{key}/{name}"] for key in keys}
            self.inner.state[parameter] = {key: t.to(parameter.device, copy=True) for key, t in mine.items()}


class MuonOptimizer:
    """Muon (Jordan et al. 2024) on the hidden matrices, AdamW on embedding, head and norm scales.

    A matrix moves by ``lr * sqrt(max(1, rows / columns))`` times the orthogonalised momentum; equal shapes are stacked into one
    batch of matrix products.

    Args:
        settings: learning rate, momentum, decay, and the AdamW for the rest.
        parameters: name to parameter; hidden matrices are the two-dimensional ones in a numbered layer (``model.layers.3.``,
            ``transformer.h.3.``).
        kernel: move float32 matrices on a CPU by the compiled library, where there is a compiler: the same up to rounding.
    """

    def __init__(self, settings: Muon, parameters: Named, kernel: bool = False) -> None:
        self.settings = settings
        hidden = {n: p for n, p in parameters.items() if p.dim() == 2 and _IN_LAYER.search(n)}
        self.others = AdamWOptimizer(settings.others, {n: p for n, p in parameters.items() if n not in hidden}, kernel)
        self.names: dict[torch.Size, list[str]] = {}
        for name, parameter in hidden.items():
            self.names.setdefault(parameter.shape, []).append(name)
        self.hidden = hidden
        self.momenta = {s: torch.zeros(len(names), *s, device=hidden[names[0]].device) for s, names in self.names.items()}
        self._library = build.kernel() if kernel and suits(list(hidden.values())) else None

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One update from the parameters' gradients, at ``factor`` times the learning rates."""
        rate = self.settings.lr * factor
        if self._library is None:
            for shape, names in self.names.items():
                self._move([self.hidden[n] for n in names], self.momenta[shape], rate)
        else:
            matrices = [self.hidden[n] for names in self.names.values() for n in names]
            momenta = [m for s in self.names for m in self.momenta[s].unbind()]
            muon_step(self._library, self.settings, rate, matrices, [p.grad for p in matrices], momenta)
        self.others.step(factor)

    def _move(self, parameters: list[torch.nn.Parameter], momenta: Tensor, rate: float) -> None:
        s, shape = self.settings, momenta.shape[1:]
        grads = torch.stack([p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters])
        momentum = momenta.lerp_(grads, 1.0 - s.momentum)
        direction = newton_schulz(grads.lerp_(momentum, s.momentum) if s.nesterov else momentum)
        if s.weight_decay:
            torch._foreach_mul_(parameters, 1.0 - rate * s.weight_decay)  # type: ignore[reportPrivateUsage]
        scale = rate * max(1.0, shape[0] / shape[1]) ** 0.5
        for parameter, move in zip(parameters, direction.unbind(), strict=True):
            parameter.add_(move, alpha=-scale)

    def tensors(self) -> dict[str, Tensor]:
        """The whole state as ``NAME/PARAMETER`` to tensor."""
        stacks = (zip(names, self.momenta[s].unbind(), strict=True) for s, names in self.names.items())
        return {f"momentum/{n}": m for stack in stacks for n, m in stack} | self.others.tensors()

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores what `tensors` gave.

        Raises:
            CheckpointError: names or shapes are not those of this optimiser.
        """
        mine = {k: v for k, v in tensors.items() if k.startswith("momentum/")}
        check_tensors("Muon state", {f"momentum/{n}": p.shape for n, p in self.hidden.items()}, mine)
        self.others.load_tensors({k: v for k, v in tensors.items() if k not in mine})
        for shape, names in self.names.items():
            self.momenta[shape] = torch.stack([mine[f"momentum/{n}"] for n in names]).to(self.momenta[shape].device)


Optimizer = AdamWOptimizer | MuonOptimizer
"""Steps parameters by their gradients; its state can be saved and restored exactly."""


def build_optimizer(settings: AdamW | Muon, parameters: Named, kernel: bool = False) -> Optimizer:
    """The optimiser that ``settings`` describe; ``kernel``: by the compiled library where it can be."""
    made = MuonOptimizer if isinstance(settings, Muon) else AdamWOptimizer
    return cast(Any, made)(settings, parameters, kernel)


def check_tensors(place: str, wanted: Mapping[str, Sequence[int]], found: Mapping[str, Tensor]) -> None:
    """Raises CheckpointError naming the first tensor whose presence, shape or dtype is not as wanted."""
    for name in sorted(wanted.keys() | found.keys()):
        if name not in wanted:
            raise CheckpointError(f"{place}: {name!r} is unknown here; the checkpoint is of another model or optimiser")
        if name not in found:
            raise CheckpointError(f"{place}: {name!r} is missing; the checkpoint is of another model or optimiser")
        have, want = found[name], tuple(wanted[name])
        if tuple(have.shape) != want or have.dtype != torch.float32:
            raise CheckpointError(
                f"{place}: {name!r} is {have.dtype} of shape {tuple(have.shape)}, needed is torch.float32 of shape {want}"
            )
