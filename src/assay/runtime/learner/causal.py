"""A causal language model as a learner reads it: packed rows in, hidden states, log-probabilities or statistics out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay.core.errors import AssayError, ConfigError, UnknownNameError
from assay.core.vocab import VocabStat
from assay.runtime.learner.lm_head import LmHead, StatisticInputs, head_columns, head_statistics
from assay.runtime.learner.packing import Packing, pack_offsets
from assay.runtime.settings import DecoderShape, HubShape

if TYPE_CHECKING:
    from assay.runtime.compiled.activation_cache import ActivationCache
    from assay.runtime.learner.routing_replay import RoutingReplay

__all__ = ["Causal", "copy_in"]

T = TypeVar("T")


class Causal(nn.Module, ABC):
    """Base of the decoders that train: assay's own, and those of transformers."""

    @property
    @abstractmethod
    def shape(self) -> DecoderShape | HubShape:
        """Sizes."""

    @property
    def note(self) -> str:
        """Why rows are not concatenated; empty where they are."""
        return ""

    @property
    def ragged(self) -> bool:
        """Whether 16-bit attention takes rows as they are (`assay.runtime.kernels.ragged_attention`)."""
        return False

    @property
    def shares(self) -> bool:
        """Whether what rows of a pass begin with is computed once."""
        return False

    @property
    def follows(self) -> bool:
        """Whether its passes can take over what a sampler has computed (`follow`)."""
        return False

    @property
    def recalled(self) -> int:
        """Tokens of the last pass with a gradient whose states were taken over, those that rows share counted once."""
        return 0

    def follow(self, cache: ActivationCache | None) -> None:
        """Takes states from this cache from now on, where they are there and the weights are the same; None: from none."""

    @property
    def replay(self) -> RoutingReplay | None:
        """Says to the routers of a mixture of experts what to choose; None where there are none."""
        return None

    @property
    @abstractmethod
    def head(self) -> LmHead:
        """What gives logits."""

    @abstractmethod
    def hidden_states(self, ids: Tensor, packing: Packing, wanted: Tensor | None = None) -> Tensor:
        """Hidden states after the final norm.

        Args:
            ids: ``[N]`` int64, rows behind one another.
            packing: where the rows lie.
            wanted: ``[M]`` int64 tokens to return, without repeats; all when None.

        Returns:
            ``[N, hidden]`` or ``[M, hidden]``.
        """

    @property
    def logits_only(self) -> frozenset[str]:
        """Names of the weights that make logits and no states: of a head of its own."""
        head = {id(part) for part in (self.head.weight, self.head.bias)}
        states = {id(self.embedding)}
        return frozenset(n for n, p in self.weights().items() if id(p) in head - states)

    @property
    @abstractmethod
    def embedding(self) -> Tensor:
        """``[V, hidden]`` what ids are looked up in."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.parameters()).device

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """What learns, under Hugging Face names: all weights, or an adapter's."""
        return dict(self.named_parameters())

    def weights(self) -> dict[str, Tensor]:
        """All weights, under Hugging Face names; of an anchor that shares the policy's base its adapter's."""
        return dict(self.named_parameters())

    @abstractmethod
    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Copies weights in, those of `trained`.

        Raises:
            ConfigError: a name is missing or unknown, or a shape differs; names the first tensor.
        """

    def within(self, work: Callable[..., T], *given: Any) -> T:
        """What ``work`` gives, computed while the head's weights are at hand: of a decoder that lies in parts, whole."""
        return work(*given)

    def shard(self, name: str, part: Tensor) -> Tensor:
        """A part of a weight, or of what lies as that does, as a tensor that knows the other parts."""
        return part

    def whole(self, name: str, part: Tensor) -> Tensor:
        """The whole of a weight, or of what lies as that does, of which ``part`` is at hand: the same, but on several ranks."""
        return part

    def own(self, name: str, whole: Tensor) -> Tensor:
        """What of a whole tensor is at hand here: all of it, but on several ranks."""
        return whole

    def logits(self, ids: Tensor, offsets: NDArray[np.int64]) -> Tensor:
        """``[N, vocab]`` logits of the token behind each; for inspection: training uses `columns`, which never holds them all."""
        return self.head.logits(self.hidden_states(ids, pack_offsets(offsets)))

    def columns(self, ids: Tensor, packing: Packing, where: Tensor, entropy: bool = False) -> tuple[Tensor, Tensor]:
        """Log-probabilities (and entropies) of some tokens given those before them in their rows.

        Args:
            ids: ``[N]`` int64.
            packing: where the rows lie.
            where: ``[M]`` int64 tokens, none of them the first of its row, without repeats.
            entropy: also the entropy of the distribution that each was drawn from.

        Returns:
            ``[M]`` log-probabilities, and ``[M]`` entropies (``[0]`` when not asked), in nats, at the packing's temperatures
            and within its supports.
        """
        hidden = self.hidden_states(ids, packing, where - 1)
        return head_columns(hidden, self.head.scored_at(packing, where), ids[where], entropy)

    def statistics(
        self,
        ids: Tensor,
        packing: Packing,
        where: Tensor,
        stats: Sequence[VocabStat],
        models: Mapping[str, Causal],
        columns: Mapping[str, Tensor],
        hidden: Tensor | None = None,
        rows: Mapping[str, tuple[Tensor, Packing, Tensor]] | None = None,
    ) -> tuple[Tensor, ...]:
        """Log-probabilities of some tokens, and statistics over the vocabulary at their places, with the gradient of both.

        Args:
            ids, packing, where: as in `columns`.
            stats: what to compute.
            models: decoders by the names in the statistics' ``models``, of the same vocabulary; no gradient goes there.
            columns: ``[M]`` values at those tokens by the names in the statistics' ``needs``.
            hidden: ``[M, hidden]`` states before the tokens ``where``, where they are known already.
            rows: ids, packing and places of the same tokens for models that read them in other rows.

        Returns:
            ``[M]`` log-probabilities, then ``[M]`` for each of ``stats``.

        Raises:
            UnknownNameError: a statistic reads a model that is not there.
            ConfigError: another model's vocabulary is of another size.
        """
        hidden = self.hidden_states(ids, packing, where - 1) if hidden is None else hidden
        beside: dict[str, tuple[Tensor, LmHead]] = {}
        own = (ids, packing, where)
        with torch.no_grad():
            for name in dict.fromkeys(m for s in stats for m in s.models):
                other = _known_model(models, name)
                if len(other.head) != len(self.head):
                    raise ConfigError(
                        f"the model {name!r} has a vocabulary of {len(other.head)}, this one of {len(self.head)}: a statistic of "
                        "both distributions needs one vocabulary"
                    )
                others, layout, at = (rows or {}).get(name, own)
                beside[name] = other.hidden_states(others, layout, at - 1), other.head.scored_at(packing, where)
        read = {name: columns[name].to(hidden.dtype) for name in dict.fromkeys(n for s in stats for n in s.needs)}
        return head_statistics(hidden, self.head.scored_at(packing, where), ids[where], stats, StatisticInputs(beside, read))


@torch.no_grad()
def copy_in(own: Mapping[str, Tensor], given: Mapping[str, Tensor], whose: str, error: type[AssayError]) -> None:
    """Copies ``given`` into the tensors ``own``; ``error`` names the first that is missing, unknown or of another shape."""
    for name in sorted(own.keys() | given.keys()):
        have, want = given.get(name), own.get(name)
        if have is None or want is None or have.shape != want.shape:
            found = "missing" if have is None else f"of shape {tuple(have.shape)}"
            expected = "no such tensor" if want is None else f"shape {tuple(want.shape)}"
            raise error(f"weights do not fit {whose}: {name} is {found}, the shape asks for {expected}")
        want.copy_(have)


def _known_model(models: Mapping[str, Causal], name: str) -> Causal:
    if name not in models:
        raise UnknownNameError("model", name, models)
    return models[name]
