"""A verifier as a grader: built-in, a user's own with the row, and one that hangs."""

import time

import pytest

from assay.core.errors import ConfigError
from assay.curate import Case
from assay.select import VerifierGrader
from assay.verify import RewardFunction, verifier


def reward(prompt: str, completion: str, row: dict[str, object]) -> float:
    if completion == "hang":
        time.sleep(60)
    if completion == "raise":
        raise ValueError("no")
    return float(completion == row["target"] and prompt == "q")


def test_a_verifier_of_assays_own_judges() -> None:
    with VerifierGrader(verifier=verifier("numeric")) as grader:
        assert grader([Case("q", "0.5", "It is 0.50", {}), Case("q", "0.5", "It is 2", {})]) == [1.0, 0.0]


def test_a_function_sees_the_row_and_cannot_stop_the_run() -> None:
    with VerifierGrader(verifier=RewardFunction(reward), deadline=2.0) as grader:
        cases = [Case("q", None, text, {"target": "x"}) for text in ("x", "y", "raise")]
        assert grader(cases) == [1.0, 0.0, "ValueError: no"]
        assert grader([Case("q", None, "hang", {"target": "x"})]) == [0.0]


def test_wrong_settings() -> None:
    for wrong in ({"deadline": 0.0}, {"workers": 0}):
        with pytest.raises(ConfigError, match="VerifierGrader"):
            VerifierGrader(verifier=verifier("exact"), **wrong)
