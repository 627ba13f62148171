"""The rounds in which a stage refills a step: how many tasks each draws, and what becomes of a step that stays short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.core.errors import GateError
from assay.core.protocols import State
from assay.guide import Refill

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["RefillRounds"]


class RefillRounds:
    """A `Refill` at work.

    Args:
        settings: of the stage.

    Attributes:
        share: of drawn tasks that were kept, by `Refill.average_share`; None before the first round.
        short: steps since the stage was opened that ended before enough groups were kept.
    """

    def __init__(self, settings: Refill) -> None:
        self.settings = settings
        self.share: float | None = None
        self.short = 0

    def tasks_to_draw(self, groups: int, kept: int) -> int:
        """How many tasks the next round of a step draws that wants ``groups`` and has kept some."""
        return self.settings.tasks_to_draw(groups - kept, groups, self.share)

    def observe(self, drawn: int, kept: int) -> None:
        """Takes in a round: tasks that it drew, and groups of it that were kept."""
        if self.settings.adapt:
            self.share = self.settings.average_share(self.share, drawn, kept)

    def end(self, s: ReinforceRunner, kept: int, graded: int, rounds: int) -> None:
        """Ends the rounds of a step; says so once where too few groups were kept.

        Raises:
            GateError: too few were kept, and the settings say to stop.
        """
        wanted, rule = s.stage.groups, s.stage.filter
        if kept >= wanted:
            return
        if self.settings.short == "stop":
            raise GateError(
                f"step {s.parts.step + 1}: after {rounds} rounds {kept} of {graded} groups passed {rule}, and {wanted} are "
                "wanted (Reinforce.groups). Practise other levels, give Reinforce.refill more rounds, or let it train on what "
                "there is: short='train'"
            )
        if not self.short:
            said = (
                f"after {rounds} rounds {kept} of {graded} groups passed {rule}, and {wanted} are wanted: the step trains on "
                "those. filter/kept counts them at each step; this is said of the first such step alone"
            )
            s.parts.news.append(("refill", said))
        self.short += 1

    def metrics(self) -> Mapping[str, float]:
        """``filter/share``, where rounds adapt."""
        return {} if self.share is None else {"filter/share": self.share}

    def state_dict(self) -> State:
        """The share, where rounds adapt."""
        return {"share": self.share} if self.settings.adapt else {}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        share = state.get("share")
        self.share = None if share is None else float(share)
