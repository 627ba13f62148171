"""Open questions as multiple choice: the gold text is kept, no option is right beside it, and open asks the same again."""

from __future__ import annotations

from typing import Any

import pytest

from assay.core.errors import ConfigError
from assay.tasks import judged_rows, offer_options
from assay.tasks.exchange.importing import ImportableRows, Importer, Summary
from assay.verify.rollouts import rollout_of

SUMS: list[dict[str, Any]] = [
    {"prompt": f"What is {n} halves?", "answer": gold, "verifier": "math"}
    for n, gold in enumerate(("1/2", "0.5", "1", "3/2", "2", "5/2"), 1)
]
TOWNS: list[dict[str, Any]] = [
    {"prompt": f"Capital of {land}?", "answer": town, "verifier": "exact"}
    for land, town in (("France", "Paris"), ("Italy", "Rome"), ("Spain", "Madrid"), ("Peru", "Lima"))
]


def test_the_right_option_has_the_golds_text_and_the_others_are_answers_of_other_rows() -> None:
    found = offer_options([*SUMS, *TOWNS])
    assert [row["verifier"] for row in found] == ["choice"] * 10
    for row, was in zip(found, [*SUMS, *TOWNS], strict=True):
        options = row["answer"]["options"]
        assert list(options) == ["A", "B", "C", "D"] and len(set(options.values())) == 4
        assert options[row["answer"]["answer"]] == was["answer"]
        assert set(options.values()) <= {other["answer"] for other in (SUMS if was in SUMS else TOWNS)}
        assert row["prompt"].startswith(was["prompt"] + "\nA. ")
    assert {row["answer"]["answer"] for row in found} > {"A"}  # its place is drawn
    assert offer_options([*SUMS, *TOWNS]) == found and offer_options([*SUMS, *TOWNS], seed=1) != found


def test_an_answer_that_the_verifier_takes_for_right_is_never_a_wrong_option() -> None:
    for seed in range(8):
        half, decimal, *_ = offer_options(SUMS, seed=seed)
        assert "0.5" not in half["answer"]["options"].values() and "1/2" not in decimal["answer"]["options"].values()


def test_rows_train_as_multiple_choice_and_open_again_they_ask_the_same() -> None:
    row = offer_options(TOWNS)[0]
    source = judged_rows([row], test_share=0)
    ((arm, (level,)),) = source.arms().items()
    task = source.task(arm, level, "train", 0)
    wrong = next(letter for letter in "ABCD" if letter != row["answer"]["answer"])
    told = [source.verifier()(task, rollout_of(task, said, id=said)).primary for said in (row["answer"]["answer"], wrong)]
    assert told == [1.0, 0.0]
    raw = {"question": TOWNS[0]["prompt"], "choices": list(row["answer"]["options"].values()), "answer": row["answer"]["answer"]}
    (opened,) = Importer(choices="open").run([ImportableRows("rows", 1, raw)], Summary())
    assert isinstance(opened, dict) and (opened["prompt"], opened["answer"]) == ("Capital of France?", "Paris")


def test_rows_without_enough_wrong_answers_stay_and_a_single_option_is_refused() -> None:
    assert offer_options(TOWNS[:3]) == TOWNS[:3]
    listed = {"prompt": "?", "answer": ["a", "b"], "verifier": "exact"}
    assert offer_options([*TOWNS, listed])[-1] == listed
    with pytest.raises(ConfigError, match="options=1"):
        offer_options(TOWNS, options=1)
