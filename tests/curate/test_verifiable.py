"""Golds that a verifier accepts, solvers that agree, and answers of a form that can be checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from curate_support import Result, curated, write

from assay.core.errors import ConfigError, DataError
from assay.curate import AnswerForm, Case, SolversAgree, VerifierAccepts


@dataclass(frozen=True)
class Boxed:
    """Accepts a boxed answer that equals the gold; has no verdict on 'broken', and says why on 'odd'."""

    def __call__(self, cases: Sequence[Case]) -> list[float | str | None]:
        right = [first(c.gold) for c in cases]
        return [
            {"broken": None, "odd": "no number"}[gold] if gold in ("broken", "odd") else float(c.answer == f"\\boxed{{{gold}}}")
            for gold, c in zip(right, cases, strict=True)
        ]


def first(gold: Any) -> Any:
    return gold[0] if isinstance(gold, list) else gold["answer"] if isinstance(gold, dict) else gold


def why(found: Result) -> dict[Any, str]:
    return {r["row"]["n"]: r["reason"] for r in found.rejected}


def test_a_gold_that_no_form_makes_acceptable_goes(tmp_path: Path) -> None:
    golds = ["4", "broken", None, 5, ["7", "seven"], {"answer": 8}, "odd"]
    rows = [{"prompt": f"q{i}", "answer": g, "n": i} for i, g in enumerate(golds)]
    found = curated(tmp_path, rows, [VerifierAccepts(grader=Boxed())], chunk=2)
    assert found.lines_kept() == [0, 3, 4, 5]
    assert why(found) == {1: "no verdict on its gold", 2: "no gold answer", 6: "no verdict on its gold"}
    assert [r["evidence"]["values"] for r in found.rejected if r["row"]["n"] in (1, 6)] == [[None] * 2, ["no number"] * 2]
    plain = curated(tmp_path, rows[:1], [VerifierAccepts(grader=Boxed(), templates=("{answer}",))])
    assert plain.rejected[0]["evidence"] == {"gold": "4", "values": [0.0]}
    assert why(plain) == {0: "verifier refuses its gold"}
    for wrong in ((), ("answer",)):
        with pytest.raises(ConfigError, match="where the answer belongs"):
            VerifierAccepts(grader=Boxed(), templates=wrong)


def test_solvers_must_agree(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "answer": str(i), "n": i} for i in range(4)] + [{"prompt": "none", "n": 4}]
    one = write(tmp_path / "one.jsonl", [{"prompt": f"q{i}", "answer": f"\\boxed{{{i}}}"} for i in (0, 1)])
    two = write(
        tmp_path / "two.jsonl",
        [{"prompt": f"q{i}", "answers": ["?", f"\\boxed{{{i}}}"]} for i in (0, 2)] + [{"prompt": "q3", "answer": "?"}],
    )
    step = SolversAgree(grader=Boxed(), solvers=(("one", one), ("two", two)))
    found = curated(tmp_path, rows, [step], chunk=2)
    assert {r["n"]: r["curate"]["solvers"] for r in found.kept} == {0: 2, 1: 1, 2: 1}
    assert why(found) == {3: "solvers disagree", 4: "solvers disagree"}
    both = curated(tmp_path, rows, [SolversAgree(grader=Boxed(), solvers=step.solvers, least=2)])
    assert both.lines_kept() == [0]
    assert {r["row"]["n"]: r["evidence"]["agree"] for r in both.rejected}[1] == ["one"]
    with pytest.raises(ConfigError, match="3 of 2 solvers"):
        SolversAgree(grader=Boxed(), solvers=step.solvers, least=3)


@dataclass(frozen=True)
class Short:
    """Judges one case too few."""

    def __call__(self, cases: Sequence[Case]) -> list[float | None]:
        return [1.0] * (len(cases) - 1)


def test_broken_graders_and_answers_are_told(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "answer": "1"}]
    with pytest.raises(DataError, match="gave 0 values for 1 answers"):
        curated(tmp_path, rows, [VerifierAccepts(grader=Short())])
    wrong = write(tmp_path / "s.jsonl", [{"prompt": "q", "answers": [3]}])
    with pytest.raises(DataError, match=r"line 1: 'answer' or 'answers' is \[3\]"):
        curated(tmp_path, rows, [SolversAgree(grader=Boxed(), solvers=(("s", wrong),))])


CHOICES = [
    ({"answer": "B", "options": ["x", "y"]}, None),
    ({"answer": "(b).", "options": ["x", "y"]}, None),
    ({"answer": "C", "options": ["x", "y"]}, "gold is not among the options"),
    ({"answer": "y", "choices": {"A": "x", "B": "y"}}, None),
    ({"answer": "D", "choices": {"A": "x", "B": "y"}}, "gold is not among the options"),
    ({"answer": 1, "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, None),
    ({"answer": 2, "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, None),
    ({"answer": 3, "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, "gold is not among the options"),
    ({"answer": "x y z", "options": 7}, "gold is not among the options"),
    ({"answer": "w " * 10}, None),
    ({"answer": "w " * 11}, "long answer"),
    ({"answer": "w" * 101}, "long answer"),
    ({"answer": "w" * 100}, None),
    ({"answer": " "}, "no gold answer"),
    ({"answer": 3}, None),
    ({}, "no gold answer"),
]


@pytest.mark.parametrize(("row", "reason"), CHOICES)
def test_forms_of_answers(tmp_path: Path, row: dict[str, Any], reason: str | None) -> None:
    found = curated(tmp_path, [{"prompt": "q", "n": 0, **row}], [AnswerForm(words=10)])
    assert why(found) == ({} if reason is None else {0: reason})


def test_a_gold_keeps_its_text_from_choice_to_open(tmp_path: Path) -> None:
    (row,) = curated(tmp_path, [{"prompt": "q", "answer": "B", "options": ["x", "y"]}], [AnswerForm()]).kept
    assert (row["answer"], row["options"]) == ("B", ["x", "y"])
    with pytest.raises(ConfigError, match="no limit"):
        AnswerForm(words=-1)
