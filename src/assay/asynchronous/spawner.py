"""Where samplers run, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from assay.asynchronous.messages import SamplerSettings, Weights
from assay.core.manifest import Manifest

__all__ = ["Post", "SamplerHandle", "Spawner"]

Post = Callable[[str, int, object], None]
"""Where messages go, from any thread: name and epoch of the sampler, and what it says."""


class SamplerHandle(Protocol):
    """A sampler that runs somewhere."""

    def send(self, message: object) -> None:
        """Messages arrive in order. Never blocks for long and never raises: that a sampler is gone is heard as
        `assay.asynchronous.SamplerEnd`.
        """
        ...

    def kill(self) -> None:
        """Ends it at once, wherever it hangs."""
        ...


class Spawner(Protocol):
    """Starts samplers, and puts weights where they can read them."""

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Post) -> SamplerHandle:
        """A sampler; what it says goes to ``post``, and last an `assay.asynchronous.SamplerEnd`.

        Raises:
            ConfigError: the settings cannot be sent to another process.
        """
        ...

    def share(self, manifest: Manifest) -> Weights:
        """Weights for all samplers.

        Raises:
            EngineError: they are no full set of arrays.
        """
        ...

    def close(self) -> None:
        """Frees what was shared."""
        ...
