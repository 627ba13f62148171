"""Stages that collect rollouts as rows, learn from them, and go round: what is kept, where a round begins, resume after kills."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import SCHEDULE, at_named, in_child, resumed, tiny, trained, warm_up

from assay.cli.recipe import settle
from assay.core import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import AssayError, ConfigError, UnknownNameError
from assay.runs.journal import Journal
from assay.runtime.settings import AdamW, LearnerSettings
from assay.train import Collect, Cycle, ImitateCollected, NamedMethod, RewardedRow, wire_run
from assay.train.collect_rows import read_collected
from assay.train.driver import train
from assay.train.preflight import check_run
from assay.train.run import Evaluation, Run

LEARNER = LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=SCHEDULE)


def collect(**changes: Any) -> Collect:
    given: dict[str, Any] = {"steps": 2, "groups": 4, "group_size": 4, "levels": (1,), "learner": LEARNER, "keep": "all"}
    return Collect(**(given | changes))


def learn(**changes: Any) -> ImitateCollected:
    return ImitateCollected(**({"steps": 2, "batch": 8, "learner": LEARNER} | changes))


def cycling(*stages: Any, **changes: Any) -> Run:
    made = replace(tiny(), name="cycle", stages=stages, evaluation=Evaluation(every=0, per_level=2, final_per_level=2))
    return replace(made, **{"checkpoint_every": 1, **changes})


def lines(folder: Path) -> list[dict[str, Any]]:
    return Journal(folder).records("collected")


# ---- what is kept -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: a warm-up, then two rounds."""
    folder = tmp_path_factory.mktemp("cycle") / "run"
    rounds = Cycle(stages=(collect(levels=(1, 2)), learn(rows_of="all")), rounds=2)
    trained(cycling(warm_up(steps=60), rounds), folder)
    return folder


def test_rows_are_written_with_what_other_stages_read(done: Path) -> None:
    found = lines(done)
    assert {line["since"] for line in found} == {60, 64} and {line["step"] for line in found} == {61, 62, 65, 66}
    row = next(line for line in found if line["reward"] == 1.0)
    made = RewardedRow.of({k: v for k, v in row.items() if k not in ("step", "stage", "since", "task")})
    assert made.reward == 1.0 and made.question == row["prompt"] and row["answer"] == "".join(sorted(row["prompt"][1:-1]))
    assert made.logprobs is not None and len(made.logprobs) == len(row["answer"]) + 1 and max(made.logprobs) <= 0.0
    metrics = {r["step"]: r["metrics"] for r in Journal(done).records("metrics")}
    assert metrics[61]["collect/rows"] == sum(line["step"] == 61 for line in found) and metrics[61]["reward/mean"] > 0
    assert metrics[61]["collect/several_calls"] == 0.0 and "loss/total" not in metrics[61]


def test_a_reader_sees_what_was_there_when_it_began_and_equal_rows_once(done: Path) -> None:
    first, both = read_collected(done, 62), read_collected(done, 66, "all")
    assert {(r["prompt"], r["answer"]) for r in first} <= {(r["prompt"], r["answer"]) for r in both}
    assert len({(r["prompt"], r["answer"]) for r in both}) == len(both) and len(read_collected(done, 66)) < len(both)
    assert not read_collected(done, 60)


@pytest.mark.slow
def test_right_or_wrong_rollouts_are_kept_so_many_of_a_prompt(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    wanted = (collect(keep="right", per_prompt=1, steps=1, group_size=8), collect(keep="wrong", per_prompt=2, steps=1))
    trained(cycling(warm_up(steps=60), *wanted), folder)
    right, wrong = ([r for r in lines(folder) if r["step"] == step] for step in (61, 62))
    assert right and {r["reward"] for r in right} == {1.0} and len({r["task"] for r in right}) == len(right)
    assert all(r["reward"] < 1.0 for r in wrong)


# ---- rounds ---------------------------------------------------------------------------------------------------------------


def test_a_cycle_is_its_stages_round_by_round_in_a_file_too() -> None:
    made = cycling(Cycle(stages=(collect(), learn()), rounds=3, from_="first"))
    assert [s.name for s in made.stages] == ["collect", "sft"] * 3 and made.steps == 12
    assert [getattr(s, "start", "") for s in made.stages] == ["", "first"] * 3
    table = loads_toml(dumps_toml(to_dict(made)))
    assert from_dict(Run, table) == made
    short = to_dict(made) | {"stages": [to_dict(Cycle(stages=(collect(), learn()), rounds=3, from_="first"))]}
    assert from_dict(Run, loads_toml(dumps_toml(short))) == made


@dataclass(frozen=True)
class NoOptions:
    """A command without options of its own."""


def test_a_cycle_on_the_command_line_and_in_a_file_of_settings(tmp_path: Path) -> None:
    """Both give what Python gives, and the run folder's file says it stage by stage."""
    expected = Cycle(stages=(Collect(steps=3), ImitateCollected(steps=4)), rounds=2, from_="first").expanded
    typed = ["kind Cycle", "rounds 2", "from_ first", "stages.0.kind Collect", "stages.0.steps 3"]
    typed += ["stages.1.kind ImitateCollected", "stages.1.steps 4"]
    words = [word for option in typed for word in f"--stages.0.{option}".split()]
    assert settle(NoOptions, "quickstart", words, "prog")[1].stages == expected
    file = tmp_path / "cycle.toml"
    inner = '[[stages.stages]]\nkind = "Collect"\nsteps = 3\n[[stages.stages]]\nkind = "ImitateCollected"\nsteps = 4\n'
    file.write_text(f'[[stages]]\nkind = "Cycle"\nrounds = 2\nfrom_ = "first"\n{inner}')
    run = settle(NoOptions, "quickstart", ["--config", str(file)], "prog")[1]
    assert run.stages == expected and from_dict(Run, loads_toml(dumps_toml(to_dict(run)))) == run
    with pytest.raises(ConfigError, match=r"Cycle.stages is empty"):
        settle(NoOptions, "quickstart", ["--stages.0.kind", "Cycle"], "prog")


def test_a_round_begins_from_the_first_weights_or_goes_on(tmp_path: Path) -> None:
    """With a learning rate of 0 ends what began anew as the run began, whatever was trained in between."""
    import safetensors.numpy

    still = learn(learner=LearnerSettings(optimizer=AdamW(lr=1e-30)), steps=1)
    ends: dict[str, bool] = {}
    for start in ("first", "last"):
        folder = tmp_path / start
        trained(cycling(collect(), learn(), collect(steps=1), replace(still, start=start)), folder)
        before, after = (safetensors.numpy.load_file(folder / place / "model.safetensors") for place in ("start", "model"))
        ends[start] = all(np.allclose(before[name], after[name], atol=1e-7) for name in before)
    assert ends == {"first": True, "last": False}


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, 5, 7])
def test_a_cycle_that_was_killed_ends_like_one_that_was_not(step: int, tmp_path: Path, whole: str) -> None:
    def killed() -> None:
        at_named(f"renamed:step_{step:07d}", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(ROUNDS, tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    with (tmp_path / "run" / "collected.jsonl").open("a") as file:
        file.write(json.dumps({"step": 99, "since": 99}) + '\n{"torn')
    assert resumed(tmp_path / "run") == whole


ROUNDS = cycling(Cycle(stages=(collect(), learn()), rounds=2, from_="first"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return trained(ROUNDS, tmp_path_factory.mktemp("whole") / "run")


# ---- refusals ---------------------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused() -> None:
    for make, said in (
        (lambda: Cycle(), "Cycle.stages is empty"),
        (lambda: Cycle(stages=(3,)), r"Cycle.stages\[0\] is"),  # type: ignore[arg-type]
        (lambda: Cycle(stages=(collect(),), rounds=0), r"Cycle\.rounds"),
        (lambda: Cycle(stages=(collect(),), from_="middle"), r"Cycle\.from_"),  # type: ignore[arg-type]
        (lambda: Cycle(stages=(collect(),), from_="first"), "no stage of it can begin"),
        (lambda: collect(keep="best"), r"Collect\.keep"),
        (lambda: collect(per_prompt=-1), r"Collect\.per_prompt"),
        (lambda: learn(data=[{"prompt": "1", "answer": "1"}]), "its rows are those that the run collects"),
        (lambda: learn(start="middle"), r"ImitateCollected\.start"),
        (lambda: learn(rows_of="some"), r"ImitateCollected\.rows_of"),
    ):
        with pytest.raises((ConfigError, UnknownNameError), match=said):
            make()


def test_rows_must_be_collected_before_they_are_learned_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="put a Collect in front of it"):
        check_run(cycling(learn(), collect()))
    with pytest.raises(AssayError, match="no rollout passed it"):
        train(cycling(collect(least=2.0, keep="right", steps=1), learn()), tmp_path / "run")
    with pytest.raises(ConfigError, match="learns nothing; name the method"):
        wire_run(cycling(collect()), {0: NamedMethod(method="grpo", settings={})})
