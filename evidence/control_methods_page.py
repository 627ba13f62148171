"""The page of control's published methods: each beside its control, on worlds of CPU-seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import cache_folder
from assay.runs import write_json, write_text
from assay_control import (
    AWAC,
    AWR,
    BC,
    EDAC,
    FISOR,
    GGDSAC,
    IQL,
    MBPO,
    MOORL,
    MOPO,
    PPO,
    RO2O,
    SAC,
    TD3,
    TD3BC,
    ControlRun,
    Corridor,
    DecisionTransformer,
    Distracted,
    MultiObjectiveDT,
    OracleLabels,
    Pendulum,
    PreferredRewards,
    ReBRAC,
    ReCOIL,
    SnapshotStarts,
    VaGraM,
    dataset,
    effective_horizon,
    learn_shallow,
    normalised_awac,
    normalised_awr,
    world,
)
from evidence.control_page import Row, cell_of, show_scores

__all__ = ["make_page"]

SEEDS = 2
INTRODUCTION = """\
# Control: published methods beside their controls

Each number is the interquartile mean over {seeds} seeds with the interval of a bootstrap over them, which is narrow for want of
seeds and not of noise: read it as the range that was seen. Returns are of the last policy, in 20 episodes without noise.
A score of 0
is that of random actions, 100 that of the world's scripted controller. Settings of AWR, AWAC, DT, ReBRAC and FISOR were tried on
seed 0 first (3 to 10 runs each), and FISOR's bound of safety was set after its first run there; controls were not tuned.
CPU-seconds are of one run on one thread. `python -m evidence control_methods` makes this page."""
TITLES = {
    "advantage": """\
## Advantage-weighted regression

Mixed data of the pendulum, drawn evenly; 1,500 updates. As published, AWR's weights are at their clip or 0; `normalised_awr`
(`awr` on the command line) scales advantages by their deviation and bootstraps at a cut. AWAC learns in either form, and as
well.""",
    "models": """\
## Models and ensembles, offline

Mixed data of the pendulum, drawn evenly, rewards times .1; 2,000 updates, of MOPO 1,000 of them the model's. The controls are
MOPO without imagined rows, which is SAC on data, and EDAC with a weight of 0, which is SAC-N. What imagined rows or diverse
gradients add does not show here: rewards near 1 and the least of four critics are enough.""",
    "expert": """\
## Penalties of both networks

100 episodes of the pendulum's controller with noise; 1,500 updates. ReBRAC beside TD3+BC. ReBRAC's weights (1
and .1) were chosen by the returns of seed 0, which is one of these; TD3+BC's were not tuned, so this ranks nothing.""",
    "sequences": """\
## Sequences

Mixed data of the pendulum, segments drawn by the return of their episode; 1,000 updates.
The control is cloning by the same weights.""",
    "imitation": """\
## Imitation without rewards

190 random episodes and 10 of the controller, which are known to be the expert's, none with rewards; 2,000 updates of ReCOIL. The
control clones all of the data.""",
    "online": """\
## Data and acting

1,500 steps of the pendulum, which are few: SAC needs more. MOORL with mixed data, its control is a rate of 1; RO2O with
`pendulum/weak` learns 800 of the steps from data alone. SnapshotRL is SAC of which half of the episodes begin in states of the
controller, judged from plain starts. GGD-TD is SAC with 5 critics and learned tails. No gain over SAC shows but RO2O's.""",
    "distracted": """\
## Models where they matter

1,500 steps of a pendulum with ten coordinates that mean nothing; the model has layers of 16, rewards are times .1.""",
    "hazard": """\
## Constraints

`hazard/mixed`: three episodes in four of the data go through the hazard or are random. 2,000 updates, rewards times 5.""",
    "preferences": """\
## Rewards from comparisons

`pendulum/preferred`: 400 pairs compared, one answer in ten wrong, or one in two, which says nothing; 2,000 updates of IQL.""",
    "worlds": """\
## Applied worlds

Each learned online; the score of 100 is that of a proportional-integral controller (motor), the balance in closed form (die), the
greedy rule (offloading), the momentum rule (portfolio). `momentum 0` is the null test: nothing can be gained there but by holding
cash, whose return is 0. The delay line is learned from data of a slow controller, whose cloned policy is beside it. History
gains nothing there: to let in what is demanded is right whatever is on its way.""",
}


def _control_run(data: Any, method: Any, steps: int, **more: Any) -> ControlRun:
    return ControlRun(method=method, data=data, steps=steps, evaluate_every=0, episodes=20, checkpoint_every=10**6, **more)


def rows() -> list[Row]:
    """All runs of the page, for one seed."""
    mixed, weak = dataset("pendulum/mixed"), dataset("pendulum/weak")
    preferred: Any = dataset("pendulum/preferred")
    assert isinstance(preferred, PreferredRewards)
    out: list[Row] = []

    def add(table: str, steps: int, data: Any, *methods: tuple[str, Any], **more: Any) -> None:
        out.extend(Row(table=table, name=name, run=_control_run(data, m, steps, **more)) for name, m in methods)

    add("advantage", 1500, mixed, ("AWR, as published", AWR()), ("AWR, normalised", normalised_awr()))
    add("advantage", 1500, mixed, ("AWAC, as published", AWAC()), ("AWAC, normalised", normalised_awac()))
    add("models", 2000, mixed, ("MOPO", MOPO(reward=0.1)), ("MOPO, nothing imagined", MOPO(reward=0.1, share=0.0)))
    add("models", 2000, mixed, ("EDAC, 4 critics", EDAC(reward=0.1, ensemble=4)))
    add("models", 2000, mixed, ("SAC-N, 4 critics", EDAC(reward=0.1, ensemble=4, diversity=0.0)))
    add("expert", 1500, dataset("pendulum/expert"), ("ReBRAC", ReBRAC(actor_weight=1.0, critic_weight=0.1)), ("TD3+BC", TD3BC()))
    small: dict[str, Any] = {"by": "return", "context": 5, "batch": 32}
    add("sequences", 1000, mixed, ("decision transformer", DecisionTransformer(**small)), ("MODT", MultiObjectiveDT(**small)))
    add("sequences", 1000, mixed, ("BC, by return (RW)", BC(weight="return")))
    add("imitation", 2000, mixed, ("ReCOIL", ReCOIL()), ("BC", BC()))
    add("online", 1500, mixed, ("MOORL", MOORL()), ("MOORL, rate 1", MOORL(rate=1.0)), world=Pendulum())
    add("online", 1500, weak, ("RO2O, 4 critics", RO2O(ensemble=4, offline=800)), world=Pendulum())
    add("online", 1500, None, ("SAC", SAC()), ("GGD-TD", GGDSAC()), world=Pendulum())
    snapshots = SnapshotStarts(world=Pendulum())
    add("online", 1500, None, ("SnapshotRL", SAC()), world=snapshots, judged=Pendulum())
    place = Distracted(world=Pendulum())
    add("distracted", 1500, None, ("VaGraM", VaGraM(model_width=16)), ("MBPO", MBPO(model_width=16)), world=place)
    hazard = dataset("hazard/mixed")
    add("hazard", 2000, hazard, ("FISOR", FISOR(reward=5.0)), ("IQL", IQL(reward=5.0)), ("BC", BC()))
    half = replace(preferred, labeller=OracleLabels(error=0.5))
    add("preferences", 2000, preferred, ("IQL, learned rewards", IQL(reward=0.3)))
    add("preferences", 2000, half, ("IQL, answers at random", IQL(reward=0.3)))
    add("preferences", 2000, preferred.base, ("IQL, true rewards", IQL(reward=0.03)), ("BC", BC()))
    add("worlds", 2000, None, ("motor: TD3", TD3(discount=0.9)), world=world("motor"))
    add("worlds", 20, None, ("die: PPO", PPO(collect=64, discount=0.95)), world=world("die"))
    add("worlds", 20, None, ("offloading: PPO", PPO(discount=0.9)), world=world("offloading"))
    trade: Any = world("portfolio")
    add("worlds", 20, None, ("portfolio: PPO", PPO(discount=0.5)), world=trade)
    add("worlds", 20, None, ("portfolio, momentum 0: PPO", PPO(discount=0.5)), world=replace(trade, momentum=0.0))
    slow: Any = dataset("delay/conservative")
    add("worlds", 1500, slow, ("delay: IQL", IQL()), ("delay: BC, its data's policy", BC()))
    blind = replace(slow, world=replace(slow.world, history=False))
    add("worlds", 1500, blind, ("delay without history: IQL", IQL()))
    return out


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``control_methods.md`` and ``.json``.

    Returns:
        What is not as it should be, in words.
    """
    work = cache_folder() / "studies" / "control_methods"
    table: list[dict[str, Any]] = []
    for row in rows():
        cells = [cell_of(row, seed, work) for seed in range(SEEDS)]
        held = {n: [c[n] for c in cells] for n in ("return", "score", "cost")}
        table.append({"table": row.table, "name": row.name, **held, "cpu": sum(c["cpu"] for c in cells) / SEEDS})
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "control_methods.json", {"rows": table})
    write_text(folder / "control_methods.md", _page(table))
    return _failures(table)


def _page(table: Sequence[Mapping[str, Any]]) -> str:
    parts = [INTRODUCTION.format(seeds=SEEDS)]
    for key, title in TITLES.items():
        costs = key == "hazard"
        head = "| method | return | score | CPU-seconds |" + (" cost |" if costs else "")
        lines = [head, "|---|---|---|---|" + "---|" * costs]
        for row in (r for r in table if r["table"] == key):
            lines.append(f"| {row['name']} | {show_scores(row['return'])} | {show_scores(row['score'])} | {row['cpu']:.1f} |")
            lines[-1] += f" {np.mean(row['cost']):.2f} |" if costs else ""
        parts += [title, "\n".join(lines)]
    return "\n\n".join([*parts, _horizons()])


def _horizons() -> str:
    """Effective horizons of corridors, and what a shallow learner gets."""
    lines = [
        "| corridor | least k | J of k = 1, 2, 3 | best | SQIRL, that depth, 200 episodes | SQIRL, depth 1 |",
        "|---|---|---|---|---|---|",
    ]
    for place in (Corridor(), Corridor(decoy=0.02), Corridor(cells=6, horizon=10, decoy=0.05)):
        found = effective_horizon(place)
        depth = found.least or place.horizon
        first = ", ".join(f"{j:.2f}" for j in found.returns[:3])
        name = f"{place.cells} cells, horizon {place.horizon}, decoy {place.decoy:g}"
        got = [learn_shallow(place, k, 200)[0] for k in (depth, 1)]
        lines.append(f"| {name} | {found.least} | {first} | {found.best:.2f} | {got[0]:.2f} | {got[1]:.2f} |")
    return "## Effective horizon\n\nTables, exact but for the last two columns.\n\n" + "\n".join(lines)


def _failures(table: Sequence[Mapping[str, Any]]) -> list[str]:
    mean = {str(row["name"]): sum(row["score"]) / SEEDS for row in table if row["table"] != "preferences"}
    wanted = (
        ("AWR, normalised", "AWR, as published"),
        ("RO2O, 4 critics", "SAC"),
        ("ReBRAC", "TD3+BC"),
        ("delay: IQL", "delay: BC, its data's policy"),
    )
    return [
        f"{better} scores {mean[better]:.1f}, not above {other} with {mean[other]:.1f}"
        for better, other in wanted
        if mean[better] <= mean[other]
    ]
