"""What users get wrong, from the command line: one line with the value, the place and a fix; nothing is left or lost."""

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hub_cases import hub_model

from assay.runtime import Lora, char_tokenizer, save_model

RECIPE = '''
from assay.core.rollout import Sampling
from assay.tasks import Rows
from assay_tasks import SortDigits
from assay.train import Evaluation, Folder, Reinforce, Run

def sort():
    """One step on a model folder."""
    return Run(
        name="sort", model=Folder("m"), tasks=SortDigits(levels=(1,)),
        stages=(Reinforce(steps=1, groups=2, group_size=2),),
        sampling=Sampling(max_new_tokens=4), evaluation=Evaluation(every=0, final_per_level=1),
    )

def asked(prompt, system=""):
    turns = [{"role": "system", "content": system}] if system else []
    rows = [{"messages": [*turns, {"role": "user", "content": prompt + str(i)}], "answer": "1"} for i in range(20)]
    from dataclasses import replace
    return replace(sort(), tasks=Rows(rows, test_share=0.4))

def talk():
    """Tasks with a system turn."""
    return asked("Sort ", "Be brief.")

def long():
    """Prompts that no context holds."""
    return asked("Sort " * 100)
'''


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Mapping[str, Path]:
    """Folders that nothing is wrong with, by family: ``llama`` runs on assay's own decoder, ``phi`` on transformers."""
    place = tmp_path_factory.mktemp("whole")
    for family in ("llama", "phi"):
        save_model(hub_model(family), place / family)
    return {family: place / family for family in ("llama", "phi")}


@pytest.fixture
def here(assay, tmp_path, monkeypatch):
    """An empty folder with the recipes, without a hub."""
    (tmp_path / "mine.py").write_text(RECIPE)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    return assay


def refused(here, folder: Path, words: str, *told: str, code: int = 2) -> None:
    """The command fails in one line that says ``told``; what the user has stays, and where a run was to be is free again."""
    before = contents(folder)
    got = here(*words.split())
    assert got.code == code, got
    lines = got.err.splitlines()
    plan = ("sort: 1 steps in r", "model m: ", "trains ", "2 prompts x 2 rollouts", "evaluates on ")
    lines = [line for line in lines if not line.startswith(plan)]
    assert len(lines) == 1 and lines[0].startswith("assay: ") and "Traceback" not in got.err, got.err
    for part in told:
        assert part in lines[0], lines[0]
    assert contents(folder) == before
    assert not Path("r").exists() or {p.name for p in Path("r").iterdir()} <= {".lock"}


def contents(folder: Path) -> dict[str, str]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts and p.name != ".lock")
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def edit(path: Path, **changes: Any) -> None:
    found = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in (found | changes).items() if v is not None}))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


# ---- a folder that is wrong -----------------------------------------------------------------------------------------------


def other_tokenizer(m: Path) -> None:
    """Of a model with more words."""
    char_tokenizer("".join(map(chr, range(32, 300)))).save(m)


def no_end(m: Path) -> None:
    """The end token has an id that the tokenizer does not have."""
    edit(m / "tokenizer_config.json", eos_token=None)
    edit(m / "config.json", eos_token_id=9999)


def unknown_end(m: Path) -> None:
    edit(m / "tokenizer_config.json", eos_token="<|end|>")


def no_tokenizer(m: Path) -> None:
    (m / "tokenizer.json").unlink()


def half_tokenizer(m: Path) -> None:
    cut(m / "tokenizer.json")


def half_weights(m: Path) -> None:
    cut(m / "model.safetensors")


def no_header(m: Path) -> None:
    (m / "model.safetensors").write_bytes(b"\x00" * 4)


def no_weights(m: Path) -> None:
    (m / "model.safetensors").unlink()


def shards(m: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(m / "model.safetensors")
    names = sorted(tensors)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, of in parts.items():
        save_file({n: tensors[n] for n in of}, m / file, metadata={"format": "pt"})
    table = {n: file for file, of in parts.items() for n in of}
    (m / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))
    (m / "model.safetensors").unlink()


def no_shard(m: Path) -> None:
    shards(m)
    (m / "model-2.safetensors").unlink()


def no_index(m: Path) -> None:
    shards(m)
    (m / "model.safetensors.index.json").unlink()


def half_index(m: Path) -> None:
    shards(m)
    cut(m / "model.safetensors.index.json")


def odd_index(m: Path) -> None:
    shards(m)
    (m / "model.safetensors.index.json").write_text('{"metadata": {}}')


def half_config(m: Path) -> None:
    cut(m / "config.json")


def list_config(m: Path) -> None:
    (m / "config.json").write_text("[]")


def bare_config(m: Path) -> None:
    (m / "config.json").write_text("{}")


def odd_config(m: Path) -> None:
    edit(m / "config.json", num_hidden_layers="two")


def wider_config(m: Path) -> None:
    edit(m / "config.json", intermediate_size=123)


def other_base(m: Path) -> None:
    """An adapter that was trained beside other weights."""
    save_model(hub_model("phi", seed=1).with_adapter(Lora(rank=2)), m.with_name("a"))
    shutil.copytree(m.with_name("a") / "adapter", m / "adapter")
    shutil.rmtree(m.with_name("a"))


BOTH, HUB, OWN = ("llama", "phi"), ("phi",), ("llama",)
FOLDERS: Mapping[Callable[[Path], None], tuple[tuple[str, ...], tuple[str, ...]]] = {
    other_tokenizer: (BOTH, ("m/tokenizer.json has 270 ids, but the weights embed 112", "copy the one that came with")),
    no_end: (BOTH, ("m names 9999 as the id that ends an answer", "m/tokenizer.json has ids 0 to 97")),
    unknown_end: (BOTH, ("m", "eos_token")),
    no_tokenizer: (BOTH, ("m has no tokenizer.json", "save")),
    half_tokenizer: (BOTH, ("m/tokenizer.json", "copy it again")),
    half_weights: (BOTH, ("m", "copy it again from its source")),
    no_header: (BOTH, ("m", "copy it again from its source")),
    no_weights: (BOTH, ("m", "safetensors")),
    no_shard: (BOTH, ("m", "model-2.safetensors")),
    no_index: (BOTH, ("m", "model.safetensors")),
    half_index: (BOTH, ("m/model.safetensors.index.json", "copy it again")),
    odd_index: (BOTH, ("m/model.safetensors.index.json", "weight_map")),
    half_config: (BOTH, ("m/config.json", "copy it again")),
    list_config: (BOTH, ("m/config.json holds a list, not an object", "copy it again")),
    bare_config: (BOTH, ("m/config.json",)),
    odd_config: (BOTH, ("m", "config.json", "num_hidden_layers")),
    wider_config: (BOTH, ("m",)),
    other_base: (HUB, ("m/adapter", "another base", "give the one that it belongs to")),
}
COMMANDS = ("train mine.py:sort --folder r --plain", "sample m S21>", "eval m --tasks sort --per-level 1 -n 1")


@pytest.mark.slow
@pytest.mark.parametrize("wrong", FOLDERS, ids=lambda f: f.__name__)
def test_a_folder_that_is_wrong(wrong, whole, here, tmp_path):
    """All commands of a model of transformers, and training of assay's own: what reads a folder is one function."""
    families, told = FOLDERS[wrong]
    for family in families:
        shutil.copytree(whole[family], tmp_path / "m")
        wrong(tmp_path / "m")
        for words in COMMANDS if family in HUB else COMMANDS[:1]:
            refused(here, tmp_path, words, *told)
        shutil.rmtree(tmp_path / "m")


# ---- runs that do not fit their model ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("train mine.py:talk --folder r", ("has no chat template", "Chat(template='chatml')")),
        ("train mine.py:sort --folder r --model.chat.kind Chat --model.chat.template chatml", ("<|im_end|>", "'dialogue'")),
        ("train mine.py:sort --folder r --model.chat.kind Chat --model.chat.template chatmel", ("did you mean 'chatml'",)),
        ("train mine.py:long --folder r", ("tokens", "context")),
        (f"sample m {'1' * 200}", ("the prompt has 200 tokens, the model's context 160", "shorten it")),
        ("train mine.py:sort --folder r --sampling.max-new-tokens 160", ("max_new_tokens=160", "context of 160")),
        ("eval m --tasks sort --max-new-tokens 500", ("500", "160")),
        (
            "train mine.py:sort --folder r --model.path someone/gone",
            ("model someone/gone: it is not in", "hf download someone/gone"),
        ),
        ("sample someone/gone S1>", ("cannot be reached", "set HF_HOME")),
        ("eval someone/gone --tasks sort", ("give a local folder instead",)),
        (
            "train mine.py:sort --folder r --engine.kind Native",
            ("Run.engine=Native() cannot serve PhiForCausalLM; use InProcess()",),
        ),
    ],
)
def test_a_run_that_does_not_fit_its_model(words, told, whole, here, tmp_path):
    shutil.copytree(whole["phi"], tmp_path / "m")
    if "talk" in words or "chat" in words:  # as transformers saves a tokenizer that has none
        edit(tmp_path / "m" / "tokenizer_config.json", assay_template=None)
    refused(here, tmp_path, words, *told)


# ---- engines that do not answer, or answer something else ----------------------------------------------------------------------


@contextmanager
def server(answer: Callable[[str, Any], tuple[int, Any] | None]):
    """An HTTP server; ``None`` leaves the question unanswered until the end."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            found = answer(self.path, json.loads(self.rfile.read(length)) if length else None)
            if found is None:
                over.wait(20)
                return
            status, body = found
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{made.server_port}"
    finally:
        over.set()
        made.shutdown()
        made.server_close()


def vllm(vocabulary: int) -> Callable[[str, Any], tuple[int, Any]]:
    """The questions that a vLLM server is asked at first."""
    config = {"logprobs_mode": "processed_logprobs", "dtype": "torch.float32"}

    def answer(path: str, body: Any) -> tuple[int, Any]:
        if path == "/v1/models":
            return 200, {"data": [{"id": "m", "root": "m", "max_model_len": 160}]}
        if path.startswith("/server_info"):
            return 200, {"vllm_config": {"model_config": config, "device_config": {"device": "cpu"}}}
        if path == "/is_paused":
            return 200, {"is_paused": False}
        if path == "/weight_info":
            return 200, {"weight_version": "default"}
        token = body["token_ids"][0]
        text = f"Token id {token} is out of vocabulary"
        return (400, {"error": {"message": text}}) if token >= vocabulary else (200, {"choices": []})

    return answer


ENGINES: Mapping[str, tuple[Any, int, tuple[str, ...]]] = {
    "silent": (lambda path, body: None, 1, ("/v1/models: no answer within 1 s", "VllmSettings.connect_seconds")),
    "a web page": (lambda path, body: (200, "<html>"), 2, ("/v1/models answers '<html>'", "no vLLM server", "vllm serve")),
    "an old server": (lambda path, body: (404, "Not Found"), 2, ("status 404", "no vLLM server of version", "vllm serve")),
    "a smaller vocabulary": (vllm(100), 2, ("does not know token 111: its vocabulary is not the model's 112",)),
    "a larger vocabulary": (vllm(500), 2, ("knows token 112: its vocabulary is not the model's 112",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_that_is_not_the_models(kind, whole, here, tmp_path):
    shutil.copytree(whole["llama"], tmp_path / "m")
    answer, code, told = ENGINES[kind]
    with server(answer) as url:
        words = f"{COMMANDS[0]} --no-report --engine.kind VllmSettings --engine.url {url} --engine.connect-seconds 1"
        refused(here, tmp_path, words, *told, code=code)


@pytest.mark.slow
def test_an_engine_that_is_not_there(whole, here, tmp_path):
    shutil.copytree(whole["llama"], tmp_path / "m")
    words = f"{COMMANDS[0]} --no-report --engine.kind VllmSettings --engine.url http://127.0.0.1:9"
    refused(here, tmp_path, words, "http://127.0.0.1:9/v1/models: no server can be reached there", "vllm serve MODEL", code=1)
    assert here(*COMMANDS[0].split()).code == 0, "the folder is free for a run that can begin"


@pytest.mark.slow
def test_an_answer_that_nothing_is_wrong_with(whole, here, tmp_path):
    """The other side of the table: the same commands work on whole folders."""
    for family in BOTH:
        shutil.copytree(whole[family], tmp_path / "m")
        for words in COMMANDS:
            got = here(*words.replace("--folder r", f"--no-report --folder r-{family}").split())
            assert got.code == 0, got.err
        shutil.rmtree(tmp_path / "m")
    assert replace(hub_model("phi")).shape.vocab_size == 112
