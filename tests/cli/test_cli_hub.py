"""Data sets by name, and CSV, from the command line."""

import json
from pathlib import Path

import pytest
from hub_server import COMMIT, cached, hub

from assay.core.errors import ConfigError, DataError
from assay.curate.rows import entries, read_rows

ROWS = [{"question": f"What is {a} + {b}?", "answer": f"It is so.\n#### {a + b}"} for a in range(4) for b in range(4)]


def lines(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    return tmp_path / "hf" / "hub"


@pytest.fixture
def gsm(home) -> Path:
    """In the cache, as the library lays it out."""
    place = cached(home, "dataset", "openai/gsm8k")
    (place / "main").mkdir()
    (place / "main" / "train-0.jsonl").write_text(lines(ROWS[:12]))
    (place / "main" / "test-0.jsonl").write_text(lines(ROWS[12:]))
    (place / "dataset_infos.json").write_text("{}")
    return place


def test_import_by_name(assay, gsm):
    said = assay("tasks", "import", "hub:openai/gsm8k:main/train*", "rows.jsonl")
    assert said.code == 0 and "rows.jsonl: 12 of 12 rows" in said.out and f"from openai/gsm8k at commit {COMMIT}" in said.out
    assert "verifiers: math 12" in said.out, "the name of the data set says what judges it"
    found = assay("tasks", "import", "hub:openai/gsm8k:main/train*", "rows.jsonl", "--force", "--json").json
    assert [f["path"] for f in found["files"]] == [str(gsm / "main" / "train-0.jsonl")] and len(found["files"][0]["digest"]) == 32
    assert found["sources"] == {"openai/gsm8k": 12}


def test_parts_are_chosen_by_whoever_asks(assay, gsm):
    said = assay("tasks", "import", "hub:openai/gsm8k", "rows.jsonl")
    assert (
        said.code == 2
        and "has several parts: main/test-0.jsonl, main/train-0.jsonl; say which, as hub:openai/gsm8k:main/" in said.err
    )
    said = assay("tasks", "import", "hub:openai/gsm8k:other/*", "rows.jsonl")
    assert said.code == 2 and "has it only in part (no file of rows like other/*)" in said.err
    (gsm / "main" / "test-0.jsonl").unlink()
    assert [p.name for p in entries("hub:openai/gsm8k")] == ["train-0.jsonl"]


def test_items_of_the_hub_keep_rows_out(assay, gsm):
    Path("mine.jsonl").write_text(lines([{"prompt": r["question"], "answer": "1"} for r in ROWS]))
    said = assay("curate", "mine.jsonl", "out", "--against", "hub:openai/gsm8k:main/test*", "--near", "0")
    assert said.code == 0, said.err
    kept = {json.loads(line)["prompt"] for line in Path("out/train.jsonl").read_text().splitlines()}
    assert kept and kept <= {r["question"] for r in ROWS[:12]}


def test_what_the_cache_lacks_is_fetched(assay, home, tmp_path, monkeypatch):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "rows.csv").write_text("question,answer\nWhat is 2 + 2?,4\n")
    with hub({"some/rows": tmp_path / "repo"}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert assay("tasks", "import", "hub:some/rows", "rows.jsonl", "--verifier", "math").code == 0
    assert json.loads(Path("rows.jsonl").read_text())["prompt"] == "What is 2 + 2?"


def test_names_that_nobody_has(assay, home):
    for word, told in (
        ("hub:some/rows", "dataset some/rows: it is not in the cache"),
        ("hub:rows", "hub:rows is no name on the hub"),
    ):
        said = assay("tasks", "import", word, "rows.jsonl")
        assert said.code == 2 and told in said.err and said.err.count("\n") == 1 and not Path("rows.jsonl").exists()
    said = assay("tasks", "show", "hub:some/rows")
    assert said.code == 2 and "'assay tasks import hub:some/rows rows.jsonl'" in said.err


def test_csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes('\ufeffprompt,answer\n"a, ""b""\nc",é\n'.encode())
    assert list(read_rows(path)) == [(1, {"prompt": 'a, "b"\nc', "answer": "é"})]
    for text, told in (
        (b"a,b\n1\n", "line 2: it has not as many"),
        (b"a,b\n1,2,3\n", "not as many"),
        (b"a\n\xff\n", "as CSV in UTF-8"),
    ):
        path.write_bytes(text)
        with pytest.raises(DataError, match=told):
            list(read_rows(path))
    with pytest.raises(ConfigError, match=r"\.csv"):
        entries(tmp_path / "none")
