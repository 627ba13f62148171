"""Choices: which option a text settles on."""

import random
import time

import pytest

from assay.core.errors import DataError
from assay.verify import Choice, task_and_rollout

CITIES = {"answer": "B", "options": ["Paris", "London", "Rome", "Berlin"]}
COLOURS = {"answer": "B", "options": {"A": "red", "B": "blue", "C": "dark blue"}}


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(b)", "B"),
        ("B.", "B"),
        ("**B**", "B"),
        ("$B$", "B"),
        ("[B]", "B"),
        ("Answer: B", "B"),
        ("Answer: (B) because C is wrong", "B"),
        (r"\boxed{B}", "B"),
        ("<answer>C</answer>", "C"),
        ("The answer is B", "B"),
        ("The answer is (B).", "B"),
        ("I think A is wrong, so B.", "B"),
        ("First (A). No: (B)", "B"),
        ("A: no. B: yes. So C", "C"),
        ("I choose B because I like it.", "B"),
        ("A cat is no dog. B", "B"),
        ("I is B", None),
        ("A or B", None),
        ("A and B", None),
        ("(A) (B)", None),
        ("A, B", None),
        ("A/B", None),
        ("B or B", "B"),
        ("neither", None),
        ("", None),
        ("because", None),
        ("E-mail", None),
        ("don't", None),
        ("A or not. Later we see much more, B", None),
    ],
)
def test_letters(said: str, chosen: str | None) -> None:
    score = Choice()(*task_and_rollout("B", said))
    assert score.info.get("chosen") == chosen
    assert score.primary == float(chosen == "B")
    assert score.info["verdict"] == ("unparsed" if chosen is None else "equal" if chosen == "B" else "different")


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ("blue", "B"),
        ("Dark  blue.", "C"),
        ("B) blue", "B"),
        ("B. red", None),
        ("Answer: red", "A"),
        ("D", None),
        ("green", None),
        ("(D)", None),
        ("Not (D) but (A)", "A"),
    ],
)
def test_options(said: str, chosen: str | None) -> None:
    assert Choice()(*task_and_rollout(COLOURS, said)).info.get("chosen") == chosen


def test_golds() -> None:
    for gold in ("b", {"answer": "blue", "options": ["red", "blue"]}, {"answer": "B", "options": ["red", "blue"]}):
        assert Choice()(*task_and_rollout(gold, "(B)")).primary == 1.0
    for gold in ("", "AB", 3, {"options": ["a"]}, {"answer": "A", "options": []}, {"answer": "x", "options": ["y", "y"]}):
        with pytest.raises(DataError, match="gold"):
            Choice()(*task_and_rollout(gold, "B"))
    same = {"answer": "A", "options": {"A": "x", "B": "x", "C": "y"}}
    assert Choice()(*task_and_rollout(same, "x")).info["verdict"] == "unparsed"  # two options say this
    assert Choice(where="tag")(*task_and_rollout("A", "A")).info["verdict"] == "unparsed"


def test_against_a_second_reader() -> None:
    """One statement among remarks on other options: the statement counts, wherever it stands; without one nothing does."""
    rng = random.Random(3)
    states = [
        "The answer is ({}).",
        "I would choose {0} over {1}.",
        "Answer: {}.",
        "So the correct option is {}.",
        "({}) is correct.",
    ]
    remarks = [
        "({}) is in France.",
        "{} is wrong.",
        "P.S. ({})",
        "Note that {} is a distractor.",
        "Option {} is close.",
        "Not {}.",
    ]
    for _ in range(700):
        right, *others = rng.sample("BCDE", 4)
        around = [rng.choice(remarks).format(rng.choice(others)) for _ in range(rng.randint(0, 3))]
        said = rng.choice(states).format(right, others[0])
        at = rng.randint(0, len(around))
        text = rng.choice([" ", "\n"]).join([*around[:at], said, *around[at:]])
        assert Choice()(*task_and_rollout("B", text)).info.get("chosen") == right, text
        joined = f"The answer is {right} {rng.choice(['or', 'and', '/'])} {others[0]}. {' '.join(around)}"
        assert Choice()(*task_and_rollout("B", joined)).info["verdict"] == "unparsed", joined
        unclear = f"({right}) is in France. ({others[0]}) is in Spain. " + " ".join(around)
        assert Choice()(*task_and_rollout("B", unclear)).info["verdict"] == "unparsed", unclear


def test_a_label_that_begins_a_named_answer_counts() -> None:
    for said, chosen in (
        ("Answer: (B) because C is wrong", "B"),
        ("Answer: B, not C", "B"),
        ("Answer: B or C", None),
        ("Answer: not A but C", "C"),
        ("(B) because C is wrong: C", "B"),
    ):
        assert Choice()(*task_and_rollout("B", said)).info.get("chosen") == chosen, said


@pytest.mark.parametrize(
    "text", ["not B", "The answer is not B", "It is not option (B).", "anything but B", "Answer: not B", "isn't B"]
)
def test_an_option_that_is_denied_is_no_answer(text: str) -> None:
    score = Choice()(*task_and_rollout("B", text))
    assert (score.primary, score.info["verdict"]) == (0.0, "unparsed")


@pytest.mark.parametrize("text", ["Not A. It is B", "not A but B", "I would not say A; B"])
def test_an_option_behind_a_denial_of_another_is_one(text: str) -> None:
    assert Choice()(*task_and_rollout("B", text)).primary == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "The answer is (B). (A) is in France, and (C) in Italy.",
        "Answer: B. (A) is in France.",
        "I would choose B over A.",
        "\\boxed{\\textbf{(B)}}",
        "\\boxed{\\text{(B) London}}",
        "$\\mathbf{B}$",
        "The correct option is B) London.",
        "Option B is correct. Option A is wrong, since it is in France.",
        "B is the right answer; A and C are distractors.",
        "**Final answer:** (B)\n\nA is in France.",
        "My answer is B\n\nP.S. A",
        "The answer is London, the capital of England; Paris is not.",
        "The answer isn't (A), it's (B).",
        "The answer is not A but B.",
        "The answer is A. No, wait: the answer is B.",
        "B\n\nExplanation: (A) is in France and (C) in Italy.",
        "（Ｂ）",
        "答案是B。",
        "答案：B",
        "La respuesta es B.",
        "Die Antwort ist B.",
        "I'd go with B rather than C.",
        "So the correct answer is **B. London**, not C.",
        "Only B remains. A is wrong. C is wrong. So B.",
        "A is incorrect. C is incorrect. D is incorrect. Therefore, B.",
        "the answer is b because a is wrong",
        "Thus, (B) is the best choice. (C) would be second.",
        "<think>The answer is A? Hmm.</think>B",
        "Answer:\n\nB",
        "ANSWER IS B. A is incorrect.",
        "The best answer is B, although A is close.",
        "The answer to the question is B.",
        "I think it's B, since A is in France.",
        "I'm not sure, but the answer is B.",
        "A, C and D are wrong, so the answer is B",
        "It must be (B), because (A) is not in England.",
        "Answer B",
        "The answer is: (B) London",
        "Correct answer: B\nIncorrect: A, C, D",
        "\\(\\boxed{B}\\)",
        "Answer: $\\boxed{\\text{B}}$. Not A.",
        "Answer: b)",
        "answer: **b**",
        "Respuesta: B",
        "Some say the answer is A, but the answer is B.",
        "I first thought the answer is A, but B is correct.",
        "I choose London.",
        "London",
        "Answer: London, not Paris.",
        'The answer is "London".',
        "A wrong answer would be A. The right answer is B.",
        "Which answer is correct? Let us see. A: Paris is in France. B: London is in England. Hence B.",
    ],
)
def test_what_a_text_calls_its_answer_counts(text: str) -> None:
    assert Choice()(*task_and_rollout(CITIES, text)).primary == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "The answer is (A). Option (B) is in England.",
        "I would choose A over B.",
        "A > B",
        "My answer is A\n\nP.S. B",
        "The answer is A, and B is a distractor.",
        "A is correct. B is close.",
        "A is correct, B is not.",
        "B is wrong.",
        "B is incorrect.",
        "The answer is not B.",
        "I would not choose B.",
        "I don't think the answer is B.",
        "Some say the answer is B.",
        "If the answer is B, then Paris is in England.",
        "A wrong answer is B.",
        "The answer is A. Note (B)",
        "The answer is B or C.",
        "The answer is either A or B.",
        "both A and B",
        "The answer is A and B",
        "B and C are both correct.",
        "Answer: A\nB",
        "Answer: A. B",
        "Answer: A (B)",
        "\\boxed{A} B",
        "\\boxed{\\text{A}} or \\boxed{\\text{B}}x \\boxed{C}",
        "<answer>A</answer> B",
        "A B C D",
        "A, B, C, D",
        "Paris is (A), London is (B), Rome is (C)",
        "Paris is (A), London is (B)",
        "A) Paris\nB) London",
        "The answer is Paris. London (B) is in England.",
        "The answer is London or Paris.",
        "The answer is Londonderry.",
        "The answer is not London.",
        "I would pick A instead of B.",
        "A rather than B",
        "I rule out B.",
        "B is out.",
        "It is A, not B.",
        "It's not B.",
        "The answer is A. B is a city too: B.",
        "The answer is A\n\n(B)",
        "the answer is a\nb",
        "The second best option is B.",
        "The answer is C.\nThe correct option is not B.",
        "B? No. A.",
        "Answer: A or B",
        "A. Everything else, even B, fails.",
        "I doubt that B is correct.",
        "The answer is В",
        "The answer is A because B",
        "B or not B",
        "The answer is B. No, wait. A.",
        "I pick D; my friend picks B",
        "Suppose the answer is B",
        "Is the answer B? No.",
        "The answer might be B or A",
        "Not B",
        "Everything but B",
        "The answer is A. The opposite of A is B.",
        "choose A. choose not B",
    ],
)
def test_an_option_that_is_only_mentioned_is_no_answer(text: str) -> None:
    assert Choice()(*task_and_rollout(CITIES, text)).primary == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "B is out.",
        "Is it B?",
        "The answer is A or London",
        "B or not B",
        "The answer is London or Paris",
        "B. A",
        "A)\nB)",
        "The answer is B. B is wrong.",
        "both are right, B and C",
        "I doubt B is right",
        "A\nbecause it is so\nB",
    ],
)
def test_what_is_unclear_is_unparsed(text: str) -> None:
    assert Choice()(*task_and_rollout(CITIES, text)).info["verdict"] == "unparsed"


def test_places() -> None:
    text = "The answer is (A).\nAnswer: B because (C) is far"
    for where, chosen in (("auto", "B"), ("mark", "B"), ("line", "B"), ("whole", "B"), ("tag", None), ("box", None)):
        assert Choice(where=where)(*task_and_rollout("B", text)).info.get("chosen") == chosen, where
    assert Choice(where="whole")(*task_and_rollout("B", r"\boxed{B} or \boxed{C}")).info.get("chosen") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "B ",
        "(B) ",
        "B or ",
        "The answer is ",
        "answer " * 9,
        "I would ",
        "so ",
        r"\text{",
        "London or ",
        "if ",
        "*",
        "(",
        "not ",
        "\n",
        "is ",
    ],
)
def test_time_grows_with_the_length_and_not_faster(part: str) -> None:
    gold = {"answer": "B", "options": ["Paris", "London"]}
    began = time.process_time()
    Choice()(*task_and_rollout(gold, part * (20_000 // len(part))))
    assert time.process_time() - began < 5.0  # what is quadratic takes a dozen seconds and more


def test_styles_inside_styles_and_statements_far_away() -> None:
    text = "B"
    for style in ("text", "textbf", "mathrm", "mathbf"):
        text = f"\\{style}{{{text}}}"
    assert Choice()(*task_and_rollout(CITIES, text)).primary == 1.0
    assert Choice()(*task_and_rollout(CITIES, f"\\emph{{{text}}}")).primary == 1.0
    assert Choice()(*task_and_rollout(CITIES, "If the answer is far away from here, then we see (B)")).primary == 1.0
