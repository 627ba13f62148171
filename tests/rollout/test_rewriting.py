"""Context managers that rewrite: summaries of the policy's own, and answers in chunks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scripted import CLOSE, EOS, OPEN, Echo, Letters, Scripted, Worlds, posed, says

from assay.core import Call, Context, Message, Prefill, Rollout, Sampling, Stop, ids_of, samples
from assay.core.errors import ConfigError
from assay.core.protocols import AskPolicy, Conversation, Request
from assay.core.rollout import ASIDE
from assay.rollout import Chunks, Player, PlayerSpec, Summarise
from assay.tasks.turns import actions_of


def play(
    engine: Scripted, manager: object, source: Worlds | None = None, context: Context | None = None, **changed: Any
) -> Rollout:
    fields = {"sampling": Sampling(max_new_tokens=8), "seed": 5, "max_turns": 8, **changed}
    made = Player(engine=engine, tokenizer=Letters(), source=source or Worlds(), manager=manager, **fields)
    (rollout,) = asyncio.run(made.collect([context or posed()], 1))
    return rollout


def letters(text: str) -> list[int]:
    return [ord(c) for c in text]


def trained_once(rollout: Rollout) -> list[list[int]]:
    """The loss tokens of the rows, each sampled token in exactly one."""
    rows = samples(rollout)
    found = sorted((int(c), i) for r in rows for i, c in enumerate(r.columns["call"].values[r.mask].tolist()))
    assert len(found) == rollout.length
    logp = np.concatenate([r.columns["logp_engine"].values[r.mask] for r in rows])
    assert sorted(logp.tolist()) == sorted(np.concatenate([c.completion.logp_engine for c in rollout.calls]).tolist())
    return [r.ids[r.mask].tolist() for r in rows]


# ---- summaries --------------------------------------------------------------------------------------------------------


SHORT = Summarise(context=40, share=0.5, most=2, instruction="sum up", shown="so far: {summary}", limit=4)


def test_the_defaults_are_the_published_ones() -> None:
    assert (Summarise().share, Summarise().most) == (0.95, 7)
    assert Summarise(context=4096).working(100, 10) == 3891
    assert Summarise().working(990, 10) == 950


def test_evaluations_may_summarise_more_often_than_training() -> None:
    """Two summaries and then the end in training; four in an evaluation of the same settings."""
    spec = PlayerSpec(context=replace(SHORT, most_evaluated=4))
    assert spec.for_evaluation() == PlayerSpec(context=replace(SHORT, most=4))
    assert PlayerSpec(context=SHORT).for_evaluation() == PlayerSpec(context=SHORT)
    assert PlayerSpec().for_evaluation() == PlayerSpec()
    found = []
    for settings in (spec, spec.for_evaluation()):
        said = lambda r: "s" if ord("u") in r.prompt[-8:].tolist() else "get b"
        rollout = play(Scripted(said), settings.context, Worlds(Echo), max_turns=50)
        found.append((rollout.stop, sum(c.role == ASIDE for c in rollout.calls)))
    assert found == [(Stop.LENGTH, 2), (Stop.LENGTH, 4)]


def test_without_overflow_nothing_changes() -> None:
    texts = says("a", "b", "stop")
    with_, without = (play(Scripted(texts), manager, Worlds(Echo)) for manager in (replace(SHORT, context=400), Summarise()))
    assert [c.prefix.tolist() for c in with_.calls] == [c.prefix.tolist() for c in without.calls]
    assert {c.role for c in with_.calls} == {"assistant"}


def test_a_conversation_that_is_too_long_goes_on_from_a_summary_of_the_policys_own() -> None:
    engine = Scripted(says("get a", "ga", "stop"))
    rollout = play(engine, SHORT, Worlds(Echo))
    first, summary, last = rollout.calls
    opening = [*letters("1+1="), CLOSE]
    assert summary.prefix.tolist() == [*first.tokens.tolist(), *letters("<get a>"), CLOSE, *letters("sum up"), CLOSE, OPEN]
    assert (summary.role, summary.text, engine.requests[1].sampling.max_new_tokens) == (ASIDE, "ga", 4)
    assert last.prefix.tolist() == [*opening, *letters("so far: ga"), CLOSE, OPEN]
    assert [c.parent for c in rollout.calls] == [None, 0, 1]
    assert [r.first for r in engine.requests] == [0, 6, 9]
    assert (rollout.stop, rollout.text, actions_of(rollout)) == (Stop.DONE, "stop", ["get a", "stop"])
    assert trained_once(rollout) == [[*letters("get a"), EOS, *letters("ga"), EOS], [*letters("stop"), EOS]]


def test_segments_partition_what_was_sampled_and_the_limit_ends_the_rollout() -> None:
    engine = Scripted(
        lambda r: "s" if r.prompt[-2:].tolist() == [CLOSE, OPEN] and ord("u") in r.prompt[-8:].tolist() else "get b"
    )
    rollout = play(engine, SHORT, Worlds(Echo), max_turns=50)
    assert (rollout.stop, sum(c.role == ASIDE for c in rollout.calls)) == (Stop.LENGTH, 2)
    assert len(trained_once(rollout)) == 3
    assert rollout.text == "get b"
    assert all(r.ids.tolist()[:5] == [*letters("1+1="), CLOSE] for r in samples(rollout))


def test_a_summary_that_is_cut_off_or_has_no_room_ends_the_rollout() -> None:
    long = play(Scripted(says("get a", "0123456789", "stop")), SHORT, Worlds(Echo))
    assert (long.stop, long.text, len(long.calls)) == (Stop.LENGTH, "get a", 2)
    full = play(Scripted(says("get a", "x"), context=25), replace(SHORT, context=30), Worlds(Echo))
    assert (full.stop, len(full.calls)) == (Stop.LENGTH, 1)


def test_a_summary_is_learned_under_the_other_opening_too() -> None:
    hinted = (Message("system", "hint"), Message("user", "1+1="))
    context = posed(messages=hinted, score_messages=hinted[1:], privileged=hinted)
    rollout = play(Scripted(says("get a", "ga", "stop")), SHORT, Worlds(Echo), context)
    last = rollout.calls[2]
    assert last.score_prefix.tolist() == [*letters("1+1="), CLOSE, *letters("so far: ga"), CLOSE, OPEN]
    assert last.privileged_prefix.tolist() == last.prefix.tolist()
    assert rollout.calls[1].score_prefix is None


def test_a_world_that_breaks_hears_the_same_and_nothing_is_asked_again() -> None:
    worlds = [Echo(fail="stop"), Echo()]
    engine = Scripted(says("get a", "ga", "stop"))
    rollout = play(engine, SHORT, Worlds(lambda: worlds.pop(0)))
    assert (rollout.stop, len(engine.requests), [c.parent for c in rollout.calls]) == (Stop.DONE, 3, [None, 0, 1])
    calm = play(Scripted(says("get a", "ga", "stop")), SHORT, Worlds(Echo))
    assert [c.tokens.tolist() for c in rollout.calls] == [c.tokens.tolist() for c in calm.calls]


@pytest.mark.parametrize(
    "wrong",
    [{"share": 0.0}, {"share": 1.5}, {"most": 0}, {"most_evaluated": 0}, {"context": -1}, {"limit": -1}, {"shown": "no place"}],
)
def test_what_a_summary_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"Summarise.{next(iter(wrong))}="):
        Summarise(**wrong)


# ---- chunks -----------------------------------------------------------------------------------------------------------


def writes(text: str) -> Scripted:
    """Says a text token by token, wherever a rollout stands in it."""
    return Scripted(lambda r: text[r.first :], context=400)


def test_the_budget_of_chunks_is_the_published_one() -> None:
    chunks = Chunks()
    assert (chunks.head, chunks.tail, chunks.most) == (100, 3996, 5)
    assert chunks.total(8192) == 24576


def test_an_answer_in_chunks_carries_its_head_and_its_tail() -> None:
    text = "abcdefghijklmnopqrst"
    rollout = play(writes(text), Chunks(head=2, tail=3, most=5))
    opening = [*letters("1+1="), CLOSE, OPEN]
    assert [c.prefix.tolist()[len(opening) :] for c in rollout.calls] == [
        [],
        letters("abfgh"),
        letters("abijk"),
        letters("ablmn"),
        letters("abopq".replace(" ", "")),
    ]
    assert [len(c.completion.ids) for c in rollout.calls] == [8, 3, 3, 3, 3]
    assert (rollout.stop, rollout.text, rollout.length) == (Stop.LENGTH, text, 20)
    assert all(len(c.tokens) <= len(opening) + 2 + 8 for c in rollout.calls)
    assert actions_of(rollout) == []
    assert trained_once(rollout) == [letters(text[a:b]) for a, b in ((0, 8), (8, 11), (11, 14), (14, 17), (17, 20))]


def test_an_answer_that_ends_in_a_later_chunk_is_read_whole() -> None:
    rollout = play(writes("abcdefghijkl"), Chunks(head=2, tail=3, most=5))
    assert (rollout.stop, rollout.text, len(rollout.calls)) == (Stop.DONE, "abcdefghijkl", 3)
    assert actions_of(rollout) == ["abcdefghijkl"]
    forced = play(writes("cdefghijkl"), Chunks(head=3, tail=2, most=5), context=posed(prefill=Prefill("ab")))
    assert forced.calls[1].prefix.tolist()[6:] == letters("abcij")
    assert forced.text == "abcdefghijkl"


def test_one_chunk_is_one_answer() -> None:
    one, plain = play(writes("abcdefghijkl"), Chunks(head=2, tail=3, most=1)), play(writes("abcdefghijkl"), Summarise())
    assert [c.tokens.tolist() for c in one.calls] == [c.tokens.tolist() for c in plain.calls]
    assert one.stop is Stop.LENGTH


def test_the_turn_after_chunks_goes_on_from_the_last_one() -> None:
    rollout = play(Scripted(lambda r: "abcdefghij"[r.first :] if r.first < 11 else "stop"), Chunks(head=2, tail=3), Worlds(Echo))
    _, second, third = rollout.calls
    assert (second.text, third.text, rollout.stop) == ("abcdefghij", "stop", Stop.DONE)
    assert third.prefix.tolist() == [*second.tokens.tolist(), *letters("<abcdefghij>"), CLOSE, OPEN]
    assert [len(row) for row in trained_once(rollout)] == [8, 8]


def test_what_chunks_refuse() -> None:
    for wrong in ({"head": -1}, {"tail": 0}, {"most": 0}):
        with pytest.raises(ConfigError, match=rf"Chunks.{next(iter(wrong))}="):
            Chunks(**wrong)
    with pytest.raises(ConfigError, match=r"carries 8 tokens \(head=4, tail=4\) of a chunk of 8, Run.sampling.max_new_tokens"):
        play(writes("abcdefghijkl"), Chunks(head=4, tail=4))


# ---- managers of one's own --------------------------------------------------------------------------------------------


@dataclass
class Asking:
    """Asks something after every turn and changes nothing."""

    asked: int = 0

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> None:
        call = await ask(conversation, [Message("user", "ok?")])
        assert isinstance(call, Call)
        self.asked += 1


def test_a_question_that_changes_nothing_is_a_branch() -> None:
    rollout = play(Scripted(says("a", "yes", "stop")), Asking(), Worlds(Echo))
    assert [c.parent for c in rollout.calls] == [None, 0, 0]
    assert rollout.calls[2].prefix.tolist() == [*rollout.calls[0].tokens.tolist(), *letters("<a>"), CLOSE, OPEN]
    assert [len(row) for row in trained_once(rollout)] == [6, 5]


def test_a_manager_must_give_a_conversation() -> None:
    class Wrong:
        async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Sequence[int]:
            return [0]

    with pytest.raises(ConfigError, match=r"rewrite returned a list; return what the conversation's methods give"):
        play(Scripted(says("a", "b")), Wrong(), Worlds(Echo))


def test_a_manager_that_is_no_coroutine_is_told() -> None:
    class Plain:
        def rewrite(self, conversation: Conversation, ask: AskPolicy) -> None:
            return None

    with pytest.raises(ConfigError, match=r"rewrite is no coroutine; write 'async def rewrite\(self, conversation, ask\)'"):
        play(Scripted(says("a", "b")), Plain(), Worlds(Echo))


def test_a_request_knows_where_its_answer_begins() -> None:
    seen: list[Request] = []

    def reply(request: Request) -> str:
        seen.append(request)
        return "abcdefghijkl"[request.first :]

    play(Scripted(reply), Chunks(head=2, tail=3))
    assert [r.prefix_tokens for r in seen] == [0, 5, 5]
    assert ids_of([1]).flags.writeable is False
