"""Rollouts that are continued from an uncertain token: how many, from where, and what carries loss."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scripted import EOS, Letters, Scripted, Worlds, posed

from assay.core import Rollout, Sampling, samples
from assay.core.errors import ConfigError
from assay.core.protocols import Request, SamplerParts
from assay.rollout import CriticalTokens
from assay.testing import check_sampler


def says(request: Request) -> str:
    """The entropy of a token is its id here, as `Scripted` has ``-logp``: of "a b0z" the z is the most uncertain one."""
    return "a b0z" if not request.prefix_tokens else f"{request.seed % 997}"


def grown(n: int, reply: Any = says, **changed: Any) -> list[Rollout]:
    parts = SamplerParts(
        engine=Scripted(reply),
        tokenizer=Letters(),
        source=Worlds(),
        sampling=Sampling(max_new_tokens=8),
        seed=5,
        max_turns=8,
        deadline=30.0,
    )
    given: dict[str, Any] = {"characters": 1} | changed
    return asyncio.run(CriticalTokens(**given).build(parts).collect([posed("a"), posed("b")], n))


def ids(rollout: Rollout) -> list[int]:
    return [i for call in rollout.calls for i in call.completion.ids.tolist()]


def test_the_numbers_of_the_sheet() -> None:
    """4 + 4 * 3 = 16 of one group; each continuation has its origin's tokens before the place, one by one."""
    rollouts = grown(16)
    assert [r.id for r in rollouts] == [f"{key}/{i}" for key in "ab" for i in range(16)]
    first = rollouts[:16]
    assert {r.context.group for r in first} == {first[0].context.group}
    shared = [[c for c in r.calls if c.shared] for r in first]
    assert [len(calls) for calls in shared] == [0] * 4 + [1] * 12
    for number in range(4, 16):
        head = shared[number][0].completion.ids.tolist()
        assert 1 <= len(head) <= 4 and head == ids(first[number % 4])[: len(head)]
        assert ids(first[number])[: len(head)] == head and ids(first[number]) != ids(first[number % 4])
    assert len({len(shared[number][0].completion.ids) for number in range(4, 16, 4)}) == 1, "a rollout has one place"


def test_the_most_uncertain_tokens_are_the_candidates() -> None:
    """Of a, blank, b, 0, z and the end only b, 0 and z may be one: not the first, not what shows nothing, not the end."""
    places = {len(c.completion.ids) for r in grown(64) for c in r.calls if c.shared}
    assert places == {2, 3, 4}
    assert {len(c.completion.ids) for r in grown(16, top=1) for c in r.calls if c.shared} == {4}
    assert {len(c.completion.ids) for r in grown(64, top=2) for c in r.calls if c.shared} == {2, 4}


def test_a_rollout_without_a_candidate_is_played_anew() -> None:
    for rollouts in (grown(4, characters=2), grown(4, lambda request: "a")):
        assert not any(c.shared for r in rollouts for c in r.calls) and len({r.id for r in rollouts}) == 8


def test_what_is_shared_carries_loss_once() -> None:
    for rollout in grown(16)[4:16]:
        (row,) = samples(rollout)
        head = next(len(c.completion.ids) for c in rollout.calls if c.shared)
        assert row.ids[row.mask].tolist() == ids(rollout)[head:] and ids(rollout)[-1] == EOS


def test_it_keeps_the_laws_of_samplers() -> None:
    assert check_sampler(CriticalTokens(characters=1)).numbers["shared"] > 0
    wrongs: list[dict[str, Any]] = [{"continuations": -1}, {"top": 0}, {"characters": 0}]
    for wrong in wrongs:
        with pytest.raises(ConfigError, match="CriticalTokens"):
            CriticalTokens(**wrong)
