"""Rows that no file can hold: half of a surrogate pair, numbers beyond 1e308, in every reader."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import imitate, imitating, only_rl, prefer, preferring

from assay.cli.tasks import tasks_command
from assay.core.errors import DataError
from assay.runtime.text.chat import Chat
from assay.tasks import Rows
from assay.train import train
from assay.train.data import rows_of

HALF = "cut \ud83d"
SHOWN = {"prompt": "S21>", "completion": "12"}
PAIR = {"prompt": "S21>", "chosen": "12", "rejected": "21"}


@pytest.mark.parametrize("field", ["prompt", "completion", "source"])
def test_given_rows_name_row_and_field(field, tmp_path):
    with pytest.raises(DataError, match=rf"Imitate.data, row 2, field '{field}': character 5, .* half of a surrogate pair"):
        imitate(data=[SHOWN, SHOWN | {field: HALF}], batch=1)
    with pytest.raises(DataError, match=r"Prefer.data, row 1, field 'rejected'\[0\]\['content'\]"):
        prefer(data=[PAIR | {"rejected": [{"role": "assistant", "content": HALF}]}], batch=1)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (SHOWN, SHOWN | {field: HALF})))
    with pytest.raises(DataError, match=rf"rows.jsonl, line 2, field '{field}': character 5"):
        rows_of(imitate(data=str(path)))


def test_numbers_beyond_floats_are_refused_as_nan_is(tmp_path):
    path = tmp_path / "rows.jsonl"
    for text, says in (("1e999", "the number 1e999 is beyond 1e308"), ("NaN", "NaN is not JSON")):
        path.write_text(json.dumps(SHOWN)[:-1] + f', "x": {text}}}\n')
        with pytest.raises(DataError, match=rf"rows.jsonl, line 1: {says}"):
            rows_of(imitate(data=str(path)))


def test_runs_leave_nothing_behind(tmp_path):
    rows = [{"prompt": f"S{i}>", "answer": str(i)} for i in range(40)]
    with pytest.raises(DataError, match="row 41, field 'answer'"):
        train(replace(only_rl(steps=1), tasks=Rows([*rows, {"prompt": "x", "answer": HALF}])), tmp_path / "a")
    with pytest.raises(DataError, match=r"run.toml cannot be written: .*ud83d' ends with half of a surrogate pair"):
        model = replace(only_rl(steps=1).model, chat=Chat(system=HALF))
        train(replace(only_rl(steps=1), model=model), tmp_path / "b")
    assert not any(path.name == "run.toml" for path in tmp_path.rglob("*"))
    train(imitating(imitate(data=[SHOWN | {"source": "é漢😀"}], batch=1, steps=1)), tmp_path / "c")
    train(preferring(prefer(data=[PAIR | {"source": "é漢😀"}], batch=1, steps=1)), tmp_path / "d")


def run(*args: Any) -> int:
    return tasks_command(list(map(str, args)))


def test_import_sets_such_rows_aside_and_leaves_no_parts(tmp_path: Path, capsys) -> None:
    given = [{"question": "1+1?", "answer": "2"}, {"question": HALF, "answer": "3"}, {"question": "2+2?", "answer": HALF}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    assert run("import", tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--json") == 0
    counts = json.loads(capsys.readouterr().out)
    assert (counts["taken"], counts["rejected"]) == (1, {"read": 2})
    refused = [json.loads(line) for line in (tmp_path / "out.rejected.jsonl").read_text().splitlines()]
    assert [row["number"] for row in refused] == [2, 3]
    assert "field 'question': character 5" in refused[0]["reason"] and "field 'answer'" in refused[1]["reason"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "out.rejected.jsonl"]


def test_an_import_that_fails_leaves_no_parts(tmp_path: Path, monkeypatch) -> None:
    from assay.tasks.exchange import importing

    def broken(*_: Any, **__: Any) -> Any:
        yield {"prompt": "x"}
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        importing.write_rows(broken(), tmp_path / "out.jsonl")
    assert list(tmp_path.iterdir()) == []
