"""The bonus for answers that need the order of events: the sheet's numbers, the twin, and a stage with both."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import only_rl, trained

from assay.core import FrozenMap, Moment
from assay.core.errors import ConfigError
from assay.core.score import Fault, Score
from assay.core.scoring import RolloutGroup
from assay.core.task import Task
from assay.guide import Admitted, ShuffledEvents
from assay.scorers import TemporalBonus
from assay.testing import ScriptedScoring, check_guidance, check_scorer
from assay.verify import rollout_of, task_and_rollout
from assay_tasks import SortDigits

ANY = TemporalBonus(modes=(".*",))


def group(key: str, right: int, of: int = 10, tail: str = "") -> RolloutGroup:
    task, _ = task_and_rollout("4", "4")
    rollouts = tuple(rollout_of(task, ("4" if n < right else "5") + tail, id=f"{key}-{n}", group=key) for n in range(of))
    return RolloutGroup(task=task, context=replace(rollouts[0].context, key=key), rollouts=rollouts)


def rewards(scorer: TemporalBonus, own: int, twin: int) -> list[float]:
    groups = [group("k", own), group("k/shuffled", twin)]
    (found, other) = asyncio.run(scorer.score(groups, ScriptedScoring()))
    assert all(x.components["temporal"] == 0.0 for x in other)
    return [x.components["reward"] for x in found]


def test_the_sheets_numbers() -> None:
    assert rewards(ANY, 5, 5)[0] == pytest.approx(3.4) and rewards(ANY, 5, 5)[-1] == -0.5
    assert rewards(ANY, 4, 5)[0] == 3.0
    assert set(rewards(ANY, 0, 0)) == {-0.5}
    assert rewards(TemporalBonus(), 5, 5)[0] == pytest.approx(1.4), "no form: -1 instead of 1"


def test_forms_faults_and_tasks_without_a_twin() -> None:
    ctx = ScriptedScoring()
    check_scorer(ANY, [(group("a", 1, 2), [1.0, 0.0])], ctx)
    (alone,) = asyncio.run(ANY.score([group("a", 1, 1)], ctx))
    assert alone[0].components["reward"] == 3.0
    forms = TemporalBonus().modes
    import re

    for text in ("<answer>4</answer>", "<glance>x</glance><answer>4</answer>", "<think>a\nb</think>\n<answer>4</answer>"):
        assert sum(bool(re.fullmatch(mode, text, re.DOTALL)) for mode in forms) == 1

    class Broken:
        names = ("correct",)

        def __call__(self, task: Any, rollout: Any) -> Score:
            return Score(components={}, fault=Fault.VERIFIER)

    (fault,) = asyncio.run(ANY.score([group("a", 1, 1)], replace(ctx, verifier=Broken())))
    assert fault[0].fault is Fault.VERIFIER and ANY.floor(ctx)["reward"] == -2.5
    for modes in ((), ("(",)):
        with pytest.raises(ConfigError, match="modes"):
            TemporalBonus(modes=modes)
    with pytest.raises(ConfigError, match="pattern"):
        ShuffledEvents(pattern="(")


def task_of(prompt: str) -> Task:
    task, _ = task_and_rollout("4", "4", prompt=prompt)
    return task


def test_the_twin_has_the_same_events_in_another_order() -> None:
    spec = ShuffledEvents()
    for n in range(20):
        plain, twin = spec.next(task_of("1. a\n2. b\n- c\nWho?"), [], Moment(key=f"k{n}"))
        first, second = (p.context.messages[0].content.split("\n") for p in (plain, twin))
        assert sorted(first) == sorted(second) and first != second and second[-1] == "Who?"
        assert plain.context.group != twin.context.group and twin.context.tag == "shuffled"
    assert spec.next(task_of("Who?"), [graded_once()], Moment(key="k")) == ()
    for prompt in ("Who?", "- a\nWho?", "- a\n- a\nWho?"):
        assert len(spec.next(task_of(prompt), [], Moment(key="k"))) == 1
    silent = replace(task_of(""), public=FrozenMap({"messages": [{"role": "system", "content": "- a\n- b"}]}))
    assert len(spec.next(silent, [], Moment(key="k"))) == 1


def graded_once() -> Any:
    from assay.testing import graded_group

    return graded_group(task_of("Who?"), [Score(components={"correct": 1.0})])


@dataclass(frozen=True, slots=True, kw_only=True)
class Events(SortDigits):
    """``- 3\\n- 1\\n>`` asks for the last digit."""

    @property
    def alphabet(self) -> str:
        return "0123456789- >\nS"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        return "".join(f"- {d}\n" for d in rng.integers(0, 10, level + 1).tolist()) + ">"

    def solve(self, prompt: str) -> str:
        return prompt[-3]

    def verifier(self) -> Any:
        from assay.verify import ExactMatch

        return ExactMatch()


def test_guidance_keeps_its_promises_and_a_stage_learns_from_the_ordered_rollouts_alone(tmp_path: Path) -> None:
    tasks = Events(levels=(1, 2))
    check_guidance(ShuffledEvents(), tasks.task("sort", 2, "train", 0))
    run = replace(only_rl(steps=2, reward=ANY, guidance=ShuffledEvents(), filter=Admitted()), tasks=tasks)
    trained(run, tmp_path / "run")
    metrics = [json.loads(line)["metrics"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    learned = [m for m in metrics if "reward/component/temporal" in m]
    assert len(learned) == 2 and all(m["filter/graded"] == 2 * m["filter/kept"] == 8 for m in learned)
