"""What a sampler's answers to new weights prove: digests of all tensors, or log-probabilities of fixed rows."""

from __future__ import annotations

import numpy as np
import pytest

from assay.asynchronous.messages import LoadedVersion
from assay.asynchronous.weight_check import WeightCheck
from assay.core.manifest import Manifest, manifest_of

ROWS = ((0.0, -1.0, -2.0), (0.0, -3.0))


def publication(version: int) -> Manifest:
    return manifest_of(version, {n: np.full(3, version, np.float32) for n in "ab"})


def scores(shift: float, rows: tuple[tuple[float, ...], ...] = ROWS) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(x + shift for x in row) for row in rows)


def learned(shift: float) -> list[np.ndarray]:
    return [np.array(row, np.float32) for row in scores(shift)]


def digests(version: int, names: str = "ab") -> dict[str, str]:
    return {n: t.digest for n, t in publication(version).tensors.items() if n in names}


def test_digests_of_all_tensors_prove_and_those_of_some_do_not() -> None:
    check = WeightCheck()
    check.expect(publication(1))
    assert check.take_share() == 1.0, "nobody has answered"
    assert check.judge("s", LoadedVersion(1, digests(1))) == ""
    assert check.judge("t", LoadedVersion(1, digests(1, "a"))) == "" and check.judge("u", LoadedVersion(1, None)) == ""
    assert check.take_share() == pytest.approx(1 / 3)
    assert check.judge("s", LoadedVersion(1, digests(2))) == "it serves other weights than version 1 has: a, b"
    assert check.judge("s", LoadedVersion(7, digests(7))) == "", "of a publication that is forgotten nothing is known"


def test_probes_hold_within_ten_times_the_noise_of_the_first_weights() -> None:
    check = WeightCheck()
    for version in range(4):
        check.expect(publication(version), learned(0.1 * version))
    assert check.judge("s", LoadedVersion(0, None, scores(0.001))) == ""
    assert check.judge("s", LoadedVersion(1, None, scores(0.1 + 0.002))) == "" and check.take_share() == 1.0
    said = check.judge("s", LoadedVersion(2, None, scores(0.1 + 0.002)))
    assert said == (
        "its log-probabilities of fixed rows are 0.098 nats from the learner's under version 2, and 0.01 are noise: it serves "
        "other weights"
    )
    check.forget("s")
    assert check.judge("s", LoadedVersion(3, None, scores(0.3 + 0.04))) == "", "another's noise is its own"


def test_an_answer_that_was_there_before_proves_nothing() -> None:
    """A step at 1e-6 moves log-probabilities less than bfloat16 rounds: only that something changed can be seen."""
    check = WeightCheck()
    for version in range(3):
        check.expect(publication(version), learned(1e-6 * version))
    for version, served in enumerate((0.01, 0.011, 0.011)):
        assert check.judge("s", LoadedVersion(version, None, scores(served), "bfloat16")) == ""
    assert check.take_share() == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("served", "dtype"),
    [(scores(0.1), "float32"), (scores(0.6), "bfloat16"), (scores(float("nan")), "float32"), (ROWS[:1], "float32")],
    ids=["other weights from the start", "of bfloat16 too", "not a number", "other rows"],
)
def test_what_no_noise_explains_is_told(served: tuple[tuple[float, ...], ...], dtype: str) -> None:
    check = WeightCheck()
    check.expect(publication(1), learned(0.0))
    assert "it serves other weights" in check.judge("s", LoadedVersion(1, None, served, dtype))
    assert check.take_share() == 0.0


def test_only_some_publications_are_remembered() -> None:
    check = WeightCheck()
    for version in range(12):
        check.expect(publication(version))
    assert check.judge("s", LoadedVersion(3, digests(9))) == ""
    assert check.judge("s", LoadedVersion(4, digests(9))) != ""
