"""A group that was drawn and is sampled elsewhere, as a checkpoint holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from assay.asynchronous import GroupRequest
from assay.core.group import Draw
from assay.core.protocols import Moment, Posed
from assay.core.rollout import Sampling
from assay.core.task import Context, Task
from assay.core.wire import (
    context_from_wire,
    context_to_wire,
    sampling_from_wire,
    sampling_to_wire,
    task_from_wire,
    task_to_wire,
)

__all__ = ["PendingGroup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGroup:
    """A group that was drawn and has not been learned from.

    Attributes:
        task, context, draw: what is practised, and how it was chosen.
        moment: when the guidance posed it.
        n: rollouts of it.
        sampling, max_turns: how they are sampled, by the settings of the step that drew it.
        replaces: keys of groups in whose place it is learned from.
        more: what the guidance posed of the task beside it, which is sampled when a step takes it.
    """

    task: Task
    context: Context
    draw: Draw
    moment: Moment
    n: int
    sampling: Sampling
    max_turns: int
    replaces: tuple[str, ...] = ()
    more: tuple[Posed, ...] = ()

    @property
    def request(self) -> GroupRequest:
        """What samplers need of it."""
        return GroupRequest(context=self.context, n=self.n, sampling=self.sampling, max_turns=self.max_turns)

    def to_wire(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "task": task_to_wire(self.task),
            "context": context_to_wire(self.context),
            "draw": asdict(self.draw),
            "moment": asdict(self.moment),
            "n": self.n,
            "sampling": sampling_to_wire(self.sampling),
            "max_turns": self.max_turns,
            "replaces": self.replaces,
            "more": [{"context": context_to_wire(p.context), "n": p.n, "replaces": p.replaces} for p in self.more],
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """What `to_wire` wrote."""
        return cls(
            task=task_from_wire(wire["task"]),
            context=context_from_wire(wire["context"]),
            draw=Draw(**wire["draw"]),
            moment=Moment(**wire["moment"]),
            n=int(wire["n"]),
            sampling=sampling_from_wire(wire["sampling"]),
            max_turns=int(wire["max_turns"]),
            replaces=tuple(wire.get("replaces", ())),
            more=tuple(
                Posed(context=context_from_wire(p["context"]), n=p["n"], replaces=tuple(p["replaces"]))
                for p in wire.get("more", ())
            ),
        )
