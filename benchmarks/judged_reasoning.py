"""CoT-Pass@K of `benchmarks.judged`: by a judge's votes on the working of right answers, and by a program's."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.clients import Judge, JudgeClient, MemoryStore
from assay.measure import CotPass, cot_pass, eval_items, tabulate
from assay.scorers import vote_on_reasoning
from assay.train import Policy, train
from benchmarks.judged_arms import PARTS
from benchmarks.judged_measures import task_of
from benchmarks.judged_server import JudgeModel, ModelServer
from benchmarks.judged_tasks import Shifts, first_flaw

__all__ = ["measured_reasoning"]

SAMPLES, TASKS = 8, 60


def measured_reasoning(seed: int, judge: JudgeModel) -> list[dict[str, Any]]:
    """pass@k and CoT-Pass@K of the base of a seed, and of the policy that was paid for the answer alone."""
    part = PARTS["FAPO"]
    with tempfile.TemporaryDirectory() as folder, ModelServer(judge) as server:
        place = Path(folder) / "run"
        train(part.run(part.arms[0], seed, ()), place, progress=False)
        return [
            {"part": "CoT-Pass@K", "arm": name, "seed": seed, **_compared(Policy(path), server.url)}
            for name, path in (("base", place / "start"), (part.arms[0].name, place))
        ]


def _compared(policy: Policy, url: str) -> dict[str, Any]:
    source = Shifts()
    items = policy.evaluate(source, n=SAMPLES, per_level=TASKS)
    prompts = {item["id"]: str(task_of(source, item).public["prompt"]) for item in items}
    voted = asyncio.run(_voted(items, prompts, url))
    by = {"judge": cot_pass(voted), "program": cot_pass([_checked(item, prompts[item["id"]]) for item in items])}
    plain = tabulate(eval_items(items)).total.metrics
    return {
        "pass": {k: round(plain[f"pass@{k}"].value, 4) for k in _ks()},
        **{
            name: {k: round(found.tables["all"].total.metrics[f"pass@{k}"].value, 4) for k in _ks()} for name, found in by.items()
        },
        "share": {name: round(_share(found), 4) for name, found in by.items()},
        "unjudged": by["judge"].unjudged,
    }


def _ks() -> list[str]:
    return ["1", "2", "4", "8"]


def _share(found: CotPass) -> float:
    return found.given_right["all"]


async def _voted(items: Sequence[Mapping[str, Any]], prompts: Mapping[str, str], url: str) -> list[dict[str, Any]]:
    client = JudgeClient(Judge(url=url, model="flaw", max_tokens=54, concurrency=128, pause=0.01), MemoryStore())
    try:
        return await vote_on_reasoning(items, prompts, client, votes=1)
    finally:
        await client.close()


def _checked(item: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """With the program's vote on each right answer."""
    pairs = zip(item["answers"], item["values"], strict=True)
    return {**item, "reasoning": [[first_flaw(prompt, text) is None] if value >= 1.0 else None for text, value in pairs]}
