"""Bases and judges of `benchmarks.judged`, made on the spot: two layers, 0.23M parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.core import Sampling
from assay.guide import Uniform
from assay.objective import Token, grpo
from assay.runtime import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.scorers import keep_for_rejection
from assay.train import Evaluation, Folder, Imitate, Policy, Reinforce, Run, Scratch, WarmUp, train
from benchmarks.judged_forms import Judgements, best_of
from benchmarks.judged_measures import task_of
from benchmarks.judged_tasks import Shifts

__all__ = ["LINEAR", "base", "stage_of", "train_judge"]

LINEAR = LearningRateSchedule(kind="linear", start=0.5, floor=0.1)


def base(tasks: Shifts, seed: int, steps: int = 300, noise: float = 0.3) -> Run:
    """A policy that was shown attempts with slips."""
    return Run(
        name=f"base-{tasks.name}",
        seed=seed,
        model=Scratch(shape=DecoderShape(num_layers=2), seed=seed),
        tasks=tasks,
        stages=(shown(steps, noise),),
        sampling=Sampling(max_new_tokens=16),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=1000,
    )


def shown(steps: int, noise: float) -> WarmUp:
    """Fresh traces, by Muon."""
    return WarmUp(
        steps=steps,
        batch=32,
        demonstrations=0,
        noise=noise,
        learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
    )


def train_judge(form: str, folder: Path, steps: int, rl: int) -> list[Path]:
    """Run folders of a judge's stages: shown judgements of which some are wrong; for marks, SPCT's rejection; its form's rule.

    Folders that are there are taken as they are.

    Args:
        form: of `benchmarks.judged_forms.FORMS`.
        folder: in which they are made.
        steps: in which judgements are shown.
        rl: steps by the rule; 0 for none.
    """
    first = _made(folder / form / "shown", judge(form, Scratch(shape=DecoderShape(num_layers=2), seed=0), shown(steps, 0.1)))
    places = [first]
    if form == "marks":
        place = folder / form / "rejection"
        if not (place / "model").exists():
            rows = rejection_rows(Policy(first), Judgements(form=form))
            learner = LearnerSettings(optimizer=AdamW(lr=3e-4), schedule=LINEAR)
            _made(place, judge(form, Folder(path=str(first)), Imitate(data=rows, steps=60, batch=32, learner=learner)))
        places.append(place)
    if rl:
        stage = Reinforce(
            steps=rl,
            groups=16,
            group_size=8,
            objective=replace(grpo(kl=0.0), aggregate=Token()),
            curriculum=Uniform(),
            learner=LearnerSettings(optimizer=AdamW(lr=3e-4), schedule=LINEAR),
        )
        places.append(_made(folder / form / "rule", judge(form, Folder(path=str(places[-1])), stage)))
    return places


def stage_of(place: Path) -> str:
    """``shown``, ``rejection`` or ``rule``."""
    return place.name


def judge(form: str, model: Any, stage: Any) -> Run:
    """A stage of a judge's training."""
    return Run(
        name=f"judge-{form}",
        model=model,
        tasks=Judgements(form=form),
        stages=(stage,),
        sampling=Sampling(max_new_tokens=54),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=1000,
    )


def rejection_rows(policy: Policy, questions: Judgements, prompts: int = 500, samples: int = 3) -> tuple[dict[str, str], ...]:
    """SPCT's rejective set: right judgements, of questions on which not all samples are right (`keep_for_rejection`)."""
    rows: list[dict[str, str]] = []
    for item in policy.evaluate(questions, n=samples, per_level=prompts, split="train", sampling=Sampling(max_new_tokens=54)):
        task = task_of(questions, item)
        truth = str(task.private["answer"]).rpartition(":")[2]
        said = [text.rpartition(":")[2].strip() for text in item["answers"]]
        marks = [[int(c) for c in s] if s.isdigit() and len(s) == len(truth) else [0] * len(truth) for s in said]
        kept = keep_for_rejection(marks, best_of(truth))
        rows += [{"prompt": task.public["prompt"], "completion": item["answers"][n]} for n in kept]
    return tuple(rows)


def _made(place: Path, run: Run) -> Path:
    if not (place / "model").exists():
        train(run, place, progress=False)
    return place
