"""Texts under constraints: every kind is drawn, every task can be fulfilled, and nothing else fulfils it."""

from __future__ import annotations

from collections import Counter
from random import Random
from statistics import mean

import pytest

from assay.core.canon import plain
from assay.tasks import Problems
from assay.verify.constraints.verifier import constraint_of, describe_constraints
from assay.verify.rollouts import rollout_of
from assay_tasks.instructions import ConstrainedText, instructions, written_to

SOURCE: Problems = instructions()
ARM = "instructions/constraints"


def test_the_oracle_keeps_every_kind_of_constraint() -> None:
    verifier, kinds = SOURCE.verifier(), Counter[str]()
    for index in range(90):
        task = SOURCE.task(ARM, 5 + index % 4, "train", index)
        specs = plain(task.private["answer"])
        kinds.update(spec["constraint"] for spec in specs)
        assert len(specs) == task.level + 1 and len({s["constraint"] for s in specs}) == len(specs)
        assert describe_constraints(specs) in task.public["prompt"]
        text = task.private["solution"]
        assert dict(verifier(task, rollout_of(task, text)).components) == {"correct": 1.0, "fraction": 1.0}
        assert verifier(task, rollout_of(task, task.public["prompt"])).primary == 0.0
        without = text.replace(specs[0]["keywords"][0], "thing").replace(specs[0]["keywords"][0].upper(), "THING")
        assert verifier(task, rollout_of(task, without)).primary == 0.0
    wanted = {
        "keywords",
        "words",
        "sentences",
        "characters",
        "paragraphs",
        "paragraph_start",
        "bullets",
        "numbered_list",
        "sections",
        "lower_case",
        "upper_case",
        "capital_words",
        "starts_with",
        "quoted",
        "ends_with",
        "postscript",
        "forbidden",
        "keyword_frequency",
        "letter_frequency",
        "title",
        "highlights",
        "placeholders",
        "no_commas",
    }
    assert set(kinds) == wanted and kinds["keywords"] == 90


def test_texts_by_hand() -> None:
    rules = [
        {"constraint": "title"},
        {"constraint": "paragraphs", "count": 2, "relation": "exactly"},
        {"constraint": "lower_case"},
        {"constraint": "ends_with", "phrase": "The End."},
    ]
    assert written_to("tea", rules) == "<<about tea>>\nthis is about tea.\n\nmore could be said of it.\nthe end."
    assert (
        written_to("tea", [{"constraint": "starts_with", "phrase": "So"}, {"constraint": "upper_case"}])
        == "SO: THIS IS ABOUT TEA."
    )


@pytest.mark.parametrize(
    "pair",
    [
        [{"constraint": "lower_case"}, {"constraint": "upper_case"}],
        [{"constraint": "words", "count": 3, "relation": "at_most"}, {"constraint": "sentences", "count": 3}],
    ],
)
def test_what_cannot_be_kept_is_no_task(pair: list[dict[str, object]]) -> None:
    assert written_to("tea", pair) is None
    assert not ConstrainedText().fair({"theme": "tea", "constraints": pair})


def test_a_request_that_fulfils_itself_is_no_task() -> None:
    specs = [{"constraint": "keywords", "keywords": ["oak", "elm"]}, {"constraint": "title"}]
    assert all(constraint_of(spec).holds(describe_constraints(specs)) for spec in specs)
    assert not ConstrainedText().fair({"theme": "tea", "constraints": specs})


def test_no_quoted_text_ends_otherwise() -> None:
    for index in range(200):
        kinds = {s["constraint"] for s in ConstrainedText().draw(8, Random(index))["constraints"]}
        assert "quoted" not in kinds or not kinds & {"ends_with", "postscript"}


def test_higher_levels_take_more() -> None:
    effort = [mean(SOURCE.task(ARM, level, "train", i).private["effort"] for i in range(12)) for level in range(1, 9)]
    assert effort == sorted(effort) and effort[-1] > 5 * effort[0]
