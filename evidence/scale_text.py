"""What was measured of scale, judged and told: the page's numbers, picture and text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.measure import Interval
from evidence.drawing import plotting
from evidence.scale import AXES, Cost, Held, Point
from evidence.scale_laws import Growth, Law, exponents, growth, law

__all__ = ["BARS", "Found"]

BARS: Mapping[str, float] = {"attempts": 1.1, "tokens": 1.5, "parameters": 1.1}
"""The most that the upper end of an exponent's interval may be."""

FIRST = 1000
"""Step of the long run by which there is what it holds for good."""

MIB = 1 << 20
LEARNER = ("forward", "backward", "optimizer", "credit")


class Found:
    """The records of all kinds, and what follows from them.

    Args:
        records: of `evidence.scale_page.KINDS`.
    """

    def __init__(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        self.records = records
        self._repeats = [_costs(record) for kind, record in records.items() if kind.startswith("times-")]
        self._held = [Held(**held) for held in records["memory"]["held"]]

    @property
    def growth(self) -> Growth:
        """Of the long run."""
        return growth(self._held, FIRST)

    def sizes(self, axis: str) -> list[int]:
        """Of an axis, ascending."""
        return [getattr(point, axis) for point in AXES[axis]]

    def seconds(self, axis: str, clock: str) -> NDArray[np.float64]:
        """``[repeats, sizes]`` of ``cpu`` or ``wall``."""
        return np.array([[getattr(costs[point], clock) for point in AXES[axis]] for costs in self._repeats])

    def exponent(self, axis: str, clock: str, part: slice = slice(None)) -> Interval:
        """Of an axis, or of a part of its sizes."""
        return exponents(self.sizes(axis)[part], self.seconds(axis, clock)[:, part])

    def law(self, axis: str) -> Law:
        """Of the median CPU-seconds."""
        return law(self.sizes(axis), np.median(self.seconds(axis, "cpu"), axis=0), square=axis == "tokens")

    def shares(self, point: Point) -> dict[str, float]:
        """Of a step's CPU-seconds: the engine's, the learner's, the rest."""
        parts = [costs[point].parts for costs in self._repeats]
        total = sum(sum(p.values()) for p in parts)
        engine = sum(p.get("engine", 0.0) for p in parts) / total
        learner = sum(p.get(name, 0.0) for p in parts for name in LEARNER) / total
        return {"engine": engine, "learner": learner, "rest": 1.0 - engine - learner}

    def failures(self) -> list[str]:
        """What is not as it should be, in words."""
        found: list[str] = []
        for axis, most in BARS.items():
            exponent = self.exponent(axis, "cpu")
            if exponent.high > most:
                found.append(f"CPU-seconds grow by {axis} with exponent {exponent}, above {most}")
        grown = self.growth
        if grown.resident.high > MIB:
            found.append(f"memory grows by {_scale_number(grown.resident, MIB)} MiB per 1000 steps")
        for name in ("files", "threads"):
            if getattr(grown, name) > 0:
                found.append(f"there are {getattr(grown, name)} more {name} than at step {FIRST}")
        if self.records["apart"]["digests"] != self.records["together"]["digests"]:
            found.append("runs side by side have other digests than one after another")
        return found

    # ---- showing -----------------------------------------------------------------------------------------------------

    def plot(self, path: Path) -> None:
        """Seconds by each size with the fitted curve, and memory over steps."""
        plt = plotting()
        figure, axes = plt.subplots(1, 4, figsize=(12, 3), constrained_layout=True)
        for axis, name in zip(axes, AXES, strict=False):
            sizes, fitted = self.sizes(name), self.law(name)
            for row in self.seconds(name, "cpu"):
                axis.loglog(sizes, row, ".", color="C0", alpha=0.4, ms=4)
            dense: NDArray[np.float64] = np.geomspace(sizes[0], sizes[-1], 100)
            axis.loglog(dense, fitted.fixed + fitted.linear * dense + fitted.square * dense**2, color="C1", lw=1.2)
            axis.set(title=f"{name}: exponent {self.exponent(name, 'cpu').value:.2f}", xlabel=name)
        axes[0].set_ylabel("CPU-seconds of a step")
        axes[3].plot([h.step for h in self._held], [h.resident / MIB for h in self._held], lw=1.2)
        axes[3].set(title="resident memory, MiB", xlabel="steps", ylim=(0, None))
        for axis in axes:
            axis.grid(alpha=0.25)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)

    def page(self) -> str:
        """The text."""
        failures, one = self.failures(), Point()
        verdict = "All of that is so." if not failures else "Not so: " + "; ".join(failures) + "."
        bars = ", ".join(f"{most} for {axis}" for axis, most in BARS.items())
        machines = "; ".join(sorted({r["machine"] for r in self.records.values()}))
        times, long, apart, together = map(self._loads, ("times-", "memory", "apart", "together"))
        base = f"{one.parameters / 1e6:.1f}M weights, {one.attempts} attempts, {one.tokens} tokens each"
        return f"""# Scale: what one machine does

What a step costs by the number of attempts, by their length and by the number of weights; what a process holds behind
{self._held[-1].step:,} steps; how many seeds fit into an hour. Everything goes through `assay.train` as it is: curriculum,
engine, verifier, learner, publishing, the proof of weights, journal.

    python -m evidence scale     # a quarter of an hour on two quiet cores; what was measured is read

Remove `studies/scale` from the cache to measure anew. Asked: the upper end of an exponent's interval is at most
{bars}; that of the growth of memory is at most 1 MiB per 1000 steps, and there are
no more open files or threads; runs side by side end with the digests that they have one after another. {verdict}

Machine: {machines}, float32, one thread per process.
Load average when a measurement began or ended: {times} for the repeats of all sizes, {long} for the long run, {apart} for
seeds one after another, {together} side by side. Where other work shares the cores wall time says little, and CPU-seconds
read high. Numbers: `scale.json`.

![CPU-seconds of a step by attempts, tokens and parameters; memory over steps](scale.svg)

## A step

{base}, but for what grows. Weights are random; no answer
ends early, all differ, and every step updates. The exponent is the b of `seconds = a * size ** b`, by least squares on
logarithms; its interval is Student's over {len(self._repeats)} repeats, each of all sizes in an order of its own. The
curves are a fixed cost and a part that grows with the size, for tokens also one that grows with its square, fitted to the
medians over repeats.

| what grows | from | to | exponent, CPU | exponent, wall | two smallest | two largest | fixed, ms | curve off by |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(map(self._axis, AXES))}

{self._why()}

{chr(10).join(map(self._table, AXES))}
{self._memory()}
{self._seeds()}"""

    def _loads(self, kind: str) -> str:
        values = [x for name, record in self.records.items() if name.startswith(kind) for x in record["load"]]
        return f"{min(values):.1f} to {max(values):.1f}"

    def _axis(self, axis: str) -> str:
        sizes, fitted = self.sizes(axis), self.law(axis)
        whole = [_scale_number(self.exponent(axis, clock), 1) for clock in ("cpu", "wall")]
        ends = [f"{self.exponent(axis, 'cpu', part).value:.2f}" for part in (slice(0, 2), slice(-2, None))]
        told = [f"{1000 * fitted.fixed:.0f}", f"{100 * fitted.off:.0f} %"]
        return f"| {' | '.join([axis, f'{sizes[0]:,}', f'{sizes[-1]:,}', *whole, *ends, *told])} |"

    def _why(self) -> str:
        laws = {axis: self.law(axis) for axis in AXES}

        def share(axis: str, what: str) -> tuple[str, str]:
            small, *_, large = (f"{100 * laws[axis].share(what, size):.0f} %" for size in self.sizes(axis))
            return small, large

        batch, length, size, square = (
            share("attempts", "fixed"),
            share("tokens", "fixed"),
            share("parameters", "fixed"),
            share("tokens", "square"),
        )
        engine = f"{100 * self.shares(AXES['tokens'][-1])['engine']:.0f} %"
        return f"""What the curves say of the exponents:

- **attempts**: {1000 * laws["attempts"].fixed:.0f} ms whatever the batch: weights are packed, published and proved. That is
  {batch[0]} of the smallest step and {batch[1]} of the largest.
- **tokens**: of the shortest step {length[0]} are fixed. What grows with the square is attention, {square[1]} of the longest
  step; most of it is the engine's, {engine} of that step, which reads the keys and values of a row again for each token.
- **parameters**: {size[0]} of the smallest model's step, and {size[1]} of the largest's, is work in which weights have
  no part: drawing tokens, verifier, books. A wider product costs less per weight, weights that fit into no cache cost more."""

    def _table(self, axis: str) -> str:
        rows: list[str] = []
        for i, point in enumerate(AXES[axis]):
            cpu, wall = (float(np.median(self.seconds(axis, clock)[:, i])) for clock in ("cpu", "wall"))
            per = cpu / (point.attempts * point.tokens)
            costs = [f"{cpu:.3f}", f"{wall:.3f}", f"{1e6 * per:.1f}", f"{1e9 * per / point.parameters:.3f}"]
            shares = [f"{100 * share:.0f} %" for share in self.shares(point).values()]
            rows.append(f"| {' | '.join([f'{getattr(point, axis):,}', *costs, *shares])} |")
        return f"""| {axis} | CPU-s | wall, s | CPU-µs per token | CPU-ns per token and weight | engine | learner | rest |
|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""

    def _memory(self) -> str:
        held, grown = self._held, self.growth
        looked = [held[0], next(h for h in held if h.step >= FIRST), held[-1]]
        spent = (held[-1].cpu - held[0].cpu) / (held[-1].step - held[0].step)

        def row(name: str, values: list[str], last: str) -> str:
            return f"| {' | '.join([name, *values, last])} |"

        rows = [
            row("", [f"at step {h.step:,}" for h in looked], "more per 1000 steps"),
            "|---|---|---|---|---|",
            row("resident memory, MiB", [f"{h.resident / MIB:.1f}" for h in looked], _scale_number(grown.resident, MIB)),
            row("objects of Python", [f"{h.objects:,}" for h in looked], _scale_number(grown.objects, 1)),
            row("open files", [str(h.files) for h in looked], f"at most {grown.files} in all"),
            row("threads", [str(h.threads) for h in looked], f"at most {grown.threads} in all"),
        ]
        return f"""## Memory

{held[-1].step:,} steps of a tiny model, {1000 * spent:.1f} CPU-ms each, with evaluations and checkpoints on the way and the
attempts of each step written down. What the process holds was looked at every {held[2].step - held[1].step} steps. The last
column compares, from step {FIRST:,} on, each thousand steps with the thousand before: the mean difference with Student's
interval. Of the objects, one per look is this measurement's own.

{chr(10).join(rows)}
"""

    def _seeds(self) -> str:
        apart, together = self.records["apart"], self.records["together"]
        seeds = ",".join(name.removeprefix("seed-") for name in apart["digests"])

        def row(name: str, record: Mapping[str, Any]) -> str:
            columns = [f"{record['seconds']:.0f}", f"{record['cpu']:.0f}", f"{record['cpu'] / record['seconds']:.2f}"]
            per_hour, peak = 3600 * len(record["digests"]) / record["seconds"], record["peak"] / MIB
            return f"| {' | '.join([name, *columns, f'{peak:.0f}', f'{per_hour:.0f}'])} |"

        wall, cpu = (together[what] / apart[what] for what in ("seconds", "cpu"))
        return f"""## Seeds per hour

What `assay train quickstart --seeds {seeds}` does, each seed with its base built anew: one at a time, and all at once, a core
each. CPU-seconds are those of whole processes, with imports and evaluations; memory is the largest process's peak.

| | wall, s | CPU-s | CPU / wall | MiB per process | seeds per hour |
|---|---|---|---|---|---|
{row("one after another", apart)}
{row("side by side", together)}

Side by side they take {wall:.2f} of the time and {cpu:.2f} of the CPU-seconds.
"""


def _costs(record: Mapping[str, Any]) -> dict[Point, Cost]:
    found: dict[Point, Cost] = {}
    for line in record["costs"]:
        known = {name: value for name, value in line.items() if name != "point"}
        found[Point(**line["point"])] = Cost(**known)
    return found


def _scale_number(found: Interval, unit: float) -> str:
    return f"{found.value / unit:.2f} [{found.low / unit:.2f}, {found.high / unit:.2f}]"
