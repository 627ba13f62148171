"""Rewards by judges that were trained here, beside controls: the sign of each difference is written before the first run.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.judged [--parts NAME ...] [--seeds 2]

Records go to ``docs/evidence/judged.jsonl``, of which ``docs/evidence/judged.md`` is made; cells that are there are not run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from assay.clients import Judge
from assay.train import Policy, train
from benchmarks.judged_arms import PARTS, RUBRIC, Arm, Part
from benchmarks.judged_critic import central_tasks
from benchmarks.judged_forms import Judgements
from benchmarks.judged_measures import held_out, judge_agreement
from benchmarks.judged_models import base, stage_of, train_judge
from benchmarks.judged_page import page
from benchmarks.judged_reasoning import measured_reasoning
from benchmarks.judged_server import Chance, JudgeModel, ModelJudge, ModelServer, Program

PLACE = Path(__file__).parents[1] / "docs" / "evidence" / "judged.jsonl"
REASONING = "CoT-Pass@K"
JUDGES = {"flaw": (300, 40), "mark": (300, 0), "better": (400, 0), "verdict": (300, 0), "marks": (400, 40)}
"""Steps in which a judge is shown judgements, and steps by its form's rule."""


def judge_of(kind: str, form: str, folder: Path) -> JudgeModel:
    """A trained judge, the program, or chance."""
    if kind != "trained":
        return Program() if kind == "program" else Chance()
    return ModelJudge(train_judge(form, folder, *JUDGES[form])[-1])


def measured_judge(form: str, folder: Path) -> dict[str, Any]:
    """A judge's agreement with the program on held-out questions, behind each stage of its training."""
    places = train_judge(form, folder, *JUDGES[form])
    shown, rl = JUDGES[form]
    found = [judge_agreement(Policy(place), Judgements(form=form)) for place in places]
    return {"judge": form, "shown": shown, "rl": rl, "stages": dict(zip(map(stage_of, places), found, strict=True))}


def measured(part: Part, arm: Arm, seed: int, folder: Path) -> dict[str, Any]:
    """Held-out answers behind a run, and what was spent."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        judges: tuple[Judge, ...] = ()
        kept: tuple[int, ...] = ()
        if arm.judge:
            server = stack.enter_context(ModelServer(judge_of(arm.judge, part.form, folder)))
            judge = Judge(
                url=server.url,
                model=f"{arm.judge}-{part.form}",
                max_tokens=54,
                temperature=part.temperature,
                concurrency=128,  # a step's questions at once
                pause=0.01,
            )
            judges = (judge,)
            if arm.central:
                train(base(part.tasks, seed), place / "base", progress=False)
                kept = central_tasks(Policy(place / "base"), RUBRIC, judge)
        train(part.run(arm, seed, judges, kept), place / "run", progress=False)
        lines = [json.loads(line)["metrics"] for line in (place / "run" / "metrics.jsonl").read_text().splitlines()]
        found = {"base": held_out(Policy(place / "run" / "start"), part), "end": held_out(Policy(place / "run"), part)}
    return {
        **found,
        "tokens": sum(m.get("tokens/sampled", 0.0) for m in lines),
        "cpu": round(max(m.get("time/cpu", 0.0) for m in lines), 1),
        "asked": sum(m.get("verify/judge/judge/asked", 0.0) for m in lines),
        "cached": sum(m.get("verify/judge/judge/cached", 0.0) for m in lines),
        "faults": sum(m.get("verify/judge/judge/faults", 0.0) for m in lines),
    }


def read(place: Path) -> list[dict[str, Any]]:
    """The records that are there."""
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()] if place.exists() else []


def note(records: list[dict[str, Any]], place: Path, record: Mapping[str, Any]) -> None:
    """Adds a record, and makes the page anew."""
    records.append(dict(record))
    with place.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")
    place.with_suffix(".md").write_text(page(records), encoding="utf-8")
    print(json.dumps(record), flush=True)


def study(parts: Sequence[str], seeds: int, place: Path, folder: Path) -> None:
    """Runs what is missing: each part's judge, then its arms seed by seed."""
    records = read(place)
    for name in parts:
        if name == REASONING:
            reasoned(records, seeds, place, folder)
            continue
        part = PARTS[name]
        if part.form and not any(r.get("judge") == part.form for r in records):
            note(records, place, measured_judge(part.form, folder))
        for seed in range(seeds):
            for arm in part.arms:
                if (name, arm.name, seed) not in {(r.get("part"), r.get("arm"), r.get("seed")) for r in records}:
                    note(records, place, {"part": name, "arm": arm.name, "seed": seed, **measured(part, arm, seed, folder)})
    place.with_suffix(".md").write_text(page(records), encoding="utf-8")


def reasoned(records: list[dict[str, Any]], seeds: int, place: Path, folder: Path) -> None:
    """CoT-Pass@K of the seeds that have none."""
    for seed in range(seeds):
        if not any((r.get("part"), r.get("seed")) == (REASONING, seed) for r in records):
            for record in measured_reasoning(seed, judge_of("trained", "flaw", folder)):
                note(records, place, record)


def main() -> None:
    """Runs what is missing, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--parts", nargs="*", default=[*PARTS, REASONING], choices=[*PARTS, REASONING])
    parser.add_argument("--records", type=Path, default=PLACE)
    parser.add_argument("--judges", type=Path, help="folder in which trained judges are kept; a temporary one when not given")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study(asked.parts, asked.seeds, asked.records, asked.judges or Path(folder))


if __name__ == "__main__":
    main()
