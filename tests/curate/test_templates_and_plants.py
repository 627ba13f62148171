"""Templates count for nothing, items in disguise are found: the two together, over ten templates and ten kinds of disguise."""

import random
from pathlib import Path

import numpy as np
import pytest
from curate_support import curated, plain_words, write
from disguised_items import TEMPLATES, Planted, found_in, in_templates, planted
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import ConfigError
from assay.curate import Decontaminate, EvalIndex, EvalItem, Exact, Matching, NearDuplicates, find_contamination, jaccard, normal
from assay.curate.phrase_frequency import Common, Frequency
from assay.curate.sentence_keys import key_of, mask_numbers, own_words, shared_words, split_pieces
from assay.curate.text import HashedTexts, own_similarity, words_differ


def index(*texts: str, **matching: object) -> EvalIndex:
    return EvalIndex(tuple(EvalItem("e.jsonl", i, normal(t), t) for i, t in enumerate(texts)), Matching(**matching))


def kinds(found: EvalIndex, text: str) -> list[tuple[str, int]]:
    return [(hit.kind, hit.item.line) for c in find_contamination(found, [text]) for hit in c.hits]


# ---- the bars ---------------------------------------------------------------------------------------------------------


def test_planted_items_are_found_and_look_alikes_are_not() -> None:
    for seed in range(3):
        counts = found_in(planted(seed))
        held, right, unlike, wrong = (sum(column) for column in zip(*counts.values(), strict=True))
        assert (held, unlike) == (200, 200) and len(counts) == 10
        assert right >= 0.95 * held and wrong <= 0.02 * unlike, counts
        assert all(found >= 0.9 * of for of, found, _, _ in counts.values()), counts


def test_rows_of_ten_templates_hold_no_items_of_the_same_templates_and_planted_ones_are_found_in_them() -> None:
    rows, items = [p for p, _ in in_templates()], list(in_templates(100, seed=7, but=[t for _, t in in_templates()]))
    found = index(*(p for p, _ in items))
    assert find_contamination(found, rows) == []
    for change in (0, 1, 3, 6):  # in their own template, and in others
        dressed = [TEMPLATES[(i + change) % len(TEMPLATES)][0](task) for i, (_, task) in enumerate(items[:40])]
        hits = {c.index - 500: {h.item.line for h in c.hits} for c in find_contamination(found, rows + dressed)}
        told = [i in hits.get(i, ()) for i in range(40)]
        assert sum(told) >= 0.95 * len(told), (change, [items[i][0] for i, ok in enumerate(told) if not ok])
        assert all(set(hits[at]) == {at} for at in hits), "and nothing else is"


@pytest.mark.slow
def test_curation_keeps_rows_that_share_a_template_and_drops_what_repeats(tmp_path: Path) -> None:
    rows = [{"prompt": p, "n": i} for i, (p, _) in enumerate(in_templates())]
    items = [p for p, _ in in_templates(60, seed=7, but=[t for _, t in in_templates()])]
    evaluation = write(tmp_path / "e.jsonl", [{"prompt": p} for p in items])
    steps = [Exact(), NearDuplicates(), Decontaminate(against=(evaluation,))]
    assert curated(tmp_path, rows, steps, chunk=200).rejected == []
    held = [{"prompt": p.upper(), "n": i} for i, p in enumerate(items[:20], 500)]
    twice = [{"prompt": rows[i]["prompt"] + " Thanks.", "n": 520 + i} for i in range(10)]
    found = curated(tmp_path, [*rows, *held, *twice], steps, chunk=200)
    assert sorted(r["row"]["n"] for r in found.rejected if r["step"] == "decontaminate") == list(range(500, 520))
    repeated = [r["row"]["n"] for r in found.rejected if r["step"] == "near_duplicates"]
    assert len(repeated) == 10 and {n % 520 if n >= 520 else n for n in repeated} == set(range(10))
    assert curated(tmp_path, found.kept, steps, chunk=90).rejected == [], "again drops nothing"


@pytest.mark.parametrize(
    "text",
    [
        "What is 12 + 30?",
        "What is 12+30?.",
        "Compute \\(\\frac{1}{2}+\\frac{1}{3}\\).",
        "Compute $\\frac{1}{2}+\\frac{1}{3}$",
        '"What is the capital of France?"',
        "Compute $\\sin 60^\\circ$.\nPlease reason step by step, and put your final answer within \\boxed{}.",
        "Tell me: what is the capital of France? Think step by step.",
        "１２＋３０ is what? What is １２＋３０？",
    ],
)
def test_short_items_are_found_however_they_are_written(text: str) -> None:
    items = (
        "What is 12+30?",
        "Compute $\\frac{1}{2}+\\frac{1}{3}$.",
        "What is the capital of France?",
        "Compute $\\sin 60^\\circ$.",
    )
    assert len(kinds(index(*items), text)) == 1
    assert kinds(index(*items, near=0.0), text)[0][0] in ("same", "whole")


@pytest.mark.parametrize(
    "text",
    [
        "What is 12+30 times 2?",
        "What is 12+30.5?",
        "What is 112+30?",
        "What is 12-30?",
        "What is 12+3?",
        "Compute 12+30+5.",
        "What is the capital of France and of Spain?",
        "Name the capital of France's largest region.",
        "Compute $\\sin 6$.",
        "Compute $\\frac{1}{2}+\\frac{1}{33}$.",
        "Compute (12+3)*4.",
        "Compute 5.",
        "Is it 1 or 23?",
    ],
)
def test_other_questions_are_not(text: str) -> None:
    items = (
        "What is 12+30?",
        "Compute $\\frac{1}{2}+\\frac{1}{3}$.",
        "What is the capital of France?",
        "Compute $\\sin 60^\\circ$.",
        "Compute 12+30.",
        "Compute 12+3*4.",
        "Compute 5!.",
        "Is it 12 or 3?",
    )
    assert kinds(index(*items), text) == []


def test_a_question_that_hangs_on_its_context_is_none_beside_another_context() -> None:
    found = index("What is its area?", "Which of the following is true?", "Who wrote the letter?", "What is 7*8?")
    story = "A square has sides of four metres and a red fence. "
    assert kinds(found, f"{story}What is its area?") == kinds(found, f"{story}Who wrote the letter?") == []
    assert kinds(found, "Question: who wrote the letter? Explain your reasoning.") == [("whole", 2)]
    assert kinds(found, f"{story}What is 7*8?") == [("whole", 3)]
    assert kinds(found, f"{story}Which of the following is true?") == [], "it says nothing of its own"
    assert kinds(found, "Which of the following is true") == [("same", 1)]
    many = index(*["What does program 7 print?"] * 3)
    assert kinds(many, "Read it. What does program 7 print?") == [], "what several items ask, their unseen parts tell apart"


def test_numbers_make_no_difference_to_those_who_ask_for_variants(tmp_path: Path) -> None:
    patterns = (
        "Tom has {} apples and buys {} more apples, how many apples has he now?",
        "A train travels {} miles in {} hours; what is its average speed in miles per hour over the whole trip?",
        "A farmer walks from the village to the market with {} baskets of apples, sells {} of them before noon and gives the "
        "rest to a beggar who sits beside the old stone bridge over the river. How many baskets are left?",
    )
    rows = [{"prompt": p.format(a, b), "n": n} for n, p in enumerate(patterns) for a, b in ((3, 4), (17, 5), ("1,200", 33.5))]
    assert len(curated(tmp_path, rows, [NearDuplicates()], test_share=0.0).kept) == 9
    kept = curated(tmp_path, rows, [NearDuplicates(numbers=False)], test_share=0.0)
    assert kept.lines_kept() == [0, 1, 2]
    items = index(*(p.format(8, 9) for p in patterns), n=0, variants=True)
    assert [kinds(items, str(row["prompt"])) for row in rows] == [[("same", i)] for i in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    assert kinds(index(patterns[0].format(8, 9), n=0, near=0.95), patterns[0].format(7, 2)) == []


# ---- what the rules are made of ---------------------------------------------------------------------------------------


def test_twelve_characters_of_a_script_without_spaces_are_a_run_of_eight_words() -> None:
    item = "甲乙丙丁戊己庚辛壬癸子丑"
    assert kinds(index(item), f"寅{item}卯") == [("run", 0)]
    assert kinds(index(item + "午"), f"寅{item[:11]}卯") == []


def test_what_is_rare_among_the_rows_that_are_left_is_no_template(tmp_path: Path) -> None:
    """21 rows of 400 share a sentence with an item; when twelve of them go for another reason nine are left, and all go."""
    shared = plain_words(12)
    held = [f"alpha{i} beta{i} gamma{i} delta{i} epsilon{i} zeta{i} eta{i} theta{i} iota{i}" for i in range(12)]
    rows = [{"prompt": f"{shared} {held[i] if i < 12 else f'end{i}'}", "n": i} for i in range(21)]
    rows += [{"prompt": f"other{i} row{i} of{i} nine{i}", "n": 100 + i} for i in range(379)]
    for item, gone in ((held, 12), ([shared], 21), ([*held, shared], 21)):
        evaluation = write(tmp_path / "e.jsonl", [{"prompt": t} for t in item])
        step = Decontaminate(against=(evaluation,), matching=Matching(template=0.025, near=0.0))
        found = curated(tmp_path, rows, [step], chunk=100)
        if gone == 21 and len(item) == 1:
            gone = 0  # it is a template's: more than twice the share have it
        assert len(found.rejected) == gone
        kept = [row["prompt"] for row in found.kept]
        assert find_contamination(EvalIndex.read([evaluation], step.matching), kept) == []


def test_a_second_deduplication_drops_nothing_where_templates_are_almost_none(tmp_path: Path) -> None:
    draw, told = random.Random(0), plain_words(30)
    for sharing in (19, 20, 21, 22, 24):
        rows = [{"prompt": f"{told} {draw.choice(['red', 'blue', 'green'])} {chr(97 + i)}"} for i in range(sharing)]
        rows += [{"prompt": rows[i]["prompt"] + " again"} for i in range(3)]
        rows += [{"prompt": " ".join(draw.choices(told.split(), k=9)) + f" {i}"} for i in range(380)]
        steps = [NearDuplicates(shingle=2, threshold=0.7)]
        found = curated(tmp_path, rows, steps, chunk=100)
        assert curated(tmp_path, found.kept, steps, chunk=50).rejected == []
        kept = {row["curate"]["id"] for row in found.kept}
        assert all(row["evidence"]["of"] in kept for row in found.rejected)


def test_rows_of_a_large_group_are_told_apart_by_what_is_their_own(tmp_path: Path) -> None:
    told = plain_words(40)
    rows = [
        {"prompt": f"{told} {' '.join(f'{chr(97 + i % 26)}{chr(97 + i // 26)}{j}' for j in range(6))}", "n": i} for i in range(60)
    ]
    twins = [{"prompt": f"{row['prompt']} so", "n": 100 + int(str(row["n"]))} for row in rows[:5]]
    found = curated(tmp_path, [*rows, *twins], [NearDuplicates(most=2, threshold=0.6)], test_share=0.0)
    assert sorted(int(r["row"]["n"]) % 100 for r in found.rejected) == [0, 1, 2, 3, 4]
    assert len(curated(tmp_path, rows, [NearDuplicates(common=1.0, threshold=0.6)], test_share=0.0).kept) < 30, (
        "all shingles count"
    )


def test_frequency_counts_texts_and_takes_them_out_again() -> None:
    texts = HashedTexts(["a b a b", "a b", "b c"])
    counted = Frequency(texts.shingles(2)[0])
    counted.add(texts, *texts.shingles(2)[:2])
    assert (counted.texts, sorted(counted.counts.tolist())) == (3, [1, 1, 2])
    again = counted.copy()
    some = HashedTexts(["a b"])
    again.add(some, *some.shingles(2)[:2], -1)
    assert (again.texts, sorted(again.counts.tolist()), counted.texts) == (2, [1, 1, 1], 3)
    assert len(counted.common(0.5, 2)) == 1 and len(counted.common(0.7, 2)) == 0
    empty = Frequency(np.empty(0, np.uint64))
    empty.add(texts, *texts.shingles(2)[:2])
    assert empty.texts == 3 and not len(empty.common(0.0, 0))
    hashes, none = counted.hashes, counted.hashes[:0]
    one, two = Common(hashes[:2], none, none), Common(hashes[1:], hashes[:1], hashes)
    assert len((one | two).runs) == 3 and (one | two).same(two | one) and not one.same(two)
    strict = one.stricter(two)
    assert (len(strict.runs), len(strict.shingles), len(strict.pieces)) == (1, 0, 3)


SETS = st.frozensets(st.sampled_from("abcdef"), min_size=1)


@settings(max_examples=80)
@given(SETS, SETS, SETS, SETS)
def test_the_more_is_common_the_less_alike(
    a: frozenset[str], b: frozenset[str], common: frozenset[str], more: frozenset[str]
) -> None:
    all_of_it = own_similarity(a, b, common | more)
    assert own_similarity(a, b, frozenset()) == jaccard(a, b)
    assert all_of_it <= own_similarity(a, b, common) <= jaccard(a, b) or a == b
    assert own_similarity(a, a, common) == 1.0
    own = own_similarity(a - common, b - common, frozenset()) if a - common or b - common else 1.0
    assert own >= own_similarity(a, b, common), "sets without what is common propose every pair"


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("spell cat backwards", "spell horse backwards", True),
        ("one two", "one two", False),
        ("one two", "one two three", False),
        ("say a now", "say now", False),
        ("a b c d e f g h", "a x c d e f y h", False),
        ("b", "c", True),
        ("", "c", False),
    ],
)
def test_words_that_differ_in_one_place(a: str, b: str, differ: bool) -> None:
    assert words_differ(a, b) is words_differ(b, a) is (differ if a else words_differ(a, b))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Let $x\\le 2$ and $y \\geq 3$", "let x≤2 and y ≥ 3"),
        ("2 × 3", "$2\\cdot 3$"),
        ("$\\sqrt{2}$ of it", "√2 of it"),
        ("$x^{10}$ is", "x^10 is"),
        ("x² is", "x^2 is"),
        ("½ of 3", "1/2 of 3"),
        ("$\\frac12$ of 3", "$\\dfrac{1}{2}$ of 3"),
        ("[See](http://x.y/z) it", "See it"),
        ("a < b and c > d", "a<b and c>d"),
        ("1,000 apples", "1000 apples"),
        ("it's well-known", "its well known"),
        ("`print(1)` now", "print(1) now"),
        ("$5$\\text{ cm}", "5 cm"),
        ("π is", "$\\pi$ is"),
        ("12+30 = ?", "12+30"),
        ("٣ تفاح", "3 تفاح"),
        ("(a) Find it", "Find it"),
        ("x\u200by", "xy"),
        ("***Find*** it~~", "Find it"),
        ("\\begin{align} a \\\\ b \\end{align}", "a\nb"),
        ("((a+b))", "a+b"),
        ("(a+b", "a+b"),
        ("3 - 2", "3-2"),
        ("|x - 1|", "|x-1|"),
        ("2**3", "2^3"),
        ("$\\{1,2\\}$", "1, 2"),
    ],
)
def test_what_is_written_in_two_ways_has_one_key(text: str, same: str) -> None:
    assert key_of(split_pieces(text)) == key_of(split_pieces(same)) != ""


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("1 2", "12"),
        ("5!", "5"),
        ("(1+2)*3", "1+2*3"),
        ("on [0,1]", "on (0,1)"),
        ("x^2", "x2"),
        ("3.5", "35"),
        ("1,2", "12"),
        ("a/b", "ab"),
        ("$\\frac{1+a}{2}$", "$1+\\frac{a}{2}$"),
        ("5%", "5"),
        ("x<2", "x<=2"),
        ("-3", "3"),
    ],
)
def test_what_is_not_the_same_has_two(text: str, other: str) -> None:
    assert key_of(split_pieces(text)) != key_of(split_pieces(other))


def test_small_parts() -> None:
    assert index("a b c", n=0).instructions == frozenset()
    assert split_pieces("?!…") == split_pieces("") == [] and key_of([]) == ""
    assert split_pieces("a ) b") == ["a b"] and split_pieces("## 3. **Sum**") == ["sum"]
    assert mask_numbers("x2 has 3,5 and 12.") == "x2 has 0 and 0."
    assert shared_words(["a"], 0, ["b"], 0) == [] and own_words([], frozenset(), 3) == 0
    with pytest.raises(ConfigError, match="template"):
        Matching(template=0.0)
    with pytest.raises(ConfigError, match="common"):
        NearDuplicates(common=0.0)
    assert Planted("k", "i", "t", True).variants is False
