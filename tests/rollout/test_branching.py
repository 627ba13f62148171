"""Rollouts that share their beginnings: what is shared is played again, and learned from once."""

import asyncio
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scripted import EOS, Echo, Letters, Reply, Scripted, Worlds, posed

from assay.core import Completion, Rollout, Sampling, Stop, TokenColumn, derive, rollout_from_wire, rollout_to_wire, samples
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Request, SamplerParts
from assay.rollout import Branching, Player, PlayerSpec


@dataclass
class Unsure(Scripted):
    """Tells entropies by the number of the call, as shares of log 128; what it says differs from seed to seed."""

    shares: tuple[float, ...] = (0.2, 0.6, 0.6, 0.1)

    def _answer(self, request: Request, reply: Reply) -> Completion:
        made = super()._answer(request, reply)
        share = self.shares[int(request.id.rpartition("#")[2])]
        values = np.full(len(made.ids), share * math.log(128), np.float32)
        return replace(made, columns={"entropy": TokenColumn("entropy", values, "engine", 3)})


def says(request: Request) -> str:
    turn = int(request.id.rpartition("#")[2])
    return "stop" if turn == 3 else f"{request.seed % 9973}{turn}"


def parts(engine: Scripted, source: Worlds | None = None) -> SamplerParts:
    return SamplerParts(
        engine=engine,
        tokenizer=Letters(),
        source=source or Worlds(Echo),
        sampling=Sampling(max_new_tokens=8),
        seed=5,
        max_turns=8,
        deadline=30.0,
    )


def grown(n: int, engine: Scripted | None = None, source: Worlds | None = None, **changed: Any) -> list[Rollout]:
    return asyncio.run(Branching(**changed).build(parts(engine or Unsure(says), source)).collect([posed("a"), posed("b")], n))


def test_the_numbers_of_the_sheet() -> None:
    spec = Branching()
    np.testing.assert_allclose([spec.chance(0.4, streak) for streak in (0, 1, 2)], [0.58, 0.464, 0.348], atol=1e-12)
    assert spec.chance(0.4, 9) == 0.0
    assert (spec.whole(8, 0.3, 0.3), spec.whole(8, 9.0, 0.0), spec.whole(8, -99.0, 0.0)) == (4, 8, 1)
    with pytest.raises(ConfigError, match=r"Branching.gamma=1.5"):
        Branching(gamma=1.5)


def test_rollouts_branch_at_unsure_turns_and_share_what_comes_before() -> None:
    rollouts = grown(4)
    assert [r.id for r in rollouts] == [f"{key}/{i}" for key in "ab" for i in range(4)]
    assert [r.seed for r in rollouts] == [derive("rollout", 5, key, i) for key in "ab" for i in range(4)]
    first, second, third, fourth = rollouts[:4]  # m = 4 sigmoid(.2 - .433) = 1.77
    assert [sum(c.shared for c in r.calls) for r in (first, second, third, fourth)] == [0, 0, 1, 1]
    for branch, origin in ((third, first), (fourth, second)):
        assert branch.calls[0].completion is origin.calls[0].completion
        assert branch.calls[1].prefix.tolist() == origin.calls[1].prefix.tolist()
        assert branch.calls[1].completion.ids.tolist() != origin.calls[1].completion.ids.tolist()
        assert (branch.stop, [c.parent for c in branch.calls]) == (Stop.DONE, [None, 0, 1, 2])


def test_each_token_is_learned_from_once() -> None:
    rollouts = grown(4)[:4]
    learned = sum(int(row.mask.sum()) for r in rollouts for row in samples(r))
    assert learned == sum(len(c.completion.ids) for r in rollouts for c in r.calls if not c.shared)
    branch = rollouts[2]
    (row,) = samples(branch)
    assert row.ids[row.mask].tolist() == [i for c in branch.calls[1:] for i in c.completion.ids.tolist()]
    assert branch.length == sum(len(c.completion.ids) for c in branch.calls)
    back = rollout_from_wire(rollout_to_wire(branch))
    assert [c.shared for c in back.calls] == [True, False, False, False]
    assert "shared" not in rollout_to_wire(rollouts[0])["calls"][0]


def test_a_turn_that_is_not_unsure_ends_a_run_of_branches() -> None:
    def forks(*shares: float) -> list[tuple[int, int]]:
        sampler = Branching().build(parts(Unsure(says, shares=shares)))
        (first,) = asyncio.run(sampler.player.collect([posed("a")], 1))
        return [(at, streak) for _, at, streak in sampler._forks(first, 0, 0)]

    assert forks(0.0, 0.9, 0.9, 0.9) == [(1, 1), (2, 2)]  # .68, .544, .408
    assert forks(0.0, 0.9, 0.0, 0.9) == [(1, 1), (3, 1)]  # .68, .4, .68


def test_where_nobody_is_unsure_all_are_played_from_the_start() -> None:
    sure = grown(3, Unsure(says, shares=(0.5, 0.5, 0.4, 0.3)))
    assert not any(c.shared for r in sure for c in r.calls)
    one_call = grown(3, Unsure(lambda r: str(r.seed % 10)), Worlds())
    assert [len(r.calls) for r in one_call] == [1] * 6
    plain = asyncio.run(
        PlayerSpec().build(parts(Unsure(lambda r: str(r.seed % 10)), Worlds())).collect([posed("a"), posed("b")], 3)
    )
    assert [r.text for r in one_call] == [r.text for r in plain]


def test_an_engine_without_entropies_is_estimated_from() -> None:
    assert any(c.shared for r in grown(6, Scripted(says), alpha=1.0) for c in r.calls)


def test_no_rollouts_asked_for() -> None:
    with pytest.raises(ConfigError, match="n=0"):
        grown(0)


def test_max_turns_are_those_of_single_rollouts() -> None:
    spec = Branching(play=PlayerSpec(max_turns=2))
    assert (spec.max_turns, spec.player.max_turns, PlayerSpec().max_turns) == (2, 2, None)
    with pytest.raises(ConfigError, match=r"PlayerSpec.max_turns=0"):
        PlayerSpec(max_turns=0)


# ---- a branch within an answer ------------------------------------------------------------------------------------------


def test_an_answer_branches_within() -> None:
    engine = Scripted(lambda r: "abcdef"[r.first :] if r.id.startswith("c/0") else "xyz"[r.first - 2 :])
    player = Player(engine=engine, tokenizer=Letters(), source=Worlds(), sampling=Sampling(max_new_tokens=8), seed=5)
    (rollout,) = asyncio.run(player.collect([posed()], 1))
    branch = asyncio.run(player.branch(rollout, 0, 1, token=2))
    assert (branch.id, branch.text, branch.stop) == ("c/1", "abxyz", Stop.DONE)
    assert [(c.text, c.shared) for c in branch.calls] == [("ab", True), ("abxyz", False)]
    (row,) = samples(branch)
    assert row.ids[row.mask].tolist() == [*map(ord, "xyz"), EOS]
    assert engine.requests[-1].first == 2
    for calls, token in ((0, 7), (1, 0), (-1, 0), (0, -1)):
        with pytest.raises(DataError, match="rollout c/0 has calls of \\[7\\] tokens and cannot branch behind"):
            asyncio.run(player.branch(rollout, calls, 1, token=token))
