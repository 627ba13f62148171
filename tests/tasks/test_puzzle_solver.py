"""The solver of finite domains against brute force, the reader of SMT-LIB, and examples by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.verify.structure.smtlib import problem_of
from assay_tasks.puzzles.constraints import (
    AllDifferent,
    Constraint,
    Count,
    Every,
    Linear,
    Modulo,
    Pair,
    Rows,
    Unlike,
    bits,
    mask_of,
    relate,
    values_in,
)
from assay_tasks.puzzles.solver import Model


def some(rng: Random, n: int, top: int) -> Constraint:
    """A random constraint over n variables with values below ``top``."""
    size = rng.randint(1, n)
    cells = rng.sample(range(n), size)
    factors = [rng.choice((-3, -2, -1, 1, 2, 3)) for _ in cells]
    masks = [rng.randrange(1 << top) for _ in cells]
    low = rng.randint(0, size)
    match rng.randrange(8):
        case 0:
            return AllDifferent(cells, mask_of(rng.sample(range(top), min(top, rng.randint(0, size)))))
        case 1:
            return relate(cells, factors, rng.choice(("=", "<=", ">=", "<", ">", "!=")), rng.randint(-4, 6))
        case 2:
            return Unlike(cells, factors, rng.randint(-3, 5))
        case 3:
            return Count(cells, masks, low, rng.randint(low, size))
        case 4 if n > 1:
            return Pair(*rng.sample(range(n), 2), [rng.randrange(1 << top) for _ in range(top)])
        case 5:
            return Rows(cells, [[1 << rng.randrange(top) for _ in cells] for _ in range(rng.randint(1, 9))])
        case 6:
            by = rng.randint(2, 5)
            return Modulo(cells, factors, by, rng.randrange(by))
        case _:
            return Every(Count(cells, masks, 0, size), Linear(cells, factors, -5, 5))


def random_model(rng: Random) -> Model:
    model, top = Model(), rng.randint(2, 4)
    for _ in range(rng.randint(1, 4)):
        model.var(rng.sample(range(top), rng.randint(1, top)))
    model.add(*(some(rng, len(model.domains), top) for _ in range(rng.randint(0, 4))))
    return model


def every(model: Model) -> list[tuple[int, ...]]:
    return [values for values in product(*map(values_in, model.domains)) if model.holds(values)]


@given(st.integers(0, 10**9))
@settings(max_examples=400)
def test_all_solutions_are_found_and_nothing_else(seed: int) -> None:
    model = random_model(Random(seed))
    wanted = every(model)
    found = model.solve(10**6)
    assert sorted(found.solutions) == wanted and found.complete and found.effort > 0
    assert len(model.solve(2).solutions) == min(2, len(wanted))
    for values in wanted[:2]:
        assert sorted(model.solve(10**6, other=values).solutions) == [v for v in wanted if v != values]
    drawn = model.sample(Random(seed))
    assert (drawn in wanted) if wanted else drawn is None


@given(st.integers(0, 10**9))
@settings(max_examples=150)
def test_the_text_in_smt_lib_says_the_same(seed: int) -> None:
    rng = Random(seed)
    model = random_model(rng)
    problem = problem_of(model.smt())
    for _ in range(6):
        values = [rng.choice(values_in(d)) for d in model.domains]
        said = {name: Fraction(v) for name, v in zip(model.names, values, strict=True)}
        assert all(problem.kept_assertions(said)) == model.holds(values)
        assert all(problem_of(model.smt(but=values)).kept_assertions(said)) is False


@given(st.integers(0, 10**9))
@settings(max_examples=100)
def test_clues_leave_the_truth_and_none_is_idle(seed: int) -> None:
    rng = Random(seed)
    model = Model()
    model.block(4, 15)
    truth = [rng.randrange(4) for _ in range(4)]
    pool = [c for c in (some(rng, 4, 4) for _ in range(30)) if c.holds(truth)]
    before = (list(model.domains), [list(w) for w in model.watch])
    chosen = model.clues(truth, pool, Random(seed))
    assert (list(model.domains), model.watch, model.constraints) == (*before, [])
    model.add(*pool)
    assert (chosen is not None) == (every(model) == [tuple(truth)])
    for left_out in [None, *(chosen or ())] if chosen is not None else ():
        short = Model()
        short.block(4, 15)
        short.add(*(pool[i] for i in chosen or () if i != left_out))
        assert (every(short) == [tuple(truth)]) == (left_out is None)


def test_by_hand() -> None:
    model = Model()
    x, y, z = (model.var(range(1, 4), name) for name in "xyz")
    model.add(AllDifferent((x, y, z), 0b1110))
    model.linear((x, y), (1, -1), ">", 0)
    model.linear((y, z), (1, -1), "!=", 1)
    assert model.solve(9).solutions == ((2, 1, 3), (3, 1, 2))
    model.linear((z,), (1,), ">=", 3)
    assert model.only()[0] == (2, 1, 3)
    assert problem_of(model.smt()).kept_assertions({"x": Fraction(2), "y": Fraction(1), "z": Fraction(3)}) == [True] * 13
    assert bits(0b1010) == [2, 8] and values_in(0b1010) == [1, 3] and mask_of((1, 3)) == 0b1010


def test_what_is_refused() -> None:
    model = Model()
    model.block(2, 3)
    with pytest.raises(DataError, match=r"exactly one solution; a search of effort .* found 2"):
        model.only()
    with pytest.raises(DataError, match="found 1 and was cut off"):
        model.only(most=-1)
    model.linear((0, 1), (1, 1), "=", 9)
    with pytest.raises(DataError, match="found 0"):
        model.only()
    for values in ((), (-1, 2)):
        with pytest.raises(DataError, match="a variable needs values, all of them 0 or more"):
            model.var(values)
    with pytest.raises(ConfigError, match="unknown relation '~'"):
        model.linear((0,), (1,), "~", 1)
