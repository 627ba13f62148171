"""The page about judges: its scorer keeps what scorers promise, and trains from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from assay.core.scoring import RolloutGroup
from assay.testing import JudgeServer, rollout_of
from assay.verify import task_and_rollout

PAGE = (Path(__file__).parents[2] / "docs/add/judge.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "my_judge.py"
    path.write_text(BLOCKS[0])
    return path


def test_the_scorer_of_the_page_passes_the_check_of_the_page() -> None:
    here: dict[str, Any] = {"__name__": "page"}
    for block in BLOCKS:
        exec(compile(block, "judge.md", "exec"), here)
    task, _ = task_and_rollout("4", "4")
    rollouts = tuple(rollout_of(task, text, id=text) for text in ("please", "go"))
    here["test_polite"](RolloutGroup(task=task, context=rollouts[0].context, rollouts=rollouts))
    assert len([line for line in BLOCKS[0].split("@dataclass")[1].splitlines() if line.strip()]) <= 15 + 1


def test_a_judge_trains_from_the_command_line(assay, mine: Path, page: Path, tmp_path: Path) -> None:
    def reply(messages: list[Any]) -> str:
        return str(min(9, messages[-1].content.count("1")))

    words = ["mine.py:tiny", "--stages.0.reward.kind", "my_judge.py:Polite"]
    said = assay("train", *words, "--folder", "run", "--plain", "--no-report")
    assert said.code == 2 and "unknown judge in Run.judges, which Polite asks: 'critic'" in said.err
    with JudgeServer(reply) as server:
        words += ["--judges.0.kind", "Judge", "--judges.0.name", "critic", "--judges.0.url", server.url]
        said = assay("train", *words, "--folder", "run", "--plain", "--no-report")
        assert said.code == 0, said.err
        asked = server.asked.total()
        assert asked > 0
    metrics = [json.loads(line)["metrics"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert sum(m.get("verify/judge/critic/asked", 0) for m in metrics) == asked
    assert all("correct" not in name for m in metrics for name in m if name.startswith("reward/component"))


def test_a_rubric_and_the_probability_of_a_reference_are_options(assay, mine: Path) -> None:
    rubric = "--stages.0.reward.rubric"
    said = assay(
        "explain",
        "mine.py:tiny",
        "--stages.0.reward.kind",
        "RubricJudge",
        "--judges.0.kind",
        "Judge",
        rubric + ".kind",
        "Rubric",
        rubric + ".criteria.0.kind",
        "Criterion",
        rubric + ".criteria.0.name",
        "clear",
        rubric + ".criteria.0.text",
        "Is it?",
    )
    assert said.code == 0 and re.search(r"name +'clear'", said.out), said.err
    said = assay(
        "explain", "mine.py:tiny", "--stages.0.reward.kind", "ReferenceProbability", "--stages.0.filter.kind", "Admitted"
    )
    assert said.code == 0 and re.search(r"reward +ReferenceProbability", said.out), said.err
