"""Callbacks: code of the user's own that hears of a run's steps, and may ask it to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from assay.core.errors import CallbackError

__all__ = ["Callback", "Callbacks"]


class Callback:
    """What `train(run, callbacks=[...])` calls; override the methods that matter.

    A callback sees numbers and cannot change them: a run with callbacks ends with the digest of one without. What it returns
    may stop the run: True ends it after this step as Ctrl-C does, with a checkpoint, to be resumed. An exception ends it too,
    after a checkpoint, as a `CallbackError` that names the callback. A resumed run repeats the steps after its checkpoint, and
    tells of them again.

    >>> class StopAtReward(Callback):
    ...     def on_step(self, step, metrics):
    ...         return metrics.get("reward/mean", 0.0) >= 0.9
    >>> StopAtReward().on_step(7, {"reward/mean": 0.95}), StopAtReward().on_checkpoint(7, Path("run"))
    (True, None)
    """

    def on_step(self, step: int, metrics: Mapping[str, float]) -> bool | None:
        """A step is done; ``metrics`` is its line of ``metrics.jsonl``, with those of an evaluation behind it."""

    def on_evaluation(self, step: int, metrics: Mapping[str, float]) -> bool | None:
        """There was a held-out evaluation; ``metrics`` are its ``eval/...`` alone. ``step`` may be 0."""

    def on_checkpoint(self, step: int, folder: Path) -> None:
        """A checkpoint was written into ``folder``, which a later one replaces: copy what is to stay."""


class Callbacks:
    """Tells callbacks, and keeps what they answered until the run may stop.

    Args:
        members: in the order in which they are told.

    Attributes:
        stop: one of them asked for the end.
        error: what the first that failed raised; it and those behind it are told nothing more.
    """

    def __init__(self, members: Sequence[Callback] = ()) -> None:
        self._members, self.stop = tuple(members), False
        self.error: CallbackError | None = None

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """A step is done, perhaps with an evaluation behind it."""
        seen = MappingProxyType(dict(metrics))
        for member in self._members:
            self._tell(member, "on_step", step, lambda member=member: member.on_step(step, seen))
        self.evaluation(step, metrics)

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """There was an evaluation, if the metrics hold one."""
        seen = MappingProxyType({name: value for name, value in metrics.items() if name.startswith("eval/")})
        for member in self._members if seen else ():
            self._tell(member, "on_evaluation", step, lambda member=member: member.on_evaluation(step, seen))

    def checkpoint(self, step: int, folder: Path) -> None:
        """A checkpoint was written."""
        for member in self._members:
            self._tell(member, "on_checkpoint", step, lambda member=member: member.on_checkpoint(step, folder))

    def check(self) -> None:
        """Raises what a callback raised; called when all is written down.

        Raises:
            CallbackError: one failed.
        """
        if self.error is not None:
            raise self.error

    def _tell(self, member: Callback, method: str, step: int, call: Callable[[], bool | None]) -> None:
        if self.error is not None:
            return
        try:
            self.stop = call() is True or self.stop
        except Exception as error:
            self.error = CallbackError(
                f"{type(member).__name__}.{method} failed at step {step}: {type(error).__name__}: {error}; mend it, then resume "
                "the run: it has a checkpoint of that step"
            )
            self.error.__cause__ = error
