"""Blends by name: their shares by hand and by simulation, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.guide import BLENDS, Balanced, blend
from assay.testing import check_curriculum

ARMS = {"law": (1, 2), "history": (1,), "sums": (1, 2, 3)}
GENERAL, MATH = {"law": 300, "history": 100}, {"sums": 400}


def shares(spec: Balanced, arms: dict[str, tuple[int, ...]] | None = None) -> dict[str, float]:
    book = spec.build(arms or ARMS, seed=0)
    out: Counter[str] = Counter()
    for (arm, _), p in zip(book.cells, book.propensities.tolist(), strict=True):
        out[arm] += p
    return {arm: round(p, 6) for arm, p in out.items()}


def test_two_to_one_whichever_part_has_more_arms_or_levels() -> None:
    assert shares(blend("general", GENERAL, MATH)) == {"history": 0.333333, "law": 0.333333, "sums": 0.333333}
    assert shares(blend("math", GENERAL, MATH)) == {"history": 0.166667, "law": 0.166667, "sums": 0.666667}
    assert shares(blend("natural", GENERAL, MATH)) == {"history": 0.125, "law": 0.375, "sums": 0.5}
    assert shares(blend("math_only", [], MATH), {"sums": (1, 2)}) == {"sums": 1.0}
    assert all(shares is None or sum(shares) > 0 for shares in BLENDS.values())


def test_draws_converge_to_the_shares() -> None:
    check_curriculum(blend("math", GENERAL, MATH), ARMS, seed=1, draws=3_000)
    drawn = Counter(draw.arm for draw in blend("math", GENERAL, MATH).build(ARMS, seed=0).draw(6_000))
    assert abs(drawn["sums"] / 6_000 - 2 / 3) < 0.02 and abs(drawn["law"] / 6_000 - 1 / 6) < 0.02


def test_what_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'general'"):
        blend("generel", GENERAL, MATH)
    with pytest.raises(ConfigError, match="number of rows"):
        blend("natural", ["law"], MATH)
    with pytest.raises(ConfigError, match=r"\['math'\] has no arm"):
        blend("general", GENERAL, [])
    with pytest.raises(ConfigError, match="neither the arm 'sums'"):
        blend("general_only", GENERAL, MATH).build(ARMS, seed=0)
