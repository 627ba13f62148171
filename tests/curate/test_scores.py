"""Published scores on hand-computed numbers, and their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from assay.core.errors import ConfigError, DataError
from assay.curate import (
    angle_concentration,
    central_rows,
    donod,
    fill_gaps,
    gain_shift,
    gain_weights,
    history_deviation,
    influence,
    learning_impact,
    topsis,
)

NAN = float("nan")
UNIT = st.floats(0, 1, width=32)
REAL = st.floats(-100, 100, width=32)


def test_learning_impact_by_hand() -> None:
    assert learning_impact([[0, 0.5, 1], [1, 1, 1], [0, 0, 0]]) == pytest.approx([0.7241379, 0, 0])
    assert learning_impact([[1, 1], [1, 1]]).tolist() == [0, 0], "always solved"


@given(arrays(np.float64, (4, 3), elements=UNIT))
def test_learning_impact_of_the_average_is_one_and_of_always_is_zero(r: np.ndarray) -> None:
    mean = r.mean(0)
    found = learning_impact(np.vstack([r, 2 * mean - r, mean, mean]))  # the mean of all is the same
    assert (found <= 1 + 1e-12).all()
    if (1 - mean).any():
        assert found[-1] == pytest.approx(1)
        with_always = np.vstack([r, np.ones(3)])
        if (1 - with_always.mean(0)).any():
            assert learning_impact(with_always)[-1] == pytest.approx(0)


def test_missing_epochs_take_the_next() -> None:
    assert fill_gaps([NAN, 0.5, NAN, NAN, 1]).tolist() == [0.5, 0.5, 1, 1, 1]  # pyright: ignore[reportOptionalMemberAccess]
    assert fill_gaps([0.5, NAN]) is None
    assert fill_gaps([]) is None


def test_deviation_by_hand() -> None:
    assert history_deviation([[0, 1, 0, 1], [0.4, 0.6, 0.4, 0.6], [0.3] * 4]) == pytest.approx([0.5, 0.1, 0])


def test_angles_by_hand() -> None:
    assert angle_concentration([[1, 0], [5, 0]]) == pytest.approx(1)
    assert angle_concentration([[1, 0], [0, 1]]) == pytest.approx(0.5)
    assert angle_concentration([[1, 0], [0, 1]], [[1, 1]], factor=2) == pytest.approx(0.5 + 2 * np.sqrt(0.5))
    assert angle_concentration([[1, 0]], []) == pytest.approx(1)
    with pytest.raises(DataError, match="points nowhere"):
        angle_concentration([[0, 0]])


@given(arrays(np.float64, (3, 2), elements=st.floats(0.5, 2)), st.floats(0.1, 10))
def test_angles_do_not_see_lengths(vectors: np.ndarray, scale: float) -> None:
    assert angle_concentration(vectors * scale) == pytest.approx(angle_concentration(vectors))
    assert 1 / 3 <= angle_concentration(vectors) <= 1 + 1e-12


def test_gain_by_hand() -> None:
    assert gain_shift(1, 0) == pytest.approx(380.797, abs=1e-3)
    assert gain_shift(0.5, 0.1) == pytest.approx(98.688, abs=1e-3)
    assert gain_shift(0, 0.1) == 0, "never back"
    assert gain_shift(1, 10, most=700) == 700
    assert gain_weights(4, 0, width=1.0)[0] / gain_weights(4, 0, width=1.0)[1] == pytest.approx(np.exp(0.5))
    assert gain_weights(10, 1e6).sum() == pytest.approx(1), "a centre far away is no reason to divide by 0"
    for wrong in (lambda: gain_weights(0, 0), lambda: gain_weights(1, 0, width=0)):
        with pytest.raises(ConfigError):
            wrong()


@given(arrays(np.float64, (2, 3), elements=REAL), arrays(np.float64, (2, 3), elements=REAL))
def test_donod_is_bounded_by_the_triangle(w: np.ndarray, v: np.ndarray) -> None:
    don, nod = donod(w, v)
    assert abs(don) <= nod + 1e-9
    assert donod([3, 4], [3, 5]) == pytest.approx((np.sqrt(34) - 5, 1))


def test_donod_needs_one_block_twice() -> None:
    with pytest.raises(DataError, match="one block twice"):
        donod([1, 2], [1])


@given(arrays(np.float64, (5, 2), elements=REAL))
def test_topsis_is_a_share_and_best_is_one(table: np.ndarray) -> None:
    both = np.vstack([table, table.min(0), table.max(0)])
    found = topsis(both, ("low", "low"))
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    assert found[-2] == pytest.approx(1)
    assert found[-1] == pytest.approx(0) or (both.min(0) == both.max(0)).all()
    assert topsis(-both, ("high", "high")) == pytest.approx(found)


def test_topsis_by_hand() -> None:
    assert topsis([[0, 3], [4, 0]], ("low", "low")) == pytest.approx([0.5, 0.5])
    assert topsis([[0, 3], [4, 0]], ("low", "high")) == pytest.approx([1, 0])
    assert topsis([[0, 0], [0, 0]], ("low", "low")).tolist() == [1, 1]
    with pytest.raises(ConfigError, match="for 2 criteria"):
        topsis([[1, 2]], ("low",))


@given(arrays(np.float64, (4, 3), elements=REAL), arrays(np.float64, (2, 3), elements=REAL), st.floats(-3, 3))
def test_influence_is_linear_in_the_validation_gradient(g: np.ndarray, v: np.ndarray, scale: float) -> None:
    assert influence(g, scale * v) == pytest.approx(scale * influence(g, v), abs=1e-6)
    assert influence(g, np.vstack([v, v])) == pytest.approx(influence(g, v))


def test_a_validation_item_twice_leaves_orthogonal_rows_as_they_are() -> None:
    validation = np.array([[1.0, 0, 0], [0, 1, 0]])
    rows = np.array([[0, 0, 1.0], [0, 0, -2.0]])
    assert influence(rows, np.vstack([validation, validation[:1]])).tolist() == influence(rows, validation).tolist() == [0, 0]
    with pytest.raises(DataError, match="project both alike"):
        influence([[1]], [[1, 2]])
    with pytest.raises(DataError, match="give a table"):
        influence([], [[1]])


def test_the_central_rows_lie_between_two_quantiles_of_what_has_a_score() -> None:
    """Of 0 to 8 the quartiles are 2 and 6, both kept; a row without a score is left out and moves neither."""
    assert np.flatnonzero(central_rows(np.arange(9.0))).tolist() == [2, 3, 4, 5, 6]
    assert np.flatnonzero(central_rows([*range(5), np.nan, *range(5, 9)])).tolist() == [2, 3, 4, 6, 7]
    assert central_rows([3.0, 3.0]).all(), "where all are alike, all are central"
    with pytest.raises(ConfigError, match=r"low=0\.7, high=0\.3"):
        central_rows([1.0], 0.7, 0.3)
    with pytest.raises(DataError, match="none of 2 rows has a score"):
        central_rows([np.nan, np.nan])
