"""The page of agents: the recipe `tools`, its controls, and published methods trained on it.

    python -m evidence.agents_page --seeds 1 2 3 4 5 [--arms true random lies ...] [--work FOLDER]

Each run is made once and kept in the work folder. The page and its numbers are written from all that are there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.core import Sampling, TaskSource
from assay.lab import RandomReward, Rewarded
from assay.measure import student
from assay.objective import DropTruncated, aepo, dapo, delethink
from assay.recipes import SHOWN_BILLS, lookups, quickstart, tools, tools_reseek, tools_rlvmr, tools_scaling_inter
from assay.rollout import Branching, Chunks, PlayerSpec, Summarise
from assay.runs import write_json, write_text
from assay.train import Evaluation, Policy, Reinforce, Run, train
from assay_tasks import Bills, JudgedBills, KeyValue, SortDigits

__all__ = ["ARMS", "RECIPE", "SYSTEMS", "Arm", "main", "page"]

PER_LEVEL = 32
TUNED_ON = 0
"""The seed by which the settings of the recipe `tools` were chosen; it stands in no mean."""


def _random(run: Run) -> Run:
    return replace(run, tasks=Rewarded(source=run.tasks, scorer=RandomReward()))


def _lying(seed: int) -> Run:
    return replace(tools(seed), tasks=Bills(lies=1.0))


def _with(run: Run, **changes: Any) -> Run:
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    return replace(run, stages=(replace(stage, **changes),))


def _aepo(seed: int) -> Run:
    return _with(tools(seed), objective=aepo(), sampler=Branching(tau=0.4))


def _supo(seed: int) -> Run:
    """Look-ups in a working context of 16 tokens: two look-ups do not fit, and what a summary leaves out is lost."""
    context = Summarise(context=16, most=2, most_evaluated=4, instruction=">", shown="{summary}")
    return _with(lookups(seed), objective=dapo(overlong=DropTruncated()), sampler=PlayerSpec(context=context))


def _delethink(seed: int) -> Run:
    """Lists of digits in chunks of 8 tokens, of which the first and the last three are carried into the next."""
    run = _with(quickstart(seed), objective=delethink(), minibatches=2, sampler=PlayerSpec(context=Chunks(head=1, tail=3)))
    return replace(run, sampling=Sampling(max_new_tokens=8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One kind of run.

    Attributes:
        what: it is, in words.
        made: of a seed.
        steps: of reinforcement learning.
        expected: what it was expected to do to levels that were never shown, written before its run: ``up`` or ``not up``.
        tasks: by which it is judged.
        shown: levels of them that the base was shown.
    """

    what: str
    made: Callable[[int], Run]
    steps: int
    expected: str
    tasks: TaskSource = field(default_factory=Bills)
    shown: tuple[int, ...] = SHOWN_BILLS


_KEYS: dict[str, Any] = {"tasks": KeyValue(), "shown": (1,)}
_JUDGED: dict[str, Any] = {"tasks": JudgedBills(), "shown": (1, 2)}
_DIGITS: dict[str, Any] = {"tasks": SortDigits(), "shown": (3, 4, 5)}

RECIPE: Mapping[str, Arm] = {
    "true": Arm(what="the recipe", made=tools, steps=240, expected="up"),
    "random": Arm(what="control: rewards drawn at random", made=lambda seed: _random(tools(seed)), steps=120, expected="not up"),
    "lies": Arm(what="control: tools that answer with another number", made=_lying, steps=120, expected="not up"),
}
"""The recipe and its controls, over several seeds."""

SYSTEMS: Mapping[str, Arm] = {
    "rlvmr": Arm(what="RLVMR (`tools-rlvmr`)", made=tools_rlvmr, steps=240, expected="up"),
    "rlvmr-random": Arm(
        what="control of RLVMR: rewards drawn at random",
        made=lambda seed: _random(tools_rlvmr(seed)),
        steps=120,
        expected="not up",
    ),
    "scaling-inter": Arm(
        what="AgentGym-RL's ScalingInter-RL (`tools-scaling-inter`)", made=tools_scaling_inter, steps=240, expected="up"
    ),
    "aepo": Arm(what="AEPO (`tools` with `aepo` and `Branching`)", made=_aepo, steps=120, expected="up"),
    "aepo-random": Arm(
        what="control of AEPO: rewards drawn at random", made=lambda seed: _random(_aepo(seed)), steps=60, expected="not up"
    ),
    "supo": Arm(what="SUPO (`lookups` with `Summarise`)", made=_supo, steps=400, expected="up", **_KEYS),
    "supo-random": Arm(
        what="control of SUPO: rewards drawn at random",
        made=lambda seed: _random(_supo(seed)),
        steps=200,
        expected="not up",
        **_KEYS,
    ),
    "reseek": Arm(what="ReSeek (`tools-reseek`)", made=tools_reseek, steps=120, expected="up", **_JUDGED),
    "reseek-random": Arm(
        what="control of ReSeek: outcomes drawn at random, judgements paid as before",
        made=lambda seed: _random(tools_reseek(seed)),
        steps=60,
        expected="not up",
        **_JUDGED,
    ),
    "delethink": Arm(
        what="Delethink (`quickstart` with `delethink` and `Chunks`)", made=_delethink, steps=120, expected="up", **_DIGITS
    ),
    "delethink-random": Arm(
        what="control of Delethink: rewards drawn at random",
        made=lambda seed: _random(_delethink(seed)),
        steps=60,
        expected="not up",
        **_DIGITS,
    ),
}
"""Published systems, each with a control, on one seed."""

ARMS: Mapping[str, Arm] = {**RECIPE, **SYSTEMS}


def measure(name: str, seed: int, work: Path) -> dict[str, Any]:
    """One run, or what is kept of it: greedy accuracy by honest tools before and behind, at bills shown and never shown."""
    kept = work / f"{name}-{seed}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    arm = ARMS[name]
    run = arm.made(seed)
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    quiet = Evaluation(every=0, final_per_level=1, kl_to_base=False)
    run = replace(run, stages=(replace(stage, steps=arm.steps),), evaluation=quiet)
    done = train(run, work / f"{name}-{seed}", progress=False)
    lines = [json.loads(line)["metrics"] for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    row = {
        "arm": name,
        "seed": seed,
        "steps": arm.steps,
        "before": _by_level(arm, run, done.folder / "start"),
        "after": _by_level(arm, run, done.folder),
        "cpu": lines[-1]["time/cpu"],
        "tokens": sum(line.get("tokens/sampled", 0.0) for line in lines),
        "calls": lines[-1].get("tools/calls"),
    }
    write_json(kept, row)
    return row


def _by_level(arm: Arm, run: Run, folder: Path) -> dict[str, float]:
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    items = Policy(folder).evaluate(
        arm.tasks, n=0, per_level=PER_LEVEL, max_turns=run.max_turns, sampling=run.sampling, player=stage.sampler.player
    )
    right: dict[str, list[bool]] = {}
    for item in items:
        right.setdefault(str(item["level"]), []).append(item["values"] == [1.0])
    return {level: sum(found) / len(found) for level, found in right.items()}


def _mean(row: Mapping[str, Any], when: str, shown: bool) -> float:
    arm = ARMS[row["arm"]]
    found = [share for level, share in row[when].items() if (int(level) in arm.shown) is shown]
    return sum(found) / len(found)


def page(rows: list[dict[str, Any]]) -> str:
    """The page's text."""
    lines = [
        "# Agents that use tools",
        "",
        "The recipe `tools`: a model of 0.34M weights is shown 3,000 noisy traces of bills of "
        f"{SHOWN_BILLS[0]} to {SHOWN_BILLS[-1]} lines, each looked up",
        "by one tool and added by another, then learns from its own rollouts at bills of up to 8 lines. Judged greedily, with",
        f"honest tools, on {PER_LEVEL} held-out bills of each length. *Never shown* is the mean over bills of 4 to 8 lines. What",
        "an arm should do was written into the script before its run. A control is the same run with one thing changed, the",
        "reward or what the tools answer while it learns; it has half the steps.",
        "",
        "    python -m evidence.agents_page --seeds 1 2 3 4 5 --arms true random lies",
        "",
        *_table(rows, RECIPE),
        "",
        *_means(rows),
        "",
        "## Published systems",
        "",
        "Each on one seed beside a control, at tasks that its base was never shown: bills as above; for ReSeek bills of 3 and 4",
        "lines whose look-ups may bring another line; for Delethink lists of 6 to 10 digits in chunks of 8 tokens; for SUPO",
        "look-ups by two and three keys, which in a working context of 16 tokens need summaries (100 steps, tried first, brought",
        "two keys to 0.125 and three to none).",
        "",
        "    python -m evidence.agents_page --seeds 0 --arms rlvmr rlvmr-random scaling-inter aepo aepo-random ...",
        "",
        *_table(rows, SYSTEMS),
        "",
        *_notes(rows),
    ]
    return "\n".join([*lines, ""])


def _table(rows: list[dict[str, Any]], arms: Mapping[str, Arm]) -> list[str]:
    lines = [
        "| arm | seed | steps | never shown: base | trained | expected | shown: base | trained | CPU-s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in arms.items():
        for row in sorted((r for r in rows if r["arm"] == name), key=lambda r: r["seed"]):
            shares = [f"{_mean(row, when, shown):.3f}" for shown in (False, True) for when in ("before", "after")]
            cells = [arm.what, str(row["seed"]), str(row["steps"]), *shares[:2], arm.expected, *shares[2:], f"{row['cpu']:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _means(rows: list[dict[str, Any]]) -> list[str]:
    """Means over the seeds that no setting was chosen on, with Student's intervals of 95 %."""
    lines = [f"Means over the seeds but {TUNED_ON}, on which the settings were chosen, with Student's intervals of 95 %:", ""]
    for name, arm in RECIPE.items():
        found = [row for row in rows if row["arm"] == name and row["seed"] != TUNED_ON]
        if len(found) < 2:
            continue
        before, after = ([_mean(row, when, shown=False) for row in found] for when in ("before", "after"))
        gain = student([b - a for a, b in zip(before, after, strict=True)])
        lines.append(
            f"- {arm.what}, {len(found)} seeds: base {student(before)}, trained {student(after)}, gain {gain}; "
            f"at most {max(row['cpu'] for row in found):.0f} CPU-s"
        )
    return [*lines, "", *PREDICTION, _verdict(rows)]


PREDICTION = (
    "Predicted before the runs of seeds 1 to 5: the base solves at most 0.3 of what it was never shown and the recipe brings",
    "it to at least 0.8, in the mean of the seeds, in at most 600 CPU-s of a seed; each control ends no higher than its base.",
)


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Which parts of the prediction came true, over the seeds that there are."""
    new = [row for row in rows if row["seed"] != TUNED_ON]
    own = [row for row in new if row["arm"] == "true"]
    flat = [_mean(r, "after", shown=False) <= _mean(r, "before", shown=False) for r in new if r["arm"] in ("random", "lies")]
    parts = {
        "base": sum(_mean(row, "before", shown=False) for row in own) <= 0.3 * len(own),
        "trained": sum(_mean(row, "after", shown=False) for row in own) >= 0.8 * len(own),
        "CPU-s": all(row["cpu"] <= 600 for row in own),
        "controls": bool(flat) and all(flat),
    }
    said = ", ".join(f"{name} {'yes' if true else 'no'}" for name, true in parts.items())
    return f"So it came over {len(own)} seeds of the recipe and {len(flat)} runs of controls: {said}."


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    unmet = [f"{row['arm']} (seed {row['seed']})" for row in rows if not _as_expected(row)]
    said = "Each arm did what was expected." if not unmet else f"Not as expected: {', '.join(unmet)}."
    fixed, grows = (
        [_mean(r, "after", shown=False) for r in rows if (r["arm"], r["seed"]) == (arm, 0)] for arm in ("true", "scaling-inter")
    )
    horizon = (
        [
            f"The control of ScalingInter-RL is the recipe above, with the same seed and a fixed horizon: {fixed[0]:.3f}, and "
            f"{grows[0]:.3f} with one that grows.",
            "",
        ]
        if fixed and grows
        else []
    )
    return [
        *horizon,
        f"{said} CPU-s are those of learning and of evaluations inside the run, and of the base where it was not built",
        "yet (40), on two cores beside other work.",
    ]


def _as_expected(row: Mapping[str, Any]) -> bool:
    gain = _mean(row, "after", shown=False) - _mean(row, "before", shown=False)
    return (gain > 0.1) == (ARMS[row["arm"]].expected == "up")


def main() -> None:
    """Makes runs that are not there yet, and writes the page."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--arms", nargs="+", default=list(RECIPE), choices=list(ARMS))
    parser.add_argument("--work", type=Path, default=Path("runs/agents-page"))
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for name in given.arms:
        for seed in given.seeds:
            print(json.dumps(measure(name, seed, given.work)), flush=True)
    rows = [json.loads(file.read_text()) for file in sorted(given.work.glob("*.json"))]
    write_json(given.out / "agents.json", {"rows": rows})
    write_text(given.out / "agents.md", page(rows))


if __name__ == "__main__":
    main()
