"""What the numbers of a membership probe say, in a sentence."""

from __future__ import annotations

import pytest

from assay.measure import Interval
from assay.select.membership_probe import Membership


@pytest.mark.parametrize(
    ("areas", "says"),
    [
        ({"zlib": (0.5, 0.0, 1.0), "answer": (1.0, 0.0, 1.0)}, "too few to tell: 2 items and 2 fresh ones"),
        ({"zlib": (0.5, 0.4, 0.6), "answer": (0.52, 0.45, 0.61)}, "no score shows"),
        ({"zlib": (0.5, 0.4, 0.6), "answer": (0.7, 0.6, 0.8)}, "answer of the items above those of fresh ones"),
        ({}, "too few to tell"),
    ],
)
def test_a_verdict(areas: dict[str, tuple[float, float, float]], says: str) -> None:
    scores = {name: Interval(*ends) for name, ends in areas.items()}
    found = Membership(items=2, fresh=2, scores=scores, accuracy=0.5, fresh_accuracy=0.5, gap=Interval(0.0, -1.0, 1.0))
    assert found.verdict.startswith(says)
