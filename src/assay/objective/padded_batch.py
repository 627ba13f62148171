"""Padded inputs, one row per rollout: checked, and made a batch. What `evaluate` and `torch_loss` have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, Counts
from assay.core.columns import Array, TokenColumn
from assay.core.errors import DataError, UnknownNameError, nearest
from assay.core.plan import Plan
from assay.core.sample import STREAMS
from assay.core.util.renamed import RenamedMembers
from assay.objective.logits import Logits
from assay.objective.loss.wrap import title
from assay.objective.objective import Objective
from assay.objective.reducers import F
from assay.objective.user_arrays import (
    LIST,
    VOCABULARY,
    Inner,
    place_by_content,
    read_array,
    read_column,
    read_flags,
    read_names,
    read_per_rollout,
)

__all__ = ["Inputs", "PaddedInputs", "RequiredInputs", "required_inputs"]

Inputs = Mapping[str, Any]
"""Arrays by name; under ``components`` a mapping of arrays."""

_ALWAYS = ("mask", "group_id", "stream", "valid")
_REWARD = ("rewards", "components")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredInputs(RenamedMembers):
    """The inputs that a method reads.

    Attributes:
        live: token columns with a gradient.
        columns: further token columns that must be given.
        derived: token columns that equal a live one's values unless they are given.
        rollout_columns: columns of the rollouts that must be given.
        optional: inputs that have a default.
        uses_reward: it reads rewards: ``rewards``, ``components``, or ``advantages`` in their place.
        grouped: it compares the rollouts of a group, so ``group_id`` must be given.
        logits: ``ids`` and the logits that may stand in the place of all columns that come from a distribution.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"attempts": "rollout_columns", "pays": "uses_reward"}

    live: tuple[str, ...]
    columns: tuple[str, ...]
    derived: tuple[str, ...]
    rollout_columns: tuple[str, ...]
    optional: tuple[str, ...]
    uses_reward: bool
    grouped: bool
    logits: tuple[str, ...]


def required_inputs(objective: Objective, plan: Plan | None = None) -> RequiredInputs:
    """What a composition reads of padded inputs.

    >>> from assay.objective import pacs
    >>> required_inputs(pacs()).columns, required_inputs(pacs()).derived, required_inputs(pacs()).grouped
    (('logp_old',), ('logp_now',), True)
    """
    plan = plan or objective.plan()
    read = [*plan.columns, *(f.column for f in plan.forwards)]
    rest = [name for name in dict.fromkeys(read) if name not in plan.live]
    rollouts = set(plan.rollout_columns)
    sources = _sources(objective)
    return RequiredInputs(
        live=plan.live,
        columns=tuple(n for n in rest if n not in sources),
        derived=tuple(n for n in rest if n in sources),
        rollout_columns=tuple(sorted(rollouts - {"length"})),
        optional=("length",) if "length" in rollouts else (),
        uses_reward=objective.uses_reward,
        grouped=objective.grouped,
        logits=Logits.all(plan).inputs,
    )


def _sources(objective: Objective) -> Mapping[str, str]:
    """Columns that equal a live one's present values unless they are given: those of the policy, and of heads with one number."""
    heads = {name: form[1] for term in objective.losses for name, form in term.heads.items()}
    alike = [name for name, outputs in heads.items() if outputs == 1]
    return {"logp_now": "logp_new", **{f"{name}_{when}": name for name in alike for when in ("old", "now")}}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddedInputs(RenamedMembers):
    """Checked inputs.

    Attributes:
        mask: ``[B, T]``.
        present: indices of the rollouts that have a row: valid ones with a loss token.
        columns: name to ``[B, T, ...]``, 0 where it is not read.
        rollouts: name to ``[B]``: what the batch says of rollouts.
        stream: ``[B]`` index into `STREAMS`.
        credited: advantages were given, so the credit chain must not run.
        logits: which columns come from logits; those of the current policy come with the gradient.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"attempts": "rollouts", "padded": "pad_values"}

    mask: NDArray[np.bool_]
    present: NDArray[np.int64]
    columns: Mapping[str, Array]
    rollouts: Mapping[str, Array]
    stream: NDArray[np.int8]
    credited: bool
    logits: Logits = field(default_factory=Logits)

    @staticmethod
    def of(
        inputs: Inputs,
        objective: Objective,
        plan: Plan,
        logits: Logits | None = None,
        later: Collection[str] = (),
        attached: Collection[str] = (),
    ) -> PaddedInputs:
        """Checked inputs.

        Args:
            inputs: arrays by name.
            objective: the method.
            plan: what it compiled to.
            logits: columns that come from logits among the inputs; they are not given then.
            later: further live columns that are not among the inputs but come later, so that nothing can be derived from them.
            attached: inputs that may be tensors with a graph.

        Raises:
            DataError: an input is missing, is not used by this method, has the wrong shape or kind, requires a gradient that it
                would not get, or is not finite where it is read.
            UnknownNameError: no such stream.
        """
        if "mask" not in inputs:
            raise DataError(f"the input 'mask' [rollouts, tokens] is missing; given are {', '.join(sorted(inputs))}")
        mask = read_flags("mask", inputs["mask"])
        if mask.ndim != 2:
            raise DataError(f"mask has the shape {list(mask.shape)}; give [rollouts, tokens]")
        stream = _streams(inputs, len(mask))
        logits = logits or Logits()
        names = _names(inputs, objective, plan, logits, later, bool((stream == STREAMS.index("replay")).any()))
        valid = read_flags("valid", _rollout_values(inputs, "valid", np.ones(len(mask), np.bool_)))
        used = mask & valid[:, None]
        inner = _inner(objective, plan, logits)
        columns = {n: read_column(n, inputs[n], used, n in attached, inner.get(n, ())) for n in names if n in inputs}
        _check_lists(plan, columns)
        columns |= _vocabulary({n: columns[n] for n in logits.inputs}, used)
        sources = _sources(objective)
        columns |= {n: columns[sources[n]] for n in names if n not in columns and sources.get(n) in columns}
        if "advantages" in inputs:
            columns["advantage"] = read_column("advantages", _spread(inputs["advantages"], used), used, False, ())
        made = PaddedInputs(
            mask=mask,
            present=np.flatnonzero(used.any(1)),
            columns=columns,
            rollouts=_rollouts(inputs, objective, mask, valid),
            stream=stream,
            credited="advantages" in inputs,
            logits=logits,
        )
        if logits.forwards and len(made.present):
            made = replace(made, columns={**columns, **logits.fixed_columns(made)})
        return replace(made, rollouts={**made.rollouts, "place": made.place(plan, used, sources)})

    def place(self, plan: Plan, used: NDArray[np.bool_], sources: Mapping[str, str]) -> NDArray[np.int64]:
        """``[B]`` places in the groups by content (`place_by_content`): what has a gradient has no part in it, and what equals
        such a column comes last.
        """
        moving = {*plan.live, *self.logits.live, *self.logits.inputs, *sources, "ids"}
        still = [self.columns[name] for name in sorted(self.columns) if name not in moving]
        last = [self.columns[name] for name in ("ids", *sorted(sources)) if name in self.columns]
        rollouts = [self.rollouts[name] for name in sorted(self.rollouts) if name != "group"]
        return place_by_content(self.rollouts["group"], used, [*rollouts, *still, *last])

    def batch(self, objective: Objective) -> Batch:
        """One row per present rollout; a token before the first one stands for the prompt.

        Rewards beside given advantages become the rollouts' ``reward``, for the terms that read both.
        """
        rows, tokens = self.mask[self.present].shape
        mask = self.flat("mask")
        columns = {"ids": np.zeros(len(mask), np.int32), "mask": mask}
        columns |= {name: self.flat(name) for name in self.columns if name == "ids" or name not in self.logits.inputs}
        prompts = len(np.unique(self.rollouts["group"][self.present]))
        counts = Counts(int(mask.sum()), rows, rows, prompts)
        made = Batch(
            offsets=np.arange(rows + 1, dtype=np.int64) * (tokens + 1),
            tokens={name: TokenColumn(name, values, "evaluate") for name, values in columns.items()},
            rows={"rollout": self.present, "stream": self.stream[self.present]},
            rollouts=self.rollouts,
            counts=counts,
            drawn=counts,
        )
        if self.credited and any(name.startswith("components/") for name in self.rollouts):
            made = made.with_rollouts(reward=objective.scalarise.start(made).reward)
        return made

    def flat(self, name: str) -> Array:
        """``[N, ...]`` a column over the batch's tokens, 0 at the token before the first."""
        values = self.mask if name == "mask" else self.columns[name]
        here = values[self.present]
        before = np.zeros((len(here), 1, *here.shape[2:]), here.dtype)
        return np.concatenate([before, here], 1).reshape(-1, *here.shape[2:])

    def pad_values(self, values: Array) -> F:
        """``[B, T, ...]`` of values over the batch's tokens; 0 outside the mask."""
        out = np.zeros((*self.mask.shape, *values.shape[1:]))
        out[self.present] = values.reshape(len(self.present), -1, *values.shape[1:])[:, 1:]
        return out


def _inner(objective: Objective, plan: Plan, logits: Logits) -> dict[str, Inner]:
    """The axes behind the first two, where a column has some: outputs of a head, a teacher's few tokens, a vocabulary."""
    heads = {name: form[1] for term in objective.losses for name, form in term.heads.items()}
    out: dict[str, Inner] = {name: (outputs,) for name, outputs in heads.items() if outputs > 1}
    stats = [*plan.vocab, *(f.stat for f in plan.forwards if f.stat is not None)]
    out |= {name: LIST for stat in stats for name in stat.lists}
    return out | {name: VOCABULARY for name in logits.inputs if name != "ids"}


def _rollout_columns_read(objective: Objective, credited: bool = False) -> set[str]:
    """Columns of the rollouts that the loss terms read, and the credit chain where it runs."""
    chain = objective.credit if objective.uses_reward and not credited else ()
    return {name for part in (*chain, *objective.losses) for name in part.rollout_columns}


def _names(inputs: Inputs, objective: Objective, plan: Plan, logits: Logits, later: Collection[str], replayed: bool) -> list[str]:
    """The token columns that are read; refuses what is missing and what would be ignored."""
    want = required_inputs(objective, plan)
    who = f"the composition of {', '.join(map(title, objective.losses))}"
    credited = want.uses_reward and "advantages" in inputs
    made = [c for t in objective.credit for c in t.makes] if credited else []
    sources = _sources(objective)
    derived = [n for n in want.derived if n not in logits.columns]
    needed = [n for n in (*want.live, *want.columns) if n not in (*logits.columns, *later)]
    needed += [*(n for n in derived if sources[n] in later), *(n for n in logits.inputs if n not in needed)]
    if replayed and any("old" in t.anchors for t in objective.losses) and "logp_engine" not in needed:
        needed.append("logp_engine")  # the old policy of a replayed rollout is the one that sampled it
    rollouts = [n for n in want.rollout_columns if n in _rollout_columns_read(objective, credited)]
    usable = {
        *_ALWAYS,
        *needed,
        *derived,
        *made,
        *rollouts,
        *want.optional,
        *((*_REWARD, "advantages") if want.uses_reward else ()),
    }
    for name in inputs:
        if name not in usable:
            close = nearest(name, usable)
            raise DataError(
                f"the input {name!r} is not used by {who}: {f'did you mean {close!r}? ' if close else ''}leave it out; it uses "
                f"{', '.join(sorted(usable))}"
            )
    for name in (*needed, *rollouts, *(("group_id",) if want.grouped and not credited else ())):
        if name not in inputs:
            instead = Logits.all(plan).instead(name)
            hint = f" (or {instead[0]!r} and 'ids', which give it)" if instead else ""
            raise DataError(f"{who} needs the input {name!r}, which is missing{hint}; given are {', '.join(sorted(inputs))}")
    given = [name for name in _REWARD if name in inputs]
    if want.uses_reward and (len(given) > 1 or not (given or credited)):
        raise DataError(f"{who} needs 'rewards' [B], 'components' (name to [B]) or 'advantages', one of the first two at most")
    return [*needed, *derived, *made]


def _rollouts(inputs: Inputs, objective: Objective, mask: NDArray[np.bool_], valid: NDArray[np.bool_]) -> dict[str, Array]:
    """Columns of the rollouts."""
    size, lengths = len(mask), mask.sum(1)
    group = read_names("group_id", inputs.get("group_id", np.arange(size)), size)
    if group.dtype.kind == "f" and not np.isfinite(group).all():
        raise DataError(
            f"group_id[{int(np.flatnonzero(~np.isfinite(group))[0])}] is not finite: every rollout belongs to a group"
        )
    out: dict[str, Array] = {
        "group": np.unique(group, return_inverse=True)[1].astype(np.int64),
        "valid": valid,
        "tokens": np.where(valid, lengths, 0).astype(np.int64),
        "length": lengths,
        **{name: _rollout_values(inputs, name, lengths) for name in _rollout_columns_read(objective, "advantages" in inputs)},
    }
    if "truncated" in out:
        out["truncated"] = read_flags("truncated", out["truncated"])
    return out | {f"components/{name}": values for name, values in _components(inputs, valid).items()}


def _spread(given: Any, used: NDArray[np.bool_]) -> Array:
    """``[B, T]`` of values per rollout or per token."""
    values = read_array("advantages", given)
    return np.broadcast_to(values[:, None], used.shape) if values.shape == used.shape[:1] else values


def _check_lists(plan: Plan, columns: Mapping[str, Array]) -> None:
    """Raises DataError when a statistic reads lists of different lengths."""
    for stat in plan.vocab:
        shapes = {name: list(columns[name].shape) for name in stat.lists if name in columns}
        if len({str(shape) for shape in shapes.values()}) > 1:
            raise DataError(
                f"the shapes of {', '.join(f'{n} {s}' for n, s in shapes.items())} differ; give one entry per token id"
            )


def _vocabulary(columns: Mapping[str, Array], used: NDArray[np.bool_]) -> dict[str, Array]:
    """``ids`` as integers, if there are logits: these have one vocabulary, and every drawn token is in it."""
    sizes: dict[str, int] = {}
    for name, values in columns.items():
        if name != "ids" and not values.shape[2]:
            raise DataError(f"{name} has the shape {list(values.shape)}; give [rollouts, tokens, vocabulary]")
        if name != "ids":
            sizes[name] = values.shape[2]
    if not sizes:
        return {}
    if len(set(sizes.values())) > 1:
        raise DataError(f"the vocabularies differ, {sizes}: the logits of all models must stand over the same tokens")
    if "ids" not in columns:
        return {}
    ids, size = columns["ids"], next(iter(sizes.values()))
    bad = used & ((ids < 0) | (ids >= size) | (ids % 1 != 0))
    if bad.any():
        row, token = (int(x[0]) for x in np.nonzero(bad))
        raise DataError(f"ids[{row}, {token}] is {ids[row, token]:g}: the logits have {size} tokens, counted from 0")
    return {"ids": ids.astype(np.int64)}


def _rollout_values(inputs: Inputs, name: str, default: Array) -> Array:
    """``[B]`` numbers of an input, or the default."""
    return read_per_rollout(name, inputs.get(name, default), len(default))


def _components(inputs: Inputs, valid: NDArray[np.bool_]) -> dict[str, F]:
    """Reward components by name, NaN where there is no verdict."""
    given: Any = {"reward": inputs["rewards"]} if "rewards" in inputs else inputs.get("components", {})
    if not isinstance(given, Mapping):
        raise DataError(f"components is {type(given).__name__}; give a mapping from name to [rollouts]")
    out: dict[str, F] = {}
    for name in cast("Inputs", given):
        values = _rollout_values(cast("Inputs", given), name, np.zeros(len(valid))).astype(np.float64)
        if not np.isfinite(values[valid]).all():
            row = int(np.flatnonzero(valid & ~np.isfinite(values))[0])
            raise DataError(f"{name}[{row}] is {values[row]}: a verdict is a finite number; mark the rollout with valid=False")
        out[name] = np.where(valid, values, np.nan)
    return out


def _streams(inputs: Inputs, size: int) -> NDArray[np.int8]:
    names = read_names("stream", inputs.get("stream", np.full(size, "on_policy")), size).tolist()
    for name in names:
        if name not in STREAMS:
            raise UnknownNameError("stream", str(name), STREAMS)
    return np.array([STREAMS.index(name) for name in names], np.int8)
