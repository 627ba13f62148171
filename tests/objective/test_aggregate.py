"""Token losses to one loss: weights, denominators, streams."""

import numpy as np
import pytest
from objective_batches import run, slopes, tiny

from assay.core.batch import Counts
from assay.core.errors import ConfigError, DataError, PlanError
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
)


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
