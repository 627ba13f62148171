"""Run folders made by formula: healthy, collapsed, killed early."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.measure import plots

RUN_TOML = """
name = "sort"
seed = 3
threads = 1
checkpoint_every = 100

[model]
kind = "assay.recipes.quickstart:Base"
layers = 4

[tasks]
kind = "assay.tasks.sorting:Sorting"
levels = [2, 3, 4, 5, 6, 7, 8, 9, 10]

[[stages]]
kind = "assay.train.run:WarmUp"
steps = 20

[[stages]]
kind = "assay.train.run:Reinforce"
steps = 200
groups = 32
group_size = 8

[evaluation]
threshold = 1.0
"""


FIGURE = plots._figure


@pytest.fixture(autouse=True)
def figures_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests look at what other tests leave empty."""
    monkeypatch.setattr(plots, "_figure", FIGURE)


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


def skill(kind: str, t: float, level: int) -> float:
    """Probability of solving a level at share t of the run."""
    easy = 1 / (1 + math.exp(level - 5.5))
    if kind == "collapsed":
        return easy * (1 - 0.75 * max(0.0, t - 0.3) / 0.7) if t > 0.3 else min(1.0, easy * (1 + t))
    return easy + (1 / (1 + math.exp(0.8 * (level - 12.5))) - easy) * (1 - math.exp(-3.2 * t))


def metric_line(kind: str, step: int, rng: np.random.Generator) -> dict[str, Any]:
    t = (step - 20) / 200
    p = float(np.mean([skill(kind, t, level) for level in range(2, 11)]))
    bad = kind == "collapsed"
    reward = min(1.0, max(0.0, p + rng.normal(0, 0.03)))
    entropy = (0.55 * math.exp(-9 * t) if bad else 0.55 - 0.35 * t) + 0.01 * abs(rng.normal())
    generate, backward = 0.21 + 0.01 * rng.random(), 0.17 + 0.01 * rng.random()
    metrics = {
        "reward/mean": reward,
        "reward/std": math.sqrt(reward * (1 - reward)),
        "signal/fraction": 0.04 if bad and t > 0.6 else 0.75 - 0.4 * t,
        "length/mean": 14 + (30 * t if bad else 4 * t) + rng.normal(0, 0.3),
        "length/mean_right": 13 + 3 * t,
        "length/mean_wrong": 16 + (33 * t if bad else 6 * t),
        "length/truncated": 0.35 * t if bad else 0.004,
        "entropy/mean": entropy,
        "fault/rate": 0.06 * t if bad else 0.0,
        "fault/policy": 0.0,
        "format/rate": 0.97 - (0.5 * t if bad else 0),
        "loss/total": rng.normal(0, 1e-5),
        "grad/norm": 0.3 + 0.1 * rng.random(),
        "lr": 1e-3,
        "policy/clip_fraction": 0.02 + 0.01 * t,
        "kl/base": 0.4 * t + (3 * t * t if bad else 0),
        "kl/base_train": 0.3 * t + (3 * t * t if bad else 0),
        "engine/mismatch_k3": 1e-9,
        "engine/max_ratio": 1.0001,
        "ess": 0.99,
        "waste/rows_filtered": 0.1 + 0.2 * t,
        "waste/rows_skipped": 0.25 + 0.4 * t + 0.05 * rng.random(),
        "curriculum/groups": 32.0 * step,
        "proof/state": 0.0 if bad and step % 7 == 0 else 1.0,
        "time/generate": generate,
        "time/forward_backward": backward,
        "time/optimizer": 0.012,
        "time/score": 0.004,
        "time/other": 0.009,
        "time/step": generate + backward + 0.025,
        "time/cpu": 4.0 + 0.43 * (step - 20),
        "tokens/sampled": 4200.0,
        "tokens/trained": 2500.0,
    }
    return {"step": step, "stage": "rl", "metrics": metrics}


def eval_line(kind: str, step: int, mode: str, per_level: int) -> dict[str, Any]:
    t = max(0.0, (step - 20) / 200)
    items = []
    for level in range(2, 11):
        p = skill(kind, t, level) ** (1.0 if mode == "greedy" else 1.3)
        for i in range(per_level):
            luck = np.random.default_rng([level, i, mode == "greedy"]).random((1 if mode == "greedy" else 4,))
            items.append({"id": f"sort-{level}-{i}", "arm": "sort", "level": level, "values": (luck < p).astype(float).tolist()})
    return {"step": step, "split": "test", "mode": mode, "items": items}


def rollout_line(kind: str, step: int, i: int) -> dict[str, Any]:
    rng = np.random.default_rng([step, i])
    level = int(rng.integers(2, 11))
    digits = rng.integers(0, 10, level).tolist()
    right = rng.random() < skill(kind, max(0.0, (step - 20) / 200), level)
    shown = sorted(digits) if right else digits[::-1]
    steps = "\n".join(f"take {d}" for d in sorted(digits)) if right else "take <3>\n" * 3
    fault = "verifier" if kind == "collapsed" and i == 3 else "none"
    return {
        "step": step,
        "stage": "rl",
        "id": f"s{step}/g{i}/r0",
        "task": f"sort-{level}-{i}",
        "arm": "sort",
        "level": level,
        "prompt": "S" + "".join(map(str, digits)) + ">",
        "text": f"{steps}\n={''.join(map(str, shown))}",
        "stop": "done" if right or i % 2 else "length",
        "components": {} if fault != "none" else {"correct": float(right), "format": 1.0},
        "fault": fault,
        "length": 3 * level,
    }


def build(folder: Path, kind: str = "healthy", last: int = 220) -> Path:
    """A run folder of 20 warm-up and up to 200 RL steps."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    (folder / "run.toml").write_text(RUN_TOML, encoding="utf-8")
    versions = {
        "assay": "0.1.0",
        "python": "3.11.2",
        "numpy": "2.4.6",
        "torch": "2.13.0",
        "machine": "x86_64, 2 cores",
        "threads": 1,
    }
    (folder / "versions.json").write_text(json.dumps(versions), encoding="utf-8")
    warm = [
        {
            "step": s,
            "stage": "warm-up",
            "metrics": {"loss/total": 2.2 * math.exp(-s / 7) + 0.1, "grad/norm": 1.0, "time/step": 0.2, "time/cpu": 0.2 * s},
        }
        for s in range(1, min(20, last) + 1)
    ]
    lines = [*warm, *(metric_line(kind, s, rng) for s in range(21, last + 1))]
    steps = [s for s in (20, 45, 70, 95, 120, 145, 170, 195, 220) if s <= last]
    evals = [eval_line(kind, s, m, 32 if s in (20, 220) else 12) for s in steps for m in ("greedy", "sampled")]
    for e in evals:
        for line in lines:
            if line["step"] == e["step"]:
                line["metrics"][f"eval/{e['mode']}/all"] = float(np.mean([np.mean(i["values"]) for i in e["items"]]))
    write_lines(folder / "metrics.jsonl", lines)
    write_lines(folder / "evals.jsonl", evals)
    write_lines(folder / "rollouts.jsonl", [rollout_line(kind, s, i) for s in steps for i in range(8)])
    events = [{"step": 0, "kind": "start", "message": "run started"}]
    if last >= 220:
        events.append({"step": 220, "kind": "end", "message": "all stages are done"})
    write_lines(folder / "events.jsonl", events)
    return folder


@pytest.fixture(scope="session")
def build_run() -> Callable[..., Path]:
    """``build``: writes a run folder at a path."""
    return build


@pytest.fixture
def run_folder(tmp_path: Path) -> Callable[..., Path]:
    """Builds a run folder: ``run_folder(kind, last)``."""

    def make(kind: str = "healthy", last: int = 220, name: str = "run") -> Path:
        return build(tmp_path / name, kind, last)

    return make
