"""Numbers: read exactly, compared within tolerance."""

import random
import re
import time
from decimal import Decimal
from fractions import Fraction

import pytest

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.verify import Closeness, Numeric, task_and_rollout
from assay.verify.text.number import number_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("−5", -5),
        ("+5", 5),
        ("5.", 5),
        ("5.50", Fraction(11, 2)),
        (".5", Fraction(1, 2)),
        ("0005", 5),
        ("1,234", 1234),
        ("1,234,567.5", Fraction(2469135, 2)),
        ("12,34", None),
        ("1,2", None),
        ("1.2.3", None),
        ("1234,567", None),
        ("1e3", 1000),
        ("1E-3", Fraction(1, 1000)),
        ("1e+3.", 1000),
        ("1e5.5", None),
        ("2e3x", 2000),
        ("1e999", None),
        ("3/4", Fraction(3, 4)),
        ("3 / 4", Fraction(3, 4)),
        ("-3/4.", Fraction(-3, 4)),
        ("3/0", None),
        ("1/2/2024", None),
        ("3/4.5", None),
        ("50%", Fraction(1, 2)),
        ("50 %", Fraction(1, 2)),
        (r"50\%", Fraction(1, 2)),
        ("$5", 5),
        ("5kg", 5),
        ("x=-5", -5),
        ("3-5", None),
        ("between 3 and 5", None),
        ("5 or 6", None),
        ("$5$ or **6**", None),
        ("1/2 or 0.5", Fraction(1, 2)),
        ("50% or 50", None),
        ("x2", None),
        ("H2O", None),
        ("5 m2", 5),
        ("٥", None),
        ("5", 5),
        ("nan", None),
        ("inf", None),
        ("", None),
        (".", None),
        ("-", None),
        ("10^3", None),
        ("10^{3}", None),
        (r"\frac{3}{4}", Fraction(3, 4)),
        ("1" * 400, int("1" * 400)),
        ("1" * 401, None),
        ("1/" + "1" * 401, None),
        ("5 apples.", 5),
        ("**5**", 5),
        ("a 7, and 8, so 9", 9),
        ("1_000", None),
        ("5_", 5),
        ("5e", 5),
        ("5e-", 5),
        ("5²", None),
        ("10³", None),
        ("5 + 10^3", None),
        ("2^10", None),
        ("-$42", -42),
    ],
)
def test_reading(text: str, value: object) -> None:
    assert number_of(text) == value


def test_alone() -> None:
    for text, value in ((" 5. ", 5), ("$5", 5), ("5 m", None), ("about 5", None), ("5%", Fraction(1, 20)), ("1 2", None)):
        assert number_of(text, alone=True) == value
    assert Numeric(alone=True)(*task_and_rollout(5, "it is 5")).info["verdict"] == "unparsed"
    assert Numeric(alone=True)(*task_and_rollout(5, "Answer: 5")).primary == 1.0


@pytest.mark.parametrize(
    ("gold", "said", "settings", "value"),
    [
        (0.3, "0.3", {}, 1.0),
        (0.3, "0.30000000000000004", {}, 0.0),
        ("0.1", "1/10", {}, 1.0),
        (1, "1.1", {"absolute": 0.1}, 1.0),
        (1, "1.1000001", {"absolute": 0.1}, 0.0),
        (-100, "-101", {"relative": 0.01}, 1.0),
        (-100, "-101.01", {"relative": 0.01}, 0.0),
        (0, "0.001", {"relative": 0.5}, 0.0),
        ("50%", "0.5", {}, 1.0),
        ("50%", "50", {}, 0.0),
        (50, "50%", {"percent": "number"}, 1.0),
        (50, "50%", {"percent": "refuse"}, 0.0),
        (0.5, "50%", {"percent": "refuse"}, 0.0),
        (100, "<answer>100 m</answer> or 5", {}, 1.0),
        (1e22, "10000000000000000000000", {}, 1.0),
        (5, "4", {"where": "box"}, 0.0),
        (10, "9", {"absolute": 0.5, "relative": 0.05}, 1.0),
        (10, "8.99", {"absolute": 0.5, "relative": 0.05}, 0.0),
    ],
)
def test_tolerance(gold: object, said: str, settings: dict, value: float) -> None:
    assert Numeric(**settings)(*task_and_rollout(gold, said)).primary == value


def test_settings_and_golds() -> None:
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match=r"Numeric\.(absolute|relative)="):
            Numeric(absolute=wrong)
        with pytest.raises(ConfigError, match=r"Numeric\.(absolute|relative)="):
            Numeric(relative=wrong)
    with pytest.raises(UnknownNameError, match="percent"):
        Numeric(percent="half")
    for gold in ("x", True, None, "5 m", float("nan"), [1]):
        with pytest.raises(DataError, match="is no number"):
            Numeric()(*task_and_rollout(gold, "5"))


def test_against_decimals() -> None:
    """Near misses around the edge of the tolerance, judged again in decimal arithmetic on the digits themselves."""
    rng = random.Random(6)
    hits = 0
    for _ in range(2000):
        digits = rng.randint(0, 6)
        gold = Decimal(rng.randint(-(10**5), 10**5)).scaleb(-digits)
        absolute, relative = rng.choice(["0", "0.5", "0.001"]), rng.choice(["0", "0.01", "0.1"])
        edge = Decimal(absolute) + Decimal(relative) * abs(gold)
        nudge = rng.choice([0, 0, 1, -1]) * Decimal(1).scaleb(-digits - 6)
        said = gold + rng.choice([1, -1]) * edge + nudge
        written = rng.choice(["{:f}", "so {:f}.", "Answer: {:,f}", "{:e}", "${:f}$"]).format(said)
        read = re.sub("[^0-9eE.+-]", "", written.removeprefix("so").replace("Answer:", "")).rstrip(".")
        wanted = abs(Decimal(read) - gold) <= edge
        hits += wanted
        verdict = Numeric(absolute=float(absolute), relative=float(relative))(*task_and_rollout(f"{gold:f}", written))
        assert verdict.primary == float(wanted), (gold, written, edge)
    assert 1000 < hits < 5500


@pytest.mark.parametrize(
    "text",
    [
        "not 5",
        "The answer is not 5.",
        "anything but 5",
        "isn't 5",
        "It isn’t **5**",
        r"x \neq 5",
        r"x \ne 5",
        "x != 5",
        "≠5",
        "not equal to $5$",
        "never 5",
        "neither 4 nor 5",
        "other than the number 5",
        "Answer: not 5",
        r"\boxed{not 5}",
        "cannot be 5",
        "except (5)",
    ],
)
def test_a_number_that_is_denied_is_no_answer(text: str) -> None:
    score = Numeric()(*task_and_rollout(5, text))
    assert (score.primary, score.info["verdict"]) == (0.0, "unparsed")


@pytest.mark.parametrize(
    "text", ["not 4, but 5", "It is not 4. It is 5", "nothing but 5", "Why not? 5", "5, not bad", "the knot 5"]
)
def test_a_number_behind_a_denial_of_another_is_one(text: str) -> None:
    assert Numeric()(*task_and_rollout(5, text)).primary == 1.0


@pytest.mark.parametrize(
    ("said", "gold", "value"), [("10", 10, 1.0), ("10.5", 10, 0.725), ("12", 10, 0.4), ("0", 10, 0.0), ("ten", 10, 0.0)]
)
def test_closeness_is_the_published_reward(said, gold, value):
    score = Closeness()(*task_and_rollout(gold, said))
    assert score.components["closeness"] == pytest.approx(value, abs=1e-7)
    assert score.primary == score.components["correct"] == float(value == 1.0)


def test_closeness_of_a_gold_of_zero_of_signs_and_within_a_tolerance():
    def parts(said, gold, **settings):
        return dict(Closeness(**settings)(*task_and_rollout(gold, said)).components)

    assert parts("0", 0) == {"correct": 1.0, "closeness": 1.0}
    assert parts("0.5", 0)["closeness"] == pytest.approx(0.25)  # half of the distance of 1, all of the size of nothing
    assert parts("-10", 10)["closeness"] == 0.0
    assert parts("1/3", "2/6") == {"correct": 1.0, "closeness": 1.0}
    near = parts("10.5", 10, relative=0.1)
    assert near["correct"] == 1.0 and near["closeness"] == pytest.approx(0.725)
    values = [parts(str(10 + step / 10), 10)["closeness"] for step in range(12)]
    assert values == sorted(values, reverse=True) and len(set(values)) == 12


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        (42, "2+40=42\n#### 42\nThe reasoning above confirms it in 3 ways."),
        (20, "#### 20\n\nQuestion: A man has 7 dogs"),
        (3.5, "3 1/2"),
        (1500, "1.5 × 10^3"),
        (1500, "$1.5 \\times 10^{3}$"),
        (0.0015, "1.5 × 10^-3"),
        (0.0015, "1.5·10⁻³"),
        (1500, "1.5*10^3 m"),
        (1500, "1.5 * 10**3"),
        (42, "４２"),
        (-3.5, "-3 1/2"),
        (3.5, "3\\frac{1}{2}"),
        (3.5, "3½"),
        (0.5, "½"),
        (0.75, "\\frac{3}{4}"),
        (0.75, "The value is $\\dfrac34$."),
        (-0.75, "-\\frac{3}{4}"),
        (1234, "1{,}234"),
        (1234, "1\\,234"),
        (300000000, "3 \\times 10^8 m/s"),
        (20, "#### $20"),
        (20, "#### 20 apples"),
        (20, "#### **20**"),
        (1234, "#### 1,234"),
        (0.5, "#### 1/2"),
        (7, "#### Step 3\nso it is 7"),
        (7, "#### 3. Final step\nso it is 7"),
        (6, "#### 5\n#### 6"),
        (9, "#### 5 \\boxed{9}"),
        (3.5, "<answer>3 1/2</answer>"),
        (3.5, "Answer: 3 1/2 cups"),
        (1.5, "Result: 1 ½"),
        (20, "#### 20\n\n#### Explanation\nIn 3 steps"),
        (-5, "#### -5"),
        (2500, "2.5x10^3"),
        (6.02e23, "6.02 × 10^23"),
    ],
)
def test_the_forms_in_which_numbers_are_written(gold: float, text: str) -> None:
    assert Numeric()(*task_and_rollout(gold, text)).primary == 1.0


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        (20, "#### 21\n20"),
        (42, "42\n#### 43"),
        (3, "3 1/2"),
        (0.5, "3 1/2"),
        (0.5, "3½"),
        (3, "3½"),
        (1.5, "1.5 × 10^3"),
        (3, "1.5 × 10^3"),
        (10, "1.5 · 10³"),
        (1500, "1.5 × 10^4"),
        (1500, "not 1.5 × 10^3"),
        (1000, "10^3"),
        (234, "1{,}234"),
        (234, "1\\,234"),
        (0.5, "x^{\\frac{1}{2}}"),
        (0.5, "\\frac{1}{2}\\pi"),
        (0.5, "\\frac{1}{2}x"),
        (0.75, "\\frac{3}{5}"),
        (1500, "1.5 × 10^3.5"),
        (3.5, "3 1/2/2024"),
        (20, "#### 20 or 21"),
        (5, "#### 5\n#### 6"),
        (42, "４３"),
        (5, "٥"),
        (600, "2 × 3 × 10^2"),
        (1500, "1.5 × 10^3 or 2"),
        (3.5, "not 3 1/2"),
        (3.5, "3 2/1"),
        (0.5, "2^{1/2}"),
        (1500, "1.5 × 10^3^2"),
        (20, "#### not 20"),
        (3.5, "3 1/3"),
        (3, "3.0 × 10^400000"),
        (1500, "1.5, × 10^3"),
    ],
)
def test_another_number_is_never_taken_for_it(gold: float, text: str) -> None:
    assert Numeric()(*task_and_rollout(gold, text)).primary == 0.0


@pytest.mark.parametrize("inside", ["45, 44", "45\x0044", "44 45 44", "45 44", "4 and 44", "1.2.3 44", "43..44 44", "45\n44"])
def test_several_numbers_where_the_answer_stands_are_no_answer(inside: str) -> None:
    for where, text in (("tag", f"<answer>{inside}</answer>"), ("box", f"\\boxed{{{inside}}}"), ("mark", f"Answer: {inside}")):
        for place in (where, "auto"):
            if where == "mark" and "\n" in inside:
                continue  # the answer ends with its line
            score = Numeric(where=place)(*task_and_rollout(44, text))
            assert (score.primary, score.info["verdict"]) == (0.0, "unparsed"), (place, text)


@pytest.mark.parametrize(
    ("gold", "inside"),
    [(1234, "1,234 km"), (3.5, "3 1/2 cups"), (1500, "$1.5 \\times 10^3$ m"), (0.5, "1/2 or 0.5"), (44, "44 = 44"), (5, "5 m2")],
)
def test_one_number_in_its_own_words_is_an_answer(gold: float, inside: str) -> None:
    for text in (f"<answer>{inside}</answer>", f"\\boxed{{{inside}}}", f"3 ways.\nAnswer: {inside}"):
        assert Numeric()(*task_and_rollout(gold, text)).primary == 1.0, text


@pytest.mark.parametrize(
    "part", ["1 ", "1.", "× 10^", "1 × 10", "\\frac{1}", "#### ", "#### 1 a b\n", "1/", "½", "\\,123", "3 1/"]
)
def test_time_grows_with_the_length_and_not_faster(part: str) -> None:
    began = time.process_time()
    Numeric()(*task_and_rollout(5, part * (200_000 // len(part))))
    assert time.process_time() - began < 5.0  # what is quadratic takes minutes


@pytest.mark.parametrize(
    ("said", "reward"),
    [
        ("Answer: 2+40 = 42", 1.0),
        ("<answer>6*7 = 42</answer>", 1.0),
        ("\\boxed{x = 42}", 1.0),
        ("<answer>42 = 42</answer>", 1.0),
        ("<answer>45 = 42</answer>", 0.0),
        ("<answer>40 + 2 = x</answer>", 0.0),
        ("<answer>= 45, 42</answer>", 0.0),
    ],
)
def test_a_chain_of_equations_says_its_last_member(said: str, reward: float) -> None:
    assert Numeric()(*task_and_rollout("42", said)).components["correct"] == reward
