"""Looking at rollouts: filters, two evaluations item by item, and the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.core.errors import DataError
from assay.measure import RolloutFilter, diff_items, evaluation_at, read_rollouts, read_run, write_report
from assay.measure.rollout_line import RolloutLine
from assay.measure.rollouts_page import MOST, evenly, write_rollouts_page
from assay.runs import RolloutFiles

Make = Callable[..., Path]


def line(step: int, value: float | None, **changes: Any) -> dict[str, Any]:
    """A record; None is a rollout without verdict."""
    fault = "none" if value is not None else "verifier"
    given = {
        "step": step,
        "stage": "rl",
        "id": f"s{step}",
        "task": "sort/3/train/1",
        "arm": "sort",
        "level": 3,
        "prompt": "S312>",
        "text": "123",
        "stop": "done",
        "components": {} if value is None else {"correct": value},
        "fault": fault,
        "length": 4,
        "gold": "123",
        "advantage": 0.5,
        "reason": "",
    }
    return given | changes


def evaluation(step: int, values: dict[str, list[float]], answers: dict[str, str] | None = None) -> dict[str, Any]:
    items = [
        {"id": name, "arm": "sort", "level": 3, "values": v, "answers": [(answers or {}).get(name, "?")] * len(v)}
        for name, v in values.items()
    ]
    return {"step": step, "stage": "rl", "split": "test", "mode": "greedy", "items": items}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recorded steps, and evaluations at three."""
    path = tmp_path / "run"
    path.mkdir()
    (path / "run.toml").write_text('name = "sort"\n')
    for name in ("metrics", "rollouts", "events"):
        (path / f"{name}.jsonl").write_text("")
    evals = [
        evaluation(0, {"a": [1], "b": [0], "c": [0], "d": [1], "e": [1]}, {"a": "1", "b": "2"}),
        evaluation(5, {"a": [1], "b": [0], "c": [0], "d": [1]}),
        evaluation(9, {"a": [0], "b": [1], "c": [0], "d": [1]}, {"a": "9", "b": "8"}),
    ]
    (path / "evals.jsonl").write_text("".join(json.dumps(e) + "\n" for e in evals))
    files = RolloutFiles(path)
    files.write(1, [line(1, 0.0), line(1, 1.0, level=4, prompt="S77>")], of=4)
    files.write(25, [line(25, 0.5), line(25, None, reason="timeout"), line(25, 0.0, fault="policy")], of=3)
    files.write_items([{"id": "a", "arm": "sort", "level": 3, "prompt": "S1>", "gold": "1"}])
    return path


def test_filters(folder: Path) -> None:
    found = read_rollouts(folder)
    assert [r.verdict for r in found.lines] == ["wrong", "right", "wrong", "faulty", "wrong"]
    assert (found.sampled, found.steps, found.whole) == (7, (1, 25), True)
    wanted = {
        RolloutFilter(): 5,
        RolloutFilter(verdicts=("wrong",)): 3,
        RolloutFilter(verdicts=("right", "faulty")): 2,
        RolloutFilter(level=4): 1,
        RolloutFilter(step=25): 3,
        RolloutFilter(task="S77"): 1,
        RolloutFilter(task="train/1", verdicts=("wrong",), step=1): 1,
        RolloutFilter(task="no such"): 0,
    }
    assert {f: len(found.select(f)) for f in wanted} == wanted
    assert (found.lines[3].reason, found.lines[0].gold, found.lines[0].advantage) == ("timeout", "123", 0.5)


def test_one_step(folder: Path) -> None:
    found = read_rollouts(folder, 1)
    assert (len(found.lines), found.sampled, found.steps) == (2, 4, (1, 25))
    with pytest.raises(DataError, match="no recorded rollouts of step 3; the nearest is 1, of 2"):
        read_rollouts(folder, 3)


def test_a_run_without_such_files_has_those_of_its_journal(run_folder: Make) -> None:
    old = run_folder(last=60)
    found = read_rollouts(old)
    assert not found.whole and found.steps == (20, 45) and len(found.lines) == found.sampled == 16
    assert len(read_rollouts(old, 45).lines) == 8
    assert {r.gold for r in found.lines} == {""} and {r.advantage for r in found.lines} == {None}
    (old / "rollouts.jsonl").write_text("")
    with pytest.raises(DataError, match="no recorded rollouts of step 1; it has none"):
        read_rollouts(old, 1)


def test_a_record_that_lacks_a_field_is_named(folder: Path) -> None:
    RolloutFiles(folder).write(30, [{"step": 30}], of=1)
    with pytest.raises(DataError, match="rollouts of step 30: a record lacks 'id'"):
        read_rollouts(folder)


def test_what_changed_between_two_evaluations(folder: Path) -> None:
    run = read_run(folder)
    found = diff_items(run, run, "greedy", (0, None))
    assert {c.id: c.kind for c in found.changes} == {"a": "broken", "b": "fixed", "c": "wrong", "d": "right"}
    assert [c.id for c in found.changes] == ["a", "b", "c", "d"]
    (broken,) = found.of_kind("broken")
    assert (broken.prompt, broken.gold, broken.before, broken.after, broken.was, broken.now) == ("S1>", "1", "1", "9", 1.0, 0.0)
    assert (found.before, found.after, found.only_before, found.only_after) == ("run@0", "run@9", 1, 0)
    assert [c.kind for c in diff_items(run, run, "greedy", (0, 5)).changes] == ["wrong", "wrong", "right", "right"]


def test_evaluations_that_cannot_be_compared(folder: Path, tmp_path: Path) -> None:
    run = read_run(folder)
    with pytest.raises(DataError, match="no greedy evaluation at step 7; the nearest is"):
        evaluation_at(run, "greedy", 7)
    with pytest.raises(DataError, match="no sampled held-out evaluation"):
        diff_items(run, run, "sampled")
    other = replace(run, evals=(replace(run.evals[0], items=(replace(run.evals[0].items[0], id="z"),)),))
    with pytest.raises(DataError, match="no held-out item in common"):
        diff_items(run, other)


# ---- the page ----------------------------------------------------------------------------------------------------------


def data_of(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_page_holds_rollouts_and_items_and_loads_nothing(folder: Path) -> None:
    RolloutFiles(folder).write(30, [line(30, 1.0, text="</script><script>alert(1)</script>", length=9, row="row 7")], of=1)
    write_report(folder)
    page = (folder / "rollouts.html").read_text()
    assert 'href="rollouts.html"' in (folder / "report.html").read_text()
    assert "alert(1)</script>" not in page and page.count("<script") == 2
    assert not re.search(r"https?:|src=|@import|url\(", page) and "width=device-width" in page
    data = data_of(page)
    assert data["rollouts"][-1]["head"] == "step 30, row 7, sort, level 3, 9 tokens"
    assert [r["kind"] for r in data["rollouts"]] == ["wrong", "right", "wrong", "faulty", "wrong", "right"]
    assert data["rollouts"][-1]["texts"][1] == ["", "</script><script>alert(1)</script>"]
    assert data["rollouts"][0]["chips"] == [["correct 0", "warning"], ["advantage +0.50", "note"]]
    assert ["verifier fault", "alarm"] in data["rollouts"][3]["chips"] and ["", "timeout"] in data["rollouts"][3]["texts"]
    assert [c["kind"] for c in data["items"]] == ["broken", "fixed", "wrong", "right"]
    assert "6 of the 8 rollouts of 3 recorded steps" in page
    assert "1 became right, 1 became wrong, 1 stayed right and 1 wrong" in page


@pytest.mark.slow
def test_the_report_links_to_the_page(run_folder: Make) -> None:
    old = run_folder(last=60)
    write_report(old)
    assert 'href="rollouts.html"' in (old / "report.html").read_text()
    assert len(data_of((old / "rollouts.html").read_text())["rollouts"]) == 16
    (old / "rollouts.jsonl").write_text("")
    (old / "evals.jsonl").write_text("")
    assert write_rollouts_page(read_run(old)) is None and not (old / "rollouts.html").exists()


def test_a_page_without_rollouts_or_without_comparable_items(folder: Path) -> None:
    for path in (folder / "rollouts").iterdir():
        path.unlink()
    assert write_rollouts_page(read_run(folder)) and "No rollouts were recorded." in (folder / "rollouts.html").read_text()
    lines = [evaluation(0, {"a": [1]}), evaluation(9, {"z": [1]})]
    (folder / "evals.jsonl").write_text("".join(json.dumps(e) + "\n" for e in lines))
    assert write_rollouts_page(read_run(folder)) is None


def test_a_torn_file_of_rollouts_leaves_the_report(folder: Path) -> None:
    (folder / "rollouts" / "step_00000025.jsonl.gz").write_bytes(b"\x1f\x8b")
    assert "step_00000025.jsonl.gz is damaged" in write_report(folder).read_text()


def test_the_page_is_bounded(folder: Path) -> None:
    r = read_rollouts(folder).lines[0]
    many: list[RolloutLine] = [replace(r, step=i) for i in range(5 * MOST)]
    assert [x.step for x in evenly(many, MOST)[:3]] == [0, 5, 10] and len(evenly(many, MOST)) == MOST
    files = RolloutFiles(folder)
    files.write(40, [line(40, 0.0, text="x" * 50_000) for _ in range(MOST + 50)], of=2000)
    assert write_rollouts_page(read_run(folder))
    page = (folder / "rollouts.html").read_text()
    assert f"{MOST:,} of them are on this page" in page and len(page) < 3_000_000
