"""Answers as models write them, by kind: those that must be paid, those that must not, and right ones that are left unread."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from assay.verify import task_and_rollout, verifier
from assay.verify.math import compare
from assay.verify.math.computed import compute_ratio, is_size
from assay.verify.math.equality import exact
from assay.verify.math.named import quantity
from assay.verify.math.read import read
from assay.verify.math.spelled import respell_sign
from assay.verify.text.number import number_of

PAIRS = [
    json.loads(line)
    for name in ("field_pairs.jsonl", "unseen_pairs.jsonl")  # the second: another reader, 691 of them blind
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
]
KINDS: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _pair in PAIRS:
    KINDS[_pair["kind"]].append(_pair)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_a_kind(kind: str) -> None:
    """``paid`` is None for a right answer of which nobody can be sure: it must not be paid for a wrong reading."""
    judges = {name: verifier(name) for name in {pair["verifier"] for pair in KINDS[kind]}}
    wrong = [
        pair
        for pair in KINDS[kind]
        if bool(judges[pair["verifier"]](*task_and_rollout(pair["gold"], pair["answer"])).primary) is not bool(pair["paid"])
    ]
    assert wrong == []


def test_as_many_must_stay_wrong_as_must_be_paid() -> None:
    count = Counter(pair["paid"] for pair in PAIRS)
    assert count[False] >= count[True] > 120 and len(PAIRS) > 1900


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("\\sum _ { i = 1 } ^ 4 i", 10),
        ("\\sum _ { k = - 2 } ^ { 2 } k ^ 2", 10),
        ("\\prod _ { k = 1 } ^ { 5 } k", 120),
        ("\\sum _ { i = 5 } ^ 4 i", None),
        ("\\sum _ { i = 1 } ^ { 101 } i", None),
        (f"\\sum _ {{ i = 1 }} ^ 4 {'i + ' * 30}i", None),
        ("\\sum _ { i = 0 } ^ 4 \\frac { 1 } { i }", None),
        ("\\int _ 0 ^ 2 2 x d x", 4),
        ("\\int ^ 2 _ 0 x ^ 2 d x", None),
        ("\\int _ { - 1 } ^ { 1 } x ^ 3 d x", 0),
        ("\\int _ 0 ^ 1 \\frac { 1 } { 1 + x } d x", None),
        ("\\int _ 0 ^ 1 \\sqrt { x } d x", None),
        ("\\int _ 0 ^ 1 a x d x", None),
        ("\\int _ 0 ^ 1 \\sin x d x", None),
        ("\\int _ 0 ^ a x d x", None),
        ("x", None),
    ],
)
def test_sums_and_integrals(source: str, value: int | None) -> None:
    found = compute_ratio(source)
    if source.startswith("\\int ^"):
        assert found is not None and 3 * found.value == 8
    else:
        assert (None if found is None else found.value) == value


def test_integrals_with_constants() -> None:
    assert exact("\\frac{\\pi^2}{2}", "\\int_0^{\\pi} x\\,dx = \\frac{\\pi^2}{2}") is True
    assert exact("\\frac{\\pi^3}{2}", "\\int_0^{\\pi} \\pi x\\,dx = \\frac{\\pi^3}{2}") is True
    assert exact("3", "\\int_0^{\\pi} x\\,dx = 3") is False
    assert not quantity(read("5 cm")) and not quantity(read("[1,2]")) and quantity(read("m+n"))
    assert is_size("| A \\cup B \\cap C |") and not is_size("| A |")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("negative 12", "-12"),
        ("Minus seven", "-7"),
        ("positive 12", "12"),
        ("\\text{exactly }5", "5"),
        ("negative", "negative"),
        ("negative feedback", "negative feedback"),
        ("minus x", "minus x"),
        ("not negative 12", "not negative 12"),
        ("12\\text{ k}\\Omega", "12\\text{ kohm}"),
        ("12 Ω", "12\\text{ ohm}"),
        ("\\Omega", "\\Omega"),
        ("5\\,\\mu\\text{m}", "5\\text{ um}"),
        ("5 μs", "5\\text{ us}"),
        ("5 µg", "5\\text{ ug}"),
        ("2μg", "2μg"),
        ("\\mu", "\\mu"),
        ("10\\colon 30", "10:30"),
        ("\\{1\\}", "\\{1\\}"),
    ],
)
def test_spelled_signs_units_and_times(text: str, read: str) -> None:
    assert respell_sign(text) == read


def test_units_of_the_same_kind_are_converted_and_others_are_not() -> None:
    assert compare("5\\,\\mu\\text{F}", "5000\\text{ nF}") != "equal"
    assert compare("1\\text{ M}\\Omega", "1000\\text{ k}\\Omega") == "equal"
    assert compare("1\\text{ M}\\Omega", "1\\text{ m}\\Omega") == "different"


def test_a_near_member_of_a_chain_speaks_for_another() -> None:
    assert exact("\\frac{\\pi}{4}", "\\frac{\\pi}{4} = \\frac{2\\pi}{8} \\approx 0.785") is True
    assert exact("0.785", "\\arctan 1 \\approx 0.785") is None
    assert exact("\\frac16", "P=\\frac{1}{6}\\approx 16.67\\%") is True
    assert exact("\\frac16", "P=\\frac{1}{6}\\approx 17.67\\%") is False


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("minus 7", -7),
        ("12 minus 7", None),
        ("7 million", 7_000_000),
        ("7 million-dollar houses", 7),
        ("7k", None),
        ("7 km", 7),
        ("1.2.3 million", None),
        ("4-5", None),
        ("from 4 to 5", None),
        ("between $4 and $5", None),
        ("4 and 5", 5),
        ("2024-05-05", None),
        ("more than 5", None),
        ("- 5", None),
        ("a list:\n- 5", 5),
        ("\\sqrt{5}", None),
        ("log_2(5)", None),
        ("\\sqrt{25} = 5", 5),
        ("5 (not 6)", 5),
        ("5 (or 6)", None),
        ("(not 6)", None),
        ("five (since 3 is odd)", 3),
    ],
)
def test_numbers_with_words_beside_them(text: str, value: int | None) -> None:
    assert number_of(text) == value
