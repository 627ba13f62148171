"""The learning gate: five seeds against their bases, with the controls that must not learn, held against the bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.measure.intervals import paired_difference

__all__ = ["GATE_SEEDS", "LearningGate", "accuracy", "change", "judge"]

GATE_SEEDS = (0, 1, 2, 3, 4)
"""Of the gate's runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningGate:
    """What the cells say, held against the bars.

    Attributes:
        greedy, base, hardest: greedy accuracy after RL, before it, and after it on the hardest level, by seed.
        controls: control and seed to the paired 95 % interval of its greedy accuracy over the base's.
        cpu_seconds: of warm-up and RL by seed, evaluation left out.
    """

    greedy: Mapping[int, float]
    base: Mapping[int, float]
    hardest: Mapping[int, float]
    controls: Mapping[tuple[str, int], tuple[float, float]]
    cpu_seconds: Mapping[int, float]

    def failures(self) -> list[str]:
        """Each bar that is not met, in words; empty when the gate is passed."""
        found: list[str] = []
        if len(self.greedy) < len(GATE_SEEDS) or not self.controls:
            found.append(f"only {len(self.greedy)} of {len(GATE_SEEDS)} seeds and {len(self.controls)} controls were run")
        if not np.median(list(self.greedy.values())) >= 0.90:
            found.append(f"median greedy pass@1 {np.median(list(self.greedy.values())):.3f} < .90")
        found += [f"seed {s}: greedy pass@1 {v:.3f} < .80" for s, v in self.greedy.items() if v < 0.80]
        found += [f"seed {s}: base {v:.3f} > .60" for s, v in self.base.items() if v > 0.60]
        if sum(v >= 0.5 for v in self.hardest.values()) < min(4, len(self.hardest)):
            found.append(
                f"hardest level >= .5 in only {sum(v >= 0.5 for v in self.hardest.values())} seeds: {dict(self.hardest)}"
            )
        found += [f"control {k}, seed {s}: upper end {hi:+.3f} > +.03" for (k, s), (_, hi) in self.controls.items() if hi > 0.03]
        return found


def judge(records: Sequence[Mapping[str, Any]]) -> LearningGate:
    """The gate's numbers from its cells' records, each of which counts."""
    rl = {int(r["seed"]): r for r in records if r["kind"] == "rl"}
    controls = {(str(r["kind"]), int(r["seed"])): r for r in records if r["kind"] != "rl"}
    top = max(item["level"] for r in rl.values() for item in r["now_greedy"])
    return LearningGate(
        greedy={s: accuracy(r["now_greedy"]) for s, r in rl.items()},
        base={s: accuracy(r["base_greedy"]) for s, r in rl.items()},
        hardest={s: accuracy([i for i in r["now_greedy"] if i["level"] == top]) for s, r in rl.items()},
        controls={key: change(r) for key, r in controls.items()},
        cpu_seconds={s: r["cpu_seconds"] + r.get("base_cpu_seconds", 0.0) for s, r in rl.items()},
    )


def accuracy(items: Sequence[Mapping[str, Any]]) -> float:
    """Share of the items whose answer is right, the first where there are several."""
    return float(np.mean([item["values"][0] >= 1.0 for item in items]))


def change(record: Mapping[str, Any], mode: str = "greedy") -> tuple[float, float]:
    """Paired 95 % interval over items of a cell's accuracy minus its base's, of greedy or of sampled answers."""
    before, now = ({i["id"]: float(i["values"][0] >= 1.0) for i in record[f"{name}_{mode}"]} for name in ("base", "now"))
    found = paired_difference(before, now).difference
    return found.low, found.high
