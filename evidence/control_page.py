"""The page of control: what weighting, in-sample values and acting add, each beside its control."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.core import cache_folder
from assay.runs import read_json, write_json, write_text
from assay_control import (
    BC,
    DQN,
    IQL,
    PPO,
    RLPD,
    SAC,
    TD3,
    TD3BC,
    ControlRun,
    PointMaze,
    aggregate_scores,
    dataset,
    train,
    world,
)

__all__ = ["make_page"]

SEEDS = 5
MAZE = {"discount": 0.95}
INTRODUCTION = """\
# Control: data sets, values and acting

Each number is the interquartile mean over {seeds} seeds with a 95 % interval, of the last policy and never the best, played without
noise from starts that no collection has. A score of 0 is that of random actions, 100 that of the world's scripted controller.
CPU-seconds are of one run on one thread, on a machine that others used too. `python -m evidence control` makes this page."""
TITLES = {
    "weighting": """\
## Weighted episodes in mixed data

190 random episodes of the pendulum and 10 of its controller, with noise; 2,500 updates. RW and AW draw rows of better episodes more
often (`WeightedEpisodes`); the control of each weighted row is the same method with rows drawn evenly.""",
    "stitching": """\
## Stitching in a maze

300 walks of at most 19 steps between places that have nothing to do with the goal; the way of tests is {cells} cells long, and two
walks happen to go it. The return is the share of tests that reach the goal within 100 steps; 4,000 updates, discount 0.95. The
controls are cloning, and IQL with the mean (tau 0.5) in place of the expectile.""",
    "pendulum": """\
## Acting in the pendulum

Steps of the world: 3,000, of RLPD and its control 1,500, of PPO 64,000.""",
    "cart-pole": """\
## Acting with the cart-pole

PPO 30,720 steps of the world, DQN 15,000.""",
}
KILLED = """\
## Killed and resumed

`tests/control/test_control_kills.py` kills runs of IQL, TD3+BC and SAC 102 times at random writes; each goes on and ends bit for bit
as the one that was not killed (`make evidence`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A method in a table."""

    table: str
    name: str
    run: ControlRun


def _offline(data: str, method: Any, steps: int = 2500) -> ControlRun:
    return ControlRun(method=method, data=dataset(data), steps=steps, evaluate_every=0, episodes=50, checkpoint_every=10**6)


def _online(place: str, method: Any, steps: int, data: str = "") -> ControlRun:
    given = dataset(data) if data else None
    return ControlRun(
        method=method,
        data=given,
        world=world(place),
        steps=steps,
        evaluate_every=max(1, steps // 10),
        episodes=20,
        checkpoint_every=10**6,
    )


def rows() -> list[Row]:
    """All runs of the page, for one seed."""
    mixed = "pendulum/mixed"
    out: list[Row] = []
    for weight, title in (("even", "drawn evenly"), ("top", "best tenth alone"), ("advantage", "by advantage (AW)")):
        out.append(Row(table="weighting", name=f"BC, {title}", run=_offline(mixed, BC(weight=weight))))
        if weight != "top":
            out.append(Row(table="weighting", name=f"TD3+BC, {title}", run=_offline(mixed, TD3BC(weight=weight))))
            out.append(Row(table="weighting", name=f"IQL, {title}", run=_offline(mixed, IQL(weight=weight, reward=0.03))))
    for name, method in (
        ("BC", BC()),
        ("TD3+BC", TD3BC(**MAZE)),
        ("IQL, tau 0.5", IQL(tau=0.5, beta=10, **MAZE)),
        ("IQL, tau 0.9", IQL(tau=0.9, beta=10, **MAZE)),
    ):
        out.append(Row(table="stitching", name=name, run=_offline("maze/stitched", method, 4000)))
    for name, place, method, steps, data in (
        ("SAC", "pendulum", SAC(), 3000, ""),
        ("TD3", "pendulum", TD3(), 3000, ""),
        ("PPO, 8 copies", "pendulum", PPO(discount=0.95, reward=0.1, collect=200), 40, ""),
        ("RLPD, 10 critics, with pendulum/mixed", "pendulum", RLPD(), 1500, mixed),
        ("SAC, half the steps", "pendulum", SAC(), 1500, ""),
        ("PPO, 8 copies", "cart-pole", PPO(), 30, ""),
        ("DQN", "cart-pole", DQN(target=0.01, batch=64, fade=5000), 15000, ""),
    ):
        out.append(Row(table=place, name=name, run=_online(place, method, steps, data)))
    return out


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``control.md`` and ``control.json``.

    Returns:
        What is not as it should be, in words.
    """
    work = cache_folder() / "studies" / "control"
    found = [(row, [_cell(row, seed, work) for seed in range(SEEDS)]) for row in rows()]
    folder.mkdir(parents=True, exist_ok=True)
    table = [
        {
            "table": row.table,
            "name": row.name,
            "return": [c["return"] for c in cells],
            "score": [c["score"] for c in cells],
            "cpu": sum(c["cpu"] for c in cells) / SEEDS,
        }
        for row, cells in found
    ]
    write_json(folder / "control.json", {"rows": table})
    write_text(folder / "control.md", _page(table))
    return _failures(table)


def _cell(row: Row, seed: int, work: Path) -> Mapping[str, Any]:
    """One run, or what it gave when it ran before."""
    run = replace(row.run, seed=seed)
    path = work / f"{run.identity()}-{run.steps}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            begun = time.process_time()
            outcome = train(run, Path(place) / "run")
            spent = time.process_time() - begun
        metrics = outcome.metrics
        write_json(
            path, {"return": metrics["eval/return"], "score": metrics["eval/score"], "digest": outcome.digest, "cpu": spent}
        )
    return read_json(path)


def _page(table: Sequence[Mapping[str, Any]]) -> str:
    parts = [INTRODUCTION.format(seeds=SEEDS)]
    for key, title in TITLES.items():
        parts += [
            title.format(cells=PointMaze().distance((1, 1))),
            "| method | return | score | CPU-seconds |\n|---|---|---|---|",
        ]
        for row in (r for r in table if r["table"] == key):
            parts[-1] += f"\n| {row['name']} | {_shown(row['return'])} | {_shown(row['score'])} | {row['cpu']:.1f} |"
    return "\n\n".join([*parts, KILLED])


def _shown(values: Sequence[float]) -> str:
    found = aggregate_scores([[value] for value in values]).iqm
    return f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"


def _failures(table: Sequence[Mapping[str, Any]]) -> list[str]:
    mean = {(row["table"], row["name"]): sum(row["score"]) / SEEDS for row in table}
    wanted = [
        (("weighting", f"{method}, by advantage (AW)"), ("weighting", f"{method}, drawn evenly"))
        for method in ("BC", "TD3+BC", "IQL")
    ]
    wanted += [(("stitching", "IQL, tau 0.9"), ("stitching", other)) for other in ("BC", "TD3+BC", "IQL, tau 0.5")]
    out = [
        f"{better} scores {mean[better]:.1f}, not above {other} with {mean[other]:.1f}"
        for better, other in wanted
        if mean[better] <= mean[other]
    ]
    return out
