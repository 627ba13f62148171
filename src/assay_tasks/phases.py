"""The life of an environment: new, open, over; each serves one rollout."""

from __future__ import annotations

from assay.core.errors import DataError
from assay.core.protocols import Obs

__all__ = ["SingleUse"]


class SingleUse:
    """What environments share that nothing is shown of beyond the prompt at the start.

    Args:
        task: id, for errors.
    """

    def __init__(self, task: str) -> None:
        self._task, self._phase = task, "new"

    async def start(self) -> Obs:
        """Nothing to show beyond the prompt."""
        self._enter("new", "start")
        self._phase = "open"
        return Obs()

    def _enter(self, phase: str, verb: str) -> None:
        """Refuses a call out of turn.

        Raises:
            DataError: started twice, stepped before the start or after the end.
        """
        if self._phase != phase:
            raise DataError(f"environment of task {self._task!r}: {verb} while it is {self._phase}; environments are single use")
