"""Learning from rows of one's own beside controls: ``python benchmarks/user_rows.py [--seeds N] [--parts NAME ...]``.

The quickstart's base was shown digit sorting of levels 3 to 5. Each arm trains it with rows of level 7, which it never answers
right, or with what it collects itself; each control has as many rows, answered or rewarded wrongly. Prints a table for
``docs/evidence/user_rows.md``: held-out greedy accuracy of 64 tasks a level, mean over seeds and the seeds' range.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from assay.guide import FirstTasks, SuccessWindow
from assay.objective import Nll, Token, grpo
from assay.recipes import quickstart
from assay.train import (
    BalanceLosses,
    Collect,
    Cycle,
    Evaluation,
    ImitateByGradient,
    ImitateCollected,
    ImitateFailures,
    NamedMethod,
    OfflineReinforce,
    Reinforce,
    RowReplay,
    RowSource,
    train,
    wire_run,
)
from assay_tasks import SortDigits

HARD, KNOWN = 7, (3, 4, 5)
Row = dict[str, Any]
Rows = tuple[Row, ...]
Arms = Mapping[str, Callable[[], tuple[Any, str]]]
"""Arm to what makes its stages, and the method by name of the first, empty for its own."""


def shown_rows(levels: tuple[int, ...] = (HARD,), most: int = 120) -> Rows:
    """Questions with right answers."""
    tasks = [SortDigits().task("sort", level, "train", i) for level in levels for i in range(most)]
    return tuple({"prompt": t.public["prompt"], "answer": t.private["answer"]} for t in tasks)


def exchange_answers(rows: Rows) -> Rows:
    """The questions with the answers of others of their level."""
    by_length = sorted(rows, key=lambda row: len(row["answer"]))
    pairs = zip(by_length, by_length[1:] + by_length[:1], strict=True)
    return tuple(a | {"answer": b["answer"] if len(a["answer"]) == len(b["answer"]) else a["answer"][::-1]} for a, b in pairs)


def judged_rows(shuffled: bool) -> Rows:
    """Right answers with reward 1 and wrong ones with 0, or the same answers with these rewards shuffled."""
    rng, rows = random.Random(0), list[Row]()
    for row in shown_rows(most=200):
        wrong = row["answer"]
        while wrong == row["answer"]:
            wrong = "".join(rng.sample(row["answer"], len(row["answer"])))
        rows += [row | {"reward": 1.0}, row | {"answer": wrong, "reward": 0.0}]
    rewards = [row["reward"] for row in rows]
    rng.shuffle(rewards)
    return tuple(row | {"reward": reward} for row, reward in zip(rows, rewards, strict=True)) if shuffled else tuple(rows)


def rl(**changes: Any) -> Reinforce:
    """The quickstart's stage."""
    (stage,) = quickstart().stages
    assert isinstance(stage, Reinforce)
    return replace(stage, **{"steps": 30, "groups": 4, "group_size": 8, "levels": (HARD,), **changes})


def offline(rows: Rows, **changes: Any) -> OfflineReinforce:
    """Answers with rewards."""
    given: dict[str, Any] = {"data": rows, "steps": 40, "batch": 32, "learner": rl().learner, **changes}
    return OfflineReinforce(**given)


def rounds(keep: str, start: str) -> Cycle:
    """Expert iteration on levels 5 and 6, of which the base solves half of the latter."""
    learner = rl().learner
    sample = Collect(steps=4, groups=32, group_size=16, levels=(5, 6), keep=keep, learner=learner)  # type: ignore[arg-type]
    return Cycle(stages=(sample, ImitateCollected(steps=40, batch=64, learner=learner)), rounds=3, from_=start)  # type: ignore[arg-type]


def woven(imitate: Any) -> Reinforce:
    """RL on what the base knows and on level 7, with supervised updates."""
    return rl(steps=60, groups=16, levels=(*KNOWN, HARD), imitate=imitate)


@cache
def mastered_rows() -> Rows:
    """Answers of the base to questions at which three in four of its answers are right, as a stage collects them."""
    sample = Collect(
        steps=4, groups=48, group_size=8, levels=KNOWN, keep="right", per_prompt=1, filter=SuccessWindow(low=0.75, high=1.0)
    )
    run = replace(
        quickstart(), name="mastered", stages=(sample,), evaluation=Evaluation(every=0, final_per_level=1, levels=KNOWN)
    )
    with tempfile.TemporaryDirectory() as folder:
        train(run, Path(folder) / "run")
        lines = (Path(folder) / "run" / "collected.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple({key: row[key] for key in ("prompt", "answer", "reward")} for row in map(json.loads, lines))


def beside_stage(rows: Rows) -> Reinforce:
    """RL on level 6 with stored answers beside it."""
    source = RowSource(data=tuple(row | {"reward": 1.0} for row in rows), stream="offline", match="own", rows=32)
    return rl(steps=60, groups=16, levels=(6,), sources=(source,))


def general(rows: Rows, balance: BalanceLosses | None) -> Reinforce:
    """RL on level 6 with a likelihood of answers of easier levels beside it."""
    source = RowSource(data=rows, match="own", rows=32)
    both = replace(grpo(), terms=(Nll(streams=("expert",), aggregate=Token(), coef=0.1),))
    return rl(steps=60, groups=16, levels=(6,), objective=both, sources=(source,), balance=balance)


WIDE = shown_rows(most=400) + shown_rows(KNOWN, 200)
PARTS: Mapping[str, Arms] = {
    "demonstrations in the group (visurf)": {
        "of the very tasks": lambda: (rl(sources=(RowSource(data=shown_rows()),)), "visurf"),
        "answers of other tasks": lambda: (rl(sources=(RowSource(data=exchange_answers(shown_rows())),)), "visurf"),
        "none (grpo)": lambda: (rl(), "grpo"),
    },
    "answers with rewards (OfflineReinforce)": {
        "a_lol": lambda: (offline(judged_rows(False)), "a_lol"),
        "a_lol, drawn by advantage": lambda: (offline(judged_rows(False), draw="advantage"), "a_lol"),
        "a_lol, rewards shuffled": lambda: (offline(judged_rows(True)), "a_lol"),
    },
    "supervised updates on failures (ImitateFailures)": {
        "right demonstrations": lambda: (woven(ImitateFailures(data=WIDE, size=16)), ""),
        "answers of other tasks": lambda: (woven(ImitateFailures(data=exchange_answers(WIDE), size=16)), ""),
        "none (grpo)": lambda: (woven(None), ""),
    },
    "imitate or reinforce (ImitateByGradient)": {
        "right demonstrations": lambda: (woven(ImitateByGradient(data=WIDE)), ""),
        "answers of other tasks": lambda: (woven(ImitateByGradient(data=exchange_answers(WIDE))), ""),
    },
    "expert iteration (Cycle)": {
        "right rollouts, from the first weights": lambda: (rounds("right", "first"), ""),
        "right rollouts, from the last weights": lambda: (rounds("right", "last"), ""),
        "all rollouts, from the last weights": lambda: (rounds("all", "last"), ""),
        "wrong rollouts, from the last weights": lambda: (rounds("wrong", "last"), ""),
    },
    "answers of the base to what it masters (dph_rl)": {
        "its own answers": lambda: (beside_stage(mastered_rows()), "dph_rl"),
        "answers of other tasks": lambda: (beside_stage(exchange_answers(mastered_rows())), "dph_rl"),
        "none (dapo)": lambda: (rl(steps=60, groups=16, levels=(6,)), "dapo"),
    },
    "replay of what it knows (BalanceLosses)": {
        "weights by their losses": lambda: (general(shown_rows(KNOWN, 100), BalanceLosses(window=5)), ""),
        "weights of 1": lambda: (general(shown_rows(KNOWN, 100), None), ""),
        "weights by their losses, answers of other tasks": lambda: (
            general(exchange_answers(shown_rows(KNOWN, 100)), BalanceLosses(window=5)),
            "",
        ),
    },
    "replay by row (RowReplay)": {
        "right rollouts": lambda: (rl(steps=60, groups=16, index=FirstTasks(n=64), replay=RowReplay()), ""),
        "right and wrong": lambda: (rl(steps=60, groups=16, index=FirstTasks(n=64), replay=RowReplay(keep="pairs")), ""),
        "none": lambda: (rl(steps=60, groups=16, index=FirstTasks(n=64)), ""),
    },
}


def measure_stage(stage: Any, method: str, seed: int, level: int) -> dict[str, float]:
    """Greedy accuracy at the end: of the level that is learned, and of what the base knew."""
    wanted = Evaluation(every=0, final_per_level=64, levels=(*KNOWN, level))
    run = replace(quickstart(), name="rows", seed=seed, stages=(stage,), evaluation=wanted)
    run = wire_run(run, {0: NamedMethod(method=method, settings={})})[0] if method else run
    with tempfile.TemporaryDirectory() as folder:
        train(run, Path(folder) / "run")
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = [m for line in lines if "eval/greedy/all" in (m := json.loads(line)["metrics"])]
    last, reward = found[-1], [m["reward/mean"] for line in lines if "reward/mean" in (m := json.loads(line)["metrics"])]
    known = [last[f"eval/greedy/level_{k}"] for k in KNOWN]
    return {
        "hard": last[f"eval/greedy/level_{level}"],
        "known": sum(known) / len(known),
        "early": sum(reward[10:20]) / 10 if len(reward) > 20 else float("nan"),
    }


def rows_of(parts: list[str], seeds: int) -> Iterator[str]:
    """The tables, line by line."""
    for name in parts:
        level = 6 if any(word in name for word in ("Cycle", "dph_rl", "BalanceLosses")) else HARD
        yield f"\n| {name} | level {level} | levels 3 to 5 | reward, steps 11 to 20 |\n|---|---|---|---|"
        for arm, make in PARTS[name].items():
            found = [measure_stage(*make(), seed, level) for seed in range(seeds)]
            cells = [[f[key] for f in found] for key in ("hard", "known", "early")]
            shown_ = [f"{sum(c) / len(c):.2f} ({min(c):.2f} to {max(c):.2f})" if c[0] == c[0] else "" for c in cells]
            yield f"| {arm} | {' | '.join(shown_)} |"


def main() -> None:
    """Runs and prints."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--seeds", type=int, default=3)
    given.add_argument("--parts", nargs="*", default=list(PARTS))
    asked = given.parse_args()
    for line in rows_of(asked.parts, asked.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
