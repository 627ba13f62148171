"""Every learner has all that runs ask of one."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from learner_cases import small_model

from assay.core.protocols import CarriesHeads, Learner
from assay.runtime.distributed.mesh import MeshLearner
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.settings import LearnerSettings
from assay.testing import FakeLearner
from assay.testing.fakes import EMBEDDING

DECLARED = sorted(name for name in vars(Learner) if not name.startswith("_"))


@pytest.mark.parametrize("learner", [TorchLearner, MeshLearner, FakeLearner])
def test_learners_have_what_the_protocol_declares(learner: Any) -> None:
    assert len(DECLARED) == 15, "the protocol has changed: look at what else a learner must have"
    made = inspect.getsource(learner.__init__)
    missing = [name for name in DECLARED if not hasattr(learner, name) and f"self.{name}" not in made]
    assert not missing
    for name in DECLARED:
        wanted, found = getattr(Learner, name), getattr(learner, name, None)
        if inspect.isfunction(wanted) and name != "perturbed_weights":  # a generator made a context manager
            ours, theirs = (list(inspect.signature(f).parameters) for f in (wanted, found))  # type: ignore[arg-type]
            assert theirs[: len(ours)] == ours, name


def test_what_a_learner_says_of_itself() -> None:
    learner = TorchLearner(small_model(), LearnerSettings(), total_steps=1)
    assert isinstance(learner, CarriesHeads) and not isinstance(FakeLearner(4), CarriesHeads)
    assert (learner.replays_routing, learner.synchronize, learner.notes(), learner.version) == (False, None, [], 0)
    learner.load_heads(learner.export_heads())
    fake = FakeLearner(4)
    assert (fake.replays_routing, fake.synchronize, fake.notes(), sorted(fake.model())) == (
        False,
        None,
        [],
        sorted(["bias", EMBEDDING]),
    )
    fake.close()
