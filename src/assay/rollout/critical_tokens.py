"""Rollouts that are continued from one of their most uncertain tokens (CURE)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from assay.core.errors import ConfigError
from assay.core.protocols import SamplerParts, Tokenizer
from assay.core.rollout import ASIDE, Call, Rollout
from assay.core.seeds import generator
from assay.core.task import Context
from assay.rollout.player import Player
from assay.rollout.spec import PlayerSpec

__all__ = ["CriticalTokenSampler", "CriticalTokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalTokens:
    """Settings of a sampler that plays some rollouts of a context whole, and continues each from one of its uncertain tokens.

    Of a group's ``k`` rollouts ``n1 = ceil(k / (1 + n2))`` are played whole. In each, the ``top`` tokens of highest entropy
    ``H_t = -sum_v p_t(v) log p_t(v)`` are candidates, and one is drawn evenly; ``n2`` continuations share what stands before it,
    token by token, and sample on from there. All ``n1 (1 + n2)`` have one group and one baseline. What is shared carries loss in
    the rollout that sampled it, and none in a continuation. A rollout without a candidate is played anew instead.

    Source: CURE (arXiv 2508.11016): 4 and 3, of 20 tokens, in its first stage; its second is a stage without this.

    Attributes:
        play: how single rollouts are played.
        continuations: ``n2``, of each.
        top: candidates among a rollout's tokens. Never its first token, one that ends answers, or one of too few characters.
        characters: least number of visible characters of a candidate; 1 for tokenizers whose tokens are characters.

    Raises:
        ConfigError: a number out of range.

    Entropies are the engine's column ``entropy``; where it has none, ``-logp`` of the sampled token estimates them.

    >>> CriticalTokens().whole(16), CriticalTokens().whole(8), CriticalTokens().whole(6)
    (4, 2, 2)
    """

    play: PlayerSpec = field(default_factory=PlayerSpec)
    continuations: int = 3
    top: int = 20
    characters: int = 2

    def __post_init__(self) -> None:
        if self.continuations < 0 or self.top < 1 or self.characters < 1:
            raise ConfigError(
                f"CriticalTokens(continuations={self.continuations}, top={self.top}, characters={self.characters}): use 0 or "
                "more continuations, and at least 1 of the others"
            )

    @property
    def max_turns(self) -> int | None:
        """Those of single rollouts."""
        return self.play.max_turns

    @property
    def player(self) -> PlayerSpec:
        """Single rollouts, without continuations."""
        return self.play

    def build(self, parts: SamplerParts) -> CriticalTokenSampler:
        """The sampler."""
        return CriticalTokenSampler(self, self.play.build(parts), parts.tokenizer, parts.seed)

    def whole(self, k: int) -> int:
        """How many of ``k`` rollouts are played whole."""
        return -(-k // (1 + self.continuations))


@dataclass(frozen=True, slots=True, eq=False)
class CriticalTokenSampler:
    """Plays contexts to rollouts, some of which continue others; implements `assay.core.protocols.Sampler`.

    Attributes:
        spec: how many, from where.
        player: plays.
        tokenizer: tells which tokens show something.
        seed: of the places; each is a pure function of seed and the rollout's id.
    """

    spec: CriticalTokens
    player: Player
    tokenizer: Tokenizer
    seed: int

    async def collect(self, contexts: Sequence[Context], n: int) -> list[Rollout]:
        """``n`` rollouts of each context, as `Player.collect`, the whole ones first; raises what that raises."""
        whole = self.spec.whole(n)
        played = await self.player.collect(contexts, whole)
        firsts = [played[at * whole : (at + 1) * whole] for at in range(len(contexts))]
        grown = await asyncio.gather(*(self._grow(found, n) for found in firsts))
        return [rollout for rollouts in grown for rollout in rollouts]

    async def _grow(self, whole: list[Rollout], n: int) -> list[Rollout]:
        """A context's rollouts: those played whole, then their continuations in turn."""
        places = [self._place(rollout) for rollout in whole]
        numbers = range(len(whole), n)
        return [*whole, *await asyncio.gather(*(self._continue_at(whole, places, number) for number in numbers))]

    async def _continue_at(self, whole: Sequence[Rollout], places: Sequence[tuple[int, int] | None], number: int) -> Rollout:
        origin, place = whole[number % len(whole)], places[number % len(whole)]
        if place is None:
            (rollout,) = await self.player.collect([origin.context], 1, first=number)
            return rollout
        return await self.player.branch(origin, place[0], number, token=place[1])

    def _place(self, rollout: Rollout) -> tuple[int, int] | None:
        """(call, token) to continue from; None where no token may be one."""
        found = [
            (value, call.id, at)
            for call in rollout.calls
            if call.role != ASIDE
            for at, value in enumerate(_entropies(call))
            if (call.id, at) != (0, 0) and self._shows(int(call.completion.ids[at]))
        ]
        # Python's sort is stable: of equally uncertain tokens the first ones are candidates, whatever the machine.
        best = sorted(found, key=lambda candidate: -candidate[0])[: self.spec.top]
        if not best:
            return None
        which = int(generator("critical-tokens", self.seed, rollout.id, 0).integers(len(best)))
        return best[which][1:]

    def _shows(self, token: int) -> bool:
        """Whether a token stands for enough visible characters, and ends no answer."""
        if token in self.player.sampling.stop_ids:
            return False
        return len("".join(self.tokenizer.decode([token]).split())) >= self.spec.characters


def _entropies(call: Call) -> Sequence[float]:
    """Of a call's tokens, in nats."""
    told = call.completion.columns.get("entropy")
    return np.asarray(-call.completion.logp_engine if told is None else told.values, np.float64).tolist()
