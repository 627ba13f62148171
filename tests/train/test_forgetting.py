"""What a run was once able to do and is no more, also of a run that was killed."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_runs import SCHEDULE, at_named, in_child, reinforce, resumed, tiny, warm_up

from assay.runs.journal import Journal
from assay.runtime.settings import AdamW, LearnerSettings
from assay.train.driver import train
from assay.train.evaluate import passed_ids
from assay.train.run import Evaluation

RUN = replace(
    tiny(),
    stages=(
        warm_up(steps=60),
        reinforce(steps=4, levels=(3,), learner=LearnerSettings(optimizer=AdamW(lr=0.03), schedule=SCHEDULE)),
    ),
    evaluation=Evaluation(every=2, per_level=8, final_per_level=8),
    checkpoint_every=2,
)


@pytest.mark.slow
def test_what_was_passed_before_and_fails_now_is_forgotten(tmp_path: Path) -> None:
    def killed() -> None:
        at_named("renamed:step_0000062", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(RUN, tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    resumed(tmp_path / "run")
    journal = Journal(tmp_path / "run")
    told = {r["step"]: r["metrics"].get("forgetting/greedy") for r in journal.records("metrics")}
    before: set[str] = set()
    expected: dict[int, float] = {}
    for record in (r for r in journal.records("evals") if r["mode"] == "greedy"):
        now = passed_ids(record["items"], RUN.evaluation.threshold)
        judged = before & {item["id"] for item in record["items"] if item["values"]}
        if judged:
            expected[record["step"]] = len(judged - now) / len(judged)
        before |= now
    found = {step: value for step, value in told.items() if value is not None}
    assert found.keys() <= expected.keys() and {62, 64} <= found.keys()
    assert found == {step: pytest.approx(expected[step]) for step in found}
    assert max(found[62], found[64]) > 0.0, "a learning rate of .03 forgets something"
