"""How a stage samples beside learning: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import check_positive, later

__all__ = ["Asynchronous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asynchronous:
    """Sampling beside learning, in processes of its own.

    With ``eta=1`` LlamaRL's (arXiv 2505.24034) and AsyncFlow's (arXiv 2507.01663) step ahead; with ``policy="continue"`` APRIL's
    partial rollouts (arXiv 2509.18521); larger ages with ``assay.objective.areal`` AReaL (arXiv 2505.24298). Where ``v`` counts
    publications of weights, a group is learned from at ``v_now - min(v_token) <= eta``, and ``(eta + 1) * groups`` are under way.

    Attributes:
        samplers: processes that sample.
        eta: greatest age of a token when it is learned from, in steps; 0 samples with the newest weights alone, as a run in one
            process does.
        policy: which groups a step takes: ``wait``, ``continue`` or ``drop`` (`assay.asynchronous.AgePolicy`).
        batch: groups that a process samples at a time; 0 for an equal share of a step's groups.
        threads: of torch in each process.
        runtime: ``process`` for processes of this machine, ``ray`` for actors of a Ray cluster.
        keep_log: keep every accepted rollout, so that the whole run can be replayed (``assay runs replay``); without it what the
            last two checkpoints need.
        updates: how new weights travel: ``full``, or ``delta`` for what changed since the publication before (SparseRL-Sync,
            arXiv 2605.07330): exact, a hundredth of the bytes where the engine serves bfloat16 and the learning rate is near
            1e-6, and no longer than the full set elsewhere.
        full_every: of ``delta``: every so many publications one is the full set.
        servers: where the run's engine is `assay.runtime.VllmSettings`: addresses of servers, one for each sampler; that of the
            engine when empty.

    Raises:
        ConfigError: no sampler, an age below 0.
        UnknownNameError: an unknown policy or runtime.
    """

    samplers: int = 1
    eta: int = 1
    policy: Literal["wait", "continue", "drop"] = "wait"
    batch: int = 0
    threads: int = 1
    runtime: Literal["process", "ray"] = "process"
    keep_log: bool = False
    updates: Literal["full", "delta"] = later("full")
    full_every: int = later(32)
    servers: tuple[str, ...] = later(())

    def __post_init__(self) -> None:
        check_positive(self, "samplers", "threads", "full_every")
        for name in ("eta", "batch"):
            if getattr(self, name) < 0:
                raise ConfigError(f"Asynchronous.{name}={getattr(self, name)}; use a number from 0 on")
        choices = {"policy": ("wait", "continue", "drop"), "runtime": ("process", "ray"), "updates": ("full", "delta")}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise UnknownNameError(f"Asynchronous.{name}", getattr(self, name), known)

    def describe(self, groups: int) -> str:
        """In a sentence, for a stage that takes ``groups`` groups a step.

        >>> print(Asynchronous(samplers=2, eta=0).describe(groups=8))
        2 processes of this machine sample; nothing is learned from that is older than the newest weights; a step waits for its \
groups in order, so none is preferred
        """
        several = self.samplers > 1
        if self.runtime == "process":
            who = f"{self.samplers} processes of this machine" if several else "1 process of this machine"
        else:
            who = f"{self.samplers} actors of a Ray cluster" if several else "1 actor of a Ray cluster"
        older = f"more than {self.eta} step{'s' if self.eta > 1 else ''} old" if self.eta else "older than the newest weights"
        ahead = f" while the learner works, at most {(self.eta + 1) * groups} groups ahead" if self.eta else ""
        sample = "sample" if several else "samples"
        return f"{who} {sample}{ahead}; nothing is learned from that is {older}; {_TAKES[self.policy]}"


_TAKES = {
    "wait": "a step waits for its groups in order, so none is preferred",
    "continue": "a step takes the groups that are done first, so short answers are learned from before long ones",
    "drop": "a step takes the groups that are done first, and throws away what is too old: long answers are missing more often",
}
"""What each policy prefers."""
