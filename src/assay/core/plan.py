"""What an objective asks of the machinery, derived from its chain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Forward", "Offers", "Plan", "Scope"]


class Scope(StrEnum):
    """How much must be visible to compute a term."""

    TOKEN = "token"
    SEQUENCE = "sequence"
    GROUP = "group"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Forward:
    """A forward pass without gradient that fills one token column.

    Attributes:
        column: name filled, for example ``logp_old``.
        model: which weights: ``policy`` or an anchor such as ``ref``.
        when: ``batch`` (once per rollout batch) or ``step`` (before each optimiser step).
    """

    column: str
    model: str = "policy"
    when: str = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What a learner can do for an objective, known before anything is built.

    Attributes:
        live: columns that its gradient pass computes.
        models: weights that its passes without gradient can run: the ``policy``, and anchors such as ``ref``.
    """

    live: tuple[str, ...] = ("logp_new",)
    models: tuple[str, ...] = ("policy",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Compiled from an objective chain.

    Attributes:
        forwards: passes without gradient, in order.
        columns: token columns that batch or engine must bring (``logp_engine``, a user's own, ...).
        live: columns that the gradient pass computes (``logp_new``, ``entropy``, ...).
        reductions: parts whose statistics cross ranks: ``credit/I``, a loss term's name, ``aggregate/DENOMINATOR/STREAMS`` (the
            counts that losses are divided by), ``report`` (those of reported means). A reducer sees ``PART/STATISTIC``.
        split: the smallest unit that a micro-batch must keep whole.
        passes: 2 when a score loss needs current scores first.
        skip: rows without gradient may be left out of the passes; loss and gradient stay the same.
    """

    forwards: tuple[Forward, ...] = ()
    columns: tuple[str, ...] = ()
    live: tuple[str, ...] = ("logp_new",)
    reductions: tuple[str, ...] = ()
    split: Scope = Scope.TOKEN
    passes: int = 1
    skip: bool = False
