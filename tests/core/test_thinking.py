"""Thoughts and the answers behind them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core import Thinking
from assay.core.errors import ConfigError

T = Thinking()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("42", (None, "42")),
        ("  42\n", (None, "  42\n")),
        ("<think>a</think>42", ("a", "42")),
        ("<think>\na\n</think>\n\n42\n", ("a", "42\n")),
        ("a</think>42", ("a", "42")),  # opened by whoever wrote the prompt
        ("<think></think>42", ("", "42")),
        ("<think>a</think>b<think>c</think>d", ("a</think>b<think>c", "d")),
        ("x<think>a</think>y", ("xa", "y")),
        ("<think>a", ("a", "")),
        ("42<think>a", ("a", "")),
        ("<think>a</think>42<think>b", ("a</think>42<think>b", "")),
        ("<think>a</think>", ("a", "")),
        ("", (None, "")),
    ],
)
def test_the_answer_is_what_stands_behind_the_last_thought(text: str, found: tuple[str | None, str]) -> None:
    assert T.split(text) == found


def test_a_thought_may_be_required() -> None:
    must = Thinking(open="[T]", close="[/T]", required=True)
    assert must.split("42") == (None, "")
    assert must.split("[T][/T]42") == ("", "42")
    assert must.format_answer("42") == "[T][/T]\n\n42"
    assert must.format_answer("[T]x[/T]42") == "[T]x[/T]42"
    assert must.format_answer(" ") == " "


def test_what_the_template_began_counts() -> None:
    assert T.thought_start("<|im_start|>assistant\n") == ""
    begun = T.thought_start("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert T.split(begun + "42") == ("", "42")
    assert T.format_answer("42", begun) == "42"
    assert T.split(T.thought_start("x<think>\n") + "42") == ("42", "")
    assert T.format_answer("42", "<think>\n") == "</think>\n\n42"


@given(st.text(st.sampled_from("a4 \n<>/")), st.text(st.sampled_from("a4<>/"), min_size=1))
def test_demonstrations_are_read_as_their_answers(thought: str, answer: str) -> None:
    for begun in ("", "<think>\n", "<think>\n\n</think>\n\n"):
        for thinking in (T, Thinking(required=True)):
            assert thinking.split(begun + thinking.format_answer(answer, begun))[1] == answer
            assert thinking.split(f"<think>{thought}</think>{answer}") == (thought.strip(), answer)


@pytest.mark.parametrize("tags", [("", "b"), ("a", ""), ("a", "a")])
def test_tags_must_differ(tags: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="give two different tags"):
        Thinking(open=tags[0], close=tags[1])
