"""Answers that a text denies, doubts or only mentions, in several languages: none is paid."""

import pytest

from assay.verify import Choice, Numeric, task_and_rollout
from assay.verify.math import MathAnswer, compare

CITIES = {"answer": "B", "options": ["Paris", "London", "Rome", "Berlin"]}
EXACT = MathAnswer(symbolic=False)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("It has to be A given that B is in England.", "A"),
        ("It can only be A given B is in England.", "A"),
        ("A it is; B is in England.", "A"),
        ("Paris. B is in England.", "A"),
        ("Has to be Paris given that B is in England.", "A"),
        ("We conclude A given B.", "A"),
        ("The answer is B erlin", None),
        ("The least likely answer is B.", None),
        ("Vitamin B is good for you.", None),
        ("Hepatitis B", None),
        ("It must be A given what we know of (B).", "A"),
        ("B it is; A is in France.", "B"),
        ("London. A is in France.", "B"),
        ("It has to be B given that A is in France.", "B"),
        ("Paris? No. B is in England, so B.", "B"),
        ("Paris. No, wait: B", "B"),
        ("The answer is B london", "B"),
        ("The answer is B given the map.", "B"),
        ("B because of the map", "B"),
    ],
)
def test_a_mention_behind_another_conclusion(text: str, chosen: str | None) -> None:
    assert Choice()(*task_and_rollout(CITIES, text)).info.get("chosen") == chosen


def test_a_reason_names_no_choice_without_options_either() -> None:
    assert Choice()(*task_and_rollout("B", "Has to be Paris given that B is in England.")).info.get("chosen") is None


DENIALS = (
    "Die Antwort ist nicht {}.",
    "La réponse n'est pas {}.",
    "La réponse n’est pas ({}).",
    "Ответ не {}.",
    "A resposta não é {}.",
    "La respuesta correcta no es la {}.",
    "La risposta non è {}.",
    "Odpowiedź to nie {}.",
    "Jawabannya bukan {}.",
    "Đáp án không phải là {}.",
    "Cevap {} değil.",
    "答案不是{}",
    "正确答案并非{}",
    "排除{}",
    "答えは {} ではない",
    "정답은 {} 가 아니다",
    "الإجابة ليست {}",
    "उत्तर {} नहीं है",
    "{} est faux",
    "{} ist falsch.",
    "{} es incorrecta.",
    "{} — неверно",
    "{} 是错的",
    "Ich glaube nicht, dass die Antwort {} ist.",
    "No creo que la respuesta sea {}.",
    "Je ne pense pas que la réponse soit {}.",
    "Я не думаю, что ответ {}",
    "我不认为答案是 {}",
    "Não acho que a resposta seja {}.",
    "The wrong answer is {}.",
    "A common wrong answer: {}",
    "Wrong answer: {}",
    "I doubt that the answer is {}.",
    "I doubt the answer is {}.",
    "It is impossible that the answer is {}.",
    "It is not true that the answer is {}.",
    "I don't believe the answer is {}.",
    "The answer is {} is wrong.",
)


@pytest.mark.parametrize("text", DENIALS)
def test_a_denied_answer_is_never_paid(text: str) -> None:
    for gold in (CITIES, "B"):
        assert Choice()(*task_and_rollout(gold, text.format("B"))).info.get("chosen") is None
    for judge in (Numeric(), EXACT):
        assert judge(*task_and_rollout("17", text.format(17))).primary == 0.0
    assert Numeric()(*task_and_rollout("17", text.format(17))).info["verdict"] == "unparsed"


def test_an_answer_beside_a_denied_one_counts() -> None:
    text = "Die Antwort ist nicht B, denn London liegt in England. Ich wähle C."
    assert Choice()(*task_and_rollout(CITIES, text)).info.get("chosen") == "C"
    for text in ("Die Antwort ist B, nicht C.", "答案是B，不是C。", "La respuesta es B, no C.", "No es A. La respuesta es B."):
        assert Choice()(*task_and_rollout("B", text)).primary == 1.0, text


@pytest.mark.parametrize(
    "link", ["or", "oder", "o", "ou", "или", "或", "oppure", "veya", "atau", "または", "또는", "أو", "lub", "hoặc"]
)
def test_two_answers_are_none(link: str) -> None:
    for text in (f"17 {link} 18", f"17{link}18" if not link.isalpha() or ord(link[0]) > 0x3000 else f"$17$ {link} $18$"):
        for gold in ("17", "18"):
            assert Numeric()(*task_and_rollout(gold, text)).info["verdict"] == "unparsed", text
            assert compare(gold, text, EXACT) != "equal"
    assert Choice()(*task_and_rollout("B", f"B {link} C")).info["verdict"] == "unparsed"


@pytest.mark.parametrize(
    "text",
    [
        "There is no doubt that the answer is 17.",
        "The number of wrong answers is 17.",
        "The least possible value is 17.",
        "at least 17",
        "It was wrong to add. The answer is 17.",
        "It's not 15, it is 17",
        "It is impossible to stop at 16, so the answer is 17.",
        "17 is the answer",
        "Es sind noch 17",
        "De 20 hay 17",
        "The probability of a wrong answer is 17%, so 17",
        "Answer: 17\nWrong answer: 18",
    ],
)
def test_what_denies_something_else_is_no_denial(text: str) -> None:
    assert Numeric()(*task_and_rollout("17", text)).primary == 1.0


def test_math_passes_over_an_announcement_that_is_doubted() -> None:
    assert compare("18", "The answer is 18. The wrong answer is 17.", EXACT) == "equal"
    assert compare("17", "There is no doubt that the answer is 17.", EXACT) == "equal"
    assert compare("17", "It was wrong. The answer is 17.", EXACT) == "equal"
    assert compare("17", "The number of wrong answers: the answer is 17", EXACT) == "equal"
