"""Fixtures of real vLLM servers: started once, used by all tests here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from vllm_servers import CHAT, CONTEXT, LETTERS, NCCL, NEEDED, PROCESSED, ROOT, Server, free_port, launch

from assay.runtime import DecoderShape, VllmEngine, char_tokenizer, init_model, save_model, untied_copy


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker("vllm")


@pytest.fixture(scope="session")
def executable() -> Path:
    named = os.environ.get("ASSAY_VLLM")
    path = Path(named) if named else ROOT / ".venv-vllm" / "bin" / "vllm"
    if not path.is_file():
        pytest.skip(f"no vLLM at {path}: 'make vllm' installs it, or ASSAY_VLLM names it")
    return path


@pytest.fixture(scope="session")
def model():
    """Four layers with a tied head, whose answers differ visibly from one set of weights to the next."""
    tokenizer = char_tokenizer(LETTERS)
    shape = DecoderShape(
        vocab_size=tokenizer.size,
        hidden_size=128,
        num_layers=4,
        num_heads=4,
        num_kv_heads=2,
        head_dim=32,
        intermediate_size=384,
        max_positions=CONTEXT,
    )
    return init_model(shape, tokenizer, seed=0, init="fan_in")


@pytest.fixture(scope="session")
def tied(model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("vllm") / "tied"
    save_model(model, folder)
    return folder


@pytest.fixture(scope="session")
def folder(tied) -> Path:
    untied_copy(tied, tied.parent / "model")
    (tied.parent / "model" / "chat_template.jinja").write_text(CHAT)
    return tied.parent / "model"


@pytest.fixture(scope="session")
def start(executable, folder, tmp_path_factory):
    """Starts a server with options and environment variables; all are stopped with the session."""
    started: list[Server] = []

    def start(*options: str, variables: Mapping[str, str] = NEEDED, served: Path = folder, seqs: int = 16) -> Server:
        command = (
            str(executable),
            "serve",
            str(served),
            "--host",
            "127.0.0.1",
            "--enforce-eager",
            "--max-model-len",
            str(CONTEXT),
            "--max-num-seqs",
            str(seqs),
            "--no-enable-chunked-prefill",
            *options,
        )
        log = tmp_path_factory.mktemp("server") / "log"
        started.append(launch(command, variables, free_port(), log))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def server(start) -> Server:
    """fp32, with adapters, templates of requests and weights over NCCL, had it a GPU: what most tests use."""
    variables = {**NEEDED, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
    return start(
        "--dtype",
        "float32",
        *PROCESSED,
        "--enable-scale-out",
        "--enable-lora",
        "--max-lora-rank",
        "8",
        "--trust-request-chat-template",
        *NCCL,
        variables=variables,
    )


@pytest.fixture(scope="session")
def spare(start) -> Server:
    """bf16, with adapters, and answers of the base for whatever name it does not know."""
    variables = {**NEEDED, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "VLLM_SKIP_MODEL_NAME_VALIDATION": "1"}
    return start(
        "--dtype", "bfloat16", *PROCESSED, "--enable-scale-out", "--enable-lora", "--max-lora-rank", "8", variables=variables
    )


@pytest.fixture
def engine(server, model) -> VllmEngine:
    return VllmEngine(server.settings(), model)


@pytest.fixture(scope="session")
def plugin(tmp_path_factory) -> Path:
    """A folder for Python's path from which vLLM loads the stand-in."""
    place = tmp_path_factory.mktemp("plugin")
    shutil.copy(Path(__file__).with_name("vllm_stand_in.py"), place)
    said = place / "stand_in-0.dist-info"
    said.mkdir()
    (said / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 0\n")
    (said / "entry_points.txt").write_text("[vllm.general_plugins]\nstand_in = vllm_stand_in:register\n")
    return place
