"""Choices: which option a text settles on."""

import random
import re

import pytest

from assay.core.errors import DataError
from assay.verify import Choice, posed

COLOURS = {"answer": "B", "options": {"A": "red", "B": "blue", "C": "dark blue"}}


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("B", "B"), ("b", "B"), ("(b)", "B"), ("B.", "B"), ("**B**", "B"), ("$B$", "B"), ("[B]", "B"),
        ("Answer: B", "B"), ("Answer: (B) because C is wrong", "B"), (r"\boxed{B}", "B"), ("<answer>C</answer>", "C"),
        ("The answer is B", "B"), ("The answer is (B).", "B"), ("I think A is wrong, so B.", "B"),
        ("First (A). No: (B)", "B"), ("A: no. B: yes. So C", "C"),
        ("I choose B because I like it.", "B"), ("A cat is no dog. B", "B"), ("I is B", "B"),
        ("A or B", None), ("A and B", None), ("(A) (B)", None), ("A, B", None), ("A/B", None), ("B or B", "B"),
        ("neither", None), ("", None), ("because", None), ("E-mail", None), ("don't", None),
        ("A or not. Later we see much more, B", "B"),
    ],
)  # fmt: skip
def test_letters(said: str, chosen: str | None) -> None:
    score = Choice()(*posed("B", said))
    assert score.info.get("chosen") == chosen
    assert score.primary == float(chosen == "B")
    assert score.info["verdict"] == ("unparsed" if chosen is None else "equal" if chosen == "B" else "different")


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("blue", "B"), ("Dark  blue.", "C"), ("B) blue", "B"), ("B. red", "B"), ("Answer: red", "A"), ("D", None), ("green",
        None), ("(D)", None), ("Not (D) but (A)", "A"),
    ],
)  # fmt: skip
def test_options(said: str, chosen: str | None) -> None:
    assert Choice()(*posed(COLOURS, said)).info.get("chosen") == chosen


def test_golds() -> None:
    for gold in ("b", {"answer": "blue", "options": ["red", "blue"]}, {"answer": "B", "options": ["red", "blue"]}):
        assert Choice()(*posed(gold, "(B)")).primary == 1.0
    for gold in ("", "AB", 3, {"options": ["a"]}, {"answer": "A", "options": []}, {"answer": "x", "options": ["y", "y"]}):
        with pytest.raises(DataError, match="gold"):
            Choice()(*posed(gold, "B"))
    same = {"answer": "A", "options": {"A": "x", "B": "x", "C": "y"}}
    assert Choice()(*posed(same, "x")).info["verdict"] == "unparsed"  # two options say this
    assert Choice(where="tag")(*posed("A", "A")).info["verdict"] == "unparsed"


def test_against_a_second_reader() -> None:
    """Texts built around labelled letters: the last label counts, unless two are joined."""
    rng = random.Random(3)
    label = ["({})", "{}.", "{})", "**{}**", "option {}", "[{}]"]
    fill = ["maybe", "we see that", "no,", "it seems", "wrong:", "then"]
    for _ in range(2000):
        letters = [rng.choice("BCDE") for _ in range(rng.randint(1, 4))]
        text = "".join(f"{rng.choice(fill)} {rng.choice(label).format(x)} {rng.choice(fill)} " for x in letters)
        wanted = re.findall(r"(?<![A-Za-z])[B-E](?![A-Za-z])", text)[-1]
        assert Choice()(*posed("B", text)).info.get("chosen") == wanted, text
        joined = f"{text}{letters[0]} {rng.choice(['or', 'and', ',', '/'])} A"
        assert Choice()(*posed("B", joined)).info["verdict"] == "unparsed", joined


def test_a_label_that_begins_a_named_answer_counts() -> None:
    for said, chosen in (
        ("Answer: (B) because C is wrong", "B"),
        ("Answer: B, not C", "B"),
        ("Answer: B or C", None),
        ("Answer: not A but C", "C"),
        ("(B) because C is wrong: C", "C"),  # nothing is named, so the last label counts
    ):
        assert Choice()(*posed("B", said)).info.get("chosen") == chosen, said


@pytest.mark.parametrize(
    "text", ["not B", "The answer is not B", "It is not option (B).", "anything but B", "Answer: not B", "isn't B"]
)
def test_an_option_that_is_denied_is_no_answer(text: str) -> None:
    score = Choice()(*posed("B", text))
    assert (score.primary, score.info["verdict"]) == (0.0, "unparsed")


@pytest.mark.parametrize("text", ["Not A. It is B", "not A but B", "I would not say A; B"])
def test_an_option_behind_a_denial_of_another_is_one(text: str) -> None:
    assert Choice()(*posed("B", text)).primary == 1.0
