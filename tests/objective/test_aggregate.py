"""Token losses to one loss: weights, denominators, streams."""

import numpy as np
import pytest
from credit_batches import chains
from objective_batches import run, slopes, spread, tiny

from assay.core.batch import Counts, pack_rows
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.sample import Sample
from assay.objective import (
    Aggregation,
    Center,
    Constant,
    DropZeroVariance,
    Nll,
    Objective,
    PolicyGradient,
    Prompt,
    Ratio,
    SeqMean,
    SeqSum,
    Token,
    TurnMean,
    m_grpo,
)
from assay.objective.reducers import Reducer
from assay.testing.objective import evaluate, over_ranks, shard


def nll(aggregate: Aggregation, **kwargs: object) -> Objective:
    return Objective(terms=(Nll(**kwargs),), aggregate=aggregate)


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [(Token(), 0.8333), (SeqMean(), 1.0), (Prompt(), 1.125), (Constant(length=8), 0.4167), (SeqSum(), 10 / 3)],
)
def test_two_samples_of_one_prompt_and_one_of_another(aggregate: Aggregation, expected: float) -> None:
    batch = tiny([0, 0, 0], [0, 0, 1], [2, 6, 4])
    losses = [1, 1] + [0] * 6 + [2] * 4
    assert run(nll(aggregate), batch, [-x for x in losses]).loss == pytest.approx(expected, abs=5e-5)


def test_equal_lengths_and_one_sample_per_prompt_coincide() -> None:
    batch = tiny([0, 0, 0], [0, 1, 2], [4, 4, 4])
    losses = -np.arange(12.0)
    one, two, three = (run(nll(a), batch, losses).loss for a in (Token(), SeqMean(), Prompt()))
    assert one == pytest.approx(two) == pytest.approx(three)
    assert run(nll(Constant(length=7)), batch, losses).loss == pytest.approx(run(nll(SeqSum()), batch, losses).loss / 7)


def test_drawn_counts_what_filters_dropped() -> None:
    batch = tiny([1, 0, 1, 1], [0, 0, 1, 1], [1, 2, 3, 4])
    policy = PolicyGradient(ratio=Ratio("none"), trust=None)

    def objective(aggregate: Aggregation) -> Objective:
        return Objective(credit=(DropZeroVariance(), Center()), policy=policy, aggregate=aggregate, terms=(Nll(coef=0.1),))

    def dropped(aggregate: Aggregation) -> tuple[float, float]:
        g = slopes(objective(aggregate), batch)
        assert (g[3:] == 0).all()
        return float(g[0]), float(g[1])

    # advantages are +-.5, plus .1 from the likelihood
    assert dropped(SeqSum()) == pytest.approx((-0.6 / 2, 0.4 / 2))
    assert dropped(SeqSum(denominator="drawn")) == pytest.approx((-0.6 / 4, 0.4 / 4))
    assert dropped(Token()) == pytest.approx((-0.6 / 3, 0.4 / 3))
    assert dropped(Token(denominator="drawn")) == pytest.approx((-0.6 / 10, 0.4 / 10))
    assert dropped(Prompt()) == pytest.approx((-0.6 / 3, 0.4 / 3))
    assert dropped(Prompt(denominator="drawn")) == pytest.approx((-0.6 / 6, 0.4 / 6))


def test_drawn_counts_what_the_composer_dropped() -> None:
    from dataclasses import replace

    batch = replace(tiny([0, 0], [0, 1], [2, 2]), drawn=Counts(tokens=8, rows=5, rollouts=5, prompts=3))
    for aggregate, expected in (
        (Token(denominator="drawn"), 4 / 8),
        (SeqMean(denominator="drawn"), 2 / 5),
        (Prompt(denominator="drawn"), 2 / 3),
        (Token(), 1.0),
    ):
        assert run(nll(aggregate), batch, -1.0).loss == pytest.approx(expected)


def test_a_term_counts_its_own_stream() -> None:
    batch = tiny([1, 0, 1], lengths=[2, 2, 3], streams=["on_policy", "on_policy", "expert"])
    policy = PolicyGradient(ratio=Ratio("none"), trust=None)
    objective = Objective(credit=(Center(),), policy=policy, aggregate=Token(), terms=(Nll(streams=("expert",)),))
    np.testing.assert_allclose(slopes(objective, batch), [-0.125, -0.125, 0.125, 0.125] + [-1 / 3] * 3)
    outcome = run(objective, batch, -2.0)
    assert outcome.metrics["loss/nll"] == pytest.approx(2.0)


def test_a_term_may_have_its_own_aggregation() -> None:
    batch = tiny([0, 0], lengths=[1, 3])
    objective = Objective(terms=(Nll(), Nll(label="other", aggregate=SeqMean())), aggregate=Token())
    np.testing.assert_allclose(slopes(objective, batch), [-0.25 - 0.5] + [-0.25 - 1 / 6] * 3)


def test_a_turn_weighs_as_another_however_long_it_is() -> None:
    """Turns of 2 and 4 tokens beside a rollout of one turn of T=5: weights 1/8, 1/16 and 1/(2T), and those of `SeqMean` where
    each rollout has one turn."""
    calls = [[0, 0, 7, 1, 1, 1, 1], [0] * 5]
    batch = chains([1, 0], [[1, 1, 0, 1, 1, 1, 1], [1] * 5], columns={"call": calls})
    objective = nll(TurnMean())
    expected = [1 / 8] * 2 + [1 / 16] * 4 + [1 / 10] * 5
    found = run(objective, batch, -1.0).gradients["logp_new"]
    np.testing.assert_allclose(-found[batch.token("mask")], expected, rtol=1e-12)
    assert m_grpo().aggregate == TurnMean() and m_grpo(kl=0.0).terms == ()
    short = chains([1, 0], [[1, 1], [1] * 5], columns={"call": [[0, 0], [3] * 5]})
    one, other = (run(nll(a), short, -1.0).gradients["logp_new"] for a in (TurnMean(), SeqMean()))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(DataError, match=r"TurnMean reads the token column .call.*SeqMean"):
        run(objective, tiny([1, 0]), -1.0)


def test_everything_dropped_is_a_loss_of_zero() -> None:
    batch = tiny([1, 1])
    objective = Objective(
        credit=(DropZeroVariance(), Center()), policy=PolicyGradient(ratio=Ratio("none"), trust=None), terms=(Nll(),)
    )
    outcome = run(objective, batch)
    assert outcome.loss == 0
    assert not outcome.gradients["logp_new"].any()
    assert outcome.metrics == {}


def test_a_part_of_a_batch_cannot_be_prepared() -> None:
    batch = tiny([1, 0])
    with pytest.raises(DataError, match="whole optimiser batch"):
        nll(Token()).compile().prepare(batch.micro([0]))
    nll(Token()).compile().prepare(batch.mini([0]))


def test_bad_settings_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'drawn'"):
        Token(denominator="draw")
    with pytest.raises(ConfigError, match="generation budget"):
        Constant(length=0)
    with pytest.raises(PlanError, match="generation budget"):
        nll(Constant()).plan()
    with pytest.raises(TypeError, match="abstract"):
        Aggregation()  # type: ignore[abstract]


def test_a_rollout_s_turns_are_counted_over_all_its_rows() -> None:
    """Turns of 2 and 4 tokens in a row each, on one rank; on another one a rollout of one turn of 5."""
    table = {
        "group": np.arange(2),
        "components/correct": np.array([1.0, 0.0]),
        "valid": np.ones(2, bool),
        "length": np.array([6, 5]),
        "truncated": np.zeros(2, bool),
    }
    rows = [(owner, row_of(owner, call, length)) for owner, call, length in ((0, 0, 2), (0, 1, 4), (1, 0, 5))]
    batch, objective = pack_rows(rows, table), nll(TurnMean())
    ranks = [shard(batch, [0]), shard(batch, [1])]

    def run_rank(rank: int, reducer: Reducer) -> np.ndarray:
        part = ranks[rank]
        found = evaluate(objective.compile(reducer=reducer), part, {"logp_new": spread(part, -1.0)}).gradients["logp_new"]
        return found[part.token("mask")]

    first, second = over_ranks(run_rank, 2)
    np.testing.assert_allclose(-first, [1 / 8] * 2 + [1 / 16] * 4, rtol=1e-12)
    np.testing.assert_allclose(-second, [1 / 10] * 5, rtol=1e-12)


def row_of(owner: int, call: int, length: int) -> Sample:
    mask = np.arange(length + 1) > 0
    columns = {"call": TokenColumn("call", np.full(length + 1, call), "test")}
    return Sample(rollout=str(owner), ids=np.arange(length + 1, dtype=np.int32), mask=mask, columns=columns)
