"""Each method in a plain sentence: what is different about it."""

import re

import pytest

from assay.objective.methods import methods
from assay.objective.methods.registry import Method, _sentences

SIGNS = r"[A-Z][A-Za-z0-9 ,.:'-]*\."


def test_each_method_has_one_and_nothing_else_does() -> None:
    assert set(_sentences()) == set(methods())
    assert len(set(_sentences().values())) == len(methods()), "two methods are told apart by nothing"


@pytest.mark.parametrize("name", list(methods()))
def test_it_is_one_sentence_in_words(name: str) -> None:
    said = methods()[name].sentence
    assert re.fullmatch(SIGNS, said), "letters and punctuation alone: symbols stand in the docstring"
    assert 40 <= len(said) <= 140
    assert not re.search(r"[a-z0-9]\. [A-Z]", said), "one sentence"
    assert re.match(r"[A-Z][a-z]*s ", said) or said.startswith(("Only ", "Also ")), "a verb of what the method does"
    assert "_" not in said and name not in said.split()[1:], "it says something of its own"


def test_a_method_of_ones_own_has_the_first_line_of_its_docstring() -> None:
    def mine() -> None:
        """Mine: another baseline.

        And more.
        """

    assert Method(name="mine", make=mine, source="here").sentence == "Mine: another baseline."  # type: ignore[arg-type]
