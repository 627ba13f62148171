"""Stages that end by a validation, twice over."""

from __future__ import annotations

from typing import Any

import pytest

from assay.core.errors import ConfigError
from assay.recipes import promoted_stages
from assay.train import Reinforce


def test_each_level_has_a_stage_in_each_round_and_ends_strictly_above_the_bound() -> None:
    made = promoted_stages(Reinforce(steps=250, groups=2), (5, 6), above=0.75, rounds=3)
    assert [stage.levels for stage in made] == [(5,), (6,)] * 3
    for stage in made:
        assert stage.until is not None and stage.steps == 250
        assert stage.until.metric == f"eval/sampled/level_{stage.levels[0]}"  # type: ignore[index]
        assert not stage.until.reason(0.75, 0) and stage.until.reason(0.76, 0)


@pytest.mark.parametrize("wrong", [{"levels": ()}, {"rounds": 0}, {"above": 1.0}, {"above": -0.1}])
def test_a_curriculum_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="promoted_stages"):
        promoted_stages(Reinforce(), **{"levels": (1,), **wrong})
