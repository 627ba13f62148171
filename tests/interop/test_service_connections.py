"""Connections that send half a request, or nothing, end by themselves, and others are answered meanwhile."""

import json
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

SERVER = """
import sys
from assay.sandbox.service import http as counter
from assay.verify import ExactMatch
from assay.interop.service import ScoringRequestHandler, serve

counter.HEAD_SECONDS, counter.BODY_SECONDS, counter.CONNECTIONS = 3.0, 3.0, int(sys.argv[1])
with ScoringRequestHandler(ExactMatch(), "exact") as desk:
    serve(desk, port=0, notify=lambda text: print(text, flush=True))
"""
BODY = json.dumps({"items": [{"gold": "4", "answer": "4"}]}).encode()
HEAD = b"POST /score HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
HALVES = {
    "nothing": b"",
    "half a head": HEAD % len(BODY),
    "half a body": HEAD % len(BODY) + b"\r\n" + BODY[:5],
}


def served(most):
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(most)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline().split()[3].rstrip(":").rpartition(":")[2])


@pytest.fixture(scope="module")
def port():
    process, number = served(400)
    yield number
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def connected(port, data=b""):
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.sendall(data)
    return made


def told(connection):
    """All that the server says until it closes."""
    found = b""
    with suppress(ConnectionResetError):  # it closed while something that we sent was still under way
        while more := connection.recv(1 << 16):
            found += more
    return found


def answer(port):
    with connected(port, HEAD % len(BODY) + b"connection: close\r\n\r\n" + BODY) as connection:
        return told(connection)


@pytest.mark.parametrize("half", HALVES)
def test_a_request_that_never_comes_whole_is_ended(port, half):
    began = time.monotonic()
    with connected(port, HALVES[half]) as connection:
        assert told(connection).startswith(b"HTTP/1.1 408")
    assert 2.0 < time.monotonic() - began < 20.0


def test_a_request_that_trickles_is_ended(port):
    """The deadline is for the whole head: bytes that come one by one do not move it."""
    with connected(port) as connection:
        began = time.monotonic()
        for byte in HEAD % 4 * 20:
            if select.select([connection], [], [], 0.3)[0]:
                break
            connection.sendall(bytes([byte]))
        assert told(connection).startswith(b"HTTP/1.1 408") and time.monotonic() - began < 20.0


def test_a_connection_that_is_kept_is_served_again_and_its_next_half_request_ended(port):
    with connected(port) as connection:
        for _ in range(2):
            connection.sendall(HEAD % len(BODY) + b"\r\n" + BODY)
            found = b""
            while not found.endswith(b"}]}"):
                found += connection.recv(1 << 16)
            assert found.startswith(b"HTTP/1.1 200")
        connection.sendall(b"POST /sc")
        assert told(connection).startswith(b"HTTP/1.1 408")


def test_many_half_sent_requests_end_and_a_good_one_is_answered_meanwhile(port):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1024:
        pytest.skip(f"no process may open 1024 files here, only {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1024), hard))
    half = [HALVES["half a head"], HALVES["half a body"], HALVES["nothing"]]
    open_ = [connected(port, half[i % 3]) for i in range(600)]
    try:
        began = time.monotonic()
        assert b'"value":1.0' in answer(port).replace(b" ", b"")
        assert time.monotonic() - began < 20.0
        for connection in open_:
            told(connection)  # ends: the server has closed it
        assert b'"value":1.0' in answer(port).replace(b" ", b"")
    finally:
        for connection in open_:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_of_too_many_connections_the_one_that_waited_longest_is_closed():
    process, number = served(3)
    try:
        began = time.monotonic()
        first = connected(number)
        time.sleep(0.2)
        others = [connected(number) for _ in range(3)]
        assert told(first).startswith(b"HTTP/1.1 408") and time.monotonic() - began < 2.5
        for other in others:
            other.close()
        first.close()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
