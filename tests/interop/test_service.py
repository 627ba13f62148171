"""The reward service: a real server on loopback, asked by its clients; what it refuses, and what it does under load."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.core.errors import ConfigError, DataError
from assay.interop.service import (
    RewardClient,
    ScoringRequestHandler,
    ServiceError,
    ServiceLimits,
    TrlClient,
    VerlClient,
    serve,
)
from assay.verify import ExactMatch, service

ROWS = [{"gold": "4", "answer": "4"}, {"id": "b", "gold": "4", "answer": "5"}]

SERVER = """
import sys, time
from assay.verify import ExactMatch, RewardFunction
from assay.interop.service import ScoringRequestHandler, ServiceLimits, serve

def slow(prompt, completion, row):
    if completion == "hang":
        time.sleep(1000)
    if completion == "nap":
        time.sleep(0.5)
    if completion == "raise":
        raise ValueError("no")
    return float(completion == row["answer"])

verifier = ExactMatch() if sys.argv[1] == "exact" else RewardFunction(slow)
limits = ServiceLimits(deadline=0.3 if sys.argv[1] == "tight" else 30.0, items=8, megabytes=0.01, waiting=1, parallel=1)
with ScoringRequestHandler(verifier, sys.argv[1], limits) as desk:
    serve(desk, port=0, token=sys.argv[2], notify=lambda text: print(text, flush=True))
"""


@contextmanager
def running(verifier: str, token: str = "") -> Generator[RewardClient]:
    """A server in a process of its own, ended by SIGTERM."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, verifier, token], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith(f"serving {verifier} on http://127.0.0.1:"), said
        client = RewardClient(url=said.split()[3].rstrip(":"), token=token, patience=20.0)
        client.health()
        yield client
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def exact() -> Generator[RewardClient]:
    with running("exact") as client:
        yield client


def test_verdicts_in_order(exact: RewardClient) -> None:
    one, two = exact.score(ROWS)
    assert one == {"value": 1.0, "components": {"correct": 1.0}, "fault": "none", "verdict": "equal"}
    assert two == {"id": "b", "value": 0.0, "components": {"correct": 0.0}, "fault": "none", "verdict": "different"}
    many = [{"gold": str(i), "answer": str(i % 7)} for i in range(30)]
    assert [v["value"] for v in replace(exact, batch=7).score(many)] == [float(i < 7) for i in range(30)]
    assert exact.score([]) == []


def test_what_the_service_says_of_itself(exact: RewardClient) -> None:
    before = exact.health()["served"].get("items", 0)
    exact.score(ROWS)
    health = exact.health()
    assert (health["status"], health["verifier"], health["waiting"], health["free"]) == ("ok", "exact", 0, 1)
    assert health["served"]["items"] == before + 2


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("4", "item 1: a str, not an object"),
        ({"gold": "4"}, "item 1: there is no 'answer'"),
        ({"gold": "4", "answer": 4}, "item 1: 'answer' is an int"),
        ({"answer": "4"}, "item 1: it has neither of 'gold' and 'task'"),
        ({"gold": "4", "answer": "4", "prompt": 4}, "item 1: 'prompt' is an int; give text"),
        ({"task": {"lvel": 3}, "answer": "4"}, "item 1: 'task': unknown field 'lvel'"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_nothing_judged(exact: RewardClient, row: Any, said: str) -> None:
    before = exact.health()["served"]
    with pytest.raises(DataError, match=said):
        exact._ask("/score", {"items": [ROWS[0], row]})  # pyright: ignore[reportPrivateUsage]
    assert exact.health()["served"] == before


def status(client: RewardClient, body: bytes, kind: str = "application/json", path: str = "/score") -> tuple[int, str]:
    asked = urllib.request.Request(client.url + path, body, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_what_is_no_request_is_refused(exact: RewardClient) -> None:
    assert status(exact, b"{", "application/json")[0] == 400
    assert "is not JSON" in status(exact, b"{")[1]
    assert 'no list \\"items\\"' in status(exact, b'{"item": []}')[1]
    assert 'no list \\"items\\"' in status(exact, b"[1]")[1]
    assert "is not JSON" in status(exact, b"[" * 9000)[1]
    assert status(exact, b"{}", "text/plain") == (415, '{"error":"send application/json"}')
    assert status(exact, b" " * 20_000)[0] == 413
    assert status(exact, b"{}", path="/no")[0] == 404
    with pytest.raises(DataError, match="9 items in one request, at most 8"):
        exact.score([ROWS[0]] * 9)
    assert exact.score(ROWS)[0]["value"] == 1.0


def test_the_token_is_asked_for() -> None:
    with running("exact", "secret") as client:
        assert client.score(ROWS)[0]["value"] == 1.0
        for wrong in ("", "secre", "secretx"):
            with pytest.raises(ServiceError, match="status 401: send the token"):
                replace(client, token=wrong).score(ROWS)
            with pytest.raises(ServiceError, match="401"):
                replace(client, token=wrong).health()


def test_faults_are_no_zeros() -> None:
    with running("tight") as client:
        rows = [{"gold": "4", "answer": text} for text in ("4", "raise", "hang", "3")]
        good, raised, hung, wrong = client.score(rows)
        assert (good["value"], wrong["value"]) == (1.0, 0.0)
        assert (raised["value"], raised["fault"], raised["error"]) == (None, "verifier", "ValueError: no")
        assert (hung["value"], hung["fault"]) == (0.0, "policy")
        assert client.health()["served"] == {"fault/policy": 1, "fault/verifier": 1, "items": 4, "requests": 1}
        trl, verl = TrlClient(client=client), VerlClient(client=client)
        assert trl(["p"] * 3, ["4", [{"role": "assistant", "content": "4"}], "raise"], answer=["4"] * 3) == [1.0, 1.0, None]
        with pytest.raises(DataError, match=r"no column 'answer' with the gold among \['solution'\]"):
            trl(["p"], ["4"], solution=["4"])
        assert verl("math", "4", "4") == 1.0
        with pytest.raises(ServiceError, match=r"no verdict \(verifier fault\), and a fault is not a 0: ValueError: no"):
            verl("math", "raise", "4")
        told = replace(verl, on_fault=-1.0)
        assert told("math", "raise", "4") == {"score": -1.0, "acc": -1.0, "fault": 1.0}
        assert told("math", "4", "4", {"index": 3}) == {"score": 1.0, "acc": 1.0, "fault": 0.0}
        assert trl.__name__ == verl.__name__ == "assay_service"


def test_who_comes_when_too_many_wait_is_turned_away_and_comes_again() -> None:
    with running("slow") as client:
        nap = [{"gold": "nap", "answer": "nap"}]
        threads = [threading.Thread(target=client.score, args=(nap,)) for _ in range(2)]  # one at work, one that waits
        for thread in threads:
            thread.start()
        while client.health()["waiting"] < 1:
            time.sleep(0.01)
        with pytest.raises(ServiceError, match="1 requests wait already; try again later"):
            replace(client, patience=0.0).score(nap)
        assert client.score(nap)[0]["value"] == 1.0  # patience
        for thread in threads:
            thread.join()
        assert client.health()["served"]["turned_away"] >= 1


def test_an_absent_service_is_an_error_after_some_patience() -> None:
    with pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:9/score: .*refused"):
        RewardClient(url="http://127.0.0.1:9", patience=0.3).score(ROWS)
    with running("slow") as client, pytest.raises(ServiceError, match=r"no answer within 0\.1 s"):
        replace(client, timeout=0.1).score([{"gold": "nap", "answer": "nap"}])


class Odd(BaseHTTPRequestHandler):
    """Another server at that address."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.path.split("/")[1]
        self.send_response(200 if kind == "short" else 500)
        self.end_headers()
        self.wfile.write(b'{"results": []}' if kind == "short" else b"<html>")

    def log_message(self, format: str, *args: Any) -> None: ...


def test_another_server_at_that_address() -> None:
    with HTTPServer(("127.0.0.1", 0), Odd) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        with pytest.raises(ServiceError, match="gave 0 verdicts for 2 answers"):
            RewardClient(url=f"{url}/short").score(ROWS)
        with pytest.raises(ServiceError, match="status 500: Internal Server Error"):
            RewardClient(url=f"{url}/broken").score(ROWS)
        other.shutdown()


def test_a_caller_who_goes_away_amid_a_request_takes_nothing_along(exact: RewardClient) -> None:
    host, _, port = exact.url.removeprefix("http://").partition(":")
    for _ in range(3):
        with socket.create_connection((host, int(port))) as line:
            line.sendall(b"POST /score HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{")
            line.shutdown(socket.SHUT_WR)
    assert exact.score(ROWS)[0]["value"] == 1.0


def test_wrong_settings() -> None:
    clients: list[dict[str, Any]] = [
        {"url": "localhost:80"},
        {"url": "http://a", "timeout": 0.0},
        {"url": "http://a", "batch": 0},
    ]
    for wrong in clients:
        with pytest.raises(ConfigError, match="RewardClient"):
            RewardClient(**wrong)
    limits: list[dict[str, Any]] = [{"parallel": 0}, {"deadline": -1.0}, {"waiting": -1}]
    for wrong in limits:
        with pytest.raises(ConfigError, match=rf"ServiceLimits\.{next(iter(wrong))}"):
            ServiceLimits(**wrong)
    with ScoringRequestHandler(ExactMatch()) as desk:
        with pytest.raises(ConfigError, match=r"host '0\.0\.0\.0' can be reached from other machines: give a token"):
            serve(desk, host="0.0.0.0")
        with pytest.raises(ConfigError, match=r"cannot listen on 203\.0\.113\.1, port 1: "):
            serve(desk, host="203.0.113.1", port=1, token="t")


def test_the_package_offers_what_it_names() -> None:
    assert set(service.__all__) <= set(dir(service))
    with pytest.raises(AttributeError, match="no attribute 'Dask'"):
        _ = service.Dask  # pyright: ignore


def test_the_pages_python(exact: RewardClient) -> None:
    text = (Path(__file__).parents[2] / "docs" / "add" / "service.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block.replace("http://127.0.0.1:8900", exact.url), names)
    assert [v["value"] for v in names["verdicts"]] == [1.0, 0.0]
    assert names["reward"](["p"], ["4"], answer=["4"]) == [1.0]
    assert names["compute_score"]("math", "4", "4") == {"score": 1.0, "acc": 1.0, "fault": 0.0}
