"""ADHint's weights and Guide-GRPO's filled groups, by hand-computed numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from test_learn_forced import TASK, hinted, outcome
from tiny_runs import only_rl

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.sample import STREAMS
from assay.core.score import ROW_WEIGHT, Fault, Score
from assay.core.task import Message
from assay.guide import AdHint, Compose, DifficultyWeights, PlainFailures
from assay.objective import Nll, Token, grpo
from assay.objective.reducers import Local
from assay.testing import check_term, graded_group
from assay.train import HintEntropy
from assay.train.preflight import check_run

FAULT = Score(components={}, fault=Fault.VERIFIER)


def posed(group: Group, tag: str, of: slice = slice(None)) -> Group:
    """The group, of which some rollouts were posed with a hint."""
    asked = (Message("user", "abc"),)
    chosen = range(len(group.rollouts))[of]
    rollouts = tuple(
        replace(r, context=replace(r.context, tag=tag, score_messages=asked if tag == "hint" else None)) if i in chosen else r
        for i, r in enumerate(group.rollouts)
    )
    return replace(group, rollouts=rollouts)


# ---- DifficultyWeights ------------------------------------------------------------------------------------------------------


def test_plain_successes_weigh_by_difficulty_and_hinted_failures_by_ease() -> None:
    """Four plain rollouts of which one is right, four hinted of which three are: d = 1 - 4 / 8, with another task 1 - 1 / 4."""
    plain, helped = (
        graded_group(TASK, [1.0, 0.0, 0.0, 0.0], key="k"),
        posed(graded_group(TASK, [1.0, 1.0, 1.0, 0.0], key="k/g"), "prefix"),
    )
    found = DifficultyWeights().weights([plain, helped])
    assert [found[r.id] for r in plain.rollouts] == [1.5, 1.0, 1.0, 1.0]
    assert [found[r.id] for r in helped.rollouts] == [1.0, 1.0, 1.0, 1.5]
    hard = replace(helped, scores=graded_group(TASK, [0.0, 1.0, 0.0, 0.0]).scores)
    found = DifficultyWeights(strength=2.0).weights([plain, hard])
    assert [found[r.id] for r in plain.rollouts] == [2.5, 1.0, 1.0, 1.0]  # 1 + 2 * 3/4
    assert [found[r.id] for r in hard.rollouts] == [1.5, 1.0, 1.5, 1.5]  # 1 + 2 * 1/4


def test_the_loss_of_a_row_is_multiplied_and_nothing_else_changes() -> None:
    plain, helped = graded_group(TASK, [1.0, 0.0], key="k"), posed(graded_group(TASK, [1.0, 0.0], key="k/g"), "prefix")
    even, weighed = (c.compose([plain, helped], None, 0) for c in (Compose(), DifficultyWeights()))
    assert even is not None and weighed is not None
    assert weighed.rollout(ROW_WEIGHT).tolist() == [1.5, 1.0, 1.0, 1.5]
    factors = np.repeat(weighed.per_row(ROW_WEIGHT), weighed.lengths)
    assert outcome(weighed, grpo(kl=0.0))[1].tolist() == pytest.approx((outcome(even, grpo(kl=0.0))[1] * factors).tolist())


def test_tasks_without_hints_and_faults_weigh_one() -> None:
    plain = graded_group(TASK, [1.0, 0.0])
    assert DifficultyWeights().weights([plain]) == {}
    batch = DifficultyWeights().compose([plain], None, 0)
    assert batch is not None and batch.rollout(ROW_WEIGHT).tolist() == [1.0, 1.0]
    found = DifficultyWeights().weights(
        [graded_group(TASK, [1.0, FAULT], key="k"), posed(graded_group(TASK, [0.0], key="g"), "hint")]
    )
    assert len(found) == 2
    with pytest.raises(ConfigError, match="strength"):
        DifficultyWeights(strength=-1.0)


def test_a_run_is_checked_by_what_packs_its_batch() -> None:
    both = grpo(kl=0.0) + Nll(streams=("expert",), coef=0.1, aggregate=Token())
    run = only_rl(guidance=AdHint(), objective=both, composer=DifficultyWeights(inner=Compose(learn_forced=True)))
    check_run(run)
    for composer, said in (
        (DifficultyWeights(), "expert rollouts alone"),
        (PlainFailures(inner=Compose(replay_share=0.5)), "there is no replay"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_run(only_rl(guidance=AdHint(), objective=both, composer=composer))


# ---- PlainFailures ----------------------------------------------------------------------------------------------------------


def test_plain_failures_take_the_places_of_hinted_ones() -> None:
    """Four failures and four hinted rollouts of which one is right: one right and three plain failures are learned from."""
    group = posed(graded_group(TASK, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]), "hint", slice(4, 8))
    kept = PlainFailures().fill_group(group)
    assert [r.id for r in kept.rollouts] == [group.rollouts[i].id for i in (0, 1, 2, 5)]
    assert list(kept.values) == [0.0, 0.0, 0.0, 1.0]
    batch = PlainFailures().compose([group], None, 0)
    assert batch is not None and len(batch.rollout("id")) == 4


def test_groups_of_one_kind_stay_and_what_cannot_be_replaced_too() -> None:
    plain = graded_group(TASK, [0.0, 1.0])
    assert PlainFailures().fill_group(plain) is plain
    few = posed(graded_group(TASK, [0.0, 0.0, 0.0, FAULT]), "hint", slice(1, 4))
    assert [r.id for r in PlainFailures().fill_group(few).rollouts] == [few.rollouts[i].id for i in (0, 2, 3)]


# ---- HintEntropy ------------------------------------------------------------------------------------------------------------


def forced(*values: float) -> Batch:
    batch = Compose(learn_forced=True).compose([hinted(*values)], None, 0)
    assert batch is not None
    return batch


def with_entropies(batch: Batch, own: float, hint: float) -> Batch:
    expert = np.repeat(batch.rows["stream"] == STREAMS.index("expert"), batch.lengths)
    column = np.where(batch.token("mask"), np.where(expert, hint, own), 0.0).astype(np.float32)
    return batch.with_tokens(TokenColumn("entropy_now", column, "learner"))


def test_hint_tokens_weigh_by_their_distance_from_the_entropy_of_the_continuation() -> None:
    batch = with_entropies(forced(1.0, 0.0), own=0.25, hint=1.0)
    weights = HintEntropy(strength=2.0).factors(batch, ("expert",), Local())
    expert = np.repeat(batch.rows["stream"] == STREAMS.index("expert"), batch.lengths) & batch.token("mask")
    assert weights[expert] == pytest.approx([math.exp(-1.5)] * 4) and set(weights[~expert]) == {1.0}
    equal = with_entropies(forced(1.0, 0.0), own=0.25, hint=0.25)
    assert HintEntropy().factors(equal, ("expert",), Local()).tolist() == [1.0] * len(weights)


def test_it_keeps_the_laws_of_a_term() -> None:
    check_term(Nll(weights=(HintEntropy(),), aggregate=Token()))
    with pytest.raises(ConfigError, match="strength"):
        HintEntropy(strength=-0.5)
