"""Advantages of turns among those of the same tag (RLVMR)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from credit_batches import after, around, chains, flat, near, per_attempt, wide

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.objective import Center, Scale, TagAdvantage
from assay.objective.credit.base import Credit
from assay.testing.objective import check_objective, check_term

__all__ = ["wide"]


def turns(rewards: list[float], meta: list[list[float]], tags: list[list[float]], groups: list[int] | None = None) -> Batch:
    """A token for each turn."""
    columns = {"call": [list(range(len(m))) for m in meta], "meta_reward": meta, "meta_tag": tags}
    return chains(rewards, [[1] * len(m) for m in meta], groups, columns=columns)


def test_a_turn_is_compared_with_the_turns_of_its_tag_in_its_group() -> None:
    batch = turns([1.0, 0.0], [[1, 0, 1], [0, 1, 0]], [[1, 2, 2], [1, 2, 0]])
    found = per_attempt(batch, after(batch, Center(), Scale(eps=0.0), TagAdvantage(eps=0.0)))
    episode = 1 / math.sqrt(2)  # GRPO's, with the sample's standard deviation
    explore = math.sqrt(2 / 9)  # of 0, 1, 1
    near(found[0], [0.5 * episode + 0.5, 0.5 * episode - 0.5 * (2 / 3) / explore, 0.5 * episode + 0.5 * (1 / 3) / explore], 1e-12)
    near(found[1], [-0.5 * episode - 0.5, -0.5 * episode + 0.5 * (1 / 3) / explore, -0.5 * episode], 1e-12)


def test_a_tag_whose_turns_earn_the_same_adds_nothing() -> None:
    batch = turns([1.0, 0.0], [[0.1, 0.1], [0.1]], [[2, 2], [2]])
    near(flat(batch, Center(), TagAdvantage()), 0.5 * np.asarray(flat(batch, Center())), 0)


def test_alpha_1_is_the_episode_alone() -> None:
    batch = turns([1.0, 0.0], [[1, 0], [0]], [[1, 2], [1]])
    assert flat(batch, Center(), TagAdvantage(alpha=1.0)) == flat(batch, Center())


def test_the_released_code_adds_and_keeps_the_only_turn_of_a_tag() -> None:
    batch = turns([1.0, 0.0], [[1.0], [1.0]], [[1], [3]])
    assert flat(batch, Center(), TagAdvantage(weight=2.0)) == [0.5, -0.5]
    assert flat(batch, Center(), TagAdvantage(weight=2.0, keep_single=True)) == [2.5, 1.5]


def test_groups_do_not_mix() -> None:
    batch = turns([1.0, 0.0], [[1.0], [0.0]], [[1], [1]], [0, 1])
    near(flat(batch, TagAdvantage()), [0.5, 0.0], 0)
    assert after(batch, TagAdvantage()).metrics["credit/tagged_turns"] == 1.0


def test_no_token_is_no_turn() -> None:
    nothing = turns([1.0, 0.0], [[], [1.0]], [[], [1]])
    ones = np.ones(2)
    none_here = Credit(
        batch=nothing.micro([]), metric=0 * ones, reward=0 * ones, advantage=0 * ones, keep=ones, counted=np.ones(2, bool)
    )
    term = TagAdvantage()
    assert term.apply(none_here, term.local(none_here), {}).metrics["credit/tagged_turns"] == 0


@pytest.mark.parametrize("term", [TagAdvantage(), TagAdvantage(weight=0.5, keep_single=True)])
def test_laws(term: TagAdvantage, wide: None, seeds: range) -> None:
    check_term(term, seeds)


def test_laws_of_a_method_with_it(wide: None, seeds: range) -> None:
    check_objective(around(Center(), Scale(), TagAdvantage(), brings=("meta_reward", "meta_tag")), seeds)


@pytest.mark.parametrize("given", [{"alpha": 1.5}, {"alpha": -0.1}, {"weight": 0.0}, {"eps": -1.0}])
def test_settings_that_cannot_be_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"TagAdvantage\(alpha="):
        TagAdvantage(**given)  # type: ignore[arg-type]
