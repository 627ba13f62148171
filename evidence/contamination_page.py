"""Can one tell which items a model was trained on? Models contaminated on purpose, and what each score says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from assay.core import Task, UnknownNameError, cache_folder, digest
from assay.lab import run_cells
from assay.measure import Interval, gap, mean_auc
from assay.runs import read_json, write_json, write_text
from assay.select import MembershipProbe, grade_answers
from assay.tasks import Rows

__all__ = ["CELLS", "SCORES", "SEEDS", "Row", "failures", "items", "make_page", "row_of"]

MAKER = "evidence.cells.contamination:contamination_cell"

SEEDS = (0, 1, 2)

EPOCHS = (1, 4, 16, 64)

CELLS = (
    *(f"facts-sft-{n}" for n in EPOCHS),
    *(f"sort-sft-{n}" for n in EPOCHS),
    *(f"sort-rl-{n}" for n in EPOCHS[1:3]),
)
"""Items, how they were trained on, and how often each was seen."""

CLEAN = {"facts": "facts-sft-1", "sort": "sort-sft-1"}
"""Items to the cell from whose start, the base, they were never seen."""

SCORES = ("self_critique", "certainty", "answer", "answer_min_k", "prompt", "prompt_min_k", "zlib")

RETRY = "{question}"
"""These models know no words; the second answer is asked for by the question once more, behind the first answer."""

DIGITS = 6
"""Of an item: the base, which was shown 3 to 5, gets about half of these right."""

BAR = 0.05
"""How far from 1/2 a score may stand on models that saw neither members nor others."""

FOUND = 0.9
"""What the likelihood of the answer must reach where numbers that nothing tells were seen 64 times."""


def items(kind: str, seed: int) -> Rows:
    """512 items, of which a hash of the prompt makes about half members (the train split), and leaves the others unseen.

    Args:
        kind: ``sort``: a rule that the base is about to learn, sorting 6 digits; ``facts``: a number that nothing tells.
        seed: of the items.

    Raises:
        UnknownNameError: another kind.
    """
    rng = Random(f"contamination/{kind}/{seed}")
    prompts = [f"{n:0{DIGITS}d}" for n in rng.sample(range(10**DIGITS), 512)]
    if kind == "sort":
        rows = [{"prompt": f"S{p}>", "answer": "".join(sorted(p))} for p in prompts]
    elif kind == "facts":
        rows = [{"prompt": f">{p}S", "answer": f"{rng.randrange(10**4):04d}"} for p in prompts]
    else:
        raise UnknownNameError("kind of items", kind, ("sort", "facts"))
    return Rows(rows, name=kind, test_share=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was found of one kind of training, over seeds.

    Attributes:
        name: ``sort-sft-4``, or ``sort`` of models that saw none of the items.
        scores: name to the mean AUC over seeds.
        members, others: greedy accuracy.
        gap: the first minus the second, over the items of all seeds.
    """

    name: str
    scores: Mapping[str, Interval]
    members: float
    others: float
    gap: Interval

    @property
    def telling(self) -> list[str]:
        """Scores whose interval lies above 1/2."""
        return [name for name, found in self.scores.items() if found.low > 0.5]


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``contamination.md`` and ``contamination.json``.

    Returns:
        What is not as it must be, in words.
    """
    work = cache_folder() / "studies" / "contamination"
    records = run_cells(MAKER, [(kind, seed, None) for seed in SEEDS for kind in CELLS], work, 1)
    digests = {(r["kind"], r["seed"]): r["digest"] for r in records}
    told: dict[str, list[Mapping[str, Any]]] = {}
    for kind, cell in CLEAN.items():
        told[kind] = [_ask_model(work, cell, seed, "start", digests[cell, seed]) for seed in SEEDS]
    for cell in CELLS:
        told[cell] = [_ask_model(work, cell, seed, "model", digests[cell, seed]) for seed in SEEDS]
    rows = [row_of(name, found) for name, found in told.items()]
    folder.mkdir(parents=True, exist_ok=True)
    cells = [{k: r[k] for k in ("kind", "seed", "steps", "digest", "cpu_seconds", "machine", "load")} for r in records]
    write_json(folder / "contamination.json", {"rows": [_plain(row) for row in rows], "cells": cells})
    write_text(folder / "contamination.md", _page(rows, records))
    return failures(rows)


def row_of(name: str, told: Sequence[Mapping[str, Any]]) -> Row:
    """One line of the table.

    Args:
        name: of the training.
        told: per seed, for ``members`` and ``others``: ``scores`` by name, and whether answers were ``right``; a list each.
    """
    sides = [np.concatenate([np.array(t[side]["right"], float) for t in told]) for side in ("members", "others")]
    scores = {s: mean_auc([(t["members"]["scores"][s], t["others"]["scores"][s]) for t in told]) for s in SCORES}
    means = [float(side.mean()) for side in sides]
    return Row(name=name, scores=scores, members=means[0], others=means[1], gap=gap(sides[0], sides[1]))


def failures(rows: Sequence[Row]) -> list[str]:
    """What is not as it must be for the study to say anything."""
    found: list[str] = []
    for row in rows:
        for name, area in row.scores.items():
            if row.name in CLEAN and abs(area.value - 0.5) > BAR:
                found.append(f"{name} on {row.name}, which the models never saw: {area.value:.3f} is not within {BAR} of .5")
    sure = next(row for row in rows if row.name == CELLS[len(EPOCHS) - 1]).scores["answer"]
    if sure.value < FOUND:
        found.append(f"answer on {CELLS[len(EPOCHS) - 1]}: {sure.value:.3f} < {FOUND}, though each was seen 64 times")
    return found


# ---- asking a model ---------------------------------------------------------------------------------------------------


def _ask_model(work: Path, cell: str, seed: int, which: str, result: str) -> Mapping[str, Any]:
    """What a model tells of members and others; kept, so that it is asked once."""
    path = work / "told" / f"{cell}-{seed}-{which}.json"
    key = digest([result, RETRY, SCORES], 8)
    known: Any = read_json(path) if path.exists() else {}
    if known.get("key") == key:
        return known
    source = items(cell.partition("-")[0], seed)
    probe = MembershipProbe(model=work / f"{cell}-{seed}" / which, retry=RETRY, max_new_tokens=14)
    found = {"key": key, "members": _ask_probe(probe, source, "train"), "others": _ask_probe(probe, source, "test")}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, found)
    return found


def _ask_probe(probe: MembershipProbe, source: Rows, split: str) -> dict[str, Any]:
    tasks: list[Task] = [source.task(source.name, 1, split, i) for i in range(source.size(source.name, 1, split))]
    told = probe(tasks)
    return {
        "scores": {n: told.scores[n].tolist() for n in SCORES},
        "right": grade_answers(source.verifier(), tasks, told).tolist(),
    }


# ---- the page ---------------------------------------------------------------------------------------------------------

_HEADS = {
    "self_critique": "self-critique",
    "certainty": "certainty",
    "answer": "answer",
    "answer_min_k": "answer, min-20%",
    "prompt": "prompt",
    "prompt_min_k": "prompt, min-20%",
    "zlib": "zlib",
}


def _plain(row: Row) -> dict[str, Any]:
    areas = {n: [round(x, 4) for x in (i.value, i.low, i.high)] for n, i in row.scores.items()}
    ends = [round(x, 4) for x in (row.gap.value, row.gap.low, row.gap.high)]
    return {"name": row.name, "auc": areas, "members": row.members, "others": row.others, "gap": ends}


def _cell_name(name: str) -> str:
    what, _, rest = name.partition("-")
    if not rest:
        return f"{what}: none, the base"
    how, _, times = rest.partition("-")
    return f"{what}: {'supervised' if how == 'sft' else 'RL'}, {times}×"


def _area(found: Interval) -> str:
    text = f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]".replace("0.", ".")
    return f"**{text}**" if found.low > 0.5 else text


def _page(rows: Sequence[Row], records: Sequence[Mapping[str, Any]]) -> str:
    wrong = failures(rows)
    verdict = "Both hold." if not wrong else "Not met: " + "; ".join(wrong) + "."
    areas = [f"| {_cell_name(r.name)} | {' | '.join(_area(r.scores[s]) for s in SCORES)} |" for r in rows]
    gaps = [
        f"| {_cell_name(r.name)} | {r.members:.3f} | {r.others:.3f} | {r.gap.value:+.3f} [{r.gap.low:+.3f}, {r.gap.high:+.3f}] |"
        for r in rows
    ]
    bases = {r["seed"]: float(r["base_cpu_seconds"]) for r in records}  # one for all cells of a seed
    cpu = sum(float(r["cpu_seconds"]) for r in records) + sum(bases.values())
    minutes = max(1, round(cpu / 60))
    return f"""# Contamination: can one tell which items a model was trained on?

Small models (0.34M weights, the quickstart's base, which sorts 3 to 5 digits) are trained on purpose on about 256 items, the
*members*, and then asked these and as many *others* of the same distribution. Each score gives an item one number, larger for
what the model is more likely to have seen. The area under its curve is the probability that a member scores higher than another
item: .5 says nothing, 1 tells all apart. Means over {len(SEEDS)} seeds, each with items and a base of its own; 95 % intervals
(DeLong); bold where the interval lies above .5.

- *facts*: `>314159S` asks for four digits that nothing tells. They can only be known by heart.
- *sort*: `S314159>` asks for the digits in order. The base gets about half of these right, and there is a rule to be learned.
- *supervised, 4×*: the members' answers are shown, each item 4 times. *RL, 4×*: each is posed 4 times, for 8 rollouts that a
  verifier judges.

    python -m evidence contamination        # about {minutes} CPU-minutes in one process; cells that are done are read

Asked beforehand: on a base that saw neither, each score is within {BAR} of .5; and facts seen 64 times are told by the likelihood
of their answers, at {FOUND} or more. {verdict} The other numbers have no bars. *min-20%* is Min-K% Prob
at 20 %.

Machine: {"; ".join(sorted({r["machine"] for r in records}))}. Numbers and digests: `contamination.json`.

| trained on members | {" | ".join(_HEADS[s] for s in SCORES)} |
|---|{"---|" * len(SCORES)}
{chr(10).join(areas)}

{chr(10).join(_sentences(rows))}

## Accuracy on members, and on fresh items

The other comparison needs no score: how much better a model is at items it may have seen than at fresh ones of the same kind,
here the others. Greedy answers, the items of all seeds together.

| trained on members | members | fresh | difference |
|---|---|---|---|
{chr(10).join(gaps)}

{_gaps(rows)}

## What the scores are

| score | of |
|---|---|
| self-critique | cosine of the entropies of two greedy answers, times the ratio of their lengths (arXiv 2510.09259) |
| certainty | minus the mean entropy of the greedy answer |
| answer, prompt | mean log-probability of the right answer behind the prompt, and of the prompt |
| min-20% | of the least likely fifth of the tokens (arXiv 2310.16789) |
| zlib | log-probability of both over their compressed bytes |

The second answer of self-critique is to be asked for by another line of reasoning. These models know no words, so the question is
put once more behind the first answer; what self-critique tells of a model that reasons in words is not testable here. Prompts
carry no loss in either kind of training.

The same for a model and items of yours: `assay contamination MODEL ITEMS FRESH`.
"""


def _sentences(rows: Sequence[Row]) -> list[str]:
    """Per score, where it tells members from others."""
    trained = [row for row in rows if row.name not in CLEAN]
    out: list[str] = []
    for score in SCORES:
        telling = [_cell_name(row.name) for row in trained if score in row.telling]
        most = max(trained, key=lambda row: row.scores[score].value)
        told = f"above .5 on {', '.join(telling)}" if telling else "nowhere above .5 beyond its interval"
        out.append(f"- {_HEADS[score]}: {told}; at most {most.scores[score].value:.2f} ({_cell_name(most.name)}).")
    return out


def _gaps(rows: Sequence[Row]) -> str:
    found = [_cell_name(row.name) for row in rows if row.gap.low > 0]
    return f"The difference is above 0 on {', '.join(found)}." if found else "The difference is nowhere above 0."
