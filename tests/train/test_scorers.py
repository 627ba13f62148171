"""Rewards that are no verifier's, trained: by the probability of a reference, and by a judge behind a server that fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live import session, walk
from scored_runs import BY_REFERENCE, scored, warmed
from tiny_runs import at_named, in_child, only_rl, resumed, tiny, trained

from assay.clients import Judge
from assay.core import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, RewardError, UnknownNameError
from assay.core.rollout import Stop
from assay.core.score import Fault
from assay.core.task import Message
from assay.guide import Admitted
from assay.measure import Severity, diagnose, judge_costs, read_run
from assay.measure.report import render
from assay.runtime.settings import AdamW, LearnerSettings
from assay.scorers import Criterion, FromTasks, ReferenceProbability, Rubric, RubricJudge, SpreadFilter
from assay.scorers.reference import ReferenceScorer
from assay.testing import JudgeServer
from assay.train.driver import train
from assay.train.grade import VerifierContext
from assay.train.independent_check import IndependentCheck
from assay.train.judgements import JudgementFile, RunJudges
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from assay.train.run import Run
from assay.train.scoring import StageContext
from assay.train.stage_learner import learner_of, scoring_model
from assay.verify import ScoringPool


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warmed") / "run"
    trained(warmed(), folder)
    return folder / "model"


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def sampled(folder: Path) -> list[float]:
    """Accuracy of sampled answers at each evaluation, by the family's verifier."""
    found = [e["items"] for e in lines(folder, "evals") if e["mode"] == "sampled"]
    return [sum(sum(i["values"]) / len(i["values"]) for i in items) / len(items) for items in found]


# ---- the probability of a reference


@pytest.mark.slow
def test_accuracy_rises_by_the_probability_of_the_reference_and_not_by_that_of_another(model: Path, tmp_path: Path) -> None:
    """Nothing tells the policy what is right but how probable the reference is behind its own thought."""
    trained(scored(model, BY_REFERENCE), tmp_path / "rlpr")
    trained(scored(model, replace(BY_REFERENCE, reference="decoy")), tmp_path / "control")
    (start, end), (same, control) = sampled(tmp_path / "rlpr"), sampled(tmp_path / "control")
    assert start == same < 0.6
    assert end > start + 0.25, (start, end)
    assert control < start + 0.1, (start, control)


@pytest.mark.slow
def test_the_filter_by_spread_leaves_groups_out_and_a_resume_remembers_its_mean(model: Path, tmp_path: Path) -> None:
    spec = replace(BY_REFERENCE, spread=SpreadFilter(share=1.0, mean_from=1, filter_from=2))
    run = scored(model, spec, steps=6, filter=Admitted())
    whole = trained(run, tmp_path / "whole")
    found = [m["metrics"] for m in lines(tmp_path / "whole", "metrics") if "reference/admitted" in m["metrics"]]
    admitted = [m["reference/admitted"] for m in found]
    assert len(found) == 6 and admitted[0] == 1.0 and min(admitted) < 1.0 and max(admitted[1:]) > 0.0
    assert all(m["reference/spread"] > 0 for m in found)
    assert in_child(lambda: (kill_after(6), train(run, tmp_path / "killed"))) == -signal.SIGKILL
    assert resumed(tmp_path / "killed") == whole


def kill_after(line: int) -> None:
    """This process's ``line``-th line of metrics is its last."""
    seen = Counter[str]()

    def act() -> None:
        seen["lines"] += 1
        if seen["lines"] == line:
            os.kill(os.getpid(), signal.SIGKILL)

    at_named("journal:metrics", act)


def test_a_reference_scorer_at_work_reads_the_start_as_base_and_learns_no_reference(model: Path) -> None:
    s = session(scored(model, replace(BY_REFERENCE, spread=SpreadFilter(share=0.0, mean_from=1, filter_from=1))))
    assert isinstance(s.scorer, ReferenceScorer)
    first, second = walk(s, 2)
    for group in first.groups:
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            assert score.components["reward"] == max(0.0, score.components["probability"] - score.components["base"])
            assert score.columns["admitted"] == 1.0
            if not rollout.text.startswith("="):
                continue
            assert score.components["reward"] == 0.0, "at the start, without a thought, policy and base are one"
    assert first.metrics["tokens/sampled"] == sum(r.length for g in first.groups for r in g.rollouts)
    assert s.scorer.metrics()["reference/admitted"] == 1.0 and second.metrics["reward/component/base"] > 0
    again = session(scored(model, replace(BY_REFERENCE, spread=SpreadFilter(share=0.0, mean_from=1, filter_from=1))))
    again.scorer.load_state_dict(json.loads(json.dumps(s.scorer.state_dict())))
    assert again.scorer.state_dict() == s.scorer.state_dict() != ReferenceScorer(ReferenceProbability()).state_dict()


def test_the_base_is_provided_where_a_scorer_asks_for_it(model: Path) -> None:
    run = scored(model, BY_REFERENCE)
    without = replace(run, evaluation=replace(run.evaluation, kl_to_base=False))
    settings = learner_of(without, without.stages[0])
    assert [a.name for a in settings.anchors] == ["ref"] and scoring_model(settings, "base") == "ref", "which is the start too"
    alone = replace(without, stages=(replace(without.stages[0], learner=LearnerSettings(anchors=())),))
    settings = learner_of(alone, alone.stages[0])
    assert [a.name for a in settings.anchors] == ["base"] and scoring_model(settings, "base") == "base"
    assert scoring_model(settings, "policy") == "policy"
    plain = replace(alone, stages=(replace(alone.stages[0], reward=FromTasks()),))
    assert learner_of(plain, plain.stages[0]).anchors == () and scoring_model(LearnerSettings(anchors=()), "base") == "base"
    with pytest.raises(UnknownNameError, match="anchor, which ReferenceProbability asks for log-probabilities: 'teacher'"):
        check_run(scored(model, replace(BY_REFERENCE, base="teacher")))


# ---- a judge behind a server

RUBRIC = Rubric(criteria=(Criterion(name="sevens", text="Does it say 7?", tiers=("never", "once", "often")),), saturation=0.0)


def sevens(messages: list[Message]) -> str:
    answer = messages[-1].content.split("\n\n")[1].split("\n")[2]
    return json.dumps({"sevens": min(2, answer.count("7"))})


def judged(url: str, **changes: Any) -> Run:
    """A tiny run from fresh weights whose judge likes sevens."""
    stage: dict[str, Any] = {"steps": 6, "groups": 4, "group_size": 4, "reward": RubricJudge(judge="critic", rubric=RUBRIC)}
    judge = Judge(name="critic", url=url, model="m", pause=0.001, attempts=6, request_seconds=30.0)
    return replace(only_rl(**(stage | changes)), judges=(judge,))


def flaky(question: str, n: int) -> Any:
    """One question in five fails once or twice; one in twelve for good."""
    kinds = ("429", "500", "junk", "half", "words")
    kind, share = kinds[int(question[:4], 16) % 5], int(question[-2:], 16)
    return "500" if share < 20 else kind if share < 70 and n < 2 else ""


@pytest.mark.prove
def test_what_a_judge_likes_is_learned(tmp_path: Path) -> None:
    def mean(folder: Path) -> tuple[float, float]:
        found = [m["metrics"]["reward/mean"] for m in lines(folder, "metrics") if "reward/mean" in m["metrics"]]
        return sum(found[:3]) / 3, sum(found[-3:]) / 3

    with JudgeServer(sevens) as server:
        for name, lr in (("learned", 2e-2), ("control", 1e-9)):
            learner = LearnerSettings(optimizer=AdamW(lr=lr))
            trained(judged(server.url, steps=16, groups=8, learner=learner), tmp_path / name)
    first, last = mean(tmp_path / "learned")
    assert last > first + 0.25, (first, last)
    assert mean(tmp_path / "control")[1] < first + 0.1


@pytest.mark.slow
def test_a_server_that_fails_costs_questions_and_no_number_and_a_resume_asks_nothing_twice(tmp_path: Path) -> None:
    with JudgeServer(sevens, flaky) as server:
        run = judged(server.url)
        whole = trained(run, tmp_path / "whole")
        asked = Counter(server.asked)
        server.asked.clear()  # the second run meets the same failures
        assert in_child(lambda: (kill_after(6), train(run, tmp_path / "killed"))) == -signal.SIGKILL
        assert resumed(tmp_path / "killed") == whole
        assert server.asked == asked, "what the killed process had asked was asked once more"
    metrics = [m["metrics"] for m in lines(tmp_path / "killed", "metrics")]
    counted = {
        n: sum(m.get(f"verify/judge/critic/{n}", 0) for m in metrics) for n in ("asked", "sent", "faults", "reread", "tokens")
    }
    assert counted["faults"] > 0 and counted["sent"] > counted["asked"] and counted["reread"] > 0 and counted["tokens"] > 0
    assert sum(m.get("fault/infra", 0.0) for m in metrics) > 0.0, "what the judge never answered is a fault, and no reward of 0"
    kept = [json.loads(row) for row in (tmp_path / "whole/judgements/critic.jsonl").read_text().splitlines() if row]
    assert len({row["key"] for row in kept if "text" in row}) == sum("text" in row for row in kept) > 0
    view = read_run(tmp_path / "whole")
    cost = judge_costs(view.history())["critic"]
    assert cost.sent > cost.asked > cost.faults > 0 and cost.tokens >= 10 * (cost.asked - cost.faults)
    assert "Judge critic" in render(view) and "tokens" in render(view)


@pytest.mark.prove
def test_a_judge_that_can_be_hacked_is_told_by_the_doctor_and_an_honest_one_is_not(tmp_path: Path) -> None:
    """The planted judge pays for sevens; the program beside it, which pays nothing, says what is right."""

    def honest(messages: list[Message]) -> str:
        asked = messages[-1].content
        digits = sorted(asked.split("S", 1)[1].split(">", 1)[0])
        answer = asked.split("\n\n")[1].split("\n")[2]
        return json.dumps({"sevens": 2 * (answer == "".join(digits))})

    for name, reply in (("hacked", sevens), ("honest", honest)):
        with JudgeServer(reply) as server:
            learner = LearnerSettings(optimizer=AdamW(lr=2e-2))
            run = judged(server.url, steps=24, groups=8, learner=learner)
            check = IndependentCheck(verifier=run.tasks.verifier(), share=1.0)
            trained(replace(run, check=check), tmp_path / name)
        view = read_run(tmp_path / name)
        found = [f for f in diagnose(view.history()) if f.rule == "RewardHacking"]
        assert [f.severity for f in found] == ([Severity.ALARM] if name == "hacked" else []), found


def test_a_judge_that_mostly_fails_ends_the_run(tmp_path: Path) -> None:
    with (
        JudgeServer(sevens, lambda question, n: "words") as server,
        pytest.raises(RewardError, match=r"RubricJudge gave no score on 16 of 16"),
    ):
        train(judged(server.url), tmp_path / "run")


def test_a_judge_that_was_mended_is_asked_again_by_a_resume(tmp_path: Path) -> None:
    broken = True
    with JudgeServer(lambda messages: '{"sevens": 1}', lambda question, n: "words" if broken else "") as server:
        run = judged(server.url, steps=2)
        with pytest.raises(RewardError, match=r'no JSON object such as \{"sevens": GRADE\}, with a whole number'):
            train(run, tmp_path / "run")
        assert "forgotten" in lines(tmp_path / "run/judgements", "critic")[-1]
        broken = False
        server.asked.clear()
        resumed(tmp_path / "run")
        assert server.asked, "the faults that were stored have been asked about again"
    metrics = [m["metrics"] for m in lines(tmp_path / "run", "metrics")]
    assert sum(m.get("fault/infra", 0.0) for m in metrics) == 0.0


def test_a_refused_key_ends_the_run(tmp_path: Path) -> None:
    with (
        JudgeServer(sevens, lambda question, n: "refused") as server,
        pytest.raises(ConfigError, match="was refused with status 401"),
    ):
        train(judged(server.url), tmp_path / "run")


def test_judges_are_checked_before_anything_is_spent(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"judge in Run.judges, which RubricJudge asks: 'critic'"):
        check_run(replace(judged("http://127.0.0.1:9/v1"), judges=()))
    with pytest.raises(ConfigError, match="give each its own"):
        replace(tiny(), judges=(Judge(), Judge()))
    with pytest.raises(UnknownNameError, match=r"judge in Run\.judges 'other'"):
        RunJudges((Judge(),), tmp_path).client("other", 0)


def test_runs_of_before_are_written_as_before_and_new_ones_are_read_again() -> None:
    assert "judges" not in to_dict(tiny()) and all("reward" not in s for s in to_dict(tiny())["stages"])
    run = judged("http://127.0.0.1:9/v1")
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(run)))) == run
    with_reference = replace(tiny(), stages=(Reinforce(reward=ReferenceProbability()),))
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(with_reference)))) == with_reference


def test_a_checkpoint_of_before_there_were_scorers_is_read() -> None:
    s = session(only_rl())
    state = s.state_dict()
    assert state.pop("scorer") == {}
    s.load_state_dict(state)
    assert isinstance(s.scorer, FromTasks)


# ---- what a scorer is given


def test_rollouts_that_ended_in_an_error_are_not_shown_to_the_scorer() -> None:
    shown: list[Stop] = []

    class Seen(FromTasks):
        async def score(self, groups: Any, ctx: Any) -> Any:
            shown.extend(r.stop for g in groups for r in g.rollouts)
            return await FromTasks.score(self, groups, ctx)

    s = session(only_rl())
    s.scorer = Seen()
    collect = s.sampler.collect

    async def broken(contexts: Any, n: int) -> Any:
        made = await collect(contexts, n)
        own, other = (
            replace(r, stop=Stop.ERROR, fault=f, error="oh") for r, f in zip(made, (Fault.POLICY, Fault.INFRA), strict=False)
        )
        return [own, other, *made[2:]]

    class Broken:
        collect = staticmethod(broken)

    s.sampler = Broken()
    group = walk(s)[0].groups[0]
    assert Stop.ERROR not in shown and len(shown) == 14
    assert [x.fault for x in group.scores[:2]] == [Fault.POLICY, Fault.INFRA] and group.scores[0].components == {
        "correct": 0.0,
        "format": 0.0,
    }


def test_a_scorer_that_miscounts_is_an_error() -> None:
    class Short(FromTasks):
        async def score(self, groups: Any, ctx: Any) -> Any:
            return (await FromTasks.score(self, groups, ctx))[1:]

    s = session(only_rl())
    s.scorer = Short()
    with pytest.raises(RewardError, match=r"Short.score gave \[4, 4, 4\] scores for groups of \[4, 4, 4, 4\] rollouts"):
        walk(s)


def test_a_scorer_that_gives_none_for_a_rollout_is_named() -> None:
    class Silent(FromTasks):
        async def score(self, groups: Any, ctx: Any) -> Any:
            return [[None for _ in scores] for scores in await FromTasks.score(self, groups, ctx)]

    s = session(only_rl())
    s.scorer = Silent()
    with pytest.raises(RewardError, match=r"Silent.score gave None where a Score of a rollout is due; .*unanswered"):
        walk(s)


def test_a_scorer_that_gives_single_scores_is_an_error() -> None:
    class Flat(FromTasks):
        async def score(self, groups: Any, ctx: Any) -> Any:
            return [score for of_group in await FromTasks.score(self, groups, ctx) for score in of_group]

    s = session(only_rl())
    s.scorer = Flat()
    with pytest.raises(RewardError, match=r"Flat.score gave a Score where a list of scores for each group is due"):
        walk(s)


def test_what_only_a_stage_has_is_refused_elsewhere() -> None:
    s = session(only_rl())
    stage = StageContext(s.parts)
    assert stage.step == 0 and stage.tokenizer is s.parts.tokenizer and asyncio.run(stage.logprob([])) == []
    with pytest.raises(ConfigError, match="a scorer asked for judges"):
        stage.judge("critic")
    with ScoringPool(s.parts.run.tasks.verifier()) as pool:
        alone = VerifierContext(pool)
        assert alone.step == 0 and alone.task_floor == {"correct": 0.0, "format": 0.0}
        for ask in (lambda: alone.tokenizer, lambda: alone.judge("x"), lambda: asyncio.run(alone.logprob([]))):
            with pytest.raises(ConfigError, match="which only a stage of reinforcement learning in a run's folder has"):
                ask()


def test_a_file_of_judgements_forgets_what_a_kill_left_half(tmp_path: Path) -> None:
    path = tmp_path / "judgements" / "critic.jsonl"
    file = JudgementFile(path)
    file.keep("a", "1")
    file.step = 3
    file.fail("b", "status 500")
    file.close()
    with path.open("a") as cut:
        cut.write('{"key": "c", "te')
    again = JudgementFile(path)
    assert again.find("a") == "1" and again.find("b") is None and again.find("c") is None
    again.step = 3
    assert str(again.find("b")) == "status 500"
    again.keep("d", "4")
    again.close()
    again.close()
    assert JudgementFile(path).find("d") == "4"
