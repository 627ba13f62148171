"""Where a step's time and memory go: one context manager, `span`, for time, profile and out-of-memory errors.

A `StepTimer` adds up ``time/NAME`` of a step's blocks. With ``profile`` it also splits the whole step into parts without
remainder: each moment counts for the innermost part that is at work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType

from assay.core.errors import OutOfMemoryError
from assay.core.out_of_memory import ran_out

__all__ = ["REST", "Profile", "StepTimer", "profile_metrics", "span"]

REST = "framework"
"""What is no part's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a span means.

    Attributes:
        time: name of its seconds among a step's metrics, behind ``time/``; empty for none.
        part: of a step that is profiled; empty for none.
        memory: who asked, when memory runs out inside; empty for nobody in particular.
    """

    time: str = ""
    part: str = ""
    memory: str = ""


BLOCKS: Mapping[str, Block] = {
    "build": Block(memory="learner and engine, as they were built,"),
    "step": Block(memory="a step, beside its passes,"),
    "generate": Block(time="generate", part="rollout", memory="the sampler"),
    "wait": Block(time="wait", part="rollout"),
    "score": Block(time="score", part="verify"),
    "logprob": Block(memory="the passes of a scorer"),
    "check": Block(time="check", part="verify"),
    "columns": Block(time="columns", part="rollout"),
    "annotate": Block(time="forward", part="forward", memory="the passes before a step"),
    "compare": Block(time="forward", part="forward", memory="the pass that compares sampler and learner"),
    "update": Block(memory="the gradient pass"),
    "publish": Block(time="publish", part="publish", memory="publishing weights"),
    "proof": Block(time="proof", part="proof"),
    "sample": Block(memory="the sampler"),
    "evaluate": Block(memory="the sampler, in an evaluation,"),
}
"""The blocks of a run. Any other name, as of the passes inside a learner, is a part of the profile and nothing else."""

_OFF = nullcontext()
_TIMER: ContextVar[StepTimer | None] = ContextVar("assay_timer", default=None)
_PROFILE: ContextVar[Profile | None] = ContextVar("assay_profile", default=None)


def span(name: str) -> AbstractContextManager[None]:
    """The block under a name: its seconds go to the `StepTimer` at work, its part to the `Profile`, and memory that runs out
    inside becomes an `OutOfMemoryError` that says who asked for it (`BLOCKS`).

    Inside a part nothing may be awaited but what belongs to it: a task that runs meanwhile counts as it too.

    Args:
        name: one of `BLOCKS`, or the name of a part.

    Raises:
        OutOfMemoryError: memory ran out in a block that names who asks for it.

    >>> with StepTimer() as timer, span("score"):
    ...     pass
    >>> sorted(timer.seconds())
    ['time/score', 'time/step']
    """
    block = BLOCKS.get(name)
    if block is not None:
        return _Span(block)
    profile = _PROFILE.get()
    return _OFF if profile is None else profile.part(name)


class _Span:
    """A block at work."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._timer = _TIMER.get() if block.time else None
        self._profile = _PROFILE.get() if block.part else None

    def __enter__(self) -> None:
        self._begin = time.perf_counter() if self._timer else 0.0
        if self._profile:
            self._profile.enter(self._block.part)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._profile:
            self._profile.leave()
        if self._timer:
            self._timer.add(self._block.time, time.perf_counter() - self._begin)
        if isinstance(error, Exception) and self._block.memory and not isinstance(error, OutOfMemoryError):
            found = ran_out(error)
            if found is not None:
                raise OutOfMemoryError(f"{self._block.memory} asked for more memory than there is ({found})") from error


class StepTimer:
    """Adds up the seconds of a step's blocks by name while it is entered; a `Profile` at work begins anew with it."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._begin = 0.0
        self._profile: Profile | None = None
        self._token: Token[StepTimer | None] | None = None

    def __enter__(self) -> StepTimer:
        self._profile, self._begin = _PROFILE.get(), time.perf_counter()
        if self._profile:
            self._profile.start()
        self._token = _TIMER.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._token is not None
        _TIMER.reset(self._token)

    def add(self, name: str, seconds: float) -> None:
        """Adds to ``time/NAME``."""
        self._spent[name] = self._spent.get(name, 0.0) + seconds

    def seconds(self) -> dict[str, float]:
        """``time/NAME`` of each block, and ``time/step`` since the step began; with a profile `profile_metrics` of it too."""
        parts = profile_metrics(*self._profile.seconds()) if self._profile else {}
        return {f"time/{k}": v for k, v in self._spent.items()} | {"time/step": time.perf_counter() - self._begin} | parts


class Profile:
    """Wall and CPU seconds of this process by part, from `start` on. They add up to all that passed.

    Args:
        wait: called where a part begins or ends: has a device finish what it was given, or it would count as the next part's.
        wall, cpu: clocks, in seconds; replaced in tests.

    >>> ticks = iter(range(100))
    >>> profile = Profile(wall=lambda: float(next(ticks)), cpu=lambda: 0.0)
    >>> with profile.here():
    ...     with span("rollout"):
    ...         with span("engine"):
    ...             pass
    >>> profile.seconds()[0]  # a tick from each begin or end to the next
    {'framework': 2.0, 'rollout': 2.0, 'engine': 1.0}
    """

    def __init__(
        self,
        wait: Callable[[], None] | None = None,
        wall: Callable[[], float] = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._wait, self._wall, self._cpu = wait, wall, cpu
        self.start()

    def start(self) -> None:
        """Forgets what was; from here on time is counted."""
        self._spent: dict[str, list[float]] = {}
        self._open = [REST]
        self._since = self._wall(), self._cpu()

    @contextmanager
    def here(self) -> Generator[None]:
        """Inside, `span` counts here."""
        token = _PROFILE.set(self)
        try:
            yield
        finally:
            _PROFILE.reset(token)

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """The block as a part."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def enter(self, name: str) -> None:
        """From here to `leave`, time is the part's."""
        self._turn()
        self._open.append(name)

    def leave(self) -> None:
        """Ends the innermost part."""
        self._turn()
        self._open.pop()

    def _turn(self) -> None:
        """Gives what has passed since the last turn to the innermost part."""
        if self._wait:
            self._wait()
        now = self._wall(), self._cpu()
        spent = self._spent.setdefault(self._open[-1], [0.0, 0.0])
        spent[0] += now[0] - self._since[0]
        spent[1] += now[1] - self._since[1]
        self._since = now

    def seconds(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Wall and CPU seconds by part so far."""
        self._turn()
        return {n: v[0] for n, v in self._spent.items()}, {n: v[1] for n, v in self._spent.items()}


def profile_metrics(wall: Mapping[str, float], cpu: Mapping[str, float]) -> dict[str, float]:
    """``time/profile/PART`` in wall and ``time/profile_cpu/PART`` in CPU seconds.

    An engine that is not of this process is only waited for: that wait is then its part.

    >>> profile_metrics({"rollout": 2.0, "framework": 1.0}, {"rollout": 0.5, "framework": 1.0})["time/profile/engine"]
    2.0
    """
    elsewhere = "rollout" in wall and "engine" not in wall
    return {
        f"time/{kind}/{'engine' if elsewhere and name == 'rollout' else name}": seconds
        for kind, of in (("profile", wall), ("profile_cpu", cpu))
        for name, seconds in of.items()
    }
