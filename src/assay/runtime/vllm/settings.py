"""Where a vLLM server is and how long it may take: plain values, importable without torch or an HTTP client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from assay.core.errors import ConfigError
from assay.runtime.vllm.flags import EXTENSION

if TYPE_CHECKING:
    from assay.core.protocols import Engine
    from assay.runtime.distributed.mesh import AnyLearner
    from assay.runtime.models.any_model import AnyModel

__all__ = ["NcclUpdate", "VllmSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclUpdate:
    """New weights go to the server's GPUs over NCCL instead of through files. ``unverified``: no GPU has run it.

    vLLM's own library sends them, so it must be importable where the learner runs, on a GPU that is not one of the server's. The
    server keeps its control requests; what travels between the GPUs is neither encrypted nor authenticated.

    Attributes:
        address: of this machine, as the server reaches it; when empty, the one from which the server is reached.
        port: where the two first meet; a free one when 0.
        bucket_bytes: tensors travel packed into buckets of about this size, which a GPU needs beside its weights for each of
            ``buckets``.
        buckets: how many are filled and sent at once.
        on_failure: ``stop``: an `EngineError`, with the version before served again. ``files``: a warning, and this version and
            all later ones go as files.

    Raises:
        ConfigError: a number out of range, or another word for ``on_failure``.

    >>> NcclUpdate(address="10.0.0.5", port=29600).on_failure
    'stop'
    """

    address: str = ""
    port: int = 0
    bucket_bytes: int = 1 << 28
    buckets: int = 2
    on_failure: Literal["stop", "files"] = "stop"

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise ConfigError(f"NcclUpdate.port={self.port}; use a port of this machine, or 0 for a free one")
        for name in ("bucket_bytes", "buckets"):
            if getattr(self, name) < 1:
                raise ConfigError(f"NcclUpdate.{name}={getattr(self, name)}; use 1 or more")
        if self.on_failure not in ("stop", "files"):
            raise ConfigError(f"NcclUpdate.on_failure={self.on_failure!r}; use 'stop' or 'files'")


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """A vLLM server that runs already; ``command`` is how to start one.

    Attributes:
        url: ``http://host:port``.
        folder: where weights are written for the server to read, the two newest versions: a file system that both see, under the
            same path. A temporary folder of this machine when empty.
        model: folder whose config and tokenizer files are put beside written weights; the one that the server was started with
            when empty, if it is a folder here.
        update: None: new weights go as files. `NcclUpdate`: from GPU to GPU. Adapters always go as files, so that a run which
            trains one is refused with the latter.
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
    update: NcclUpdate | None = None
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

    def anywhere(self) -> VllmSettings:
        """As `assay.runtime.engine.settings.Movable` says.

        >>> VllmSettings(url="http://10.0.0.7:1", swap_seconds=5.0).anywhere() == VllmSettings(folder="/w").anywhere()
        True
        """
        return VllmSettings(recompute=self.recompute)

    def at(self, url: str) -> VllmSettings:
        """As `assay.runtime.engine.settings.ServerEngineSpec.at`."""
        return replace(self, url=url or self.url)

    def in_folder(self, folder: str) -> VllmSettings:
        """As `assay.runtime.engine.settings.ServerEngineSpec.in_folder`.

        >>> VllmSettings().in_folder("/w").folder, VllmSettings(folder="/mine").in_folder("/w").folder
        ('/w', '/mine')
        """
        return self if self.folder else replace(self, folder=folder)

    def load(self, model: AnyModel, device: str = "cpu") -> Engine:
        """As `assay.runtime.engine.settings.ModelEngineSpec.load`: an engine on this server for a model that another process
        trains; the server has a device of its own.
        """
        from assay.runtime.vllm.engine import VllmEngine

        return VllmEngine(self, model)

    def build(self, learner: AnyLearner) -> Engine:
        """An engine on this server for what ``learner`` trains, as `assay.runtime.EngineSpec` says."""
        from assay.runtime.models.hub_model import hub_of
        from assay.runtime.models.lora import peft_config
        from assay.runtime.vllm.engine import VllmEngine

        model = learner.model()
        adapter = learner.settings.adapter
        if adapter is None:
            return VllmEngine(self, model)
        config = {"peft_type": "LORA", "bias": "none", **peft_config(adapter, hub_of(model).base().module())}
        return VllmEngine(self, model, config)

    def command(self, model: str = "MODEL", rank: int = 0, experts: bool = False) -> str:
        """The command line of a server that this engine can use, with LoRA adapters up to ``rank`` where that is not 0; with
        what a CPU needs to be told new ``experts``.
        """
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        variables = "VLLM_SERVER_DEV_MODE=1 " + ("VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 " if rank else "")
        adapters = f" --enable-lora --max-lora-rank {rank}" if rank else ""
        extension = f" --worker-extension-cls {EXTENSION}" if experts else ""
        transfer = """ --weight-transfer-config '{"backend": "nccl"}'""" if self.update else ""
        return (
            f"{variables}vllm serve {model} --host {parts.hostname} --port {port} --enable-scale-out "
            f"--logprobs-mode processed_logprobs{adapters}{transfer}{extension}"
        )
