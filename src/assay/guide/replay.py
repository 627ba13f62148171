"""Groups kept for later steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.core.fields import check_positive, later
from assay.core.group import Group
from assay.core.protocols import State
from assay.core.seeds import generator

__all__ = ["DeferredReplay", "DeferredBuffer", "Recent", "RecentBuffer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The most recent groups; ``build`` gives the buffer.

    Attributes:
        capacity: most groups kept; the oldest go first.
        max_age: a group is replayed at most so many steps after the one that drew it; then it is dropped.
        informative: keep only groups whose rollouts differ in their primary value; the others leave a group baseline no signal.

    Raises:
        ConfigError: a value out of range.
    """

    capacity: int = 256
    max_age: int = 8
    informative: bool = True

    def __post_init__(self) -> None:
        if self.capacity < 1 or self.max_age < 1:
            raise ConfigError(f"Recent.capacity and Recent.max_age must be >= 1, got {self.capacity} and {self.max_age}")

    def build(self, seed: int) -> RecentBuffer:
        """An empty buffer."""
        return RecentBuffer(self, seed)


class RecentBuffer:
    """The groups themselves, oldest first. Samples are counter based: a pure function of seed, turn and content.

    Args:
        settings: what to keep.
        seed: the run's seed.
    """

    def __init__(self, settings: Recent, seed: int) -> None:
        self.settings = settings
        self.seed = seed
        self._turn = 0
        self._kept: list[tuple[int, Group]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, groups: Sequence[Group], step: int) -> None:
        """Keep the groups of a step that has had its batch; drop what would be too old for the next step's, or is too much."""
        wanted = [g for g in groups if g.informative or not self.settings.informative]
        alive = [(s, g) for s, g in self._kept if step + 1 - s <= self.settings.max_age]
        self._kept = [*alive, *((step, g) for g in wanted)][-self.settings.capacity :]

    def sample(self, n: int) -> list[Group]:
        """Up to ``n`` different groups, evenly drawn; they stay in the buffer."""
        order = generator("replay", self.seed, "", self._turn).permutation(len(self._kept))
        self._turn += 1
        return [self._kept[int(i)][1] for i in order[:n]]

    def state_dict(self) -> State:
        """Turn and groups, in the wire format of `assay.core`."""
        from assay.core.wire import group_to_wire

        return {"turn": self._turn, "groups": [[step, group_to_wire(g)] for step, g in self._kept]}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken."""
        from assay.core.wire import group_from_wire

        self._turn = int(state["turn"])
        self._kept = [(int(step), group_from_wire(wire)) for step, wire in state["groups"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredReplay:
    """Groups of which a part is learned from later, each once: the oldest come back when there are enough (`Recompose`).

    Attributes:
        capacity: groups that wait before any comes back, so the steps that a rollout waits.
        batch: groups that come back at once.
        chance: with which they do when ``capacity`` wait, in (0, 1]; where they do not, they are let go and never learned from.

    Raises:
        ConfigError: a number below 1, a batch above the capacity, or no chance.
    """

    capacity: int = 128
    batch: int = 32
    chance: float = later(1.0)

    def __post_init__(self) -> None:
        check_positive(self, "capacity", "batch")
        if not 0.0 < self.chance <= 1.0:
            raise ConfigError(f"DeferredReplay.chance={self.chance}; use a probability in (0, 1], or nothing would come back")
        if self.batch > self.capacity:
            raise ConfigError(f"DeferredReplay.batch={self.batch} exceeds capacity={self.capacity}, which is all that waits")

    def build(self, seed: int) -> DeferredBuffer:
        """An empty buffer."""
        return DeferredBuffer(self, seed)


class DeferredBuffer:
    """The groups that wait, oldest first; implements `assay.core.protocols.Replay`.

    Args:
        settings: how many wait.
        seed: the run's seed; whether groups come back is a pure function of it and of how often they could before.
    """

    def __init__(self, settings: DeferredReplay, seed: int = 0) -> None:
        self.settings, self.seed, self._turn = settings, seed, 0
        self._waiting: list[Group] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, groups: Sequence[Group], step: int) -> None:
        """Takes the groups of a step that has had its batch."""
        self._waiting += groups

    def sample(self, n: int) -> list[Group]:
        """The oldest ``batch`` groups where ``capacity`` wait, and takes them out; ``n`` bounds nothing here. None of them, by
        `DeferredReplay.chance`.
        """
        if len(self._waiting) < self.settings.capacity:
            return []
        out, self._waiting = self._waiting[: self.settings.batch], self._waiting[self.settings.batch :]
        back = float(generator("deferred", self.seed, "", self._turn).random()) < self.settings.chance
        self._turn += 1
        return out if back else []

    def state_dict(self) -> State:
        """Turn and groups, in the wire format of `assay.core`."""
        from assay.core.wire import group_to_wire

        return {"turn": self._turn, "waiting": [group_to_wire(group) for group in self._waiting]}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken."""
        from assay.core.wire import group_from_wire

        self._turn = int(state.get("turn", 0))  # not in checkpoints of before there was a chance
        self._waiting = [group_from_wire(wire) for wire in state["waiting"]]
