"""Partial credit in a family's verifier: checked, judged strictly by audits, learned from, and said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, cast

import pytest

from assay.core.protocols import Verifier
from assay.core.score import Score
from assay.tasks import Facts, Form, Problem, Problems, Solution, TaskMixture
from assay.testing import ContractError, check_task_source
from assay.train import Reinforce, Run
from assay.train.describe_settings import explain_settings
from assay.train.models import Scratch
from assay.train.scoring import weigh_rewards
from assay.verify import AnswerVerifier
from assay.verify.answer_verifier import answer_in, verdict_score
from assay.verify.rollouts import rollout_of


@dataclass(frozen=True, slots=True)
class Parts(AnswerVerifier):
    """``correct`` is 1 for the right time, ``reward`` the share of its right parts."""

    gives: tuple[str, ...] = ("correct", "reward")
    weighted_sum: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        return self.gives

    def rule(self, gold: Any, text: str) -> Score:
        said = (answer_in(text, "tag") or "").split(":")
        share = sum(a == b for a, b in zip(said, gold.split(":"), strict=False)) / max(len(said), 3)
        found = {"correct": float(":".join(said) == gold), "reward": share}
        return verdict_score("read", {name: found[name] for name in self.gives})


@dataclass(frozen=True, slots=True)
class Reported(Parts):
    """The same, that does not say that it is to be learned from."""

    weighted_sum: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Generous(Parts):
    """Gives whatever answer full credit."""

    def rule(self, gold: Any, text: str) -> Score:
        return verdict_score("read", {"correct": float(answer_in(text, "tag") == gold), "reward": 1.0})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(Problem):
    """Seconds as hours, minutes and seconds."""

    name: str = "clock/time"
    domain: str = "math"
    levels: tuple[int, ...] = (1, 2)
    judge: Verifier = Parts()
    templates: ClassVar[tuple[str, ...]] = ("{n} seconds as h:m:s?",)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"n": rng.randrange(60**level, 60 ** (level + 1))}

    def solve(self, facts: Facts) -> Solution:
        n = facts["n"]
        return Solution(answer=f"{n // 3600}:{n // 60 % 60}:{n % 60}")

    def verifier(self, form: Form) -> Verifier:
        return self.judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Clock):
    """Another arm, judged by an exact match."""

    name: str = "clock/exact"

    def verifier(self, form: Form) -> Verifier:
        return super(Clock, self).verifier(form)


def clocks(judge: Verifier, *more: Problem) -> Problems:
    return Problems(name="clock", summary="Clocks.", problems=(Clock(judge=judge), *more))


def run_on(source: Any) -> Run:
    stage = Reinforce(groups=2, group_size=2, steps=1)
    return Run(model=Scratch(), tasks=source, stages=(stage,))


@pytest.mark.slow
def test_the_check_takes_partial_credit_and_says_what_is_learned_from() -> None:
    name = "partial credit: training learns from 'reward', evaluations count 'correct'"
    assert name in check_task_source(clocks(Parts()), n=4).passed
    assert name in check_task_source(clocks(Parts(), Plain()), n=4).passed
    report = check_task_source(clocks(Reported()), n=4)
    assert name not in report.passed
    assert any("learns from 'correct', and 'reward' is only reported" in line for line in report.skipped)


@pytest.mark.slow
def test_the_check_refuses_a_reward_as_high_for_a_wrong_answer() -> None:
    with pytest.raises(ContractError, match=r"has the reward 1, and the oracle's 1: training learns from 'reward'"):
        check_task_source(clocks(Generous()), n=4)
    with pytest.raises(ContractError, match=r"scores 0\.\d+; for partial credit give 'correct' too"):
        check_task_source(clocks(Parts(gives=("reward",))), n=16)


def test_a_stage_learns_from_it_in_a_family_of_several_arms_too() -> None:
    alone, several = clocks(Parts()), clocks(Parts(), Plain())
    for source in (alone, several, TaskMixture(name="mixed", sources=(several,))):
        stage = weigh_rewards(run_on(source), Reinforce())
        assert cast("Any", stage).objective.scalarise.weights == (("reward", 1.0),)
    stage = weigh_rewards(run_on(clocks(Reported())), Reinforce())
    assert cast("Any", stage).objective.scalarise.weights == ()
    judge = several.verifier()
    timed, exact = (several.task(arm, 1, "train", 0) for arm in ("clock/time", "clock/exact"))
    gold = timed.private["answer"].split(":")
    near = f"<answer>{gold[0]}:{gold[1]}:{(int(gold[2]) + 1) % 60}</answer>"
    assert judge(timed, rollout_of(timed, near)).components == {"correct": 0.0, "reward": pytest.approx(2 / 3)}
    right = f"<answer>{exact.private['answer']}</answer>"
    assert judge(exact, rollout_of(exact, right)).components == {"correct": 1.0, "reward": 1.0}
    assert judge(exact, rollout_of(exact, near + "x")).components["reward"] in (0.0, 1.0)


def test_a_run_says_what_it_learns_from(tmp_path: Path) -> None:
    folder = tmp_path
    said = "\n".join(explain_settings(run_on(clocks(Parts())), folder))
    assert "learns from `reward`, the verifier's partial credit; accuracy is of `correct`" in said
    said = "\n".join(explain_settings(run_on(clocks(Reported())), folder))
    assert "learns from `correct`; `reward` is only reported" in said
    run = run_on(clocks(Reported()))
    (stage,) = run.stages
    weighed = replace(
        stage, objective=replace(stage.objective, scalarise=replace(stage.objective.scalarise, weights=(("reward", 1.0),)))
    )
    assert "learns from" not in "\n".join(explain_settings(replace(run, stages=(weighed,)), folder))
