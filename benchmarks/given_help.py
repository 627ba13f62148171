"""Hints, starting places and demonstrations beside controls: the measurements of single methods.

    python benchmarks/given_help.py [--seeds N] [--parts NAME ...]

The quickstart's base was shown digit sorting of levels 3 to 5. Each arm trains it, and is judged on held-out tasks, greedily and
without help. Cells are records in ``--records``; those that are there are read, not run, and ``--page`` writes the page from them
alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from assay.core.protocols import SamplerParts, TaskSource
from assay.core.rollout import Sampling
from assay.guide import (
    AdHint,
    Compose,
    DataReset,
    DifficultyWeights,
    FirstTasks,
    GuideHint,
    Prefix,
    Quarters,
    StartStates,
    plain_context,
)
from assay.lab.controls import OtherSolutions
from assay.objective import Nll, Token, grpo
from assay.recipes import base, quickstart
from assay.recipes.embedded_stages import warm_up_stage
from assay.rollout import PlayerSpec
from assay.rollout.positions import states_between
from assay.runtime.engine.settings import engine_for
from assay.runtime.models.hf import save_model
from assay.scorers import RewardModel
from assay.train import (
    Built,
    Evaluation,
    HintEntropy,
    Imitate,
    ImitateFailures,
    NamedMethod,
    Policy,
    Reinforce,
    Run,
    Scratch,
    load_source,
    train,
    wire_run,
)
from assay_tasks import Heaps, SortDigits
from forced_parts import sign_of
from user_rows import WIDE, woven

HARD, TASKS, KNOWN = 7, 256, (3, 4, 5)
RECORDS = Path("docs/evidence/given_help.jsonl")
PAGE = Path("docs/evidence/given_help.md")
SORT = SortDigits()


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
        level, known: that it is judged on, beside those that the base knows.
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


@cache
def pairs(dispreferred: bool = False) -> tuple[dict[str, str], ...]:
    """Right answers to the tasks that are trained on, preferred to answers with a slip; or turned round."""
    rows: list[dict[str, str]] = []
    for i in range(TASKS):
        task = SORT.task("sort", HARD, "train", i)
        rows.append(pair_of(str(task.public["prompt"]), str(task.private["answer"]), random.Random(i)))
    return tuple(r | {"chosen": r["rejected"]} for r in rows) if dispreferred else tuple(rows)


def pair_of(prompt: str, answer: str, rng: random.Random) -> dict[str, str]:
    """A right answer, and one with two digits exchanged, one replaced, one left out or one doubled."""
    wrong = answer
    while wrong == answer:
        i, j = rng.randrange(len(answer)), rng.randrange(len(answer))
        made = list(answer)
        made[i], made[j] = made[j], made[i]
        replaced = answer[:i] + rng.choice("0123456789") + answer[i + 1 :]
        wrong = rng.choice(("".join(made), replaced, answer[:i] + answer[i + 1 :], answer[: i + 1] + answer[i:]))
    return {"prompt": prompt, "chosen": answer, "rejected": wrong}


def resets(folder: Path, dispreferred: bool) -> tuple[Any, ...]:
    """PPO by the learned reward, from places within the answers of a file of pairs."""
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in pairs(dispreferred)), encoding="utf-8")
    return (rl(guidance=DataReset(data=str(path), probability=0.75), reward=reward_model()),)


@cache
def reward_model(steps: int = 400) -> RewardModel:
    """A classifier of 0.1M weights, fitted to pairs of levels 3 to 7: ``-log sigmoid(r(chosen) - r(rejected))``."""
    import torch
    from transformers import LlamaConfig, LlamaForSequenceClassification

    folder = Path(tempfile.mkdtemp(prefix="assay-reward-"))
    save_model(load_source(Scratch(), lambda run, place: place), folder)
    ids = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    torch.manual_seed(0)
    model = LlamaForSequenceClassification(
        LlamaConfig(
            vocab_size=len(ids) + 2,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_labels=1,
            pad_token_id=0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = random.Random(0)

    def margins(size: int, level: int, first: int) -> torch.Tensor:
        drawn = [SORT.task("sort", level, "train", first + rng.randrange(4096)) for _ in range(size)]
        rows = [pair_of(str(t.public["prompt"]), str(t.private["answer"]), rng) for t in drawn]
        texts = [row["prompt"] + row[key] for key in ("chosen", "rejected") for row in rows]
        longest = max(map(len, texts))
        table = torch.tensor([[ids[c] for c in text] + [0] * (longest - len(text)) for text in texts])
        mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
        scores = model(input_ids=table, attention_mask=mask).logits[:, 0]
        return scores[:size] - scores[size:]

    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 20, 2 * (1 - step / steps))
        loss = -torch.nn.functional.logsigmoid(margins(48, 3 + step % 5, 1000)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"reward model: right of two in {float((margins(512, HARD, 10_000) > 0).float().mean()):.3f} of pairs", flush=True)
    model.save_pretrained(folder)
    return RewardModel(path=str(folder))


def heaps_base() -> Run:
    """A base that was shown two and three heaps, with a slip in half of the moves."""
    shown = warm_up_stage(steps=300, demonstrations=10_000, levels=(2, 3), noise=0.5)
    return replace(base(), name="base-heaps", tasks=Heaps(), stages=(shown,), sampling=Sampling(max_new_tokens=4), max_turns=24)


def heaps() -> Run:
    """The game of heaps from that base."""
    return replace(quickstart(), model=Built(run=heaps_base()), tasks=Heaps(), sampling=Sampling(max_new_tokens=4), max_turns=24)


def played(**changes: Any) -> Reinforce:
    """RL against itself on three heaps."""
    return rl(**{"steps": 60, "groups": 8, "levels": (3,), "index": FirstTasks(n=TASKS), **changes})


@cache
def taught() -> tuple[dict[str, Any], ...]:
    """States between the moves of a trained policy on each of the tasks: of the arm at the oracle's states, by seed 100."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Evaluation(every=0, final_per_level=128, levels=(2, 3), kl_to_base=False)
        stage = played(guidance=StartStates())
        train(
            replace(heaps(), name="teacher", seed=100, stages=(stage,), evaluation=wanted), Path(folder) / "run", progress=False
        )
        model = Policy(Path(folder) / "run").model()
    parts = SamplerParts(
        engine=engine_for(model),
        tokenizer=model.tokenizer,
        source=Heaps(),
        sampling=Sampling(max_new_tokens=4),
        seed=0,
        max_turns=24,
        deadline=30.0,
    )
    contexts = [plain_context(Heaps().task("heaps", 3, "train", i), f"t{i}") for i in range(TASKS)]
    found = asyncio.run(PlayerSpec().build(parts).collect(contexts, 1))
    rows: dict[str, dict[str, Any]] = {}
    for rollout in found:
        said = [call.text for call in rollout.calls]
        states = asyncio.run(states_between(Heaps(), rollout.context, said))
        rows.setdefault(rollout.context.key, {"prompt": rollout.context.messages[0].content, "states": states})
    return tuple(rows.values())


def teacher_states(folder: Path) -> tuple[Any, ...]:
    """Those states, in a file."""
    path = folder / "states.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in taught()), encoding="utf-8")
    return (played(guidance=StartStates(data=str(path), clusters=3)),)


HINT = GuideHint(text="{prompt}{hint}", share=0.6)
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
    ),
    "DR-PO: resets within preferred answers": Part(
        text="PPO, 120 steps, by a learned reward: a classifier fitted to pairs of a right answer and one with a slip. On three "
        "prompts of four an episode begins within a preferred answer of the file of pairs (`DataReset`), at an even place. The "
        "control's file prefers the wrong answer of each pair; its reward model is the same.",
        arms={
            "no resets": Arm(predicted="", make=lambda folder: (rl(reward=reward_model()),), method="ppo"),
            "within preferred answers": Arm(predicted="+", make=lambda folder: resets(folder, False), method="ppo"),
            "within dispreferred answers": Arm(predicted="-", make=lambda folder: resets(folder, True), method="ppo"),
        },
    ),
    "SnapshotRL: episodes that begin at a state": Part(
        text="The game of heaps against itself, GRPO, 60 steps of 8 prompts with 8 rollouts on three heaps; the base was shown "
        "two and three heaps with a slip in half of the moves. Half of the episodes begin at a state (`StartStates`): of the "
        "oracle's own play; over three clusters of these with at most two moves of each side behind (S3RL); or, over clusters, "
        "of a trained policy. Judged by games against an opponent that never errs.",
        arms={
            "no states": Arm(predicted="", make=alone(played())),
            "states of the oracle": Arm(predicted="+", make=alone(played(guidance=StartStates()))),
            "S3RL": Arm(predicted="+", make=alone(played(guidance=StartStates(clusters=3, horizon=2)))),
            "states of a trained policy, clusters": Arm(predicted="+", make=teacher_states),
        },
        base=heaps,
        level=3,
        known=(2,),
    ),
    "RLGF: PPO behind what a guide wrote": Part(
        text="PPO, 120 steps. On four prompts of five the guide, the task's solution, writes the first 1 to 6 digits (`Prefix`, "
        "the roll-in of PPO++). The control's guide writes another task's.",
        arms={
            "no guide": Arm(predicted="", make=alone(rl()), method="ppo"),
            "guide": Arm(predicted="+", make=alone(rl(guidance=IN)), method="ppo"),
            "guide of another task": Arm(predicted="-", make=alone(rl(guidance=IN)), method="ppo", tasks=others()),
        },
    ),
    "SPARKLE: quarters of the solution": Part(
        text="GRPO, 120 steps. A prompt is posed plainly or behind one to four quarters of its solution (`Quarters`), evenly.",
        arms={
            "plain": Arm(predicted="", make=alone(rl())),
            "quarters": Arm(predicted="+", make=alone(rl(guidance=Quarters(unit="")))),
            "quarters of another task": Arm(predicted="-", make=alone(rl(guidance=Quarters(unit=""))), tasks=others()),
        },
    ),
    "ADHint: weights of hint tokens and of rollouts": Part(
        text="GRPO, 120 steps; plain rollouts, as many behind a part of the solution (`AdHint`), and a likelihood of .1 on all "
        "hint tokens. `HintEntropy` weighs these, `DifficultyWeights` the rollouts.",
        arms={
            "neither": Arm(predicted="", make=adhint()),
            "HintEntropy": Arm(predicted="-", make=adhint(entropy=True)),
            "DifficultyWeights": Arm(predicted="+", make=adhint(posterior=True)),
            "both": Arm(predicted="0", make=adhint(entropy=True, posterior=True)),
        },
    ),
    "Guide-GRPO: hints where all rollouts fail": Part(
        text="First 40 supervised steps on other tasks of level 7, posed with four to seven of the seven digits of the solution "
        "behind the prompt: from then on hints mean something. Then 120 steps of RL. The hint is the first four digits.",
        arms={
            "no hints (guide_grpo)": Arm(predicted="", make=lambda folder: (shown_hints(40), rl()), method="guide_grpo"),
            "hints": Arm(predicted="+", make=lambda folder: (shown_hints(40), rl(guidance=HINT)), method="guide_grpo"),
            "hints of another task": Arm(
                predicted="0",
                make=lambda folder: (shown_hints(40), rl(guidance=HINT)),
                method="guide_grpo",
                tasks=others(),
            ),
        },
    ),
}
"""The tables. Signs were written before the runs."""


def measured(part: str, arm: str, seed: int) -> dict[str, Any]:
    """A cell: held-out greedy accuracy at the end, tokens and CPU-seconds of the steps."""
    whole, asked = PARTS[part], PARTS[part].arms[arm]
    with tempfile.TemporaryDirectory() as folder:
        stages = asked.make(Path(folder))
        wanted = Evaluation(every=0, final_per_level=128, levels=(*whole.known, whole.level), kl_to_base=False)
        run = replace(whole.base(), name="help", seed=seed, stages=stages, evaluation=wanted)
        run = run if asked.tasks is None else replace(run, tasks=asked.tasks)
        if asked.method:
            run = wire_run(run, {len(stages) - 1: NamedMethod(method=asked.method, settings={})})[0]
        train(run, Path(folder) / "run", progress=False)
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line)["metrics"] for line in lines]
    last = next(m for m in reversed(told) if "eval/greedy/all" in m)
    return {
        "part": part,
        "arm": arm,
        "seed": seed,
        "accuracy": last[f"eval/greedy/level_{whole.level}"],
        "known": sum(last[f"eval/greedy/level_{k}"] for k in whole.known) / len(whole.known),
        "tokens": sum(m.get("tokens/sampled", 0.0) for m in told),
        "cpu": max(m.get("time/cpu", 0.0) for m in told),
    }


HEAD = f"""The quickstart's base (0.34M parameters) was shown digit sorting of levels 3 to 5 and never answers level {HARD}
right. Each arm trains it, on the first {TASKS} tasks of level {HARD} where nothing else is said, and is judged on 128 held-out
tasks of that level, greedily and without help. Nothing was tuned but what a part names. The sign against a part's first arm was
written before the runs; the one that was found is `+` or `-` where all seeds are on that side, and `0` elsewhere. CPU-seconds are
of the steps, beside other work."""


def page(records: list[dict[str, Any]]) -> str:
    """The page, of records alone."""
    out = [
        "# Hints, starting places and demonstrations\n",
        "    python benchmarks/given_help.py --seeds 3        # cells that are done are read, not run\n",
        HEAD,
    ]
    for name, part in PARTS.items():
        cells = {arm: sorted(_of(records, name, arm), key=lambda r: r["seed"]) for arm in part.arms}
        if not all(cells.values()):
            continue
        first = [r["accuracy"] for r in next(iter(cells.values()))]
        out += [
            f"\n## {name}\n\n{part.text}\n",
            f"| arm | predicted | found | level {part.level}, each seed | mean | {known_of(part)} | tokens sampled | CPU-s |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for arm, rows in cells.items():
            values = [r["accuracy"] for r in rows]
            found = "" if arm == next(iter(part.arms)) else sign_of(values, first)
            mean, known, tokens, cpu = (sum(r[key] for r in rows) / len(rows) for key in ("accuracy", "known", "tokens", "cpu"))
            shown = ", ".join(f"{v:.2f}" for v in values)
            numbers = f"{shown} | {mean:.3f} | {known:.2f} | {tokens:,.0f} | {cpu:.0f}"
            out.append(f"| {arm} | {part.arms[arm].predicted} | {found} | {numbers} |")
        if part.read:
            out.append("\n" + part.read)
    return "\n".join(out) + "\n"


def known_of(part: Part) -> str:
    """The levels that the base knows, in words."""
    first, last = part.known[0], part.known[-1]
    return f"level {first}" if first == last else f"levels {first} to {last}"


def _of(records: list[dict[str, Any]], part: str, arm: str) -> list[dict[str, Any]]:
    return [r for r in records if (r["part"], r["arm"]) == (part, arm)]


def main() -> None:
    """Runs what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    records = [json.loads(line) for line in asked.records.read_text().splitlines()] if asked.records.exists() else []
    done = {(r["part"], r["arm"], r["seed"]) for r in records}
    for part in asked.parts:
        for seed in range(asked.seeds):
            for arm in PARTS[part].arms:
                if (part, arm, seed) not in done:
                    records.append(measured(part, arm, seed))
                    with asked.records.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
                    print(records[-1], flush=True)
    asked.page.write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
