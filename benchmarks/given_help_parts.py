"""The arms of ``benchmarks/given_help.py``: what each part trains, and what was expected of it."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from assay.core import TaskSource
from assay.guide import (
    AdHint,
    Compose,
    DataReset,
    DifficultyWeights,
    FirstTasks,
    GuideHint,
    Plain,
    PlainFailures,
    Prefix,
    Quarters,
    Rethink,
    RewrittenAnswers,
    StartStates,
)
from assay.lab import OtherSolutions
from assay.objective import Nll, Token, dapo, grpo
from assay.recipes import lookups, quickstart
from assay.runtime import AdamW, LearnerSettings
from assay.train import Evaluation, HintEntropy, Imitate, ImitateFailures, Policy, Reinforce, Run, train
from pair_reward import HARD, SORT, TASKS, pair_of, pairs, reward_model
from recorded_states import oracle_states, policy_states, write_states
from user_rows import WIDE, woven

KNOWN = (3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What is trained, and what was expected of it before.

    Attributes:
        predicted: held-out accuracy against the part's first arm, as a sign.
        make: stages, from a folder for files.
        method: by name, of the last stage; empty for the stage's own objective.
        tasks: what is trained on; digit sorting when None.
    """

    predicted: str
    make: Callable[[Path], tuple[Any, ...]]
    method: str = ""
    tasks: TaskSource | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one table compares.

    Attributes:
        text: what is trained and how, and what the controls are.
        arms: the first is what the others are compared with.
        read: what the table says, written behind the runs.
        base: a run from the model that is trained.
        level, known: what arms are judged on, and what the base knows besides.
    """

    text: str
    arms: Mapping[str, Arm]
    read: str = ""
    base: Callable[[], Run] = quickstart
    level: int = HARD
    known: tuple[int, ...] = KNOWN


def rl(**changes: Any) -> Reinforce:
    """The quickstart's stage on 256 tasks of level 7, 4 prompts with 8 rollouts a step."""
    (stage,) = quickstart().stages
    assert isinstance(stage, Reinforce)
    given = {"steps": 120, "groups": 4, "group_size": 8, "levels": (HARD,), "index": FirstTasks(n=TASKS)}
    return replace(stage, **{**given, **changes})


def others() -> TaskSource:
    """Digit sorting whose tasks bring the solution of another."""
    return OtherSolutions(source=SORT)


def shown_hints(steps: int) -> Imitate:
    """Other tasks of level 7 with half to all of their solution behind the prompt, to be answered in full."""
    rows: list[dict[str, Any]] = []
    for i in range(1000, 2000):
        task = SORT.task("sort", HARD, "train", i)
        answer = str(task.private["answer"])
        rows.append({"prompt": task.public["prompt"] + answer[: HARD - i % (HARD // 2 + 1)], "completion": answer})
    return Imitate(data=tuple(rows), steps=steps, batch=32, learner=rl().learner)


def shown_reflections(steps: int) -> Imitate:
    """Other tasks of level 7 with an answer that has a slip behind the prompt, to be answered rightly."""
    rows: list[dict[str, Any]] = []
    for i in range(1000, 2000):
        task = SORT.task("sort", HARD, "train", i)
        pair = pair_of(str(task.public["prompt"]), str(task.private["answer"]), random.Random(i))
        rows.append({"prompt": f"{pair['prompt']}{pair['rejected']}>", "completion": pair["chosen"]})
    return Imitate(data=tuple(rows), steps=steps, batch=32, learner=rl().learner)


def rethought(imitate: bool, **changes: Any) -> Callable[[Path], tuple[Any, ...]]:
    """DAPO on what the ladder gave, as rollouts or as demonstrations with a likelihood of .1."""
    ladder = Rethink(
        decompose="{demos}{prompt}", reflect="{demos}{prompt}{answer}>", demos=1, demo="{prompt}{answer}", imitate=imitate
    )
    objective = dapo() + Nll(streams=("expert",), coef=0.1, aggregate=Token()) if imitate else dapo()
    composer = RewrittenAnswers() if imitate else Compose()
    given = {"guidance": ladder, "objective": objective, "composer": composer, **changes}
    return lambda folder: (shown_reflections(40), rl(**given))


def alone(stage: Any) -> Callable[[Path], tuple[Any, ...]]:
    """One stage."""
    return lambda folder: (stage,)


def adhint(entropy: bool = False, posterior: bool = False) -> Callable[[Path], tuple[Any, ...]]:
    """ADHint with likelihood on all hint tokens."""
    weights = (HintEntropy(),) if entropy else ()
    both = grpo() + Nll(streams=("expert",), coef=0.1, aggregate=Token(), weights=weights)
    plain = Compose(learn_forced=True)
    composer = DifficultyWeights(inner=plain) if posterior else plain
    return alone(rl(guidance=AdHint(), objective=both, composer=composer))


def at_rate(lr: float) -> LearnerSettings:
    """The quickstart's learner at another rate."""
    learner = rl().learner
    return replace(learner, optimizer=AdamW(lr=lr))


def guided(**changes: Any) -> Callable[[Path], tuple[Any, ...]]:
    """Hints are shown, then RL with them."""
    return lambda folder: (shown_hints(40), rl(**{"guidance": HINT, **changes}))


def resets(folder: Path, dispreferred: bool) -> tuple[Any, ...]:
    """PPO by the learned reward, from places within the answers of a file of pairs."""
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in pairs(dispreferred)), encoding="utf-8")
    return (judged(guidance=DataReset(data=str(path), probability=0.75)),)


def judged(**changes: Any) -> Reinforce:
    """RL by the learned reward."""
    return rl(**{"reward": reward_model(), "learner": at_rate(1e-4), **changes})


def looked_up(**changes: Any) -> Reinforce:
    """RL on three look-ups."""
    return rl(**{"steps": 40, "groups": 8, "levels": (3,), "index": FirstTasks(n=TASKS), **changes})


def begun(rows: Callable[[], tuple[dict[str, Any], ...]], steps: int = 40, **settings: Any) -> Callable[[Path], tuple[Any, ...]]:
    """RL on three look-ups, with episodes that begin at recorded states."""

    def stages(folder: Path) -> tuple[Any, ...]:
        path = write_states(rows(), folder / "states.jsonl")
        return (looked_up(steps=steps, guidance=StartStates(data=str(path), **settings)),)

    return stages


@cache
def trained_states() -> tuple[dict[str, Any], ...]:
    """Those of a policy that was trained at the oracle's states, by seed 100."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Evaluation(every=0, final_per_level=16, levels=(3,), kl_to_base=False)
        run = replace(lookups(), name="teacher", seed=100, stages=begun(oracle_states)(Path(folder)), evaluation=wanted)
        train(run, Path(folder) / "run", progress=False)
        return policy_states(Policy(Path(folder) / "run").model())


HINT = GuideHint(text="{prompt}{hint}", share=0.6)
SLOW = {"steps": 80, "groups": 8, "learner": at_rate(1e-4)}
FILL = {**SLOW, "guidance": replace(HINT, fill=True), "composer": PlainFailures()}
IN = Prefix(share=(1 / HARD, 1.0), probability=0.8)
PARTS: Mapping[str, Part] = {
    "ReLIFT: the learning rate of supervised updates": Part(
        text="60 steps of 16 prompts with 8 rollouts on levels 3 to 5 and 7; the demonstrations of 16 failed tasks are a "
        "supervised update (`ImitateFailures`), at a multiple of the learning rate of RL.",
        arms={
            "rate 1": Arm(predicted="", make=alone(woven(ImitateFailures(data=WIDE, size=16)))),
            "rate .1": Arm(predicted="-", make=alone(woven(ImitateFailures(data=WIDE, size=16, rate=0.1)))),
            "rate 4": Arm(predicted="+", make=alone(woven(ImitateFailures(data=WIDE, size=16, rate=4.0)))),
        },
        read="Not as predicted: a tenth of the rate learns level 7 as well, and four times the rate learns less of it and "
        "forgets some of what the base knew.",
    ),
    "DR-PO: resets within preferred answers": Part(
        text="PPO, 120 steps at a learning rate of 1e-4, by a learned reward: a classifier fitted to pairs of a right answer "
        "and one with a slip or a cut. On three prompts of four an episode begins within a preferred answer of the file "
        "of pairs (`DataReset`), at an even place. The control's file prefers the wrong answers; its reward model is the "
        "same.",
        arms={
            "no resets": Arm(predicted="", make=lambda folder: (judged(),), method="ppo"),
            "within preferred answers": Arm(predicted="+", make=lambda folder: resets(folder, False), method="ppo"),
            "within dispreferred answers": Arm(predicted="-", make=lambda folder: resets(folder, True), method="ppo"),
        },
    ),
    "SnapshotRL: episodes that begin at a state": Part(
        text="Three look-ups in a store (the recipe `lookups`, whose base was shown one and two), GRPO, 40 steps of 8 prompts "
        "with 8 rollouts. Half of the episodes begin at a state (`StartStates`): behind a look-up of the oracle; over two"
        " clusters of these, with at most three turns behind (S3RL); or, over clusters, between the turns of a trained "
        "policy.",
        arms={
            "no states": Arm(predicted="", make=lambda folder: (looked_up(),)),
            "states of the oracle": Arm(predicted="+", make=begun(oracle_states)),
            "S3RL": Arm(predicted="+", make=begun(oracle_states, clusters=2, horizon=3)),
            "states of a trained policy, clusters": Arm(predicted="+", make=begun(trained_states, clusters=2)),
        },
        base=lookups,
        level=3,
        known=(1, 2),
        read="Every arm ends near 1 within 40 steps, so that nothing can be told apart.",
    ),
    "SnapshotRL, the first 8 steps": Part(
        text="As before with 8 steps: begun after the above, in which all arms end near 1, and a third seed after the first two. "
        "Level 3 has 55 held-out tasks.",
        arms={
            "no states": Arm(predicted="", make=lambda folder: (looked_up(steps=8),)),
            "states of the oracle": Arm(predicted="+", make=begun(oracle_states, steps=8)),
            "S3RL": Arm(predicted="+", make=begun(oracle_states, steps=8, clusters=2, horizon=3)),
            "states of a trained policy, clusters": Arm(predicted="+", make=begun(trained_states, steps=8, clusters=2)),
        },
        base=lookups,
        level=3,
        known=(1, 2),
        read="Episodes that begin at states gain much in two seeds of three and in the mean, not in each: one seed without "
        "them is ahead. Clusters and horizon gain a little in the mean, and a trained policy's states are as good as the "
        "oracle's. With states levels 1 and 2 are forgotten in part.",
    ),
    "RLGF: PPO behind what a guide wrote": Part(
        text="PPO, 120 steps. On four prompts of five the guide, the task's solution, writes the first 1 to 6 digits "
        "(`Prefix`, the roll-in of PPO++). The control's guide writes another task's.",
        arms={
            "no guide": Arm(predicted="", make=alone(rl()), method="ppo"),
            "guide": Arm(predicted="+", make=alone(rl(guidance=IN)), method="ppo"),
            "guide of another task": Arm(predicted="-", make=alone(rl(guidance=IN)), method="ppo", tasks=others()),
        },
        read="The guide gains in two seeds of three and in the mean, not in each. A guide that writes another task's solution "
        "loses what PPO alone finds. With the guide the base forgets more of levels 3 to 5.",
    ),
    "SPARKLE: quarters of the solution": Part(
        text="GRPO, 120 steps. A prompt is posed plainly or behind one to four quarters of its solution (`Quarters`), evenly.",
        arms={
            "plain": Arm(predicted="", make=alone(rl())),
            "quarters": Arm(predicted="+", make=alone(rl(guidance=Quarters(unit="")))),
            "quarters of another task": Arm(predicted="-", make=alone(rl(guidance=Quarters(unit=""))), tasks=others()),
        },
        read="Not as predicted: quarters end no higher than plain GRPO, as prefixes of stored answers did ([forced "
        "parts](forced_parts.md)).",
    ),
    "ADHint: weights of hint tokens and of rollouts": Part(
        text="GRPO, 120 steps; plain rollouts, as many behind a part of the solution (`AdHint`), and a likelihood of .1 on all"
        " hint tokens. `HintEntropy` weighs these, `DifficultyWeights` the rollouts.",
        arms={
            "neither": Arm(predicted="", make=adhint()),
            "HintEntropy": Arm(predicted="-", make=adhint(entropy=True)),
            "DifficultyWeights": Arm(predicted="+", make=adhint(posterior=True)),
            "both": Arm(predicted="0", make=adhint(entropy=True, posterior=True)),
        },
        read="Both weights gain a little in each seed, `HintEntropy` against what was predicted; together they gain no more. "
        "All arms forget the levels that are not practised.",
    ),
    "Cog-Rethinker: decompose, then reflect": Part(
        text="First 40 supervised steps on other tasks of level 7, posed with an answer that has a slip: from then on a wrong "
        "answer in the prompt means something. Then 80 steps of DAPO with 8 prompts at a learning rate of 1e-4. Where all"
        " rollouts fail the task is posed behind a solved one, the likest by BM25, and then with its own wrong answer "
        "(`Rethink`). What succeeds there is learned as rollouts of the plain prompt, or as demonstrations of it, at a "
        "likelihood of .1 (`RewrittenAnswers`). The rate of 1e-4 was chosen on seed 9, where 5e-4 ended at 0.",
        arms={
            "no ladder (dapo)": Arm(predicted="", make=rethought(False, guidance=Plain(), **SLOW)),
            "ladder, as rollouts": Arm(predicted="0", make=rethought(False, **SLOW)),
            "ladder, as demonstrations": Arm(predicted="+", make=rethought(True, **SLOW)),
        },
        read="Answers to the reflection teach the plain prompt so well that DAPO alone ends near 1: the ladder has nothing to "
        "add here, and takes nothing away. As demonstrations its answers were not better than as rollouts.",
    ),
    "Guide-GRPO: hints where all rollouts fail": Part(
        text="First 40 supervised steps on other tasks of level 7, posed with four to seven of the seven digits of the "
        "solution behind the prompt: from then on hints mean something. Then 120 steps of RL. The hint is the first four "
        "digits.",
        arms={
            "no hints (guide_grpo)": Arm(predicted="", make=guided(guidance=Plain()), method="guide_grpo"),
            "hints": Arm(predicted="+", make=guided(), method="guide_grpo"),
            "hints of another task": Arm(predicted="0", make=guided(), method="guide_grpo", tasks=others()),
        },
        read="Nothing is learned, with hints or without. The rollouts of a hinted group all begin with the digits of the hint,"
        " which therefore have no advantage on average: under the plain prompt they are not learned.",
    ),
    "Guide-GRPO: plain failures beside hinted successes": Part(
        text="As before, with 80 steps of 8 prompts at a learning rate of 1e-4. With `fill` and `PlainFailures`, an option of "
        "the paper's code, plain failures take the places of hinted ones in the group. Rate and steps were chosen on seed"
        " 9, with `fill`; hints alone taught nothing there at 1e-4 and at 2e-4, which the signs below knew.",
        arms={
            "no hints (guide_grpo)": Arm(predicted="", make=guided(guidance=Plain(), **SLOW), method="guide_grpo"),
            "hints": Arm(predicted="0", make=guided(**SLOW), method="guide_grpo"),
            "hints, fill": Arm(predicted="+", make=guided(**FILL), method="guide_grpo"),
            "hints of another task, fill": Arm(predicted="-", make=guided(**FILL), method="guide_grpo", tasks=others()),
        },
        read="With plain failures in the group the digits of the hint have an advantage, and each seed learns level 7, which "
        "no seed does without. But hints of another task do as well: what counts is that a prompt with other digits "
        "behind it makes the policy write answers that it does not write without, of which some are right; not what the "
        "hint says.",
    ),
}
"""The tables. Signs were written before the runs."""
