"""What an objective asks of the machinery, derived from its chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from assay.core.util.renamed import RenamedMembers
from assay.core.vocab import VocabStat

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
        stat: what fills it, where its name does not say it: a statistic over the vocabulary, of ``model``'s distributions.
    """

    column: str
    model: str = "policy"
    when: str = "batch"
    stat: VocabStat | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What a learner can do for an objective, known before anything is built.

    Attributes:
        live: columns that its gradient pass computes.
        models: weights that its passes without gradient can run: the ``policy``, and anchors such as ``ref``.
        heads: value heads by name, each with its form, outputs per token and range; they fill ``NAME_old`` and ``NAME_now``.
        targets: those of them with target weights, which fill ``NAME_target``.
    """

    live: tuple[str, ...] = ("logp_new",)
    models: tuple[str, ...] = ("policy",)
    heads: Mapping[str, tuple[str, int, float, float]] = field(default_factory=dict[str, tuple[str, int, float, float]])
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(RenamedMembers):
    """Compiled from an objective chain.

    Attributes:
        forwards: passes without gradient, in order.
        columns: token columns that batch or engine must bring (``logp_engine``, a user's own, ...).
        rollout_columns: columns of the rollouts that it reads, beside rewards and groups.
        live: columns that the gradient pass computes (``logp_new``, ``entropy``, and the names of ``vocab``).
        reductions: parts whose statistics cross ranks: ``credit/I``, a loss term's name, ``aggregate/DENOMINATOR/STREAMS`` (the
            counts that losses are divided by), ``report`` (those of reported means). A reducer sees ``PART/STATISTIC``.
        split: the smallest unit that a micro-batch must keep whole.
        skip: rows without gradient may be left out of the passes; loss and gradient stay the same.
        vocab: statistics over the vocabulary that the gradient pass computes, under their names in ``live``.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"attempts": "rollout_columns"}

    forwards: tuple[Forward, ...] = ()
    columns: tuple[str, ...] = ()
    rollout_columns: tuple[str, ...] = ()
    live: tuple[str, ...] = ("logp_new",)
    reductions: tuple[str, ...] = ()
    split: Scope = Scope.TOKEN
    skip: bool = False
    vocab: tuple[VocabStat, ...] = ()
