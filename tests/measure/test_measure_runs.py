"""Reading run folders, whole, partial and damaged; comparing runs; tables and their JSON."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.core.errors import DataError
from assay.measure.accuracy_at_k import eval_items, tabulate
from assay.measure.intervals import Interval, Paired
from assay.measure.runs import RolloutLine, RunView, compare, read_run
from assay.measure.tables import (
    comparison_json,
    comparison_table,
    evaluation_json,
    evaluation_table,
    paired_json,
    paired_table,
    render,
)

Make = Callable[..., Path]


def test_a_whole_run(run_folder: Make) -> None:
    folder = run_folder()
    (folder / "done.json").write_text("{}", encoding="utf-8")
    run = read_run(folder)
    assert (run.name, run.seed, run.threshold, run.planned_steps, run.last_step) == ("run", 3, 1.0, 220, 220)
    assert (run.finished, run.problems) == (True, ())
    assert [e.step for e in run.evaluations("greedy")] == [20, 45, 70, 95, 120, 145, 170, 195, 220]
    base, final = run.base("greedy"), run.final("greedy")
    assert base is not None
    assert final is not None
    assert (base.step, final.step, len(base.items), final.levels) == (20, 220, 288, tuple(range(2, 11)))
    assert final.accuracy().value == pytest.approx(sum(final.scores().values()) / 288)
    assert len(final.only(2).items) == 32
    assert run.history()["reward/mean"].span == (21, 220)


def test_evaluations_fill_in_for_metrics_that_lack_them(run_folder: Make) -> None:
    folder = run_folder()
    lines = [json.loads(x) for x in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["metrics"] = {k: v for k, v in line["metrics"].items() if not k.startswith("eval/")}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    history = read_run(folder).history()
    assert history["eval/greedy/all"].steps.tolist() == [20, 45, 70, 95, 120, 145, 170, 195, 220]
    assert [s for s, _, _ in history.stages] == ["warm-up", "rl"]
    assert history.eval_items == 108
    assert history.learning()["eval/greedy/all"].span == (20, 220)


def test_of_two_evaluations_at_a_step_the_larger_counts(run_folder: Make) -> None:
    folder = run_folder()
    small = {"step": 220, "split": "test", "mode": "greedy", "items": [{"id": "x", "arm": "s", "level": 2, "values": [0]}]}
    train = small | {"split": "train", "step": 300}
    with (folder / "evals.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(small) + "\n" + json.dumps(train) + "\n")
    final = read_run(folder).final("greedy")
    assert final is not None
    assert (final.step, len(final.items)) == (220, 288)


def test_an_early_kill_is_told_not_raised(run_folder: Make) -> None:
    folder = run_folder(last=33)
    metrics = folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    (folder / "rollouts.jsonl").unlink()
    (folder / "events.jsonl").write_text("", encoding="utf-8")
    run = read_run(folder)
    assert run.last_step == 32
    assert run.problems == (
        "metrics.jsonl, line 33: cut off in the middle, as a kill leaves it; it is not used",
        "rollouts.jsonl is missing",
    )


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("metrics.jsonl", "{oops", r"metrics\.jsonl, line 2: not JSON"),
        ("metrics.jsonl", '{"step": 1}', r"metrics\.jsonl, line 2: field 'metrics' is missing"),
        ("metrics.jsonl", '{"step": "x", "metrics": {}}', r"line 2: invalid literal"),
        ("metrics.jsonl", '{"step": 1, "metrics": {"a": "high"}}', r"line 2: could not convert"),
        ("metrics.jsonl", "[1, 2]", r"line 2: list indices"),
        ("metrics.jsonl", '{"step": 1, "metrics": [1]}', r"line 2: 'list' object"),
        (
            "evals.jsonl",
            '{"step": 1, "split": "test", "mode": "greedy", "items": [{"id": 1}]}',
            r"evals\.jsonl, line 2: evaluation item 0",
        ),
        ("events.jsonl", '{"step": 1, "kind": "x"}', r"events\.jsonl, line 2: field 'message'"),
        ("rollouts.jsonl", '{"step": 1}', r"rollouts\.jsonl, line 2: field 'id'"),
    ],
)
def test_damage_is_named_by_file_and_line(run_folder: Make, name: str, line: str, said: str) -> None:
    folder = run_folder(last=30)
    first, rest = (folder / name).read_text(encoding="utf-8").split("\n", 1)
    (folder / name).write_text(f"{first}\n{line}\n{rest}", encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_run(folder)


@pytest.mark.parametrize(("name", "text"), [("run.toml", "= 3"), ("versions.json", "{"), ("versions.json", "[1]")])
def test_damaged_settings_are_named(run_folder: Make, name: str, text: str) -> None:
    folder = run_folder(last=30)
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=name):
        read_run(folder)


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a folder"):
        read_run(tmp_path / "none")
    with pytest.raises(DataError, match="no file of a run"):
        read_run(tmp_path)


def test_settings_that_say_little(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('stages = [{ kind = "x" }]\nevaluation = 3\n', encoding="utf-8")
    run = read_run(tmp_path)
    assert (run.seed, run.threshold, run.planned_steps, run.last_step) == (None, 1.0, None, 0)
    assert (run.base("greedy"), run.final("greedy")) == (None, None)
    assert RunView(folder=tmp_path, settings={}, versions={}).planned_steps is None


def test_primary_of_a_rollout() -> None:
    def line(**components: float) -> RolloutLine:
        return RolloutLine(
            step=1,
            stage="rl",
            id="r",
            task="t",
            arm="a",
            level=1,
            prompt="",
            text="",
            stop="done",
            components=components,
            fault="none",
            length=1,
        )

    assert line(reward=0.2, correct=1.0).primary == 1.0
    assert line(reward=0.2, style=0.0).primary == 0.2
    assert line(style=0.5).primary == 0.5
    assert line(style=0.5, tone=0.1).primary is None


def test_comparison_pairs_where_items_coincide(run_folder: Make) -> None:
    runs = [read_run(run_folder("healthy", name="a")), read_run(run_folder("collapsed", name="b"))]
    first, second = compare(runs)
    assert (first.name, first.step, first.versus_first) == ("a", 220, None)
    assert first.gain is not None
    assert first.gain.difference.low > 0.3
    assert second.versus_first is not None
    assert second.versus_first.difference.high < -0.5
    assert second.versus_first.p_value < 0.001
    assert second.versus_first.difference.n == 288
    with pytest.raises(DataError, match="at least one run"):
        compare([])


def test_comparison_without_evaluation_or_common_items(run_folder: Make, tmp_path: Path) -> None:
    bare = run_folder(last=30, name="bare")
    (bare / "evals.jsonl").unlink()
    other = run_folder(last=30, name="other")
    text = (other / "evals.jsonl").read_text(encoding="utf-8").replace("sort-", "else-")
    (other / "evals.jsonl").write_text(text, encoding="utf-8")
    rows = compare([read_run(run_folder(last=30, name="one")), read_run(bare), read_run(other)])
    assert (rows[1].accuracy, rows[1].gain, rows[1].versus_first, rows[1].step) == (None, None, None, 30)
    assert rows[2].accuracy is not None
    assert (rows[2].gain, rows[2].versus_first) == (None, None)
    text = render(comparison_table(rows, title="runs"))
    assert "bare" in text
    assert "–" in text


def test_evaluation_table_and_json_say_the_same() -> None:
    records = [{"id": f"t{i}", "arm": "s", "level": 1 + i % 2, "values": [i % 2, 1]} for i in range(6)]
    table = tabulate(eval_items(records))
    text = render(evaluation_table(table, "held out", tasks=True), 120)
    assert "held out" in text
    assert re.findall(r"^ (t\d) ", text, re.MULTILINE) == [f"t{i}" for i in range(6)]
    assert "0.750 (0." in text
    found = evaluation_json(table)
    assert json.loads(json.dumps(found)) == found
    assert found["all"]["metrics"]["avg@2"]["value"] == 0.75
    assert [c["name"] for c in found["cells"]] == ["s level 1", "s level 2"]
    assert (found["attempts"], len(found["tasks"])) == (2, 6)
    assert "t0" not in render(evaluation_table(table))


def test_paired_and_comparison_json(run_folder: Make) -> None:
    rows = [("level 2", Paired(Interval(0.1, 0.0, 0.2), 0.0004, 3, 1, 9))]
    assert "<0.001" in render(paired_table(rows))
    assert paired_json(rows)[0]["difference"]["high"] == 0.2
    compared = compare([read_run(run_folder(last=70, name="a")), read_run(run_folder(last=70, name="b"))])
    found = comparison_json(compared)
    assert found[1]["versus_first"]["p_value"] == 1.0
    assert json.loads(json.dumps(found)) == found
    text = render(comparison_table(compared))
    assert "+0.000" in text
