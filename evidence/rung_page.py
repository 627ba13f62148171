"""The page of rung L1: thirty million weights and long answers, through each engine, with a control."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from assay.core import cache_folder
from assay.lab import accuracy, change, run_cells
from assay.measure import wilson
from assay.runs import read_json, write_json, write_text
from assay.runtime import LearnerSettings
from assay.selftest import AGREEMENT_BAR, NotAvailable, compare_with_learner, serve_vllm, vllm_version
from assay.train import model_folder

__all__ = ["KINDS", "make_page"]

MODULE = "assay.recipes.long_answers"
KINDS = ("native", "in-process", "vllm", "random")
"""Engines, and the control: the native engine, whose rollouts are paid by tossing a coin."""
SERVER = "server.json"


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``rung_l1.md`` and ``rung_l1.json``.

    The cell of vLLM is run where there is one (`assay.selftest.vllm_executable`); without it the page says that it is
    missing.

    Returns:
        What is not as it should be, in words.
    """
    work = cache_folder() / "studies" / "rung_l1"
    maker = f"{MODULE}:traces_cell"
    records = run_cells(maker, [("native", 0, None)], work, 1)  # builds the base, which the others begin from
    records += run_cells(maker, [(kind, 0, None) for kind in KINDS if kind not in ("native", "vllm")], work, 2)
    missing = ""
    try:
        records.append(_through_vllm(maker, work))
    except NotAvailable as error:
        missing = str(error)
    cells = {str(r["kind"]): _cell(r, work) for r in records}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "rung_l1.json", {"cells": cells})
    write_text(folder / "rung_l1.md", _page(cells, missing))
    return _failures(cells, missing)


def _through_vllm(maker: str, work: Path) -> dict[str, Any]:
    """The cell whose rollouts a server samples: started from the base, stopped behind the cell."""
    record = work / "vllm-0.json"
    if not record.exists():
        engine = import_module(MODULE).ENGINES["vllm"]
        port, shape = int(engine.url.rpartition(":")[2]), import_module(MODULE).SHAPE
        with serve_vllm(work / "native-0" / "start", work / "vllm.log", shape.max_positions, print, port) as (settings, spent):
            run_cells(maker, [("vllm", 0, None)], work, 1)
            seconds, version = spent(), vllm_version(settings)
            write_json(work / SERVER, {"cpu_seconds": seconds, "mismatch": _mismatch("vllm", work), "version": version})
    return run_cells(maker, [("vllm", 0, None)], work, 1)[0]


def _mismatch(kind: str, work: Path) -> dict[str, Any]:
    """An engine's log-probabilities of what it samples against the learner's, with the result of RL by the native one."""
    from assay.runtime import TorchLearner, load_model

    learner = TorchLearner(load_model(model_folder(work / "native-0")), LearnerSettings(), total_steps=1)
    engine = import_module(MODULE).ENGINES[kind].build(learner)
    asyncio.run(engine.swap(learner.publish()))
    return dict(compare_with_learner(engine, learner, AGREEMENT_BAR).numbers)


def _cell(record: Mapping[str, Any], work: Path) -> dict[str, Any]:
    """A cell's numbers without its items."""
    kind = str(record["kind"])
    lines = (work / f"{kind}-0" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [cast("dict[str, float]", json.loads(line)["metrics"]) for line in lines]
    kept: dict[str, Any] = {k: record[k] for k in ("kind", "seed", "steps", "digest", "cpu_seconds", "machine", "load")}
    for name in ("base_greedy", "base_sampled", "now_greedy", "now_sampled"):
        items = record[name]
        right = sum(item["values"][0] >= 1.0 for item in items)
        found = wilson(right, len(items))
        kept[name] = {"accuracy": accuracy(items), "low": found.low, "high": found.high, "items": len(items)}
    for mode in ("greedy", "sampled"):
        kept[f"change_{mode}"] = change(record, mode)
    steps = [m for m in steps if "tokens/sampled" in m]  # without the evaluation before the first
    kept["seconds"] = sum(m["time/step"] for m in steps)
    kept["sampled_tokens"] = sum(m["tokens/sampled"] for m in steps)
    kept["length"] = kept["sampled_tokens"] / sum(m["rollouts/sampled"] for m in steps)
    kept["generate_seconds"] = sum(m["time/generate"] for m in steps)
    kept["proved"] = sum(m.get("proof/state") == 1.0 for m in steps)
    if kind == "vllm":
        server = read_json(work / SERVER)
        kept |= {"server_cpu_seconds": server["cpu_seconds"], "mismatch": server["mismatch"]}
        return {**kept, "vllm": server["version"]} if "version" in server else kept
    return kept if kind == "random" else {**kept, "mismatch": _mismatch(kind, work)}


def _failures(cells: Mapping[str, Mapping[str, Any]], missing: str) -> list[str]:
    """An engine that raises nothing, updates that are not proved, or a control that climbs."""
    found = [f"vllm: {missing}"] if missing else []
    for kind, cell in cells.items():
        low, high = cell["change_sampled"]
        if kind != "random" and not low > 0.0:
            found.append(f"{kind}: accuracy of sampled answers changed by [{low:+.3f}, {high:+.3f}]")
        if kind == "random" and not low <= 0.0:
            found.append(f"random: accuracy of sampled answers rose by [{low:+.3f}, {high:+.3f}]")
        if cell["proved"] != cell["steps"]:
            found.append(f"{kind}: {cell['proved']} of {cell['steps']} updates are proved")
    return found


def _page(cells: Mapping[str, Mapping[str, Any]], missing: str) -> str:
    module = import_module(MODULE)
    stage: Any = module.traces(0).stages[0]
    one = next(iter(cells.values()))
    loads = [x for c in cells.values() for x in c["load"]]
    wrong = _failures(cells, missing)
    verdict = "All that was asked is so." if not wrong else "Not so: " + "; ".join(wrong) + "."
    shown, practised = (", ".join(map(str, levels)) for levels in (module.SHOWN, module.PRACTISED))
    size, batch = f"{module.SHAPE.parameters / 1e6:.1f}M", f"{stage.groups} x {stage.group_size}"
    versions = "".join(f", vLLM {c['vllm']}" for c in cells.values() if "vllm" in c)
    low, high, items = min(loads), max(loads), one["now_greedy"]["items"]
    return f"""# Rung L1: thirty million weights, long answers, three engines

A decoder of {size} weights begins from nothing. It is shown an automaton run row by row (family `generations`, {shown}
rows of 18 characters) for {module.STEPS} steps, which end while it still learns. Then come {stage.steps} steps of GRPO, {batch}
rollouts each, on {practised} rows, with a verifier that looks at the last line alone. The same run goes through each engine from
the same base. `random` is the control: the native engine, and a coin tossed for each rollout instead of the verifier. One seed:
it shows that the rung is climbed through each engine, and ranks nothing.

    python -m evidence rung_l1       # hours on two cores; ASSAY_VLLM names the vllm command; what is done is read

Asked: of sampled answers the paired 95 % interval of the change lies above 0 through each engine, and does not in the control;
every update is proved to have arrived. {verdict} {_greedy(cells)}

Machine: {"; ".join(sorted({c["machine"] for c in cells.values()}))}{versions}, float32, one thread per process.
Load average {low:.1f} to {high:.1f} when a cell began or ended: other work shared the machine, so that the clock says little.
{items} held-out items per evaluation, judged by the native engine whatever sampled in training; 95 % Wilson intervals.
Numbers and digests: `rung_l1.json`.

| cell | greedy before | after | sampled before | after | change, greedy | change, sampled |
|---|---|---|---|---|---|---|
{chr(10).join(map(_accuracy, cells.values()))}

`mismatch`: the largest and the mean absolute difference, in nats, of the engine's log-probabilities of what it samples and the
learner's, with the weights that RL through the native engine ended with, after random prompts. `CPU-s` are those of the training
process, `server` those of vLLM's processes, its start included.

| cell | steps | sampled tokens | per answer | CPU-s | server | clock, s | sampling, s | mismatch | proved |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(map(_cost, cells.values()))}
"""


def _greedy(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """What became of greedy answers, which nothing was asked of."""
    changed = {kind: cell["change_greedy"] for kind, cell in cells.items() if kind != "random"}
    up = [kind for kind, (low, _) in changed.items() if low > 0.0]
    down = [kind for kind, (_, high) in changed.items() if high < 0.0]
    told = [f"{what} through {', '.join(kinds)}" for what, kinds in (("rose", up), ("fell", down)) if kinds]
    if up:
        return f"Greedy accuracy {' and '.join(told)}."
    return (
        f"Greedy accuracy {' and '.join(told) or 'did not change'}: what so few steps teach is to sample what the model would "
        "have answered anyway."
    )


def _accuracy(cell: Mapping[str, Any]) -> str:
    def format_value(name: str) -> str:
        return f"{cell[name]['accuracy']:.3f} [{cell[name]['low']:.2f}, {cell[name]['high']:.2f}]"

    columns = [format_value(n) for n in ("base_greedy", "now_greedy", "base_sampled", "now_sampled")]
    changes = ["[{:+.3f}, {:+.3f}]".format(*cell[f"change_{mode}"]) for mode in ("greedy", "sampled")]
    return f"| {cell['kind']} | {' | '.join([*columns, *changes])} |"


def _cost(cell: Mapping[str, Any]) -> str:
    server = f"{cell['server_cpu_seconds']:,.0f}" if "server_cpu_seconds" in cell else "–"
    gap = cell.get("mismatch")
    differs = f"{gap['max_nats']:.1e}, {gap['mean_nats']:.1e}" if gap else "–"
    numbers = [f"{cell[name]:,.0f}" for name in ("sampled_tokens", "length", "cpu_seconds")]
    spent = [f"{cell[name]:,.0f}" for name in ("seconds", "generate_seconds")]
    columns = [cell["kind"], str(cell["steps"]), *numbers, server, *spent, differs, str(cell["proved"])]
    return f"| {' | '.join(columns)} |"
