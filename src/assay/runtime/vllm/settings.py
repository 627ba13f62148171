"""Where a vLLM server is and how long it may take: plain values, importable without torch or an HTTP client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.core.protocols import Engine
    from assay.runtime.fleet import AnyLearner

__all__ = ["VllmSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """A vLLM server that runs already; ``command`` is how to start one.

    Attributes:
        url: ``http://host:port``.
        folder: where weights are written for the server to read, the two newest versions: a file system that both see, under the
            same path. A temporary folder of this machine when empty.
        model: folder whose config and tokenizer files are put beside written weights; the one that the server was started with
            when empty, if it is a folder here.
        recompute: requests that are kept over a weight update compute their keys and values anew under the new weights, so that
            what they sample next is the new weights' own. Without it they go on at once from the old ones, and what they sample
            is neither's: only ``logp_engine`` tells its probability.
        api_key_env: environment variable that holds the server's key, where it wants one.
        connect_seconds: time to reach the server.
        request_seconds: time that one request may take, waiting in the server's queue included.
        swap_seconds: time that one step of a weight update may take, and one answer to ``abort``.

    Raises:
        ConfigError: a URL that is not http or https, or a time that is not positive.

    >>> VllmSettings(url="http://10.0.0.7:8123").command("models/base")[:62]
    'VLLM_SERVER_DEV_MODE=1 vllm serve models/base --host 10.0.0.7 '
    """

    url: str = "http://127.0.0.1:8000"
    folder: str = ""
    model: str = ""
    recompute: bool = True
    api_key_env: str = ""
    connect_seconds: float = 10.0
    request_seconds: float = 3600.0
    swap_seconds: float = 600.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"VllmSettings.url={self.url!r} is no address of a server; write it as 'http://127.0.0.1:8000'")
        for name in ("connect_seconds", "request_seconds", "swap_seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"VllmSettings.{name}={getattr(self, name)}; use a positive number of seconds")

    def build(self, learner: AnyLearner) -> Engine:
        """An engine on this server for what ``learner`` trains, as `assay.runtime.EngineSpec` says."""
        from assay.runtime.hub_model import hub_of
        from assay.runtime.lora import peft_config
        from assay.runtime.vllm.engine import VllmEngine

        model = learner.model()
        adapter = learner.settings.adapter
        if adapter is None:
            return VllmEngine(self, model)
        config = {"peft_type": "LORA", "bias": "none", **peft_config(adapter, hub_of(model).base().module())}
        return VllmEngine(self, model, config)

    def command(self, model: str = "MODEL", rank: int = 0) -> str:
        """The command line of a server that this engine can use, with LoRA adapters up to ``rank`` where that is not 0."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        variables = "VLLM_SERVER_DEV_MODE=1 " + ("VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 " if rank else "")
        adapters = f" --enable-lora --max-lora-rank {rank}" if rank else ""
        return (
            f"{variables}vllm serve {model} --host {parts.hostname} --port {port} --enable-scale-out "
            f"--logprobs-mode processed_logprobs{adapters}"
        )
