"""Asking a reward service, from any trainer: needs nothing but the standard library."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.core.errors import AssayError, ConfigError, DataError

__all__ = ["RewardClient", "ServiceError", "TrlClient", "VerlClient"]


class ServiceError(AssayError, RuntimeError):
    """The service could not be asked, or refused; no answer was judged, and none scores 0 for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardClient:
    """Asks an ``assay serve verifier``.

    Attributes:
        url: ``http://host:port``.
        token: what the service asks for.
        timeout: seconds for one answer of the service.
        patience: seconds over which a busy or absent service is asked again before it is an error.
        batch: rows sent in one request.

    Raises:
        ConfigError: a URL that is not http or https, or a number that is not positive.
    """

    url: str
    token: str = ""
    timeout: float = 600.0
    patience: float = 60.0
    batch: int = 1024

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"RewardClient.url={self.url!r}; give http://HOST:PORT")
        if not self.timeout > 0 or self.patience < 0 or self.batch < 1:
            raise ConfigError("RewardClient: timeout must be above 0 s, patience at least 0 s, batch at least 1")

    def score(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """A verdict per row, in order; `assay.verify.cases` has the form of both.

        Raises:
            DataError: the service could not read a row.
            ServiceError: it could not be reached, went on being busy, or refused.
        """
        out: list[dict[str, Any]] = []
        for start in range(0, len(rows), self.batch):
            part = [dict(row) for row in rows[start : start + self.batch]]
            results = self._ask("/score", {"items": part})["results"]
            if len(results) != len(part):
                raise ServiceError(f"{self.url} gave {len(results)} verdicts for {len(part)} answers")
            out += results
        return out

    def health(self) -> dict[str, Any]:
        """How the service does.

        Raises:
            ServiceError: as `score`.
        """
        return self._ask("/health", None)

    def _ask(self, path: str, payload: Any) -> dict[str, Any]:
        until, pause = time.monotonic() + self.patience, 0.1
        while True:
            try:
                return self._once(path, payload)
            except _Later as later:
                if time.monotonic() + pause > until:
                    raise ServiceError(f"{self.url}{path}: {later}") from None
                time.sleep(pause)
                pause = min(5.0, 2 * pause)

    def _once(self, path: str, payload: Any) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        data = None if payload is None else json.dumps(payload).encode()
        asked = urllib.request.Request(self.url.rstrip("/") + path, data, headers)
        try:
            with urllib.request.urlopen(asked, timeout=self.timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = _error_text(error)
            if error.code in (429, 502, 503, 504):
                raise _Later(said) from None
            if error.code in (400, 413):
                raise DataError(f"{self.url}{path}: {said}") from None
            raise ServiceError(f"{self.url}{path}: status {error.code}: {said}") from None
        except TimeoutError:
            raise ServiceError(f"{self.url}{path}: no answer within {self.timeout:g} s") from None
        except (OSError, ValueError) as error:  # refused, reset, or cut off in the middle
            raise _Later(str(getattr(error, "reason", error))) from None


class _Later(Exception):
    """Worth asking again."""


def _error_text(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrlClient:
    """A service as TRL's ``reward_func(prompts, completions, **columns)``; None for an answer without a verdict.

    Attributes:
        client: whom to ask.
        gold: the dataset's column with the gold.
    """

    client: RewardClient
    gold: str = "answer"

    @property
    def __name__(self) -> str:
        """What TRL calls the reward in its logs."""
        return "assay_service"

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """Judge a batch: texts, or conversations of which the last message is judged.

        Raises:
            DataError: there is no such column.
            ServiceError: no verdicts.
        """
        if self.gold not in columns:
            raise DataError(f"no column {self.gold!r} with the gold among {sorted(columns)}; name it as TrlClient(gold=...)")
        rows = [
            {"gold": gold, "answer": _text(completion), "prompt": _text(prompt)}
            for prompt, completion, gold in zip(prompts, completions, columns[self.gold], strict=True)
        ]
        return [verdict["value"] for verdict in self.client.score(rows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerlClient:
    """A service as verl's ``compute_score(data_source, solution_str, ground_truth, extra_info)``.

    Attributes:
        client: whom to ask.
        on_fault: what stands for an answer without a verdict, since verl has no word for it; None raises.
    """

    client: RewardClient
    on_fault: float | None = None

    @property
    def __name__(self) -> str:
        """What verl calls the reward."""
        return "assay_service"

    def __call__(
        self, data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **more: Any
    ) -> float | dict[str, float]:
        """Judge one rollout; with ``on_fault``, a dict whose ``fault`` is 1 where it stands in.

        Raises:
            ServiceError: no verdict.
        """
        (verdict,) = self.client.score([{"gold": ground_truth, "answer": solution_str}])
        value = verdict["value"]
        if self.on_fault is None:
            if value is None:
                raise ServiceError(f"no verdict ({verdict['fault']} fault), and a fault is not a 0: {verdict.get('error')}")
            return float(value)
        score = self.on_fault if value is None else float(value)
        return {"score": score, "acc": score, "fault": float(value is None)}


def _text(said: Any) -> str:
    """Text, or the last message of a conversation."""
    return said if isinstance(said, str) else str(said[-1]["content"])
