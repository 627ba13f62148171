"""The weight of rollouts that were sampled with a hint and are learned without it: Guide-GRPO's numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from objective_batches import tiny

from assay.core import Batch
from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.objective import guide_grpo
from assay.objective.loss.guided_shape import GuidedShape, shape_ratio
from assay.objective.reducers import Local
from assay.testing.objective import check_objective, over_ranks

OWN = ("on_policy", "replay")


def batch(ratios: list[float], advantages: list[float], hinted: bool | None) -> Batch:
    """One rollout with these ratios to the sampler; ``hinted`` says whether it was sampled with a hint."""
    now = [float(x) for x in np.log(ratios)]
    columns = {"advantage": advantages, "logp_now": now, "logp_engine": [0.0] * len(ratios)}
    made: Batch = tiny([1.0], lengths=[len(ratios)], columns=columns)
    return made if hinted is None else replace(made, rows={**made.rows, "reposed": np.array([hinted])})


def weights(of: Batch, weight: GuidedShape) -> list[float]:
    return weight.factors(of, OWN, Local())[of.token("mask")].tolist()


def gamma(of: Batch, weight: GuidedShape) -> float:
    stats = weight.local(of)
    return weight.gamma({**stats, **weight.second_pass(of, stats)})


def test_the_shaped_ratio_and_its_slope() -> None:
    assert shape_ratio(np.array([0.5, 1.0, 2.0]), 1.0).tolist() == pytest.approx([0.333, 0.5, 0.667], abs=5e-4)
    step, at = 1e-6, np.array([0.5, 1.0, 2.0])
    slope = (shape_ratio(at * np.exp(step), 1.0) - shape_ratio(at * np.exp(-step), 1.0)) / (2 * step)
    middle = GuidedShape(quantile=0.5)  # gamma is the middle ratio, 1
    assert weights(batch([0.5, 1.0, 2.0], [1.0] * 3, True), middle) == pytest.approx(slope.tolist(), abs=1e-8)


def test_an_empty_hint_at_the_first_step_gives_half_of_the_ratio() -> None:
    same = batch([1.0, 1.0], [1.0, -1.0], True)
    assert gamma(same, GuidedShape()) == pytest.approx(1.0)
    assert shape_ratio(np.array([1.0]), 1.0).tolist() == [0.5]
    assert weights(same, GuidedShape()) == pytest.approx([0.25, 0.25])


@pytest.mark.parametrize("count", [1, 2, 9, 10, 37])
@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.9, 1.0])
def test_gamma_is_the_quantile_of_the_hinted_ratios(count: int, quantile: float) -> None:
    ratios = np.random.default_rng(count).lognormal(size=count)
    found = gamma(batch(ratios.tolist(), [1.0] * count, True), GuidedShape(quantile=quantile))
    assert found == pytest.approx(float(np.quantile(ratios, quantile)))


def test_gamma_has_a_floor() -> None:
    assert gamma(batch([1e-7], [1.0], True), GuidedShape()) == 1e-4
    assert gamma(batch([0.5], [1.0], None), GuidedShape()) == 1e-4  # nothing was hinted


@pytest.mark.parametrize("hinted", [None, False])
def test_rows_without_a_hint_have_the_clipped_ratio(hinted: bool | None) -> None:
    plain = batch([1.1, 1.3, 1.3, 0.7, 0.7], [1.0, 1.0, -1.0, -1.0, 1.0], hinted)
    assert weights(plain, GuidedShape()) == pytest.approx([1.1, 0.0, 1.3, 0.0, 0.7])
    assert GuidedShape().clip_mask(plain)[plain.token("mask")].tolist() == [False, True, True, True, True]
    assert not GuidedShape().clip_mask(batch([3.0], [1.0], True)).any()


def test_it_keeps_the_laws_of_objectives() -> None:
    check_objective(guide_grpo(), range(2))


def test_gamma_is_over_all_ranks() -> None:
    ratios, advantages = [[0.5, 1.0], [2.0, 4.0], [8.0, 1.0]], [1.0] * 2
    parts = [batch(r, advantages, True) for r in ratios]
    whole = gamma(batch([x for r in ratios for x in r], [1.0] * 6, True), GuidedShape())
    weight = GuidedShape()
    found = over_ranks(lambda rank, reducer: weight.factors(parts[rank], OWN, reducer)[parts[rank].token("mask")], 3)
    for r, got in zip(ratios, found, strict=True):
        assert got.tolist() == pytest.approx([whole * x / (x + whole) ** 2 for x in r])


def test_the_method_reads_the_whole_batch_and_the_sampler() -> None:
    plan = guide_grpo().plan()
    assert "logp_engine" in plan.columns and GuidedShape().scope is Scope.BATCH
    with pytest.raises(ConfigError, match="quantile"):
        GuidedShape(quantile=2.0)
