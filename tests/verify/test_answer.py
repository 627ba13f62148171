"""Where an answer stands in a text, rollouts written by hand, and exact match with what it may forgive."""

import random
import string

import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.core.rollout import Stop
from assay.verify import AnswerPlace, ExactMatch, Numeric, task_and_rollout
from assay.verify.answer_verifier import answer_in
from assay.verify.exact import word_f1


@pytest.mark.parametrize(
    ("text", "where", "found"),
    [
        ("a <answer> 4 </answer> b", "auto", "4"),
        ("<answer>1</answer> <ANSWER>2</Answer>", "tag", "2"),
        ("<answer>1</answer> and <answer>2", "tag", "1"),  # one left open is none
        ("</answer> <answer>2", "tag", None),
        ("<answer>a <answer>b</answer></answer>", "tag", "a <answer>b</answer>"[len("a <answer>") :]),
        (r"\boxed{1} then \boxed{\frac{1}{2}}", "box", r"\frac{1}{2}"),
        (r"\boxed{3} and \boxed{4", "box", "3"),
        (r"} \boxed {3}", "box", "3"),
        (r"{x} and }", "box", None),
        (r"<answer>\boxed{3}</answer>", "auto", r"\boxed{3}"),
        (r"Answer: 5, so \boxed{6}", "auto", "6"),
        ("Answer: 5\nnot 6", "auto", "5"),
        ("The final answer is: **5**", "auto", "5"),
        ("**Answer:** $5$", "auto", "5"),
        ("Answer:\n1\n2", "mark", "1\n2"),
        ("Answer: 1\nanswer = 2", "mark", "2"),
        ("no mark", "mark", None),
        ("  the whole \n", "auto", "the whole"),
        ("a\n b \n\n", "line", "b"),
        ("\n \n", "line", None),
        (" x ", "whole", "x"),
        ("", "auto", ""),
    ],
)
def test_place(text: str, where: str, found: str | None) -> None:
    assert answer_in(text, where) == found


def test_the_last_one_counts_whatever_came_before() -> None:
    rng = random.Random(0)
    for _ in range(500):
        said = [str(rng.randrange(100)) for _ in range(rng.randint(1, 5))]
        for frame in ("<answer>{}</answer>", "\\boxed{{{}}}", "Answer: {}"):
            assert answer_in(" so\n".join(frame.format(x) for x in said)) == said[-1]


def test_a_cut_off_attempt_gave_no_answer() -> None:
    score = Numeric()(*task_and_rollout(4, "4", stop=Stop.LENGTH))
    assert dict(score.components) == {"correct": 0.0}
    assert score.info["verdict"] == "unfinished"
    assert task_and_rollout(4, "4")[1].text == "4"


def test_a_wrong_gold_names_its_task() -> None:
    with pytest.raises(DataError, match="task 'seven': the gold 'x' is no number"):
        Numeric()(*task_and_rollout("x", "4", id="seven"))
    with pytest.raises(UnknownNameError, match=r"value of Numeric.where 'box2': did you mean 'box'"):
        Numeric(where="box2")


@pytest.mark.parametrize(
    ("gold", "said", "settings", "value"),
    [
        ("The Cat", "the cat", {}, 0.0),
        ("The Cat", "the cat", {"casefold": True}, 1.0),
        ("Straße", "STRASSE", {"casefold": True}, 1.0),
        ("a.b", "ab", {"punctuation": True}, 1.0),
        ("12", "１２", {"unicode": True}, 1.0),
        ("12", "１２", {}, 0.0),
        ("the cat sat", "A  cat\nsat", {"articles": True}, 1.0),
        ("theatre", "atre", {"articles": True}, 0.0),
        (["four", "4"], "4", {}, 1.0),
        (["four", "4"], "5", {}, 0.0),
        (2, "2", {}, 1.0),
        ("4", "so <answer>4</answer>", {"where": "tag"}, 1.0),
        ("4", "4", {"where": AnswerPlace.TAG}, 0.0),
    ],
)
def test_exact_forgives_only_what_it_is_told(gold: object, said: str, settings: dict, value: float) -> None:
    assert ExactMatch(**settings)(*task_and_rollout(gold, said)).primary == value


def test_exact_says_why() -> None:
    verdicts = [
        ExactMatch(where="tag")(*task_and_rollout("4", said)).info["verdict"]
        for said in ("4", "<answer>4</answer>", "<answer></answer>")
    ]
    assert verdicts == ["unparsed", "equal", "different"]


def test_f1_against_a_second_count() -> None:
    def second(gold: str, said: str) -> float:
        rest, common = said.split(), 0
        for word in gold.split():
            if word in rest:
                rest.remove(word)
                common += 1
        if not gold.split() or not said.split():
            return float(gold.split() == said.split())
        precision, recall = common / len(said.split()), common / len(gold.split())
        return 0.0 if common == 0 else 2 * precision * recall / (precision + recall)

    rng = random.Random(1)
    for _ in range(2000):
        gold, said = (" ".join(rng.choices("abcd", k=rng.randint(0, 6))) for _ in range(2))
        assert word_f1(gold, said) == pytest.approx(second(gold, said))
    score = ExactMatch(f1=True)(*task_and_rollout(["a b", "c"], "a b d"))
    assert dict(score.components) == {"correct": 0.0, "f1": pytest.approx(0.8)}


@pytest.mark.parametrize("gold", [None, [], {}, [None], [["a"]], [{}]])
def test_exact_refuses_a_gold_that_no_text_can_be(gold: object) -> None:
    with pytest.raises(DataError, match="neither a text nor a list of texts"):
        ExactMatch()(*task_and_rollout(gold, "a"))


def test_squad_normalisation_against_the_published_steps() -> None:
    def squad(text: str) -> str:  # lower, punctuation, articles, white space: as SQuAD's evaluation script
        import re

        text = "".join(c for c in text.lower() if c not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    ours = ExactMatch(strip=True, casefold=True, punctuation=True, articles=True)
    rng = random.Random(2)
    pieces = ["the", "The", "a", "cat", "Cat.", "an", "o'clock", ",", "  ", "\n", "cat", "dog", "DOG!"]
    for _ in range(4000):
        gold, said = (" ".join(rng.choices(pieces, k=rng.randint(1, 4))) for _ in range(2))
        assert ours(*task_and_rollout(gold, said)).primary == float(squad(gold) == squad(said)), (gold, said)
