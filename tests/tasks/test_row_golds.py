"""Rows that name a verifier: where its gold must stand, and what is said where it does not."""

from typing import Any

import pytest

from assay.core.errors import DataError
from assay.tasks import judged_rows

TESTS = [{"stdin": "2", "stdout": "4"}]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"verifier": "code_output", "tests": TESTS}, 'Put \'tests\' into it: "answer": {"tests": ...}'),
        ({"verifier": "code_output", "anwser": {"tests": TESTS}}, "Rename 'anwser' to 'answer'"),
        ({"verifier": "code_output", "test": TESTS}, "Rename 'test' to 'answer'"),
        ({"verifier": "code_output", "answer": {"test": TESTS}}, "rename 'test' to 'tests'"),
        (
            {"verifier": "code_output", "answer": {"cases": TESTS}},
            "has ['cases'], none of what the verifier 'code_output' reads there",
        ),
        (
            {"verifier": "code_output", "answer": TESTS},
            "field 'answer' is a tuple; the verifier 'code_output' reads {'tests': list of",
        ),
        ({"verifier": {"name": "code_output", "workers": 1}, "answer": "4"}, "field 'answer' is a str"),
        ({"verifier": "sql", "answer": {"sql": "SELECT 1"}}, "{'query': SQL, 'database': "),
        ({"verifier": "math", "gold": "4"}, "Rename 'gold' to 'answer'"),
        ({"verifier": "math"}, "Add it. The row has ['prompt', 'verifier']"),
    ],
)
def test_a_gold_that_the_verifier_would_not_find_is_refused_with_a_fix(fields: dict[str, Any], said: str) -> None:
    good = {"prompt": "one", "verifier": "math", "answer": "1"}
    with pytest.raises(DataError) as caught:
        judged_rows([good, {"prompt": "Double.", **fields}])
    assert str(caught.value).startswith("row 2") and said in str(caught.value).replace("is a list;", "is a tuple;")


@pytest.mark.parametrize(
    "fields",
    [
        {"verifier": "code_output", "answer": {"tests": TESTS}},
        {"verifier": {"name": "format", "tags": ["think", "answer"]}},
        {"verifier": {"name": "regex", "pattern": "a+"}},
        {"verifier": "choice", "answer": "A"},
        {"verifier": "smt", "answer": {"smt": "(assert true)", "satisfiable": False}},
        {"verifier": "sat", "answer": {"clauses": [[1]], "names": ["a"]}},
    ],
)
def test_what_a_verifier_can_read_is_taken(fields: dict[str, Any]) -> None:
    assert judged_rows([{"prompt": "Double.", **fields}], test_share=0).arms()
