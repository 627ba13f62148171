"""A model behind a server as a judge, as settings: a plain value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.canon import digest
from assay.core.errors import ConfigError
from assay.core.task import Message

__all__ = ["Judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A judge behind a server of OpenAI's protocol, as settings.

    Attributes:
        name: by which scorers ask for it.
        url: of the server, up to and with ``/v1``.
        model: name on the server.
        api_key_env: environment variable that holds the key; none is sent when empty.
        temperature: of its answers; 0 for the most likely one.
        max_tokens: most tokens in an answer.
        seed: sent with each request; the ``n``-th answer to a question has ``seed + n``, one that is asked for again another.
        concurrency: most requests at once.
        seconds: deadline of one question, all attempts included.
        request_seconds: deadline of one attempt; a server that hangs is asked again after it.
        attempts: most times that a request is sent.
        pause: seconds before the second attempt, twice as many before each next one.

    Raises:
        ConfigError: a name, temperature or number that cannot be.

    >>> Judge(name="critic", url="http://127.0.0.1:8000/v1", model="small-judge").temperature
    0.0
    """

    name: str = "judge"
    url: str = "http://127.0.0.1:8000/v1"
    model: str = "judge"
    api_key_env: str = ""
    temperature: float = 0.0
    max_tokens: int = 512
    seed: int = 0
    concurrency: int = 16
    seconds: float = 120.0
    request_seconds: float = 30.0
    attempts: int = 6
    pause: float = 1.0

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name.startswith("."):
            raise ConfigError(f"Judge.name={self.name!r} names a file of the run folder; use a word without '/'")
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"Judge.url={self.url!r} is no address; write it as 'http://127.0.0.1:8000/v1'")
        if self.temperature < 0 or self.max_tokens < 1 or self.concurrency < 1 or self.attempts < 1:
            raise ConfigError(
                f"Judge({self.name!r}): temperature={self.temperature}, max_tokens={self.max_tokens}, concurrency="
                f"{self.concurrency}, attempts={self.attempts}; use no negative temperature, and at least 1 of each other"
            )
        if not self.seconds > 0 or not self.request_seconds > 0 or not self.pause >= 0:
            raise ConfigError(
                f"Judge({self.name!r}): seconds={self.seconds}, request_seconds={self.request_seconds}, pause={self.pause}; use "
                "positive deadlines and no negative pause"
            )

    def digest(self, messages: Sequence[Message], sample: int = 0) -> str:
        """Names a question to this judge: equal for equal words, judge, and settings that its answer depends on."""
        asked = [[m.role, m.content] for m in messages]
        return digest([asked, self.url, self.model, self.temperature, self.max_tokens, self.seed, sample], 16)
