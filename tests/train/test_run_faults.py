"""Bad input and faults in a real run: a typed error, before the run where it can be known, and a resume that works."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import SHAPE, digest_of, only_rl, reinforce, resumed, tiny, trained, warm_up

from assay.core.errors import ConfigError, DataError, EngineError, GateError, NonFiniteError, PlanError, RewardError
from assay.core.rollout import Sampling
from assay.guide import Compose, Recent
from assay.lab.controls import RandomReward, Rewarded
from assay.objective.methods import grpo
from assay.objective.methods import reinforce as reinforce_method
from assay.objective.program import Program
from assay.runs import checkpoint
from assay.runtime.settings import AdamW, LearnerSettings, Muon
from assay.runtime.vllm.settings import VllmSettings
from assay.tasks import Rows
from assay.train import models
from assay.train.driver import resume, train
from assay.train.reinforce import Reinforce, Until
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay.verify import RewardFunction
from assay_tasks import SortDigits

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(10) for b in range(10)]
BROKEN = "ASSAY_TEST_BROKEN"


def length_reward(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return float(len(completion) % 3)


def fragile(prompt: str, completion: str, row: dict[str, Any]) -> float:
    if BROKEN in os.environ:
        raise ValueError("the server of the reward is down")
    return length_reward(prompt, completion, row)


def sometimes(prompt: str, completion: str, row: dict[str, Any]) -> float:
    if completion.startswith("1") or len(completion) % 4 == 3:
        raise ValueError("odd answer")
    return length_reward(prompt, completion, row)


def often_nan(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return float("nan") if len(completion) % 4 == 3 else 1.0


def wrong_count(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
    return [1.0] * (len(prompts) + 1)


def hangs(prompt: str, completion: str, row: dict[str, Any]) -> float:
    time.sleep(60)
    return 0.0


def on_rows(reward: Callable[..., Any] | RewardFunction | None, **changes: Any) -> Run:
    run = only_rl(steps=4, objective=reinforce_method(), group_size=2)
    changes = {"evaluation": Evaluation(every=0, final_per_level=2), "checkpoint_every": 2} | changes
    return replace(run, tasks=Rows(ROWS, reward=reward), **changes)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line)["metrics"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


# ---- losses and weights that are not finite -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_run_and_the_resume_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = only_rl(steps=8)
    micro, calls = Program.micro, iter(range(1000))

    def nan(self: Program, batch: Any, live: Any) -> Any:
        loss, numbers = micro(self, batch, live)
        return (loss * float("nan") if next(calls) >= 6 else loss), numbers

    monkeypatch.setattr(Program, "micro", nan)
    with pytest.raises(NonFiniteError, match=r"the loss is nan .* not changed"):
        train(run, tmp_path / "run")
    assert [e["kind"] for e in events(tmp_path / "run")] == ["error"]
    found = checkpoint.latest(tmp_path / "run")
    assert found and found.name == "step_0000004"
    monkeypatch.undo()
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "clean")
    said = events(tmp_path / "run")
    assert [(e["kind"], e["step"]) for e in said] == [("resumed", 4)]
    assert said[0]["message"].startswith("from step 4, after NonFiniteError: step 6: the loss is nan")


def test_weights_that_are_not_finite_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.runtime.learner.learner import TorchLearner

    step, calls = TorchLearner.step, iter(range(1000))

    def explode(self: TorchLearner, *args: Any) -> Any:
        stats = step(self, *args)
        if next(calls) == 2:
            next(iter(self.parameters.values())).data.fill_(float("nan"))
        return stats

    monkeypatch.setattr(TorchLearner, "step", explode)
    with pytest.raises((EngineError, NonFiniteError), match=r"finite|nan"):
        train(replace(only_rl(steps=8), prove_weights=False), tmp_path / "run")
    assert checkpoint.latest(tmp_path / "run") is not None


def test_weights_that_overflow_are_told_as_such_and_not_as_a_stale_sampler(tmp_path: Path) -> None:
    run = only_rl(steps=8)
    stage = replace(run.stages[0], learner=LearnerSettings(optimizer=AdamW(lr=1e38)))
    rewarded = Rewarded(source=run.tasks, scorer=RandomReward())
    with pytest.raises(NonFiniteError, match=r"lower the learning rate|finite"):
        train(replace(run, tasks=rewarded, stages=(stage,)), tmp_path / "run")


@pytest.mark.parametrize("drawn", [{"temperature": 0.0}, {"top_p": 0.9}, {"top_k": 3}, {"min_p": 0.1}])
def test_rl_under_a_distribution_that_nothing_corrects_for_is_refused(tmp_path: Path, drawn: dict[str, Any]) -> None:
    run = replace(only_rl(steps=2), sampling=Sampling(max_new_tokens=5, **drawn), engine=VllmSettings())
    with pytest.raises(ConfigError, match=r"no group would have a signal|the objective does not correct for that"):
        train(run, tmp_path / "run")


def test_a_replay_without_a_ratio_is_refused(tmp_path: Path) -> None:
    run = only_rl(steps=2, objective=reinforce_method(), replay=Recent(capacity=8), composer=Compose(replay_share=0.25))
    with pytest.raises(ConfigError, match=r"replay_share=0.25: replayed rollouts come from older weights"):
        train(run, tmp_path / "run")


def test_every_row_is_looked_at_before_the_run(tmp_path: Path) -> None:
    """One bad row among hundreds must not stop a run in its middle."""
    rows = [{"prompt": f"S{i}>", "answer": "1"} for i in range(300)] + [{"prompt": "S" + "9" * 200 + ">", "answer": "1"}]
    with pytest.raises(ConfigError, match=r"has a prompt of 202 tokens"):
        train(replace(only_rl(steps=2), tasks=Rows(rows)), tmp_path / "run")


# ---- rewards ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reward_that_raises_ends_the_run_and_can_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BROKEN, "1")
    with pytest.raises(RewardError, match=r"no verdict on .* answers(?s:.*)server of the reward is down(?s:.*)row:") as caught:
        train(on_rows(fragile), tmp_path / "run")
    assert [entry.name for entry in caught.traceback] == [caught.traceback[0].name, "train"], "no frames of assay's inside"
    monkeypatch.delenv(BROKEN)
    assert resumed(tmp_path / "run") == trained(on_rows(fragile), tmp_path / "clean")


def test_faults_on_some_answers_are_counted_and_masked(tmp_path: Path) -> None:
    assert train(on_rows(sometimes, reward_errors="count"), tmp_path / "run").finished
    rates = [m["fault/verifier"] for m in metrics(tmp_path / "run") if "fault/verifier" in m]
    assert max(rates) > 0.0
    shown = [json.loads(line) for line in (tmp_path / "run" / "rollouts.jsonl").read_text().splitlines()]
    assert all(not r["components"] for r in shown if r["fault"] == "verifier")


@pytest.mark.slow
@pytest.mark.parametrize("reward", [often_nan, RewardFunction(wrong_count, batched=True)])
def test_a_reward_that_breaks_its_contract(tmp_path: Path, reward: Any) -> None:
    if reward is often_nan:
        assert train(on_rows(reward, reward_errors="count"), tmp_path / "run").finished
        assert max(m.get("fault/verifier", 0.0) for m in metrics(tmp_path / "run")) > 0.0
        return
    with pytest.raises(RewardError, match=r"returned \d+ values for \d+ completions"):
        train(on_rows(reward), tmp_path / "run")


LATE = "ASSAY_TEST_LATE"


def late(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """Raises on one answer of the second step or the third, as often as it is judged, until it is mended."""
    if completion == row["answer"]:  # the check of the rows' own answers before a run
        return length_reward(prompt, completion, row)
    calls, odd = Path(os.environ[LATE]) / "calls", Path(os.environ[LATE]) / "odd"
    with calls.open("a") as file:
        file.write(".")
    if BROKEN in os.environ and calls.stat().st_size == 25:  # a step judges 8 answers
        odd.write_text(prompt + completion)
    if BROKEN in os.environ and odd.exists() and odd.read_text() == prompt + completion:
        raise ValueError("an answer that nobody thought of")
    return length_reward(prompt, completion, row)


@pytest.mark.slow
def test_an_error_of_the_reward_stops_the_run_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, Any] = {"reward_workers": 1, "evaluation": Evaluation(every=4, final_per_level=2), "checkpoint_every": 100}
    monkeypatch.setenv(BROKEN, "1")
    monkeypatch.setenv(LATE, str(tmp_path))
    with pytest.raises(RewardError) as caught:
        train(on_rows(late, **changes), tmp_path / "run")
    told = str(caught.value)
    assert "test_run_faults.py" in told and 'raise ValueError("an answer that nobody thought of")' in told
    assert "row: {'prompt': 'S" in told and "completion: " in told and "reward_errors='count'" in told
    assert "src/assay" not in told
    found = checkpoint.latest(tmp_path / "run")
    assert found and int(found.name.removeprefix("step_")) > 0
    assert len(metrics(tmp_path / "run")) == 1 + int(found.name.removeprefix("step_"))
    monkeypatch.delenv(BROKEN)
    assert resumed(tmp_path / "run") == trained(on_rows(late, **changes), tmp_path / "clean")


def test_an_error_in_an_evaluation_stops_the_run_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_out = {row["prompt"] for row in ROWS if Rows(ROWS).task("rows", 1, "test", 0).public["prompt"] == row["prompt"]}

    def judge(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if prompt in held_out:
            raise ValueError("a held-out row")
        return length_reward(prompt, completion, row)

    with pytest.raises(RewardError, match="a held-out row"):
        train(on_rows(judge, evaluation=Evaluation(every=0, final_per_level=4)), tmp_path / "run")
    assert len(metrics(tmp_path / "run")) == 1  # of the first evaluation, which is whole
    assert checkpoint.latest(tmp_path / "run") is not None


@pytest.mark.slow
def test_a_reward_that_always_hangs_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"no verdict within 0.6 s"):  # twice that, and the rows' own answers are left alone
        train(on_rows(hangs, reward_deadline=0.6), tmp_path / "run")
    assert events(tmp_path / "run")[-1]["kind"] == "error"


def alone(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """Hangs on some answers, and raises when two of it are at work at once."""
    with open(Path(os.environ[BROKEN]) / "in use", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if sum(map(ord, completion)) % 8 == 0:
            time.sleep(60)
        return length_reward(prompt, completion, row)


@pytest.mark.slow
def test_a_reward_that_must_be_alone_is_with_one_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BROKEN, str(tmp_path))
    run = on_rows(alone, reward_deadline=0.1, reward_workers=1)
    assert train(replace(run, stages=only_rl(steps=2).stages, evaluation=Evaluation(every=0)), tmp_path / "run").finished
    assert any(m.get("fault/policy", 0.0) > 0.0 for m in metrics(tmp_path / "run"))
    assert not any(m.get("fault/verifier", 0.0) for m in metrics(tmp_path / "run"))


def scribbles(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """Writes into descriptors that are not its own, and keeps memory of each answer."""
    for number in range(3, 30):
        with suppress(OSError):
            os.write(number, b"not yours" * 9)
    KEPT.append(bytearray(8 << 20))
    return length_reward(prompt, completion, row)


KEPT: list[bytearray] = []


@pytest.mark.slow
def test_a_reward_that_writes_into_descriptors_and_keeps_memory_harms_no_run(tmp_path: Path) -> None:
    run = on_rows(scribbles, reward_deadline=60.0, reward_memory=0.25, reward_workers=1)
    assert train(replace(run, stages=only_rl(steps=3).stages, evaluation=Evaluation(every=0)), tmp_path / "run").finished
    assert (tmp_path / "run" / ".lock").read_text().strip() == str(os.getpid())
    assert sum(m.get("verify/out_of_memory", 0.0) for m in metrics(tmp_path / "run")) >= 1.0
    assert not any(m.get("fault/verifier", 0.0) or m.get("fault/policy", 0.0) for m in metrics(tmp_path / "run"))
    assert "asked for more memory than it may have" in (tmp_path / "run" / "events.jsonl").read_text()


# ---- what is known before the run ---------------------------------------------------------------------------------------


def refused(run: Run, folder: Path, error: type[Exception], message: str) -> None:
    """The run is refused before its first step, and the folder is free again."""
    with pytest.raises(error, match=message):
        train(run, folder)
    assert not folder.exists()
    with pytest.raises(error, match=message):
        train(run, folder)


def test_lengths_beyond_the_context(tmp_path: Path) -> None:
    long = replace(only_rl(), tasks=SortDigits(levels=(2, 10)))
    message = r"task 'sort/.*' \(arm 'sort', level 10\) has a prompt of 12 tokens; with Run.sampling.max_new_tokens=22 .* of 32"
    refused(replace(long, sampling=Sampling(max_new_tokens=22)), tmp_path / "a", ConfigError, message)
    refused(replace(long, sampling=Sampling(max_new_tokens=32)), tmp_path / "b", ConfigError, "leaves no room for a prompt")


def test_a_trace_beyond_the_context(tmp_path: Path) -> None:
    run = replace(tiny(), tasks=SortDigits(levels=(8,)), stages=(warm_up(levels=(8,)),), sampling=Sampling(max_new_tokens=2))
    run = replace(run, model=models.Scratch(shape=replace(SHAPE, max_positions=16)))
    refused(run, tmp_path / "a", ConfigError, r"level 8\) has an oracle trace of 19 tokens .*context holds 16")


def test_text_that_the_tokenizer_lacks(tmp_path: Path) -> None:
    rows = [{"prompt": f"Straße {i}", "answer": "1"} for i in range(40)]
    refused(replace(on_rows(None), tasks=Rows(rows)), tmp_path / "a", DataError, r"task 'rows/.*' \(arm 'rows', level 1\): .*ß")


def test_rows_without_answers_cannot_be_demonstrated(tmp_path: Path) -> None:
    rows = [{"prompt": r["prompt"]} for r in ROWS]
    run = replace(tiny(), tasks=Rows(rows, reward=length_reward), stages=(warm_up(levels=()),))
    refused(run, tmp_path / "a", ConfigError, "has no oracle traces, .* or give rows with an 'answer'")


def test_a_level_without_tasks_of_a_split(tmp_path: Path) -> None:
    refused(replace(on_rows(None), tasks=Rows(ROWS[:3], test_share=0.0)), tmp_path / "a", DataError, "falls in the test split")
    alone = [*ROWS, {"prompt": "S000>", "answer": "000", "level": 2}]
    splits = {"train": Rows(alone, test_share=0.0), "test": Rows(alone, test_share=0.1)}
    assert splits["train"].size("rows", 2, "train") == 1
    train(replace(on_rows(None), tasks=splits["test"]), tmp_path / "b")  # level 2 has no test row: it is left out


def test_an_objective_that_cannot_be_right_is_found_before_the_warm_up(tmp_path: Path) -> None:
    run = replace(tiny(), stages=(warm_up(), reinforce(objective=replace(grpo(), brings=()) + _Needy())))
    refused(run, tmp_path / "a", PlanError, "needs the column 'router'")


def _Needy() -> Any:
    from assay.objective.loss.likelihood import Nll

    class Needy(Nll):
        __slots__ = ()

        @property
        def needs(self) -> tuple[str, ...]:
            return ("router",)

    return Needy(streams=("expert",))


def test_a_replay_that_is_not_there_or_not_read(tmp_path: Path) -> None:
    refused(only_rl(replay=Recent()), tmp_path / "a", ConfigError, "replay is never read: set composer")
    refused(only_rl(composer=Compose(replay_share=0.5)), tmp_path / "b", ConfigError, "there is no replay: give replay")


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    refused(replace(only_rl(), model=models.Folder(str(tmp_path / "no"))), tmp_path / "a", ConfigError, "no does not exist; give")


VALUES: list[tuple[Callable[[], object], str]] = [
    (lambda: reinforce(group_size=1), r"Reinforce.group_size=1, but the objective's baseline needs at least 2 rollouts"),
    (lambda: reinforce(levels=(2, 7)) and replace(only_rl(), stages=(reinforce(levels=(7,)),)), "no level 7; the nearest is 3"),
    (lambda: replace(tiny(), evaluation=Evaluation(levels=(0,))), "Evaluation.levels: .* no level 0; the nearest is 1"),
    (lambda: reinforce(minibatches=5), "minibatches=5 exceeds groups=4"),
    (lambda: warm_up(noise=1.5), "WarmUp.noise=1.5 is a probability"),
    (lambda: warm_up(gate=-0.1), "WarmUp.gate=-0.1 is an accuracy"),
    (lambda: warm_up(steps=0), "WarmUp.steps=0; use a whole number, at least 1"),
    (lambda: Evaluation(n=0), "Evaluation.n=0; use at least 1"),
    (lambda: Evaluation(every=-1), "Evaluation.every=-1; use 0"),
    (lambda: replace(tiny(), stages=()), "Run.stages is empty"),
    (lambda: replace(tiny(), reward_deadline=0.0), "Run.reward_deadline=0.0 s; use a positive number"),
    (lambda: replace(tiny(), reward_workers=0), "Run.reward_workers=0"),
    (lambda: replace(tiny(), reward_memory=0.0), "Run.reward_memory=0.0 GiB; use a positive number"),
    (lambda: replace(tiny(), environment_deadline=-1.0), "Run.environment_deadline=-1.0 s; use a positive number"),
    (lambda: replace(tiny(), environment_deadline=float("nan")), "Run.environment_deadline=nan s"),
]


@pytest.mark.parametrize(("make", "message"), VALUES)
def test_settings_that_contradict_themselves(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_the_names_of_stages() -> None:
    assert (WarmUp().name, Reinforce().name, Until().metric) == ("warm-up", "rl", "eval/greedy/all")


# ---- the gate -------------------------------------------------------------------------------------------------------------


def gated(steps: int, *more: Reinforce) -> Run:
    fast = LearnerSettings(optimizer=Muon(lr=2e-2))
    stages = (warm_up(steps=steps, levels=(2,), noise=0.0, gate=0.1, learner=fast), *more)
    return replace(tiny(), stages=stages, evaluation=Evaluation(every=0, final_per_level=10))


def test_a_base_below_its_gate_can_be_given_more_steps(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(GateError, match=r"temperature-1 accuracy 0.0\d\d .* below its gate of 0.100.*--steps', more than 3"):
        train(gated(3), folder)
    with pytest.raises(GateError, match="below its gate"):
        resume(folder)
    assert sum(e["kind"] == "gate" for e in events(folder)) == 1, "what a gate found is remembered, not measured again"
    assert resume(folder, steps=60).finished
    assert [e["message"].split("; ")[1] for e in events(folder) if e["kind"] == "gate"] == ["gate 0.100", "gate 0.100"]


def test_more_steps_after_a_gate_go_to_the_warm_up_also_with_a_stage_behind_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(GateError):
        train(gated(3, reinforce(steps=2)), folder)
    outcome = resume(folder, steps=60)
    assert (outcome.finished, outcome.step) == (True, 62)
    assert digest_of(folder) == outcome.digest


@pytest.mark.slow
def test_a_reward_that_fails_before_anything_was_measured_is_replaced_by_a_new_run(tmp_path: Path) -> None:
    def broken(prompt: str, completion: str, row: dict[str, Any]) -> float:
        raise KeyError("anwser")

    with pytest.raises(RewardError, match="anwser"):
        train(on_rows(broken), tmp_path / "run")
    assert trained(on_rows(length_reward), tmp_path / "run") == trained(on_rows(length_reward), tmp_path / "clean")
    with pytest.raises(ConfigError, match="holds a run already"):
        train(on_rows(length_reward), tmp_path / "run")
