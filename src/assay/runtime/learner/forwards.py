"""What a learner reads from its models at loss tokens: log-probabilities, entropies, statistics over the vocabulary, values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import DataError, PlanError, UnknownNameError
from assay.core.plan import Forward, Plan, Scope
from assay.core.ragged import SUPPORT
from assay.core.sample import TEMPERATURE
from assay.core.vocab import FullEntropy, VocabStat
from assay.runtime.kernels.typed import array_of, tensor_of
from assay.runtime.learner.anchor_models import AnchorModels
from assay.runtime.learner.batching import micro_batches
from assay.runtime.learner.causal import Causal
from assay.runtime.learner.critics import states
from assay.runtime.learner.heads import Found, Heads
from assay.runtime.learner.lm_head import head_columns
from assay.runtime.learner.packing import Packing, pack_offsets
from assay.runtime.learner.privileged import behind_privilege
from assay.runtime.learner.support import Support
from assay.runtime.settings import LearnerSettings

if TYPE_CHECKING:
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.distributed.context_parallel import Share

__all__ = ["Forwards", "Inputs"]

Inputs = tuple[Tensor, Packing, Tensor]
"""``[N]`` ids of a micro-batch, where its rows lie, and ``[M]`` the tokens that carry loss."""

Quantity = str | VocabStat
"""``logp``, ``entropy``, the name of a head, or a statistic over the vocabulary."""

_LIVE = {"logp_new": "logp", "entropy": "entropy"}


@dataclass(frozen=True, slots=True, eq=False)
class Forwards:
    """Passes of a policy, its heads, and its anchors.

    Attributes:
        policy, anchors, heads: what is read.
        settings: precision, and the size of a micro-batch.
        ranks: that share out the micro-batches; None for a single process.
    """

    policy: Causal
    anchors: AnchorModels
    heads: Heads
    settings: LearnerSettings
    ranks: Collectives | None = None

    def model(self, name: str) -> Causal:
        """The decoder of a name.

        Raises:
            UnknownNameError: no such model.
        """
        if name == "policy":
            return self.policy
        if name not in self.anchors:
            raise UnknownNameError("model", name, ["policy", *self.anchors])
        return self.anchors[name]

    def micro_batches(
        self, batch: Batch, split: Scope = Scope.TOKEN, rows: NDArray[np.int64] | None = None
    ) -> list[NDArray[np.int64]]:
        """Row indices of each micro-batch, as `assay.runtime.learner.batching.micro_batches`."""
        together = self.policy.shares and self.settings.precision == "fp32"
        return micro_batches(batch, self.settings.micro_tokens, split, rows, together)

    def inputs(self, micro: Batch, model: str = "policy", *, exact: bool = False) -> Inputs:
        """Ids, packing, and the tokens that carry loss, as a model reads them; ``exact`` for passes in float32 whatever the
        settings' precision.

        Raises:
            DataError: rows too long, unknown ids, or a first token with loss; or rows without the privileged prompts behind which
                the model reads.
        """
        if self.anchors.privileged(model):
            micro = behind_privilege(micro, model)
        ids, mask = micro.token("ids"), micro.token("mask")
        shape = self.model(model).shape
        longest = int(micro.lengths.max())
        if longest > shape.max_positions:
            who = "the model's context" if model == "policy" else f"the context of {model!r}"
            raise DataError(
                f"a row has {longest} tokens, {who} (DecoderShape.max_positions) is {shape.max_positions}; shorten prompts or "
                "answers"
            )
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= shape.vocab_size:
            raise DataError(f"token ids reach from {low} to {high}, the model's vocabulary has {shape.vocab_size}")
        if mask[micro.offsets[:-1]].any():
            raise DataError("the first token of a row carries loss, but nothing before it can predict it; set its mask to False")
        share, offsets = self._share, micro.offsets
        if share is not None:
            offsets = share.pad_offsets(offsets)
            ids = np.pad(ids, (0, int(offsets[-1]) - len(ids)))
        packing = replace(pack_offsets(offsets), share=share)
        half = self.settings.precision == "bf16" and not exact
        if self.model(model).ragged if half else self.model(model).shares:
            packing = packing.without_padding()
        if model == "policy" and self.policy.replay is not None and "routed_experts" in micro.tokens:
            experts = _routed_experts(micro)
            more = np.full((len(ids) - len(experts), *experts.shape[1:]), -1, np.int64)
            packing = replace(packing, experts=tensor_of(np.concatenate([experts, more])))
        if TEMPERATURE in micro.tokens:
            told = micro.token(TEMPERATURE).astype(np.float32)
            warmth = np.ones(len(ids), np.float32)
            warmth[: len(told)] = np.where(told > 0.0, told, 1.0)  # 0 stands where nobody knows
            packing = replace(packing, temperature=tensor_of(warmth))
        if SUPPORT in micro.tokens:
            packing = replace(packing, support=Support.of(micro.token(SUPPORT), len(ids)))
        where, device = np.flatnonzero(mask), self.model(model).device
        return tensor_of(ids.astype(np.int64)).to(device), packing.to(device), tensor_of(where).to(device)

    @property
    def _share(self) -> Share | None:
        return self.ranks.share if self.ranks is not None else None

    def logp(self, model: str, inputs: Inputs) -> Tensor:
        """``[M]`` log-probabilities at the loss tokens."""
        picked, here = self._pick_inputs(inputs)
        found = self.model(model).columns(*here)[0]
        return self._gather_values(inputs, found, picked)

    def _gather_values(self, inputs: Inputs, values: Tensor, picked: Tensor | None) -> Tensor:
        """``[M]`` of what was read here at some of the loss tokens."""
        share = inputs[1].share
        return values if share is None or picked is None else share.gather_tokens(values, picked, len(inputs[2]))

    def _pick_inputs(self, inputs: Inputs) -> tuple[Tensor | None, Inputs]:
        """Of the loss tokens those that are read here, None for all; and the inputs with these alone."""
        ids, packing, where = inputs
        if packing.share is None:
            return None, inputs
        picked = packing.share.select_positions(where, len(ids))
        return picked, (ids, packing, where[picked])

    def autocast(self) -> AbstractContextManager[object]:
        """The settings' precision of matrix products."""
        return torch.autocast(self.policy.device.type, torch.bfloat16) if self.settings.precision == "bf16" else nullcontext()

    # ---- without gradient

    def fill(self, batch: Batch, forwards: Sequence[Forward], version: int) -> Batch:
        """The batch with a column for each of ``forwards``; those of one model share a pass.

        A column of the policy has ``version``, one of an anchor the version at which the policy last entered that.

        Raises:
            PlanError: no column of that name can be filled.
            UnknownNameError: no such model.
        """
        for model in dict.fromkeys(f.model for f in forwards):
            wanted = {f.column: self._quantity(f) for f in forwards if f.model == model}
            values = self._pass(batch, model, wanted)
            since = self.anchors.versions.get(model, version)
            batch = batch.with_tokens(*(TokenColumn(n, v, "learner", since) for n, v in values.items()))
        return batch

    def _quantity(self, forward: Forward) -> Quantity:
        """What a column holds."""
        column, head = forward.column, self.heads.head_of(forward.column)
        if forward.stat is not None:
            return forward.stat
        if head is not None and forward.model == "policy":
            return head
        if column.startswith("entropy"):
            return "entropy"
        if not column.startswith("logp_") or column.startswith("logp_mean"):
            heads = ", ".join(self.heads) or "none, without LearnerSettings(heads=(ValueHead(),))"
            raise PlanError(
                "a forward pass gives columns called logp... or entropy..., statistics, and of the policy the values of its "
                f"heads ({heads}), not {column!r} of {forward.model!r}"
            )
        return "logp"

    def _pass(self, batch: Batch, model: str, wanted: Mapping[str, Quantity]) -> dict[str, NDArray[np.float32]]:
        """``[N]`` values by column, 0 on tokens without loss."""
        out = {column: np.zeros(int(batch.offsets[-1]), np.float32) for column in wanted}
        heads = [column for column, kind in wanted.items() if kind in self.heads]
        with torch.no_grad(), self.autocast():
            for _, rows, counts in self.split_parts(self.micro_batches(batch)):
                micro = batch.micro(rows)
                found, states_of = self._read(model, self.inputs(micro, model), micro, wanted, heads)
                found |= {column: self.heads.values(column, states_of) for column in heads}
                here = _tokens_of(batch, rows)[micro.token("mask")]
                for column, values in found.items() if counts else ():
                    out[column][here] = array_of(values)
        self.complete(out)
        return out

    def split_parts(self, parts: Sequence[NDArray[np.int64]]) -> Iterator[tuple[int, NDArray[np.int64], bool]]:
        """The micro-batches to compute here, with their places, and whether they count: all of them, but on several ranks."""
        if self.ranks is None:
            return ((place, rows, True) for place, rows in enumerate(parts))
        return self.ranks.split_parts(parts)

    def complete(self, columns: Mapping[str, NDArray[np.float32]]) -> None:
        """Fills in what other ranks computed: each number stands on one of them, and is 0 on the others."""
        if self.ranks is None:
            return
        for name, values in columns.items():
            values *= self.ranks.counts
            self.ranks.add(tensor_of(values), f"column {name}")

    # ---- with gradient

    def live(self, inputs: Inputs, micro: Batch, plan: Plan) -> dict[str, Tensor]:
        """``[M]`` (of a head with ``k`` outputs ``[M, k]``) by the names in ``plan.live``, at the loss tokens; where rows say how
        they were routed also ``router_agreement``, as `Replay.alike` says.
        """
        wanted: dict[str, Quantity] = {s.name: s for s in plan.vocab}
        wanted |= {name: kind for name, kind in _LIVE.items() if name in plan.live and name not in wanted}
        heads = [name for name in self.heads if name in plan.live]
        found, states_of = self._read("policy", inputs, micro, wanted, heads)
        if self.policy.replay is not None and inputs[1].experts is not None:
            picked, (ids, packing, where) = self._pick_inputs(inputs)
            first = packing.share.own(len(ids)).start if packing.share else 0
            found["router_agreement"] = self._gather_values(inputs, self.policy.replay.alike()[where - 1 - first], picked)
        return found | {name: self.heads.live(name, states_of) for name in heads}

    # ---- one pass

    def _read(
        self, model: str, inputs: Inputs, micro: Batch, wanted: Mapping[str, Quantity], heads: Sequence[str]
    ) -> tuple[dict[str, Tensor], Found]:
        """``[M]`` log-probabilities, entropies and statistics by column, and the states behind the columns ``heads``."""
        picked, here = self._pick_inputs(inputs)
        found, states_of = self.model(model).within(self._read_here, model, here, micro, wanted, heads, picked)
        return {n: self._gather_values(inputs, values, picked) for n, values in found.items()}, states_of

    def _read_here(
        self,
        model: str,
        inputs: Inputs,
        micro: Batch,
        wanted: Mapping[str, Quantity],
        heads: Sequence[str],
        picked: Tensor | None,
    ) -> tuple[dict[str, Tensor], Found]:
        decoder, (ids, _, where) = self.model(model), inputs
        stats = {column: kind for column, kind in wanted.items() if isinstance(kind, VocabStat)}
        plain = {column: kind for column, kind in wanted.items() if kind in ("logp", "entropy")}
        entropy = "entropy" in plain.values()
        found = self.heads.trunk_states(*inputs, heads)
        own = self.heads.on_policy(self.heads.head_of(column) or "" for column in heads)
        if not own and not stats:
            if not plain:
                return {}, found
            logp, spread = decoder.columns(*inputs, entropy)
            return {column: spread if kind == "entropy" else logp for column, kind in plain.items()}, found
        both = states(decoder, *inputs, self.heads.behind(own))
        found["", False] = both
        made: dict[str, Tensor] = {}
        if stats:
            if entropy:  # one pass of the head gives all of them
                stats |= {column: FullEntropy() for column, kind in plain.items() if kind == "entropy"}
            mask = micro.token("mask")
            names = dict.fromkeys(n for s in stats.values() for n in s.needs)
            columns = {n: tensor_of(np.array(micro.token(n)[mask], np.float32)).to(ids.device) for n in names}
            if picked is not None:
                columns = {n: column[picked] for n, column in columns.items()}
            models = {"policy": self.policy, **self.anchors}
            rows = self._rows(model, micro, tuple(stats.values()))
            made_of = decoder.statistics(*inputs, tuple(stats.values()), models, columns, both[0], rows)
            made |= dict(zip(stats, made_of[1:], strict=True))
            made |= {column: made_of[0] for column, kind in plain.items() if kind == "logp"}
        elif plain:
            head = decoder.head.scored_at(inputs[1], where)
            logp, spread = head_columns(both[0], head, ids[where], entropy)
            made |= {column: spread if kind == "entropy" else logp for column, kind in plain.items()}
        return made, found

    def _rows(self, model: str, micro: Batch, stats: Sequence[VocabStat]) -> dict[str, Inputs]:
        """Where other models of ``stats`` find the tokens, if not in the rows that ``model`` reads."""
        others = dict.fromkeys(m for s in stats for m in s.models if m == "policy" or m in self.anchors)
        here = self.anchors.privileged(model)
        return {m: self.inputs(micro, m) for m in others if here or self.anchors.privileged(m)}


def _routed_experts(micro: Batch) -> NDArray[np.int64]:
    """``[N, layers, k]`` the experts of each token's own position; rows tell at each token of the position before it."""
    column = micro.token("routed_experts").astype(np.int64)
    out = np.concatenate([column[1:], np.full_like(column[:1], -1)])
    out[micro.offsets[1:] - 1] = -1
    if "reposed" in micro.rows:  # another prompt than the engine read
        out[np.repeat(np.asarray(micro.rows["reposed"], np.bool_), micro.lengths)] = -1
    return out


def _tokens_of(batch: Batch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index in the batch of each token of the micro-batch ``rows``."""
    lengths = batch.lengths[rows]
    ends = np.cumsum(lengths)
    return np.repeat(batch.offsets[rows] - ends + lengths, lengths) + np.arange(int(ends[-1]))
