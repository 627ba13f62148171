"""Does a stated confidence learn the true rate? Runs of the recipe ``confidence`` by the Brier reward, and a control."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.core import cache_folder
from assay.recipes import confidence
from assay.runs import write_json, write_text
from assay.scorers import FromTasks
from assay.train import Run, train

__all__ = ["ARMS", "SEEDS", "failures", "make_page", "row_of", "run_of"]

SEEDS = (0, 1, 2, 3, 4)

ARMS: Mapping[str, str] = {
    "RLCR": "BrierReward: correctness minus the Brier score",
    "control": "correctness and the stated form, half each",
}

HALF = 0.5
"""Share of the control's ECE that the recipe's may have, at most; predicted before the runs of the page."""

EQUAL = 0.02
"""Difference in sampled accuracy, averaged over seeds, that counts as none; predicted before the runs of the page."""

_NAMES = ("ece", "brier", "auroc", "confidence", "stated")


def run_of(arm: str, seed: int) -> Run:
    """The recipe, or the same with a reward that a confidence does not change."""
    run = confidence(seed)
    if arm == "RLCR":
        return run
    (stage,) = run.stages
    objective = replace(
        stage.objective, scalarise=replace(stage.objective.scalarise, weights=(("correct", 0.5), ("stated", 0.5)))
    )
    return replace(run, name="confidence-control", stages=(replace(stage, reward=FromTasks(), objective=objective),))


def row_of(folder: Path, arm: str, seed: int) -> dict[str, Any]:
    """What a run's last evaluation, sampled answers to held-out urns, says."""
    lines = [json.loads(line)["metrics"] for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [m for m in lines if "calibration/sampled/ece" in m]
    end, start = found[-1], found[0]
    return {
        "arm": arm,
        "seed": seed,
        "accuracy": end["eval/sampled/all"],
        **{name: end[f"calibration/sampled/{name}"] for name in _NAMES},
        "start_ece": start["calibration/sampled/ece"],
    }


def make_page(folder: Path) -> list[str]:
    """Runs what is not done yet, and writes ``calibration.md`` and ``calibration.json``; about 40 CPU-seconds a run.

    Returns:
        What is not as predicted, in words.
    """
    work = cache_folder() / "studies" / "calibration"
    rows: list[dict[str, Any]] = []
    for seed in SEEDS:
        for arm in ARMS:
            place = work / f"{arm}-{seed}"
            if not _done(place):
                train(run_of(arm, seed), place)
            rows.append(row_of(place, arm, seed))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "calibration.json", {"rows": rows})
    write_text(folder / "calibration.md", page(rows))
    return failures(rows)


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is not as predicted."""
    found: list[str] = []
    pairs = [(_row(rows, "RLCR", seed), _row(rows, "control", seed)) for seed in sorted({r["seed"] for r in rows})]
    for ours, control in pairs:
        if ours["ece"] > HALF * control["ece"]:
            found.append(f"seed {ours['seed']}: ECE {ours['ece']:.3f} is above {HALF} of the control's {control['ece']:.3f}")
    gap = sum(ours["accuracy"] - control["accuracy"] for ours, control in pairs) / len(pairs)
    if abs(gap) > EQUAL:
        found.append(f"mean accuracy differs by {gap:+.3f} from the control's")
    return found


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page as text."""
    heads = ("arm", "seed", "accuracy", "ECE", "Brier", "AUROC", "mean confidence", "ECE at the start")
    lines = [
        f"| {r['arm']} | {r['seed']} | {r['accuracy']:.3f} | {r['ece']:.3f} | {r['brier']:.3f} | {r['auroc']:.3f} | "
        f"{r['confidence']:.3f} | {r['start_ece']:.3f} |"
        for r in sorted(rows, key=lambda r: (r["arm"] != "RLCR", r["seed"]))
    ]
    arms = "\n".join(f"- **{name}**: {what}." for name, what in ARMS.items())
    unmet = failures(rows)
    said = "Both predictions held." if not unmet else "Not met: " + "; ".join(unmet) + "."
    return f"""# Does a stated confidence learn the true rate?

    python -m evidence calibration

The recipe `confidence` (`assay train confidence`) asks which of two colours will be drawn from an urn of ten balls, and how sure
the answer is. The commoner colour is drawn in 5, 7 or 9 of 10 cases, and nobody can know more. The base names colours and states
confidences that know nothing. Two rewards, five seeds each, 300 steps:

{arms}

Settings were chosen by trial on seed 0. Predicted before the runs of this page: the ECE of RLCR is at most {HALF:g} of the
control's on every seed, and mean accuracy differs by at most {EQUAL:g}. {said}

| {" | ".join(heads)} |
|{"---|" * len(heads)}
{chr(10).join(lines)}

Four answers to each of about 770 held-out urns. The best accuracy on them is about .70. A Brier score of a forecaster who knows
each urn's rate is about .19; one who states the mean rate for every urn has an AUROC of .5.

Limits: a small model, urns of three kinds, and an entropy bonus of .02 that the paper does not use; without it all confidences
become one rate.
"""


def _row(rows: Sequence[Mapping[str, Any]], arm: str, seed: int) -> Mapping[str, Any]:
    return next(r for r in rows if r["arm"] == arm and r["seed"] == seed)


def _done(folder: Path) -> bool:
    return (folder / "model").exists()
