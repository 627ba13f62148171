"""``assay distill``: rows from a model of one's own or a server, gone on with, refused in one sentence."""

import json
import re
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SMALL = ("--level", "3", "--per-level", "3", "-n", "2")


@contextmanager
def serving(answer):
    """A server that speaks OpenAI's protocol, its address, and the bodies and keys that it was sent."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((body, self.headers.get("Authorization")))
            choice = {"index": 0, "message": {"content": answer(body)}, "finish_reason": "stop"}
            data = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()


def gold(body):
    return "".join(sorted(c for c in body["messages"][-1]["content"] if c.isdigit()))


def test_a_server_teaches_and_is_not_asked_twice(assay, tmp_path, monkeypatch):
    monkeypatch.setenv("A_KEY", "secret")
    with serving(gold) as (address, seen):
        words = ("distill", address, "sort", "out.jsonl", "--model", "big", "--key", "A_KEY", *SMALL)
        said = assay(*words)
        assert said.code == 0, said.err
        assert "out.jsonl" in said.out and "3 rows to imitate: Imitate(data='out.jsonl')" in said.out
        assert "3, 3 of them answered rightly" in said.out and "6: 6 right, 3 repeated" in said.out
        assert "assay distill: 3 of 3 tasks, 3 answered rightly" in said.err
        assert {(body["model"], body["max_tokens"], key) for body, key in seen} == {("big", 2048, "Bearer secret")}
        assert len(seen) == 6
        found = assay(*words, "--json").json
        assert len(seen) == 6 and (found["rows"], found["solved"], found["counts"]["asked"]) == (3, 3, 6)
        assert assay(*words, "--per-level", "4", "--json").json["tasks"] == 4 and len(seen) == 8
    assert "secret" not in (tmp_path / "out.jsonl.work").read_text()
    assert {row["level"] for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())} == {3}


def test_a_model_teaches_what_it_knows(assay, mine, tmp_path):
    assert assay("train", "mine.py:tiny", "--folder", "run", "--plain", "--no-report").code == 0
    words = ("distill", "run", "sort", "out.jsonl", "--arm", "sort", *SMALL, "--max-new-tokens", "4")
    found = assay(*words, "--json")
    assert found.json["counts"]["asked"] == 6 and found.code == (0 if found.json["rows"] else 1)
    said = assay(*words, "--temperature", "0.5")
    assert said.code == 2 and "is the work of another distillation: teacher was" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("http://127.0.0.1:9/v1", "sort", "out.jsonl"), "is a server; say which of its models to ask: --model NAME"),
        (("http://127.0.0.1:9/v1", "sort", "o.jsonl", "--model", "m", "--seed", "1"), "--seed 1 is of a model on this machine"),
        (("nowhere", "sort", "out.jsonl"), "nowhere does not exist"),
        (("nowhere", "sort", "out.jsonl", "--model", "m"), "--model is of a server, and nowhere is a model on this machine"),
        (("http://127.0.0.1:9/v1", "sorted", "out.jsonl", "--model", "m"), "did you mean 'sort'"),
        (("http://127.0.0.1:9/v1", "sort", "out.txt", "--model", "m"), "name a file that ends in .jsonl"),
        (("http://127.0.0.1:9/v1", "sort", "out.jsonl", "--model", "m", "--arm", "srt"), "arm at --arm of 'sort' 'srt'"),
        (
            ("http://127.0.0.1:9/v1", "sort", "out.jsonl", "--model", "m", "--level", "2"),
            "--level: task family 'sort' has no",
        ),
        (("http://127.0.0.1:9/v1", "sort", "out.jsonl", "--model", "m", "--key", "NO_KEY"), "'NO_KEY' is not set"),
    ],
)
def test_what_is_wrong_is_said(assay, monkeypatch, words, says):
    monkeypatch.delenv("NO_KEY", raising=False)
    said = assay("distill", *words)
    assert said.code == 2 and says in " ".join(said.err.split())


def test_a_server_out_of_reach_ends_it_with_what_there_is_kept(assay):
    said = assay("distill", "http://127.0.0.1:9/v1", "sort", "out.jsonl", "--model", "m", "--seconds", "0.2", *SMALL)
    assert said.code == 1 and "the teacher answered nothing of 6 attempts" in said.err
    assert "is kept in out.jsonl.work: the same command continues" in said.err


def test_a_stop_says_that_the_work_is_kept_and_a_terminal_has_a_bar(assay, monkeypatch):
    from assay.select import Distillation

    def stopped(self, out, tell):
        tell(1, 3, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(Distillation, "run", stopped)
    words = ("distill", "http://127.0.0.1:9/v1", "sort", "out.jsonl", "--model", "m")
    said = assay(*words)
    assert said.code == 130 and "stopped; what was answered is kept in out.jsonl.work" in said.err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", assay(*words).err)
    assert "1/3 tasks, 1 answered rightly" in shown
