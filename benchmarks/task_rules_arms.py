"""What `benchmarks.task_rules` trains, and which sign was predicted of each difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from assay.clients import Judge
from assay.core import Sampling, TaskSource, Verifier
from assay.core.task import Message
from assay.guide import Frontier, Uniform
from assay.lab import Inverted, RandomReward, Rewarded
from assay.objective import Token, grpo
from assay.recipes import promoted_stages
from assay.runtime import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.testing import JudgeServer
from assay.train import Built, Evaluation, Reinforce, Run, Scratch, WarmUp
from assay.train.stage import Stage
from benchmarks.task_rules_tasks import FORMULAS, GRAPHS, MAZES, SUMS

__all__ = ["ARMS", "TRIALS", "Arm", "Trial"]

QUIET = Evaluation(every=0, final_per_level=1, kl_to_base=False)
LETTERS = "".join(map(chr, range(32, 127))) + "×÷\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Fresh weights that are shown some levels of a family, a slip in one trace of seven.

    Attributes:
        tasks: the family.
        levels: shown.
        steps: of 64 traces; 0 leaves the weights as they are drawn.
        new: tokens of an answer.
    """

    tasks: TaskSource
    levels: tuple[int, ...]
    steps: int
    new: int

    def model(self, seed: int) -> Built | Scratch:
        """The weights of a seed. Of a head's 16 pairs of dimensions 12 are blind to position, so that lengths carry over."""
        fresh = Scratch(shape=DecoderShape(rope_pairs=4), seed=seed, alphabet=LETTERS)
        if not self.steps:
            return fresh
        shown = WarmUp(steps=self.steps, batch=64, demonstrations=0, noise=0.15, levels=self.levels, learner=muon())
        return Built(
            run=Run(
                name=f"base-{self.tasks.name}",
                seed=seed,
                model=fresh,
                tasks=self.tasks,
                stages=(shown,),
                sampling=Sampling(max_new_tokens=self.new),
                evaluation=QUIET,
                checkpoint_every=1000,
            )
        )


def muon() -> LearnerSettings:
    """Muon at a rate that falls to nothing."""
    return LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear"))


def reinforce(**parts: Any) -> Reinforce:
    """120 steps of 32 prompts with 8 rollouts, uniform draws, GRPO without KL; or as the parts say."""
    slow = LearnerSettings(optimizer=AdamW(lr=2e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1))
    usual: dict[str, Any] = {
        "steps": 120,
        "groups": 32,
        "group_size": 8,
        "objective": replace(grpo(kl=0.0), aggregate=Token()),
        "curriculum": Uniform(),
        "learner": slow,
    }
    return Reinforce(**{**usual, **parts})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run that is measured.

    Attributes:
        what: it is, in words.
        base: where it starts.
        stages: what it does.
        reward: of a seed, in place of the family's verifier; None for the verifier.
        evaluation: during the run.
        replies: what a judge says to messages; None without a judge.
    """

    what: str
    base: Base
    stages: tuple[Stage, ...]
    reward: Callable[[int], Verifier] | None = None
    evaluation: Evaluation = field(default=QUIET)
    replies: Callable[[list[Message]], str] | None = None

    @property
    def truth(self) -> TaskSource:
        """What it is judged by."""
        return self.base.tasks

    @property
    def new(self) -> int:
        """Tokens of an answer."""
        return self.base.new

    @contextmanager
    def service(self) -> Iterator[str]:
        """Where its judge is; empty without one."""
        if self.replies is None:
            yield ""
            return
        with JudgeServer(self.replies) as server:
            yield server.url

    def run(self, seed: int, url: str) -> Run:
        """The run of a seed."""
        tasks = self.truth if self.reward is None else Rewarded(source=self.truth, scorer=self.reward(seed))
        return Run(
            name=self.truth.name,
            seed=seed,
            model=self.base.model(seed),
            tasks=tasks,
            stages=self.stages,
            sampling=Sampling(max_new_tokens=self.new),
            evaluation=self.evaluation,
            judges=(Judge(url=url, model="scripted"),) if url else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Two trials that are compared.

    Attributes:
        name: of the rule.
        part, control: trials.
        predicted: sign of the part's accuracy less its control's.
        why: the reason for the prediction.
        how: ``drawn`` at temperature 1, or ``greedy``.
        levels: compared; all when empty.
    """

    name: str
    part: str
    control: str
    predicted: str
    why: str
    how: str = "drawn"
    levels: tuple[int, ...] = ()


_GRAPHS, _FRESH = Base(tasks=GRAPHS, levels=(4, 5), steps=300, new=16), Base(tasks=GRAPHS, levels=(), steps=0, new=16)
_FORMULAS = Base(tasks=FORMULAS, levels=(1, 2), steps=250, new=18)
_MAZES = Base(tasks=MAZES, levels=(1, 2, 3), steps=300, new=9)
_SUMS = Base(tasks=SUMS, levels=(1, 2), steps=300, new=8)

# a validation every 8 steps of 32 prompts, which are 256 samples
_VALIDATED = Evaluation(every=8, per_level=48, final_per_level=1, kl_to_base=False)
_PROMOTED = promoted_stages(reinforce(steps=16), (1, 2, 3, 4), above=0.5, rounds=2)

TRIALS: Mapping[str, Trial] = {
    "graphs": Trial(what="shortest paths, 4 to 7 nodes, from a supervised start on 4 and 5", base=_GRAPHS, stages=(reinforce(),)),
    "graphs-random": Trial(what="the same, paid at random", base=_GRAPHS, stages=(reinforce(),), reward=RandomReward),
    "graphs-fresh": Trial(what="the same without the supervised start", base=_FRESH, stages=(reinforce(),)),
    "sums": Trial(what="expressions of one or two operations, the right reward", base=_SUMS, stages=(reinforce(),)),
    "sums-random": Trial(what="the same, paid at random", base=_SUMS, stages=(reinforce(),), reward=RandomReward),
    "sums-inverted": Trial(
        what="the same, paid for wrong answers", base=_SUMS, stages=(reinforce(),), reward=lambda seed: Inverted(SUMS.verifier())
    ),
    "sat-promoted": Trial(
        what="formulas of 3 to 6 variables; a level a stage, ended by a validation strictly above .5, in two rounds",
        base=_FORMULAS,
        stages=_PROMOTED,
        evaluation=_VALIDATED,
    ),
    "sat-uniform": Trial(what="the same formulas, all levels at once", base=_FORMULAS, stages=(reinforce(),)),
    "mazes-frontier": Trial(
        what="ways of 3 to 7 moves with 1 to 3 turns, easy to hard",
        base=_MAZES,
        stages=(reinforce(curriculum=Frontier(start={"mazes/winding": 4})),),
    ),
    "mazes-hard": Trial(what="the hardest mazes alone", base=_MAZES, stages=(reinforce(levels=(5,)),)),
}
"""Each by its name; the first of a base are run first."""

ARMS: tuple[Arm, ...] = (
    Arm(
        name="G1: graphs by RL",
        part="graphs",
        control="graphs-random",
        predicted="higher",
        why="any path that is right is paid, and the base finds some of every size",
    ),
    Arm(
        name="G1: a supervised start",
        part="graphs",
        control="graphs-fresh",
        predicted="higher",
        why="fresh weights write no path, so nothing is ever paid",
    ),
    Arm(
        name="RandomCalculation: right reward",
        part="sums",
        control="sums-random",
        predicted="higher",
        why="no model has seen these expressions, so that only a right reward helps",
    ),
    Arm(
        name="RandomCalculation: inverted reward",
        part="sums-inverted",
        control="sums-random",
        predicted="lower",
        why="an inverted reward pays wrong answers, a random one only wears the base down",
    ),
    Arm(
        name="SATURN: promotion by validation",
        part="sat-promoted",
        control="sat-uniform",
        predicted="higher",
        why="a level is practised once the one before it is mastered, and the hard ones get no draws before they can be solved",
    ),
    Arm(
        name="Ariadne: easy to hard",
        part="mazes-frontier",
        control="mazes-hard",
        predicted="higher",
        why="the base solves none of the hardest mazes, and nothing is paid where none is solved",
    ),
    Arm(
        name="Ariadne: beyond the base",
        part="mazes-frontier",
        control="mazes-hard",
        predicted="higher",
        why="longer ways are reached from shorter ones",
        levels=(4, 5),
    ),
)
