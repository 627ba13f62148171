"""Multiple choice imported as open questions: the same gold text, and refusals of what means nothing without its options."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.tasks import judged_rows
from assay.tasks.exchange.forms.open_question import open_question
from assay.tasks.exchange.forms.route import Route, Unsupported
from assay.tasks.exchange.importing import ImportableRows, Importer, Rejected, Summary
from assay.verify.rollouts import rollout_of


def imported(raw: dict[str, Any], **settings: Any) -> dict[str, Any] | Rejected:
    (made,) = Importer(**settings).run([ImportableRows("rows", 1, raw)], Summary())
    return made


CAPITAL = {"question": "What is the capital of France?", "choices": ["Lyon", "Paris", "Nice"], "answer": "B"}
SUM = {"question": "How many legs have two spiders?", "choices": ["8", "12", "16"], "answer": "C"}


def test_an_open_question_keeps_the_gold_text_and_shows_no_option() -> None:
    kept, asked = imported(CAPITAL), imported(CAPITAL, choices="open")
    assert isinstance(kept, dict) and isinstance(asked, dict)
    assert kept["answer"]["options"][kept["answer"]["answer"]] == "Paris" == asked["answer"]
    assert "Lyon" in kept["prompt"] and asked["prompt"] == CAPITAL["question"]
    source = judged_rows([asked], test_share=0)
    ((arm, (level,)),) = source.arms().items()
    task = source.task(arm, level, "train", 0)
    right = [source.verifier()(task, rollout_of(task, text, id=str(i))).primary for i, text in enumerate(("Paris", "Lyon", "B"))]
    assert right == [1.0, 0.0, 0.0]


def test_numbers_are_judged_as_mathematics_and_other_rows_stay_as_they_are() -> None:
    asked = imported(SUM, choices="open")
    assert isinstance(asked, dict) and asked["verifier"] == "math" and asked["answer"] == "16"
    plain = {"question": "2+2?", "answer": "4"}
    assert imported(plain, choices="open") == imported(plain)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"question": "Which of the following is a city?"}, "means nothing without its options"),
        ({"question": "All of them are cities, except"}, "means nothing without its options"),
        ({"question": "Which statement is true?"}, "means nothing without its options"),
        ({"choices": ["Lyon", "all of the above", "Nice"]}, "is about its options"),
        ({"choices": ["Lyon", "a town that has many more than the ten words allowed here", "Nice"]}, "12 words"),
        ({"question": "Pick one. A. Lyon B. Paris C. Nice"}, "shows the options in its own text"),
    ],
)
def test_what_means_nothing_without_its_options_is_refused(change: dict[str, Any], reason: str) -> None:
    found = imported({**CAPITAL, **change}, choices="open")
    assert isinstance(found, Rejected) and reason in json.dumps(found.record())
    assert isinstance(imported({**CAPITAL, **change}), dict)


def test_only_routes_of_multiple_choice_are_changed() -> None:
    route = Route(form="number", verifier="math", answer="4")
    assert open_question(route, "2+2?") is route
    with pytest.raises(Unsupported, match="without --choices open"):
        open_question(Route(form="c", verifier="choice", answer={"answer": "A", "options": {"A": "x", "B": "y"}}), "?")
