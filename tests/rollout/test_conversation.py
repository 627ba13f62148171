"""Which turns go on, and that a prefix never differs from what was sampled."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import CLOSE, EOS, OPEN, Letters, Rewriting, posed

from assay import rollout as room
from assay.core import Call, Completion, Message, Prefill, Sampling, Span, Stop, ids_of
from assay.core.errors import ConfigError, DataError
from assay.rollout import HideOlder, KeepAll, KeepLast
from assay.rollout.block import Block, check_prefix, forced_ids, render
from assay.rollout.conversation import Conversation
from assay.testing import check_context_manager

TURNS = [Message("system", "s"), Message("user", "u")] + [
    Message("assistant", "a"),
    Message("tool", "t"),
    Message("tool", "t"),
] * 3


def spoken(prefix: Sequence[int], text: str) -> Call:
    ids = ids_of([*map(ord, text), EOS])
    made = Completion(
        ids=ids, logp_engine=np.zeros(len(ids), np.float32), spans=(Span(0, 0, len(ids)),), stop=Stop.DONE, sampling=Sampling()
    )
    return Call(id=0, parent=None, prefix=ids_of(prefix), completion=made, text=text)


def talk(tokenizer: Letters | None = None, score: bool = False) -> Conversation:
    letters = tokenizer or Letters()
    opening = render(letters, [Message("system", "s"), Message("user", "u")])
    made = begun(opening, render(letters, [Message("user", "u")]) if score else None)
    call = spoken(made.prefix, "a")
    return made.advance(call, call.completion.ids, render(letters, [Message("tool", "t")]))


def begun(opening: Block, score: Block | None = None, privileged: Block | None = None) -> Conversation:
    return Conversation.begin(posed().task, opening, ids_of([]), score, privileged, limit=8, budget=50)


def test_the_room_offers_its_names_lazily() -> None:
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match="has no attribute 'Searcher'"):
        room.Searcher  # noqa: B018


def test_managers() -> None:
    roles = [m.role for m in TURNS]
    assert asyncio.run(KeepAll().rewrite(talk(), None)) is None
    assert list(KeepLast(1).kept_turns(roles)) == [0, 1, 8, 9, 10]
    assert list(KeepLast(2).kept_turns(roles)) == [0, 1, 5, 6, 7, 8, 9, 10]
    for n in (3, 4):
        assert list(KeepLast(n).kept_turns(roles)) == list(range(11))
    assert list(KeepLast(1).kept_turns(roles[:2])) == [0, 1]
    assert asyncio.run(KeepLast(1).rewrite(talk(), None)) is None
    with pytest.raises(ConfigError, match=r"KeepLast.n=0"):
        KeepLast(0)


@given(st.integers(1, 5), st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=12))
def test_the_last_turns_are_kept_whole_and_once_more_changes_nothing(n: int, roles: list[str]) -> None:
    kept = [(roles[i], i) for i in KeepLast(n).kept_turns(roles)]
    assert [kept[i] for i in KeepLast(n).kept_turns([role for role, _ in kept])] == kept
    assert sum(role == "assistant" for role, _ in kept) == min(n, roles.count("assistant"))
    cut = roles.index("assistant") if "assistant" in roles else len(roles)
    assert [role for role, _ in kept[:cut]] == roles[:cut]


def test_a_manager_sees_messages_with_their_tokens_and_the_budget() -> None:
    made = talk().keep((0, 1, 2, 3))
    assert made.turns() == (
        (Message("system", "s"), 2),
        (Message("user", "u"), 2),
        (Message("assistant", "a"), 3),
        (Message("tool", "t"), 2),
    )
    assert (made.budget, made.limit, made.cuts, made.answer_ids.tolist(), made.task.id) == (50, 8, 0, [], "1+1=")
    assert made.prefix.tolist() == [ord("s"), CLOSE, ord("u"), CLOSE, OPEN, ord("a"), EOS, ord("t"), CLOSE, OPEN]


def test_kept_turns_keep_their_ids() -> None:
    made = talk().keep((1, 3))
    assert made.prefix.tolist() == [ord("u"), CLOSE, ord("t"), CLOSE, OPEN]
    assert made.score_prefix is None
    assert [m.role for m, _ in made.turns()] == ["user", "tool"]  # what was dropped does not come back
    assert made.keep((0,)).prefix.tolist() == [ord("u"), CLOSE, OPEN]


@pytest.mark.parametrize("kept", [(), (1, 0), (0, 0), (-1, 0), (0, 4)])
def test_indices_that_make_no_sense(kept: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"Conversation.keep was given .* for 4 turns"):
        talk().keep(kept)


def talk_of_two(score: bool = False) -> Conversation:
    made = talk(score=score)
    call = spoken(made.prefix, "b")
    return made.advance(call, call.completion.ids, render(Letters(), [Message("tool", "w"), Message("tool", "x")]))


def test_a_placeholder_stands_for_what_the_environment_answered_earlier() -> None:
    """The opening is su, the policy said a and b; of the pages t, w and x the last one or two are shown."""
    made, letters = talk_of_two(score=True), Letters()
    hidden = asyncio.run(HideOlder(n=1, placeholder="--").rewrite(made, None))
    behind = [
        OPEN,
        ord("a"),
        EOS,
        ord("-"),
        ord("-"),
        CLOSE,
        OPEN,
        ord("b"),
        EOS,
        ord("-"),
        ord("-"),
        CLOSE,
        ord("x"),
        CLOSE,
        OPEN,
    ]
    assert hidden.prefix.tolist() == [ord("s"), CLOSE, ord("u"), CLOSE, *behind] and hidden.start == len(hidden.prefix)
    assert hidden.score_prefix.tolist() == [ord("u"), CLOSE, *behind] and hidden.privileged_prefix is None
    assert [m.content for m, _ in hidden.turns()] == ["s", "u", "a", "--", "b", "--", "x"]
    assert asyncio.run(HideOlder(n=1, placeholder="--").rewrite(hidden, None)) is None
    assert [m.content for m, _ in asyncio.run(HideOlder(n=2, placeholder="--").rewrite(made, None)).turns()][3:] == [
        "--",
        "b",
        "w",
        "x",
    ]
    assert asyncio.run(HideOlder(n=3).rewrite(made, None)) is None
    last = made.replace_messages({6: Message("tool", "y")})  # the opener of the next turn comes with the last message
    assert last.prefix.tolist() == [*made.prefix[:-3].tolist(), ord("y"), CLOSE, OPEN]
    call = spoken(hidden.prefix, "c")
    after = hidden.hear(call, call.completion.ids, [Message("tool", "z")])
    assert after.prefix.tolist() == [*call.tokens.tolist(), *letters.render([Message("tool", "z")]).tolist()]
    assert [m.content for m, _ in after.turns()] == ["s", "u", "a", "--", "b", "--", "x", "c", "z"]


def test_only_answers_of_the_environment_are_replaced() -> None:
    made = talk_of_two()
    for i in (-1, 0, 1, 2, 4, 7):
        with pytest.raises(ConfigError, match=rf"replace_messages was given {i} for 7 turns, of which the policy's first is 2"):
            made.replace_messages({i: Message("tool", "n")})
    cut = made.continue_answer(spoken(made.prefix, "c"), ids_of([99]))
    assert asyncio.run(HideOlder().rewrite(cut, None)) is None
    with pytest.raises(ConfigError, match="an answer is in progress"):
        cut.replace_messages({3: Message("tool", "n")})
    with pytest.raises(ConfigError, match=r"HideOlder.n=0"):
        HideOlder(n=0)
    with pytest.raises(ConfigError, match="placeholder is empty"):
        HideOlder(placeholder="")
    assert check_context_manager(HideOlder()).passed[0] == "each token once"
    assert HideOlder(n=2).hidden_turns(["system", "tool", "assistant", "tool", "user", "assistant", "tool"]) == (3,)


def test_learning_under_another_opening_needs_the_whole_one() -> None:
    made = talk(score=True)
    assert made.score_prefix is None
    with pytest.raises(ConfigError, match="drops opening messages of a context with score_messages"):
        made.keep((1, 2, 3))
    told = begun(render(Letters(), [Message("user", "u"), Message("user", "v")]), None, made.opening)
    told = told.advance(spoken(told.prefix, "a"), ids_of([ord("a")]), render(Letters(), [Message("tool", "t")]))
    with pytest.raises(ConfigError, match="drops opening messages of a context with privileged messages"):
        told.keep((1, 2))
    assert made.keep((0, 1, 3)).score_prefix.tolist() == [ord("u"), CLOSE, ord("t"), CLOSE, OPEN]


def test_a_restart_shows_messages_behind_each_opening() -> None:
    made = talk(score=True).restart([Message("user", "n")])
    assert made.prefix.tolist() == [ord("s"), CLOSE, ord("u"), CLOSE, ord("n"), CLOSE, OPEN]
    assert made.score_prefix.tolist() == [ord("u"), CLOSE, ord("n"), CLOSE, OPEN]
    assert made.privileged_prefix is None
    assert [m.content for m, _ in made.turns()] == ["s", "u", "n"]


def test_an_answer_goes_on_behind_what_is_carried() -> None:
    made = talk(score=True)
    call = spoken(made.prefix, "bcd")
    cut = made.continue_answer(call, call.completion.ids[:3])
    assert (cut.cuts, cut.answer_ids.tolist(), cut.prefix.tolist()) == (1, [98, 99, 100], call.tokens.tolist())
    carried = cut.carry(cut.answer_ids[1:], limit=3)
    assert carried.prefix.tolist() == [*made.prefix.tolist(), 99, 100]
    assert carried.score_prefix.tolist() == [ord("u"), CLOSE, OPEN, ord("a"), EOS, ord("t"), CLOSE, OPEN, 99, 100]
    assert (carried.start, carried.allowed, cut.allowed) == (len(made.prefix), 3, 8)
    last = spoken(carried.prefix, "e")
    after = carried.hear(last, ids_of([98, 99, 100, 101, EOS]), [Message("tool", "t")])
    assert after.prefix.tolist() == [*last.tokens.tolist(), ord("t"), CLOSE, OPEN]
    assert [(m.content, n) for m, n in after.turns()][-2:] == [("e", 5), ("t", 2)]
    assert (after.cuts, after.allowed) == (0, 8)
    first = begun(render(Letters(), [Message("user", "u")]), render(Letters(), [Message("user", "v")]))
    first = first.continue_answer(spoken(first.prefix, "b"), ids_of([98])).carry(ids_of([98]), 2)
    assert first.score_prefix.tolist() == [ord("v"), CLOSE, OPEN, 98]


def test_only_what_fits_the_moment_is_done() -> None:
    made = talk()
    cut = made.continue_answer(spoken(made.prefix, "b"), ids_of([98]))
    for wrong, words in [
        (lambda: made.carry(ids_of([1]), 5), "cuts=0: it goes on with an answer that was cut off"),
        (lambda: cut.carry(ids_of([1]), 0), r"carry\(limit=0\)"),
        (lambda: cut.keep((0, 1)), "an answer is in progress"),
    ]:
        with pytest.raises(ConfigError, match=words):
            wrong()


@pytest.mark.parametrize("kept", [None, (0, 1, 2, 3), (0, 1, 3), (0, 1)])
def test_a_question_to_the_policy_stands_behind_what_was_heard(kept: tuple[int, ...] | None) -> None:
    made = talk() if kept is None else talk().keep(kept)
    assert made.prefix_for([Message("user", "q")]).tolist() == [*made.prefix[:-1].tolist(), ord("q"), CLOSE, OPEN]
    cut = made.continue_answer(spoken(made.prefix, "bc"), ids_of([98, 99]))
    assert cut.prefix_for([Message("user", "q")]).tolist() == [*cut.prefix.tolist(), EOS, ord("q"), CLOSE, OPEN]


def test_a_template_that_rewrites_turns_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="not append-only: 1 of 2 messages render to other ids alone than together, first at token 0 \\("
    ):
        talk(Rewriting())


def test_a_prefix_that_would_differ_from_what_was_sampled_names_the_token() -> None:
    made = talk()
    check_prefix(ids_of([1, 2]), ids_of([1, 2, 3]), "here")
    check_prefix(ids_of([]), ids_of([]), "here")
    with pytest.raises(
        DataError, match="here: the prefix should go on from what was sampled, but token 1 is id 2 there and id 7 here"
    ):
        check_prefix(ids_of([1, 2]), ids_of([1, 7, 3]), "here")
    with pytest.raises(DataError, match="token 1 is id 2 there and its end here"):
        check_prefix(ids_of([1, 2]), ids_of([1]), "here")
    other = replace(made, prefix=ids_of([*made.prefix[:3], 99, *made.prefix[4:]]))
    with pytest.raises(DataError, match="token 3 is id 99 there and id 2 here"):
        other.keep((0, 1, 2, 3))


@given(st.text(alphabet="abcdef", max_size=30), st.floats(0, 1))
def test_a_prefill_is_a_prefix_of_its_tokens(text: str, share: float) -> None:
    ids = forced_ids(Letters(), Prefill(text, share))
    assert ids.tolist() == [ord(c) for c in text][: len(ids)]
    assert len(ids) <= share * len(text) + 1e-9 < len(ids) + 1
    assert forced_ids(Letters(), None).tolist() == []
