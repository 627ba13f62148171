"""Whole runs on models of other families: SFT and RL in one run, full or by an adapter, proved, resumed exactly, loadable."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hub_cases import FAMILIES, exaggerated, hub_model
from tiny_runs import in_child, kill_at, points_into, resumed, trained

import assay.runtime.kernels.row_attention as rows
from assay.core.errors import ConfigError
from assay.core.rollout import Sampling
from assay.guide import Compose, Recent
from assay.lab.controls import RandomReward, Rewarded
from assay.objective import tis
from assay.runs.storage import read_json
from assay.runtime import AdamW, Auto, InProcess, LearnerSettings, Lora, Native, TransformersEngine, load_model, save_model
from assay.train import Evaluation, Folder, Policy, Reinforce, Run, WarmUp, models, train
from assay.train.opening import open_stage
from assay.verify import ScoringPool
from assay_tasks import SortDigits

LORA = Lora(rank=8)


def hub_run(
    folder: Path, adapter: Lora | None, warm: int = 4, rl: int = 4, levels: tuple[int, ...] = (1, 2, 3), **changes: Any
) -> Run:
    sft = LearnerSettings(optimizer=AdamW(lr=2e-3))
    learner = LearnerSettings(optimizer=AdamW(lr=2e-3 if adapter else 5e-4), adapter=adapter)
    given: dict[str, Any] = {
        "model": Folder(str(folder)),
        "tasks": SortDigits(levels=levels),
        "sampling": Sampling(max_new_tokens=5),
        "stages": (
            WarmUp(steps=warm, batch=16, demonstrations=400, levels=levels[:2], learner=sft),
            Reinforce(steps=rl, groups=4, group_size=4, learner=learner),
        ),
        "evaluation": Evaluation(every=0, final_per_level=2),
        "checkpoint_every": 3,
    }
    return Run(**(given | changes))


def proofs(folder: Path) -> list[str]:
    return [line for line in (folder / "metrics.jsonl").read_text().splitlines() if '"proof/state": 1.0' in line]


EACH_FAMILY = [
    pytest.param(
        family,
        adapter,
        id=f"{family}-{'lora' if adapter else 'full'}",
        marks=pytest.mark.prove if bool(adapter) == bool(number % 2) else pytest.mark.evidence,
    )
    for number, family in enumerate(FAMILIES)
    for adapter in (None, LORA)
]
"""Every family is proved in full or by an adapter, by turns; the other of the two is evidence."""


@pytest.mark.parametrize(
    ("family", "adapter"),
    [
        pytest.param("gpt2", None, marks=pytest.mark.prove),
        pytest.param("gemma3", LORA, marks=pytest.mark.prove),
        ("qwen3", LORA),
    ],
    ids=lambda x: x if isinstance(x, str) else "lora" if x else "full",
)
def test_a_run_of_two_stages_is_proved_and_goes_on_exactly(family, adapter, tmp_path):
    save_model(hub_model(family), tmp_path / "base")
    run = hub_run(tmp_path / "base", adapter)
    points = tmp_path / "points"
    whole = trained(run, tmp_path / "whole", lambda: points_into(points))
    assert len(proofs(tmp_path / "whole")) == 4
    written = points.read_text().split()
    last = max(i for i, point in enumerate(written) if point.startswith("renamed:step_"))
    for number in (written.index("renamed:stage_1") if adapter else last - 2, last):  # in the second stage
        folder = tmp_path / f"killed_{number}"
        assert in_child(lambda at=number, place=folder: (kill_at(at), train(run, place))) == -signal.SIGKILL
        assert resumed(folder) == whole
    made = load_model(tmp_path / "whole" / "model")
    assert (made.adapter is not None) == (adapter is not None) if family != "qwen3" else made.adapter.settings == LORA
    from transformers import AutoModelForCausalLM

    assert AutoModelForCausalLM.from_pretrained(tmp_path / "whole" / "model") is not None


@pytest.mark.parametrize(("family", "adapter"), EACH_FAMILY)
def test_sft_teaches_and_rl_improves_every_family(family, adapter, tmp_path):
    """Demonstrations are noisy: verified rollouts repair what they taught wrong."""
    save_model(hub_model(family), tmp_path / "base")
    run = hub_run(
        tmp_path / "base",
        adapter,
        levels=(2, 3),
        evaluation=Evaluation(every=0, final_per_level=64, n=2),
        checkpoint_every=100,
    )
    sft = replace(run.stages[0], steps=200, batch=32, noise=0.4)
    rl = replace(run.stages[1], steps=60, groups=8, group_size=8)
    train(replace(run, stages=(sft, rl)), tmp_path / "run")
    lines = map(json.loads, (tmp_path / "run" / "evals.jsonl").read_text().splitlines())
    found = {(e["step"], e["mode"]): accuracy(e) for e in lines}
    before, after = found[200, "sampled"], found[260, "sampled"]
    assert before > 0.1, "the demonstrations taught nothing"
    assert after > before + 0.1
    assert len(proofs(tmp_path / "run")) == 60


@pytest.mark.prove
def test_random_rewards_improve_nothing(tmp_path):
    """The control of the matrix: the same two stages, the second rewarded by coin tosses."""
    save_model(hub_model("gpt_neox"), tmp_path / "base")
    run = hub_run(tmp_path / "base", None, levels=(2, 3), evaluation=Evaluation(every=0, final_per_level=64, n=2))
    tossed = Rewarded(source=SortDigits(levels=(2, 3)), scorer=RandomReward())
    sft = replace(run.stages[0], steps=200, batch=32, noise=0.4)
    rl = replace(run.stages[1], steps=60, groups=8, group_size=8)
    train(replace(run, stages=(sft,)), tmp_path / "sft")
    train(replace(run, model=Folder(str(tmp_path / "sft")), tasks=tossed, stages=(rl,)), tmp_path / "rl")
    before, after = (answers(Policy(tmp_path / name)) for name in ("sft", "rl"))
    assert before > 0.1 and after <= before


def answers(policy: Policy) -> float:
    """Share of right answers at temperature 1, by the family's own verifier."""
    found = policy.evaluate(SortDigits(levels=(2, 3)), n=2, sampling=Sampling(max_new_tokens=5))
    values = [value for item in found for value in item["values"]]
    return sum(value >= 1 for value in values) / len(values)


def accuracy(record: Any) -> float:
    values = [value for item in record["items"] for value in item["values"]]
    return sum(value >= 1 for value in values) / len(values)


# ---- mixtures of experts ---------------------------------------------------------------------------------------------------


def mixture_run(base: Path, **changes: Any) -> Run:
    """RL on a mixture sampled in bfloat16, some groups of which come back from a replay."""
    save_model(exaggerated("mixtral"), base)
    learner = LearnerSettings(optimizer=AdamW(lr=5e-4), replay_routing=True)
    stage = Reinforce(
        steps=4,
        groups=4,
        group_size=4,
        learner=learner,
        objective=tis(),
        replay=Recent(capacity=4),
        composer=Compose(replay_share=0.25),
    )
    tossed = Rewarded(source=SortDigits(levels=(1, 2, 3)), scorer=RandomReward())
    run = hub_run(base, None, tasks=tossed, engine=InProcess(dtype="bfloat16"), sampling=Sampling(max_new_tokens=24))
    return replace(run, stages=(stage,), **changes)


@pytest.mark.prove
def test_a_run_that_replays_its_routing_goes_on_exactly(tmp_path):
    run = mixture_run(tmp_path / "base")
    points = tmp_path / "points"
    whole = trained(run, tmp_path / "whole", lambda: points_into(points))
    last = max(i for i, point in enumerate(points.read_text().split()) if point.startswith("renamed:step_"))
    assert in_child(lambda: (kill_at(last), train(run, tmp_path / "killed"))) == -signal.SIGKILL
    assert resumed(tmp_path / "killed") == whole


@pytest.mark.slow
def test_a_run_replays_its_routing(tmp_path):
    run = mixture_run(tmp_path / "base")
    train(run, tmp_path / "whole")
    lines = [json.loads(x)["metrics"] for x in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    told = [m["engine/router_agreement"] for m in lines if "engine/router_agreement" in m]
    assert len(told) == 4 and 0.9 < min(told) < 1.0, "rounding moves some tokens to other experts"
    free = replace(run.stages[0], learner=replace(run.stages[0].learner, replay_routing=False))
    watching = replace(run, stages=(free,), engine=InProcess(dtype="bfloat16", routing=True))
    train(watching, tmp_path / "free")
    first = json.loads((tmp_path / "free" / "metrics.jsonl").read_text().splitlines()[1])["metrics"]
    assert 0.9 < first["engine/router_agreement"] < 1.0, "told without replay too"
    assert first["engine/mismatch_k3"] > lines[1]["engine/mismatch_k3"] > 0, "the same rollouts, nearer by replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """An engine that does not tell of its routing."""

    def build(self, learner: Any) -> Any:
        return TransformersEngine(learner.model().module(), 160)


def test_routing_that_nobody_tells_of_is_refused(tmp_path):
    run = mixture_run(tmp_path / "base", engine=Silent())
    with pytest.raises(ConfigError, match=r"replay_routing: the engine of Run.engine=Silent\(\) does not tell"):
        train(run, tmp_path / "run")
    taught = replace(run, stages=(WarmUp(steps=1, learner=LearnerSettings(replay_routing=True)),))
    with pytest.raises(ConfigError, match=r"WarmUp.learner.replay_routing: no engine sampled these rows"):
        train(taught, tmp_path / "run2")


# ---- which engine ---------------------------------------------------------------------------------------------------------


def opened(run: Run) -> Any:
    model = models.load_source(run.model, lambda run, folder: folder)
    return open_stage(run, run.stages[1], model, ScoringPool(run.tasks.verifier()), 0)


@pytest.mark.parametrize(
    ("family", "learner", "said"),
    [
        ("gpt2", LearnerSettings(replay_routing=True), "GPT2LMHeadModel has no experts"),
        ("mixtral", LearnerSettings(compile=True, precision="bf16"), "MixtralForCausalLM is not compiled"),
        ("gpt2", LearnerSettings(device="cuda"), "PyTorch sees no CUDA device"),
        ("gpt2", LearnerSettings(adapter=Lora(targets=("q_proj",))), r"Lora.targets=\('q_proj',\): .*'c_attn', 'c_fc'"),
        ("qwen3", LearnerSettings(adapter=Lora(targets=("query",))), r"Lora.targets=\('query',\): .*'k_proj'"),
    ],
)
def test_what_a_later_stage_cannot_do_is_found_before_the_first(family, learner, said, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    save_model(hub_model(family), tmp_path / "base")
    run = hub_run(tmp_path / "base", None, warm=1, rl=1)
    run = replace(run, stages=(run.stages[0], replace(run.stages[1], learner=learner)), engine=InProcess(routing=False))
    with pytest.raises(ConfigError, match=said):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run" / "start").exists()


def test_the_engine_suits_the_model(tmp_path):
    save_model(hub_model("qwen3"), tmp_path / "own")
    save_model(hub_model("phi"), tmp_path / "other")
    own, other = hub_run(tmp_path / "own", None), hub_run(tmp_path / "other", None)
    assert type(opened(own).parts.engine).__name__ == "NativeEngine"
    for run in (other, hub_run(tmp_path / "own", LORA), replace(own, engine=InProcess(max_batch=4))):
        assert isinstance(opened(run).parts.engine, TransformersEngine)
    mine = hub_run(tmp_path / "own", LORA, engine=Native())
    for run, what in ((replace(other, engine=Native()), "PhiForCausalLM"), (mine, "an adapter")):
        with pytest.raises(ConfigError, match=rf"Run.engine=Native\(\) cannot serve .*{what}"):
            opened(run)
    assert own.engine == Auto()


def test_frozen_weights_are_shared_and_trained_ones_are_not(tmp_path):
    save_model(hub_model("phi"), tmp_path / "base")
    s = opened(hub_run(tmp_path / "base", LORA))
    theirs = dict(s.parts.engine.weights._module.named_parameters())
    for name, parameter in s.parts.learner.policy.weights().items():
        assert (theirs[name].data_ptr() == parameter.data_ptr()) == (name not in s.parts.learner.parameters)


def test_a_bfloat16_engine_is_proved_by_the_bits_that_it_serves(tmp_path):
    save_model(hub_model("llama"), tmp_path / "base")
    run = hub_run(tmp_path / "base", None, engine=InProcess(dtype="bfloat16"))
    assert train(run, tmp_path / "run").finished
    assert len(proofs(tmp_path / "run")) == 4
    assert read_json(tmp_path / "run" / "done.json")["step"] == 8


def test_a_folder_is_free_again_when_its_run_could_not_begin(tmp_path):
    save_model(hub_model("phi"), tmp_path / "base")
    run = hub_run(tmp_path / "base", None, warm=1, rl=1)
    with pytest.raises(ConfigError, match=r"cannot serve PhiForCausalLM; use InProcess"):
        train(replace(run, engine=Native()), tmp_path / "run")
    assert train(run, tmp_path / "run").finished


def test_a_run_says_that_its_rows_are_padded(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_bucket", lambda *given: 1 / 0)
    save_model(hub_model("phi"), tmp_path / "base")
    assert train(hub_run(tmp_path / "base", None, warm=1, rl=1), tmp_path / "run").finished
    said = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    told = [line for line in said if line["kind"] == "rows"]
    assert len(told) == 2 and "padded to rectangles: its attention cannot be taken over" in str(told[0])


def test_bad_engine_settings_are_refused():
    with pytest.raises(ConfigError, match=r"InProcess.dtype='fp8'"):
        InProcess(dtype="fp8")
