"""What the queue of asynchronous rollouts costs, and what it gains, with engines that only wait.

    python benchmarks/asynchronous.py speedup [SEEDS]
    python benchmarks/asynchronous.py controller [SECONDS]
    python benchmarks/asynchronous.py trained [STEPS]
    python benchmarks/asynchronous.py slow

``speedup`` runs ledger, queue and the thread that looks after samplers with sixteen engines that sleep as long as decoding would
take, of lengths over two decades, at ages 0 to 4, and the simulator on the same settings: steps per hour of both, and ratios
to age 0. ``controller`` has 64 engines that answer at once for SECONDS (60): rollouts per minute, processor time of a rollout,
growth of memory between the first third and the last, and the broken promises of the history. ``train_steps`` trains a small
model on answers of very different lengths (an untrained model ends an answer by chance) in one process with two threads, and with
one sampler process beside the learner, a thread each: steps per hour of both, and their ratio. ``slow`` has eight engines that
sleep alike, and then one of them twenty times as long: steps per hour relative to the seven others alone. Prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import queue
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from assay.asynchronous import (
    AcceptedLog,
    AgePolicy,
    Asynchronous,
    Cluster,
    GroupRequest,
    LeasedGroup,
    Ledger,
    LedgerEvent,
    LoadedVersion,
    NewWeights,
    RolloutQueue,
    SampledGroup,
    SamplerEnd,
    Samplers,
    SamplerSettings,
    check_history,
    lognormal_lengths,
    simulate_run,
)
from assay.core import Call, Completion, Context, Manifest, Message, Rollout, Sampling, Span, Stop, ids_of, manifest_of
from assay.lab import RandomReward, Rewarded
from assay.objective import areal
from assay.rollout import PlayerSpec
from assay.runtime import AdamW, Auto, DecoderShape, LearnerSettings
from assay.train import Evaluation, Reinforce, Run, Scratch, train
from assay_tasks import SortDigits

GROUP_SIZE = 4
SAMPLING = Sampling(max_new_tokens=8)
TASKS = SortDigits(levels=(1,))
TASK = TASKS.task("sort", 1, "train", 0).public_view()
STEP_SECONDS, SEQUENCE_SECONDS, TRAIN_TOKENS = 0.0004, 0.00005, 150_000.0
ENGINES, GROUPS, STEPS = 16, 16, 10
SHAPE = DecoderShape(
    hidden_size=96, num_layers=3, num_heads=3, num_kv_heads=3, head_dim=32, intermediate_size=256, max_positions=512
)


def context(number: int) -> Context:
    """Of one group."""
    return Context(key=f"g{number}", group=f"g{number}", task=TASK, messages=(Message("user", "1+1="),))


def rollouts(sample: LeasedGroup, version: int) -> tuple[Rollout, ...]:
    """Answers of eight tokens."""
    ids, logp = ids_of(range(8)), np.zeros(8, np.float32)
    span = (Span(version=version, start=0, end=8),)
    done = Completion(ids=ids, logp_engine=logp, spans=span, stop=Stop.DONE, sampling=SAMPLING, duration=0.0)
    call = Call(id=0, parent=None, prefix=ids, completion=done, text="2")
    where = sample.request.context
    return tuple(
        Rollout(id=f"{where.key}/{i}", context=where, calls=(call,), stop=Stop.DONE, seed=i) for i in range(sample.request.n)
    )


@dataclass(frozen=True)
class WaitingWeights:
    """Implements `assay.asynchronous.Weights`; nobody reads them."""

    manifest: Manifest

    nbytes = 0

    def arrays(self) -> None:
        """None."""


class WaitingEngines:
    """Implements `assay.asynchronous.Spawner`: threads that sleep as long as decoding would take."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    def spawn(self, name: str, epoch: int, settings: SamplerSettings, post: Callable[[str, int, object], None]) -> WaitingEngine:
        """As `Spawner.spawn`."""
        return WaitingEngine(name, epoch, self.seconds, post)

    def share(self, manifest: Manifest) -> WaitingWeights:
        """As `Spawner.share`."""
        return WaitingWeights(manifest)

    def close(self) -> None:
        """As `Spawner.close`."""


class WaitingEngine:
    """One of them: a group at a time, under the newest weights that it has heard of."""

    def __init__(self, name: str, epoch: int, seconds: dict[str, float], post: Callable[[str, int, object], None]) -> None:
        self.inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.name, self.epoch, self.seconds, self.post = name, epoch, seconds, post
        threading.Thread(target=self.work, daemon=True).start()

    def send(self, message: object) -> None:
        """As `SamplerHandle.send`."""
        self.inbox.put(message)

    def kill(self) -> None:
        """As `SamplerHandle.kill`."""
        self.inbox.put(None)

    def work(self) -> None:
        """Until it is killed."""
        version = -1
        while (message := self.inbox.get()) is not None:
            if isinstance(message, NewWeights):
                version = message.weights.manifest.version
                self.post(self.name, self.epoch, LoadedVersion(version, None))
            elif isinstance(message, LeasedGroup):
                time.sleep(self.seconds.get(message.request.context.key, self.seconds.get(self.name, 0.0)))
                self.post(self.name, self.epoch, SampledGroup(message.lease, rollouts(message, version)))
        self.post(self.name, self.epoch, SamplerEnd("it was told to"))


class Driver:
    """A run without a learner: admits, takes, publishes."""

    def __init__(
        self,
        eta: int,
        policy: str,
        engines: int,
        seconds: dict[str, float],
        folder: Path,
        tell: Callable[[LedgerEvent], None] | None = None,
    ) -> None:
        settings = SamplerSettings(
            model=folder,
            engine=Auto(),
            sampler=PlayerSpec(),
            tasks=TASKS,
            seed=0,
            deadline=1.0,
            device="cpu",
            threads=1,
            log=folder / "log",
        )
        self.samplers = Samplers(settings, WaitingEngines(seconds), engines, 1, print)
        ledger = Ledger(eta, AgePolicy(policy), tell or (lambda event: None))
        self.queue, self.version, self.number = RolloutQueue(ledger, AcceptedLog(folder / "accepted"), self.samplers), 0, 0
        self.publish()

    def publish(self) -> None:
        """New weights of four numbers."""
        self.version += 1
        self.queue.publish(manifest_of(self.version, {"w": np.full(4, self.version, np.float32)}))

    def admit(self, n: int) -> None:
        """So many groups more."""
        made = [GroupRequest(context=context(self.number + i), n=GROUP_SIZE, sampling=SAMPLING, max_turns=1) for i in range(n)]
        self.number += len(made)
        self.queue.admit(made)

    def take(self, n: int) -> tuple[str, ...]:
        """The groups of a step."""

        async def take_names() -> tuple[str, ...]:
            while not (found := await self.queue.take(n)).keys:
                self.admit(len(found.dropped))
            return found.keys

        return asyncio.run(take_names())


def speedup(seeds: int) -> list[dict[str, object]]:
    """Steps per hour at each age with engines that sleep, beside those of the simulator."""
    rows: list[dict[str, object]] = []
    lengths = lognormal_lengths(300.0, 1.1, 6000)
    rates: dict[tuple[int, str], list[list[float]]] = {}
    for seed in range(seeds):
        for eta, policy in ((0, "wait"), (1, "wait"), (2, "continue"), (4, "continue")):
            cluster = Cluster(
                engines=ENGINES,
                groups=GROUPS,
                group_size=GROUP_SIZE,
                eta=eta,
                policy=policy,
                batch=1,
                step_seconds=STEP_SECONDS,
                sequence_seconds=SEQUENCE_SECONDS,
                train_tokens_per_second=TRAIN_TOKENS,
            )
            rng = np.random.default_rng(seed)
            drawn = [lengths(GROUP_SIZE, rng) for _ in range(STEPS * GROUPS)]
            left = iter(drawn)
            simulated = simulate_run(cluster, lambda n, rng, left=left: next(left), STEPS, seed).steps_per_hour
            rates.setdefault((eta, policy), []).append([steps_with_waits(eta, policy, drawn), simulated])
    for (eta, policy), found in rates.items():
        measured, simulated = (statistics.mean(column) for column in zip(*found, strict=True))
        base_measured, base_simulated = (statistics.mean(column) for column in zip(*rates[0, "wait"], strict=True))
        rows.append(
            {
                "eta": eta,
                "policy": policy,
                "steps_per_hour": round(measured),
                "ratio": round(measured / base_measured, 2),
                "simulated_steps_per_hour": round(simulated),
                "simulated_ratio": round(simulated / base_simulated, 2),
            }
        )
    return rows


def steps_with_waits(eta: int, policy: str, drawn: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> float:
    """Steps per hour with engines that sleep."""
    seconds = {f"g{i}": float(STEP_SECONDS * d.max() + SEQUENCE_SECONDS * d.sum()) for i, d in enumerate(drawn)}
    with tempfile.TemporaryDirectory() as scratch:
        driver = Driver(eta, policy, ENGINES, seconds, Path(scratch))
        driver.admit((eta + 1) * GROUPS)
        begin = time.monotonic()
        for step in range(STEPS):
            keys = driver.take(GROUPS)
            time.sleep(sum(int(drawn[int(key[1:])].sum()) for key in keys) / TRAIN_TOKENS)
            for key in keys:
                driver.queue.rollouts(key)
            driver.publish()
            driver.admit(min(GROUPS, (STEPS - step - 1 - eta) * GROUPS))
        spent = time.monotonic() - begin
        driver.queue.close()
    return 3600 * STEPS / spent


def controller(seconds: float) -> dict[str, object]:
    """Sixty-four engines that answer at once, for some time."""
    events: list[LedgerEvent] = []
    with tempfile.TemporaryDirectory() as scratch:
        driver = Driver(2, "continue", 64, {}, Path(scratch), events.append)
        driver.admit(3 * 64)
        begin, processor, taken, memory = time.monotonic(), time.process_time(), 0, list[float]()
        while time.monotonic() - begin < seconds:
            keys = driver.take(64)
            taken += len(keys)
            for key in keys:
                driver.queue.rollouts(key)
            driver.publish()
            driver.admit(64)
            if taken % (64 * 50) == 0:  # as a run saves a checkpoint
                driver.queue.state_dict(taken // 64)
                driver.queue.commit(taken // 64)
                memory.append(resident())
        spent, processor = time.monotonic() - begin, time.process_time() - processor
        driver.queue.close()
    third = max(1, len(memory) // 3)
    return {
        "rollouts_per_minute": round(60 * taken * GROUP_SIZE / spent),
        "processor_us_per_rollout": round(1e6 * processor / (taken * GROUP_SIZE), 1),
        "memory_growth_mib": round(statistics.mean(memory[-third:]) - statistics.mean(memory[:third]), 1) if memory else None,
        "broken_promises": len(check_history(events, 2)),
        "events": len(events),
    }


def train_steps(steps: int) -> dict[str, object]:
    """A real run, in one process and with a sampler beside it, on as many threads."""
    learner = LearnerSettings(optimizer=AdamW(lr=1e-5))
    stage = Reinforce(steps=steps, groups=16, group_size=8, objective=areal(), learner=learner)
    run = Run(
        model=Scratch(shape=SHAPE, seed=0),
        tasks=Rewarded(source=SortDigits(levels=(1, 2)), scorer=RandomReward()),
        stages=(stage,),
        sampling=Sampling(max_new_tokens=480),
        evaluation=Evaluation(every=0, final_per_level=2),
        threads=2,
    )
    beside = replace(stage, asynchronous=Asynchronous(samplers=1, eta=2, policy="continue"))
    rates: dict[str, float] = {}
    ages: list[float] = []
    for name, made in (("one process", run), ("beside", replace(run, stages=(beside,), threads=1))):
        with tempfile.TemporaryDirectory() as scratch:
            train(made, Path(scratch) / "run", progress=False)
            lines = [json.loads(line) for line in (Path(scratch) / "run" / "metrics.jsonl").read_text().splitlines()]
            numbers = [line["metrics"] for line in lines if "time/step" in line["metrics"]][3:]
            rates[name] = 3600 / statistics.mean(m["time/step"] for m in numbers)
            ages += [m["async/age_max"] for m in numbers if "async/age_max" in m]
    return {
        "steps_per_hour": {name: round(rate) for name, rate in rates.items()},
        "ratio": round(rates["beside"] / rates["one process"], 2),
        "oldest": max(ages),
    }


def slow() -> list[dict[str, object]]:
    """One engine in eight is twenty times as slow."""
    rows: list[dict[str, object]] = []
    for policy in ("continue", "drop"):
        rates = [_steps_at_pace(policy, [0.06] * 7), _steps_at_pace(policy, [0.06] * 7 + [1.2])]
        rows.append({"policy": policy, "share_of_the_rest": round(rates[1][0] / rates[0][0], 2), "oldest": rates[1][1]})
    return rows


def _steps_at_pace(policy: str, pace: list[float]) -> tuple[float, int]:
    """Steps per hour of engines that take so long for each group, and the age of the oldest that was taken."""
    events: list[LedgerEvent] = []
    with tempfile.TemporaryDirectory() as scratch:
        seconds = {f"sampler-{i}": s for i, s in enumerate(pace)}
        driver = Driver(4, policy, len(pace), seconds, Path(scratch), events.append)
        driver.admit(5 * 14)
        begin = time.monotonic()
        for _ in range(40):
            for key in driver.take(14):
                driver.queue.rollouts(key)
            driver.publish()
            driver.admit(14)
        spent = time.monotonic() - begin
        driver.queue.close()
    return 3600 * 40 / spent, max(e.version - e.oldest for e in events if e.kind == "take")


def resident() -> float:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


if __name__ == "__main__":
    kind, amount = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else None
    kinds: dict[str, Callable[[], object]] = {
        "speedup": lambda: speedup(int(amount or 3)),
        "slow": slow,
        "controller": lambda: controller(amount or 60.0),
        "trained": lambda: train_steps(int(amount or 20)),
    }
    found = kinds[kind]()
    print(json.dumps(found, indent=2))
