"""What is read, and what is refused with its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from curate_support import curated, read, write
from pyarrow import parquet

from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.curate import Exact, Fields, Pipeline, row_id
from assay.curate import rows as rows_module
from assay.curate.rows import entries, parse_entry, read_rows

QUESTIONS = [
    ({"prompt": "a"}, "a"),
    ({"question": "b", "answer": 1}, "b"),
    (
        {
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": "x"},
            ]
        },
        "c",
    ),
    ({"problem": "p", "prompt": None}, "p"),
]


@pytest.mark.parametrize(("row", "text"), QUESTIONS)
def test_questions_are_found(row: dict[str, Any], text: str) -> None:
    assert Fields().question_of(row) == text


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "a list, not an object"),
        ('{"prompt": "a", "prompt": "b"}', "stands twice"),
        ('{"prompt": NaN}', "NaN is not JSON"),
        ('{"prompt": 1' + "0" * 5000 + "}", "not readable"),
        ("[" * 100_000, "too deep"),
        ('{"answer": 1}', "no question"),
        ('{"prompt": " "}', "'prompt' is empty"),
        ('{"prompt": 3}', "an int; give text"),
        ('{"prompt": [{"role": "user"}]}', "give messages"),
        ('{"prompt": "a", "curate": 3}', "rename it"),
    ],
)
def test_a_bad_row_is_rejected_with_its_place(tmp_path: Path, line: str, why: str) -> None:
    found = curated(tmp_path, [{"prompt": "good", "n": 1}, line], [Exact()], test_share=0.0)
    assert found.lines_kept() == [1]
    (bad,) = found.rejected
    assert (bad["step"], bad["reason"], bad["line"], bad["text"]) == ("read", "unreadable", 2, line)
    assert why in bad["evidence"]["error"]
    assert found.manifest["counts"]["unreadable"] == 1


def test_bytes_that_are_no_text_are_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'\xef\xbb\xbf{"prompt": "a"}\n\n{"prompt": "\xff"}\n')
    manifest = Pipeline(steps=()).run([tmp_path / "in.jsonl"], tmp_path / "out")
    assert (manifest["counts"]["read"], manifest["counts"]["unreadable"]) == (2, 1)
    (bad,) = read(tmp_path / "out" / "rejected.jsonl")
    assert bad["line"] == 3
    assert "0xff" in bad["evidence"]["error"]


@pytest.mark.parametrize(("lines", "why"), [([], "the input is empty"), (["nonsense"], "no row can be read; the first, line 1")])
def test_nothing_to_read_is_an_error(tmp_path: Path, lines: list[str], why: str) -> None:
    with pytest.raises(DataError, match=why):
        curated(tmp_path, lines, [])


def test_fields_are_carried_untouched(tmp_path: Path) -> None:
    line = '{"z": 1.50, "prompt": "a\\ud800é", "answer": "1",  "license": "cc0", "nested": {"b": [1, 2e3]} }'
    (row,) = curated(tmp_path, [line], [Exact()], test_share=0.0).train
    given = json.loads(line)
    assert {name: row[name] for name in given} == given
    assert list(row)[-2:] == ["id", "curate"]
    assert row["id"] == row["curate"]["id"] == row_id(given) == digest(given)
    text = (tmp_path / "run0" / "out" / "train.jsonl").read_text(encoding="utf-8")
    assert '"z": 1.50, ' in text, "not even the spelling of numbers changes"


def test_an_id_of_the_rows_own_stays(tmp_path: Path) -> None:
    (row,) = curated(tmp_path, [{"id": 17, "prompt": "a"}], [], test_share=0.0).train
    assert row["id"] == 17
    assert row["curate"]["id"] == row_id({"id": 17, "prompt": "a"})
    (again,) = curated(tmp_path, [row], [], test_share=0.0).train
    assert again == row


def test_the_id_ignores_what_curation_added() -> None:
    row = {"prompt": "a", "answer": "1"}
    id = row_id(row)
    assert row_id({**row, "id": id, "curate": {"id": id, "weak.pass_rate": 0.5}}) == id
    assert row_id({**row, "id": "own", "curate": {"id": id}}) != id


@pytest.mark.parametrize("form", ["jsonl.gz", "parquet", "stream.arrow", "file.arrow", "saved", "splits", "folder"])
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str) -> None:
    rows = [{"prompt": f"p{i}", "answer": str(i), "n": i} for i in range(5)]
    place = tmp_path / f"rows.{form}"
    table: Any = pyarrow.Table.from_pylist(rows)
    if form == "jsonl.gz":
        place.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    elif form == "parquet":
        parquet.write_table(table, place)
    elif form == "folder":
        place.mkdir()
        (place / "README.md").write_text("not rows", encoding="utf-8")
        (place / ".hidden").mkdir()
        write(place / ".hidden" / "c.jsonl", rows)
        write(place / "a.jsonl", rows[:2])
        parquet.write_table(table.slice(2), place / "b.parquet")
    else:
        target = place
        if form == "splits":
            place.mkdir()
            (place / "dataset_dict.json").write_text(json.dumps({"splits": ["train"]}), encoding="utf-8")
            target = place = place / "train"
        if form in ("saved", "splits"):
            place.mkdir()
            (place / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}), encoding="utf-8")
            target = place / "data.arrow"
        writer = pyarrow.ipc.new_file if form == "file.arrow" else pyarrow.ipc.new_stream
        with writer(str(target), table.schema) as out:
            out.write_table(table)
    found = [parse_entry(entry) for path in entries(tmp_path / f"rows.{form}") for _, entry in read_rows(path)]
    assert found == rows


def test_a_table_with_dates_has_bad_rows(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"prompt": ["a"], "when": pyarrow.array([0], pyarrow.date32())}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="a field that is not JSON"):
        parse_entry(next(read_rows(tmp_path / "x.parquet"))[1])


def test_damaged_and_strange_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"prompt": "a"}\n' * 500)[:-10])
    with pytest.raises(DataError, match="cannot be decompressed"):
        list(read_rows(tmp_path / "cut.jsonl.gz"))
    (tmp_path / "x.parquet").write_bytes(b"none")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        list(read_rows(tmp_path / "x.parquet"))
    (tmp_path / "x.xlsx").write_text("a,b", encoding="utf-8")
    with pytest.raises(ConfigError, match="rows are read from"):
        entries(tmp_path / "x.xlsx")
    with pytest.raises(ConfigError, match="does not exist"):
        entries(tmp_path / "none.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no file of rows"):
        entries(tmp_path / "empty")

    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(rows_module.importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match="parquet"):
        list(read_rows(tmp_path / "x.parquet"))
