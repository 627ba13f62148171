"""Real vLLM servers on this machine, each in a process group of its own that is ended with the tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from vllm_stand_in import FAIL

from assay.core.manifest import manifest_of
from assay.core.protocols import Request
from assay.core.rollout import Sampling, ids_of
from assay.runtime import VllmSettings

ROOT = Path(__file__).parents[2]
LETTERS = "".join(map(chr, range(32, 127))) + "\n"
CONTEXT = 1024
CHAT = (
    "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}"
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
)
VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
NEEDED = {"VLLM_SERVER_DEV_MODE": "1"}
NCCL = ("--weight-transfer-config", '{"backend": "nccl"}')
PROCESSED = ("--logprobs-mode", "processed_logprobs")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@dataclass
class Server:
    """A server that was started here."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    command: tuple[str, ...]
    variables: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, **more) -> VllmSettings:
        return VllmSettings(url=self.url, swap_seconds=60, request_seconds=120, **more)

    def post(self, path: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        """Past the engine, as somebody else would."""
        return httpx.post(self.url + path, json=body, timeout=60, trust_env=False)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=60, trust_env=False)

    def kill(self) -> None:
        """Ends the whole group at once, as a machine that fails would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> None:
        """Ends the group: asked first, so that shared memory is given back."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def again(self) -> Server:
        """The same command on the same port."""
        return launch(self.command, self.variables, self.port, self.log)


def launch(command: tuple[str, ...], variables: Mapping[str, str], port: int, log: Path) -> Server:
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **VARIABLES, **variables},
            cwd=log.parent,
        )
    server = Server(process, port, log, command, variables)
    for _ in range(1200):
        if process.poll() is not None:
            break
        try:
            if httpx.get(server.url + "/health", timeout=2, trust_env=False).status_code == 200:
                return server
        except httpx.HTTPError:
            time.sleep(0.25)
    server.kill()
    raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-3000:]}")


def arrays_of(model, seed: int = 0, spread: float = 0.3):
    """The model's arrays; with a seed, each with noise of its own, ``spread`` of its size."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, tensor in model.tensors.items():
        array = tensor.numpy().astype(np.float32)
        noise = rng.standard_normal(array.shape).astype(np.float32) * spread * float(np.sqrt(np.square(array).mean()))
        out[name] = array + noise if seed else array.copy()
    return out


def version(model, number: int, seed: int = 0):
    return manifest_of(number, arrays_of(model, seed))


def rows(n: int = 4, length: int = 24, seed: int = 0):
    rng = np.random.default_rng(seed)
    return [ids_of(rng.integers(2, 97, length)) for _ in range(n)]


def request(name: str, prompt, seed: int = 0, first: int = 0, **sampling) -> Request:
    return Request(
        id=name, prompt=ids_of(prompt), seed=seed, first=first, sampling=Sampling(**{"max_new_tokens": 16, **sampling})
    )


def gap(a, b) -> float:
    return max(float(np.abs(x - y).max()) for x, y in zip(a, b, strict=True))


# ---- weights without files -----------------------------------------------------------------------------------------------------


def stood_in(plugin: Path, fails: Path) -> dict[str, str]:
    """Variables of a server that takes weights over gloo, and fails while the file ``fails`` exists."""
    return {**NEEDED, FAIL: str(fails), "PYTHONPATH": f"{plugin}:{ROOT / 'src'}"}


def trained(executable: Path, url: str, folder: Path, fails: Path, *more: str):
    """What `vllm_trainer` did to a server, step by step."""
    here = {**os.environ, **VARIABLES, "PYTHONPATH": f"{ROOT / 'src'}:{Path(__file__).parent}"}
    command = [executable.with_name("python"), Path(__file__).with_name("vllm_trainer.py"), url, folder, fails, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=here)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def of(steps, name: str):
    return [step for step in steps if step["step"] == name]
