"""Rollouts that branch where the policy is unsure behind a tool's answer (AEPO)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from assay.core.errors import ConfigError
from assay.core.protocols import SamplerParts
from assay.core.rollout import ASIDE, Call, Rollout
from assay.core.task import Context
from assay.rollout.player import Player
from assay.rollout.spec import PlayerSpec

__all__ = ["Branching", "BranchingSampler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branching:
    """Settings of a sampler that branches off its own rollouts (the sampling half of AEPO, arXiv 2510.14545).

    Of a context's ``k`` rollouts the first tells how unsure the policy is of the question, ``H_root``, and behind tools' answers,
    ``H``: ``m = k * sigmoid(beta * (H_root - H))`` are played from the start, the others branch. A rollout branches before a turn
    behind a tool's answer where ``(alpha + gamma * dH) * (1 - l * gamma) > tau``: ``dH`` is how much more unsure the policy is in
    that turn than in the rollout's first, ``l`` how many turns in a row have branched before. Branches branch in their turn;
    rollouts that are left over where nobody branches are played from the start.

    A branch shares the calls before its turn, which carry loss in the rollout that sampled them. Entropies are means over the
    tokens of a turn as shares of ``log(vocabulary)``, from the column ``entropy``, or estimated by ``-logp`` where an engine has
    none. The paper's clip with a kept gradient and its advantage by entropy are the objective's: `assay.objective.aepo`.

    Attributes:
        play: how single rollouts are played.
        alpha, gamma, tau, beta: as above. Their published values are not known here; .5 and .2 are those of its example.

    Raises:
        ConfigError: ``gamma`` outside [0, 1].

    >>> [round(Branching().chance(0.4, streak), 3) for streak in (0, 1, 2)]
    [0.58, 0.464, 0.348]
    """

    play: PlayerSpec = field(default_factory=PlayerSpec)
    alpha: float = 0.5
    gamma: float = 0.2
    tau: float = 0.5
    beta: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.gamma <= 1.0:
            raise ConfigError(f"Branching.gamma={self.gamma}; use a share in [0, 1]")

    @property
    def max_turns(self) -> int | None:
        """Those of single rollouts."""
        return self.play.max_turns

    @property
    def player(self) -> PlayerSpec:
        """Single rollouts, without branches."""
        return self.play

    def build(self, parts: SamplerParts) -> BranchingSampler:
        """The sampler."""
        return BranchingSampler(self, self.play.build(parts), math.log(parts.engine.info().vocabulary))

    def chance(self, rise: float, streak: int) -> float:
        """How much speaks for a branch; ``rise`` in entropy against the first turn, behind ``streak`` turns that branched."""
        return (self.alpha + self.gamma * rise) * (1.0 - min(1.0, max(0.0, self.gamma * streak)))

    def whole(self, k: int, root: float, tools: float) -> int:
        """How many of ``k`` rollouts are played from the start, at least one."""
        return min(k, max(1, round(k / (1.0 + math.exp(-self.beta * (root - tools))))))


@dataclass(frozen=True, slots=True, eq=False)
class BranchingSampler:
    """Plays contexts to rollouts that share beginnings; implements `assay.core.protocols.Sampler`.

    Attributes:
        spec: when to branch.
        player: plays.
        scale: what entropies are divided by, nats.
    """

    spec: Branching
    player: Player
    scale: float

    async def collect(self, contexts: Sequence[Context], n: int) -> list[Rollout]:
        """``n`` rollouts of each context, as `Player.collect`, some of them branches; raises what that raises."""
        firsts = await self.player.collect(contexts, min(n, 1))
        grown = await asyncio.gather(*(self._grow(first, n) for first in firsts))
        return [rollout for rollouts in grown for rollout in rollouts]

    async def _grow(self, first: Rollout, n: int) -> list[Rollout]:
        """A context's rollouts, from its first."""
        turns = [self._entropy(call) for call in first.calls if call.role != ASIDE]
        whole = self.spec.whole(n, turns[0], float(np.mean(turns[1:]))) if len(turns) > 1 else n
        found = [first, *(await self.player.collect([first.context], whole - 1, first=1) if whole > 1 else [])]
        fresh = [(rollout, 0, 0) for rollout in found]  # with its calls that are shared, and how many turns branched before
        while fresh and len(found) < n:
            forks = [fork for rollout, shared, streak in fresh for fork in self._forks(rollout, shared, streak)]
            forks = forks[: n - len(found)]
            grown = [self.player.branch(r, at, len(found) + i) for i, (r, at, _) in enumerate(forks)]
            made = await asyncio.gather(*grown)
            fresh = [(rollout, at, streak) for rollout, (_, at, streak) in zip(made, forks, strict=True)]
            found += made
        if len(found) < n:
            found += await self.player.collect([first.context], n - len(found), first=len(found))
        return found

    def _forks(self, rollout: Rollout, shared: int, streak: int) -> list[tuple[Rollout, int, int]]:
        """Where a rollout branches behind its ``shared`` calls, and how many turns in a row have branched then."""
        turns = [call for call in rollout.calls if call.role != ASIDE]
        found: list[tuple[Rollout, int, int]] = []
        for call in turns[1:]:
            if call.id <= shared or call.shared:
                continue
            if self.spec.chance(self._entropy(call) - self._entropy(turns[0]), streak) > self.spec.tau:
                streak += 1
                found.append((rollout, call.id, streak))
            else:
                streak = 0
        return found

    def _entropy(self, call: Call) -> float:
        """Of a call's tokens, as a share of the largest that there is; 0 where it has none."""
        told = call.completion.columns.get("entropy")
        values = -call.completion.logp_engine if told is None else told.values
        return float(np.mean(values)) / self.scale if len(values) else 0.0
