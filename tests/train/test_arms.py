"""Several arms: which levels of which, accuracies and gates arm by arm, and a single arm's metrics as they always were."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import SHAPE, reinforce, warm_up

from assay.cli.options import parse_with
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, GateError, UnknownNameError
from assay.core.rollout import Sampling
from assay.guide import Frontier
from assay.measure import read_run
from assay.tasks import TaskMixture
from assay.train.driver import train
from assay.train.evaluate import by_arm, summary
from assay.train.levels import arms_of
from assay.train.models import Scratch
from assay.train.reinforce import Reinforce, Until
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks import Reverse, SortDigits

BOTH = TaskMixture(name="both", sources=(SortDigits(levels=(1, 2, 3)), Reverse(levels=(2, 3))))


@dataclass(frozen=True)
class Nothing:
    """No options of a command's own."""


def run(**changes: Any) -> Run:
    """Sorting is shown at two levels and practised at three; reversal is only shown."""
    given: dict[str, Any] = {
        "name": "arms",
        "model": Scratch(shape=SHAPE),
        "tasks": BOTH,
        "stages": (
            warm_up(steps=3, batch=8, demonstrations=0, levels={"sort": (1, 2), "reverse": (2, 3)}),
            reinforce(steps=2, levels={"sort": (1, 2, 3)}, curriculum=Frontier(start={"sort": 3})),
        ),
        "sampling": Sampling(max_new_tokens=5),
        "evaluation": Evaluation(every=0, final_per_level=2, kl_to_base=False),
    }
    return Run(**(given | changes))


def test_levels_by_arm() -> None:
    assert arms_of(BOTH, ()) == {"sort": (1, 2, 3), "reverse": (2, 3)}
    assert arms_of(BOTH, (1, 2)) == {"sort": (1, 2), "reverse": (2,)}
    assert arms_of(BOTH, (1,)) == {"sort": (1,)}
    assert arms_of(BOTH, {"sort": (3, 1)}) == {"sort": (1, 3)}


@pytest.mark.parametrize("part", [WarmUp, Reinforce, Evaluation])
def test_levels_by_arm_are_values(part: Any) -> None:
    one, two = part(levels={"sort": [1, 2]}), part(levels={"sort": (1, 2)})
    assert one == two and hash(one) == hash(two)
    for wrong in ({}, {"sort": ()}):
        with pytest.raises(ConfigError, match=rf"{part.__name__}.levels=.*give each arm its levels, or \(\)"):
            part(levels=wrong)


def test_arms_and_levels_that_are_not_there_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown arm at WarmUp\.levels of 'both' 'srot': did you mean 'sort'"):
        run(stages=(warm_up(levels={"srot": (1,)}),))
    with pytest.raises(
        ConfigError, match=r"Evaluation\.levels\.reverse: arm 'reverse' of task family 'both' has no level 1; the near"
    ):
        run(evaluation=Evaluation(levels={"reverse": (1,)}))


def test_a_run_with_levels_by_arm_is_written_read_and_changed() -> None:
    whole = run()
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(whole)))) == whole
    _, shorter = parse_with(Nothing, whole, ["--stages.0.steps", "2"], "assay train", "")
    assert shorter == replace(whole, stages=(replace(whole.stages[0], steps=2), whole.stages[1]))


@pytest.mark.slow
def test_each_stage_takes_its_own_arms_and_the_report_tells_them_apart(tmp_path: Path) -> None:
    folder = train(run(), tmp_path / "run").folder
    lines = [json.loads(x)["metrics"] for x in (folder / "metrics.jsonl").read_text().splitlines()]
    drawn = {name for m in lines for name in m if name.startswith("curriculum/success/")}
    assert drawn == {f"curriculum/success/sort/level_{n}" for n in (1, 2, 3)}
    measured = {n.removeprefix("eval/greedy/") for n in lines[-1] if n.startswith("eval/greedy/")}
    cells = {"sort/level_1", "sort/level_2", "sort/level_3", "reverse/level_2", "reverse/level_3"}
    assert measured == {"all", "level_1", "level_2", "level_3", "sort/all", "reverse/all"} | cells
    view = read_run(folder)
    last = view.final("greedy")
    assert last is not None and last.arms == ("reverse", "sort")
    assert last.cells == (("reverse", 2), ("reverse", 3), ("sort", 1), ("sort", 2), ("sort", 3))
    assert {i.arm for i in last.only(arm="sort").items} == {"sort"} and len(last.only(2, "reverse").items) == 2
    said = subprocess.run(
        [sys.executable, "-m", "assay", "runs", "show", str(folder)], capture_output=True, text=True, check=True
    )
    assert "arm and level" in said.stdout and "reverse 3" in said.stdout


ITEMS = [
    {"arm": "a", "level": 1, "values": [1.0]},
    {"arm": "a", "level": 2, "values": [0.0]},
    {"arm": "b", "level": 1, "values": [1.0]},
    {"arm": "c", "level": 1, "values": []},
]


def test_accuracy_by_arm_by_hand() -> None:
    assert summary("greedy", ITEMS, 1.0) == {
        "eval/greedy/all": pytest.approx(2 / 3),
        "eval/greedy/level_1": 1.0,
        "eval/greedy/level_2": 0.0,
        "eval/greedy/a/all": 0.5,
        "eval/greedy/a/level_1": 1.0,
        "eval/greedy/a/level_2": 0.0,
        "eval/greedy/b/all": 1.0,
        "eval/greedy/b/level_1": 1.0,
    }
    assert summary("greedy", ITEMS[:2], 1.0) == {"eval/greedy/all": 0.5, "eval/greedy/level_1": 1.0, "eval/greedy/level_2": 0.0}
    assert by_arm(ITEMS, 1.0) == {"a": 0.5, "b": 1.0, "c": 0.0}


def test_the_gate_holds_for_each_arm_that_is_evaluated(tmp_path: Path) -> None:
    shown = warm_up(steps=1, batch=8, demonstrations=0, levels={"sort": (1, 2), "reverse": (2,)}, gate=0.99)
    both = run(stages=(shown,))
    assert shown.gate_levels(both) == {"sort": (1, 2), "reverse": (2,)}
    helped = replace(both, evaluation=replace(both.evaluation, levels={"sort": (3,)}))
    assert shown.gate_levels(helped) == {"sort": (1, 2)}
    with pytest.raises(GateError, match="of the arm where"):
        train(both, tmp_path / "run")
    assert '"kind": "gate"' in (tmp_path / "run" / "events.jsonl").read_text()
    (event,) = [e for e in read_run(tmp_path / "run").events if e.kind == "gate"]
    assert (
        event.message.startswith("temperature-1 accuracy on the demonstrated levels: sort 0.") and ", reverse 0." in event.message
    )


def test_a_stage_may_end_at_an_arms_accuracy() -> None:
    assert Until(metric="eval/greedy/sort/level_3").metric.endswith("level_3")
    assert Until(metric="eval/sampled/arithmetic/expression/all").at_least == 1.0
    with pytest.raises(UnknownNameError):
        Until(metric="eval/greedy/sort")
