"""The page of speed: what ``benchmarks/decode.py`` and ``benchmarks/whole_step.py`` printed, and the quickstart's CPU-seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.core import DataError
from assay.runs import read_json, write_text

__all__ = ["DECODE", "FIRST", "PRODUCT", "PUBLISH", "QUICKSTART", "ROUNDED", "STEP", "make_page"]

DECODE: Mapping[tuple[str, int], float] = {("1M", 1): 3.0, ("4M", 1): 1.8, ("12M", 1): 1.5, ("1M", 2): 5.0}
"""Bars: model and threads to how many times as fast, float32: the least of all repeats, by both clocks, beside the quicker."""

ROUNDED: Mapping[tuple[str, int], float] = {("1M", 1): 5.0, ("4M", 1): 3.0, ("12M", 1): 2.5}
"""The same with products in bfloat16."""

PRODUCT = 0.75
"""Bar: the rate of the products with weights over that of PyTorch's float32 product, on one thread."""

STEP: Mapping[tuple[str, str], float] = {("1M", "same"): 2.5, ("4M", "same"): 2.0, ("1M", "third"): 5.0}
"""Bars: model and case to TRL's step over assay's, the lower end of the interval."""

PUBLISH = 0.02
"""Bar: the share of such a step that new weights take, from the learner to packed in the engine."""

QUICKSTART = 60.0
"""Bar: CPU-seconds to .90 on held-out items, warm-up included, for each seed."""

FIRST = "zen4"
"""Name of the machine that the bars are held to."""

FLOAT32, BFLOAT16 = "native", "native, bfloat16"
PEERS = ("generate", "generate_batch")

Row = Mapping[str, Any]


class Measured(NamedTuple):
    """Lines of the benchmarks on one machine: of each its machine, then its rows."""

    decode: Sequence[Row]
    step: Sequence[Row]

    def failures(self) -> list[str]:
        """The bars that are not met or were not measured."""
        return [*_decode_failures(self.decode[1:]), *_step_failures(self.step[1:])]


def make_page(folder: Path) -> list[str]:
    """Writes ``speed.md`` from ``decode.jsonl`` and ``step.jsonl`` of each machine and ``quickstart.json``; measures nothing.

    A machine has a folder in ``speed``, named for its processor. The bars are held to that called `FIRST`; of the others the
    page tells what is not met there.

    Returns:
        The bars that are not met or were not measured, in words; those of other machines are not among them.

    Raises:
        DataError: one of the files is missing.
    """
    here = _measure_folder(folder / "speed" / FIRST)
    names = sorted((path.name for path in (folder / "speed").iterdir() if path.name != FIRST), reverse=True)
    others = {name: _measure_folder(folder / "speed" / name) for name in names}
    soon = read_json(folder / "quickstart.json")["cpu_seconds_to_bar"]
    failures = [*here.failures(), *_quickstart_failures(soon)]
    write_text(
        folder / "speed.md", "\n".join([_page(here, soon, failures), *(_other(name, there) for name, there in others.items())])
    )
    return failures


def _measure_folder(folder: Path) -> Measured:
    return Measured(*(_lines(folder / f"{name}.jsonl") for name in Measured._fields))


def _lines(path: Path) -> list[Row]:
    if not path.exists():
        raise DataError(f"{path} is missing; docs/evidence/speed.md names the command that prints it")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# ---- bars


def _least(row: Row) -> float:
    """The smallest of what it is faster by: over repeats, peers, and both clocks."""
    return min(row[f"to_{peer}_{clock}"][0] for peer in PEERS if f"to_{peer}_cpu" in row for clock in ("cpu", "wall"))


def _decode_failures(rows: Sequence[Row]) -> list[str]:
    found: list[str] = []
    even = {(r["engine"], r["model"], r["threads"]): r for r in rows if r["case"] == "even"}
    for engine, bars in ((FLOAT32, DECODE), (BFLOAT16, ROUNDED)):
        for (model, threads), bar in bars.items():
            row = even.get((engine, model, threads))
            if row is None or f"to_{PEERS[1]}_cpu" not in row:
                found.append(f"{engine}, {model}, {_threads(threads)}: not measured beside both")
            elif not _least(row) >= bar:
                found.append(f"{engine}, {model}, {_threads(threads)}: {_least(row)} times as fast, asked {bar}")
            elif (engine, threads) == (FLOAT32, 1) and not row["of_product"] >= PRODUCT:
                found.append(f"{model}: products at {row['of_product']} of PyTorch's rate, asked {PRODUCT}")
    return found


def _step_failures(rows: Sequence[Row]) -> list[str]:
    found: list[str] = []
    for (model, case), bar in STEP.items():
        row = next((r for r in rows if (r["model"], r["case"], r["threads"]) == (model, case, 1)), None)
        if row is None:
            found.append(f"step of {model}, {case}: not measured")
        elif not min(row["trl_over_assay_cpu"][1], row["trl_over_assay_wall"][1]) >= bar:
            found.append(f"step of {model}, {case}: TRL's takes {row['trl_over_assay_cpu'][0]} times assay's, asked {bar}")
        elif not _published_speed(row) <= PUBLISH:
            found.append(f"step of {model}, {case}: new weights take {_published_speed(row):.1%} of it, asked {PUBLISH:.0%}")
    return found


def _published_speed(row: Row) -> float:
    return row["assay_parts_cpu_ms"]["publish"] / row["assay_cpu_ms"]


def _quickstart_failures(soon: Mapping[str, float | None]) -> list[str]:
    slow = {seed: x for seed, x in soon.items() if x is None or not x <= QUICKSTART}
    return [f"quickstart, seed {seed}: {x} CPU-seconds to .90, asked {QUICKSTART:.0f}" for seed, x in slow.items()]


# ---- the page


def _page(here: Measured, soon: Mapping[str, float | None], failures: Sequence[str]) -> str:
    head, rows, steps = here.decode[0], here.decode[1:], here.step[1:]
    verdict = "Not met: " + "; ".join(failures) + "." if failures else "All bars are met."
    versions = "; ".join(sorted({", ".join(f"{k} {v}" for k, v in r["versions"].items()) for r in steps}))
    told = ", ".join("never" if x is None else f"{x:.0f}" for x in soon.values())
    alone = [r for r in steps if r["threads"] == 1]
    published = [_published_speed(r) for r in alone]
    few = ", ".join(f"{bar} ({model}, `{case}`)" for (model, case), bar in STEP.items())
    return f"""# Speed: beside what else there is

The same weights, prompts and lengths on both sides, in turn. Ratios say how many times as fast assay is. {verdict}
That is said of the first machine, {FIRST}; what others fall short of stands at the end.

    export OMP_WAIT_POLICY=PASSIVE
    python benchmarks/decode.py --models 1M 4M 12M --cases even joining --threads 1 2 --generate-batch \\
        --engines native "native, bfloat16" > docs/evidence/speed/{FIRST}/decode.jsonl
    python benchmarks/whole_step.py --trl TRL/bin/python --models 1M 4M --cases same again third quarter long \\
        --repeats 16 > docs/evidence/speed/{FIRST}/step.jsonl    # TRL in an environment of its own; --threads 1 2 too
    python -m evidence quickstart speed         # this page, from the lines and from quickstart.json

## Decoding

Machine: {head["machine"]}.
Library: {head["decoder"]}. Load average {_loads(rows)}, the measurement included.
{head["batch"]} rollouts in groups of 8, prompts of 12 tokens, {head["new"]} new tokens each at temperature 1, float32.
`generate` and `generate_batch` (continuous batching) are those of
transformers; `generate_batch` with the cache and the number of requests with which it is quickest on a CPU. Medians of
{rows[0]["repeats"]} repeats with the least and the most. `joining`: half of the prompts come while the others are under way;
the peers get all at once. The last column is the rate of assay's products with weights over that of PyTorch's float32
product of 128 x 256 x 768, attention and all else counted as time and not as work.

{_decode_table(rows, FLOAT32)}

Bars, of the case `even`, for the least of all repeats, by CPU-seconds and by the clock, beside the quicker of the two:
{_bars(DECODE)}; {PRODUCT} of the product's rate on one thread.

With `Native(dtype="bfloat16")`, weights and what they are multiplied with rounded, sums in float32, the peers in float32:

{_decode_table(rows, BFLOAT16)}

Bars, likewise: {_bars(ROUNDED)}.

## A whole step

Beside TRL's `GRPOTrainer` ({versions}).
Machine: {here.step[0]["machine"]}. Load average {_loads(steps)}. 16 prompts with 8
rollouts of 64 tokens, GRPO without a reference, one update, AdamW, float32; TRL runs as it is quickest of several
micro-batches and kinds of attention. assay's step also scores in a process of its own, proves the sampler's weights and writes
its journal. `same`: every rollout carries a gradient, and both learn from all; assay takes over the states that its sampler
computed, unless it is said that it did not. `again`: it computes them a second time. `third` and `quarter`: 6 and 4
of 16 groups have a gradient; TRL computes all rollouts, assay those. `long`: as `same`, prompts of 128 tokens instead of 16.
Ratios are geometric means over pairs of steps in turn, with Student's 95 % interval. The first step's gradients, from the
same rollouts, are compared: the norm of their difference over that of TRL's.{_recall_note(steps)}

{_step_table(steps)}

Bars, for the lower end, on one thread: {few}. New weights, copied by the learner, digested, and packed by the engine, take
{min(published):.1%} to {max(published):.1%} of assay's step; the bar is {PUBLISH:.0%}. Where a step goes, CPU-ms:

{_parts_table(alone)}

## The quickstart

CPU-seconds to .90 on held-out items, greedy, the building of the base included: {told} for seeds {", ".join(soon)}.
The bar is {QUICKSTART:.0f} for each. A machine's first run compiles the library, some ten CPU-seconds more.
[The page](quickstart.md) has the runs.
"""


def _other(name: str, there: Measured) -> str:
    head, rows, steps = there.decode[0], there.decode[1:], there.step[1:]
    failures = there.failures()
    verdict = "these are not met here:\n\n- " + "\n- ".join(failures) if failures else "all are met here."
    return f"""## On another machine: {name}

{head["machine"]}. Library: {head["decoder"]}. Load average {_loads([*rows, *steps])}. Of the bars above, {verdict}

Decoding in float32:

{_decode_table(rows, FLOAT32)}

In bfloat16:

{_decode_table(rows, BFLOAT16)}

A whole step.{_recall_note(steps)}

{_step_table(steps)}
"""


def _loads(rows: Sequence[Row]) -> str:
    loads = [r["load"] for r in rows]
    return f"{min(loads):.1f} to {max(loads):.1f}"


def _bars(bars: Mapping[tuple[str, int], float]) -> str:
    return ", ".join(f"{bar} ({model}, {_threads(n)})" for (model, n), bar in bars.items())


def _threads(n: int) -> str:
    return "one thread" if n == 1 else f"{n} threads"


def _decode_table(rows: Sequence[Row], engine: str) -> str:
    names = [f"`{peer}`, {clock}" for peer in PEERS for clock in ("CPU", "clock")]
    lines = [f"| weights | case | threads | tokens per CPU-s | {' | '.join(names)} | of the product |", "|---" * 9 + "|"]
    for r in rows:
        if r["engine"] == engine:
            ratios = " | ".join(_format_spread(r.get(f"to_{peer}_{clock}")) for peer in PEERS for clock in ("cpu", "wall"))
            first = f"| {r['model']} | {r['case']} | {r['threads']} | {r['assay_tokens_per_cpu_s']:,}"
            lines.append(f"{first} | {ratios} | {r['of_product']:.2f} |")
    return "\n".join(lines)


def _format_spread(spread: Sequence[float] | None) -> str:
    return "" if spread is None else f"{spread[1]:.1f} [{spread[0]:.1f}, {spread[2]:.1f}]"


def _step_table(rows: Sequence[Row]) -> str:
    lines = [
        "| weights | case | threads | CPU | clock | assay, CPU-ms | TRL, CPU-ms | gradients differ by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        pairs = (r["trl_over_assay_cpu"], r["trl_over_assay_wall"])
        ratios = " | ".join(f"{x:.2f} [{low:.2f}, {high:.2f}]" for x, low, high in pairs)
        spent = f"{r['assay_cpu_ms']:,.0f} | {r['trl_cpu_ms']:,.0f}"
        first = f"| {r['model']} | {r['case']} | {r['threads']}"
        lines.append(f"{first} | {ratios} | {spent} | {r['gradients_differ_by']:.1e} |")
    return "\n".join(lines)


def _recall_note(rows: Sequence[Row]) -> str:
    """What is to be said of lines from before the sampler's states were taken over."""
    if all("tokens_recalled" in r for r in rows):
        return ""
    return " The library of these lines computed every\nforward pass again."


def _parts_table(rows: Sequence[Row]) -> str:
    """Of assay: its parts; of TRL: generation, forward and backward passes, and all else."""
    lines = [
        "| weights | case | assay: sample | forward | backward | optimiser | else | TRL: sample | forward | backward | else |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        cells: list[float] = []
        for side, named in (
            ("assay", ("engine", "forward", "backward", "optimizer")),
            ("trl", ("generate", "forward", "backward")),
        ):
            parts = r[f"{side}_parts_cpu_ms"]
            known = [parts[name] for name in named]
            cells += [*known, r[f"{side}_cpu_ms"] - sum(known)]
        lines.append(f"| {r['model']} | {r['case']} | {' | '.join(f'{x:,.0f}' for x in cells)} |")
    return "\n".join(lines)
