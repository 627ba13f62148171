"""Several rewards to one advantage: each rule by hand-worked numbers, its laws, and multipliers that stay in bounds."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from credit_batches import after, around, near, wide
from objective_batches import advantages, tiny

from assay.core.errors import ConfigError, DataError, PlanError, UnknownNameError
from assay.core.plan import Scope
from assay.objective import (
    Center,
    ComponentNorm,
    Constrained,
    CreditTerm,
    HypervolumeScale,
    LogTamed,
    Overlong,
    Scalarise,
    Scale,
    ScaleByType,
    VarianceAdaptive,
    methods,
)
from assay.objective.credit.balance import hypervolume
from assay.testing.objective import check_objective, check_term

__all__ = ["wide"]


def two(first: list[float], second: list[float], groups: list[int] | None = None, **more: Any) -> Any:
    return tiny(first, groups, **{"components/format": second}, **more)


# ---- DVAO


def test_dvao_by_hand() -> None:
    made = advantages(two([1, 0, 1, 0], [0.2, 0.2, 0.4, 0.4]), VarianceAdaptive())
    near(made, [2 / 3, -1, 1, -2 / 3], 1e-9)
    weighted = advantages(two([1, 0, 1, 0], [0.2, 0.2, 0.4, 0.4]), VarianceAdaptive(weights=(("correct", 1.0), ("format", 0.0))))
    near(weighted, [1, -1, 1, -1], 1e-9)


def test_dvao_is_never_above_the_sum_over_its_own_deviation_and_its_mean_square_is_at_most_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second = rng.random(6).round(2).tolist(), rng.random(6).round(2).tolist()
        made = advantages(two(first, second), VarianceAdaptive())
        total = np.array(first) + np.array(second)
        whole = (total - total.mean()) / total.std()
        assert (np.abs(made) <= np.abs(whole) + 1e-9).all() and (made**2).mean() <= 1 + 1e-9
    near(advantages(two([0.5] * 4, [0.1] * 4), VarianceAdaptive()), [0] * 4, 0)
    constant = advantages(two([1, 0, 1, 0], [0.3] * 4), VarianceAdaptive())
    near(constant, [1, -1, 1, -1], 1e-9)


# ---- log-tamed


def test_only_what_varies_much_for_its_size_is_tamed() -> None:
    first, second = [3.0, 0.0, 0.1, 0.3], [1.0, 1.1, 0.95, 1.0]
    found = after(two(first, second), LogTamed())
    near(found.reward, np.log1p(first) + np.array(second), 1e-12)
    assert found.metrics["credit/tamed"] == 1.0
    near([math.log1p(3.0)], [1.386], 1e-3)
    near(after(two(first, [1.0] * 4), LogTamed()).reward - np.log1p(first), [1.0] * 4, 1e-12)  # a constant is untouched
    weights = (("correct", 2.0), ("format", 0.5))
    for bar in (LogTamed(weights=weights, bar="constant", value=10.0), LogTamed(weights=weights, bar="constant", value=9.0)):
        near(after(two(first, second), bar).reward, 2 * np.array(first) + 0.5 * np.array(second), 1e-12)
    same = after(two(first, second), LogTamed(bar="median"))
    near(same.reward, found.reward, 1e-12)
    with pytest.raises(DataError, match=r"'correct' is -1.0; rewards must be >= 0"):
        after(two([-1.0, 1.0], [0.0, 0.0]), LogTamed())


# ---- TMN-Reweight


def test_tmn_by_hand() -> None:
    batch = tiny([1, 0, 0, 0, 1, 1, 1, 0], [0] * 4 + [1] * 4, arm=["m"] * 8)
    plain = advantages(batch, ScaleByType(gamma=0.0, eps=0.0))
    near(plain[:4], [1.5, -0.5, -0.5, -0.5], 1e-9)
    weighed = advantages(batch, ScaleByType(eps=0.0))
    near(weighed[:4], [1.5 * 1.2840, -0.5 * 0.7788, -0.5 * 0.7788, -0.5 * 0.7788], 1e-4)
    near(weighed[4:7], [0.5 * math.exp(-0.25)] * 3, 1e-9)
    near(weighed[7:], [-1.5 * math.exp(0.25)], 1e-9)


def test_types_have_scales_of_their_own_and_constant_prompts_teach_nothing() -> None:
    batch = tiny([1, 0, 10, 0, 5, 5], [0, 0, 1, 1, 2, 2], arm=["a", "a", "b", "b", "b", "b"])
    made = advantages(batch, ScaleByType(gamma=0.0, eps=0.0))
    near(made[:2], [0.5 / math.sqrt(0.5), -0.5 / math.sqrt(0.5)], 1e-9)
    near(made[2:4], [5 / math.sqrt(25), -1], 1e-9)  # mean variance of 50 and 0
    near(made[4:], [0, 0], 0)
    lone = advantages(tiny([2.0, 1.0, 0.0], [0, 1, 1], arm=["a", "b", "b"]), ScaleByType(gamma=0.0, eps=0.0))
    near(lone[0], 2.0, 1e-9)
    faulty = tiny([math.nan, 1.0, 0.0], [0, 1, 1], valid=[False, True, True], arm=["z", "b", "b"])
    near(advantages(faulty, ScaleByType(gamma=0.0, eps=0.0))[1:], [0.5 / math.sqrt(0.5), -0.5 / math.sqrt(0.5)], 1e-9)


# ---- constraints

BELOW = Constrained(thresholds=(("format", 0.5),))


def steps(term: Constrained, mean: float, count: int) -> list[float]:
    """``u`` over batches in which the component's mean is the same."""
    batch, state = two([1, 0], [mean, mean]), term.init()
    out: list[float] = []
    stats = term.local(Scalarise().start(batch))
    for _ in range(count):
        state = term.advance(state, stats)
        out.append(state["u"][0])
    return out


def test_a_constraint_weighs_more_below_its_threshold_and_less_beyond() -> None:
    below, beyond = steps(BELOW, 0.2, 5), steps(BELOW, 0.8, 5)
    assert sorted(below) == below and below[0] > 0 and sorted(beyond, reverse=True) == beyond and beyond[0] < 0
    near(below[0], 0.05 * 0.25 * 0.3, 1e-12)
    near(below[1], below[0] + 0.05 * (0.9 * 0.25 * 0.3 + 0.25 * 0.3), 1e-4)
    for form in ("sigmoid", "tanh"):
        term = replace(BELOW, form=form)
        u = steps(term, 1.0, 10_000)[-1]
        assert math.isfinite(u) and (0.0 if form == "sigmoid" else -1.0) <= term._multiplier(u) <= 1.0
    near(steps(replace(BELOW, form="unbounded"), 0.2, 1), [0.05 * 0.3], 1e-12)


def test_the_mixture_by_hand_and_plain_where_the_multiplier_is_nothing() -> None:
    batch = two([1, 0, 0, 1], [0.0, 1.0, 0.0, 1.0])
    first = advantages(two([1, 0, 0, 1], [0.0] * 4), Center(), Scale())
    other = advantages(tiny([0.0, 1.0, 0.0, 1.0]), Center(), Scale())
    near(advantages(batch, BELOW), 0.5 * first + 0.5 * other, 1e-9)
    near(advantages(batch, replace(BELOW, start=-60.0)), first, 1e-9)
    near(advantages(batch, replace(BELOW, form="unbounded", start=0.5)), first + 0.5 * other, 1e-9)
    near(advantages(batch, replace(BELOW, form="tanh", start=0.0)), first, 1e-9)
    assert after(batch, BELOW).metrics["constraint/format"] == 0.5
    near(advantages(batch, Constrained()), first, 1e-9)
    near(advantages(batch, replace(BELOW, main="correct")), advantages(batch, BELOW), 0)
    record = Scalarise().start(batch)
    nobody = replace(record, counted=np.zeros(4, np.bool_))
    assert BELOW.advance(BELOW.init(), BELOW.local(nobody))["u"] == [0.0]


# ---- the front


def test_hypervolumes() -> None:
    assert hypervolume([(1, 1)], (0, 0)) == 1.0 and hypervolume([], (0, 0)) == 0.0 and hypervolume([(1, -1)], (0, 0)) == 0.0
    assert hypervolume([(1, 1, 1), (2, 1, 0.5)], (0, 0, 0)) == 1.5
    assert hypervolume([(3.0,), (2.0,)], (1.0,)) == 2.0


def test_a_batch_after_a_new_best_trade_off_weighs_more() -> None:
    term, state = HypervolumeScale(components=("correct", "format")), HypervolumeScale(components=("correct", "format")).init()

    def batch(first: float, second: float) -> None:
        nonlocal state
        state = term.advance(state, term.local(Scalarise().start(two([first, first], [second, second]))))

    batch(0.0, 0.0)
    assert state["factor"] == 1.0 and state["points"] == []
    batch(1.0, 1.0)
    near(state["factor"], 0.5 + 1.5 * math.tanh(1.0), 1e-12)
    batch(0.5, 0.5)
    assert state["factor"] == 0.5 and len(state["points"]) == 1, "a dominated point"
    gone = replace(Scalarise().start(two([1.0], [0.0])), counted=np.zeros(1, np.bool_))
    assert term.advance(state, term.local(gone)) == state
    every = HypervolumeScale()
    first = every.advance(every.init(), every.local(Scalarise().start(two([1.0, 0.0], [1.0, 1.0]))))
    assert first["reference"] == [0.5, 1.0]
    made = after(two([1, 0], [0, 0]), Center(), term, state={1: state})
    near(made.advantage, [0.25, -0.25], 1e-12)
    assert made.metrics["hypervolume/factor"] == 0.5


# ---- all of them


@pytest.mark.parametrize(
    "term", [VarianceAdaptive(), VarianceAdaptive(weights=(("correct", 2.0),)), LogTamed(), LogTamed(bar="median", ddof=0)]
)
def test_laws(term: CreditTerm, wide: None, seeds: range) -> None:
    check_term(term, seeds)


def test_laws_over_ranks(wide: None, seeds: range) -> None:
    check_objective(around(ScaleByType(by="role")), seeds)
    check_objective(around(LogTamed(), Center(), Scale()), seeds)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: VarianceAdaptive(eps=-1.0), "no negative"),
        (lambda: VarianceAdaptive(weights=(("a", -1.0),)), "no negative"),
        (lambda: LogTamed(value=1.0), "value belongs to"),
        (lambda: LogTamed(bar="constant"), "value belongs to"),
        (lambda: LogTamed(ddof=2), "ddof is 0 or 1"),
        (lambda: ScaleByType(alpha=2.0), "alpha in"),
        (lambda: ScaleByType(by=""), "name a column"),
        (lambda: Constrained(main="correct", thresholds=(("correct", 1.0),)), "give thresholds"),
        (lambda: Constrained(thresholds=(("a", 1.0), ("a", 2.0))), "give thresholds"),
        (lambda: replace(BELOW, lr=0.0), "lr > 0"),
        (lambda: replace(BELOW, momentum=1.0), "momentum"),
        (lambda: HypervolumeScale(components=("a", "a")), "each component once"),
    ],
)
def test_settings_that_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_names_and_places_that_cannot_be() -> None:
    for make in (lambda: LogTamed(bar="most"), lambda: replace(BELOW, form="cosine")):
        with pytest.raises(UnknownNameError):
            make()
    for term in (VarianceAdaptive(), LogTamed(), BELOW):
        with pytest.raises(PlanError, match="it reads the components themselves"):
            around(Overlong(limit=9, cache=3), term).plan()
    assert VarianceAdaptive().min_group == BELOW.min_group == 2 and ScaleByType(by="role").rollout_columns == ("role",)
    assert ComponentNorm().reduces
    assert VarianceAdaptive().scope is Scope.GROUP
    assert all(term.scope is Scope.BATCH for term in (ScaleByType(), BELOW, LogTamed(), HypervolumeScale()))


# ---- the methods


def test_methods_are_these_terms() -> None:
    weights = (("correct", 1.0), ("format", 2.0))
    assert methods.dvao(weights=weights).credit == (VarianceAdaptive(weights=weights),)
    assert methods.dvao().scalarise == Scalarise(every=True) and methods.dvao(weights=weights).scalarise.weights == weights
    assert methods.log_tamed(bar="median").credit[0] == LogTamed(bar="median")
    assert methods.tmn_reweight(by="domain", gamma=0.5).credit == (ScaleByType(by="domain", gamma=0.5),)
    assert methods.constrained(thresholds=(("format", 0.5),), form="tanh").credit == (replace(BELOW, form="tanh"),)
    front = methods.hypervolume_weighting(components=("correct", "format"))
    assert front.credit[1] == HypervolumeScale(components=("correct", "format"))
    assert front.scalarise.weights == (("correct", 0.5), ("format", 0.5))
    assert methods.hypervolume_weighting().scalarise == Scalarise(every=True)


@pytest.mark.parametrize("name", ["dvao", "log_tamed", "constrained", "hypervolume_weighting"])
def test_a_method_reads_the_components_of_a_batch(name: str) -> None:
    """The second reward, which alone differs in the second half, is heard by all of them."""
    batch = two([1, 0, 1, 1], [0.0, 0.0, 1.0, 0.0], [0, 0, 1, 1])
    settings = {"constrained": {"thresholds": (("format", 0.9),)}}.get(name, {})
    made = methods.build_method(name, **settings).compile().credit(batch).rollout("advantage")
    assert made[0] > 0 > made[1] and made[2] > 0 > made[3]
