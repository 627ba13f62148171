"""How a stage samples beside learning: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import check_positive

__all__ = ["Asynchronous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asynchronous:
    """Sampling beside learning, in processes of its own.

    Attributes:
        samplers: processes that sample.
        eta: greatest age of a token at its consumption, in steps; 0 samples with the newest weights alone, as a run in one process.
        policy: which groups a step takes (`assay.asynchronous.AgePolicy`).
        batch: groups that a process samples at a time; 0 for an equal share of a step's groups.
        threads: of torch in each process.

    Raises:
        ConfigError: no sampler, an age below 0.
    """

    samplers: int = 1
    eta: int = 1
    policy: Literal["wait", "continue", "drop"] = "wait"
    batch: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_positive(self, "samplers", "threads")
        if self.eta < 0 or self.batch < 0:
            raise ConfigError(f"Asynchronous(eta={self.eta}, batch={self.batch}); use numbers from 0 on")
        if self.policy not in ("wait", "continue", "drop"):
            raise UnknownNameError("Asynchronous.policy", self.policy, ("wait", "continue", "drop"))
