"""What preferences teach: on held-out pairs what is preferred becomes likelier, and by the labels alone; groups that the policy
sampled do as well as pairs that are given.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import SORTED, prefer, preferring, reinforce, warm_up

from assay.objective import Objective, dpo, kto, orpo, simpo
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.hf import load_model
from assay.runtime.models.model import Model
from assay.runtime.settings import AdamW, LearnerSettings
from assay.tasks import Rows
from assay.train.driver import train
from assay.train.run import Evaluation

Row = Mapping[str, Any]


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def of_stage(folder: Path, name: str) -> list[dict[str, float]]:
    return [r["metrics"] for r in metrics(folder) if r["stage"] == name and "loss/total" in r["metrics"]]


# ---- learning -----------------------------------------------------------------------------------------------------------


def margin(model: Model, rows: Sequence[Row]) -> float:
    """Mean of ``log p(chosen) - log p(rejected)`` in nats."""
    learner, t = TorchLearner(model, LearnerSettings(), total_steps=1), model.tokenizer
    asked = [t.encode(row["prompt"]) for row in rows]

    def total(side: str) -> float:
        said = [np.concatenate([a, t.encode(row[side]), [t.eos]]) for a, row in zip(asked, rows, strict=True)]
        return sum(float(x[len(a) :].sum()) for x, a in zip(learner.score(said), asked, strict=True))

    return (total("chosen") - total("rejected")) / len(rows)


MIXED = random.Random(3).sample(SORTED, len(SORTED))
TRAIN, HELD_OUT = MIXED[:70], MIXED[70:]


def swapped(row: Row) -> Row:
    return {"prompt": row["prompt"], "chosen": row["rejected"], "rejected": row["chosen"]}


def gain(folder: Path, rows: Sequence[Row], objective: Objective) -> float:
    """How far a run moves the margin on held-out pairs."""
    run = replace(preferring(prefer(data=rows, steps=60, batch=14, objective=objective)), prove_weights=False)
    run = replace(run, evaluation=Evaluation(every=0, per_level=1, final_per_level=1), checkpoint_every=60)
    assert train(run, folder).finished
    return margin(load_model(folder / "model"), HELD_OUT) - margin(load_model(folder / "start"), HELD_OUT)


@pytest.mark.prove
@pytest.mark.parametrize("method", [dpo, kto])
def test_what_is_preferred_becomes_likelier_on_held_out_pairs_and_only_by_the_labels(tmp_path: Path, method: Any) -> None:
    random_ = random.Random(5)
    up = gain(tmp_path / "up", TRAIN, method())
    down = gain(tmp_path / "down", [swapped(row) for row in TRAIN], method())
    none = gain(tmp_path / "none", [swapped(row) if random_.random() < 0.5 else row for row in TRAIN], method())
    assert up > 1.0 and down < -1.0
    assert abs(none) < 0.25 * min(up, -down)
    told = of_stage(tmp_path / "up", "preferences")
    assert told[0]["score/margin"] == 0.0 and told[-1]["score/margin"] > 1.0 and told[-1]["score/accuracy"] > 0.9


@pytest.mark.prove
def test_verdicts_teach_kto_and_ranked_lists_teach_dpo(tmp_path: Path) -> None:
    verdicts = [
        {"prompt": row["prompt"], "completion": row[side], "label": side == "chosen"}
        for row in TRAIN
        for side in ("chosen", "rejected")
    ]
    lists = [{"prompt": row["prompt"], "answers": [row["chosen"], row["chosen"][:1], row["rejected"]]} for row in TRAIN]
    assert gain(tmp_path / "verdicts", verdicts, kto()) > 1.0
    assert gain(tmp_path / "lists", lists, dpo()) > 1.0


@pytest.mark.prove
@pytest.mark.parametrize("method", [simpo, orpo])
def test_a_method_without_a_reference_learns_too(tmp_path: Path, method: Any) -> None:
    assert gain(tmp_path / "up", TRAIN, method()) > 0.4
    assert gain(tmp_path / "down", [swapped(row) for row in TRAIN], method()) < -0.4


def test_the_stage_is_evaluated_at_its_ends(tmp_path: Path) -> None:
    train(preferring(prefer(steps=3)), tmp_path / "run")
    found = [(r["step"], "eval/greedy/all" in r["metrics"]) for r in metrics(tmp_path / "run")]
    assert found == [(0, True), (1, False), (2, False), (3, True)]
    assert metrics(tmp_path / "run")[-1]["metrics"]["kl/base"] > 0


# ---- pairs of sampled groups --------------------------------------------------------------------------------------------


def low(prompt: str, completion: str, row: Any) -> float:
    """Right is what begins with a small digit."""
    return float(completion[:1] in ("0", "1", "2", "3", "4"))


def coin(prompt: str, completion: str, row: Any) -> float:
    """Right or wrong by a hash of the whole."""
    return float(hashlib.blake2b((prompt + completion).encode()).digest()[0] % 2)


def online(folder: Path, objective: Objective, reward: Any) -> list[dict[str, float]]:
    """Metrics of RL steps behind a short warm-up."""
    tasks = Rows([{"prompt": row["prompt"], "answer": row["rejected"]} for row in SORTED], test_share=0.2, reward=reward)
    learner = LearnerSettings(optimizer=AdamW(lr=1e-3))
    stage = reinforce(steps=20, groups=16, group_size=8, objective=objective, learner=learner)
    run = replace(preferring(warm_up(steps=20, batch=64, levels=()), stage), tasks=tasks, checkpoint_every=50)
    assert train(replace(run, evaluation=Evaluation(every=0, final_per_level=2)), folder).finished
    return of_stage(folder, "rl")


def rise(found: Sequence[Mapping[str, float]]) -> float:
    rewards = [m["reward/mean"] for m in found]
    return float(np.mean(rewards[-5:]) - np.mean(rewards[:5]))


@pytest.mark.prove
@pytest.mark.parametrize("method", [dpo, kto])
def test_groups_that_the_policy_sampled_teach_it(tmp_path: Path, method: Any) -> None:
    """Right and wrong answers of a group are its pairs; the share of groups that have both is ``signal/fraction``."""
    found = online(tmp_path / "low", method(), low)
    assert rise(found) > 0.1
    assert found[0]["score/margin"] == 0.0 and found[-1]["score/margin"] > 0.3 and found[-1]["score/accuracy"] > 0.6
    assert all(0.5 < m["signal/fraction"] <= 1 for m in found)
    assert abs(rise(online(tmp_path / "coin", method(), coin))) < 0.05


@pytest.mark.slow
def test_iterated_dpo_compares_each_round_with_the_one_before(tmp_path: Path) -> None:
    tasks = Rows([{"prompt": row["prompt"], "answer": row["rejected"]} for row in SORTED], test_share=0.2, reward=low)
    rounds = (reinforce(steps=2, groups=16, group_size=8, objective=dpo()) for _ in range(2))
    train(replace(preferring(warm_up(steps=20, batch=64, levels=()), *rounds), tasks=tasks), tmp_path / "run")
    margins = [m["score/margin"] for m in of_stage(tmp_path / "run", "rl")]
    assert margins[0] == margins[2] == 0.0 and margins[1] != 0.0 != margins[3]


def test_groups_without_both_give_no_pair_and_say_so(tmp_path: Path) -> None:
    """From fresh weights no rollout is right: no pairs, no gradient."""
    train(preferring(reinforce(steps=2, objective=dpo(), levels=(3,))), tmp_path / "run")
    for found in of_stage(tmp_path / "run", "rl"):
        assert found["signal/fraction"] == 0.0 and found["grad/norm"] == 0.0 and found["waste/rows_skipped"] == 1.0
        assert "score/margin" not in found


def test_each_stage_compares_with_the_weights_that_it_starts_from(tmp_path: Path) -> None:
    """Iterated DPO: the second stage's reference is what the first one made."""
    run = preferring(prefer(steps=5), prefer(steps=2))
    train(run, tmp_path / "run")
    found = [m["score/margin"] for m in of_stage(tmp_path / "run", "preferences")]
    assert found[0] == found[5] == 0.0 and all(m != 0 for m in (*found[1:5], found[6]))
