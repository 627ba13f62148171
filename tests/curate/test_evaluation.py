"""Evaluation items are found by the same text, by a run of words, by likeness; and each hit is told."""

from pathlib import Path
from typing import Any

import pytest
from curate_support import curated, plain_words, sentence, write
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.curate import Decontaminate, EvalIndex, EvalItem, Matching, find_contamination, normal, runs

ITEM = "one two three four five six seven eight nine ten"


def index(*texts: str, **matching: Any) -> EvalIndex:
    return EvalIndex(tuple(EvalItem("e.jsonl", i, normal(t)) for i, t in enumerate(texts, 1)), Matching(**matching))


def kinds(found: EvalIndex, text: str) -> list[tuple[str, int, str]]:
    return [(h.kind, h.item.line, h.run) for c in find_contamination(found, [text]) for h in c.hits]


def test_eight_words_in_common_are_found_and_seven_are_not() -> None:
    eight, seven = "x two three four five six seven eight nine y", "x two three four five six seven eight y"
    assert kinds(index(ITEM), eight) == [("run", 1, "two three four five six seven eight nine")]
    assert kinds(index(ITEM), seven) == []
    assert kinds(index(ITEM, n=7), seven) == [("run", 1, "two three four five six seven eight")]
    assert kinds(index(ITEM, n=0), eight) == []
    assert kinds(index(ITEM), eight.upper().replace(" ", " \n")) != [], "case and spaces do not hide it"


def test_short_items_are_found_by_the_same_text_and_by_likeness() -> None:
    assert kinds(index("What is 2 + 2?"), "what is  2 + 2?") == [("same", 1, "")]
    short = "a b c d e f g"
    assert kinds(index(short, near=0.5, shingle=1), "b c d e f g h") == [("near", 1, "")]
    (hit,) = find_contamination(index(short, near=0.5, shingle=1), ["", "b c d e f g h"])[0].hits
    assert hit.similarity == pytest.approx(6 / 8)
    assert kinds(index(short, near=0.0), "b c d e f g h") == []


def test_every_item_that_is_hit_is_told_once_by_its_strongest_kind() -> None:
    found = find_contamination(index(ITEM, f"{ITEM} more", "else"), ["clean", ITEM])
    assert [c.index for c in found] == [1]
    assert [(h.kind, h.item.line) for h in found[0].hits] == [("same", 1), ("run", 2)]


def test_an_instruction_that_most_items_share_is_not_looked_for() -> None:
    told = "Let us think step by step and put the answer in a box."
    items = [f"{sentence(i, 12)} {told}" for i in range(12)]
    text = f"{sentence(99, 12)} {told}"
    assert kinds(index(*items), text) == []
    assert runs(normal(told), 8)[0] in index(*items).instructions
    assert len(kinds(index(*items, common=1.0), text)) == 12
    assert len(kinds(index(*items[:9]), text)) == 9, "of fewer than ten items nothing is an instruction"
    assert kinds(index(*items), f"hm {items[3]}")[0][:2] == ("run", 4), "an item's own words still are"


@pytest.mark.parametrize("wrong", [{"n": -1}, {"shingle": 0}, {"near": 2.0}, {"common": 0.0}])
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Matching(**wrong)


def test_items_are_read_from_files_and_hits_name_them(tmp_path: Path) -> None:
    evaluation = write(tmp_path / "aime.jsonl", [{"question": "unrelated"}, {"question": ITEM}])
    near = plain_words(40)
    other = write(tmp_path / "math.jsonl", [{"problem": near}])
    rows = [{"prompt": p, "n": i} for i, p in enumerate([ITEM.title(), f"so {ITEM}", "clean", near.replace("wbg", "wx")])]
    step = Decontaminate(against=(evaluation, other))
    found = curated(tmp_path, rows, [step], test_share=0.0)
    assert found.lines_kept() == [2]
    said = [r["evidence"]["hits"] for r in found.rejected]
    assert said[0] == [{"kind": "same", "file": str(evaluation), "line": 2, "item": ITEM}]
    assert said[1] == [{"kind": "run", "file": str(evaluation), "line": 2, "item": ITEM, "run": " ".join(ITEM.split()[:8])}]
    assert (said[2][0]["kind"], said[2][0]["file"]) == ("run", str(other))
    only = curated(tmp_path, rows[3:], [Decontaminate(against=(other,), matching=Matching(n=0))], test_share=0.0)
    assert only.rejected[0]["evidence"]["hits"][0]["similarity"] >= 0.8
    named = found.manifest["references"]["decontaminate"]
    assert [Path(source["path"]).name for source in named] == ["aime.jsonl", "math.jsonl"]


def test_an_item_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    evaluation = write(tmp_path / "e.jsonl", [{"question": "a"}, {"text": "b"}])
    with pytest.raises(DataError, match=r"e\.jsonl, line 2: no question.*what is not read cannot be found"):
        EvalIndex.read([evaluation])
    with pytest.raises(ConfigError, match="names no file"):
        Decontaminate(against=())


SMALL = st.lists(st.lists(st.sampled_from("abcd"), max_size=8).map(" ".join), min_size=1, max_size=8)


@settings(max_examples=60)
@given(texts=SMALL, items=SMALL, n=st.integers(1, 4))
def test_what_brute_force_finds_is_found(texts: list[str], items: list[str], n: int) -> None:
    found = {
        c.index: {h.item.line - 1 for h in c.hits if h.kind != "near"} for c in find_contamination(index(*items, n=n), texts)
    }
    for number, text in enumerate(map(normal, texts)):
        expected = {i for i, item in enumerate(map(normal, items)) if text == item or set(runs(text, n)) & set(runs(item, n))}
        assert found.get(number, set()) == expected


@settings(max_examples=15)
@given(texts=SMALL, items=SMALL)
def test_no_item_is_left(tmp_path_factory: pytest.TempPathFactory, texts: list[str], items: list[str]) -> None:
    folder = tmp_path_factory.mktemp("left")
    whole = [t for t in texts if t] or ["a"]
    evaluation = write(folder / "e.jsonl", [{"prompt": t} for t in items if t] or [{"prompt": "x"}])
    step = Decontaminate(against=(evaluation,), matching=Matching(n=3, near=0.6, shingle=2))
    found = curated(folder, [{"prompt": t} for t in whole], [step])
    left = EvalIndex.read([evaluation], step.matching)
    assert find_contamination(left, [row["prompt"] for row in found.kept]) == []
    assert len(found.kept) + len(found.rejected) == len(whole)
