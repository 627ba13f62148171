"""Padded inputs as logits: which columns of a plan they stand for, and those columns computed from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import Array
from assay.core.plan import Forward, Plan
from assay.core.vocab import VocabStat

if TYPE_CHECKING:
    from assay.objective.padded_batch import PaddedInputs

__all__ = ["Logits"]

_POLICY = "policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logits:
    """The columns of a plan that are computed from distributions, and whose.

    The current policy's logits are the input ``logits``; ``logits_old`` are those of the policy at the start of the batch;
    ``logits_MODEL`` those of any other model that a pass runs or a statistic compares with.

    Attributes:
        models: whose logits are read, ``policy`` the current one.
        live: live columns, attached to the current policy's logits.
        forwards: columns without gradient.
        stats: the statistics among the live columns.
    """

    models: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    forwards: tuple[Forward, ...] = ()
    stats: tuple[VocabStat, ...] = ()

    @staticmethod
    def of(names: Collection[str], plan: Plan) -> Logits:
        """What the logits among the inputs' names stand for; nothing where there are none.

        >>> from assay.objective import grpo
        >>> Logits.of(["mask", "logits", "logits_ref"], grpo().plan()).inputs
        ('ids', 'logits', 'logits_ref')
        """
        given = [_model(n) for n in names if n.partition("_")[0] == "logits" and n not in plan.columns]
        forwards = [f for f in plan.forwards if _is_distribution(f) and _source(f) in given and f.column not in names]
        stats = {s.name: s for s in plan.vocab} if _POLICY in given else {}
        live = [n for n in plan.live if n in ("logp_new", "entropy", *stats) and n not in names] if _POLICY in given else []
        if "entropy" in live and "entropy" in plan.columns:  # the credit chain reads it too
            forwards.append(Forward("entropy", when="step"))
        compared = [s.models for s in (*(s for n, s in stats.items() if n in live), *(f.stat for f in forwards)) if s is not None]
        models = [*((_POLICY,) if live else ()), *map(_source, forwards), *(m for some in compared for m in some)]
        used = tuple(s for name, s in stats.items() if name in live)
        return Logits(models=tuple(dict.fromkeys(models)), live=tuple(live), forwards=tuple(forwards), stats=used)

    @staticmethod
    def all(plan: Plan) -> Logits:
        """What logits could stand for, were all of them given."""
        return Logits.of(["logits", *(_input(_source(f)) for f in plan.forwards)], plan)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are computed, so that none of them may be given."""
        return (*self.live, *(f.column for f in self.forwards))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that this takes: ``ids`` and the logits by model; none where nothing is computed."""
        stats = [*self.stats, *(f.stat for f in self.forwards if f.stat)]
        plain = "logp_new" in self.live or any(f.stat is None and f.column.startswith("logp") for f in self.forwards)
        drawn = plain or any(s.drawn for s in stats)
        return (*(("ids",) if drawn else ()), *map(_input, self.models))

    def instead(self, column: str) -> tuple[str, ...]:
        """The logits that a column is computed from, by their inputs' names; none when it comes from no distribution."""
        found = [f for f in self.forwards if f.column == column]
        return ("logits",) if column in self.live else tuple(_input(_source(f)) for f in found)

    def fixed_columns(self, table: PaddedInputs) -> Mapping[str, Array]:
        """``[B, T]`` the columns without gradient.

        Raises:
            DataError: a statistic reads a column that is missing.
        """
        from assay.objective.loss.tensors import constants
        from assay.objective.loss.vocab_columns import fixed_columns

        at = np.flatnonzero(table.flat("mask"))
        logits = constants({m: table.flat(_input(m))[at] for m in self.models})
        drawn = constants({n: table.flat(n)[at] for n in self.inputs if n == "ids"})
        read = {n: table.flat(n)[at] for f in self.forwards if f.stat for n in f.stat.needs if n in table.columns}
        found = fixed_columns(self.forwards, logits, drawn.get("ids"), constants(read))
        out: dict[str, Array] = {}
        for name, values in found.items():
            out[name] = np.zeros(int(table.mask[table.present].size + len(table.present)))
            out[name][at] = values.numpy()
        return {name: table.pad_values(values) for name, values in out.items()}

    def tensors(self, table: PaddedInputs, leaf: Any, ready: Batch) -> dict[str, Any]:
        """``[N]`` tensors of the live columns.

        Args:
            table: the inputs.
            leaf: ``[N, V]`` the current policy's logits.
            ready: the prepared batch, whose columns statistics may read.

        Raises:
            DataError: a statistic reads a column that is missing.
        """
        from assay.objective.loss.tensors import constants
        from assay.objective.loss.vocab_columns import live_columns

        at = np.flatnonzero(table.flat("mask"))
        logits = constants({m: table.flat(_input(m))[at] for m in self.models if m != _POLICY}) | {_POLICY: leaf[at]}
        read = constants({n: ready.token(n)[at] for s in self.stats for n in s.needs if n in ready.tokens})
        index = constants({"at": at, **({"ids": table.flat("ids")[at]} if "ids" in self.inputs else {})})
        found = live_columns(Plan(live=self.live, vocab=self.stats), logits, index.get("ids"), read)
        return {name: leaf.new_zeros(len(leaf)).index_put((index["at"],), values) for name, values in found.items()}


def _model(name: str) -> str:
    return name.partition("_")[2] or _POLICY


def _input(model: str) -> str:
    return "logits" if model == _POLICY else f"logits_{model}"


def _source(forward: Forward) -> str:
    """Whose logits a pass without gradient is made of."""
    return "old" if (forward.model, forward.when) == (_POLICY, "batch") else forward.model


def _is_distribution(forward: Forward) -> bool:
    return forward.stat is not None or forward.column.startswith(("logp", "entropy"))
