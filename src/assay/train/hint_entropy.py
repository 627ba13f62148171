"""How much the tokens of a hint teach, by how uncertain the policy is at them beside its own continuation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.sample import STREAMS
from assay.objective.loss.token_weights import counted_tokens
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Partials

__all__ = ["HintEntropy"]

_EXPERT = STREAMS.index("expert")


@dataclass(frozen=True, slots=True, kw_only=True)
class HintEntropy(TokenWeight):
    """ADHint's consistency: hint tokens count less the further the policy's entropy there is from that of its own continuation.

    ``w_t = exp(-strength |H_t - m|)``, in nats, with ``H_t`` the entropy at a token of the stream ``expert`` and ``m`` the mean
    entropy of the tokens of its group that the policy sampled itself; 1 at all other tokens, and in groups without such. For
    ``Nll(streams=("expert",), weights=(HintEntropy(),))`` with ``Compose(learn_forced=True)``.

    Source: ADHint (arXiv 2512.13095), in part. UNSURE: the formula; this one follows its description.

    Attributes:
        strength: per nat; at 0 all weights are 1.

    Raises:
        ConfigError: a strength below 0.
    """

    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.strength < float("inf"):
            raise ConfigError(f"HintEntropy.strength={self.strength}; use a finite number of at least 0")

    @property
    def needs(self) -> tuple[str, ...]:
        """The current policy's entropies."""
        return ("entropy_now",)

    @property
    def scope(self) -> Scope:
        """The group, for the mean."""
        return Scope.GROUP

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` weights."""
        entropy, here = np.asarray(batch.token("entropy_now"), np.float64), counted_tokens(batch)
        group = np.repeat(batch.per_row("group"), batch.lengths)
        hint = here & np.repeat(batch.rows["stream"] == _EXPERT, batch.lengths)
        own = here & ~hint
        size = int(group.max(initial=0)) + 1
        count = np.bincount(group[own], minlength=size)
        mean = np.bincount(group[own], entropy[own], size) / np.maximum(count, 1)
        out = np.ones(len(entropy))
        used = hint & (count[group] > 0)
        out[used] = np.exp(-self.strength * np.abs(entropy[used] - mean[group[used]]))
        return out
