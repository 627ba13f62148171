"""Measure whole steps of reinforcement learning beside TRL's `GRPOTrainer`: two processes that step in turn, A B A B.

Both begin with the same weights (a folder that assay wrote) and learn from the same prompts, 16 with 8 attempts each, in
float32: GRPO without a reference, one update a step, AdamW, the same reward. Every attempt has `--new` tokens: TRL is told
`min_new_tokens`, assay a stop token that nothing samples. TRL logs nothing and runs as it is quickest of `--micro`, `--attention`
and `--cache`: each combination is tried for three steps, and the least CPU-time wins. assay's step is that of
`assay train --profile`: tasks, sampling, the reward in its own process, credit, update, publishing, proof of weights, journal.
Cases:

- `same`: every group is paid at random, so that every attempt carries a gradient, and both learn from all. TRL computes the
  forward pass again; assay takes over the states that its sampler computed, which have the same bits (`Native.recall`).
- `again`: as `same`, and assay computes the forward pass again too.
- `third`: 6 of 16 groups are; the others are paid 0. TRL computes all attempts, assay those with a gradient.
- `quarter`: 4 of 16 groups are.
- `long`: as `same`, prompts of 128 tokens instead of 16.

The first step, which is not counted, learns on both sides from the attempts that assay sampled. The gradients that both come to
are compared: ``gradients_differ_by`` is the norm of their difference over that of TRL's.

Prints one JSON line per model, case and number of threads: CPU-milliseconds of a step on each side (median); their ratio, and the
ratio on the wall (geometric means over pairs of neighbouring steps, with Student's 95 % interval of the logarithms); and
CPU-milliseconds of each part of a step (medians). CPU-time is that of the process and of all that it started.

    python benchmarks/whole_step.py --trl TRL_ENVIRONMENT/bin/python --models 1M 4M 12M
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from assay.core import generator
from assay.lab import describe_machine, load_average
from assay.measure import student
from assay.runtime import char_tokenizer, init_model, save_model
from assay.tasks import Rows
from decode import SIZES, shape
from paced import Side, Work

HERE = Path(__file__).parent
RECALL = 512
"""MiB, as `Native` has it."""
CASES = {
    "same": (16, 16, RECALL),
    "again": (16, 16, 0),
    "third": (16, 6, RECALL),
    "quarter": (16, 4, RECALL),
    "long": (128, 16, RECALL),
}
"""Name to the tokens of a prompt, how many of the 16 groups have a gradient, and MiB of states that are taken over."""
GROUPS, SIZE = 16, 8
CHARACTERS = "".join(map(chr, range(32, 127)))


def prompts(length: int) -> list[str]:
    """Random letters; none that `Rows` would hold out."""
    rng = generator("whole-step-prompts", 0, index=length)
    found: list[str] = []
    while len(found) < GROUPS:
        text = "".join(chr(97 + i) for i in rng.integers(0, 26, length))
        found += [text] * Rows([{"prompt": text, "answer": ""}]).size("rows", 1, "train")
    return found


def ours_of(work: Work, place: Path) -> Side:
    """Assay's side, started."""
    written, run = str(work.write(place / "assay.json")), tempfile.mkdtemp(dir=place)
    return Side([sys.executable, str(HERE / "whole_step_assay.py"), written, run], work.threads, place / "assay.log")


def theirs_of(work: Work, trl: str, place: Path) -> Side:
    """Of TRL, started."""
    written = str(work.write(place / "trl.json"))
    return Side([trl, str(HERE / "whole_step_trl.py"), written], work.threads, place / "trl.log")


def tune_work(work: Work, asked: argparse.Namespace, place: Path) -> tuple[Work, dict[str, Any]]:
    """The work as TRL does it in the least CPU-time, and what each way took; the only way untried."""
    ways = list(itertools.product(asked.micro, asked.attention, asked.cache))
    found: dict[str, Any] = {}
    for micro, attention, cache in ways if len(ways) > 1 else []:
        with theirs_of(replace(work, micro=micro, attention=attention, cache=cache, first="", steps=3), asked.trl, place) as side:
            side.hear()
            name = f"{micro} {attention} {cache}"
            try:
                found[name] = round(1e3 * min(side.step()["cpu"] for _ in range(3)))
            except RuntimeError as error:
                found[name] = str(error).strip().splitlines()[-1]
    timed = {w: found[" ".join(map(str, w))] for w in ways if isinstance(found.get(" ".join(map(str, w))), int)}
    micro, attention, cache = min(timed, key=timed.__getitem__) if timed else ways[0]
    return replace(work, micro=micro, attention=attention, cache=cache), found


def compare(work: Work, asked: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Steps of both in turn."""
    with ours_of(work, place) as ours:
        first = ours.hear()
        with theirs_of(work, asked.trl, place) as theirs:
            ready = theirs.hear()
            ours.step()  # from here on it trains
            a, b = [ours.step()], [theirs.step()]
            check = {"assay": first, "assay_again": a[0]["metrics"], "trl": b[0]}
            for _ in range(asked.repeats):
                a.append(ours.step())
                b.append(theirs.step())
    return {**same(check, work), **spread(a[1:], b[1:]), "versions": ready["versions"]}


def same(check: Mapping[str, Any], work: Work) -> dict[str, Any]:
    """What tells that both learned the same from the same attempts: by how much of TRL's first gradient assay's differs.

    Raises:
        RuntimeError: the attempts were paid otherwise, the run's first step was another than the one told, or its weights were
            not proved.
    """
    again = check["assay_again"]
    if check["assay"]["rewards"] != check["trl"]["rewards"]:
        raise RuntimeError("the same attempts were not paid alike on both sides")
    if check["assay"]["norm"] != again["grad/norm"] or not again["proof/state"]:
        raise RuntimeError("the run's first step is not the one whose attempts TRL was given, or its weights were not proved")
    a, b = (torch.load(work.gradient(side)) for side in ("assay", "trl"))
    apart, whole = (
        math.sqrt(sum(float(x.double().square().sum()) for x in of)) for of in ([a[n] - b[n] for n in b], list(b.values()))
    )
    return {
        "gradient_norm": whole,
        "gradients_differ_by": apart / whole,
        "rows_computed": again["rows/computed"],
        "tokens_recalled": again["time/tokens_recalled"],
    }


def spread(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Ratios of neighbouring steps, and medians of both."""
    row: dict[str, Any] = {}
    for kind in ("cpu", "wall"):
        found = student([math.log(y[kind] / x[kind]) for x, y in zip(a, b, strict=True)])
        row[f"trl_over_assay_{kind}"] = [round(math.exp(v), 2) for v in (found.value, found.low, found.high)]
    for name, steps in (("assay", a), ("trl", b)):
        row[f"{name}_cpu_ms"] = middle(s["cpu"] for s in steps)
        row[f"{name}_wall_ms"] = middle(s["wall"] for s in steps)
        parts = {part: middle(s["parts"].get(part, 0.0) for s in steps) for part in steps[0]["parts"]}
        parts["other processes"] = middle(s["cpu_of_others"] for s in steps)
        parts["rest"] = middle(s["cpu"] - s["cpu_of_others"] - sum(s["parts"].values()) for s in steps)
        row[f"{name}_parts_cpu_ms"] = dict(sorted(parts.items(), key=lambda p: -p[1]))
    return row


def middle(seconds: Any) -> float:
    """The median in milliseconds."""
    return round(1e3 * statistics.median(seconds), 1)


def main() -> None:
    """Compare every model, case and number of threads asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trl", required=True, help="python of an environment that has TRL")
    parser.add_argument("--models", nargs="+", default=["1M", "4M"], choices=list(SIZES))
    parser.add_argument("--cases", nargs="+", default=["same", "third"], choices=list(CASES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--llama", action="store_true", help="without Qwen3's norms of queries and keys")
    parser.add_argument("--micro", nargs="+", type=int, default=[16, 32, 64, 128], help="attempts in TRL's micro-batch")
    parser.add_argument("--attention", nargs="+", default=["sdpa", "eager"], choices=["sdpa", "eager"])
    parser.add_argument("--cache", nargs="+", default=["dynamic"], choices=["dynamic", "static", "paged"])
    asked = parser.parse_args()
    print(json.dumps({"machine": describe_machine(), "load": load_average()}), flush=True)
    for size, threads in itertools.product(asked.models, asked.threads):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            form = replace(shape(size), qk_norm=not asked.llama)
            save_model(init_model(form, char_tokenizer(CHARACTERS), 0, init="fan_in"), place / "model")
            for case in asked.cases:
                length, mixed, recall = CASES[case]
                work = Work(
                    model=str(place / "model"),
                    prompts=prompts(length),
                    mixed=[i < mixed for i in range(GROUPS)],
                    group_size=SIZE,
                    new=asked.new,
                    steps=asked.repeats + 1,
                    threads=threads,
                    lr=asked.lr,
                    micro=asked.micro[0],
                    attention=asked.attention[0],
                    cache=asked.cache[0],
                    recall=recall,
                    first=str(place),
                )
                work, tried = tune_work(work, asked, place)
                row = {"model": size, "parameters": form.parameters, "llama": asked.llama, "case": case, "threads": threads}
                row |= {"trl_as": [work.micro, work.attention, work.cache], "trl_tried_cpu_ms": tried}
                print(
                    json.dumps({**row, **compare(work, asked, place), "steps": asked.repeats, "load": load_average()}), flush=True
                )


if __name__ == "__main__":
    main()
