"""The tree of an agent's calls: what a request goes on from, in the forms in which clients were seen to send it back."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_agents import CALL, TEXT, ask, recorder_of, say, session_of, tools_tokenizer, user

from assay.agents import AgentMessage, AgentRequest, AgentRequestError, CallRecorder, ToolCall
from assay.agents.formats import CHAT
from assay.core.rollout import Rollout, Stop
from assay.core.sample import extends, samples
from assay.core.task import Context
from assay.core.thinking import Thinking
from assay.core.wire import rollout_from_wire, rollout_to_wire
from assay.runtime import char_tokenizer
from assay.runtime.text.chat import Chat
from assay.testing.conversations import contexts_for, trained_once

TOOLS = CHAT.read({"messages": [{"role": "user", "content": "x"}], "tools": [{"function": {"name": "add"}}]}).tools
THINKING = Thinking()
TEMPLATE_THINKING = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token if m.role == 'assistant' }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)
RESULT = AgentMessage(role="tool", text="3")


def rollout(recorder: CallRecorder, context: Context | None = None) -> Rollout:
    return Rollout(id="t/0", context=context or contexts_for(1)[0], calls=recorder.calls(), stop=Stop.DONE, seed=0)


def test_an_answer_that_comes_back_as_it_was_told_goes_on_with_its_tokens():
    recorder = recorder_of()
    first = say(recorder, ask(user("1+2?"), tools=TOOLS), CALL)
    assert first.finish == "tool_calls" and first.words == "I add." and first.pose.history == ""
    back = recorder.answer(first).message
    second = say(recorder, ask(user("1+2?"), back, RESULT, tools=TOOLS), "3")
    assert second.pose.history == "exact" and second.pose.parent is first
    assert second.pose.prefix[: len(first.tokens)].tolist() == first.tokens.tolist()
    assert recorder.renderer.tokenizer.decode(second.pose.prefix[len(first.tokens) :]).strip() == "tool:3\nassistant:"
    calls = recorder.calls()
    assert extends(calls[1], calls[0]) and len(samples(rollout(recorder))) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, calls=(replace(m.calls[0], arguments='{"b":"x","a":1}'),)),  # compact, or other order
        lambda m: replace(m, calls=(replace(m.calls[0], arguments='{"b": "x",  "a": 1}'),)),  # other spacing
        lambda m: replace(m, text=f"\n\n{m.text} "),  # one newline added
        lambda m: replace(m, calls=(replace(m.calls[0], id="their-own"),), text=m.text + "\n"),  # ids made anew
    ],
)
def test_an_answer_in_another_form_is_spliced(change):
    recorder = recorder_of()
    first = say(recorder, ask(user("1+2?"), tools=TOOLS), CALL)
    back = change(recorder.answer(first).message)
    second = say(recorder, ask(user("1+2? "), back, replace(RESULT, text="3\n"), tools=TOOLS), "3")
    assert second.pose.history == "spliced" and second.pose.parent is first
    assert second.pose.prefix[: len(first.tokens)].tolist() == first.tokens.tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, text="I subtract."),
        lambda m: replace(m, calls=()),  # the call is dropped
        lambda m: replace(m, calls=(replace(m.calls[0], arguments='{"a": 2, "b": "x"}'),)),
    ],
)
def test_an_answer_that_says_something_else_is_rendered_and_the_tree_branches(change):
    recorder = recorder_of()
    first = say(recorder, ask(user("1+2?"), tools=TOOLS), CALL)
    back = replace(change(recorder.answer(first).message), node="")
    second = say(recorder, ask(user("1+2?"), back, RESULT, tools=TOOLS), "3")
    assert second.pose.history == "rendered" and second.pose.parent is (first if back.calls else None)
    calls = recorder.calls()
    assert calls[1].history == "rendered" and not extends(calls[1], calls[0])
    assert len(samples(rollout(recorder))) == 2
    trained_once(rollout(recorder), "recorder")


def test_a_dropped_or_wrapped_thought():
    tokenizer = tools_tokenizer(Chat(template=TEMPLATE_THINKING, thinking=THINKING))
    recorder = recorder_of(tokenizer)
    first = say(recorder, ask(user("a")), "<think>hm</think>\n\nyes")
    assert (first.thought, first.text) == ("hm", "yes")
    told = recorder.answer(first).message
    dropped = say(recorder, ask(user("a"), replace(told, thought=None, node=""), user("b")), "no")
    assert dropped.pose.history == "rendered"
    signed = say(recorder, ask(user("a"), replace(told, thought=None), user("b")), "no")  # an opaque field stands for it
    assert signed.pose.history == "exact" and signed.pose.parent is first
    inside = AgentMessage(role="assistant", text="<think>hm</think>yes")  # pydantic-ai on responses
    wrapped = say(recorder, ask(user("a"), inside, user("b")), "no")
    assert wrapped.pose.parent is first and wrapped.pose.history in ("exact", "spliced")


def test_a_rendered_history_with_the_very_tokens_goes_on_from_them():
    recorder = recorder_of()
    first = say(recorder, ask(user("a")), "b", ends=False)
    again = recorder.begin(AgentRequest(prompt=(*first.tokens.tolist(), 5, 6)))
    assert again.pose.history == "prefix" and again.pose.parent is first


def test_a_turn_that_the_agent_itself_puts_into_an_opening_is_no_branch():
    recorder = recorder_of()
    canned = (user("files"), AgentMessage(role="assistant", text="Got it."), user("a"))
    first = say(recorder, ask(*canned), "b")
    second = say(recorder, ask(*canned, recorder.answer(first).message, user("c")), "d")
    other = say(recorder, ask(user("x"), AgentMessage(role="assistant", text="y"), user("z")), "d")
    assert [n.pose.history for n in (first, second, other)] == ["", "exact", "rendered"]


def test_of_two_answers_that_say_the_same_the_id_tells_which():
    recorder = recorder_of()
    request = ask(user("1+2?"), tools=TOOLS)
    one, two = say(recorder, request, CALL), say(recorder, request, CALL)
    for node in (one, two):
        back = recorder.answer(node).message
        assert recorder.pose(ask(user("1+2?"), back, RESULT, tools=TOOLS)).parent is node
    assert one.name != two.name and recorder.answer(one).call_id(0) == f"call_{one.name}_0"


def test_a_template_without_tools_has_them_in_words():
    recorder = recorder_of(char_tokenizer(TEXT))
    first = say(recorder, ask(AgentMessage(role="system", text="Be kind."), user("1+2?"), tools=TOOLS), CALL)
    shown = recorder.renderer.tokenizer.decode(first.pose.prefix)
    assert shown.startswith("Be kind.\n\nYou may call functions.") and '"name": "add"' in shown
    edited = replace(recorder.answer(first).message, text="Else.")
    second = recorder.begin(ask(user("1+2?"), edited, RESULT, tools=TOOLS))
    assert "Else.\n<tool_call>" in recorder.renderer.tokenizer.decode(second.pose.prefix)
    alone = AgentMessage(role="assistant", calls=(ToolCall("", "add", "1"),))
    odd = AgentMessage(role="assistant", calls=(ToolCall("", "add", '{"a": ["\u00e9", 1]}'),))
    told = recorder_of().renderer.to_messages([odd])[0].content
    assert json.loads(told)["tool_calls"][0]["arguments"] == {"a": [r"\xe9", 1]}
    broken = AgentMessage(role="assistant", calls=(ToolCall("", "add", "{"),))
    assert '{"input": "{"}' in recorder.renderer.to_messages([broken])[0].content
    assert '{"input": 1}' in recorder.renderer.to_messages([alone])[0].content
    with pytest.raises(AgentRequestError, match="no system or user turn"):
        recorder.begin(ask(RESULT, tools=TOOLS))


def test_what_the_tokenizer_lacks_is_escaped_and_what_is_too_long_or_empty_is_refused():
    recorder = recorder_of(context=60)
    node = recorder.begin(ask(user("2\u00e9")))
    assert r"2\xe9" in recorder.renderer.tokenizer.decode(node.pose.prefix)
    assert recorder.most(node) == 60 - len(node.pose.prefix)
    with pytest.raises(AgentRequestError) as long:
        recorder.begin(ask(user("x" * 100)))
    assert (long.value.code, long.value.most) == ("context_length_exceeded", 60) and long.value.tokens > 100
    with pytest.raises(AgentRequestError, match="none of the vocabulary"):
        recorder.begin(AgentRequest(prompt=(10_000,)))
    with pytest.raises(AgentRequestError, match="empty"):
        recorder.begin(AgentRequest(prompt=""))


def test_calls_of_no_form_that_can_be_read_stay_text():
    recorder = recorder_of()
    for text in ("<tool_call>add</tool_call>", "no call"):
        node = say(recorder, ask(user("1+2?"), tools=TOOLS), text)
        assert (node.calls, node.words, node.finish) == ((), text, "stop")
    silent = say(recorder, ask(user("1+2?"), tools=TOOLS, reads_calls=False), CALL)
    assert silent.words == CALL
    bare = say(recorder, ask(user("1+2?"), tools=TOOLS), '{"name": "add", "parameters": {"a": 1}}')
    assert (bare.words, bare.calls[0].arguments) == ("", '{"a": 1}')


def test_answers_that_nobody_read_carry_no_loss_and_records_keep_what_is_new():
    recorder = recorder_of()
    lost, read = say(recorder, ask(user("a")), "b"), say(recorder, ask(user("a")), "b")
    lost.delivered = False
    pending = recorder.begin(ask(user("never answered")))
    recorder.end(pending, None)
    found = rollout(recorder)
    assert sorted(c.shared for c in found.calls) == [False, True] and len(samples(found)) == 1
    back = rollout_from_wire(json.loads(json.dumps(rollout_to_wire(replace(found, answer="42")))))
    assert back.text == "42" and [c.history for c in back.calls] == [c.history for c in found.calls]
    assert read.delivered and rollout_from_wire(rollout_to_wire(found)).answer is None


def test_titles_and_answers_that_are_thrown_away_carry_no_loss():
    recorder = recorder_of()
    title = say(recorder, ask(AgentMessage(role="system", text="A title."), user("1+2?")), "Sum")
    cut = say(recorder, ask(user("1+2?"), tools=TOOLS, max_tokens=2), "th", ends=False)
    whole = say(recorder, ask(user("1+2?"), tools=TOOLS, max_tokens=90), "three")
    assert recorder.side_calls() == [title] and recorder.last() is whole and cut.finish == "length"
    assert {c.text: c.shared for c in recorder.calls()} == {"Sum": True, "th": True, "three": False}
    bare = recorder_of()
    say(bare, ask(user("a"), max_tokens=2), "b", ends=False)
    say(bare, ask(user("a"), max_tokens=2), "c")  # a second sample: both count
    assert bare.side_calls() == [] and not any(c.shared for c in bare.calls()) and recorder_of().last() is None


# ---- many sessions at once ------------------------------------------------------------------------------------------


async def wander(session, rng: random.Random, mark: str, steps: int) -> None:
    """An agent that goes on, edits, compacts, forks, asks twice at once, and repeats."""
    histories = [(user(f"{mark} start"),)]
    for step in range(steps):
        history = rng.choice(histories)
        kind = rng.choice(["go on", "edit", "compact", "twice", "respaced"])
        if kind == "compact":
            history = (user(f"{mark} summary {step}"),)
        elif kind == "edit" and len(history) > 1:
            history = (history[0], AgentMessage(role="assistant", text=f"{mark} edited {step}"), *history[2:])
        elif kind == "respaced":
            history = tuple(replace(m, text=f" {m.text}\n") for m in history)
        request = ask(*history, user(f"{mark} q{step}")) if history[-1].role != "user" else ask(*history)
        nodes = await asyncio.gather(*(session.answer(request) for _ in range(2 if kind == "twice" else 1)))
        for node in nodes:
            node.delivered = rng.random() < 0.9
            histories.append((*request.messages, session.recorder.answer(node).message))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_sessions_that_run_at_once_are_never_mixed_up(seed: int):
    rng = random.Random(seed)
    marks = [f"<{c}{c}>" for c in "abcdefgh"]

    def script(ask):
        found = {m for m in marks if m in ask.prompt}
        assert len(found) == 1
        return f"{found.pop()} says {len(ask.ids)}"

    sessions = [session_of(script, mark, seed=i) for i, mark in enumerate(marks)]

    async def all_at_once() -> None:
        await asyncio.gather(*(wander(s, random.Random(f"{seed} {s.secret}"), s.secret, rng.randint(2, 9)) for s in sessions))

    asyncio.run(all_at_once())
    for session in sessions:
        recorder, decode = session.recorder, session.recorder.renderer.tokenizer.decode
        found = rollout(recorder)
        assert len(found.calls) == len(recorder.nodes)
        for call in found.calls:
            shown = decode(call.tokens)
            assert session.secret in shown and not any(m in shown for m in marks if m != session.secret)
            if call.history in ("exact", "spliced", "prefix"):
                assert call.parent is not None and extends(call, found.calls[call.parent])
        trained_once(found, f"session {session.secret}")


def test_the_record_does_not_depend_on_which_of_two_open_calls_ends_first():
    def played(first: str):
        recorder = recorder_of()
        a, b = recorder.begin(ask(user("a"))), recorder.begin(ask(user("b")))
        for node in (a, b) if first == "a" else (b, a):
            ended = say(recorder_of(), node.request, node.request.messages[0].text * 2)
            recorder.end(node, ended.completion)
        say(recorder, ask(user("c")), "d")
        return [(c.text, c.tokens.tolist()) for c in recorder.calls()]

    assert played("a") == played("b") and played("a")[-1][0] == "d"
