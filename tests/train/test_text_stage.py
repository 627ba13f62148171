"""The stage of plain texts: rows, refusals, exact resume, and that the loss falls on held-out text."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import SHAPE, in_child, kill_at, points_into, resumed, tiny, trained

from assay.cli import main
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError, DataError, PlanError
from assay.core.protocols import BeginsTexts
from assay.core.seeds import generator
from assay.objective import grpo, nll
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.hf import load_model
from assay.runtime.settings import AdamW, LearnerSettings
from assay.runtime.text.tokenizer import char_tokenizer
from assay.train import Evaluation, Scratch, Texts, contamination, models, wire
from assay.train.driver import resume, train
from assay.train.models import from_folder
from assay.train.preflight import check_fits, check_run
from assay.train.run import ContaminationCheck, Run
from assay.train.texts import TextRows

TOKENIZER = char_tokenizer("abcdefgh .")


def texts(*lines: str, **changes: Any) -> Texts:
    given: dict[str, Any] = {"steps": 6, "batch": 2, "max_tokens": 8, "learner": LearnerSettings(optimizer=AdamW(lr=3e-3))}
    return Texts(data=[{"text": line} for line in lines], **(given | changes))


def sentence(i: int) -> str:
    """A count of a few numbers in order: what comes next follows from what stands there."""
    rng = generator("sentences", 0, "line", i)
    start, length = int(rng.integers(0, 10)), int(rng.integers(6, 14))
    return " ".join(str((start + k) % 10) for k in range(length)) + "."


LINES = [sentence(i) for i in range(200)]
HELD_OUT = [sentence(i) for i in range(200, 240)]


def reading(*lines: str, **changes: Any) -> Run:
    stage = texts(*(lines or LINES), **({"batch": 4, "max_tokens": 32} | changes))
    return replace(
        tiny(),
        name="reading",
        model=Scratch(shape=SHAPE),
        stages=(stage,),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=2,
    )


# ---- rows -----------------------------------------------------------------------------------------------------------------


def ids_of_rows(rows: TextRows, steps: int) -> list[list[int]]:
    batches = [rows.batch(step) for step in range(steps)]
    return [b.token("ids")[x:y].tolist() for b in batches for x, y in zip(b.offsets[:-1], b.offsets[1:], strict=True)]


def test_packed_rows_hold_each_token_of_an_epoch_once() -> None:
    stage = texts("abc", "defgh a", "b", "cc dd")  # 4 + 8 + 2 + 6 tokens with their ends
    rows = TextRows(stage, TOKENIZER, seed=0)
    assert (rows.tokens, rows.count, rows.learned) == (20, 3, 17)
    found = ids_of_rows(rows, 3)
    assert [len(row) for row in found] == [8, 8, 4] * 2
    for epoch in (found[:3], found[3:]):
        text = TOKENIZER.decode([i for row in epoch for i in row if i != TOKENIZER.eos])
        assert sorted(text) == sorted("abcdefgh abcc dd") and [i for row in epoch for i in row].count(TOKENIZER.eos) == 4
    assert found[:3] != found[3:], "an order of its own for each epoch"
    batch = rows.batch(0)
    assert batch.token("mask").tolist() == [False, *[True] * 7] * 2
    assert ids_of_rows(TextRows(stage, TOKENIZER, seed=0), 3) == found != ids_of_rows(TextRows(stage, TOKENIZER, seed=1), 3)


def test_a_last_row_without_anything_to_predict_is_left_out() -> None:
    rows = TextRows(texts("abcdefgh", max_tokens=4), TOKENIZER, seed=0)  # 9 tokens
    assert (rows.tokens, rows.count, rows.learned) == (9, 2, 6)


def test_rows_of_one_text_each_and_pieces_of_longer_ones() -> None:
    stage = texts("ab", "cdefgh abcdefgh a", packed=False)
    rows = TextRows(stage, TOKENIZER, seed=0)
    assert (rows.tokens, rows.count, rows.learned) == (21, 4, 17)  # 3; and 18 as 8, 8 and 2
    epoch = ids_of_rows(rows, 2)
    assert sorted(map(len, epoch)) == [2, 3, 8, 8]
    written = [TOKENIZER.decode([i for i in row if i != TOKENIZER.eos]) for row in epoch]
    assert sorted(written) == sorted(["ab", "cdefgh a", "bcdefgh ", "a"])


def test_a_text_begins_with_what_the_tokenizer_puts_in_front() -> None:
    class Begins:
        bos_ids, eos, size = (7,), 1, 20

        def encode(self, text: str) -> list[int]:
            return [ord(c) - 90 for c in text]

        decode = render = encode

    assert isinstance(Begins(), BeginsTexts)
    rows = TextRows(texts("ab", batch=1, packed=False), Begins(), seed=0)  # type: ignore[arg-type]
    assert rows.batch(0).token("ids").tolist() == [7, 7, 8, 1]


# ---- refused --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"steps": 0}, ConfigError, "Texts.steps=0"),
        ({"max_tokens": 1}, ConfigError, "Texts.max_tokens=1; use at least 2"),
        ({"objective": "nll"}, ConfigError, "Texts.objective='nll' is a name"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        texts("ab", **changes)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (reading(objective=grpo()), PlanError, "Texts: PolicyGradient .'policy'. reads rewards"),
        (replace(reading(), stages=(Texts(),)), ConfigError, "Texts.data is empty"),
        (replace(reading(), stages=(Texts(data=[{"prompt": "a"}]),)), DataError, "row 1 has the fields prompt; give each row"),
        (replace(reading(), stages=(Texts(data=[{"text": " "}]),)), DataError, "row 1 has ' ' for a text"),
        (replace(reading(), stages=(Texts(data=[{"text": 3}]),)), DataError, "row 1 has 3 for a text"),
    ],
)
def test_what_settings_and_rows_tell_is_refused_without_a_model(run: Run, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_run(run)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (reading(max_tokens=33), ConfigError, "Texts.max_tokens=33, but the model's context holds 32"),
        (reading("ünter"), DataError, "row 1, 'ünter': the model's tokenizer lacks 'ü'"),
        (reading("1 2 3", batch=2), ConfigError, "Texts.batch=2, but the texts make 1 rows of up to 32 tokens"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(run: Run, error: type[Exception], message: str) -> None:
    model = models.load_source(run.model, lambda run, folder: folder)
    with pytest.raises(error, match=message):
        check_fits(run, model)


def test_evaluation_items_among_texts_are_found(tmp_path: Path) -> None:
    asked = "How many red apples does Tom buy for eight coins at noon?"
    (tmp_path / "items.jsonl").write_text(json.dumps({"prompt": asked, "answer": "2"}) + "\n")
    check = ContaminationCheck(against=(str(tmp_path / "items.jsonl"),))
    dirty = [*LINES[:20], f"From an old book of riddles, page 3. {asked} He buys two, for each costs four coins."]
    with pytest.raises(DataError, match=r"Texts\.data, row 21 holds the whole of .*items\.jsonl, line 1"):
        contamination.look(replace(reading(*dirty), contamination=check), tmp_path)
    assert not contamination.look(replace(reading(), contamination=check), tmp_path)["found"]


# ---- as a value, and from the command line ----------------------------------------------------------------------------------


def test_a_run_of_texts_comes_back_from_its_file_and_takes_a_method_by_name() -> None:
    run = reading()
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(run)))) == run
    assert to_dict(run)["stages"][0]["kind"] == "assay.train.texts:Texts"
    made, wires = wire(texts("ab"), "nll")
    assert made.objective == nll() and not wires
    with pytest.raises(ConfigError, match="grpo learns from sampled rollouts, and the stage is Texts"):
        wire(texts("ab"), "grpo")


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES))
    (tmp_path / "run.toml").write_text(dumps_toml(to_dict(reading())))
    change = ["--stages.0.kind", "Texts", "--stages.0.data", str(data), "--stages.0.steps", "3", "--stages.0.batch", "4"]
    change += ["--stages.0.max-tokens", "32"]
    assert main(["explain", str(tmp_path / "run.toml"), *change]) == 0
    told = capsys.readouterr().out
    assert "stage 0: Texts, 3 steps" in told and "texts            200" in told and "in all texts" in told
    assert "4 per step, 12 in all" in told and "about" in told
    assert main(["train", str(tmp_path / "run.toml"), *change, "--folder", str(tmp_path / "run"), "--plain", "--no-report"]) == 0
    assert from_folder(str(tmp_path / "run")).shape.num_layers == 2


# ---- resume ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
def test_killed_and_resumed_it_ends_alike(tmp_path: Path, packed: bool) -> None:
    run = reading(packed=packed)
    whole = trained(run, tmp_path / "whole", lambda: points_into(tmp_path / "points.txt"))
    points = (tmp_path / "points.txt").read_text().splitlines()
    for moment in ("renamed:step_0000004", "filled:model"):
        folder = tmp_path / moment.replace(":", "-")

        def work(folder: Path = folder, moment: str = moment) -> None:
            kill_at(points.index(moment))
            train(run, folder)

        assert in_child(work) == -signal.SIGKILL
        assert resumed(folder, run) == whole


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES))
    run = reading(steps=2)
    run = replace(run, stages=(replace(run.stages[0], data=str(data)),))
    train(run, tmp_path / "run")
    with data.open("a") as file:
        file.write(json.dumps({"text": "9"}) + "\n")
    with pytest.raises(CheckpointError, match=r"texts\.jsonl"):
        resume(tmp_path / "run", steps=4)


# ---- it learns --------------------------------------------------------------------------------------------------------------


def loss_on(folder: Path, lines: Sequence[str]) -> float:
    """Nats per token of held-out texts."""
    model = load_model(folder)
    rows = [model.tokenizer.encode(line) for line in lines]
    scores = TorchLearner(model, LearnerSettings(), total_steps=1).score(rows)
    return -float(np.concatenate([s[1:] for s in scores]).mean())


def shuffled(line: str, i: int) -> str:
    letters = np.array(list(line))
    return "".join(generator("shuffle", 0, "line", i).permutation(letters).tolist())


@pytest.mark.prove
def test_the_loss_falls_on_held_out_text_and_not_so_far_by_the_same_characters_in_disorder(tmp_path: Path) -> None:
    learner = LearnerSettings(optimizer=AdamW(lr=5e-3))
    run = reading(steps=120, batch=8, learner=learner)
    control = reading(*(shuffled(line, i) for i, line in enumerate(LINES)), steps=120, batch=8, learner=learner)
    train(run, tmp_path / "run")
    train(control, tmp_path / "control")
    start = loss_on(tmp_path / "run" / "start", HELD_OUT)
    read, mixed = (loss_on(tmp_path / name / "model", HELD_OUT) for name in ("run", "control"))
    assert start > 4.0 and read < 0.6, (start, read)
    assert mixed > 1.2 > 2 * read, (mixed, read)
    lines: list[Mapping[str, Any]] = [json.loads(x) for x in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [m["metrics"]["loss/total"] for m in lines if "loss/total" in m["metrics"]]
    assert len(losses) == 120 and losses[-1] < losses[0] / 4
