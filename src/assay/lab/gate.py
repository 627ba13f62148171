"""The learning gate: five seeds of the quickstart against its base, with the controls that must not learn.

A cell is one training run and one evaluation of its result with the true verifier on 512 held-out items. Its JSON is written
when it is done, so a gate that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.rollout import Sampling
from assay.lab.controls import FormatOnly, Inverted, RandomReward, Rewarded
from assay.measure.intervals import paired
from assay.recipes.sorting import SHOWN, base, quickstart
from assay.runtime.settings import LearnerSettings, Muon, Schedule
from assay.tasks import SortDigits
from assay.train.driver import resume, train
from assay.train.models import Built, cache_folder
from assay.train.policy import Policy
from assay.train.run import Evaluation, Reinforce, Run, WarmUp
from assay.train.storage import write_json

__all__ = ["CONTROLS", "Gate", "cell_run", "judge", "run_cell", "run_cells"]

SEEDS = (0, 1, 2, 3, 4)
CONTROLS = ("random", "format", "inverted", "longer")
PER_LEVEL = 64


def cell_run(kind: str, seed: int, steps: int | None = None) -> Run:
    """The run of a cell: ``rl`` (the quickstart), or a control from the same base.

    ``longer`` is the base's supervised stage once more, on the same pool of traces, at half its learning rate.
    """
    quick = quickstart(seed)
    stage = cast(Reinforce, quick.stages[0])
    if steps is not None:
        stage = replace(stage, steps=steps)
    quiet = replace(quick, evaluation=Evaluation(every=0, final_per_level=1), name=f"gate-{kind}")
    if kind == "rl":
        return replace(quick, name="gate-rl", stages=(stage,))
    if kind == "longer":
        shown = cast(WarmUp, base(seed).stages[0])
        learner = LearnerSettings(optimizer=Muon(lr=2e-3), schedule=Schedule(kind="linear"))
        return replace(quiet, stages=(replace(shown, steps=steps or shown.steps, gate=0.0, learner=learner),))
    truth = SortDigits().verifier()
    scorer = {"random": RandomReward(seed), "format": FormatOnly(truth), "inverted": Inverted(truth)}[kind]
    return replace(quiet, tasks=Rewarded(source=SortDigits(), scorer=scorer), stages=(stage,))


def run_cell(kind: str, seed: int, out: Path, steps: int | None = None) -> dict[str, Any]:
    """Trains and evaluates one cell under ``out``; returns its record, which is also ``out/KIND-SEED.json``."""
    record = out / f"{kind}-{seed}.json"
    if record.exists():
        return cast(dict[str, Any], json.loads(record.read_text(encoding="utf-8")))
    run, folder = cell_run(kind, seed, steps), out / f"{kind}-{seed}"
    outcome = resume(folder) if (folder / "run.toml").exists() else train(run, folder)
    sampling = Sampling(max_new_tokens=run.sampling.max_new_tokens)
    found: dict[str, Any] = {
        "kind": kind,
        "seed": seed,
        "steps": run.steps,
        "digest": outcome.digest,
        "cpu_seconds": _cpu(folder),
        "machine": f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    for name, where in (("base", folder / "start"), ("now", folder)):
        policy = Policy(where)
        for mode, n in (("greedy", 0), ("sampled", 1)):
            found[f"{name}_{mode}"] = policy.evaluate(SortDigits(), n=n, per_level=PER_LEVEL, sampling=sampling)
    if isinstance(run.model, Built):
        found["base_cpu_seconds"] = _cpu(_base_folder(run.model))
    write_json(record, found)
    return found


def run_cells(cells: Sequence[tuple[str, int, int | None]], out: Path, workers: int = 2) -> list[dict[str, Any]]:
    """Runs cells (kind, seed, steps) in ``workers`` processes, one thread each; finished ones are read, not run.

    Raises:
        RuntimeError: a cell failed; with the end of what it printed.
    """
    out.mkdir(parents=True, exist_ok=True)
    waiting, running = list(cells), list[tuple[str, subprocess.Popen[str]]]()
    while waiting or running:
        while waiting and len(running) < workers:
            kind, seed, steps = waiting.pop(0)
            words = [sys.executable, "-m", "assay.lab", "cell", kind, str(seed), str(out), *([str(steps)] if steps else [])]
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
            log = (out / f"{kind}-{seed}.log").open("w")
            running.append((f"{kind}-{seed}", subprocess.Popen(words, stdout=log, stderr=log, text=True, env=environment)))
        name, process = running.pop(0)
        if process.wait():
            for _, other in running:
                other.terminate()
            tail = (out / f"{name}.log").read_text(encoding="utf-8")[-2000:]
            raise RuntimeError(f"cell {name} failed with status {process.returncode}:\n{tail}")
    return [cast(dict[str, Any], json.loads((out / f"{k}-{s}.json").read_text(encoding="utf-8"))) for k, s, _ in cells]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What the cells say, held against the bars.

    Attributes:
        greedy, base, hardest: greedy accuracy after RL, before it, and after it on the hardest level, by seed.
        controls: control to the paired 95 % interval of its greedy accuracy over the base's.
        cpu_seconds: of warm-up and RL by seed, evaluation left out.
    """

    greedy: Mapping[int, float]
    base: Mapping[int, float]
    hardest: Mapping[int, float]
    controls: Mapping[str, tuple[float, float]]
    cpu_seconds: Mapping[int, float]

    def failures(self) -> list[str]:
        """Each bar that is not met, in words; empty when the gate is passed."""
        found: list[str] = []
        if not np.median(list(self.greedy.values())) >= 0.90:
            found.append(f"median greedy pass@1 {np.median(list(self.greedy.values())):.3f} < .90")
        found += [f"seed {s}: greedy pass@1 {v:.3f} < .80" for s, v in self.greedy.items() if v < 0.80]
        found += [f"seed {s}: base {v:.3f} > .60" for s, v in self.base.items() if v > 0.60]
        if sum(v >= 0.5 for v in self.hardest.values()) < min(4, len(self.hardest)):
            found.append(f"hardest level >= .5 in only {sum(v >= 0.5 for v in self.hardest.values())} seeds: {dict(self.hardest)}")
        found += [f"control {k}: upper end {hi:+.3f} > +.03" for k, (_, hi) in self.controls.items() if hi > 0.03]
        return found


def judge(records: Sequence[Mapping[str, Any]]) -> Gate:
    """The gate's numbers from its cells' records."""
    rl = {int(r["seed"]): r for r in records if r["kind"] == "rl"}
    controls = {str(r["kind"]): r for r in records if r["kind"] != "rl"}
    top = max(item["level"] for r in rl.values() for item in r["now_greedy"])
    return Gate(
        greedy={s: accuracy(r["now_greedy"]) for s, r in rl.items()},
        base={s: accuracy(r["base_greedy"]) for s, r in rl.items()},
        hardest={s: accuracy([i for i in r["now_greedy"] if i["level"] == top]) for s, r in rl.items()},
        controls={k: _interval(r) for k, r in controls.items()},
        cpu_seconds={s: r["cpu_seconds"] + r.get("base_cpu_seconds", 0.0) for s, r in rl.items()},
    )


def accuracy(items: Sequence[Mapping[str, Any]]) -> float:
    """Share of the items whose greedy answer is right."""
    return float(np.mean([item["values"][0] >= 1.0 for item in items]))


def _interval(record: Mapping[str, Any]) -> tuple[float, float]:
    """Paired 95 % interval over items of a control's greedy accuracy minus its base's."""
    before, now = ({i["id"]: float(i["values"][0] >= 1.0) for i in record[f"{name}_greedy"]} for name in ("base", "now"))
    found = paired(before, now).difference
    return found.low, found.high


def _cpu(folder: Path) -> float:
    """CPU seconds that a run's steps took, evaluation left out."""
    last = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    return float(json.loads(last)["metrics"]["time/cpu"])


def _base_folder(model: Built) -> Path:
    return cache_folder() / "base" / model.key


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
