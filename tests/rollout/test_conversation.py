"""Which turns go on, and that a prefix never differs from what was sampled."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import CLOSE, EOS, OPEN, Letters, Rewriting

from assay import rollout as room
from assay.core import Call, Completion, Message, Prefill, Sampling, Span, Stop, ids_of
from assay.core.errors import ConfigError, DataError
from assay.rollout import KeepAll, LastTurns
from assay.rollout.conversation import Conversation, check_prefix, forced_ids, rendered

TURNS = [Message("system", "s"), Message("user", "u")] + [
    Message("assistant", "a"),
    Message("tool", "t"),
    Message("tool", "t"),
] * 3


class Keeps:
    """Keeps given indices."""

    def __init__(self, *kept: int) -> None:
        self.kept, self.seen, self.budget = kept, [], 0

    def keep(self, turns: Sequence[tuple[Message, int]], budget: int) -> Sequence[int]:
        self.seen, self.budget = list(turns), budget
        return self.kept

    def __repr__(self) -> str:
        return "Keeps"


def spoken(prefix: Sequence[int], text: str) -> Call:
    ids = ids_of([*map(ord, text), EOS])
    made = Completion(
        ids=ids, logp_engine=np.zeros(len(ids), np.float32), spans=(Span(0, 0, len(ids)),), stop=Stop.DONE, sampling=Sampling()
    )
    return Call(id=0, parent=None, prefix=ids_of(prefix), completion=made, text=text)


def talk(tokenizer: Letters | None = None, score: bool = False) -> Conversation:
    letters = tokenizer or Letters()
    opening = rendered(letters, [Message("system", "s"), Message("user", "u")])
    made = Conversation(opening, ids_of([]), rendered(letters, [Message("user", "u")]) if score else None)
    call = spoken(made.prefix, "a")
    made.advance(call, call.completion.ids, rendered(letters, [Message("tool", "t")]))
    return made


def test_the_room_offers_its_names_lazily() -> None:
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match="has no attribute 'Searcher'"):
        room.Searcher  # noqa: B018


def test_managers() -> None:
    turns = [(m, 1) for m in TURNS]
    assert list(KeepAll().keep(turns, 3)) == list(range(11))
    assert list(LastTurns(1).keep(turns, 3)) == [0, 1, 8, 9, 10]
    assert list(LastTurns(2).keep(turns, 3)) == [0, 1, 5, 6, 7, 8, 9, 10]
    for n in (3, 4):
        assert list(LastTurns(n).keep(turns, 3)) == list(range(11))
    assert list(LastTurns(1).keep(turns[:2], 3)) == [0, 1]
    with pytest.raises(ConfigError, match=r"LastTurns.n=0"):
        LastTurns(0)


@given(st.integers(1, 5), st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=12))
def test_last_turns_is_idempotent_and_keeps_whole_turns(n: int, roles: list[str]) -> None:
    turns = [(Message(r, str(i)), 1) for i, r in enumerate(roles)]
    kept = [turns[i] for i in LastTurns(n).keep(turns, 0)]
    assert [kept[i] for i in LastTurns(n).keep(kept, 0)] == kept
    assert sum(m.role == "assistant" for m, _ in kept) == min(n, roles.count("assistant"))
    cut = roles.index("assistant") if "assistant" in roles else len(roles)
    assert kept[:cut] == turns[:cut]


def test_a_manager_sees_messages_with_their_tokens_and_the_budget() -> None:
    made, manager = talk(), Keeps(0, 1, 2, 3)
    made.compact(manager, 50)
    assert manager.seen == [
        (Message("system", "s"), 2), (Message("user", "u"), 2), (Message("assistant", "a"), 3), (Message("tool", "t"), 2),
    ]  # fmt: skip
    assert manager.budget == 50
    assert made.prefix.tolist() == [ord("s"), CLOSE, ord("u"), CLOSE, OPEN, ord("a"), EOS, ord("t"), CLOSE, OPEN]


def test_kept_turns_keep_their_ids() -> None:
    made = talk()
    made.compact(Keeps(1, 3), 50)
    assert made.prefix.tolist() == [ord("u"), CLOSE, ord("t"), CLOSE, OPEN]
    assert made.score_prefix is None
    manager = Keeps(0, 1)
    made.compact(manager, 50)
    assert [m.role for m, _ in manager.seen] == ["user", "tool"]  # what was dropped does not come back


@pytest.mark.parametrize("kept", [(), (1, 0), (0, 0), (-1, 0), (0, 4)])
def test_indices_that_make_no_sense(kept: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"Keeps.keep returned .* for 4 turns"):
        talk().compact(Keeps(*kept), 50)


def test_learning_under_another_opening_needs_the_whole_one() -> None:
    made = talk(score=True)
    assert made.score_prefix is None
    with pytest.raises(ConfigError, match="drops opening messages of a context with score_messages"):
        made.compact(Keeps(1, 2, 3), 50)
    told = Conversation(rendered(Letters(), [Message("user", "u"), Message("user", "v")]), ids_of([]), None, made._opening)
    told.advance(spoken(told.prefix, "a"), ids_of([ord("a")]), rendered(Letters(), [Message("tool", "t")]))
    with pytest.raises(ConfigError, match="drops opening messages of a context with privileged messages"):
        told.compact(Keeps(1, 2), 50)
    made.compact(Keeps(0, 1, 3), 50)
    assert made.score_prefix.tolist() == [ord("u"), CLOSE, ord("t"), CLOSE, OPEN]


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
    made.prefix = ids_of([*made.prefix[:3], 99, *made.prefix[4:]])
    with pytest.raises(DataError, match="token 3 is id 99 there and id 2 here"):
        made.compact(KeepAll(), 50)


@given(st.text(alphabet="abcdef", max_size=30), st.floats(0, 1))
def test_a_prefill_is_a_prefix_of_its_tokens(text: str, share: float) -> None:
    ids = forced_ids(Letters(), Prefill(text, share))
    assert ids.tolist() == [ord(c) for c in text][: len(ids)]
    assert len(ids) <= share * len(text) + 1e-9 < len(ids) + 1
    assert forced_ids(Letters(), None).tolist() == []
