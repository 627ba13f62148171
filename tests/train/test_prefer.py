"""The stage of given preferences: what it reads, what it refuses, and that it resumes exactly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import SORTED, at_named, in_child, points_into, prefer, preferring, resumed, trained
from tokenizers import AddedToken, Regex, Tokenizer, pre_tokenizers
from tokenizers import models as hub_models

from assay.core.batch import Batch
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError, DataError, PlanError
from assay.core.sample import STREAMS
from assay.objective import Center, DropStale, Kl, Objective, Scalarise, dpo, grpo, inpo, kto, nll, pacs
from assay.objective.loss.score import ScoreLoss
from assay.objective.loss.sets.pointwise import ScoreSquare
from assay.objective.methods import methods
from assay.runs import storage
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer
from assay.train import models
from assay.train.driver import resume, train
from assay.train.given_checks import check_preferred as check_objective
from assay.train.offline_rows import in_order
from assay.train.opening import open_stage
from assay.train.prefer import Preferences
from assay.train.preflight import check_run
from assay.train.run import Run
from assay.train.stages import Prefer
from assay.verify import ScoringPool

Row = Mapping[str, Any]


def written(folder: Path, rows: Sequence[Row] = SORTED) -> str:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


# ---- batches ------------------------------------------------------------------------------------------------------------


def prompts(batch: Batch) -> list[str]:
    """The prompt of each row."""
    tokenizer = char_tokenizer("".join(map(chr, range(32, 127))) + "\n")
    ids, mask = batch.token("ids"), batch.token("mask")
    return [tokenizer.decode(ids[a:b][~mask[a:b]]) for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


def supply(stage: Prefer, seed: int = 0) -> Preferences:
    run = replace(preferring(stage), seed=seed)
    return Preferences(run, stage, models.load_source(run.model, lambda run, folder: folder).tokenizer)


def test_a_batch_is_a_function_of_seed_and_number_and_holds_whole_pairs() -> None:
    stage = prefer(batch=15)
    first, again, other = supply(stage), supply(stage), supply(stage, seed=1)
    for i in (4, 0):
        assert prompts(first.batch(i)) == prompts(again.batch(i)) != prompts(other.batch(i))
    batch = first.batch(0)
    assert batch.rollout("group").tolist() == [g for g in range(15) for _ in range(2)]
    assert batch.rollout("components/reward").tolist() == [1.0, 0.0] * 15
    assert set(batch.rows["stream"]) == {STREAMS.index("preference")}
    assert [a == b for a, b in zip(prompts(batch)[::2], prompts(batch)[1::2], strict=True)] == [True] * 15


def test_every_pair_is_seen_once_an_epoch_each_time_in_another_order() -> None:
    rows = supply(prefer(batch=15))
    epochs = [[p for i in range(6) for p in prompts(rows.batch(6 * epoch + i))[::2]] for epoch in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(row["prompt"] for row in SORTED)
    assert epochs[0] != epochs[1]


def test_batches_go_on_over_the_end_of_an_epoch() -> None:
    walked = [i for step in range(6) for i in in_order("rows", 0, 4, range(2 * step, 2 * step + 2))]
    assert walked == in_order("rows", 0, 4, range(12))
    assert [sorted(walked[k : k + 4]) for k in (0, 4, 8)] == [[0, 1, 2, 3]] * 3


def test_the_answer_and_its_end_carry_loss() -> None:
    batch = supply(prefer(data=[{"prompt": "S21>", "completion": "12", "label": True}], batch=1, objective=kto())).batch(0)
    assert batch.token("mask").tolist() == [False] * 4 + [True] * 3
    assert batch.token("ids")[-1] == 1 and batch.rollout("components/reward").tolist() == [1.0]


# ---- what is refused ----------------------------------------------------------------------------------------------------


def test_wrong_lines_are_named_before_anything_is_built(tmp_path: Path) -> None:
    file = written(tmp_path, [*SORTED[:20], {"prompt": "S21>", "chosen": "12"}])
    with pytest.raises(DataError, match=r"pairs\.jsonl, line 21, field 'rejected': missing; give a text"):
        train(preferring(data=file), tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()
    with pytest.raises(DataError, match=r"Prefer\.data, row 2, field 'chosen': it is 3"):
        check_run(preferring(data=[SORTED[0], {"prompt": "a", "chosen": 3, "rejected": "b"}], batch=1))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "né", "chosen": "a", "rejected": "b"}, "line 21, field 'prompt': the tokenizer's alphabet lacks 'é'"),
        (
            {"prompt": "a", "chosen": "né", "rejected": "b"},
            "line 21, field 'chosen': the model's tokenizer lacks 'é', so it would",
        ),
        (
            {"prompt": "a" * 20, "chosen": "b", "rejected": "c" * 12},
            r"line 21, field 'rejected': prompt \(20 tokens\), answer and end are 33 tokens, .* context holds 32: shorten",
        ),
    ],
)
def test_texts_that_the_model_cannot_read_are_named(tmp_path: Path, row: Row, says: str) -> None:
    file = written(tmp_path, [*SORTED[:20], row])
    with pytest.raises(DataError, match=says):
        train(preferring(data=file), tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()


def test_characters_that_a_tokenizer_would_write_otherwise_are_named() -> None:
    """One that writes ``<unk>`` for what it does not know refuses nothing itself."""
    known = Tokenizer(hub_models.WordLevel({"<eos>": 0, "<unk>": 1, "a": 2, "b": 3}, unk_token="<unk>"))
    known.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    known.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<eos>", "<unk>")])
    stage = prefer(data=[{"prompt": "a", "chosen": "b", "rejected": "ac"}], batch=1)
    with pytest.raises(DataError, match=r"row 1, field 'rejected': the model's tokenizer lacks 'c'"):
        Preferences(preferring(stage), stage, HubTokenizer(known, eos=0)).check(32)


def test_the_longest_text_that_fits_is_taken() -> None:
    row = {"prompt": "a" * 20, "chosen": "b", "rejected": "c" * 11}
    supply(prefer(data=[row], batch=1)).check(32)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"data": ""}, ConfigError, "Prefer.data is empty; name a file of rows or a data set on the hub"),
        ({"data": ()}, ConfigError, "Prefer.data is empty"),
        ({"batch": 91}, ConfigError, "Prefer.batch=91, but the data has 90 rows; use at most 90"),
        (
            {"data": [{"prompt": "a", "completion": "b", "label": True}], "batch": 1},
            DataError,
            r"row 1: 1 answer where the objective compares at least 2 .* give pairs .*kto",
        ),
    ],
)
def test_too_little_data_is_refused(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        check_run(preferring(**changes))


def test_what_is_no_data_is_refused() -> None:
    for data in (3, None, ["a"]):
        with pytest.raises(ConfigError, match=r"Prefer\.data, row 1 is an? .*; name a file of rows, or give"):
            prefer(data=data)
    with pytest.raises(ConfigError, match=r"Prefer\.batch=0"):
        prefer(batch=0)


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (grpo(), "PolicyGradient .* acts on rows of on_policy, replay, but .* 'preference', so it would do nothing"),
        (pacs(), "ScoreLoss .* acts on rows of on_policy, replay"),
        (dpo() + Kl("k2", label="near"), r"Kl \('near'\) acts on rows of on_policy, replay"),
        (nll(), "Nll asks for no rewards, so it would imitate rejected answers as it does chosen ones"),
        (
            replace(dpo(), policy=ScoreLoss(anchor="engine", streams=("preference",))),
            "ScoreLoss needs the column 'logp_engine', which comes with sampled rollouts",
        ),
        (inpo(previous="round"), "ScoreLoss needs the column 'logp_round', which comes with sampled rollouts"),
        (
            replace(dpo(), scalarise=Scalarise(weights=(("format", 1.0),))),
            "Scalarise.weights names a verifier's component 'format'",
        ),
        (
            Objective(credit=(Center("group"),), policy=ScoreLoss(phi=ScoreSquare(), anchor="ref", streams=("preference",))),
            "Center takes statistics of on_policy, replay, so of none of the stage's rows: add 'preference' to Scalarise.streams",
        ),
    ],
)
def test_methods_that_need_what_rows_cannot_give_are_refused(objective: Objective, says: str) -> None:
    with pytest.raises(PlanError, match=f"Prefer: {says}"):
        check_run(preferring(objective=objective))


def test_a_filter_by_a_column_of_attempts_that_the_rows_lack_is_refused() -> None:
    part = replace(dpo(), scalarise=Scalarise(streams=("preference",)), credit=(DropStale(column="lag"),))
    with pytest.raises(PlanError, match="Prefer: DropStale reads 'lag' of each rollout"):
        check_objective(prefer(objective=part))


def objective_of(name: str) -> Objective:
    found = methods()[name]
    return found.make(**dict(found.example))


TAKEN = "aot apo bco copg cpl cpo direct_advantage discopop dpo exo f_dpo inpo ipo kto ld_dpo mpo nca orpo rso simpo sppo"


@pytest.mark.slow
def test_every_method_for_preferences_takes_a_step_and_all_others_are_refused() -> None:
    taken: list[str] = []
    for name in methods():
        stage = prefer(objective=objective_of(name), batch=8)
        try:
            check_run(preferring(stage))
        except PlanError:
            continue
        taken.append(name)
        run = preferring(stage)
        model = models.load_source(run.model, lambda run, folder: folder)
        s = open_stage(run, stage, model, ScoringPool(run.tasks.verifier()), 0)
        found = asyncio.run(s.step()).metrics
        assert found["grad/norm"] > 0 and np.isfinite(found["loss/total"])
    assert sorted(taken) == TAKEN.split()


# ---- as a value ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["pairs.jsonl", [{"prompt": [{"role": "user", "content": "a"}], "answers": ["b", "c"]}]])
def test_a_run_with_preferences_goes_to_toml_and_back(data: Any) -> None:
    run = preferring(data=data)
    again = from_dict(Run, loads_toml(dumps_toml(to_dict(run))))
    assert again == run and hash(again.stages[1]) == hash(run.stages[1])


def test_a_path_is_kept_as_text() -> None:
    assert prefer(data=Path("a/pairs.jsonl")).data == "a/pairs.jsonl"


# ---- resume -------------------------------------------------------------------------------------------------------------


def killed(run: Run, folder: Path, moment: str) -> None:
    def work() -> None:
        at_named(moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, folder)

    assert in_child(work) == -signal.SIGKILL


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("synced:step_0000010", marks=pytest.mark.prove),
        pytest.param("synced:step_0000007", marks=pytest.mark.prove),
        pytest.param("synced:step_0000013", marks=pytest.mark.prove),
    ],
)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path, moment: str) -> None:
    """In the stage; where it ends; in the stage behind it, whose reference are its weights."""
    run = preferring(data=written(tmp_path))
    whole = trained(run, tmp_path / "whole", lambda: points_into(tmp_path / "points.txt"))
    assert moment in (tmp_path / "points.txt").read_text().split()
    killed(run, tmp_path / "run", moment)
    assert resumed(tmp_path / "run") == whole


@pytest.mark.prove  # of a stage of given rows; `test_imitate` has a kill, `test_resume_longer` interrupts
def test_one_interrupt_ends_the_step_and_the_run_goes_on(tmp_path: Path) -> None:
    whole = trained(preferring(), tmp_path / "whole")
    steps = 0

    def interrupt(point: str) -> None:
        nonlocal steps
        steps += point == "journal:metrics"
        if steps == 8 and point == "journal:metrics":
            os.kill(os.getpid(), signal.SIGINT)

    def work() -> None:
        storage.on_write = interrupt
        outcome = train(preferring(), tmp_path / "run")
        assert not outcome.finished and 4 < outcome.step < 10

    assert in_child(work) == 0
    assert resumed(tmp_path / "run") == whole


def test_a_changed_file_is_refused_and_the_old_one_gone_on_with(tmp_path: Path) -> None:
    run = preferring(data=written(tmp_path))
    killed(run, tmp_path / "run", "synced:step_0000010")
    written(tmp_path, [*SORTED[:-1], SORTED[-1] | {"probability": 0.9}])
    with pytest.raises(CheckpointError, match=r"pairs\.jsonl is not the file that the run began with: put that one back"):
        resume(tmp_path / "run")
    Path(str(run.stages[1].data)).unlink()  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match=r"pairs\.jsonl does not exist"):
        resume(tmp_path / "run")
    written(tmp_path)
    assert resume(tmp_path / "run").finished


def test_a_run_that_has_no_checkpoint_yet_looks_at_a_changed_file_again(tmp_path: Path) -> None:
    run = preferring(data=written(tmp_path))
    killed(run, tmp_path / "run", "renamed:start")
    written(tmp_path, [*SORTED[:-1], {"prompt": "a" * 40, "chosen": "b", "rejected": "c"}])
    with pytest.raises(DataError, match="line 90, field 'chosen': prompt"):
        resume(tmp_path / "run")


def test_a_base_on_another_file_is_another_base(tmp_path: Path) -> None:
    built = models.Built(run=preferring(data=written(tmp_path)))
    before = built.key
    assert models.Built(run=preferring(data=written(tmp_path))).key == before
    written(tmp_path, SORTED[::-1])
    assert built.key != before
