"""Loops around runs: the fit of MoDoMoDo on the simplex and the choices of MBTL, by hand and on synthetic outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.guide import MixtureSearch, TransferSearch
from assay.guide.run_searches import _gaussian_process, _onto_simplex  # pyright: ignore[reportPrivateUsage]

FIVE = MixtureSearch(parts=("a", "b", "c", "d", "e"))
Mixture = tuple[float, ...]


def mixtures(n: int, m: int = 5, seed: int = 0) -> list[Mixture]:
    return [tuple(row.tolist()) for row in np.random.default_rng(seed).dirichlet(np.ones(m), n)]


# ---- mixtures ---------------------------------------------------------------------------------------------------------


def test_the_seeds_of_five_parts_are_eleven_and_determine_ten_coefficients_of_fifteen() -> None:
    seeds = FIVE.seeds()
    assert len(seeds) == 11 and seeds[0] == (0.2,) * 5 and seeds[1] == (1.0, 0.0, 0.0, 0.0, 0.0)
    assert seeds[6] == (0.0, 0.25, 0.25, 0.25, 0.25)
    assert all(abs(sum(w) - 1.0) < 1e-12 for w in seeds)
    products = FIVE.products(np.array(seeds))
    assert products.shape == (11, 15) and np.linalg.matrix_rank(products) == 10
    assert np.linalg.matrix_rank(FIVE.products(np.array([*seeds, *mixtures(10)]))) == 15


def test_the_maximum_of_a_quadratic_is_found_from_generic_points() -> None:
    best = np.array([0.1, 0.4, 0.2, 0.05, 0.25])
    tried = {w: 0.7 - float(((np.array(w) - best) ** 2).sum()) for w in [*FIVE.seeds(), *mixtures(12)]}
    found = FIVE.propose(tried)
    assert np.abs(np.array(found) - best).max() < 0.02
    assert abs(sum(found) - 1.0) < 1e-9 and min(found) >= 0.0
    predicted = FIVE.products(np.array([best])) @ FIVE.fit(tried)
    assert predicted[0] == pytest.approx(0.7, abs=1e-3)
    assert FIVE.propose(tried) == found  # a pure function of what was tried


def test_a_maximum_on_the_edge_is_proposed_as_such() -> None:
    tried = {w: w[2] - 0.5 * w[0] for w in [*FIVE.seeds(), *mixtures(8)]}
    assert FIVE.propose(tried)[2] > 0.97


def test_without_any_difference_the_fit_is_the_level() -> None:
    tried = dict.fromkeys(FIVE.seeds(), 0.4)
    np.testing.assert_allclose(FIVE.products(np.array(mixtures(4))) @ FIVE.fit(tried), 0.4, atol=1e-9)


def test_heuristics_weigh_by_scores_alone_and_by_what_a_part_gains() -> None:
    search = MixtureSearch(parts=("a", "b"))
    found = search.heuristics(np.array([[0.6, 0.2], [0.1, 0.3]]), gains=[0.3, -0.1])
    assert [tuple(round(x, 4) for x in w) for w in found] == [(0.6667, 0.3333), (0.6667, 0.3333), (0.6667, 0.3333), (1.0, 0.0)]
    assert search.heuristics(np.zeros((2, 2)), gains=[-1.0, 0.0]) == []  # nothing to go by


def test_effects_are_of_a_ridge_fit_whose_variances_are_inflated() -> None:
    """Two parts, ``z`` is (0, 1.2247, -1.2247): ``A`` has 5.2381 and 4.7619, ``b`` is 0.1166 and ``v`` 0.2268."""
    search = MixtureSearch(parts=("a", "b"))
    tried = {(0.5, 0.5): 0.5, (1.0, 0.0): 0.8, (0.0, 1.0): 0.2}
    assert search.effects(tried) == pytest.approx([0.6, -0.6], abs=1e-3)  # 0.1166 / 0.4762 / 0.4082
    assert search.heuristics(np.zeros((2, 2)), [0.0, 0.0], tried) == [(1.0, 0.0)]
    # A part whose share never moves says nothing.
    three = MixtureSearch(parts=("a", "b", "c"))
    assert three.effects({(0.5, 0.25, 0.25): 0.1, (0.5, 0.5, 0.0): 0.9}).tolist()[0] == 0.0
    with pytest.raises(DataError, match="is no mixture"):
        search.effects({(0.5, 0.6): 1.0})


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_what_is_moved_onto_the_simplex_is_the_nearest_mixture(points: list[list[float]]) -> None:
    given_ = np.array(points)
    found = _onto_simplex(given_)
    assert (found >= 0).all() and np.allclose(found.sum(axis=1), 1.0)
    distance = ((found - given_) ** 2).sum(axis=1)
    for other in np.random.default_rng(1).dirichlet(np.ones(4), 50):
        assert (distance <= ((other - given_) ** 2).sum(axis=1) + 1e-9).all()


def test_mixtures_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least two parts"):
        MixtureSearch(parts=("a",))
    with pytest.raises(DataError, match=r"run those of seeds\(\) first"):
        FIVE.propose({})
    with pytest.raises(DataError, match="is no mixture"):
        FIVE.propose({(0.5, 0.6, 0.0, 0.0, 0.0): 1.0})
    with pytest.raises(DataError, match="leave out runs that failed"):
        FIVE.propose({(1.0, 0.0, 0.0, 0.0, 0.0): float("nan")})


# ---- transfer -----------------------------------------------------------------------------------------------------------


def test_the_first_is_the_middle_and_the_next_lies_away_from_it() -> None:
    search = TransferSearch(contexts=tuple(range(21)), slope=0.02)
    assert search.propose({}) == 10
    assert abs(search.propose({10: 0.8}) - 10) >= 4


def test_what_is_expected_is_the_best_line_of_those_trained() -> None:
    search = TransferSearch(contexts=(0, 1, 2, 3, 4), slope=0.1)
    np.testing.assert_allclose(search.expected_return({2: 0.8}), [0.6, 0.7, 0.8, 0.7, 0.6])
    np.testing.assert_allclose(search.expected_return({2: 0.8, 4: 0.9}), [0.6, 0.7, 0.8, 0.8, 0.9])
    assert search.serving({2: 0.8, 4: 0.9}) == {0: 2, 1: 2, 2: 2, 3: 4, 4: 4}


def test_the_expectation_never_falls_and_no_context_comes_twice() -> None:
    search, trained = TransferSearch(contexts=tuple(range(9)), slope=0.05, exploration="log"), dict[float, float]()
    means = list[float]()
    for _ in range(9):
        x = search.propose(trained)
        assert x not in trained
        trained[x] = 0.5 + 0.05 * np.sin(x)
        means.append(float(search.expected_return(trained).mean()))
    assert means == sorted(means) and len(trained) == 9
    with pytest.raises(DataError, match="nothing left to propose"):
        search.propose(trained)


def test_a_context_with_a_better_neighbour_is_preferred() -> None:
    search = TransferSearch(contexts=(0, 1, 2, 3, 4, 5, 6), slope=0.0, exploration="inverse")
    assert search.propose({0: 0.1, 1: 0.2, 5: 0.8}) == 6  # without a slope only how good a model will be counts


def test_the_process_passes_near_what_was_observed_and_is_unsure_far_away() -> None:
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.6, 0.9])
    mean, deviation = _gaussian_process(x, y, np.array([1.0, 2.0, 40.0]))
    assert abs(mean[0] - 0.6) < 0.1 and abs(mean[1] - 0.9) < 0.1
    assert deviation[0] < 0.12 < deviation[2]


def test_the_slope_is_fitted_by_least_squares() -> None:
    search = TransferSearch(contexts=(0, 1, 2, 3))
    # gaps 0.1 at 1 and 0.3 at 2: (0.1 + 0.6) / (1 + 4)
    assert search.fit_slope({(0, 0): 0.8, (0, 1): 0.7, (0, 2): 0.5, (3, 2): 0.1}) == pytest.approx(0.14)
    assert search.fit_slope({(0, 0): 0.5, (0, 1): 0.9}) == 0.0 == search.fit_slope({})


def test_contexts_out_of_order_and_unknown_ones_are_refused() -> None:
    for changes, message in (
        ({"contexts": (1, 1)}, "ascending, each once"),
        ({"slope": -1.0}, "slope=-1"),
        ({"exploration": "two"}, "'one', 'inverse' or 'log'"),
    ):
        with pytest.raises(ConfigError, match=message):
            TransferSearch(**({"contexts": (0, 1)} | changes))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"performance 0\.5 at 7"):
        TransferSearch(contexts=(0, 1)).propose({7: 0.5})
