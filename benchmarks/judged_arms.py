"""Parts and arms of `benchmarks.judged`. A part's first arm is its control; the signs were written before the first run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.clients import Judge
from assay.core import Sampling
from assay.guide import Admitted, FirstTasks, ShuffledEvents, Uniform
from assay.lab import RandomReward, Rewarded
from assay.objective import Scalarise, Token, grpo, pairwise_rl, ppo
from assay.runtime import AdamW, LearnerSettings, ValueHead
from assay.scorers import (
    Criterion,
    DifficultyTag,
    FlawedPositive,
    FromTasks,
    GenerativeReward,
    PairwiseJudge,
    PolicyAwareRubric,
    ReferenceProbability,
    Rubric,
    TemporalBonus,
    ThinkingReward,
)
from assay.train import Built, Evaluation, Reinforce, Run
from benchmarks.judged_models import LINEAR, base
from benchmarks.judged_tasks import Boxes, Chosen, Shifts, Tagged

__all__ = ["PARTS", "RUBRIC", "Arm", "Part"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A reward.

    Attributes:
        name: in the table.
        reward: scorer of the stage.
        judge: ``trained``, ``program`` or ``chance``; empty where none is asked.
        predicted: sign of the difference to the control.
        by_chance: pay at random in place of it.
        stage: further fields.
        then: fields of a second stage; the steps are shared by both.
        central: practise those tasks alone whose score by the judge lies in the middle (Rubicon).
    """

    name: str
    reward: Any = field(default_factory=FromTasks)
    judge: str = ""
    predicted: str = ""
    by_chance: bool = False
    stage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    then: Mapping[str, Any] = field(default_factory=dict[str, Any])
    central: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A question to measure.

    Attributes:
        tasks: what is practised and judged on.
        metric: whose difference the signs are about.
        arms: the first is the control.
        why: the reason for the predictions.
        form: of the judge; empty for none.
        temperature: of the judge.
        measures: ``sound``, ``tag`` or empty, what is measured besides.
        steps: of the stage.
    """

    tasks: Shifts | Boxes
    metric: str
    arms: tuple[Arm, ...]
    why: str
    form: str = ""
    temperature: float = 0.0
    measures: str = "sound"
    steps: int = 40

    def run(self, arm: Arm, seed: int, judges: tuple[Judge, ...], kept: tuple[int, ...] = ()) -> Run:
        """GRPO from the base of the seed, on all tasks or on those of these indices."""
        given: dict[str, Any] = {
            "steps": self.steps // 2 if arm.then else self.steps,
            "groups": 12,
            "group_size": 8,
            "objective": GRPO,
            "curriculum": Uniform(),
            "reward": arm.reward,
            "learner": SLOW,
        }
        tasks = Rewarded(source=self.tasks, scorer=RandomReward(seed)) if arm.by_chance else self.tasks
        if kept:
            tasks = Chosen(kept=kept)
        return Run(
            name="judged",
            seed=seed,
            model=Built(run=base(self.tasks, seed)),
            tasks=tasks,
            stages=tuple(Reinforce(**(given | dict(more))) for more in (arm.stage, arm.then) if more or more is arm.stage),
            sampling=Sampling(max_new_tokens=16),
            evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
            judges=judges,
            checkpoint_every=1000,
        )


SLOW = LearnerSettings(optimizer=AdamW(lr=3e-4), schedule=LINEAR)
GRPO = replace(grpo(kl=0.0), aggregate=Token())
OUTCOME = Arm(name="the answer alone")
AGAINST = PairwiseJudge(anchor="anchor", samples=2)
FEWER: Mapping[str, Any] = {"groups": 6}
AGAIN: Mapping[str, Any] = {**FEWER, "index": FirstTasks(n=24)}
FOURS: Mapping[str, Any] = {"groups": 12, "group_size": 4}
RUBRIC = Rubric(
    criteria=(
        Criterion(name="all", text="Are all lines right?"),
        Criterion(name="last", text="Is the last line right?"),
        Criterion(name="number", text="Is there a line for each digit?"),
    )
)
AT_ONCE = PolicyAwareRubric(rubric=RUBRIC, lam=0.0)
MODES = (r"=\d", r"~\d=\d", r":\d+=\d")

PARTS: Mapping[str, Part] = {
    "FAPO": Part(
        tasks=Shifts(),
        metric="sound",
        form="flaw",
        arms=(
            OUTCOME,
            Arm(name="FAPO, trained judge", reward=FlawedPositive(), judge="trained", predicted="+"),
            Arm(name="FAPO, judge by chance", reward=FlawedPositive(), judge="chance", predicted="0"),
            Arm(name="FAPO, the program", reward=FlawedPositive(), judge="program", predicted="+"),
        ),
        why="an answer can be guessed without its working, which only a penalty on flaws keeps",
    ),
    "RLPR": Part(
        tasks=Shifts(),
        metric="right",
        arms=(
            Arm(name="paid at random", by_chance=True),
            OUTCOME,
            Arm(
                name="RLPR, no verifier",
                reward=ReferenceProbability(opening="=", closing=""),
                predicted="+",
                stage={
                    "objective": replace(GRPO, scalarise=Scalarise(weights=(("reward", 0.9), ("format", 0.1)))),
                    "filter": Admitted(),
                },
            ),
        ),
        why="behind right working the reference answer is more probable than without any",
    ),
    "AdaCtrl": Part(
        tasks=Tagged(),
        metric="tag",
        measures="tag",
        arms=(OUTCOME, Arm(name="AdaCtrl", reward=DifficultyTag(easy="E", hard="H"), predicted="+")),
        why="the tag's label is paid for, and a base that was shown tags by chance says both",
    ),
    "TimeHC-RL": Part(
        tasks=Boxes(),
        metric="right",
        measures="",
        arms=tuple(
            Arm(
                name=name,
                reward=TemporalBonus(alpha=alpha, modes=MODES),
                predicted=sign,
                stage={"guidance": ShuffledEvents(), "filter": Admitted()},
            )
            for name, alpha, sign in (("without the bonus", 0.0, ""), ("with the bonus", 0.4, "0"))
        ),
        why="the bonus goes to all right answers of a group alike, and a group's standard deviation takes most of it back",
    ),
    "Trust-GRPO": Part(
        tasks=Shifts(),
        metric="sound",
        form="mark",
        arms=(
            OUTCOME,
            Arm(name="marks of a trained judge", reward=ThinkingReward(), judge="trained", predicted="+"),
            Arm(name="marks by chance", reward=ThinkingReward(), judge="chance", predicted="0"),
        ),
        why="marks are of the working, and pay for it where the answer alone does not",
    ),
    "Pairwise-RL": Part(
        tasks=Shifts(),
        metric="sound",
        form="better",
        steps=24,
        temperature=1.0,
        arms=(
            Arm(name="preferences by chance", reward=AGAINST, judge="chance", stage={**FEWER, "objective": pairwise_rl()}),
            Arm(
                name="a trained judge's, a group's mean as baseline",
                reward=AGAINST,
                judge="trained",
                predicted="+",
                stage={**FEWER, "objective": pairwise_rl()},
            ),
            Arm(
                name="a trained judge's, PPO with a critic",
                reward=AGAINST,
                judge="trained",
                predicted="+",
                stage={**FEWER, "objective": ppo(kl=0.0), "learner": replace(SLOW, heads=(ValueHead(name="values"),))},
            ),
        ),
        why="to beat an attempt of which half the lines are wrong takes right lines",
    ),
    "SPCT": Part(
        tasks=Shifts(),
        metric="sound",
        form="marks",
        arms=tuple(
            Arm(name=name, reward=GenerativeReward(samples=2), judge=judge, predicted=told, stage=FOURS)
            for name, judge, told in (("marks by chance", "chance", ""), ("marks of a trained judge", "trained", "+"))
        ),
        why="the judge marks by right lines, and no verifier is asked",
    ),
    "POW3R": Part(
        tasks=Shifts(),
        metric="sound",
        form="verdict",
        steps=24,
        arms=tuple(
            Arm(name=name, reward=PolicyAwareRubric(rubric=RUBRIC, lam=lam), judge=judge, predicted=told, stage=AGAIN)
            for name, lam, judge, told in (
                ("static weights", 0.0, "trained", ""),
                ("weights by spread", 0.5, "trained", "0"),
                ("weights by spread, verdicts by chance", 0.5, "chance", "-"),
            )
        ),
        why="a criterion that all meet adds the same to all of a group, whatever it weighs",
    ),
    "Rubicon": Part(
        tasks=Shifts(),
        metric="sound",
        form="verdict",
        steps=24,
        arms=(
            Arm(name="all prompts, all criteria at once", reward=AT_ONCE, judge="trained", stage=FEWER),
            Arm(name="prompts with a central score", reward=AT_ONCE, judge="trained", predicted="0", stage=FEWER, central=True),
            Arm(
                name="and in two stages, the whole working last",
                reward=PolicyAwareRubric(rubric=Rubric(criteria=RUBRIC.criteria[1:]), lam=0.0),
                judge="trained",
                predicted="-",
                stage=FEWER,
                then={**FEWER, "reward": PolicyAwareRubric(rubric=Rubric(criteria=RUBRIC.criteria[:1]), lam=0.0)},
                central=True,
            ),
        ),
        why="these prompts are alike, so that a base's luck decides their scores; and half of the steps are for less",
    ),
}
"""Part by name."""
