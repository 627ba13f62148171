"""What a learner relies on when it computes a statistic over the vocabulary, as a check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from assay.core.seeds import generator
from assay.core.vocab import VocabStat
from assay.testing.contracts import Report, require

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["check_statistic"]

_POSITIONS, _VOCABULARY = 12, 11


def check_statistic(stat: VocabStat, seeds: Sequence[int] = range(6), columns: Mapping[str, ArrayLike] | None = None) -> Report:
    """Holds a statistic over the vocabulary, built-in or a user's own, to what chunked passes rely on.

    On random distributions over 11 tokens, at 12 positions, in both precisions: it gives one finite number per position, in the
    precision of the log-probabilities; a position's number does not depend on the others that it is computed with; and its
    gradient, where it has one, is finite and reaches no other position.

    Args:
        stat: the statistic.
        seeds: distributions to try.
        columns: ``[12, ...]`` by name, of those that it ``needs``; the others are drawn from (0, 1).

    Raises:
        ContractError: names the law and the seed.

    >>> from assay.objective import TopKEntropy
    >>> from assay.testing import check_statistic
    >>> check_statistic(TopKEntropy(3)).passed
    ('shape', 'finite', 'positions', 'gradient')
    """
    for seed in seeds:
        for wide in (False, True):
            _check(stat, seed, _Case(stat, seed, wide, columns or {}))
    return Report(subject=type(stat).__name__, passed=("shape", "finite", "positions", "gradient"))


class _Case:
    """Random distributions of all models at the same positions."""

    def __init__(self, stat: VocabStat, seed: int, wide: bool, columns: Mapping[str, ArrayLike]) -> None:
        import torch

        rng = generator("testing/statistic", seed)
        kind = torch.float64 if wide else torch.float32
        self.stat = stat
        self.logits = torch.tensor(rng.normal(size=(_POSITIONS, _VOCABULARY)) * 2, dtype=kind, requires_grad=True)
        self.ids = torch.tensor(rng.integers(0, _VOCABULARY, _POSITIONS))
        self.others = {
            name: torch.tensor(rng.normal(size=(_POSITIONS, _VOCABULARY)) * 2, dtype=kind).log_softmax(1) for name in stat.models
        }
        given = {name: columns.get(name, rng.random(_POSITIONS)) for name in stat.needs}
        self.columns = {name: torch.tensor(np.asarray(values), dtype=kind) for name, values in given.items()}

    def at(self, index: Any) -> Tensor:
        """The statistic at some positions."""
        others, columns = ({n: x[index] for n, x in some.items()} for some in (self.others, self.columns))
        return self.stat.of(self.logits[index].log_softmax(1), self.ids[index], others, columns)


def _check(stat: VocabStat, seed: int, case: _Case) -> None:
    import torch

    subject = type(stat).__name__
    whole = case.at(slice(None))
    require(
        tuple(whole.shape) == (_POSITIONS,) and whole.dtype == case.logits.dtype,
        subject,
        f"shape law, seed {seed}: {_POSITIONS} positions in {case.logits.dtype} gave {list(whole.shape)} in {whole.dtype}",
    )
    require(bool(torch.isfinite(whole).all()), subject, f"finite law, seed {seed}: {whole.detach()}")
    parts = torch.cat([case.at(part) for part in (slice(7, None), slice(0, 2), slice(2, 7))])
    again = torch.cat([parts[5:], parts[:5]])
    require(
        bool(torch.allclose(whole, again, rtol=1e-5, atol=1e-6)),
        subject,
        f"position law, seed {seed}: {whole.detach()} together, {again.detach()} in three chunks",
    )
    if whole.requires_grad:
        (slope,) = torch.autograd.grad(case.at(slice(None))[4], case.logits, materialize_grads=True)
        rest = torch.cat([slope[:4], slope[5:]])
        require(
            bool(torch.isfinite(slope).all()) and not bool(rest.any()),
            subject,
            f"gradient law, seed {seed}: the number at position 4 has the gradient {slope}",
        )
