"""How many random batches a law is held on."""

import pytest


@pytest.fixture(params=["few", pytest.param("more", marks=pytest.mark.prove)])
def seeds(request: pytest.FixtureRequest) -> range:
    """Seeds of the batches on which a law is held: two in the tests, others in the proofs."""
    return range(2) if request.param == "few" else range(2, 6)
