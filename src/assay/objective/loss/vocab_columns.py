"""From logits to the columns that a plan asks for: what a learner does in chunks, on tensors that are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from assay.core.errors import DataError
from assay.core.plan import Forward, Plan
from assay.core.vocab import FullEntropy, VocabStat
from assay.objective.loss.vocab import gather_ids

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["fixed_columns", "live_columns"]


def live_columns(
    plan: Plan, logits: Mapping[str, Tensor], ids: Tensor | None, columns: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Those columns of ``plan.live`` that come from the distribution: ``logp_new``, ``entropy``, and the plan's statistics.

    Args:
        plan: of an objective.
        logits: ``[n, V]`` by model: ``policy`` is the current one, attached to its graph; others as statistics name them.
        ids: ``[n]`` int64 tokens that were drawn; None where nothing reads them.
        columns: ``[n]`` token columns that statistics read; those of a term's ``prepare`` among them.

    Raises:
        DataError: a model's logits or a column are missing.

    >>> import torch
    >>> flat = torch.zeros(1, 4, dtype=torch.float64)
    >>> found = live_columns(Plan(live=("logp_new", "entropy")), {"policy": flat}, torch.tensor([2]))
    >>> {name: round(float(value), 4) for name, value in found.items()}
    {'logp_new': -1.3863, 'entropy': 1.3863}
    """
    logp = _logp(logits, "policy")
    found: dict[str, Tensor] = {"logp_new": gather_ids(logp, _require_ids(ids))} if "logp_new" in plan.live else {}
    stats: Sequence[VocabStat] = (*plan.vocab, *((FullEntropy(),) if "entropy" in plan.live else ()))
    return found | {stat.name: _of(stat, logp, logits, ids, columns or {}) for stat in stats}


def fixed_columns(
    forwards: Sequence[Forward], logits: Mapping[str, Tensor], ids: Tensor | None, columns: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """The columns that passes without gradient would fill.

    Args:
        forwards: of a plan, maybe only some.
        logits: ``[n, V]`` by model: ``old`` is the policy at the start of the batch, ``policy`` the current one.
        ids, columns: as in `live_columns`.

    Raises:
        DataError: a model's logits or a column are missing, or a pass gives no number of the distribution (values of a head).
    """
    import torch

    found: dict[str, Tensor] = {}
    with torch.no_grad():
        for forward in forwards:
            logp = _logp(logits, "old" if (forward.model, forward.when) == ("policy", "batch") else forward.model)
            if forward.stat is not None:
                found[forward.column] = _of(forward.stat, logp, logits, ids, columns or {})
            elif forward.column.startswith("entropy"):
                found[forward.column] = FullEntropy().of(logp, ids, {}, {})
            elif forward.column.startswith("logp"):
                found[forward.column] = gather_ids(logp, _require_ids(ids))
            else:
                raise DataError(f"{forward.column!r} is nothing that logits give; bring the column itself")
    return found


def _of(stat: VocabStat, logp: Tensor, logits: Mapping[str, Tensor], ids: Tensor | None, columns: Mapping[str, Tensor]) -> Tensor:
    missing = [name for name in stat.needs if name not in columns]
    if missing:
        raise DataError(
            f"the statistic {stat.name!r} reads the column {missing[0]!r}, which is missing; given are {sorted(columns)}"
        )
    if stat.drawn:
        _require_ids(ids)
    others = {name: _logp(logits, name).detach() for name in stat.models}
    return stat.of(logp, ids, others, {name: columns[name] for name in stat.needs})


def _require_ids(ids: Tensor | None) -> Tensor:
    if ids is None:
        raise DataError("'ids', the tokens that were drawn, are missing: their log-probabilities are asked for")
    return ids


def _logp(logits: Mapping[str, Tensor], model: str) -> Tensor:
    if model not in logits:
        raise DataError(f"logits of {model!r} are missing; given are those of {sorted(logits)}")
    return logits[model].log_softmax(1)
