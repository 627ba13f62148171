"""Before a run begins it says on how many items it will be evaluated, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay.recipes import on_rows
from assay.train import Evaluation, Run
from assay.train.describe_settings import explain_settings
from assay.train.evaluate import held_out

ROWS = [{"prompt": f"S{n}>", "answer": "".join(sorted(str(n)))} for n in range(1000, 1400)]


def said(run: Run) -> str:
    (line,) = [line for line in explain_settings(run, Path("nowhere")) if line.startswith("evaluates on")]
    return line


def test_the_numbers_are_those_of_the_items_that_are_drawn() -> None:
    run = on_rows({"train": ROWS[:200], "test": ROWS[200:]})
    plan = run.evaluation
    whole, part = (len(held_out(run.tasks, plan.levels, n)) for n in (plan.final_per_level, plan.per_level))
    assert (whole, part) == (128, 16)
    assert said(run) == (
        "evaluates on 128 held-out items of 200 (Evaluation.final_per_level=128 of each level) at both ends, and on 16 every 20 "
        "steps between, each answered once greedily and once sampled"
    )
    few = on_rows({"train": ROWS[:200], "test": ROWS[200:210]})
    assert said(few).startswith("evaluates on 10 held-out items at both ends, and on 10 every 20 steps")
    ends = replace(few, evaluation=Evaluation(every=0, n=4))
    assert said(ends) == "evaluates on 10 held-out items at both ends, each answered once greedily and 4 times sampled"


def test_training_rows_and_generated_tasks_are_called_what_they_are() -> None:
    assert said(on_rows(ROWS[:4], test_share=0.0)).startswith("evaluates on 4 training items at both ends")
    suite = on_rows(ROWS[:8], evaluate="countdown")
    levels = sum(len(of_arm) for of_arm in suite.evaluation.levels.values())  # pyright: ignore[reportAttributeAccessIssue]
    assert said(suite).startswith(f"evaluates on {128 * levels:,} held-out items at both ends")
