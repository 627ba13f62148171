"""Rows that come in splits: official test items never become training rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rowfile import rows_beside
from assay.curate.rows import entries, split_of
from assay.tasks import Rows, read_splits, train_and_test
from assay.tasks.exchange.importing import found_in
from assay.train.data import rows_of
from assay.train.imitate import Imitate

TRAIN = [{"prompt": f"{a}+1=", "answer": str(a + 1)} for a in range(300)]
TEST = [{"prompt": f"{a}+2=", "answer": str(a + 2)} for a in range(30)]


def asked(source: Rows, split: str) -> set[str]:
    return {str(source.task("rows", 1, split, i).public["prompt"]) for i in range(source.size("rows", 1, split))}


def test_rows_in_splits_are_trained_and_held_out_as_they_came() -> None:
    source = Rows({"test": TEST, "train": TRAIN})
    assert asked(source, "train") == {row["prompt"] for row in TRAIN}
    assert asked(source, "test") == {row["prompt"] for row in TEST}
    assert source.tests == len(TEST)
    assert Rows({"train": TRAIN}) == Rows(TRAIN)  # nothing is held out: a share of it can be


def test_they_come_back_from_a_file(tmp_path: Path) -> None:
    source = Rows({"train": TRAIN, "validation": TEST})
    with rows_beside(tmp_path, lambda path, data: path.write_bytes(data) and None):
        back = from_dict(Rows, to_dict(source))
    assert back == source
    assert asked(back, "test") == asked(source, "test")
    with rows_beside(tmp_path):
        assert asked(from_dict(Rows, {**to_dict(source), "tests": 5}), "test") == {row["prompt"] for row in TEST[-5:]}


def test_a_row_of_both_splits_is_in_both_and_a_repeated_one_in_neither_twice() -> None:
    source = Rows({"train": [TRAIN[0], TRAIN[0], TRAIN[1]], "test": [TRAIN[0], {**TRAIN[0], "answer": "no"}]})
    assert (source.size("rows", 1, "train"), source.size("rows", 1, "test")) == (2, 2)
    assert (source.repeated, source.differing) == (1, 1)


def test_a_level_without_rows_of_a_split_says_so() -> None:
    source = Rows({"train": TRAIN[:2], "test": [{**TEST[0], "level": 2}]})
    with pytest.raises(DataError, match="none of the rows of level 2 is in the train split that they came with"):
        source.task("rows", 2, "train", 0)
    with pytest.raises(ConfigError, match=r"Rows\.tests=9 of 2 rows"):
        Rows(TRAIN[:2], tests=9)


def test_prompts_may_be_turns() -> None:
    turns = [{"role": "system", "content": "Add."}, {"role": "user", "content": "1+1="}]
    source = Rows([{"prompt": turns, "answer": "2"}], test_share=0.0)
    assert source == source
    assert [m.role for m in source.task("rows", 1, "train", 0).public_view().messages] == ["system", "user"]
    assert (
        source.task("rows", 1, "train", 0).content
        == Rows([{"messages": turns, "answer": "2"}], test_share=0.0).task("rows", 1, "train", 0).content
    )
    assert set("Add.1+=") <= set(source.alphabet)
    assert source.row_questions("rows", 1, "train") is None
    for wrong, told in (
        ([], "is not a list of turns"),
        ([{"role": "user"}], "'prompt': .* is not"),
        ([*turns, {"role": "assistant", "content": "2"}], "'prompt': the last turn is the assistant's"),
    ):
        with pytest.raises(DataError, match=told):
            Rows([{"prompt": wrong, "answer": "2"}])


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("train", "test", "validation"), ("train", "test")),
        (("train", "validation"), ("train", "validation")),
        (("Train", "DEV"), ("Train", "DEV")),
        (("train", "unsupervised"), ("train", "")),
        (("questions",), ("questions", "")),
    ],
)
def test_which_split_is_which(names: tuple[str, ...], found: tuple[str, str]) -> None:
    splits: dict[str, Any] = {name: [{"prompt": name}] for name in names}
    assert train_and_test(splits) == (splits[found[0]], splits.get(found[1], ()))


@pytest.mark.parametrize("names", [("test",), ("validation", "test"), ("easy", "hard")])
def test_splits_that_do_not_say_it_are_asked_for(names: tuple[str, ...]) -> None:
    splits: dict[str, Any] = {name: [{"prompt": name}] for name in names}
    with pytest.raises(ConfigError, match=f"name one, split='{names[0]}'"):
        train_and_test(splits)
    assert train_and_test(splits, names[0]) == (splits[names[0]], ())


def test_what_is_no_split_is_refused() -> None:
    with pytest.raises(ConfigError, match="without splits"):
        train_and_test({})
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        train_and_test({"train": []}, "trian")
    with pytest.raises(ConfigError, match="give the split to train on"):
        train_and_test({"train": []}, ("a", "b", "c"))
    with pytest.raises(ConfigError, match=r"split .* does not exist; give a \.jsonl"):
        Rows({"prompt": "1+1="})


# ---- files ------------------------------------------------------------------------------------------------------------


def folder_of(place: Path, **files: list[dict[str, Any]]) -> Path:
    place.mkdir()
    for name, rows in files.items():
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


def test_files_of_several_splits_are_not_put_together(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "rows", train_a=TRAIN[:2], train_b=TRAIN[2:4], test=TEST[:2])
    assert len(entries(folder)) == 3  # to look for evaluation items, all are read
    for refused in (
        lambda: entries(folder, one_split=True),
        lambda: found_in(str(folder)),
        lambda: rows_of(Imitate(data=str(folder))),
    ):
        with pytest.raises(ConfigError, match=r"several splits: test \(test.jsonl\), train .* such as .*:\*train\*"):
            refused()
    chosen = f"{folder}:*train*"
    assert [item.row for item in found_in(chosen)] == TRAIN[:4]
    assert [dict(row) for _, row in rows_of(Imitate(data=chosen))] == TRAIN[:4]
    with pytest.raises(ConfigError, match="no file of rows like dev"):
        entries(f"{folder}:dev*")


def test_a_saved_dataset_keeps_its_splits(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "dataset_dict.json").write_text('{"splits": ["test", "train"]}', encoding="utf-8")
    folder_of(saved / "train", data=TRAIN[:3])
    folder_of(saved / "test", data=TEST[:2])
    assert read_splits(saved) == {"train": TRAIN[:3], "test": TEST[:2]}
    with pytest.raises(ConfigError, match="several splits"):
        entries(saved, one_split=True)
    assert len(entries(saved / "train", one_split=True)) == 1


def test_rows_are_read_whatever_they_are(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "rows", some=TRAIN[:2], more=TRAIN[2:3])
    assert read_splits(folder) == [TRAIN[2], *TRAIN[:2]]
    assert read_splits(folder / "some.jsonl") == TRAIN[:2]
    (folder / "broken.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"broken.jsonl, row 1"):
        read_splits(folder / "broken.jsonl")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("test-00000-of-00001.parquet", "test"),
        ("gsm8k/val.jsonl", "validation"),
        ("data/validation/0.arrow", "validation"),
        ("latest.jsonl", ""),
        ("training_set.csv", "train"),
        ("restrained.jsonl", ""),
        ("dev.jsonl", "dev"),
    ],
)
def test_names_of_files_say_splits(name: str, split: str) -> None:
    assert split_of(Path(name)) == split
