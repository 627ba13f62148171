"""A cluster on a virtual clock: the ledger of a real run, engines that take time by a formula, and a learner that does too.

A decoding step of an engine with ``b`` sequences takes ``a + c * b`` seconds, so all its sequences advance equally, and a heap of
the tokens at which they end says what happens next: a run of a thousand engines takes seconds. All that comes of it is simulated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.asynchronous.ledger import Ledger
from assay.asynchronous.ledger_records import AgePolicy, Lease
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import check_positive
from assay.core.seeds import generator

__all__ = ["Cluster", "SimulatedRun", "recorded_lengths", "lognormal_lengths", "simulate_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a simulated run has and how fast it is.

    Attributes:
        engines: that sample.
        groups, group_size: contexts of a step, and rollouts of each.
        eta, policy: as of `assay.asynchronous.Asynchronous`.
        batch: groups that an engine samples at a time; 0 for an equal share of a step's groups.
        step_seconds: of a decoding step, apart from its sequences (``a``).
        sequence_seconds: of a decoding step, for each of its sequences (``c``).
        train_tokens_per_second: of the learner.
        sync_seconds: of an update of weights; engines go on meanwhile, the learner waits.

    Raises:
        ConfigError: a number that is none, or not above 0 where it has to be.
    """

    engines: int = 1
    groups: int = 32
    group_size: int = 8
    eta: int = 0
    policy: str = "wait"
    batch: int = 0
    step_seconds: float = 0.01
    sequence_seconds: float = 0.00015
    train_tokens_per_second: float = 7000.0
    sync_seconds: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self, "engines", "groups", "group_size")
        for name in ("eta", "batch", "step_seconds", "sequence_seconds", "sync_seconds"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"Cluster.{name}={getattr(self, name)}; use a number from 0 on")
        if not self.step_seconds + self.sequence_seconds > 0:
            raise ConfigError("Cluster.step_seconds and sequence_seconds are both 0: decoding would take no time")
        if not 0 < self.train_tokens_per_second < float("inf"):
            raise ConfigError(f"Cluster.train_tokens_per_second={self.train_tokens_per_second}; use a number above 0")
        if self.policy not in tuple(AgePolicy):
            raise UnknownNameError("Cluster.policy", self.policy, tuple(AgePolicy))

    @property
    def share(self) -> int:
        """Groups that an engine samples at a time."""
        return self.batch or -(-self.groups // self.engines)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """What a simulated run came to.

    Attributes:
        seconds: of all its steps.
        steps: how many.
        sampling: share of the engines' time in which they had something to sample, weighted by nothing else.
        learning: share of the time in which the learner was at work.
        age_mean, age_max: of groups when they were learned from, in publications.
        dropped: groups that were thrown away.
        tokens: that were learned from.
    """

    seconds: float
    steps: int
    sampling: float
    learning: float
    age_mean: float
    age_max: int
    dropped: int
    tokens: int

    @property
    def steps_per_hour(self) -> float:
        """The rate."""
        return 3600.0 * self.steps / self.seconds


Lengths = Callable[[int, np.random.Generator], NDArray[np.int64]]
"""Draws so many lengths of answers, in tokens."""


def lognormal_lengths(mean: float, sigma: float, cap: int) -> Lengths:
    """Lengths of which the logarithm is normal: most are short, some are very long.

    Args:
        mean: of the lengths before the cap, in tokens.
        sigma: standard deviation of the logarithm.
        cap: the most tokens of an answer.

    >>> lengths = lognormal_lengths(mean=100.0, sigma=0.0, cap=80)
    >>> lengths(3, np.random.default_rng(0)).tolist()
    [80, 80, 80]
    """
    if not mean > 0 or not sigma >= 0 or cap < 1:
        raise ConfigError(f"lognormal_lengths(mean={mean}, sigma={sigma}, cap={cap}); use positive numbers")

    def draw(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        found = rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, n)
        return np.clip(np.rint(found), 1, cap).astype(np.int64)

    return draw


def recorded_lengths(lengths: Sequence[int]) -> Lengths:
    """Lengths as they were, drawn with replacement.

    Raises:
        ConfigError: none, or one that is not above 0.

    >>> recorded_lengths([7])(2, np.random.default_rng(0)).tolist()
    [7, 7]
    """
    if not lengths or min(lengths) < 1:
        raise ConfigError(f"{len(lengths)} lengths, the least {min(lengths, default=0)}: give whole numbers of tokens from 1 on")
    found = np.array(lengths, np.int64)
    return lambda n, rng: found[rng.integers(0, len(found), n)]


@dataclass(slots=True)
class _Engine:
    """Sequences that advance together.

    Attributes:
        number: of the engine.
        tokens: that each sequence which was there from the beginning would have by now.
        at: second of that.
        ends: heap of tokens at which sequences end, with the number of their lease.
        running: sequences.
        busy: seconds with any.
        event: number of the newest event of this engine; older ones are void.
        leased: groups that it samples.
    """

    number: int
    tokens: float = 0.0
    at: float = 0.0
    ends: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    running: int = 0
    busy: float = 0.0
    event: int = 0
    leased: int = 0

    @property
    def name(self) -> str:
        """In the ledger."""
        return f"engine-{self.number}"


class _Simulation:
    def __init__(self, cluster: Cluster, lengths: Lengths, steps: int, seed: int) -> None:
        self.cluster, self.lengths, self.steps = cluster, lengths, steps
        self.rng = generator("simulation", seed)
        self.ledger = Ledger(cluster.eta, AgePolicy(cluster.policy))
        self.engines = [_Engine(i) for i in range(cluster.engines)]
        for engine in self.engines:
            self.ledger.join(engine.name)
        self.now, self.version, self.number, self.events = 0.0, 0, 0, list[tuple[float, int, int, int]]()
        self.sizes: dict[str, NDArray[np.int64]] = {}
        self.left: dict[int, int] = {}
        self.leases: dict[int, tuple[Lease, int]] = {}
        self.done = self.order = 0
        self.learner_free, self.learning = True, 0.0
        self.news = True  # whether there may be a batch that there was not when one was last asked for
        self.ages: list[int] = []
        self.learned = 0

    def run(self) -> SimulatedRun:
        self.admit(self.missing())
        self.feed()
        self.begin_step()
        while self.done < self.steps:
            if not self.events:
                raise ConfigError("the simulated cluster stands still: no engine has anything to sample, and the step wants more")
            at, _, number, event = heapq.heappop(self.events)
            if number >= 0 and event != self.engines[number].event:
                continue
            self.now = at
            if number < 0:
                self.end_step()
            else:
                self.end_sequences(self.engines[number])
            self.begin_step()
            if self.ledger.open:
                self.feed()
        whole = self.now * len(self.engines)
        return SimulatedRun(
            seconds=self.now,
            steps=self.done,
            sampling=sum(e.busy for e in self.engines) / whole,
            learning=self.learning / self.now,
            age_mean=float(np.mean(self.ages)),
            age_max=max(self.ages),
            dropped=self.ledger.counts.get("dropped", 0),
            tokens=self.learned,
        )

    # ---- what is wanted

    def missing(self) -> int:
        left = (self.steps - self.done) * self.cluster.groups - self.ledger.waiting
        return min(left, (self.cluster.eta + 1) * self.cluster.groups - self.ledger.waiting)

    def admit(self, n: int) -> None:
        keys = [f"g{self.number + i}" for i in range(n)]
        self.number += len(keys)
        self.ledger.admit(keys, self.version)
        for key in keys:
            self.sizes[key] = self.lengths(self.cluster.group_size, self.rng)

    def feed(self) -> None:
        for engine in self.engines:
            free = self.cluster.share - engine.leased
            if free <= 0 or not (leases := self.ledger.lease(engine.name, self.version, free)):
                continue
            self.advance(engine)
            for lease in leases:
                self.leases[lease.number] = (lease, self.version)
                self.left[lease.number] = self.cluster.group_size
                engine.leased += 1
                for length in self.sizes[lease.key]:
                    heapq.heappush(engine.ends, (engine.tokens + float(length), lease.number))
                    engine.running += 1
            self.plan(engine)

    # ---- engines

    def advance(self, engine: _Engine) -> None:
        """To the present: all sequences have got as many tokens."""
        passed = self.now - engine.at
        if engine.running:
            engine.tokens += passed / self.token_seconds(engine)
            engine.busy += passed
        engine.at = self.now

    def token_seconds(self, engine: _Engine) -> float:
        return self.cluster.step_seconds + self.cluster.sequence_seconds * engine.running

    def plan(self, engine: _Engine) -> None:
        """The next event of an engine: its next sequence ends."""
        engine.event += 1
        if engine.ends:
            at = self.now + max(0.0, engine.ends[0][0] - engine.tokens) * self.token_seconds(engine)
            self.post(at, engine.number, engine.event)

    def post(self, at: float, number: int, event: int) -> None:
        self.order += 1
        heapq.heappush(self.events, (at, self.order, number, event))

    def end_sequences(self, engine: _Engine) -> None:
        self.advance(engine)
        engine.tokens = max(engine.tokens, engine.ends[0][0])  # what rounding left
        while engine.ends and engine.ends[0][0] <= engine.tokens:
            _, number = heapq.heappop(engine.ends)
            engine.running -= 1
            self.left[number] -= 1
            if not self.left[number]:
                lease, version = self.leases.pop(number)
                del self.left[number]
                engine.leased -= 1
                self.ledger.put(lease, version)
                self.news = True
        self.plan(engine)

    # ---- the learner

    def begin_step(self) -> None:
        if not (self.learner_free and self.news) or self.done >= self.steps:
            return
        self.news = False
        while dropped := self.ledger.drop_old(self.version):
            self.admit(len(dropped))
        taken = self.ledger.take(self.cluster.groups, self.version)
        if taken is None:
            return
        self.ages += [self.version - self.ledger.entries[key].oldest for key in taken]
        tokens = sum(int(self.sizes.pop(key).sum()) for key in taken)
        self.learned += tokens
        seconds = tokens / self.cluster.train_tokens_per_second + self.cluster.sync_seconds
        self.learning += seconds
        self.learner_free = False
        self.ledger.commit()
        self.post(self.now + seconds, -1, 0)

    def end_step(self) -> None:
        self.learner_free = self.news = True
        self.version += 1
        self.done += 1
        self.admit(max(0, self.missing()))


def simulate_run(cluster: Cluster, lengths: Lengths, steps: int = 12, seed: int = 0) -> SimulatedRun:
    """A run on a virtual clock.

    Args:
        cluster: what it has, and how fast that is.
        lengths: draws the lengths of answers.
        steps: of the run.
        seed: of the lengths.

    Raises:
        ConfigError: no step.

    >>> one = Cluster(groups=1, group_size=2, step_seconds=1.0, sequence_seconds=0.5, train_tokens_per_second=10.0)
    >>> run = simulate_run(one, lambda n, rng: np.array([3, 5]), steps=1)
    >>> run.seconds  # 3 tokens of two sequences at 2 s, 2 of one at 1.5 s, 8 tokens learned from at 10 a second
    9.8
    """
    if steps < 1:
        raise ConfigError(f"simulate_run(steps={steps}); use at least 1")
    return _Simulation(cluster, lengths, steps, seed).run()
