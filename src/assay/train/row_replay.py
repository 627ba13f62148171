"""Rollouts kept by the row that they answer: a later step at the same row learns from what an earlier one found there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import check_positive
from assay.core.group import Group
from assay.core.protocols import Replay, State
from assay.core.rollout import Rollout
from assay.core.score import Score

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["RecallsRows", "RowReplay", "RowReplayBuffer", "join_replayed"]

Row = tuple[str, int, int]
"""Arm, level and index of a task."""


@runtime_checkable
class RecallsRows(Replay, Protocol):
    """A replay that is asked for rollouts of the very rows that a step has drawn."""

    def recall(self, groups: Sequence[Group], step: int) -> list[Group]:
        """Stored rollouts that join groups of a step: for each group one of its key, or none; they stay in the replay."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReplay:
    """Right and wrong rollouts of each row, kept to join the row's group when it is drawn again (as RLEP replays right ones).

    They stand in the stream ``replay``, with the log-probabilities of the weights that sampled them, for an objective that has a
    ratio.

    Attributes:
        keep: ``success``: rollouts that reach ``least``; ``failure``: those below; ``pairs``: both.
        when: ``missing``: only where the group has no rollout of that kind itself, so that it has a signal; ``always``.
        join: rollouts of a kind that join a group at most, the newest first.
        per_row: rollouts of a kind kept of a row; the oldest go first.
        tokens: most tokens kept in all, prompts included, which bounds every checkpoint; the oldest rollouts go first.
        max_age: a rollout joins at most so many steps after the one that sampled it; then it is dropped.
        least: of the tasks' own metric.

    Raises:
        ConfigError, UnknownNameError: a value out of range.

    >>> RowReplay(keep="pairs").kinds
    ('success', 'failure')
    """

    keep: Literal["success", "failure", "pairs"] = "success"
    when: Literal["missing", "always"] = "missing"
    join: int = 1
    per_row: int = 4
    tokens: int = 1_000_000
    max_age: int = 100
    least: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self, "join", "per_row", "tokens", "max_age")
        for name, known in (("keep", ("success", "failure", "pairs")), ("when", ("missing", "always"))):
            if getattr(self, name) not in known:
                raise UnknownNameError(f"RowReplay.{name}", getattr(self, name), known)
        if self.join > self.per_row:
            raise ConfigError(
                f"RowReplay.join={self.join} exceeds per_row={self.per_row}, which is all that there can be of a row"
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of rollouts that are kept."""
        return ("success", "failure") if self.keep == "pairs" else (self.keep,)

    def build(self, seed: int) -> RowReplayBuffer:
        """An empty replay; nothing of it is drawn by chance."""
        return RowReplayBuffer(self)


@dataclass(frozen=True, slots=True)
class _Kept:
    step: int
    row: Row
    kind: str
    group: Group

    @property
    def tokens(self) -> int:
        return sum(len(c.prefix) + len(c.completion.ids) for r in self.group.rollouts for c in r.calls)


class RowReplayBuffer:
    """`RowReplay` at work; implements `RecallsRows`.

    Args:
        settings: as above.
    """

    def __init__(self, settings: RowReplay) -> None:
        self.settings = settings
        self._kept: list[_Kept] = []

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, groups: Sequence[Group], step: int) -> None:
        """Keeps the rollouts of a step that has had its batch; drops what would be too old for the next, or is too much."""
        alive = [k for k in self._kept if step + 1 - k.step <= self.settings.max_age]
        self._kept = self._bound_rows([*alive, *self._new(groups, step)])

    def _new(self, groups: Sequence[Group], step: int) -> Iterator[_Kept]:
        for group in groups:
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                kind = self._kind(score)
                if score.valid and kind in self.settings.kinds and rollout.length:
                    yield _Kept(step, group.row, kind, replace(group, rollouts=(rollout,), scores=(score,)))

    def _kind(self, score: Score) -> str:
        return "success" if score.valid and score.primary >= self.settings.least else "failure"

    def _bound_rows(self, kept: list[_Kept]) -> list[_Kept]:
        """The newest, so many of each row and kind, and tokens in all."""
        out, number, tokens = list[_Kept](), dict[tuple[Row, str], int](), 0
        for one in reversed(kept):
            key = (one.row, one.kind)
            number[key] = number.get(key, 0) + 1
            if number[key] > self.settings.per_row:
                continue
            tokens += one.tokens
            if tokens > self.settings.tokens:
                break
            out.append(one)
        return out[::-1]

    def sample(self, n: int) -> list[Group]:
        """Nothing: rollouts are replayed at their rows alone."""
        return []

    def recall(self, groups: Sequence[Group], step: int) -> list[Group]:
        """For each group of a step, as far as its row has something and it has need of it, a group of its key."""
        at: dict[tuple[Row, str], list[_Kept]] = {}
        for one in reversed(self._kept):  # the newest first
            if step - one.step <= self.settings.max_age:
                at.setdefault((one.row, one.kind), []).append(one)
        out: list[Group] = []
        for group in groups:
            own = {self._kind(score) for score in group.scores if score.valid}
            wanted = [k for k in self.settings.kinds if self.settings.when == "always" or k not in own]
            found = [one.group for kind in wanted for one in at.get((group.row, kind), ())[: self.settings.join]]
            if found:
                out.append(_as_one(group, found))
        return out

    def state_dict(self) -> State:
        """The rollouts, in the wire format of `assay.core`."""
        from assay.core.wire import group_to_wire

        return {"kept": [[k.step, k.kind, group_to_wire(k.group)] for k in self._kept]}

    def load_state_dict(self, state: State) -> None:
        """Continues where `state_dict` was taken."""
        from assay.core.wire import group_from_wire

        read = ((int(step), str(kind), group_from_wire(wire)) for step, kind, wire in state["kept"])
        self._kept = [_Kept(step, group.row, kind, group) for step, kind, group in read]


def _as_one(host: Group, found: Sequence[Group]) -> Group:
    """Rollouts of earlier groups of a row under the key of the present one."""

    def to_current(rollout: Rollout) -> Rollout:
        return replace(rollout, context=replace(rollout.context, group=host.key))

    rollouts = tuple(to_current(r) for g in found for r in g.rollouts)
    return replace(host, rollouts=rollouts, scores=tuple(x for g in found for x in g.scores))


def join_replayed(s: ReinforceRunner, batch: Batch | None, groups: Sequence[Group]) -> Batch | None:
    """The batch with stored rollouts of the rows of its groups; a rollout goes with a group that the composer left out."""
    from assay.train.source_batch import Joined, join_groups

    if not isinstance(s.replay, RecallsRows):
        return batch
    found = s.replay.recall(groups, s.parts.step)
    return join_groups(batch, [Joined(group=g, rows=(), host=g.key) for g in found], "replay", groups)
