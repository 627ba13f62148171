"""The page of the GPU: what ``benchmarks/gpu.py`` measured, held to bars; what it did not measure is ``unverified``."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay.measure import MISMATCH_BARS
from assay.runs import read_json, write_text
from assay.train import format_bytes
from evidence.gpu import KINDS, SHAPES, WORK, Row, Spread, mfu, peak_of

__all__ = ["FASTER", "LEAST_MFU", "MOST_OVERHEAD", "SIZES", "make_page"]

SIZES = ("0.6B", "1.7B")
FASTER, LEAST_MFU, MOST_OVERHEAD = 2.0, 0.40, 0.03
"""Bars: a step of TRL's over one of assay's; MFU at 1.7B; share of a step that is the framework's own."""
TRAINED = ("train", "train-compiled")
"""Kinds of rows whose quicker one is held to the bar of MFU."""
UNVERIFIED = "unverified"

Records = Mapping[str, Mapping[str, Any]]


def make_page(folder: Path) -> list[str]:
    """Writes ``gpu.md`` from the records in ``gpu/``; measures nothing.

    Returns:
        The bars that a measured row does not meet, in words.
    """
    records = _records(folder / "gpu")
    failures = [line for size in SIZES for line in _failures(records, size)]
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "gpu.md", _page(records, failures) + _selftest(folder / "gpu" / "selftest.json"))
    return failures


def _records(folder: Path) -> Records:
    """By row, those that hold: made on CUDA, of the work that is asked for now."""
    found: dict[str, Mapping[str, Any]] = {}
    for size in SIZES:
        for kind in KINDS:
            path = folder / f"{Row(kind, size).name}.json"
            if path.exists():
                one = read_json(path)
                if one["where"]["device"] == "cuda" and one["work"] == asdict(WORK[size]):
                    found[path.stem] = one
    return found


# ---- numbers of records


def _speed(one: Mapping[str, Any]) -> Spread:
    """Tokens per second."""
    numbers = one["numbers"]
    return Spread(tuple(n / s for n, s in zip(numbers["tokens"], numbers["seconds"], strict=True)))


def _seconds(one: Mapping[str, Any]) -> Spread:
    return Spread(tuple(one["numbers"]["seconds"]))


def _mfu(one: Mapping[str, Any]) -> Spread | None:
    """None of a device whose peak is not known."""
    gpu, numbers = one["where"]["gpu"], one["numbers"]
    found = [mfu(numbers["flops"], s, gpu) for s in numbers["seconds"]]
    return None if peak_of(gpu) is None else Spread(tuple(x for x in found if x is not None))


def _overhead(one: Mapping[str, Any]) -> Spread:
    """Share of each step that is neither sampling nor passes nor the optimiser."""
    parts = one["numbers"]["parts"]
    return Spread(tuple(other / whole for other, whole in zip(parts["time/other"], parts["time/step"], strict=True)))


def _quickest(records: Records, kinds: Sequence[str], size: str) -> Mapping[str, Any] | None:
    """The record with the shortest median step."""
    found = [records[f"{kind}-{size}"] for kind in kinds if f"{kind}-{size}" in records]
    return min(found, key=lambda one: _seconds(one).median, default=None)


def _ratio(records: Records, size: str) -> tuple[float, float, float] | None:
    """TRL's quickest step over assay's quickest: smallest, of the medians, largest; None where one is missing, or they were
    measured on different devices or with different versions.
    """
    own = _quickest(records, ("step", "step-compiled"), size)
    other = _quickest(records, [kind for kind in KINDS if kind.startswith("trl")], size)
    if own is None or other is None or own["where"] != other["where"]:
        return None
    a, b = _seconds(own), _seconds(other)
    return b.low / a.high, b.median / a.median, b.high / a.low


def _failures(records: Records, size: str) -> list[str]:
    found: list[str] = []
    ratio, own = _ratio(records, size), _quickest(records, ("step", "step-compiled"), size)
    if ratio is not None and not ratio[1] >= FASTER:
        found.append(f"{size}: TRL's step takes {ratio[1]:.2f} times assay's, asked {FASTER}")
    training = _quickest(records, TRAINED, size)
    used = _mfu(training) if training else None
    if size == "1.7B" and used is not None and not used.median >= LEAST_MFU:
        found.append(f"{size}: MFU of forward and backward {used.median:.1%}, asked {LEAST_MFU:.0%}")
    if own is not None:
        share, k3 = _overhead(own).median, own["numbers"]["mismatch"].get("engine/mismatch_k3")
        if not share <= MOST_OVERHEAD:
            found.append(f"{size}: {share:.1%} of a step is the framework's, asked {MOST_OVERHEAD:.0%} at most")
        if k3 is not None and not k3 < MISMATCH_BARS["bfloat16"]:
            found.append(f"{size}: k3 {k3:.2g} is beyond the alarm's bar {MISMATCH_BARS['bfloat16']}")
        if not all(state == 1.0 for state in own["numbers"]["proved"]):
            found.append(f"{size}: an update was not proved to have arrived")
    return found


# ---- the page


def _page(records: Records, failures: Sequence[str]) -> str:
    missing = len(SIZES) * len(KINDS) - len(records)
    verdict = "Not met: " + "; ".join(failures) + "." if failures else "Of what was measured, all is met." if records else ""
    said = f"{missing} of {len(SIZES) * len(KINDS)} rows were not measured: `{UNVERIFIED}`. {verdict}".strip()
    w, where = WORK["0.6B"], sorted({_where(one) for one in records.values()})
    machine = f"Machine: {'; '.join(where)}." if where else "No GPU has run this yet."
    bar, sure = MISMATCH_BARS["bfloat16"], f"{Spread((0.0,) * w.repeats).confidence:.0%}"
    return f"""# One GPU: speed, memory, mismatch

Shapes of Qwen3-0.6B and Qwen3-1.7B ({_shape("0.6B")}; {_shape("1.7B")}) with
{_fill_page(f"random weights. {said}")}

    python benchmarks/gpu.py --rows decode train train-compiled --out docs/evidence/gpu   # on the machine with the GPU, minutes
    python benchmarks/gpu.py --rows step trl --out docs/evidence/gpu                      # TRL in an environment beside assay
    python -m evidence gpu                                                      # this page, from the records

{_fill_page(f"{machine} Medians of {w.repeats} repeats behind a warm-up, with their range; it covers the median with {sure}.")}
The device has finished before a clock is read. `benchmarks/gpu.py` says what is done, `evidence.gpu` how much.

| row | {" | ".join(SIZES)} | bar |
|---|{"---|" * len(SIZES)}---|
{_table(records)}

- **Decode**: {w.batch} rollouts at once, {w.prompt} tokens of prompt and {w.answer} of answer, bf16; prompts are part of it.
- **MFU**: forward and backward of {w.rows} rows of {w.length} tokens in micro-batches of {w.micro}; bf16 autocast over fp32
  weights. Operations: 6 per weight and token, 12 per pair of query and key, head and dimension, causal pairs alone, the head
  where it is read (Kaplan et al. 2020; Chowdhery et al. 2022, appendix B). Peaks are the vendors' dense bf16 rates; of a device
  that is not in `evidence.gpu.PEAKS` there is no MFU.
- **Steps**: {w.groups} groups of {w.group_size}, prompts of {w.prompt} and answers of {w.answer} tokens, GRPO without a
  reference, AdamW. The same model, prompts, reward, lengths and micro-batches on both sides, each with generation in its own
  process. The ratio takes the quickest of each. TRL's rows with a static cache and with `generate_batch` hold bf16 weights: less
  work.
- **Framework**: what of a step is neither sampling nor passes nor optimiser: tasks, scoring, publishing and proving weights.
- **Memory**: `torch.cuda.max_memory_allocated` over what `assay explain` tells.
- **Mismatch**: of the first step's samples, engine in bf16, learner under bf16 autocast; {bar} is the alarm's bar.
"""


def _fill_page(text: str) -> str:
    return textwrap.fill(text, 128, break_long_words=False, break_on_hyphens=False)


def _selftest(path: Path) -> str:
    """The parts of ``assay selftest --gpus 1`` that need a GPU, from its record; empty where there is none."""
    if not path.exists():
        return ""
    found = read_json(path)
    lines = [
        f"| {one['shows']} | {one['outcome']} | {_told_part(one)} |" for one in found["parts"] if one["name"].startswith("gpu/")
    ]
    return f"""
## Self-test

    assay selftest --gpus 1 --only gpu --out docs/evidence/gpu/selftest.json

{found["date"]}, {found["machine"]}.

| what it shows | outcome | numbers |
|---|---|---|
{chr(10).join(lines)}
"""


def _told_part(one: Mapping[str, Any]) -> str:
    numbers = [f"{name} {value:.2g}" for name, value in one["numbers"].items() if isinstance(value, float)]
    return ", ".join(numbers) or one["why"]


def _table(records: Records) -> str:
    lines: list[str] = []

    def add(name: str, cell: Callable[[str], str | None], bar: str = "") -> None:
        lines.append(f"| {name} | {' | '.join(cell(size) or UNVERIFIED for size in SIZES)} | {bar} |")

    def of(kind: str, told: Callable[[Mapping[str, Any]], str | None]) -> Callable[[str], str | None]:
        return lambda size: told(records[f"{kind}-{size}"]) if f"{kind}-{size}" in records else None

    def own(told: Callable[[Mapping[str, Any]], str | None]) -> Callable[[str], str | None]:
        def cell(size: str) -> str | None:
            one = _quickest(records, ("step", "step-compiled"), size)
            return None if one is None else told(one)

        return cell

    def quicker(size: str) -> str | None:
        one = _quickest(records, TRAINED, size)
        return None if one is None else _told_mfu(one)

    def ratio(size: str) -> str | None:
        found = _ratio(records, size)
        return None if found is None else f"{found[1]:.2f} [{found[0]:.2f}, {found[2]:.2f}]"

    add("decode, tokens/s", of("decode", lambda one: _format_found(_speed(one), "{:,.0f}")))
    add("decode, compiled step, tokens/s", of("decode-compiled", lambda one: _format_found(_speed(one), "{:,.0f}")))
    add("forward and backward, tokens/s", of("train", lambda one: _format_found(_speed(one), "{:,.0f}")))
    add("forward and backward, MFU", of("train", _told_mfu))
    add(
        "forward and backward, layers compiled, tokens/s", of("train-compiled", lambda one: _format_found(_speed(one), "{:,.0f}"))
    )
    add("forward and backward, layers compiled, MFU", of("train-compiled", _told_mfu))
    add("forward and backward, MFU of the quicker", quicker, f"at least {LEAST_MFU:.0%} at 1.7B")
    for kind in KINDS:
        if kind.startswith(("step", "trl")):
            add(f"step, seconds: {KINDS[kind]}", of(kind, lambda one: _format_found(_seconds(one), "{:.2f}")))
    add("TRL's quickest step over assay's", ratio, f"at least {FASTER:.0f}")
    add(
        "the framework's share of a step",
        own(lambda one: _format_found(_overhead(one), "{:.1%}")),
        f"at most {MOST_OVERHEAD:.0%}",
    )
    add("memory used over predicted", own(_told_memory))
    add("mismatch: k3, largest ratio, ESS of rollouts", own(_told_mismatch), f"k3 below {MISMATCH_BARS['bfloat16']}")
    return "\n".join(lines)


def _format_found(found: Spread, form: str) -> str:
    low, middle, high = (form.format(x) for x in (found.low, found.median, found.high))
    return f"{middle} [{low}, {high}]"


def _told_mfu(one: Mapping[str, Any]) -> str:
    found = _mfu(one)
    return f"no peak is known of {one['where']['gpu']}" if found is None else _format_found(found, "{:.1%}")


def _told_memory(one: Mapping[str, Any]) -> str:
    used, predicted = one["numbers"]["memory_used"], one["numbers"]["memory_predicted"]
    return f"{used / predicted:.2f} ({format_bytes(used)} over {format_bytes(predicted)})"


def _told_mismatch(one: Mapping[str, Any]) -> str:
    found = one["numbers"]["mismatch"]
    return f"{found['engine/mismatch_k3']:.1e}, {found['engine/max_ratio']:.2f}, {found['engine/ess_rollouts']:.3f}"


def _where(one: Mapping[str, Any]) -> str:
    where = one["where"]
    versions = ", ".join(f"{name} {where[name]}" for name in ("assay", "torch", "transformers", "python"))
    return f"{where['gpu']}, {versions}"


def _shape(size: str) -> str:
    shape = SHAPES[size]
    return f"{shape.parameters / 1e9:.2f} billion weights, {shape.num_layers} layers of {shape.hidden_size}"
