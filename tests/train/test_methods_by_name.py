"""Every method of ``assay methods``, named on the command line of the quickstart, trains."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss

from assay.cli.recipe import settle_all
from assay.cli.train import TrainOptions
from assay.core.errors import ConfigError
from assay.objective.methods import methods
from assay.runtime.models.hf import save_model
from assay.train import models
from assay.train.opening import open_stage
from assay.train.preflight import check_fits
from assay.train.run import Run
from assay.train.stages import WarmUp
from assay.train.wiring import models_of
from assay.verify import ScoringPool

SHAPE = {
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 1,
    "num_kv_heads": 1,
    "head_dim": 16,
    "intermediate_size": 32,
    "max_positions": 64,
}
SMALL = [
    "--model.kind",
    "Scratch",
    *(word for name, size in SHAPE.items() for word in (f"--model.shape.{name}", str(size))),
    "--sampling.max_new_tokens",
    "4",
    "--evaluation.every",
    "0",
    "--evaluation.levels",
    "3",
    "--stages.0.steps",
    "2",
    "--stages.0.levels",
    "3",
    "4",
]
FEW = ["--stages.0.groups", "4"]  # rollouts as the recipe has them: no baseline asks for more
MORE = {
    "grpo_passk": ["--stages.0.group_size", "2"],  # it learns from groups with a lone right answer
    "delethink": ["--sampling.max_new_tokens", "16"],  # it pays nothing for answers that do not end
}
TAUGHT = [name for name, m in methods().items() if "teacher" in models_of(m.objective(**m.requires.settings))]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another small model of the same family."""
    folder = tmp_path_factory.mktemp("teacher") / "model"
    run = named("grpo")
    assert isinstance(run.model, models.Scratch)
    save_model(models.load_source(replace(run.model, seed=1), lambda run, folder: folder), folder)
    return folder


@pytest.fixture(scope="module")
def pool() -> Iterator[ScoringPool]:
    with_pool = ScoringPool(coin_toss(named("grpo")).tasks.verifier())
    yield with_pool
    with_pool.close()


def named(name: str, *more: str) -> Run:
    few = [] if name == "nll" else FEW
    run = settle_all(TrainOptions, ["quickstart", "--stages.0.objective.kind", name, *SMALL, *few, *more], "assay train").run
    return coin_toss(run)


def weights(s: Any) -> list[np.ndarray]:
    """Of the policy, then those of its heads, which may learn before it."""
    policy = s.parts.learner.publish().payload
    assert policy is not None
    heads = [t.numpy() for _, own, _ in s.parts.learner.heads.export_heads().values() for t in own.values()]
    return [np.array(a) for a in (*policy.values(), *heads)]


@pytest.mark.parametrize("name", list(methods()))
def test_two_steps_by_name(name: str, teacher: Path, pool: ScoringPool) -> None:
    taught = ["--stages.0.objective.teacher_model", str(teacher)] if name in TAUGHT else []
    run = named(name, *taught, *MORE.get(name, []))
    (stage,) = run.stages
    assert isinstance(run.model, models.Scratch)
    model = models.load_source(run.model, lambda run, folder: folder)
    check_fits(run, model)
    assert isinstance(stage, WarmUp) == (name == "nll")
    s = open_stage(run, stage, model, pool, 0)
    before = weights(s)
    for _ in range(2):
        metrics = asyncio.run(s.step()).metrics
        s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
        assert np.isfinite(metrics["loss/total"])
    after = weights(s)
    assert any((a != b).any() for a, b in zip(before, after, strict=True)), "nothing was learned"


def test_a_method_that_learns_from_a_teacher_asks_for_one() -> None:
    assert TAUGHT == [
        "gkd",
        "iw_opd",
        "kd_estimator",
        "kd_topk",
        "kdrl",
        "opd",
        "opd_advantage",
        "opd_clipped",
        "ref_kl",
    ]
    for name in TAUGHT:
        with pytest.raises(ConfigError, match=rf"{name} learns from a model 'teacher'.*--stages\.0\.objective\.teacher_model"):
            named(name)
