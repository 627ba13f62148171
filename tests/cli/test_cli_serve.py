"""``assay serve verifier``: what is refused before it listens, and a service that is asked and stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli import main
from assay.verify.service import RewardClient, ServiceError


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
    monkeypatch.setitem(sys.modules, "assay.verify.service.server", None)
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
