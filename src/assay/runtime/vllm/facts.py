"""What a server says of itself, and whether it can serve the model at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from assay.core.columns import Array
from assay.core.errors import ConfigError, EngineError
from assay.runtime.vllm.checkpoint import TensorRows, constants, cut
from assay.runtime.vllm.flags import EXTENSION
from assay.runtime.vllm.server import GENERATE, VllmServer
from assay.runtime.vllm.snapshots import shapes_in
from assay.runtime.vllm.untied import HEAD, embedding_in

__all__ = ["ServerFacts", "Shaped", "inspect"]


class Sized(Protocol):
    """Sizes of a model."""

    @property
    def vocab_size(self) -> int: ...


class Shaped(Protocol):
    """What the engine asks of a model: rows of its head, and tensors with their shapes under Hugging Face names."""

    @property
    def shape(self) -> Sized: ...

    @property
    def tensors(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server said when it was connected to.

    Attributes:
        model: name of the base model in requests.
        root: what the server was started with: a folder, or a name on the hub.
        context: longest prompt plus completion.
        dtype: that it serves.
        rank: highest rank of adapters, 0 without them.
        label: its word for the weights that it served then.
        device: what it computes on.
        workers: its processes; asked for where weights go without files, else 0.
        parts: names of the tensors that it must be sent, and what of the model's own tensors stands under each.
        constants: those of them that no learner publishes: biases that choose experts, scales of layers.
        repacks: it must be told to make its experts' kernels anew before new weights come.
    """

    model: str
    root: str
    context: int
    dtype: str
    rank: int
    label: str
    device: str
    workers: int = 0
    parts: Mapping[str, TensorRows] = field(default_factory=dict[str, TensorRows])
    constants: Mapping[str, Array] = field(default_factory=dict[str, Array])
    repacks: bool = False

    @property
    def folder(self) -> Path | None:
        """The folder that the server was started with, where it is a model folder on this machine too."""
        root = Path(self.root)
        return root if (root / "config.json").is_file() else None


def inspect(server: VllmServer, model: Shaped) -> ServerFacts:
    """Asks a server what it is.

    Raises:
        EngineError: it cannot be reached or does not answer in time.
        ConfigError: it serves another model or vocabulary, or runs without a setting that is needed; says how to start it.
    """
    url = server.settings.url
    listed: Any = server.ask("GET", "/v1/models", seconds=server.settings.connect_seconds)
    cards = cast("list[dict[str, Any]] | None", cast("dict[str, Any]", listed).get("data") if isinstance(listed, dict) else None)
    if cards is None:
        raise ConfigError(f"{url}/v1/models answers {str(cast(Any, listed))[:60]!r}; this is no vLLM server: {server.fix()}")
    base = next((card for card in cards if not card.get("parent")), None)
    if base is None or not base.get("max_model_len"):
        raise ConfigError(f"{url} lists no base model with its context; {server.fix()}")
    server.served = server.settings.model or base["root"]
    said: dict[str, Any] = server.ask("GET", "/server_info?config_format=json")["vllm_config"]
    config: dict[str, Any] = said["model_config"]
    adapters: dict[str, Any] | None = said.get("lora_config")
    transfer: dict[str, Any] = said.get("weight_transfer_config") or {"backend": ""}
    if server.settings.update and (by := transfer["backend"]) != "nccl":
        raise ConfigError(
            f"{url} takes weights {f'by {by!r} or ' if by else ''}as files, and VllmSettings.update=NcclUpdate() sends them over "
            f"NCCL; {server.fix()}"
        )
    if config.get("logprobs_mode") != "processed_logprobs":
        raise ConfigError(
            f"{url} gives log-probabilities of kind {config.get('logprobs_mode')!r}, not of the distribution that it samples "
            f"from; {server.fix()}"
        )
    dtype = str(config["dtype"]).removeprefix("torch.")
    if dtype not in ("float32", "bfloat16"):
        raise ConfigError(f"{url} serves {dtype}; weights travel as float32 or bfloat16: add --dtype bfloat16")
    if server.ask("GET", "/is_paused").get("is_paused"):
        raise EngineError(
            f"{url} is paused: whoever used it ended in the middle of a weight update, or has not ended; wait, or restart it"
        )
    facts = ServerFacts(
        model=base["id"],
        root=base["root"],
        context=int(base["max_model_len"]),
        dtype=dtype,
        rank=int(adapters["max_lora_rank"]) if adapters else 0,
        label=str(server.ask("GET", "/weight_info")["weight_version"]),
        device=str(said["device_config"]["device"]),
        workers=int(server.ask("GET", "/get_world_size")["world_size"]) if server.settings.update else 0,
    )
    parts = cut(model, {name: tuple(map(int, tensor.shape)) for name, tensor in model.tensors.items()})
    server.cpu = facts.device == "cpu"
    server.experts = server.cpu and any(".experts." in name for name in parts)
    if server.experts:
        _check_experts(server, facts, said["parallel_config"]["worker_extension_cls"])
    _check_vocabulary(server, facts, model.shape.vocab_size)
    return replace(facts, parts=_check_shapes(server, facts, parts), constants=constants(model), repacks=server.experts)


def _check_experts(server: VllmServer, facts: ServerFacts, extension: str) -> None:
    """What a server on a CPU cannot do with a mixture of experts; asked before its first request, at which it may end."""
    what = f"{server.settings.url} serves a mixture of experts on the CPU"
    if facts.rank:
        raise ConfigError(
            f"{what} with adapters, for which vLLM has kernels in Triton only: its engine would die at a request; sample "
            f"in process to train an adapter, engine=InProcess(), and to train all weights {server.fix()}"
        )
    if extension != EXTENSION:
        raise ConfigError(
            f"{what}, where vLLM lays experts out for its kernel with the first weights only and would read all later ones in "
            f"the wrong order; in an environment that has assay, {server.fix()}"
        )


def _check_vocabulary(server: VllmServer, facts: ServerFacts, vocabulary: int) -> None:
    """The last id must be known to the server, and the one behind it must not."""
    for token, fits in ((vocabulary - 1, True), (vocabulary, False)):
        body = {"model": facts.model, "token_ids": [token], "sampling_params": {"max_tokens": 1, "detokenize": False}}
        try:
            server.ask("POST", GENERATE, body)
            known = True
        except EngineError as error:
            if "out of vocabulary" not in str(error):
                raise
            known = False
        if known != fits:
            raise ConfigError(
                f"{server.settings.url} serves {facts.root!r}, which {'knows' if known else 'does not know'} token {token}: its "
                f"vocabulary is not the model's {vocabulary}; {server.fix()}"
            )


def _check_shapes(server: VllmServer, facts: ServerFacts, parts: Mapping[str, TensorRows]) -> Mapping[str, TensorRows]:
    """Another model in the server's folder is refused here; told to load other shapes, the server would fail for good.

    Returns:
        ``parts``, and the embedding once more for a server that has a head of its own where the model's is tied.
    """
    there = shapes_in(facts.folder) if facts.folder else {}
    if source := embedding_in(parts):
        if HEAD in there:
            parts = {**parts, HEAD: parts[source]}
        elif facts.device == "cpu":
            raise ConfigError(
                f"{server.settings.url} serves a head that is tied to its embedding on the CPU, where vLLM keeps a packed copy "
                "that it never renews: it would sample with the old head for ever. Start it with a copy of the model that has a "
                "head of its own, made by: python -c \"from assay.runtime import untied_copy; untied_copy('MODEL', 'COPY')\""
            )
    here = {name: rows.shape for name, rows in parts.items()}
    odd = sorted(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
    if there and odd:
        raise ConfigError(
            f"{server.settings.url} serves another model: in {facts.root} tensor {odd[0]!r} has shape {there.get(odd[0])}, here "
            f"{here.get(odd[0])} ({len(odd)} tensors differ); {server.fix()}"
        )
    return parts
