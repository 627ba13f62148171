"""Requests to a vLLM server, with a typed error for each way in which it may not answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from assay.core.errors import AssayError, ConfigError, EngineError, MissingExtraError
from assay.runtime.vllm.flags import WHOLE

try:
    import httpx
except ImportError:  # pragma: no cover - the tests have it
    raise MissingExtraError("httpx", "vllm") from None

if TYPE_CHECKING:
    from assay.runtime.vllm.settings import VllmSettings

__all__ = ["GENERATE", "VllmServer"]

GENERATE = "/inference/v1/generate"
_ADAPTERS = ("/v1/load_lora_adapter", "/v1/unload_lora_adapter")
_SHOWN = 600  # characters of the server's own words in an error


class VllmServer:
    """One server's address, clients for it, and what its refusals mean.

    Args:
        settings: address and times.
        transport: answers in place of the network, for tests.

    Attributes:
        served: what it serves, as command lines name it.
        cpu: it computes on a CPU.
        experts: a mixture of experts, on a CPU.
    """

    def __init__(self, settings: VllmSettings, transport: httpx.MockTransport | None = None) -> None:
        self.settings, self._transport = settings, transport
        self.served = settings.model or "MODEL"
        self.cpu = self.experts = False

    # ---- clients ----------------------------------------------------------------------------------------------------

    def client(self) -> httpx.AsyncClient:
        """A client of the running event loop: as many connections as there are requests."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=2.0)  # vLLM closes after 5 s
        return httpx.AsyncClient(
            base_url=self.settings.url, headers=self._headers(), limits=limits, trust_env=False, transport=self._transport
        )

    def _headers(self) -> dict[str, str]:
        name = self.settings.api_key_env
        if not name:
            return {}
        if not (key := os.environ.get(name)):
            raise ConfigError(f"VllmSettings.api_key_env={name!r}: that environment variable is not set; put the key into it")
        return {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, seconds: float | None = None) -> Any:
        """The JSON that the server answers, waiting for it without an event loop; raises like `send`."""
        seconds = self.settings.swap_seconds if seconds is None else seconds
        with httpx.Client(
            base_url=self.settings.url, headers=self._headers(), trust_env=False, transport=self._transport
        ) as client:
            try:
                answer = client.request(method, path, json=body, timeout=self._timeout(seconds))
            except httpx.HTTPError as error:
                raise self.silence(error, method, path, seconds) from error
        return self._read(answer, method, path)

    async def send(
        self, client: httpx.AsyncClient, path: str, body: Mapping[str, Any] | None = None, *, seconds: float, method: str = "POST"
    ) -> Any:
        """The JSON that the server answers, or its text.

        Raises:
            EngineError: it cannot be reached, takes longer than ``seconds``, goes away or fails.
            ConfigError: it runs without something that this needs; the message has the command line.
        """
        # control requests on connections of their own: a failing server closes the one that it answers on
        headers = {} if path == GENERATE else {"Connection": "close"}
        try:
            answer = await client.request(method, path, json=body, timeout=self._timeout(seconds), headers=headers)
        except httpx.HTTPError as error:
            raise self.silence(error, method, path, seconds) from error
        return self._read(answer, method, path)

    def _timeout(self, seconds: float) -> httpx.Timeout:
        return httpx.Timeout(seconds, connect=min(seconds, self.settings.connect_seconds))

    # ---- errors -----------------------------------------------------------------------------------------------------

    def fix(self, rank: int = 0) -> str:
        """How to start the server right, as the end of an error message."""
        more = f" {WHOLE}" if self.cpu else ""
        return f"start it with: {self.settings.command(self.served, rank, self.experts)}{more}"

    def silence(self, error: httpx.HTTPError, method: str, path: str, seconds: float) -> EngineError:
        """No answer came: why, and what to do."""
        asked = f"{method} {self.settings.url}{path}"
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return EngineError(f"{asked}: no server can be reached there ({said}); {self.fix()}")
        if isinstance(error, httpx.TimeoutException):
            name = {GENERATE: "request_seconds", "/v1/models": "connect_seconds"}.get(path, "swap_seconds")
            return EngineError(f"{asked}: no answer within {seconds:g} s; look at the server's log, or raise VllmSettings.{name}")
        return EngineError(
            f"{asked}: the server went away before it answered ({said}): it was stopped, killed or failed; {self.fix()}, "
            "and swap weights in again"
        )

    def _read(self, answer: httpx.Response, method: str, path: str) -> Any:
        if answer.status_code != 200:
            raise self.refusal(answer.status_code, answer.text, method, path)
        try:
            return answer.json()
        except ValueError:
            return answer.text

    def refusal(self, status: int, text: str, method: str, path: str) -> AssayError:
        """What a status other than 200 means, with the server's own words."""
        said = f"{method} {self.settings.url}{path} was refused with status {status}: {words(text)[:_SHOWN]!r}"
        if status in (401, 403) and "scale-out" not in text:
            return ConfigError(f"{said}; the server wants a key: name the variable that holds it in VllmSettings.api_key_env")
        if status == 403:
            return ConfigError(f"{said}; it serves no tokens without --enable-scale-out: {self.fix()}")
        if status == 404 and path in _ADAPTERS and "NotFoundError" not in text:
            return ConfigError(f"{said}; it takes no adapters while it runs: {self.fix(rank=16)}")
        if status == 404 and path.partition("?")[0] in (GENERATE, "/v1/models") and "NotFoundError" not in text:
            return ConfigError(f"{said}; this is no vLLM server of version 0.32 or later: {self.fix()}")
        if status == 404 and "NotFoundError" not in text:
            return ConfigError(f"{said}; its weights can be changed in development mode only: {self.fix()}")
        if "Cannot access accelerator device" in text:
            return ConfigError(
                f"{said}; it has no GPU, and NCCL knows GPUs only: take VllmSettings.update out, so that new weights go as files"
            )
        if "Out of range float values" in text:
            return EngineError(f"{said}; its log-probabilities are not finite: look for NaN or infinite weights")
        if "EngineDeadError" in text or "EngineCore" in text:
            return EngineError(f"{said}; its engine has died, the log says why: {self.fix()}, and swap weights in again")
        return EngineError(f"{said}; the server's log says more")


def words(text: str) -> str:
    """The message of vLLM's or FastAPI's error body; the text itself where it is neither.

    >>> words('{"error": {"message": "no", "code": 400}}'), words('{"detail": "Not Found"}'), words("oh")
    ('no', 'Not Found', 'oh')
    """
    import json

    try:
        body: Any = json.loads(text)
    except ValueError:
        return text
    if not isinstance(body, dict):
        return text
    found = cast("dict[str, Any]", body)
    error = found.get("error", found.get("detail"))
    message: Any = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
    return str(message) if message else text
