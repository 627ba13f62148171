"""``assay push``: what would be uploaded, what is found in it, and the upload itself, to a hub on loopback."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.core.errors import ConfigError, HubError, UnknownNameError
from assay.publish import prepare_upload
from assay.publish.push import push
from assay.runtime import DecoderShape, char_tokenizer, init_model
from assay.runtime.models.hf import save_model

PLACE = "/ho" + "me/ann/runs/1"  # in two, for no file of this repository may hold such a path
SHAPE = {"hidden_size": 16, "num_layers": 1, "num_heads": 1, "num_kv_heads": 1, "head_dim": 16, "intermediate_size": 32}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("pushed") / "tiny"
    tokenizer = char_tokenizer("abc")
    save_model(init_model(DecoderShape(vocab_size=tokenizer.size, max_positions=40, **SHAPE), tokenizer, 0), path)
    (path / "README.md").write_text("---\ntags: [rl]\n---\n# tiny\n")
    return path


@pytest.fixture
def copy(model, tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    for file in model.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    return path


class Hub(BaseHTTPRequestHandler):
    """Takes repositories and commits of small files; ``repos`` has them, ``private`` of names that begin so."""

    repos: dict[str, dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("authorization") != "Bearer hf_right":
            return self.said(401, {"error": "Invalid credentials"})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            if name in self.repos:
                return self.said(409, {"error": "exists", "url": self.url(name)})
            self.repos[name] = {
                "private": asked.get("private") or asked.get("visibility") == "private",
                "kind": asked.get("type"),
            }
            return self.said(200, {"url": self.url(name), "name": name, "id": name})
        if self.path == "/api/validate-yaml":
            return self.said(200, {"errors": [], "warnings": []})
        name = "/".join(self.path.split("/")[3:5])
        if "/preupload/" in self.path:
            files = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]]
            return self.said(200, {"files": files})
        if "/commit/" in self.path:
            lines = [json.loads(line) for line in body.splitlines()]
            files = {x["value"]["path"]: base64.b64decode(x["value"]["content"]) for x in lines if x["key"] == "file"}
            self.repos[name] |= {"files": files, "summary": lines[0]["value"]["summary"]}
            return self.said(200, {"success": True, "commitOid": "0" * 40, "commitUrl": self.url(name) + "/commit/" + "0" * 40})
        return self.said(404, {})

    def do_GET(self) -> None:
        name = "/".join(self.path.split("?")[0].split("/")[3:5])
        if name not in self.repos:
            return self.said(404, {})
        return self.said(200, {"id": name, "private": self.repos[name]["private"], "siblings": []})

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/{name}"

    def said(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch):
    """The repositories of a hub on loopback."""
    made: dict[str, dict[str, Any]] = {}

    class Handler(Hub):
        repos = made

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    monkeypatch.setenv("NO_PROXY", "*")
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_is_uploaded_as_one_commit(hub, model, capsys):
    assert main(["push", str(model), "me/tiny", "--private", "--message", "First"]) == 0
    assert "me/tiny: " in capsys.readouterr().out
    found = hub["me/tiny"]
    assert found["private"] is True and found["summary"] == "First"
    assert found["files"] == {f.name: f.read_bytes() for f in model.iterdir()}
    assert main(["push", str(model), "me/tiny", "--private"]) == 0  # again
    assert main(["push", str(model), "me/tiny"]) == 2
    assert "exists and is private, and what is pushed is to be public" in capsys.readouterr().err


def test_a_data_set_goes_to_a_repository_of_data(hub, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}\n')
    assert main(["push", str(tmp_path / "rows.jsonl"), "me/sums"]) == 0
    assert hub["me/sums"]["kind"] == "dataset" and list(hub["me/sums"]["files"]) == ["rows.jsonl"]


def test_an_exported_environment(hub, tmp_path, capsys):
    place = tmp_path / "env"
    assert main(["tasks", "export", "arithmetic", str(place)]) == 0
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert main(["push", str(place), "me/arithmetic"]) == 0, capsys.readouterr().err
    assert "pyproject.toml" in hub["me/arithmetic"]["files"] and not [f for f in hub["me/arithmetic"]["files"] if "pyc" in f]


def test_what_commands_write_into_a_package_stays_here(hub, tmp_path, capsys):
    place = tmp_path / "env"
    assert main(["tasks", "export", "arithmetic", str(place)]) == 0
    for name in ("outputs/evals/results.jsonl", "runs/one/run.toml", "build/lib/x.py", "a.egg-info/PKG-INFO"):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text(f"{Path.home()}/.cache/verifiers/x\n")
    assert main(["push", str(place), "me/arithmetic"]) == 0, capsys.readouterr().err
    left = {name.split("/")[0] for name in hub["me/arithmetic"]["files"]}
    assert "pyproject.toml" in left and not left & {"outputs", "runs", "build", "a.egg-info"}


def test_a_package_of_task_families_is_not_an_environment(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "task", "shop-words"]) == 0
    capsys.readouterr()
    assert main(["push", "shop-words", "me/shop-words", "--dry-run"]) == 1
    told = capsys.readouterr()
    assert "assay tasks export NAME FOLDER" in told.out + told.err


def test_a_dry_run_of_a_folder_without_a_card_exports_it(copy, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (copy / "README.md").unlink()
    assert main(["push", str(copy), "me/tiny", "--dry-run", "--no-check", "--dtype", "bfloat16", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["address"] is None and found["repository"] == "model" and not found["problems"]
    assert {"README.md", "model.safetensors", "config.json", "tokenizer.json"} <= found["files"].keys()
    assert found["files"]["model.safetensors"] < (copy / "model.safetensors").stat().st_size


def test_what_is_missing_or_should_stay_here(copy, hub, capsys):
    (copy / "tokenizer.json").unlink()
    (copy / "model.safetensors").rename(copy / "other.safetensors")
    (copy / ".env").write_text("A=1")
    (copy / "empty.txt").write_text("")
    text = (
        f"see {PLACE}\nhf_" + "a" * 34 + "\nsk-proj-" + "b" * 30 + "\n-----BEGIN RSA PRIVATE KEY-----\nhttps://x.org/tmp/a ok\n"
    )
    (copy / "README.md").write_text(text)
    assert main(["push", str(copy), "me/tiny"]) == 2
    said = capsys.readouterr().err
    for words in (
        "no model.safetensors",
        "no tokenizer.json",
        ".env is a file for secrets",
        "empty.txt is empty",
        f"README.md, line 1: a path of a machine, {PLACE}",
        "line 2: a token of the Hugging Face hub",
        "line 3: a key of an API",
        "line 4: a private key",
    ):
        assert words in said
    assert "line 5" not in said and "aaaa" not in said and not hub
    assert main(["push", str(copy), "me/tiny", "--dry-run"]) == 1
    found = prepare_upload(copy, "me/tiny", allow_paths=True)
    assert not [p for p in found.problems if "line 1" in p] and [p for p in found.problems if "line 2" in p]


def test_shards(copy):
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}))
    assert prepare_upload(copy, "me/tiny").problems == (f"model-2.safetensors is missing, which {index.name} names",)
    index.write_text("{")
    assert prepare_upload(copy, "me/tiny").problems == (f"{index.name} cannot be read",)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("environment", ["pyproject.toml", "no Python file"]), ("dataset", ["no rows"]), ("model", ["config.json"])],
)
def test_a_folder_of_another_kind(tmp_path, kind, said):
    (tmp_path / "a.txt").write_text("a")
    found = "; ".join(prepare_upload(tmp_path, "me/a", kind).problems)
    assert all(words in found for words in said)


def test_names_and_kinds(tmp_path):
    for name in ("tiny", "me/tiny@main", "hub:me/tiny", "a/b/c"):
        with pytest.raises(ConfigError, match="owner/name"):
            prepare_upload(tmp_path, name)
    with pytest.raises(ConfigError, match="does not exist"):
        prepare_upload(tmp_path / "none", "me/tiny")
    with pytest.raises(UnknownNameError, match="model"):
        prepare_upload(tmp_path, "me/tiny", "modle")
    assert "holds no files" in prepare_upload(tmp_path, "me/tiny").problems[0]
    assert main(["push", str(tmp_path), "me/a", "--kind", "dataset", "--adapter"]) == 2


def test_an_exported_folder_is_not_exported_again(model, capsys):
    assert main(["push", str(model), "me/tiny", "--dtype", "bfloat16", "--dry-run"]) == 2
    assert "is an exported model already" in capsys.readouterr().err


def test_no_token_a_wrong_one_and_no_hub(hub, model, monkeypatch):
    upload = prepare_upload(model, "me/tiny")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(HubError, match=r"status 401.*look at the token") as refused:
        push(upload)
    assert "hf_wrong" not in str(refused.value)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(ConfigError, match="hf auth login"):
        push(upload)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_right")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match="could not be reached"):
        push(upload)
    assert not hub


def test_without_its_library(model, monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["push", str(model), "me/tiny"]) == 1
    assert "pip install 'assay-rl[hub]'" in capsys.readouterr().err
