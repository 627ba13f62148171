"""The page of control: what weighting, in-sample values and acting add, each beside its control."""

from __future__ import annotations

import json
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
    DVL,
    IQL,
    PPO,
    PRDC,
    RIQL,
    RLPD,
    SAC,
    TD3,
    TD3BC,
    WSRL,
    ControlRun,
    Corrupted,
    PointMaze,
    aggregate_scores,
    dataset,
    train,
    world,
)

__all__ = ["Row", "cell_of", "make_page", "show_scores"]

SEEDS = 5
INTRODUCTION = """\
# Control: data sets, values and acting

Each number is the interquartile mean over {seeds} seeds with a 95 % interval, of the last policy and never the best, played
without noise from starts that no collection has. A score of 0 is that of random actions, 100 that of the world's scripted
controller. CPU-seconds are of one run on one thread, on a machine that others used too. `python -m evidence control` makes this
page."""
TITLES = {
    "weighting": """\
## Weighted episodes in mixed data

190 random episodes of the pendulum and 10 of its controller, with noise; 2,500 updates. RW and AW draw rows of better episodes
more often (`WeightedEpisodes`); the control of each weighted row is the same method with rows drawn evenly.""",
    "stitching": """\
## Stitching in a maze

300 walks of at most 19 steps between places that have nothing to do with the goal; the way of tests is {cells} cells long, and
two walks happen to go it. The return is the share of tests that reach the goal within 100 steps; 4,000 updates, discount 0.95.
The controls are cloning, and IQL with the mean (tau 0.5) in place of the expectile.""",
    "published": """\
## Published methods beside their base methods

4,000 updates in the maze as above, 2,500 in the pendulum with episodes drawn by advantage. PRDC differs from TD3+BC in its
penalty alone, f-DVL from IQL in how the value is fitted. With PRDC's usual `beta` some row is near any action in a world of so
few dimensions; `beta` 100 was chosen by returns on two of the seeds.""",
    "corrupted": """\
## Corrupted data

The mixed data of the pendulum, drawn evenly, with three rows in ten wrong by up to 2 deviations of the next observation, or by up
to 20 of the reward. On the clean data IQL is in the first table. `sigma` 3 of RIQL was
chosen by returns on two of the seeds.""",
    "dip": """\
## From data to acting

40 episodes of a weak controller of the pendulum (`pendulum/weak`), 1,500 updates of Cal-QL on them, then 2,000 steps in the world
with one update each. `WSRL` acts 400 steps with the frozen policy before its first update; the control does not wait. The dip is
the worst evaluation after the switch, one in a hundred steps.""",
    "pendulum": """\
## Acting in the pendulum

Steps of the world: 3,000, of RLPD and its control 1,500, of PPO 64,000.""",
    "cart-pole": """\
## Acting with the cart-pole

PPO 30,720 steps of the world, DQN 15,000.""",
}
KILLED = """\
## Killed and resumed

`tests/control/test_control_kills.py` kills runs of IQL, TD3+BC and SAC 102 times at random writes; each goes on and ends bit
for bit as the one that was not killed (`make evidence`)."""


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
        ("TD3+BC", TD3BC(discount=0.95)),
        ("IQL, tau 0.5", IQL(tau=0.5, beta=10, discount=0.95)),
        ("IQL, tau 0.9", IQL(tau=0.9, beta=10, discount=0.95)),
    ):
        out.append(Row(table="stitching", name=name, run=_offline("maze/stitched", method, 4000)))
    maze = "maze/stitched"
    for name, data, method in (
        ("maze: f-DVL, chi2", maze, DVL(beta=10, discount=0.95)),
        ("maze: f-DVL, tv", maze, DVL(kind="tv", beta=10, discount=0.95)),
        ("maze: IQL, tau 0.9", maze, IQL(tau=0.9, beta=10, discount=0.95)),
        ("maze: PRDC", maze, PRDC(discount=0.95)),
        ("maze: TD3+BC", maze, TD3BC(discount=0.95)),
        ("pendulum: f-DVL, chi2", mixed, DVL(reward=0.03, weight="advantage")),
        ("pendulum: IQL", mixed, IQL(reward=0.03, weight="advantage")),
        ("pendulum: PRDC", mixed, PRDC(weight="advantage")),
        ("pendulum: TD3+BC", mixed, TD3BC(weight="advantage")),
        ("pendulum/expert: PRDC, beta 100", "pendulum/expert", PRDC(beta=100)),
        ("pendulum/expert: PRDC, beta 2", "pendulum/expert", PRDC()),
        ("pendulum/expert: TD3+BC", "pendulum/expert", TD3BC()),
    ):
        out.append(Row(table="published", name=name, run=_offline(data, method, 4000 if data == maze else 2500)))
    for what, scale in (("dynamics", 2.0), ("reward", 20.0)):
        for name, method in (("IQL", IQL(reward=0.03)), ("RIQL, sigma 3", RIQL(sigma=3.0, reward=0.03))):
            run = _offline(mixed, method)
            wrong = Corrupted(base=dataset(mixed), what=what, scale=scale)
            out.append(Row(table="corrupted", name=f"{name}, {what}", run=replace(run, data=wrong)))
    for name, method, steps in (
        ("WSRL, 400 steps frozen", WSRL(), 3500),
        ("WSRL, no warm-up", WSRL(warmup=0), 3500),
        ("RLPD, 2 critics", RLPD(ensemble=2), 2000),
        ("SAC", SAC(start=200), 2000),
    ):
        given = replace(
            _online("pendulum", method, steps, "pendulum/weak" if steps == 3500 or "RLPD" in name else ""), evaluate_every=100
        )
        out.append(Row(table="dip", name=name, run=given))
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
    found = [(row, [cell_of(row, seed, work) for seed in range(SEEDS)]) for row in rows()]
    folder.mkdir(parents=True, exist_ok=True)
    table = [
        {
            "table": row.table,
            "name": row.name,
            "return": [c["return"] for c in cells],
            "score": [c["score"] for c in cells],
            "cpu": sum(c["cpu"] for c in cells) / SEEDS,
            "dip": [_dip(row, c) for c in cells] if row.table == "dip" else [],
        }
        for row, cells in found
    ]
    write_json(folder / "control.json", {"rows": table})
    write_text(folder / "control.md", _page(table))
    return _failures(table)


def cell_of(row: Row, seed: int, work: Path) -> Mapping[str, Any]:
    """One run, or what it gave when it ran before."""
    run = replace(row.run, seed=seed)
    path = work / f"{run.identity()}-{run.steps}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            begun = time.process_time()
            outcome = train(run, Path(place) / "run")
            spent = time.process_time() - begun
            lines = (Path(place) / "run" / "evals.jsonl").read_text(encoding="utf-8").splitlines()
        metrics = outcome.metrics
        curve = [(line["step"], sum(line["returns"]) / len(line["returns"])) for line in map(json.loads, lines)]
        held = {"return": metrics["eval/return"], "score": metrics["eval/score"], "digest": outcome.digest, "cpu": spent}
        held |= {"cost": metrics.get("eval/cost", 0.0)}
        write_json(path, {**held, "curve": curve})
    return read_json(path)


def _dip(row: Row, cell: Mapping[str, Any]) -> float:
    """The worst evaluation while acting."""
    switch = next((step for step in range(1, row.run.steps) if row.run.method.compose().schedule.phase(step).collect), 0)
    return min(value for step, value in cell["curve"] if step >= switch)


def _page(table: Sequence[Mapping[str, Any]]) -> str:
    parts = [INTRODUCTION.format(seeds=SEEDS)]
    for key, title in TITLES.items():
        parts += [
            title.format(cells=PointMaze().distance((1, 1))),
            "| method | return | score | CPU-seconds |"
            + (" dip |" if key == "dip" else "")
            + "\n|---|---|---|---|"
            + "---|" * (key == "dip"),
        ]
        for row in (r for r in table if r["table"] == key):
            parts[-1] += f"\n| {row['name']} | {show_scores(row['return'])} | {show_scores(row['score'])} | {row['cpu']:.1f} |"
            parts[-1] += f" {show_scores(row['dip'])} |" if key == "dip" else ""
    return "\n\n".join([*parts, KILLED])


def show_scores(values: Sequence[float]) -> str:
    """Their interquartile mean with its interval."""
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
