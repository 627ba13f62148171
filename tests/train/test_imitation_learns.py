"""What demonstrations teach: a model of another family learns from a file, and RL in the same run goes on from there."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hub_cases import hub_model
from test_hub_runs import accuracy, hub_run, proofs

from assay.runtime import AdamW, LearnerSettings, save_model
from assay.train import Evaluation, Imitate, Reinforce, train
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(2, 3))


def demonstrations(path: Path, n: int = 600, wrong: float = 0.4) -> Path:
    """Training questions with their answers in a file, a share of which is wrong."""
    rng = random.Random(0)
    rows = []
    for i in range(n):
        task = TASKS.task("sort", 2 + i % 2, "train", i // 2)
        said = list(task.private["answer"])
        if rng.random() < wrong:
            said[rng.randrange(len(said))] = rng.choice("0123456789")
        turns = (("user", task.public["prompt"]), ("assistant", "".join(said)))
        rows.append({"messages": [{"role": role, "content": text} for role, text in turns]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.prove
@pytest.mark.parametrize("family", ["gpt2"])
def test_sft_on_a_file_teaches_and_rl_improves(family: str, tmp_path: Path) -> None:
    save_model(hub_model(family), tmp_path / "base")
    learner = LearnerSettings(optimizer=AdamW(lr=2e-3))
    stages = (
        Imitate(data=demonstrations(tmp_path / "shown.jsonl"), steps=200, batch=32, learner=learner),
        Reinforce(steps=60, groups=8, group_size=8, learner=replace(learner, optimizer=AdamW(lr=5e-4))),
    )
    evaluation = Evaluation(every=0, final_per_level=64, n=2)
    run = hub_run(tmp_path / "base", None, tasks=TASKS, stages=stages, evaluation=evaluation, checkpoint_every=100)
    assert train(run, tmp_path / "run").finished
    lines = map(json.loads, (tmp_path / "run" / "evals.jsonl").read_text().splitlines())
    found = {(e["step"], e["mode"]): accuracy(e) for e in lines}
    base, taught, practised = (found[step, "sampled"] for step in (0, 200, 260))
    assert base < 0.05 and taught > base + 0.1 and practised > taught + 0.1
    assert len(proofs(tmp_path / "run")) == 60
