"""A vLLM server of one's own: started from a model folder on a free port, stopped behind the block."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.errors import EngineError
from assay.runtime.vllm.flags import WHOLE
from assay.runtime.vllm.settings import VllmSettings
from assay.selftest.selftest_part import NotAvailable

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["vllm_executable", "serve_vllm", "served_model", "vllm_version"]

VARIABLE = "ASSAY_VLLM"
SECONDS = 300.0
"""Time that a server may take to start: on a busy machine it takes a minute."""
_DEFAULTS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


def vllm_executable() -> Path:
    """The ``vllm`` command: what the environment variable ASSAY_VLLM names, else the first on the path.

    Raises:
        NotAvailable: there is none.
    """
    named = os.environ.get(VARIABLE)
    found = named if named and Path(named).is_file() else None if named else shutil.which("vllm")
    if found is None:
        where = f"{VARIABLE}={named} is no file" if named else f"no vllm on the path, and {VARIABLE} names none"
        raise NotAvailable(f"{where}; install vLLM, or on a machine without a GPU: make vllm")
    return Path(found)


@contextmanager
def served_model(model: AnyModel, folder: Path, context: int, say: Callable[[str], None]) -> Generator[VllmSettings]:
    """A server of a model that is written below ``folder`` first; as `served`."""
    from assay.runtime.models.hf import save_model

    vllm_executable()  # before anything is written
    save_model(model, folder / "served")
    with serve_vllm(folder / "served", folder / "vllm.log", context, say) as (settings, _):
        yield settings


@contextmanager
def serve_vllm(
    model: Path, log: Path, context: int, say: Callable[[str], None], port: int = 0, dtype: str = "float32"
) -> Generator[tuple[VllmSettings, Callable[[], float]]]:
    """A server of a model folder on this machine's own address, for one user.

    Args:
        model: folder in Hugging Face format.
        log: what the server says.
        context: longest prompt plus answer.
        say: takes a line about what goes on.
        port: a free one when 0.
        dtype: what it computes in, ``float32`` or ``bfloat16``.

    Yields:
        Settings of an engine on it, and a function that tells the CPU seconds which the server's processes have taken.

    Raises:
        NotAvailable: there is no vLLM here.
        EngineError: it did not start; with the end of its log.
    """
    command = vllm_executable()
    settings = VllmSettings(url=f"http://127.0.0.1:{port or _free_port()}", swap_seconds=120.0, request_seconds=1200.0)
    options = (
        "--dtype",
        dtype,
        "--enforce-eager",
        "--max-model-len",
        str(context),
        "--max-num-seqs",
        "64",
        WHOLE,
    )
    words = settings.command(str(model)).split()
    words = [str(command), *words[words.index("serve") :], *options]
    say("starting a vLLM server")
    with log.open("ab") as out:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=log.parent,
            env={**_DEFAULTS, **os.environ, "VLLM_SERVER_DEV_MODE": "1"},
        )
    try:
        _wait(process, settings, log)
        yield settings, lambda: _cpu_seconds(process.pid)
    finally:
        _stop(process)


def vllm_version(settings: VllmSettings) -> str:
    """Version of the vLLM that runs a server, as it says itself; its command may be of another environment.

    Raises:
        EngineError: it says none.
    """
    import httpx

    try:
        return str(httpx.get(f"{settings.url}/version", timeout=30.0, trust_env=False).json()["version"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise EngineError(f"{settings.url} does not tell its version ({error}); is it a vLLM server?") from error


def _wait(process: subprocess.Popen[bytes], settings: VllmSettings, log: Path) -> None:
    import httpx

    end = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            if httpx.get(f"{settings.url}/health", timeout=2.0, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.25)
    said = log.read_text(encoding="utf-8", errors="replace")[-1500:]
    raise EngineError(f"the vLLM server did not start within {SECONDS:g} s; it said last:\n{said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the server's whole group: asked first, so that shared memory is given back."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait(30.0)


def _cpu_seconds(group: int) -> float:
    """Of all processes of a process group that are alive."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
