"""Playing contexts: prefixes are made of what was sampled, noise goes on, faults stay where they happened."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scripted import CLOSE, EOS, OPEN, SHORT, Echo, Letters, Reply, Saved, Scripted, Worlds, posed, says

from assay.core import Completion, Context, Message, Prefill, Rollout, Sampling, Stop, derive, samples
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.protocols import Request
from assay.rollout import KeepLast, Player


def player(engine: Scripted, source: Worlds | None = None, **changed: object) -> Player:
    fields = {"engine": engine, "tokenizer": Letters(), "source": source or Worlds(), "sampling": SHORT, "seed": 5}
    return Player(**{**fields, **changed})


def play(
    engine: Scripted, source: Worlds | None = None, contexts: list[Context] | None = None, n: int = 1, **changed: object
) -> list[Rollout]:
    return asyncio.run(player(engine, source, **changed).collect(contexts or [posed()], n))


def letters(text: str) -> list[int]:
    return [ord(c) for c in text]


# ---- one call ---------------------------------------------------------------------------------------------------------


def test_a_task_without_environment_is_one_call() -> None:
    engine = Scripted(says("2"))
    (rollout,) = play(engine)
    (call,) = rollout.calls
    assert call.prefix.tolist() == [*letters("1+1="), CLOSE, OPEN]
    assert call.completion.ids.tolist() == [ord("2"), EOS]
    assert (rollout.text, rollout.stop, rollout.error, call.parent, call.results) == ("2", Stop.DONE, None, None, ())
    assert call.score_prefix is None
    (request,) = engine.requests
    assert (request.first, request.id, request.sampling.stop_ids) == (0, "c/0#0", (EOS,))


def test_ids_and_seeds_come_from_the_contexts_key() -> None:
    rollouts = play(Scripted(says("2")), contexts=[posed("a"), posed("b")], n=3)
    assert [r.id for r in rollouts] == ["a/0", "a/1", "a/2", "b/0", "b/1", "b/2"]
    assert [r.seed for r in rollouts] == [derive("rollout", 5, key, i) for key in "ab" for i in range(3)]
    assert len({r.seed for r in rollouts}) == 6


def test_the_order_of_contexts_changes_no_seed() -> None:
    one = {r.id: r.seed for r in play(Scripted(says("2")), contexts=[posed("a"), posed("b")], n=2)}
    other = {r.id: r.seed for r in play(Scripted(says("2")), contexts=[posed("b"), posed("a")], n=2)}
    assert one == other


def test_all_attempts_run_at_once() -> None:
    engine = Scripted(says("2"))
    play(engine, contexts=[posed(str(i)) for i in range(4)], n=8)
    assert engine.together == 32


def test_own_stop_ids_are_kept_and_left_out_of_the_text() -> None:
    sampling = Sampling(max_new_tokens=8, stop_ids=(ord("!"),))

    class Bang(Scripted):
        def _answer(self, request: Request, reply: Reply) -> Completion:
            return replace(super()._answer(request, ("2!", Stop.LENGTH)), stop=Stop.DONE)

    engine = Bang(says("2!"))
    (rollout,) = play(engine, sampling=sampling)
    assert (rollout.text, rollout.length, engine.requests[0].sampling) == ("2", 2, sampling)


def test_an_answer_cut_off_keeps_its_last_token() -> None:
    (rollout,) = play(Scripted(says("123456789")))
    assert (rollout.text, rollout.stop, rollout.length) == ("12345678", Stop.LENGTH, 8)


def test_an_empty_answer() -> None:
    (rollout,) = play(Scripted(says(("", Stop.PARTIAL))))
    assert (rollout.text, rollout.stop, rollout.length) == ("", Stop.PARTIAL, 0)


# ---- prefill and score messages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "forced"), [(0.0, ""), (0.3, "abc"), (0.35, "abc"), (0.99, "abcdefghi"), (1.0, "abcdefghij")])
def test_prefill_forces_the_first_tokens_which_are_read_but_never_trained(share: float, forced: str) -> None:
    engine = Scripted(says("xy"))
    (rollout,) = play(engine, contexts=[posed(prefill=Prefill("abcdefghij", share))])
    assert rollout.calls[0].prefix.tolist() == [*letters("1+1="), CLOSE, OPEN, *letters(forced)]
    assert rollout.text == forced + "xy" and rollout.calls[0].forced == len(forced)
    assert engine.requests[0].first == 0
    (row,) = samples(rollout)
    assert row.ids[row.mask].tolist() == [*letters("xy"), EOS]


def test_a_share_that_floats_cannot_say_is_not_rounded_down() -> None:
    (rollout,) = play(Scripted(says("x")), contexts=[posed(prefill=Prefill("y" * 100, 0.29))])  # .29 * 100 < 29 in binary
    assert rollout.text == "y" * 29 + "x"


def test_learning_under_other_messages_than_shown() -> None:
    hinted = (Message("system", "hint"), Message("user", "1+1="))
    context = posed(messages=hinted, score_messages=hinted[1:], prefill=Prefill("2"))
    (rollout,) = play(Scripted(says(".")), contexts=[context])
    (call,) = rollout.calls
    assert call.prefix.tolist() == [*letters("hint"), CLOSE, *letters("1+1="), CLOSE, OPEN, ord("2")]
    assert call.score_prefix.tolist() == [*letters("1+1="), CLOSE, OPEN, ord("2")]
    (row,) = samples(rollout)
    assert row.ids.tolist() == [*call.score_prefix, ord("."), EOS]


def test_a_privileged_conversation_is_neither_sampled_nor_learned_under() -> None:
    told = (Message("system", "hint"), Message("user", "1+1="))
    context = posed(messages=told[1:], privileged=told, prefill=Prefill("2"))
    (rollout,) = play(Scripted(says(".")), contexts=[context])
    (call,) = rollout.calls
    assert call.prefix.tolist() == [*letters("1+1="), CLOSE, OPEN, ord("2")]
    assert call.privileged_prefix.tolist() == [*letters("hint"), CLOSE, *call.prefix]
    assert call.score_prefix is None
    (row,) = samples(rollout)
    assert row.ids.tolist() == [*call.prefix, ord("."), EOS]


# ---- environments -----------------------------------------------------------------------------------------------------


def test_turns_extend_what_was_sampled() -> None:
    engine = Scripted(says("get a", "stop"))
    (rollout,) = play(engine, Worlds(lambda: Echo(hello="hi")))
    first, second = rollout.calls
    assert first.prefix.tolist() == [*letters("1+1="), CLOSE, *letters("hi"), CLOSE, OPEN]
    assert second.prefix.tolist() == [*first.tokens, *letters("<get a>"), CLOSE, OPEN]
    assert [r.first for r in engine.requests] == [0, 6]
    assert [c.results[0].content for c in rollout.calls] == ["<get a>", "<stop>"]
    assert (rollout.stop, rollout.text, second.parent) == (Stop.DONE, "stop", 0)
    (row,) = samples(rollout)
    assert row.ids[row.mask].tolist() == [*letters("get a"), EOS, *letters("stop"), EOS]


class Shouting(Letters):
    """Decodes to capitals, so encoding a decoded text gives other ids."""

    def decode(self, ids: object) -> str:
        return super().decode(ids).upper()


def test_nothing_sampled_is_ever_tokenised_again() -> None:
    class Deaf(Echo):
        async def step(self, action: str) -> object:
            return await super().step(action.lower())

    (rollout,) = play(Scripted(says("get", "stop")), Worlds(Deaf), tokenizer=Shouting(), manager=KeepLast(5))
    assert rollout.calls[0].text == "GET"
    assert rollout.calls[1].prefix[: len(rollout.calls[0].tokens)].tolist() == rollout.calls[0].tokens.tolist()
    assert rollout.calls[1].prefix.tolist().count(ord("g")) == 2  # sampled "get", and "<get>" that the world echoed


def test_prefill_belongs_to_the_first_turn_only() -> None:
    context = posed(prefill=Prefill("ab"))
    (rollout,) = play(Scripted(says("c", "stop")), Worlds(Echo), contexts=[context])
    assert [c.text for c in rollout.calls] == ["abc", "stop"]
    assert [c.forced for c in rollout.calls] == [2, 0]
    assert rollout.calls[0].results[0].content == "<abc>"


def test_turns_run_out() -> None:
    (rollout,) = play(Scripted(lambda _: "go"), Worlds(Echo), max_turns=3)
    assert (len(rollout.calls), rollout.stop) == (3, Stop.LENGTH)
    assert len(rollout.calls[-1].results) == 1


def test_a_turn_cut_off_ends_the_rollout_without_a_step() -> None:
    worlds: list[Echo] = []

    def make() -> Echo:
        worlds.append(Echo())
        return worlds[-1]

    (rollout,) = play(Scripted(says("go", "0123456789")), Worlds(make))
    assert (rollout.stop, len(rollout.calls), worlds[0].steps) == (Stop.LENGTH, 2, 1)


def test_a_silent_world_lets_the_policy_speak_again() -> None:
    class Silent(Echo):
        async def step(self, action: str) -> object:
            return replace(await super().step(action), obs=type(await self.start())())

    (rollout,) = play(Scripted(says("go", "stop")), Worlds(Silent))
    assert rollout.calls[1].prefix.tolist() == [*rollout.calls[0].tokens, OPEN]


@pytest.mark.parametrize(
    ("fail", "calls", "message"),
    [
        ("start", 0, "environment start: OSError: no world, twice"),
        ("b", 2, "environment step 2: OSError: the world broke, twice"),
    ],
)
def test_a_broken_world_ends_its_own_rollout_only(fail: str, calls: int, message: str) -> None:
    made: list[Echo] = []

    def make() -> Echo:
        made.append(Echo(fail=fail if len(made) in (1, 3) else None))  # the second rollout's, and the fresh one in its place
        return made[-1]

    rollouts = play(Scripted(says("a", "b", "stop")), Worlds(make), n=3)
    assert [r.stop for r in rollouts] == [Stop.DONE, Stop.ERROR, Stop.DONE]
    assert (rollouts[1].error, len(rollouts[1].calls)) == (message, calls)
    assert [r.error for r in rollouts[::2]] == [None, None]


def test_a_source_that_cannot_make_its_world_is_a_fault_too() -> None:
    def make() -> Echo:
        raise RuntimeError("no sandbox")

    (rollout,) = play(Scripted(says("a")), Worlds(make))
    assert (rollout.stop, rollout.error) == (Stop.ERROR, "environment start: RuntimeError: no sandbox, twice")


def test_a_snapshot_is_where_the_world_begins() -> None:
    (rollout,) = play(Scripted(says("stop")), Worlds(Saved), contexts=[posed(snapshot={"room": 3})])
    assert rollout.calls[0].prefix.tolist() == [*letters("1+1="), CLOSE, *letters("at {'room': 3}"), CLOSE, OPEN]


@pytest.mark.parametrize(
    ("source", "words"), [(Worlds(Echo), "Echo cannot start from one"), (Worlds(), "its task has no environment")]
)
def test_a_snapshot_that_nobody_can_start_from(source: Worlds, words: str) -> None:
    with pytest.raises(ConfigError, match=f"context 'c' has a snapshot, but {words}"):
        play(Scripted(says("stop")), source, contexts=[posed(snapshot={"room": 3})])


# ---- room in the engine's context -------------------------------------------------------------------------------------


def test_an_opening_without_room_for_an_answer_is_a_wrong_setting() -> None:
    assert play(Scripted(says("2"), context=14))[0].text == "2"
    with pytest.raises(
        ConfigError, match=r"'c' opens with 6 tokens; with sampling.max_new_tokens=8 that exceeds the engine's context of 13"
    ):
        play(Scripted(says("2"), context=13))


def test_a_later_turn_gets_the_room_that_is_left_and_then_none() -> None:
    engine = Scripted(says("0123456", "0123456", "0123456"), context=34)
    (rollout,) = play(engine, Worlds(Echo))
    # opening 6, then 8 sampled and 11 shown: 25 of 34; then 8 of 8, 11 shown: 44 of 34
    assert [len(r.prompt) for r in engine.requests] == [6, 25]
    assert (rollout.stop, len(rollout.calls)) == (Stop.LENGTH, 2)
    tight = Scripted(says("0123456", "0123456"), context=30)
    (rollout,) = play(tight, Worlds(Echo))
    assert [r.sampling.max_new_tokens for r in tight.requests] == [8, 5]
    assert (rollout.stop, rollout.text) == (Stop.LENGTH, "01234")


# ---- compaction -------------------------------------------------------------------------------------------------------


def test_a_conversation_that_drops_turns_is_a_tree() -> None:
    engine = Scripted(says("a", "b", "stop"))
    (rollout,) = play(engine, Worlds(Echo), manager=KeepLast(1))
    first, second, third = rollout.calls
    opening = [*letters("1+1="), CLOSE]
    assert second.prefix.tolist() == [*first.tokens, *letters("<a>"), CLOSE, OPEN]
    assert third.prefix.tolist() == [*opening, OPEN, ord("b"), EOS, *letters("<b>"), CLOSE, OPEN]
    assert (third.parent, engine.requests[2].first) == (1, 4)
    rows = samples(rollout)
    assert [r.ids[r.mask].tolist() for r in rows] == [[ord("a"), EOS, ord("b"), EOS], [*letters("stop"), EOS]]


def test_compaction_keeps_the_forced_tokens_and_learns_under_the_other_opening() -> None:
    hinted = (Message("system", "hint"), Message("user", "1+1="))
    context = posed(messages=hinted, score_messages=hinted[1:], prefill=Prefill("pq"))
    (rollout,) = play(Scripted(says("a", "b", "c", "stop")), Worlds(Echo), contexts=[context], manager=KeepLast(1))
    assert [c.score_prefix is None for c in rollout.calls] == [False, True, False, False]
    third, fourth = rollout.calls[2:]
    shown, learned = [*letters("hint"), CLOSE, *letters("1+1="), CLOSE], [*letters("1+1="), CLOSE]
    tail = [OPEN, ord("b"), EOS, *letters("<b>"), CLOSE, OPEN]
    assert third.prefix.tolist() == shown + tail
    assert third.score_prefix.tolist() == learned + tail
    assert fourth.score_prefix.tolist() == [*learned, OPEN, ord("c"), EOS, *letters("<c>"), CLOSE, OPEN]
    both = play(Scripted(says("a", "b", "stop")), Worlds(Echo), contexts=[context], manager=KeepLast(2))[0]
    assert both.calls[2].prefix[len(shown) :].tolist()[:4] == [OPEN, *letters("pqa")]
    assert sum(int(r.mask.sum()) for r in samples(rollout)) == rollout.length


def test_each_row_of_a_compacted_conversation_has_its_privileged_prompt() -> None:
    told = (Message("system", "hint"), Message("user", "1+1="))
    context = posed(messages=told[1:], privileged=told)
    (rollout,) = play(Scripted(says("a", "b", "c", "stop")), Worlds(Echo), contexts=[context], manager=KeepLast(1))
    assert [c.privileged_prefix is None for c in rollout.calls] == [False, True, False, False]
    for call in (rollout.calls[0], *rollout.calls[2:]):
        assert call.privileged_prefix.tolist() == [*letters("hint"), CLOSE, *call.prefix]


# ---- engines ----------------------------------------------------------------------------------------------------------


def test_an_engine_that_fails_ends_all_attempts() -> None:
    engine = Scripted(lambda r: EngineError("request c/1#0: out of memory") if r.id == "c/1#0" else "2")
    with pytest.raises(EngineError, match="c/1#0: out of memory"):
        play(engine, n=4)
    assert engine.running == 0


def test_an_engines_own_errors_name_the_request() -> None:
    engine = Scripted(lambda r: ZeroDivisionError("oops"))
    with pytest.raises(EngineError, match=r"request c/0#0: ZeroDivisionError: oops"):
        play(engine)


# ---- settings ---------------------------------------------------------------------------------------------------------


def test_what_a_player_refuses() -> None:
    with pytest.raises(ConfigError, match=r"Player.max_turns=0"):
        player(Scripted(says("2")), max_turns=0)
    for deadline in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match=r"Player.deadline=.*it is in seconds and must be above 0"):
            player(Scripted(says("2")), deadline=deadline)
    with pytest.raises(ConfigError, match="n=0 rollouts per context"):
        play(Scripted(says("2")), n=0)
    with pytest.raises(DataError, match=r"share a key, so their rollouts would share ids and noise: \['a'\]"):
        play(Scripted(says("2")), contexts=[posed("a"), posed("b"), posed("a")])


def test_no_contexts_no_rollouts() -> None:
    assert asyncio.run(player(Scripted(says("2"))).collect([], 3)) == []


def test_every_call_serves_the_noise_where_the_last_one_stopped() -> None:
    engine = Scripted(lambda r: "stop" if len(r.prompt) > 60 else "ab")
    rollouts = play(engine, Worlds(Echo), n=2, max_turns=20, sampling=Sampling(max_new_tokens=5))
    for rollout in rollouts:
        firsts = [r.first for r in engine.requests if r.id.startswith(rollout.id + "#")]
        lengths = [len(c.completion.ids) for c in rollout.calls]
        assert firsts == [0, *np.cumsum(lengths)[:-1].tolist()]
        assert {r.seed for r in engine.requests if r.id.startswith(rollout.id + "#")} == {rollout.seed}


# ---- context by context -----------------------------------------------------------------------------------------------


def test_each_contexts_rollouts_are_told_of_while_others_are_sampled() -> None:
    """The first context's answers are long, so the second is told of first; what is collected is the same."""
    contexts, told = [posed("a"), posed("b")], list[tuple[list[str], int]]()
    open_ = set[str]()

    class Slow(Scripted):
        async def generate(self, request: Request) -> Completion:
            open_.add(request.id)
            try:
                for _ in range(200 if request.id.startswith("a/1") else 2):
                    await asyncio.sleep(0)
                return await super().generate(request)
            finally:
                open_.discard(request.id)

    def ended(rollouts: Sequence[Rollout]) -> None:
        told.append(([r.id for r in rollouts], len(open_)))

    found = asyncio.run(player(Slow(says("2"))).collect_each(contexts, 2, ended))
    plain = play(Scripted(says("2")), contexts=contexts, n=2)
    assert [(r.id, r.seed, r.text, r.stop) for r in found] == [(r.id, r.seed, r.text, r.stop) for r in plain]
    assert [ids for ids, _ in told] == [["b/0", "b/1"], ["a/0", "a/1"]]
    assert told[0][1] == 1 and told[1][1] == 0


def test_what_a_teller_raises_ends_the_collection() -> None:
    def ended(rollouts: Sequence[Rollout]) -> None:
        raise DataError("no room")

    with pytest.raises(DataError, match="no room"):
        asyncio.run(player(Scripted(says("2"))).collect_each([posed("a"), posed("b")], 2, ended))
    with pytest.raises(ConfigError, match="n=0 rollouts"):
        asyncio.run(player(Scripted(says("2"))).collect_each([posed("a")], 0, ended))
