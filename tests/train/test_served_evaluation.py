"""Evaluation of a model behind a server: answers of a real protocol server, and of one that misbehaves in every way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.cli import main
from assay.clients import OpenAIClient, RequestRefused
from assay.core.errors import DataError
from assay.tasks import Rows
from assay.train.evaluate import held_out
from assay.train.served_evaluation import JudgedRolloutFile, ServedEvaluation, read_judged_rollouts
from assay.train.server_player import ServerPlayer
from assay.verify import ScoringPool

ROWS = [{"prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(8)]
FAMILY = Rows(ROWS, tests=len(ROWS))


def reply(text: str | None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop", **more}]}


def right(body: dict[str, Any]) -> str:
    return str(int(body["messages"][-1]["content"].partition("+")[0]) + 1)


def run(answer: Any, path: Path | None = None, n: int = 2, attempts: int = 2, **more: Any) -> Any:
    """An evaluation of a server in this process: ``answer`` gives a response for a request's body."""
    transport = httpx.MockTransport(lambda request: answer(json.loads(request.content)))
    client = OpenAIClient("http://here/v1", "m", transport=transport, pause=0.0, attempts=attempts)
    items = held_out(FAMILY, (), 99)
    made = ServedEvaluation(player=ServerPlayer(client=client, max_new_tokens=9), tasks=FAMILY, items=items, n=n, **more)
    file = JudgedRolloutFile(path, {"n": n})
    try:
        with ScoringPool(FAMILY.verifier(), refuse=False) as pool:
            return asyncio.run(made.run(file, pool))
    finally:
        file.close()


def test_answers_are_judged_by_the_tasks_own_verifier():
    found = run(lambda body: httpx.Response(200, json=reply(right(body) if "3" not in str(body["messages"]) else "no")))
    assert len(found.items) == 8 and found.missing == 0 and found.asked == 16
    values = {i["answers"][0]: i["values"] for i in found.items}
    assert values.pop("no") == [0.0, 0.0] and set(map(tuple, values.values())) == {(1.0, 1.0)}


def test_thoughts_are_no_part_of_an_answer_and_an_empty_answer_is_wrong():
    found = run(lambda body: httpx.Response(200, json=reply(f"<think>1</think>{right(body)}")), n=1)
    assert {v for i in found.items for v in i["values"]} == {1.0}
    found = run(lambda body: httpx.Response(200, json=reply(None)), n=1)
    assert {v for i in found.items for v in i["values"]} == {0.0} and found.missing == 0


def test_what_fails_for_a_while_is_asked_again(tmp_path):
    """Each first request meets another trouble; the second one is answered."""
    troubles = [
        lambda: httpx.Response(429, headers={"Retry-After": "0"}),
        lambda: httpx.Response(500),
        lambda: httpx.Response(200, text="<html>"),
        lambda: httpx.Response(200, json={"choices": []}),
        lambda: (_ for _ in ()).throw(httpx.ConnectError("refused")),
    ]
    seen: set[str] = set()

    def answer(body: dict[str, Any]) -> httpx.Response:
        asked = body["messages"][-1]["content"]
        if asked not in seen:
            seen.add(asked)
            return troubles[len(seen) % len(troubles)]()
        return httpx.Response(200, json=reply(right(body)))

    found = run(answer, n=1)
    assert found.missing == 0 and {v for i in found.items for v in i["values"]} == {1.0}


@pytest.mark.parametrize(
    "trouble",
    [
        lambda: httpx.Response(500),
        lambda: httpx.Response(429),
        lambda: httpx.Response(200, text="{"),
        lambda: httpx.Response(200, json={"choices": []}),
        lambda: httpx.Response(400, json={"error": {"code": "context_length_exceeded"}}),
        lambda: (_ for _ in ()).throw(httpx.ConnectError("refused")),
    ],
)
def test_what_is_not_answered_is_missing_and_never_wrong(tmp_path, trouble):
    path, broken = tmp_path / "attempts.jsonl", True

    def answer(body: dict[str, Any]) -> httpx.Response:
        if broken and "3+" in str(body["messages"]):
            return trouble()
        return httpx.Response(200, json=reply(right(body)))

    found = run(answer, path)
    assert found.missing == 2 and sum(found.reasons.values()) == 2
    (item,) = [i for i in found.items if i["missing"]]
    assert item["values"] == [] and item["faults"] == 0
    assert {v for i in found.items for v in i["values"]} == {1.0}
    broken = False
    asked: list[Any] = []
    again = run(lambda body: (asked.append(body), answer(body))[1], path)
    assert again.missing == 0 and len(asked) == 2
    assert run(lambda body: pytest.fail("asked again"), path).items == again.items
    whole = [{**item, "missing": 0} for item in again.items]
    assert sorted(read_judged_rollouts(path), key=lambda i: i["id"]) == sorted(whole, key=lambda i: i["id"])


@pytest.mark.parametrize("status", [0, 400])
def test_a_server_that_is_gone_or_refuses_all_is_not_asked_for_everything(status):
    asked: list[Any] = []

    def gone(body: dict[str, Any]) -> httpx.Response:
        asked.append(body)
        if status:
            return httpx.Response(status, text="no field max_tokens")
        raise httpx.ConnectError("refused")

    found = run(gone, n=20, attempts=1, concurrency=4)
    assert found.missing == found.asked == 160 and len(asked) < 25
    assert any("not asked" in reason for reason in found.reasons)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_that_all_would_meet_stops_it(status):
    with pytest.raises(RequestRefused, match=f"status {status}"):
        run(lambda body: httpx.Response(status, text="no"))


def test_a_verdict_that_is_none_is_a_fault():
    def broken(prompt: str, completion: str, row: Any) -> float:
        raise ValueError("no")

    family = Rows(ROWS[:2], reward=broken, tests=2)
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=reply("1")))
    client = OpenAIClient("http://here/v1", "m", transport=transport)
    made = ServedEvaluation(player=ServerPlayer(client=client), tasks=family, items=held_out(family, (), 9))
    with ScoringPool(family.verifier(), refuse=False) as pool:
        found = asyncio.run(made.run(JudgedRolloutFile(None, {}), pool))
    assert [(i["values"], i["faults"], i["missing"]) for i in found.items] == [([], 1, 0)] * 2


def test_files_of_attempts(tmp_path):
    path = tmp_path / "a.jsonl"
    run(lambda body: httpx.Response(200, json=reply(right(body))), path)
    whole = path.read_text()
    path.write_text(whole + '{"task": "half')  # killed in the middle of a line
    assert run(lambda body: pytest.fail("asked again"), path).missing == 0
    assert path.read_text() == whole
    with pytest.raises(DataError, match="n is 2 there, 3 here"):
        run(lambda body: None, path, n=3)
    for text in ("[]\n", '{"a": 1}\n', "no\n", whole + '{"task": 1}\n'):
        path.write_text(text)
        with pytest.raises(DataError, match=r"a\.jsonl"):
            read_judged_rollouts(path)


# ---- the command -----------------------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """Right answers, with a key, and one that never comes where the question says so."""

    asked = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Handler.asked += 1
        if self.headers.get("authorization") != "Bearer secret":
            return self.said(401, {"error": "no"})
        if "7+" in body["messages"][-1]["content"]:
            return self.said(503, {})
        return self.said(200, reply(right(body)))

    def said(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # all connect at once


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setenv("KEY", "secret")
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("listed", "length"),
    [
        ({"data": [{"id": "x"}, {"id": "m", "max_model_len": 128}]}, 128),
        ({"data": [{"id": "m"}]}, None),
        ({"data": None}, None),
        ([], None),
    ],
)
def test_the_context_that_a_server_names(listed, length):
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=listed))
    assert asyncio.run(OpenAIClient("http://here/v1", "m", transport=transport).context_length()) == length


def test_answers_fit_the_context_that_a_server_names(address, rows, monkeypatch, capsys):
    async def context_length(self):
        return 18

    monkeypatch.setattr(OpenAIClient, "context_length", context_length)
    words = ["eval", address, "--model", "m", "--api-key-env", "KEY", "--rows", str(rows), "-n", "1", "--max-missing", "1"]
    assert main([*words, "--attempts", "1"]) == 0
    assert "answers of at most 9 tokens: half of the server's context of 18" in capsys.readouterr().err
    assert main([*words, "--attempts", "1", "--max-new-tokens", "5"]) == 0
    assert "half of" not in capsys.readouterr().err


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({**row, "verifier": {"name": "exact"}}) + "\n" for row in ROWS))
    return path


def test_the_command(address, rows, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    words = ["eval", address, "--model", "m", "--api-key-env", "KEY", "--rows", str(rows), "-n", "2", "--attempts", "1", "--json"]
    code = main([*words, "--out", str(out)])
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert code == 1 and (found["missing"], found["asked"]) == (2, 16)
    assert "2 of 16 answers are missing" in said.err and "no result" in said.err and "status 503" in said.err
    assert found["all"]["metrics"]["avg@2"]["value"] == 1.0 and len(found["tasks"]) == 7
    assert main([*words, "--out", str(out), "--max-missing", "0.2", "--against", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["paired"]
    assert main(["eval", address, *words[2:], "--temperature", "0.5", "--out", str(out)]) == 2
    assert "temperature is 1.0 there, 0.5 here" in capsys.readouterr().err
    assert main([*words[:4], "--rows", str(rows)]) == 2  # no key
    assert "status 401" in capsys.readouterr().err


def test_rows_with_a_reward_as_of_a_model_here(address, rows, tmp_path, capsys):
    reward = tmp_path / "mine.py"
    reward.write_text("def never(prompt, completion, row):\n    return 0.0\n")
    words = [
        "eval",
        address,
        "--model",
        "m",
        "--api-key-env",
        "KEY",
        "--tasks",
        str(rows),
        "-n",
        "1",
        "--attempts",
        "1",
        "--json",
    ]
    assert main([*words, "--reward", f"{reward}:never", "--max-missing", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["metrics"]["avg@1"]["value"] == 0.0 and found["family"] == "sums"
    assert main([*words, "--max-missing", "1"]) == 0  # without one, a row's own verifier
    assert json.loads(capsys.readouterr().out)["all"]["metrics"]["avg@1"]["value"] == 1.0


def test_a_table_for_people(address, rows, capsys):
    assert (
        main(["eval", address, "--model", "m", "--api-key-env", "KEY", "--rows", str(rows), "--greedy", "--attempts", "1"]) == 1
    )
    assert "m on sums" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "sort"], "which of its models"),
        (["--model", "m"], "say what is asked"),
        (["--model", "m", "--tasks", "sort", "--rows", "a.jsonl"], "say what is asked"),
        (["--model", "m", "--tasks", "sort", "--greedy", "-n", "3"], "--greedy"),
        (["--model", "m", "--tasks", "sort", "-n", "0"], "--n 0"),
        (["--model", "m", "--tasks", "sort", "--top-p", "2"], "top_p must be in"),
        (["--model", "m", "--tasks", "sort", "--max-missing", "2"], "--max-missing 2"),
        (["--model", "m", "--tasks", "sort", "--reward", "a.py:b"], "--reward is for rows"),
        (["--model", "m", "--tasks", "missing.jsonl"], "missing.jsonl"),
        (["--model", "m", "--tasks", "sotr"], "did you mean 'sort'"),
        (["--model", "m", "--tasks", "sort", "--concurrency", "0"], "concurrency=0"),
        (["--model", "m", "--tasks", "sort", "--levels", "99"], "99"),
    ],
)
def test_wrong_options(words, said, capsys):
    assert main(["eval", "http://127.0.0.1:9/v1", *words]) == 2
    assert said in capsys.readouterr().err


def test_nothing_is_answered(rows, capsys):
    words = ["--model", "m", "--rows", str(rows), "-n", "1", "--attempts", "1"]
    assert main(["eval", "http://127.0.0.1:9/v1", *words]) == 1
    assert "answered none of 8 requests" in capsys.readouterr().err


@pytest.mark.slow
def test_it_needs_no_torch(rows):
    code = (
        "import sys; from assay.cli import main; "
        f"code = main(['eval', 'http://127.0.0.1:9/v1', '--model', 'm', '--rows', {str(rows)!r}, '-n', '1', '--attempts', '1']); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules and code == 1, code"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "answered none" in done.stderr
