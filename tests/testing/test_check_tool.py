"""The check of tools passes those that work, the page's among them, and finds each broken promise."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from test_conversation_contracts import module_of

from assay.testing import ContractError, check_tool

NUMBERS = count()


def half(of: float) -> float:
    """Half of a number."""
    if of < 0:
        raise ValueError("negative")
    return of / 2


def changes() -> int:
    """Another number each time."""
    return next(NUMBERS)


def down() -> str:
    """Never there."""
    raise ConnectionError("down")


def takes_all(a: Any) -> str:
    """Anything."""
    return ""


def untyped(a) -> str:  # type: ignore[no-untyped-def]
    """Nothing said."""
    return ""


def test_the_tool_of_the_page_keeps_its_promises(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calculate = module_of("tool.md", tmp_path, monkeypatch).calculate
    report = check_tool(calculate, [({"expression": "2 * (3 + 4)"}, "14"), ({"expression": "1 / 0"}, None)])
    assert report.passed == ("schema", "answers", "the same again", "wrong calls refused", "can be filed")
    assert 0 <= report.numbers["slowest call, seconds"] < 5


def test_a_tool_that_works() -> None:
    assert check_tool(half, [({"of": 3}, "1.5"), ({"of": -1}, None)]).subject == "tool half"


def inner() -> Any:
    def hidden() -> str:
        """Inside."""
        return "x"

    return hidden


@pytest.mark.parametrize(
    ("tool", "cases", "words"),
    [
        (untyped, [({"a": 1}, "")], "parameter 'a' has no annotation"),
        (half, [], "give at least one call with its answer"),
        (half, [({"of": "x"}, "1.5")], "cannot be called with .*: the argument 'of' of half is no number"),
        (half, [({"of": 3}, "2")], "answers {'of': 3} with '1.5', not '2'"),
        (half, [({"of": 3}, None)], "answers {'of': 3} with '1.5'"),
        (half, [({"of": -3}, "1")], "with 'Error: ValueError: negative'"),
        (changes, [({}, "0")], "first '0', then '1'"),
        (down, [({}, "")], "its infrastructure failed on {}: ConnectionError: down"),
        (inner(), [({}, "x")], "a run's file cannot say it"),
    ],
)
def test_broken_tools_are_found(tool: Any, cases: Any, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        check_tool(tool, cases)


def test_an_argument_of_any_type_is_no_fault() -> None:
    assert check_tool(takes_all, [({"a": [1]}, "")]).passed


def test_an_answer_may_be_the_value_that_the_function_returns() -> None:
    assert "answers" in check_tool(half, [({"of": 3.0}, 1.5), ({"of": 5.0}, "2.5"), ({"of": -1.0}, None)]).passed
    with pytest.raises(ContractError, match=r"with '1.5', not '2.5'"):
        check_tool(half, [({"of": 3.0}, 2.5)])
