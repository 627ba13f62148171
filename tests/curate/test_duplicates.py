"""Exact, near and inner duplicates: what goes, because of what, and the laws of it."""

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curate_support import Result, curated, plain_words, sentence
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import ConfigError
from assay.curate import Exact, HashedTexts, NearDuplicates, Substrings, jaccard, normal, row_id, shingles
from assay.curate.exact_duplicates import _question  # pyright: ignore[reportPrivateUsage]

SMALL = st.lists(st.lists(st.sampled_from(["a", "b", "c3", "d"]), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=12)


def rows_of(texts: list[str]) -> list[dict[str, Any]]:
    return [{"prompt": text, "answer": "1", "n": i} for i, text in enumerate(texts)]


def test_one_of_the_same_is_kept_by_content(tmp_path: Path) -> None:
    rows = [
        {"prompt": "What IS\n2+2?", "answer": "4", "n": 1},
        {"prompt": "what is 2+2?", "answer": "4", "n": 2},
        {"prompt": "x", "n": 3},
    ]
    found, turned = (curated(tmp_path, some, [Exact()], test_share=0.0) for some in (rows, rows[::-1]))
    first = min(rows[:2], key=row_id)
    assert found.lines_kept() == turned.lines_kept() == sorted([first["n"], 3])
    (gone,) = found.rejected
    assert (gone["step"], gone["reason"]) == ("exact", "duplicate")
    assert gone["evidence"] == {"of": row_id(first), "answers_differ": False}
    assert gone["row"]["n"] == 3 - first["n"]


SAME = [
    ("  what is 10 + 16 ?", "What is 10+16?"),
    ("What is 10+16 = ?", "What is 10 + 16 ="),
    ("Find the sum, please. What is ( 3 + 4 ) * x?", "find the sum please what is (3+4)*x"),
    ("Who was Ada Lovelace?", "who was  Ada Lovelace!"),
    ("Sort 3 , 1 , 2.", "sort 3, 1, 2"),
    ("1加2？", "1加2"),
]
OTHERS = [
    ("What is -5?", "What is 5?"),
    ("- 5 + 3", "5 + 3"),
    ("add 1 -2", "add 1 - 2"),
    ("add 1 2 -3", "add 1 2-3"),
    ("What is .5?", "What is 5?"),
    ("What is 1.5?", "What is 15?"),
    ("What is 3!", "What is 3"),
    ("What is n! + 1?", "What is n + 1?"),
    ("Simplify x^2", "Simplify x2"),
    ("Simplify x_2", "Simplify x2"),
    ("Simplify 2^{10}", "Simplify 2^{1}0"),
    ("Simplify \\frac{1}{23}", "Simplify \\frac{12}{3}"),
    ("Is x \\in A?", "Is x \\notin A?"),
    ("Find f'(x)", "Find f(x)"),
    ("Solve y'' + y = 0", "Solve y' + y = 0"),
    ("Is p ∧ q true?", "Is p ∨ q true?"),
    ("Is ~p true?", "Is p true?"),
    ("Is x <= 3?", "Is x < 3?"),
    ("Compute 2**3", "Compute 2*3"),
    ("Compute ((1+2)*3)", "Compute (1+2*3)"),
    ("Is (() well formed?", "Is ()) well formed?"),
    ("Fill a ? b d", "Fill a b ? d"),
    ("Sort 1,234", "Sort 1, 234"),
    ("Sort 1 2", "Sort 12"),
    ("Next of 1, 2, 3, ...", "Next of 1, 2, 3"),
    ("?", "!"),
]


@pytest.mark.parametrize(("pair", "kept"), [(p, 1) for p in SAME] + [(p, 2) for p in OTHERS])
def test_questions_are_the_same_but_for_case_spaces_and_punctuation(tmp_path: Path, pair: tuple[str, str], kept: int) -> None:
    assert len(curated(tmp_path, rows_of(list(pair)), [Exact()], test_share=0.0).kept) == kept


def test_contradicting_answers_are_told_and_can_all_go(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "answer": a, "n": i} for i, a in enumerate(["4", "5", " 4"])] + [
        {"prompt": "r", "answer": [1], "n": 3}
    ] * 2
    kept = curated(tmp_path, rows, [Exact()], test_share=0.0)
    assert sorted(r["evidence"]["answers_differ"] for r in kept.rejected if r["row"]["prompt"] == "q") in (
        [False, True],
        [True, True],
    )
    dropped = curated(tmp_path, rows, [Exact(conflicts="drop")], test_share=0.0)
    assert dropped.lines_kept() == [3]
    assert [reason for _, _, reason in dropped.reasons()] == ["answers differ"] * 3 + ["duplicate"]
    with pytest.raises(ConfigError, match="use 'keep' or 'drop'"):
        Exact(conflicts="both")  # pyright: ignore[reportArgumentType]


def changed(text: str, *places: int, by: str = "other") -> str:
    words = text.split()
    for place in places:
        words[place] = by
    return " ".join(words)


def test_near_duplicates_go_and_name_one_that_stays(tmp_path: Path) -> None:
    a = sentence(1, 40)
    texts = [a, changed(a, 5), changed(a, 1, 9, 17, 25, 33), sentence(2, 40)]
    found = curated(tmp_path, rows_of(texts), [NearDuplicates(numbers=False)], test_share=0.0)
    assert len(found.rejected) == 1
    (gone,) = found.rejected
    assert gone["row"]["n"] in (0, 1)
    other = texts[1 - gone["row"]["n"]]
    assert gone["evidence"]["similarity"] == pytest.approx(jaccard(shingles(a, 3), shingles(texts[1], 3)))
    assert gone["evidence"]["of"] == next(row["curate"]["id"] for row in found.kept if row["prompt"] == other)


def test_the_threshold_is_met_not_passed(tmp_path: Path) -> None:
    a, b = "a b c d e", "a b c d e f"
    assert jaccard(shingles(a, 1), shingles(b, 1)) == pytest.approx(5 / 6)
    for threshold, kept in ((5 / 6, 1), (0.84, 2)):
        found = curated(tmp_path, rows_of([a, b]), [NearDuplicates(threshold=threshold, shingle=1)], test_share=0.0)
        assert len(found.kept) == kept


def test_other_numbers_make_another_question(tmp_path: Path) -> None:
    texts = [changed(plain_words(40), 20, by=str(n)) for n in (3, 4)]
    assert len(curated(tmp_path, rows_of(texts), [NearDuplicates()], test_share=0.0).kept) == 2
    assert len(curated(tmp_path, rows_of(texts), [NearDuplicates(numbers=False)], test_share=0.0).kept) == 1


def test_where_too_many_share_a_band_later_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HashedTexts, "bands", lambda self, k, threshold: np.zeros((len(self), 16), np.uint64))
    twins = [{"prompt": plain_words(40)}, {"prompt": changed(plain_words(40), 39)}]
    others = ({"prompt": sentence(1), "n": i} for i in count())
    first = next(row for row in others if row_id(row) < min(map(row_id, twins)))  # it is taken first, and like neither
    assert len(curated(tmp_path, [*twins, first], [NearDuplicates(most=1)]).kept) == 3
    assert len(curated(tmp_path, [*twins, first], [NearDuplicates(most=2)]).kept) == 2


@pytest.mark.parametrize("wrong", [{"threshold": 0.0}, {"shingle": 0}, {"most": 0}])
def test_wrong_settings_of_near_duplicates(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        NearDuplicates(**wrong)


def test_a_question_inside_another_goes(tmp_path: Path) -> None:
    inner = "What is the sum of the first ten primes?"
    texts = [inner, f"Think. {inner}", f"Think. {inner} Answer briefly.", "Something else entirely?", "short", "a short one"]
    found = curated(tmp_path, rows_of(texts), [Substrings()], test_share=0.0)
    assert found.lines_kept() == [2, 3, 4, 5], "a text of fewer bytes than a piece is not looked for"
    longest = next(row["curate"]["id"] for row in found.kept if row["n"] == 2)
    assert [(r["row"]["n"], r["evidence"]["of"]) for r in found.rejected] == [(0, longest), (1, longest)]
    with pytest.raises(ConfigError, match="4 bytes or more"):
        Substrings(least=3)


@settings(max_examples=20)
@given(SMALL)
def test_inner_questions_are_those_that_brute_force_finds(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    found = curated(tmp_path_factory.mktemp("inner"), rows_of(texts), [Substrings(least=4)], test_share=0.0)
    expected = [i for i, t in enumerate(texts) if not (len(t) >= 4 and any(t in o and len(o) > len(t) for o in texts))]
    assert found.lines_kept() == expected


# ---- laws -------------------------------------------------------------------------------------------------------------


def contents(found: Result) -> list[str]:
    return sorted(row["curate"]["id"] for row in found.kept)


@settings(max_examples=10)
@given(texts=SMALL, data=st.data(), chunk=st.integers(2, 9))
def test_laws_of_deduplication(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject, chunk: int
) -> None:
    folder = tmp_path_factory.mktemp("laws")
    rows = [{"prompt": text, "answer": str(len(text))} for text in texts]
    steps = [Exact(), NearDuplicates(threshold=0.6, shingle=2), Substrings(least=4)]
    found = curated(folder, rows, steps)
    # the union of the outputs is the input
    given_back = [{k: r[k] for k in ("prompt", "answer")} for r in found.kept] + [r["row"] for r in found.rejected]
    assert sorted(given_back, key=str) == sorted(rows, key=str)
    # the order of the rows and the size of chunks change nothing
    shuffled = curated(folder, data.draw(st.permutations(rows)), steps, chunk=chunk)
    assert contents(shuffled) == contents(found)
    assert shuffled.manifest["digest"] == found.manifest["digest"]
    assert shuffled.manifest["counts"] == found.manifest["counts"]
    # again drops nothing, and changes nothing
    again = curated(folder, found.kept, steps)
    assert not again.rejected
    assert sorted(again.kept, key=str) == sorted(found.kept, key=str)
    # no question is on both sides of the split, whatever stays
    assert not {normal(r["prompt"]) for r in found.train} & {normal(r["prompt"]) for r in found.test}
    # what is left has no pair that a band proposed and the similarity confirms; and every reason for a row is itself kept
    kept = set(contents(found))
    assert all(r["evidence"]["of"] in kept or r["step"] != "substrings" for r in found.rejected)


def test_a_space_before_the_mark_of_an_inner_sentence_makes_no_other_question() -> None:
    options = "a. oxygen b. carbon"
    assert _question(f"which gas do plants take in ? {options}") == _question(f"which gas do plants take in? {options}")
    assert _question("what is a ? b") != _question("what is a b")
