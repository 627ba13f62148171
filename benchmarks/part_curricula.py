"""Runs for `benchmarks.parts` whose curriculum, rows or stages take more than a field of the quickstart's stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.curate import AngleOrder, CurationStep, Donod, Pipeline
from assay.guide import Again, AlpGmm, Bell, SkipSolved, Uniform, blend
from assay.objective import Nll, Token, grpo, pass_at_k_training
from assay.recipes import ace_reason, drive, on_rows, quickstart
from assay.select import UpdateProbe, VectorProbe
from assay.train import Collect, Evaluation, Imitate, Reinforce, RowSource, Run, Until, train
from assay_tasks import SortDigits
from benchmarks.part_tasks import slow

__all__ = ["after_each_other", "after_look", "blended", "by_angles", "by_norms", "by_phases", "falling_k", "near_base"]

Runs = Callable[[int, Path], Run]

ROWS = SortDigits(levels=(3, 4, 5, 6, 7, 8))
"""What rows are of; the base was shown the three shortest."""

QUIET = Evaluation(every=0, final_per_level=1, kl_to_base=False)
TESTS = Evaluation(every=5, per_level=8, final_per_level=8, levels=tuple(range(3, 11)), kl_to_base=False)


def practised(seed: int, evaluation: Evaluation = QUIET, **parts: Any) -> Run:
    """The quickstart with fields of its stage, and held-out evaluations where they are asked for."""
    run = quickstart(seed)
    stage = replace(cast(Reinforce, run.stages[0]), **{"steps": 100, "curriculum": Uniform(), **parts})
    return replace(run, stages=(stage,), evaluation=evaluation)


def after_look(seed: int, folder: Path) -> Run:
    """AGAIN: three earlier students, a first look of 20 steps, and a restart that follows the expert of that look."""
    students = [f"student-{i}" for i in range(3)]
    for i, name in enumerate((*students, "look")):
        looks = name == "look"
        curriculum = AlpGmm(tested=True, uniform=0.1 if looks else 0.2)
        run = practised(seed, TESTS, steps=20 if looks else 60, curriculum=curriculum)
        train(replace(run, seed=1000 + 10 * seed + i), folder / name, progress=False)
    classroom = tuple(str(folder / name) for name in students)
    return practised(seed, TESTS, curriculum=Again(classroom=classroom, looked=str(folder / "look"), tested=True, least=0.1))


def rows_of(each: int, split: str = "train") -> list[dict[str, Any]]:
    """Rows with right answers, each question once."""
    tasks = [ROWS.task("sort", level, split, i) for level in ROWS.levels for i in range(each)]
    found = {str(t.public["prompt"]): (t.private["answer"], t.level) for t in tasks}
    return [{"prompt": prompt, "answer": answer, "level": level} for prompt, (answer, level) in found.items()]


def base_folder(seed: int, folder: Path) -> Path:
    """The weights that the quickstart begins with."""
    return train(practised(seed, steps=1, groups=2), folder / "first", progress=False).folder / "start"


def curated(rows: Sequence[Mapping[str, Any]], folder: Path, *steps: CurationStep) -> list[dict[str, Any]]:
    """The rows that are kept, with their scores."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Pipeline(steps=steps, test_share=0.0).run([folder / "rows.jsonl"], folder / "kept")
    return [json.loads(line) for line in (folder / "kept" / "train.jsonl").read_text(encoding="utf-8").splitlines()]


def by_angles(bell: bool) -> Runs:
    """GAIN-RL: the bell over 360 rows in the order of the base's angles, or even draws of the same rows."""

    def made(seed: int, folder: Path) -> Run:
        rows = curated(rows_of(60), folder / "angles", AngleOrder(probe=VectorProbe(model=base_folder(seed, folder))))
        given = on_rows(rows, evaluate=rows_of(8, "test"), steps=100, groups=32, seed=seed)
        run = replace(given, model=quickstart(seed).model, evaluation=QUIET)
        drawn = Bell(pool=64, sigma=60.0, stride=4.0, order="angle_rank", angle="angle") if bell else Uniform()
        return replace(run, stages=(replace(cast(Reinforce, run.stages[0]), curriculum=drawn),))

    return made


def by_norms(chosen: bool) -> Runs:
    """DONOD: supervised steps on the 30 % of rows that it keeps, or on as many at random; half of all answers are another's."""

    def made(seed: int, folder: Path) -> Run:
        rows, rng = rows_of(60), np.random.default_rng(seed)
        wrong = set(rng.permutation(len(rows))[: len(rows) // 2].tolist())
        answers = [row["answer"] for row in rows]
        given = [row | {"answer": answers[i - 1] if i in wrong else answers[i]} for i, row in enumerate(rows)]
        kept: list[dict[str, Any]]
        if chosen:
            kept = curated(given, folder / "norms", Donod(probe=UpdateProbe(model=base_folder(seed, folder)), share=0.3))
        else:
            kept = [given[i] for i in rng.permutation(len(given))[: round(0.3 * len(given))]]
        stage = Imitate(
            data=tuple({"prompt": r["prompt"], "completion": r["answer"]} for r in kept), steps=80, learner=slow(5e-4)
        )
        return replace(quickstart(seed), name="kept-rows", stages=(stage,), evaluation=QUIET)

    return made


def by_phases(hardest: bool) -> Runs:
    """DRIVE's recipe, or its stages with even draws in the last."""

    def made(seed: int, folder: Path) -> Run:
        run = drive(seed)
        *before, last = run.stages
        last = last if hardest else replace(cast(Reinforce, last), curriculum=Uniform())
        return replace(run, stages=(*before, last), evaluation=QUIET)

    return made


def after_each_other(stages: bool) -> Runs:
    """AceReason's recipe, or both families at once for as many steps, at full length and one rate."""

    def made(seed: int, folder: Path) -> Run:
        run = ace_reason(seed)
        if not stages:
            whole = replace(
                cast(Reinforce, run.stages[-1]), steps=sum(s.steps for s in run.stages), levels=(), curriculum=Uniform()
            )
            run = replace(run, stages=(replace(whole, learner=slow(2e-4)),))
        return replace(run, evaluation=QUIET)

    return made


def near_base(seed: int, folder: Path) -> Run:
    """SELF: prompts that the greedy answer solves are left out, and 0.05 of a divergence to stored answers of the base."""
    collect = Collect(steps=10, groups=32, group_size=2, keep="all", per_prompt=1, curriculum=Uniform())
    stored = train(replace(practised(seed), stages=(collect,)), folder / "stored", progress=False).folder / "collected.jsonl"
    objective = replace(grpo(kl=0.0), aggregate=Token(), terms=(Nll(streams=("expert",), aggregate=Token(), coef=0.05),))
    source = RowSource(data=str(stored), match="own", rows=32)
    return practised(seed, screen=SkipSolved(), objective=objective, sources=(source,))


def blended(name: str) -> Runs:
    """CrossThink: words to be reversed for general rows and digits to be sorted for mathematics, in the shares of a blend."""

    def made(seed: int, folder: Path) -> Run:
        run = ace_reason(seed)
        arms = dict(run.tasks.arms()) if name != "math_only" else {"sort": run.tasks.arms()["sort"]}
        drawn = blend(name, general=["reverse"] if "reverse" in arms else [], math=["sort"])
        whole = replace(cast(Reinforce, run.stages[-1]), steps=80, group_size=8, levels=arms, curriculum=drawn)
        return replace(run, name="blend", stages=(replace(whole, learner=slow(2e-4)),), evaluation=QUIET)

    return made


def falling_k(seed: int, folder: Path) -> Run:
    """Pass@k training with k of 4 until the sampled accuracy rises no more, 60 steps at most, then of 1: 100 steps at most."""
    part = partial(practised, seed, replace(TESTS, every=10))
    until = Until(metric="eval/sampled/all", patience=2)
    wide, narrow = (part(objective=pass_at_k_training(k=k), steps=n) for k, n in ((4, 60), (1, 40)))
    return replace(wide, stages=(replace(cast(Reinforce, wide.stages[0]), until=until), *narrow.stages))
