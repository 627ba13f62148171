"""The page of `benchmarks.judged`, made of records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.judged_arms import PARTS, Part
from benchmarks.judged_words import HEAD, READ

__all__ = ["page"]

WORDS = {"right": "answer right", "sound": "answer and working right", "tag": "tag as its group's label"}


def sign(values: Sequence[float], control: Sequence[float]) -> str:
    """``+`` or ``-`` where every seed differs from the control in that way, else ``0``.

    >>> sign([0.5, 0.6], [0.4, 0.4]), sign([0.5, 0.3], [0.4, 0.4])
    ('+', '0')
    """
    apart = [a - b for a, b in zip(values, control, strict=True)]
    return "+" if min(apart) > 0 else "-" if max(apart) < 0 else "0"


def each(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """A number of each seed."""
    return " ".join(f"{row['end'][key]:.3f}" for row in rows) if key in rows[0]["end"] else ""


def table(name: str, part: Part, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """A part's table, of the seeds that all its arms have."""
    of = {arm.name: {r["seed"]: r for r in records if (r.get("part"), r.get("arm")) == (name, arm.name)} for arm in part.arms}
    seeds: list[int] = [seed for seed in of[part.arms[0].name] if all(seed in rows for rows in of.values())]
    if not seeds:
        return []
    shown = ["right", *({"sound": ["sound"], "tag": ["tag", "length"]}.get(part.measures, []))]
    base = [of[part.arms[0].name][s]["base"] for s in seeds]
    out = [
        f"\n## {name}\n",
        f"| arm | predicted | found | {' | '.join(WORDS.get(key, key) for key in shown)} | tokens | asked | kept | CPU-s |",
        f"|---|---|---|{'---|' * len(shown)}---|---|---|---|",
        f"| base | | | {' | '.join(' '.join(f'{b[key]:.3f}' for b in base) for key in shown)} | | | | |",
    ]
    control = [of[part.arms[0].name][s]["end"][part.metric] for s in seeds]
    for arm in part.arms:
        rows = [of[arm.name][s] for s in seeds]
        found = sign([r["end"][part.metric] for r in rows], control) if arm is not part.arms[0] else ""
        spent = " | ".join(f"{np.mean([r[key] for r in rows]):,.0f}" for key in ("tokens", "asked", "cached", "cpu"))
        out.append(f"| {arm.name} | {arm.predicted} | {found} | {' | '.join(each(rows, key) for key in shown)} | {spent} |")
    faults = sum(r["faults"] for rows in of.values() for r in rows.values())
    out.append(f"\nThe signs are of *{WORDS[part.metric]}* against *{part.arms[0].name}*: {part.why}.")
    if faults:
        out.append(f"Judgements that could not be had: {faults:.0f}; they are no zeros.")
    return [*out, f"\n{READ[name].strip()}"] if name in READ else out


def judges(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each trained judge beside the program."""
    rows = [r for r in records if "stages" in r]
    if not rows:
        return []
    head = [
        "\n## The judges\n",
        "| form | stage | right, greedy | right, sampled | mean reward by its rule, greedy | sampled |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        told = {"shown": f"shown, {r['shown']} steps", "rejection": "rejection, 60 steps", "rule": f"its rule, {r['rl']} steps"}
        for name, of in r["stages"].items():
            cells = (of[key] for key in ("greedy_right", "sampled_right", "greedy_reward", "sampled_reward"))
            head.append(f"| {r['judge']} | {told[name]} | {' | '.join(f'{value:.3f}' for value in cells)} |")
    return [*head, f"\n{READ['judges'].strip()}"]


def reasoning(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """CoT-Pass@K by the trained judge beside the program's."""
    rows = [r for r in records if r.get("part") == "CoT-Pass@K"]
    if not rows:
        return []
    ks = sorted(rows[0]["pass"], key=int)
    out = [
        "\n## CoT-Pass@K\n",
        f"| answers of | seed | by | {' | '.join(f'k={k}' for k in ks)} | working right, of right answers |",
        f"|---|---|---|{'---|' * (len(ks) + 1)}",
    ]
    for r in rows:
        for key, told in (("pass", "the answer alone"), ("judge", "the trained judge"), ("program", "the program")):
            share = "" if key == "pass" else f"{r['share'][key]:.3f}"
            out.append(f"| {r['arm']} | {r['seed']} | {told} | {' | '.join(f'{r[key][k]:.3f}' for k in ks)} | {share} |")
    return [*out, f"\n{READ['CoT-Pass@K'].strip()}"]


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """The page."""
    parts = [line for name, part in PARTS.items() for line in table(name, part, records)]
    return "\n".join([HEAD.strip(), *judges(records), *parts, *reasoning(records)]) + "\n"
