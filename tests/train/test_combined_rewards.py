"""Methods for several rewards train: both rewards rise, and stay where they were under a step of nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import only_rl, trained

from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.objective import methods
from assay.runtime.settings import AdamW, LearnerSettings
from assay.tasks.single import SingleTurn
from assay_tasks import SortDigits

BOTH = {"sevens": 1.0, "few": 0.2}
"""What the two rewards want: sevens, from 0 to 1, and few different digits, on a scale five times smaller."""


@dataclass(frozen=True)
class Two:
    """``sevens`` and ``few``: two rewards of different scale."""

    @property
    def trusted(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return ("correct", "sevens", "few")

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        text = rollout.text or " "
        sevens, few = text.count("7") / len(text), 0.2 / len(set(text))
        return Score(components={"correct": sevens, "sevens": sevens, "few": few})


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRewards(SortDigits):
    """Prompts of `SortDigits`, judged by two rewards."""

    def verifier(self) -> Any:
        return Two()


SETTINGS: dict[str, dict[str, Any]] = {
    "dvao": {"weights": (("sevens", 1.0), ("few", 1.0))},
    "log_tamed": {"weights": (("sevens", 1.0), ("few", 1.0))},
    "tmn_reweight": {},
    "constrained": {"main": "sevens", "thresholds": (("few", 0.15),)},
    "hypervolume_weighting": {"components": ("sevens", "few")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dvao", *(pytest.param(n, marks=pytest.mark.evidence) for n in list(SETTINGS)[1:])])
def test_it_trains_beside_a_control(name: str, tmp_path: Path) -> None:
    def gains(folder: str, lr: float) -> dict[str, float]:
        learner = LearnerSettings(optimizer=AdamW(lr=lr))
        objective = methods.build_method(name, **SETTINGS[name])
        run = only_rl(steps=20, groups=8, group_size=4, objective=objective, learner=learner)
        trained(_with(run), tmp_path / folder)
        lines = [json.loads(line)["metrics"] for line in (tmp_path / folder / "metrics.jsonl").read_text().splitlines()]
        found: dict[str, list[float]] = {c: [m[k] for m in lines if (k := f"reward/component/{c}") in m] for c in BOTH}
        return {c: sum(v[-3:]) / 3 - sum(v[:3]) / 3 for c, v in found.items()}

    learned, control = gains("learned", 2e-2), gains("control", 1e-9)
    assert learned["sevens"] > 0.15 and learned["sevens"] > control["sevens"] + 0.1, (learned, control)
    if name != "tmn_reweight":  # which reads one reward alone, and scales it
        assert learned["few"] > control["few"] + 0.01, (learned, control)


def _with(run: Any) -> Any:
    from dataclasses import replace

    assert isinstance(run.tasks, SingleTurn)
    return replace(run, tasks=TwoRewards(levels=(1, 2, 3)))
