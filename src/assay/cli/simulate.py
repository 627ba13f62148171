"""``assay simulate``: what asynchronous sampling would gain on a cluster that is not here."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import busy, grid, show
from assay.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from assay.asynchronous.simulation import Cluster, Lengths, SimulatedRun

__all__ = ["simulate_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """Simulates asynchronous sampling on a virtual clock: steps per hour, how busy engines and learner are, how old samples get.

    A decoding step of an engine takes STEP_MS + SEQUENCE_MS * sequences; all numbers are simulated, none is measured.

    Attributes:
        engines: that sample.
        groups: prompts per step.
        group_size: rollouts per prompt.
        eta: greatest ages to compare, in steps; 0 is the synchronous run.
        age_policy: which groups a step takes: wait, continue or drop.
        batch: prompts that an engine samples at a time; 0 for an equal share of a step's.
        lengths: answer lengths: a run folder, or a file with a number of tokens per line; without it, a log-normal.
        mean_tokens: of the log-normal lengths.
        sigma: standard deviation of their logarithm.
        max_tokens: of an answer, at most.
        step_ms: milliseconds of a decoding step, apart from its sequences.
        sequence_ms: milliseconds of a decoding step for each of its sequences.
        train_tokens: tokens that the learner trains on per second.
        sync_s: seconds of an update of weights.
        steps: of each simulated run.
        seeds: runs of each kind, with other lengths.
        json: print JSON.
    """

    engines: int = 8
    groups: int = 64
    group_size: int = 8
    eta: tuple[int, ...] = (0, 1, 2)
    age_policy: str = "wait"
    batch: int = 0
    lengths: Path | None = field(default=None, metadata={"arg": {"metavar": "RUN|FILE"}})
    mean_tokens: float = 2000.0
    sigma: float = 0.8
    max_tokens: int = 8000
    step_ms: float = 10.0
    sequence_ms: float = 0.15
    train_tokens: float = 50_000.0
    sync_s: float = 5.0
    steps: int = 12
    seeds: int = 5
    json: bool = False

    def __post_init__(self) -> None:
        if self.seeds < 1 or not self.eta:
            raise ConfigError(f"--seeds {self.seeds}, --eta {self.eta}: give at least one of each")


def simulate_command(args: list[str]) -> int:
    """``assay simulate [options]``."""
    own = parse(SimulateOptions, args, "assay simulate")
    cluster, lengths = _cluster(own), _lengths(own)
    with busy("simulating"):
        rows = _rows(own, cluster, lengths)

    def text() -> None:
        print(
            f"simulated, not measured: {own.engines} engines, {own.groups} x {own.group_size} rollouts a step, "
            f"{own.steps} steps, {own.seeds} seeds"
        )
        names = ("eta", "steps per hour", "speed-up", "engines busy", "learner busy", "age mean", "age max", "dropped")
        grid(names, [[_cell(row, name) for name in names] for row in rows], right=range(1, len(names)))

    return show(
        own.json, {"simulated": True, "cluster": asdict(cluster), "steps": own.steps, "seeds": own.seeds, "rows": rows}, text
    )


def _cluster(own: SimulateOptions) -> Cluster:
    from assay.asynchronous.simulation import Cluster

    return Cluster(
        engines=own.engines,
        groups=own.groups,
        group_size=own.group_size,
        policy=own.age_policy,
        batch=own.batch,
        step_seconds=own.step_ms / 1000,
        sequence_seconds=own.sequence_ms / 1000,
        train_tokens_per_second=own.train_tokens,
        sync_seconds=own.sync_s,
    )


def _lengths(own: SimulateOptions) -> Lengths:
    from assay.asynchronous.simulation import lognormal_lengths, recorded_lengths

    if own.lengths is None:
        return lognormal_lengths(own.mean_tokens, own.sigma, own.max_tokens)
    if own.lengths.is_dir():
        from assay.cli.run_request import run_folder
        from assay.measure import read_rollouts

        return recorded_lengths([line.length for line in read_rollouts(run_folder(own.lengths)).lines if line.length])
    try:
        return recorded_lengths([int(line) for line in own.lengths.read_text(encoding="utf-8").split()])
    except (OSError, ValueError) as error:
        raise DataError(f"--lengths {own.lengths}: {error}; give a run folder, or a file with a whole number per line") from None


def _rows(own: SimulateOptions, cluster: Cluster, lengths: Lengths) -> list[dict[str, Any]]:
    from assay.asynchronous.simulation import simulate_run
    from assay.measure import student

    found: dict[int, list[SimulatedRun]] = {}
    for eta in dict.fromkeys((0, *own.eta)):
        found[eta] = [simulate_run(replace(cluster, eta=eta), lengths, own.steps, seed) for seed in range(own.seeds)]
    rows: list[dict[str, Any]] = []
    for eta in dict.fromkeys(own.eta):
        runs = found[eta]
        ratios = [sync.seconds / run.seconds for sync, run in zip(found[0], runs, strict=True)]
        interval = student(ratios) if len(ratios) > 1 else None
        rows.append(
            {
                "eta": eta,
                "steps per hour": statistics.mean(run.steps_per_hour for run in runs),
                "speed-up": statistics.mean(ratios),
                "interval": [interval.low, interval.high] if interval else None,
                "engines busy": statistics.mean(run.sampling for run in runs),
                "learner busy": statistics.mean(run.learning for run in runs),
                "age mean": statistics.mean(run.age_mean for run in runs),
                "age max": max(run.age_max for run in runs),
                "dropped": sum(run.dropped for run in runs),
            }
        )
    return rows


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if name == "speed-up":
        low, high = row["interval"] or (value, value)
        return f"{value:.2f} [{low:.2f}, {high:.2f}]" if row["interval"] else f"{value:.2f}"
    if name.endswith("busy"):
        return f"{100 * value:.0f} %"
    return f"{value:.1f}" if name in ("steps per hour", "age mean") else str(value)
