"""``assay serve``: what is refused before it listens, and a service that is asked and stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.cli import main
from assay.core.errors import SandboxError
from assay.interop.service import RewardClient, ServiceError
from assay.runtime import DecoderShape, char_tokenizer, init_model
from assay.runtime.models.hf import save_model
from assay.sandbox import Limits, Remote, Sandbox


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["serve", "verifier", *words]) == 2
    return capsys.readouterr().err


def test_wrong_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "did you mean 'math'?" in said(capsys, "mat")
    assert "give a token that callers must send" in said(capsys, "math", "--host", "0.0.0.0")
    assert "ServiceLimits.items=0" in said(capsys, "math", "--items", "0")
    assert "cannot read a token from" in said(capsys, "math", "--token-file", str(tmp_path / "none"))
    (tmp_path / "empty").write_text("\n")
    assert "holds no token" in said(capsys, "math", "--token-file", str(tmp_path / "empty"))
    assert "'lok'" in said(capsys, "math", "--set", "lok=1")


def test_without_its_libraries(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "assay.interop.service.server", None)
    assert main(["serve", "verifier", "math"]) == 1
    assert "starlette and uvicorn is not installed: pip install 'assay-rl[serve]'" in capsys.readouterr().err


def test_a_service_is_asked_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "mine.py").write_text("def reward(prompt, completion, row):\n    return float(len(completion))\n")
    words = ["serve", "verifier", "mine.py:reward", "--port", "0", "--token-file", "token", "--set", "floor=-1.0"]
    process = subprocess.Popen([sys.executable, "-m", "assay", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        client = RewardClient(url=line.split()[3].rstrip(":"), token="secret", patience=20.0)
        assert client.health()["verifier"] == "mine.py:reward"
        assert [v["value"] for v in client.score([{"gold": "", "answer": "four"}, {"gold": 1, "answer": ""}])] == [4.0, 0.0]
        with pytest.raises(ServiceError, match="401"):
            RewardClient(url=client.url).health()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.slow
def test_a_model_is_served_and_stopped(tmp_path: Path) -> None:
    tokenizer = char_tokenizer("abcdefgh")
    save_model(init_model(DecoderShape(vocab_size=tokenizer.size, max_positions=32), tokenizer, seed=0), tmp_path / "mine")
    words = ["serve", "model", "mine", "--port", "0", "--api-key", "secret", "--max-new-tokens", "5"]
    process = subprocess.Popen([sys.executable, "-m", "assay", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[3].rstrip(":")
        assert "vLLM" in process.stderr.readline() and f"curl {address}/v1/chat" in process.stderr.readline()
        body = {"messages": [{"role": "user", "content": "abc"}], "stream": True, "stream_options": {"include_usage": True}}
        headers = {"Authorization": "Bearer secret"}
        answer = httpx.post(f"{address}/v1/chat/completions", json=body, headers=headers, timeout=60)
        assert answer.text.endswith("data: [DONE]\n\n") and '"completion_tokens": ' in answer.text
        assert httpx.get(f"{address}/v1/models", headers=headers).json()["data"][0]["id"] == "mine"
        assert httpx.get(f"{address}/v1/models").status_code == 401
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_model_that_cannot_be_served(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any) -> None:
    def said(*words: str) -> str:
        assert main(["serve", "model", *words]) == 2
        return capsys.readouterr().err

    assert "does not exist" in said(str(tmp_path / "none"))
    (tmp_path / "config.json").write_text("{}")
    assert "give a token that callers must send" in said(str(tmp_path), "--host", "0.0.0.0")
    assert "port 70000" in said(str(tmp_path), "--port", "70000")
    assert "give one of them" in said(str(tmp_path), "--api-key", "a", "--token-file", "b")
    assert "top_p must be in (0, 1]" in said(str(tmp_path), "--top-p", "2")
    monkeypatch.setitem(sys.modules, "assay.publish.service.server", None)
    assert main(["serve", "model", str(tmp_path)]) == 1
    assert "pip install 'assay-rl[serve]'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sandbox_is_served_and_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        Sandbox(workers=1).close()
    except SandboxError as error:
        pytest.skip(f"nothing contains programs here: {error}")
    (tmp_path / "token").write_text("secret\n")
    words = [
        "serve",
        "sandbox",
        "--port",
        "0",
        "--token-file",
        "token",
        "--workers",
        "1",
        "--limits",
        "wall=20,cpu=10",
        "--languages",
        "all",
    ]
    process = subprocess.Popen([sys.executable, "-m", "assay", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stderr is not None
        isolation, line = process.stderr.readline(), process.stderr.readline()
        assert (
            isolation.startswith("isolation: ")
            and "; languages: python" in isolation
            and line.startswith("serving the sandbox on http://127.0.0.1:")
        )
        url = line.split()[4].rstrip(":")
        with Sandbox(Remote(url=url, token="secret"), workers=1, limits=Limits(wall=5.0)) as sandbox:
            assert sandbox.run("print(6 * 7)").stdout == "42\n"
        (tmp_path / "program.py").write_text("print(6 * 7)")
        monkeypatch.setenv("ASSAY_SANDBOX_TOKEN", "secret")
        words = ["sandbox", "run", str(tmp_path / "program.py"), "--backend", url, "--limits", "wall=5"]
        assert main(words) == 0
        assert '"stdout": "42\\n"' in capsys.readouterr().out
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_sandbox_that_cannot_be_served(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["serve", "sandbox", "--limits", "wal=1"]) == 2
    assert "did you mean 'wall'?" in capsys.readouterr().err
    assert main(["serve", "sandbox", "--backend", "strnog"]) == 2
    assert main(["serve", "sandbox", "--languages", "prel"]) == 2
    assert "did you mean 'perl'?" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "assay.sandbox.service.server", None)
    assert main(["serve", "sandbox"]) == 1
    assert "pip install 'assay-rl[serve]'" in capsys.readouterr().err


@pytest.mark.prove
def test_a_policy_is_served_to_agents_and_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = char_tokenizer("abcdefgh")
    save_model(init_model(DecoderShape(vocab_size=tokenizer.size, max_positions=32), tokenizer, seed=0), tmp_path / "mine")
    words = ["serve", "policy", "mine", "--port", "0", "--max-new-tokens", "5", "--record", "calls.jsonl"]
    process = subprocess.Popen([sys.executable, "-m", "assay", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[3].rstrip(":")
        body = {"messages": [{"role": "user", "content": "abc"}], "max_tokens": 4, "model": "any"}
        answer = httpx.post(f"{address}/s/mine/v1/messages", json=body, timeout=60).json()
        assert answer["usage"]["input_tokens"] == 3 and (tmp_path / "calls.jsonl").read_text().count("\n") == 1
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    monkeypatch.setitem(sys.modules, "assay.publish.service.policy", None)
    assert main(["serve", "policy", "mine"]) == 1
    assert "starlette and uvicorn is not installed" in capsys.readouterr().err
