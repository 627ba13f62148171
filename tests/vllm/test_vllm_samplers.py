"""Runs whose rollouts a vLLM server samples while the learner works: ages, replay, proof of weights, and what goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from vllm_servers import PROCESSED

from assay.asynchronous import Asynchronous
from assay.core.errors import ConfigError, EngineError
from assay.core.rollout import Sampling
from assay.lab.controls import RandomReward, Rewarded
from assay.objective.methods import areal
from assay.runtime import AdamW, LearnerSettings, Lora, save_model
from assay.train import Evaluation, Folder, Reinforce, Run, train
from assay.train.preflight import check_run
from assay.train.replay import replay_run
from assay_tasks import SortDigits


@pytest.fixture(scope="module")
def plain(start):
    """bf16, without adapters: where they are switched on, vLLM 0.32 on a CPU dies of probes that are scored beside rollouts."""
    return start("--dtype", "bfloat16", *PROCESSED, "--enable-scale-out")


@pytest.fixture
def run(plain, model, tmp_path) -> Run:
    save_model(model, tmp_path / "start")
    return Run(
        model=Folder(str(tmp_path / "start")),
        tasks=Rewarded(source=SortDigits(levels=(1, 2)), scorer=RandomReward()),
        stages=(
            Reinforce(
                steps=5,
                groups=4,
                group_size=4,
                objective=areal(),
                learner=LearnerSettings(optimizer=AdamW(lr=1e-4)),
                asynchronous=Asynchronous(samplers=1, eta=2, policy="continue", keep_log=True),
            ),
        ),
        sampling=Sampling(max_new_tokens=24),
        engine=plain.settings(),
        evaluation=Evaluation(every=0, final_per_level=2),
    )


def steps_of(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line)["metrics"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [metrics for metrics in lines if "async/proved" in metrics]


def test_a_server_samples_while_the_learner_works(run, tmp_path):
    """New weights reach it by HTTP while it samples, every answer to them proves them, and the log replays."""
    done = train(run, tmp_path / "run", progress=False)
    assert done.finished
    steps = steps_of(tmp_path / "run")
    assert len(steps) == 5 and max(s["async/age_max"] for s in steps) <= 2
    assert all(s["async/proved"] == 1.0 for s in steps)
    assert all(s.get("engine/mismatch_k3", 0.0) < 0.05 for s in steps), (
        "absent where every token is behind those of other weights"
    )
    assert not list((tmp_path / "run").glob("events.jsonl")) or "replaced" not in (tmp_path / "run" / "events.jsonl").read_text()
    assert replay_run(tmp_path / "run").equal


def test_tokens_of_one_answer_tell_the_weights_of_each(run, tmp_path):
    stage = replace(run.stages[0], steps=8, asynchronous=Asynchronous(samplers=1, eta=4, policy="continue", keep_log=True))
    run = replace(run, stages=(stage,), sampling=Sampling(max_new_tokens=400))
    train(run, tmp_path / "run", progress=False)
    spans = []
    for log in (tmp_path / "run" / "samplers" / "accepted").glob("*.jsonl"):
        for line in log.read_text().splitlines():
            record = json.loads(line.partition(" ")[2])
            for rollout in record.get("rollouts", ()):
                spans += [call["completion"]["spans"] for call in rollout["calls"]]
    several = [s for s in spans if len(s) > 1]
    assert several, "an answer went on under new weights"


def test_a_server_that_somebody_else_loads_weights_into_ends_the_run(run, plain, tmp_path):
    """Its label is another: nothing that it samples then is learned from."""
    from assay.train.callbacks import Callback

    class Meddles(Callback):
        def on_step(self, step: int, metrics: object) -> None:
            if step == 2:
                plain.post("/update_weight_version", {"new_version": "somebody-else"})

    with pytest.raises(EngineError, match="weights"):
        train(replace(run, stages=(replace(run.stages[0], steps=40),)), tmp_path / "run", progress=False, callbacks=[Meddles()])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"asynchronous": Asynchronous(samplers=2, eta=1)}, "name as many different addresses as samplers"),
        ({"learner": LearnerSettings(adapter=Lora(rank=4))}, "this stage trains an adapter"),
    ],
)
def test_what_a_server_cannot_do_is_refused(run, change, why):
    with pytest.raises(ConfigError, match=why):
        check_run(replace(run, stages=(replace(run.stages[0], **change),)))
