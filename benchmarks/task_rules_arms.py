"""What `benchmarks.task_rules` trains, and which sign was predicted of each difference."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from assay.clients import Judge
from assay.core import Message, Sampling, TaskSource, Verifier
from assay.guide import FirstTasks, Frontier, Uniform
from assay.lab import Inverted, RandomReward, Rewarded
from assay.objective import Token, grpo
from assay.runtime import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.scorers import ReasoningSql
from assay.testing import JudgeServer
from assay.train import Built, Evaluation, Reinforce, Run, Scratch, Stage, Until, WarmUp
from assay.verify.sql import Think2Sql
from benchmarks.task_rules_tasks import CLASSES, CLASSES_THOUGHT, FORMULAS, GRAPHS, MAZES, QUERIES, SUMS, TEXTS

__all__ = ["ARMS", "TRIALS", "Arm", "Trial"]

QUIET = Evaluation(every=0, final_per_level=1, kl_to_base=False)
LETTERS = "".join(map(chr, range(32, 127))) + "×÷\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Fresh weights that are shown some levels of a family, a slip in one trace of seven.

    Attributes:
        tasks: the family.
        levels: shown, of every arm or arm by arm.
        steps: of 64 traces; 0 leaves the weights as they are drawn.
        new: tokens of an answer.
    """

    tasks: TaskSource
    levels: tuple[int, ...] | Mapping[str, tuple[int, ...]]
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
    """80 steps of 32 prompts with 8 rollouts, uniform draws, GRPO without KL; or as the parts say."""
    slow = LearnerSettings(optimizer=AdamW(lr=2e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1))
    usual: dict[str, Any] = {
        "steps": 80,
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
    def hows(self) -> tuple[str, ...]:
        """How it is judged: also by labels, where the answer alone is one."""
        return ("drawn", "greedy", "likeliest") if self.truth is CLASSES else ("drawn",)

    @property
    def new(self) -> int:
        """Tokens of an answer."""
        return self.base.new

    @contextmanager
    def service(self) -> Generator[str]:
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
        how: ``drawn`` at temperature 1, ``greedy``, or ``likeliest`` of the labels.
        control_how: of the control, where it is another.
        levels: compared; all when empty.
        arms: the arm of the family that is compared; all when empty.
    """

    name: str
    part: str
    control: str
    predicted: str
    why: str
    how: str = "drawn"
    control_how: str = ""
    levels: tuple[int, ...] = ()
    arms: str = ""


_GRAPHS, _FRESH = Base(tasks=GRAPHS, levels=(4, 5), steps=300, new=16), Base(tasks=GRAPHS, levels=(), steps=0, new=16)
_FORMULAS = Base(tasks=FORMULAS, levels=(1, 2), steps=200, new=18)
_MAZES = Base(tasks=MAZES, levels=(1, 2, 3), steps=250, new=9)
_BASE_HALF = {"text/classes": (1, 2)}
_CLASSES = Base(tasks=CLASSES, levels=_BASE_HALF, steps=200, new=8)
_THOUGHT = Base(tasks=CLASSES_THOUGHT, levels=_BASE_HALF, steps=200, new=48)
_QUERIES = Base(tasks=QUERIES, levels=(1, 2), steps=200, new=80)
_TEXTS = Base(tasks=TEXTS, levels=(1, 2), steps=200, new=28)
_SUMS = Base(tasks=SUMS, levels=(1, 2), steps=300, new=8)

_LONG = reinforce(steps=120)

# a validation every 8 steps of 32 prompts, which are 256 samples
_VALIDATED = Evaluation(every=8, per_level=48, final_per_level=1, kl_to_base=False)
_PROMOTED = tuple(  # a stage a level, twice; each ends when a validation on its level is strictly above .5
    replace(reinforce(steps=16), levels=(level,), until=Until(metric=f"eval/sampled/level_{level}", at_least=0.5, strictly=True))
    for level in (1, 2, 3, 4, 1, 2, 3, 4)
)

# eight tasks of each of four levels: four for each of the eight base classes
_FEW = reinforce(steps=60, index=FirstTasks(n=8), levels={"text/classes": (1, 2, 3, 4)})
_FEW_SHOWN = WarmUp(steps=60, batch=64, demonstrations=32, noise=0.0, levels={"text/classes": (1, 2, 3, 4)}, learner=muon())
_SHORT = reinforce(steps=30, groups=16)
_SHOWN = WarmUp(steps=30, batch=64, demonstrations=0, noise=0.15, levels=(1, 2, 3), learner=muon())


def near_query(messages: list[Message]) -> str:
    r"""What a judge says of a query to a question such as ``max a if b>3&c<5``: the share of its pieces that the query has.

    >>> text = "Question:\nmax a if b>3\n\nReasoning\n<answer>SELECT min(a) FROM t WHERE b>3</answer>\n"
    >>> near_query([Message("user", text)])
    '0.5'
    """
    text = messages[-1].content
    asked, _, tests = text.partition("Question:\n")[2].partition("\n")[0].partition(" if ")
    function, _, column = asked.rpartition(" ")
    said = text.rpartition("<answer>")[2].partition("</answer>")[0]
    pieces = [f"{function}({column})" if function else f"SELECT {column} ", *tests.split("&")]
    return f"{sum(piece in said for piece in pieces) / len(pieces):.1f}"


TRIALS: Mapping[str, Trial] = {
    "graphs": Trial(what="shortest paths, 4 to 7 nodes, from a supervised start on 4 and 5", base=_GRAPHS, stages=(_LONG,)),
    "graphs-random": Trial(what="the same, paid at random", base=_GRAPHS, stages=(_LONG,), reward=RandomReward),
    "graphs-fresh": Trial(what="the same without the supervised start", base=_FRESH, stages=(_LONG,)),
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
    "sat-uniform": Trial(what="the same formulas, all levels at once", base=_FORMULAS, stages=(reinforce(steps=128),)),
    "mazes-frontier": Trial(
        what="ways of 3 to 7 moves with 1 to 3 turns, easy to hard",
        base=_MAZES,
        stages=(reinforce(curriculum=Frontier(start={"mazes/winding": 4})),),
    ),
    "mazes-uniform": Trial(what="the same mazes, all lengths at once", base=_MAZES, stages=(reinforce(),)),
    "mazes-hard": Trial(what="the hardest mazes alone", base=_MAZES, stages=(reinforce(levels=(5,)),)),
    "classes": Trial(
        what="classes by their traits, the label alone; four tasks of each base class", base=_CLASSES, stages=(_FEW,)
    ),
    "classes-supervised": Trial(what="the same tasks, shown", base=_CLASSES, stages=(_FEW_SHOWN,)),
    "classes-thinking": Trial(what="the same tasks, a thought before the label", base=_THOUGHT, stages=(_FEW,)),
    "texts": Trial(
        what="texts of 3 to 8 words under up to four constraints, all of which must be kept", base=_TEXTS, stages=(reinforce(),)
    ),
    "texts-random": Trial(what="the same, paid at random", base=_TEXTS, stages=(reinforce(),), reward=RandomReward),
    "sql-graded": Trial(
        what="queries of one table; result by QATCH .85, form .10, tags .05",
        base=_QUERIES,
        stages=(_SHORT,),
        reward=lambda seed: Think2Sql(),
    ),
    "sql-execution": Trial(
        what="the same, result by execution", base=_QUERIES, stages=(_SHORT,), reward=lambda seed: Think2Sql(graded=False)
    ),
    "sql-supervised": Trial(what="shown all levels instead", base=_QUERIES, stages=(_SHOWN,)),
    "sql-supervised-rl": Trial(
        what="shown all levels, then by QATCH", base=_QUERIES, stages=(_SHOWN, _SHORT), reward=lambda seed: Think2Sql()
    ),
    "sql-judged": Trial(
        what="six parts 3/2/1/1/1/1, a scripted judge gives one",
        base=_QUERIES,
        stages=(replace(_SHORT, reward=ReasoningSql()),),
        replies=near_query,
    ),
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
        control="mazes-uniform",
        predicted="higher",
        why="longer ways are reached from shorter ones, and most draws are at the edge of what is solved",
        levels=(4, 5),
    ),
    Arm(
        name="GenCLS++: supervised, then RL",
        part="classes",
        control="classes-supervised",
        predicted="higher",
        why="the paper finds RL behind supervision better than supervision alone, and 32 examples are soon known by heart",
        arms="text/classes",
    ),
    Arm(
        name="CLS-RL: new classes",
        part="classes",
        control="classes-supervised",
        predicted="higher",
        why="the paper finds that RL on some classes helps others, and supervision on few examples hurts them",
        arms="text/classes_new",
    ),
    Arm(
        name="CLS-RL: no thinking",
        part="classes",
        control="classes-thinking",
        predicted="higher",
        why="the paper finds no thinking better, and a label alone has fewer places to slip",
    ),
    Arm(
        name="GenCLS++: decoding by perplexity",
        part="classes",
        control="classes",
        predicted="higher",
        why="only labels that are offered can be chosen",
        how="likeliest",
        control_how="greedy",
    ),
    Arm(
        name="IFEval: texts under constraints",
        part="texts",
        control="texts-random",
        predicted="higher",
        why="constraints are paid that were never shown together, and each was shown",
    ),
    Arm(
        name="Think2SQL: graded result",
        part="sql-graded",
        control="sql-execution",
        predicted="higher",
        why="a result that is partly right is paid, where execution pays nothing",
    ),
    Arm(
        name="Think2SQL: supervised or RL",
        part="sql-supervised",
        control="sql-graded",
        predicted="higher",
        why="at this size a trace tells more than a reward, and the third level was never shown",
    ),
    Arm(
        name="Think2SQL: supervised, then RL",
        part="sql-supervised-rl",
        control="sql-supervised",
        predicted="higher",
        why="RL sharpens what was shown with slips",
    ),
    Arm(
        name="Reasoning-SQL: six parts with a judge",
        part="sql-judged",
        control="sql-execution",
        predicted="higher",
        why="parts of a wrong query are paid",
    ),
)
