"""`assay curate` by what a run saw of its rows (LIMR, 1-shot RLVR, the hardest), and `assay guides`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.curate.scores import history_deviation, learning_impact
from assay.guide.catalog import guides
from assay.recipes import on_rows
from assay.runs import RowHistory
from assay.runs.row_history import FILE
from assay.select import row_measurements, write_measurements
from assay.train.record import write_run

ROWS = [{"prompt": f"S{n}>", "answer": "".join(sorted(str(n))), "id": f"row {n}"} for n in (31, 42, 53, 64)]
CURVES = [[0.0, 0.5, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]


def line(step: int, source: Any, success: list[float]) -> dict[str, Any]:
    tasks = [source.task("rows", 1, "train", i) for i in range(4)]
    named = {str(row["prompt"]): value for row, value in zip(ROWS, success, strict=True)}
    return {
        "step": step,
        "stage": "rl",
        "id": [t.id for t in tasks],
        "arm": ["rows"] * 4,
        "level": [1] * 4,
        "index": [4 * (step - 1) + i for i in range(4)],
        "rollouts": [4] * 4,
        "reward": [named[t.public["prompt"]] for t in tasks],
        "length": [3.0] * 4,
        "kept": [1] * 4,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three epochs over four rows, with curves of its own."""
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS), encoding="utf-8")
    made = on_rows(ROWS, steps=3, test_share=0.0)
    folder = tmp_path / "all"
    folder.mkdir()
    write_run(folder, made)
    lines = [line(k + 1, made.tasks, [curve[k] for curve in CURVES]) for k in range(3)]
    (folder / FILE).write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    return folder


def kept(out: Path) -> list[str]:
    return [json.loads(row)["id"] for row in (out / "train.jsonl").read_text(encoding="utf-8").splitlines()]


def test_measurements_name_rows_and_have_their_curves_and_last_passes(run: Path) -> None:
    found = {entry["id"]: entry for entry in row_measurements(run)}
    assert [found[row["id"]]["history"] for row in ROWS] == CURVES
    assert [found[row["id"]]["passed"] for row in ROWS] == [4, 4, 0, 2] and {e["n"] for e in found.values()} == {4}
    history = RowHistory.read(run)
    assert history is not None and history.curves().steps.tolist() == [1, 2, 3]
    place = run.parent / "measured.jsonl"
    before = write_measurements(run, place).stat().st_mtime_ns
    assert write_measurements(run, place).stat().st_mtime_ns == before  # not written twice


def test_a_row_whose_rollouts_had_no_verdict_is_not_measured(assay, run: Path) -> None:
    lines = [json.loads(text) for text in (run / FILE).read_text(encoding="utf-8").splitlines()]
    source = on_rows(ROWS, steps=3, test_share=0.0).tasks
    gone = source.task("rows", 1, "train", 0)
    for entry in lines:
        at = entry["id"].index(gone.id)
        entry["reward"][at], entry["rollouts"][at] = None, 0
    (run / FILE).write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    assert gone.private["row"]["id"] not in {entry["id"] for entry in row_measurements(run)}
    words = ["curate", "rows.jsonl", "out", "--near", "0", "--test-share", "0", "--hardest", "all", "--sizes", "9"]
    done = [assay(*words), assay(*words, "--fresh")]
    assert [x.code for x in done] == [0, 0] and "no attempts 1" in done[1].out
    assert len(kept(run.parent / "out")) == 3


def test_rows_without_an_id_are_named_by_what_they_ask(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Sort."}, {"role": "user", "content": "S31>"}]
    rows = [{"prompt": "S42>", "answer": "24"}, {"messages": turns, "answer": "13"}]
    made = on_rows(rows, steps=3, test_share=0.0)
    write_run(tmp_path, made)
    tasks = [made.tasks.task("rows", 1, "train", i) for i in range(2)]
    many = {"arm": ["rows"] * 2, "level": [1, 1], "index": [0, 1], "rollouts": [4, 4], "length": [3, 3], "kept": [1, 1]}
    lines = [{"step": n, "id": [t.id for t in tasks], "reward": [0.5, 0.5], **many} for n in (1, 2)]
    (tmp_path / FILE).write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    assert sorted((str(entry["prompt"]) for entry in row_measurements(tmp_path)), key=len) == ["S42>", str(turns)]


def test_curation_takes_a_run_in_place_of_a_file(assay, run: Path) -> None:
    words = ["--near", "0", "--test-share", "0"]
    scores = dict(zip([r["id"] for r in ROWS], learning_impact(CURVES).tolist(), strict=True))
    assert assay("curate", "rows.jsonl", "few", *words, "--limr", "all", "--limr-above", "0.5").code == 0
    assert sorted(kept(run.parent / "few")) == sorted(name for name, score in scores.items() if score > 0.5)
    assert assay("curate", "rows.jsonl", "one", *words, "--varied", "all").code == 0
    assert kept(run.parent / "one") == [ROWS[int(history_deviation(CURVES).argmax())]["id"]] == ["row 31"]
    assert assay("curate", "rows.jsonl", "hard", *words, "--hardest", "all", "--sizes", "2").code == 0
    assert sorted(kept(run.parent / "hard")) == ["row 53", "row 64"]
    manifest = json.loads((run.parent / "few" / "manifest.json").read_text(encoding="utf-8"))
    (measured,) = manifest["references"]["learning_impact"]
    assert measured["path"] == "few/measured/all.jsonl" and measured["digest"]


def test_a_run_without_a_history_or_with_too_short_a_one_is_refused(assay, run: Path) -> None:
    short = (run / FILE).read_text(encoding="utf-8").splitlines()[0]
    (run / FILE).write_text(short + "\n", encoding="utf-8")
    done = assay("curate", "rows.jsonl", "out", "--limr", "all")
    assert done.code == 2 and "4 groups on 4 rows are 1.0 epochs" in done.err
    (run / FILE).unlink()
    done = assay("curate", "rows.jsonl", "out", "--varied", "all")
    assert done.code == 2 and "has no history of rows" in done.err


def test_guides_are_listed_and_shown(assay) -> None:
    rows = {r["name"]: r for r in assay("guides", "list", "--json").json}
    assert list(rows) == list(guides())
    assert rows["Dump"]["source"] == "DUMP (arXiv 2504.09710)" and rows["Dump"]["status"] == "published"
    assert [r["name"] for r in assay("guides", "list", "--kind", "screen", "--json").json] == ["SkipSolved"]
    shown = assay("guides", "show", "hardfocus").out
    assert shown.startswith("DRIVE:") and "--stages.0.curriculum.kind HardFocus" in shown and "`" not in shown
    assert assay("guides", "show", "HardFocus", "--json").json["settings"]["warm"] == 32
    assert "assay guides list" in assay("guides").out
    for words, said in ((("show", "Dumb"), "Dump"), (("list", "--kind", "x"), "row curriculum"), (("draw",), "'list' or 'show")):
        done = assay("guides", *words)
        assert done.code == 2 and said in done.err
