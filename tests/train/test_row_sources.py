"""Rows of a user's own in the steps of reinforcement learning: places, rewards, weights, refusals, resume."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import session, spied, walk
from tiny_runs import SHAPE, at_named, in_child, only_rl, resumed, trained

from assay.core.batch import Batch
from assay.core.errors import AssayError, ConfigError, DataError, UnknownNameError
from assay.core.sample import STREAMS
from assay.guide import Compose, Prefix
from assay.objective.loss.likelihood import Nll
from assay.objective.methods import a_lol, dpo, grpo, visurf
from assay.train import NamedMethod, RowSource, models, wire_run
from assay.train.driver import resume, train
from assay.train.models import Scratch
from assay.train.preflight import check_fits, check_run
from assay.train.rewarded_rows import RewardedRow
from assay.train.run import ContaminationCheck, Run
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(1, 2, 3))
KNOWN = ContaminationCheck(mode="off")


def shown(levels: tuple[int, ...] = (1, 2, 3), most: int = 30, **fields: Any) -> list[dict[str, Any]]:
    """Rows of the family's own questions, with right answers."""
    tasks = [TASKS.task("sort", level, "train", i) for level in levels for i in range(most)]
    return [{"prompt": t.public["prompt"], "answer": t.private["answer"], **fields} for t in tasks]


def mixing(*sources: RowSource, **changes: Any) -> Run:
    made = only_rl(**{"objective": visurf(), "sources": sources, "steps": 2, **changes})
    return replace(made, contamination=KNOWN)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    return spied(monkeypatch)


def of_stream(batch: Batch, stream: str) -> Any:
    return batch.rows["rollout"][batch.rows["stream"] == STREAMS.index(stream)]


# ---- where rows go --------------------------------------------------------------------------------------------------------


def test_a_demonstration_joins_the_group_of_its_prompt_and_the_verifier_grades_it(batches: list[Batch]) -> None:
    result = walk(session(mixing(RowSource(data=shown()))))[0]
    batch, n = batches[0], len(result.groups)
    expert = of_stream(batch, "expert")
    assert sorted(batch.rollout("group")[expert].tolist()) == list(range(n)) and batch.counts.prompts == n
    assert batch.rollout("components/correct")[expert].tolist() == [1.0] * n
    assert result.metrics["sources/expert"] == n and 0.0 < result.metrics["sources/share"] < 1.0
    assert result.metrics["sources/logprob"] < 0.0 and 0.0 <= result.metrics["sources/unlikely"] <= 1.0
    assert result.metrics["sources/entropy"] > 0.0 and "policy/others" not in result.metrics
    assert all(len(g.rollouts) == 4 for g in result.groups), "curriculum and journal see the policy's own rollouts"


def test_what_the_trust_region_does_to_tokens_of_others(batches: list[Batch]) -> None:
    """In the first update the policy is the old one; later ones have moved, and some tokens of demonstrations are cut off."""
    objective = visurf(clip=1e-4)
    metrics = walk(session(mixing(RowSource(data=shown()), objective=objective, epochs=4)))[0].metrics
    assert 0.0 < metrics["sources/clipped"] < 1.0 and metrics["sources/ratio"] != 1.0 and metrics["sources/moved"] >= 0.0
    once = walk(session(mixing(RowSource(data=shown()), objective=objective)))[0].metrics
    assert once["sources/clipped"] == 0.0


def test_the_oracle_s_answers_are_watched_like_rows_of_a_file(batches: list[Batch]) -> None:
    metrics = walk(session(mixing(experts=True)))[0].metrics
    assert metrics["sources/expert"] > 0 and metrics["sources/logprob"] < 0.0 and metrics["sources/entropy"] > 0.0


def test_a_row_says_its_reward_itself(batches: list[Batch]) -> None:
    walk(session(mixing(RowSource(data=shown(reward=0.25)))))
    assert set(batches[0].rollout("components/correct")[of_stream(batches[0], "expert")]) == {0.25}


def test_rows_of_another_prompt_join_nothing(batches: list[Batch]) -> None:
    result = walk(session(mixing(RowSource(data=[{"prompt": "S99999>", "answer": "99999"}]))))[0]
    assert not len(of_stream(batches[0], "expert")) and result.metrics["sources/share"] == 0.0
    assert "sources/logprob" not in result.metrics


def test_rows_go_with_the_group_that_the_composer_left_out(batches: list[Batch]) -> None:
    made = mixing(RowSource(data=shown()), composer=Compose(drop_zero_signal=True))
    walk(session(made))
    if batches:
        batch = batches[0]
        alone = np.setdiff1d(
            batch.rollout("group")[of_stream(batch, "expert")], batch.rollout("group")[of_stream(batch, "on_policy")]
        )
        assert not len(alone)


def test_several_answers_join_a_group_in_their_order(batches: list[Batch]) -> None:
    twice = [row | {"answer": "9"} for row in shown()] + shown()
    walk(session(mixing(RowSource(data=twice, rows=2))))
    right = batches[0].rollout("components/correct")[of_stream(batches[0], "expert")]
    assert 0 < right.sum() < len(right) and len(right) == 8


def test_own_questions_are_groups_of_their_own_and_walked_in_an_order_of_the_seed(batches: list[Batch]) -> None:
    rows = [row | {"reward": float(i % 2)} for row in shown((1,), 6) for i in range(2)]
    source = RowSource(data=rows, stream="offline", match="own", rows=3)
    made = mixing(source, objective=replace(grpo(), terms=(Nll(streams=("offline",), by="reward"),)))
    walk(session(made), 2)
    for batch in batches:
        offline = of_stream(batch, "offline")
        groups = batch.rollout("group")[offline]
        assert len(np.unique(groups)) == 3 and groups.min() == 4 and len(offline) >= 6
        assert set(batch.rollout("components/reward")[offline]) == {0.0, 1.0}
    first = [b.token("ids").tolist() for b in batches]
    batches.clear()
    walk(session(made), 2)
    assert [b.token("ids").tolist() for b in batches] == first


def test_own_rows_are_learned_from_where_no_group_has_a_signal(batches: list[Batch]) -> None:
    made = mixing(
        RowSource(data=shown((1,), 6), match="own", rows=2),
        objective=replace(grpo(), terms=(Nll(streams=("expert",)),)),
        composer=Compose(drop_zero_signal=True),
        levels=(3,),
    )
    result = walk(session(made))[0]
    assert result.metrics["sources/expert"] == 2.0 and result.metrics["loss/nll"] > 0.0


def test_preferences_stand_beside_rollouts(batches: list[Batch]) -> None:
    pairs = [{"prompt": r["prompt"], "chosen": r["answer"], "rejected": "9" + r["answer"]} for r in shown((1, 2), 5)]
    source = RowSource(data=pairs, stream="preference", match="own", rows=2, weight=0.5)
    (term,) = dpo().losses
    both = replace(grpo(), terms=(replace(term, streams=("preference",)),))
    result = walk(session(mixing(source, objective=both)))[0]
    batch = batches[0]
    assert len(of_stream(batch, "preference")) == 4 and result.metrics["sources/preference"] == 4.0
    assert set(batch.rollout("row_weight")) == {1.0, 0.5}


def test_log_probabilities_of_the_writer_reach_the_ratio(batches: list[Batch]) -> None:
    rows = [r | {"logprobs": [-0.5] * (len(r["answer"]) + 1)} for r in shown()]
    walk(session(mixing(RowSource(data=rows, stream="replay"), objective=grpo())))
    batch = batches[0]
    tokens = np.isin(batch.rows["rollout"][batch.row_of_token], of_stream(batch, "replay")) & batch.token("mask")
    assert set(batch.token("logp_engine")[tokens]) == {-0.5}


def test_a_weight_of_two_counts_like_the_row_twice(batches: list[Batch]) -> None:
    """The gradient of a row's loss is linear in its weight; its denominator counts each row once."""

    def loss(**fields: Any) -> float:
        row = shown((1,), 1)[0] | fields
        made = mixing(RowSource(data=[row], match="own"), objective=replace(grpo(), terms=(Nll(streams=("expert",)),)))
        return walk(session(made))[0].metrics["loss/nll"]

    assert loss(weight=2.0) == pytest.approx(2.0 * loss())


def test_several_turns_are_several_calls() -> None:
    from assay.core.task import Context, Message
    from assay.rollout.decode_text import AnswerReader
    from assay.runtime import char_tokenizer

    talk = [{"role": r, "content": c} for r, c in (("user", "1+"), ("assistant", "2"), ("user", "3"), ("assistant", "45"))]
    row = RewardedRow.of({"messages": talk, "logprobs": [-1.0, -2.0, -3.0, -4.0, -5.0]})
    view = TASKS.task("sort", 1, "train", 0).public_view()
    context = Context(key="a", group="a", task=view, messages=(Message("user", "1+"),))
    made = row.rollout("a/0", context, AnswerReader.of(char_tokenizer("0123456789+")), 3)
    assert [c.text for c in made.calls] == ["2", "45"] and made.text == "45"
    assert [c.completion.logp_engine.tolist() for c in made.calls] == [[-1.0, -2.0], [-3.0, -4.0, -5.0]]
    assert made.calls[1].prefix.tolist()[: len(made.calls[0].tokens)] == made.calls[0].tokens.tolist()


# ---- refusals -------------------------------------------------------------------------------------------------------------

WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"prompt": "S1>", "answer": "1", "rewards": 1}, "field 'rewards': did you mean 'reward'"),
    ({"prompt": "S1>", "answer": "1", "log_probs": [0.0]}, "did you mean 'logprobs'"),
    ({"prompt": "S1>", "answer": "1", "reward": "good"}, "field 'reward': 'good' is no finite number"),
    ({"prompt": "S1>", "answer": "1", "reward": float("nan")}, "NaN is not JSON"),
    ({"prompt": "S1>", "answer": "1", "logprobs": 3}, "field 'logprobs': give a list"),
    ({"prompt": "S1>", "answer": "1", "logprobs": [-1.0, 0.5]}, "token 2: 0.5 is no log-probability.*logarithms"),
    ({"prompt": "S1>", "answer": "1", "logprobs": [-1.0]}, "1 numbers, and the answer has 2 tokens"),
    ({"prompt": "S1>", "answer": "1", "weight": 0}, "field 'weight'.*leave the row out"),
    ({"prompt": "S1>", "answer": "1", "stream": "on_policy"}, "field 'stream':.*expert, offline"),
    ({"prompt": "S1>"}, "give 'completion'"),
    ({"prompt": "S1>", "answer": "é" * 3}, "tokenizer lacks 'é'"),
    ({"prompt": "S1>", "answer": "1" * 40}, "the model's context holds 32"),
)


@pytest.mark.parametrize(("row", "said"), WRONG)
def test_a_wrong_row_is_refused_with_its_line(row: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(r) for r in (shown((1,), 1)[0], row)) + "\n")
    with pytest.raises(AssayError, match=said) as found:
        check_fits(mixing(RowSource(data=str(file))), models.load_source(Scratch(shape=SHAPE), lambda run, folder: folder))
    assert f"{file}, line 2" in str(found.value)


def test_rows_that_the_objective_cannot_read_are_refused_with_a_fix() -> None:
    rows = shown((1,), 3)
    cases: tuple[tuple[RowSource, dict[str, Any], str], ...] = (
        (RowSource(data=rows), {"objective": grpo()}, "no term of the objective learns from that.*visurf"),
        (RowSource(data=rows, stream="replay"), {"objective": grpo()}, "has no 'logprobs', and PolicyGradient.*visurf"),
        (RowSource(data=rows, stream="offline", match="own"), {"objective": a_lol()}, "has no 'reward'.*match='prompt'"),
        (RowSource(data=rows, match="own", rows=4), {}, "rows=4 questions a step, and the data has 3"),
        (RowSource(), {}, "RowSource.data is empty"),
    )
    for source, changes, said in cases:
        with pytest.raises(AssayError, match=said):
            check_run(mixing(source, **changes))


def test_replayed_rows_need_a_declared_correction() -> None:
    from assay.objective.methods import reinforce as plain

    rows = [r | {"logprobs": [-0.5] * (len(r["answer"]) + 1)} for r in shown((1,), 2)]
    with pytest.raises(ConfigError, match="has no ratio to correct for it; use a method with one"):
        check_run(mixing(RowSource(data=rows, stream="replay"), objective=plain()))


def test_rewards_that_are_no_sum_of_components_are_refused() -> None:
    from assay.objective import Scalarise

    both = replace(visurf(), scalarise=Scalarise(weights=(("correct", 1.0),), streams=("on_policy", "expert")))
    with pytest.raises(DataError, match="makes its reward of several components"):
        check_run(mixing(RowSource(data=shown(reward=1.0)), objective=both))


def test_settings_are_checked() -> None:
    for changes, said in (
        ({"stream": "mine"}, "RowSource.stream"),
        ({"match": "both"}, "RowSource.match"),
        ({"rows": 0}, "RowSource.rows"),
        ({"weight": 0.0}, "RowSource.weight"),
        ({"stream": "preference"}, "pairs are groups by themselves"),
        ({"data": [3]}, "RowSource.data, row 1 is"),
    ):
        with pytest.raises((ConfigError, UnknownNameError), match=said):
            RowSource(**{"data": shown(), **changes})


def test_forced_first_tokens_are_refused() -> None:
    made = mixing(RowSource(data=shown()), guidance=Prefix())
    with pytest.raises(ConfigError, match="does not go on from; use match='own'"):
        walk(session(made))


def test_a_question_that_is_evaluated_is_found(tmp_path: Path) -> None:
    asked = TASKS.task("sort", 3, "test", 0)
    rows = [{"prompt": asked.public["prompt"], "answer": asked.private["answer"]}]
    with pytest.raises(AssayError, match=r"RowSource\.data, row 1"):
        train(replace(mixing(RowSource(data=rows)), contamination=ContaminationCheck()), tmp_path / "run")


# ---- wiring, files, resume --------------------------------------------------------------------------------------------------


def test_a_method_by_name_takes_the_users_rows_in_the_place_of_the_oracle() -> None:
    source = RowSource(data=shown((1,), 4, reward=1.0))
    wired, _ = wire_run(mixing(source, objective=grpo()), {0: NamedMethod(method="visurf", settings={})})
    assert not wired.stages[0].experts  # type: ignore[attr-defined]
    offline = RowSource(data=shown((1,), 4, reward=1.0), stream="offline", match="own")
    wired, _ = wire_run(mixing(offline, objective=grpo()), {0: NamedMethod(method="dph_rl", settings={})})
    assert wired.stages[0].composer == Compose()  # type: ignore[attr-defined]
    check_run(wired)


def test_a_run_with_rows_resumes_to_the_same_digest_after_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    text = "\n".join(json.dumps(r) for r in shown((1, 2, 3), 20, reward=1.0)) + "\n"
    file.write_text(text)
    sources = (RowSource(data=str(file)), RowSource(data=str(file), match="own", rows=2))
    made = replace(mixing(*sources, steps=4, levels=(1, 2)), checkpoint_every=2)
    whole = trained(made, tmp_path / "whole")

    def killed() -> None:
        at_named("renamed:step_0000002", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(made, tmp_path / "killed")

    assert in_child(killed) == -signal.SIGKILL
    file.write_text(text.replace('"reward": 1.0', '"reward": 0.0'))
    with pytest.raises(AssayError, match=r"rows.jsonl"):
        resume(tmp_path / "killed")
    file.write_text(text)
    assert resumed(tmp_path / "killed") == whole
