"""A judge behind a server that fails in every way: asked again, counted, never a number, and nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assay.clients import Judge, JudgeClient, MemoryStore
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.task import Message
from assay.testing import JudgeServer


def settings(server: JudgeServer, **more: Any) -> Judge:
    given: dict[str, Any] = {"url": server.url, "model": "m", "pause": 0.001, "request_seconds": 0.2, "seconds": 20.0}
    return Judge(**(given | more))


def number(text: str) -> int:
    if not text.isdigit():
        raise DataError(f"{text!r} is no number")
    return int(text)


def length(messages: list[Message]) -> str:
    return str(len(messages[-1].content))


def ask(client: JudgeClient, *texts: str, read: Any = number, **more: Any) -> list[Any]:
    async def work() -> list[Any]:
        try:
            asked = (client.ask((Message("user", text),), read, **more) for text in texts)
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await client.close()

    return asyncio.run(work())


@pytest.mark.parametrize("fault", ["timeout", "429", "500", "junk", "half", "words"])
def test_each_failure_is_asked_again(fault: Any) -> None:
    with JudgeServer(length, lambda question, n: fault if n == 0 else "") as server:
        client = JudgeClient(settings(server), MemoryStore())
        assert ask(client, "four") == [4]
    again = {"asked": 1, "sent": 2, "tokens": 20 if fault == "words" else 10} | ({"reread": 1} if fault == "words" else {})
    assert {k: n for k, n in client.counts.items() if k != "milliseconds"} == again


@pytest.mark.parametrize("fault", ["timeout", "429", "500", "junk", "half", "words"])
def test_a_failure_that_stays_is_an_error_and_no_number(fault: Any) -> None:
    with JudgeServer(length, lambda question, n: fault) as server:
        client = JudgeClient(settings(server, attempts=2, request_seconds=0.05), MemoryStore())
        (found,) = ask(client, "four")
    assert isinstance(found, EngineError) and client.counts["faults"] == 1
    assert ("none of 5 answers could be read" if fault == "words" else "no answer in 2 attempts") in str(found)


def test_a_judge_of_which_no_answer_can_be_read_is_given_up_after_eight() -> None:
    broken = True
    with JudgeServer(length, lambda question, n: "words" if broken else "") as server:
        client = JudgeClient(settings(server, concurrency=4, pause=0.01), MemoryStore())
        found = ask(client, *map(str, range(40)))
        assert {type(f) for f in found} == {EngineError} and client.counts["faults"] == 40
        assert 8 <= server.asked.total() <= 8 + 4
        assert "none of its first" in str(found[-1]) and "it said 'I would rather not.'" in str(found[-1])
        asked = server.asked.total()
        assert isinstance(ask(client, "four")[0], EngineError) and server.asked.total() == asked
        broken = False
        client.retry()
        assert ask(client, "four") == [4]


def test_a_server_that_gives_no_answer_at_all_is_not_waited_for_with_each_question() -> None:
    with JudgeServer(length, lambda question, n: "500") as server:
        client = JudgeClient(settings(server, attempts=3, concurrency=1), MemoryStore())
        found = ask(client, "a", "bb", "ccc", "dddd")
        assert all(isinstance(error, EngineError) for error in found)
        assert client.counts["sent"] == 3 and "has given no answer at all" in str(found[-1]) and "status 500" in str(found[-1])
        client.retry()
        ask(client, "e")
        assert client.counts["sent"] == 6, "it is asked again at the next step"
    came: list[Any] = []
    with JudgeServer(length, lambda question, n: came.append(n) or ("500" if len(came) > 1 else "")) as server:
        client = JudgeClient(settings(server, attempts=3, concurrency=1), MemoryStore())
        found = ask(client, "a", "bb", "ccc")
    assert sum(answer == 1 for answer in found) == 1 and client.counts["sent"] == 7, (
        "a server that has answered once may do so again"
    )


def test_a_judge_at_whose_address_no_server_listens_is_refused() -> None:
    with JudgeServer(length, lambda question, n: "500") as server:
        asyncio.run(JudgeClient(settings(server), MemoryStore()).check_reachable())
        gone = settings(server)
    with pytest.raises(
        EngineError, match=r"cannot be reached: .*no server listens at this address; start its server, or give Judge.url"
    ):
        asyncio.run(JudgeClient(gone, MemoryStore()).check_reachable())


def test_a_judge_that_was_read_once_is_never_given_up() -> None:
    with JudgeServer(length, lambda question, n: "words" if n else "") as server:
        client = JudgeClient(settings(server, pause=0.0), MemoryStore())
        assert ask(client, "four") == [4]
        found = [ask(client, "four", sample=sample)[0] for sample in (1, 2, 3)]
        assert all("none of 5 answers could be read" in str(error) for error in found) and server.asked.total() == 16
        assert ask(client, "fresh") == [5]


def test_the_deadline_of_a_question_holds() -> None:
    with JudgeServer(length, lambda question, n: "words") as server:
        client = JudgeClient(settings(server, seconds=2.0, pause=10.0), MemoryStore())
        (found,) = ask(client, "four")
    assert isinstance(found, EngineError) and "no judgement within 2 s" in str(found) and "'I would rather not.'" in str(found)


def test_a_refusal_is_told_at_once() -> None:
    with JudgeServer(length, lambda question, n: "refused") as server:
        (found,) = ask(JudgeClient(settings(server), MemoryStore()), "four")
        assert isinstance(found, ConfigError) and server.asked.total() == 1


def test_the_same_is_asked_once_and_another_sample_is_another_question() -> None:
    store = MemoryStore()
    with JudgeServer(length) as server:
        client = JudgeClient(settings(server), store)
        assert ask(client, "four", "four", "seven77") == [4, 4, 7]  # at the same time, too
        assert server.asked.total() == 2
        assert ask(JudgeClient(settings(server), store), "four", "seven77") == [4, 7]
        assert server.asked.total() == 2
        assert ask(client, "four", sample=1) == [4] and server.asked.total() == 3
        for other in ({"temperature": 0.5}, {"max_tokens": 7}, {"model": "other"}, {"seed": 4}):
            before = server.asked.total()
            assert ask(JudgeClient(settings(server, **other), store), "four") == [4]
            assert server.asked.total() == before + 1
    assert client.counts["asked"] == 3


def test_what_was_kept_for_a_scorer_that_reads_otherwise_is_asked_again() -> None:
    def even(text: str) -> int:
        if int(text) % 2:
            raise ValueError(f"{text} is odd")
        return int(text)

    store = MemoryStore()
    with JudgeServer(length) as server:
        client = JudgeClient(settings(server), store)
        assert ask(client, "odd") == [3]
        (found,) = ask(client, "odd", read=even)
        assert isinstance(found, EngineError) and "3 is odd" in str(found)

        async def both() -> list[Any]:
            asked = (client.ask((Message("user", "still"),), read) for read in (number, even))
            found = await asyncio.gather(*asked, return_exceptions=True)
            await client.close()
            return found

        first, second = asyncio.run(both())
        assert first == 5 and isinstance(second, EngineError) and "5 is odd; it said '5'" in str(second)


@pytest.mark.slow
@pytest.mark.parametrize("questions", [300, pytest.param(10_000, marks=pytest.mark.evidence)])
def test_of_judgements_by_a_server_that_fails_on_one_question_in_five_none_is_lost(questions: int) -> None:
    kinds: tuple[Any, ...] = ("429", "500", "junk", "half", "words")

    def fault(question: str, n: int) -> Any:
        return kinds[int(question[:4], 16) % 5] if int(question[-2:], 16) < 51 and n < 2 else ""

    with JudgeServer(length, fault) as server:
        client = JudgeClient(settings(server, concurrency=8 if questions < 1000 else 64, request_seconds=10.0), MemoryStore())
        texts = [f"{i} " * (1 + i % 7) for i in range(questions)]
        assert ask(client, *texts) == [len(text) for text in texts], "none is lost, and none is another number"
        assert server.asked.total() > 1.1 * questions
    assert client.counts["faults"] == 0 and client.counts["asked"] == questions


def test_an_error_that_the_store_remembers_is_met_again_and_nobody_is_asked() -> None:
    class Remembers(MemoryStore):
        def find(self, key: str) -> Any:
            return EngineError("status 500 six times")

    with JudgeServer(length) as server:
        client = JudgeClient(settings(server), Remembers())
        (found,) = ask(client, "four")
        assert str(found) == "status 500 six times" and client.counts == {"faults": 1} and not server.asked


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a/b"}, "Judge.name='a/b'"),
        ({"name": ".a"}, "Judge.name"),
        ({"url": "host"}, "Judge.url='host' is no address"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"seconds": 0.0}, "seconds=0.0"),
        ({"request_seconds": 0.0}, "request_seconds=0.0"),
        ({"pause": -1.0}, "pause=-1.0"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Judge(**given)


def test_a_client_that_was_never_asked_closes_and_has_opened_nothing() -> None:
    """Closing it again does no harm, and a question after that opens a connection of its own, which closing ends."""
    with JudgeServer(length) as server:
        client = JudgeClient(settings(server), MemoryStore())

        async def close_twice() -> None:
            await client.close()
            await client.close()

        asyncio.run(close_twice())
        assert client._client is None and server.asked.total() == 0 and client.counts == {}
        assert ask(client, "four") == [4] and server.asked.total() == 1
        assert client._client is not None
        asyncio.run(close_twice())
