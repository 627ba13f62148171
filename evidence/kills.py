"""A thousand kills: what a block of trials records, and the page made from all blocks.

The trials are tests, in ``tests/train/test_exact_resume.py``: each forks a run, kills it at a random moment, goes on with it and
compares its digest with that of a run that was never interrupted. A block's file is written when it is done and holds for the
code that it was made with, so a study that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.core import cache_folder
from assay.lab import describe_machine, load_average
from assay.measure import wilson
from assay.runs import write_json, write_text

__all__ = ["BLOCKS", "TRIALS", "Trial", "make_page", "run_block"]

BLOCKS, TRIALS = 20, 50
"""Blocks of the study, and trials in each."""


_STAGES = {"start": "before the first step was done", "warm-up": "in the warm-up", "rl": "in RL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One kill and what came of it.

    Attributes:
        killed: False where the run ended before its moment came.
        stage: of the last step that was done at the kill (``warm-up``, ``rl``); ``start`` where there was none.
        digest: of the run at its end; empty where it could not be brought there.
    """

    killed: bool
    stage: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a block of trials found.

    Attributes:
        code: of what was tried: the run and the code that made it.
        digest: of the run that was never interrupted.
        trials, killed: how many were made, and how many were killed before their end.
        reached: stage to kills in it.
        different: trials that ended with another digest, by their number in the block.
        machine, load: where, and its load average at the begin and at the end.
        seconds: by the clock.
    """

    code: str
    digest: str
    trials: int
    killed: int
    reached: Mapping[str, int]
    different: Sequence[int]
    machine: str
    load: Sequence[float]
    seconds: float


def run_block(number: int, code: str, digest: str, trial: Callable[[int], Trial]) -> Block:
    """Makes the trials of a block, or reads what they found.

    Args:
        number: of the block, below `BLOCKS`.
        code: names the run and the code; what was found under another name is not used.
        digest: that each trial must end with.
        trial: makes the trial of a number below `TRIALS`.
    """
    path = _folder() / f"block-{number:02d}.json"
    known = _read(path)
    if known is not None and known.code == code:
        return known
    begin, before = time.monotonic(), load_average()
    trials = [trial(i) for i in range(TRIALS)]
    killed = [t for t in trials if t.killed]
    block = Block(
        code=code,
        digest=digest,
        trials=len(trials),
        killed=len(killed),
        reached=dict(Counter(t.stage for t in killed)),
        different=[i for i, t in enumerate(trials) if t.digest != digest],
        machine=describe_machine(),
        load=[before, load_average()],
        seconds=time.monotonic() - begin,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(block))
    return block


def make_page(folder: Path) -> list[str]:
    """Writes ``exact_resume.md`` and ``exact_resume.json`` from all blocks.

    Returns:
        What is wrong, in words; nothing is written while blocks are missing.
    """
    found = [_read(_folder() / f"block-{n:02d}.json") for n in range(BLOCKS)]
    blocks = [b for b in found if b is not None]
    codes = Counter(b.code for b in blocks)
    if len(blocks) < BLOCKS or len(codes) > 1:
        newest = max(codes.values(), default=0)
        return [f"exact_resume: {newest} of {BLOCKS} blocks are recorded for one state of the code; run: make evidence"]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "exact_resume.json", {"blocks": [asdict(b) for b in blocks]})
    write_text(folder / "exact_resume.md", _page(blocks))
    different = sum(len(b.different) for b in blocks)
    return [f"exact_resume: {different} runs ended with another digest"] if different else []


def _folder() -> Path:
    return cache_folder() / "studies" / "exact_resume"


def _read(path: Path) -> Block | None:
    return Block(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _page(blocks: Sequence[Block]) -> str:
    trials, killed = sum(b.trials for b in blocks), sum(b.killed for b in blocks)
    reached = sum((Counter(b.reached) for b in blocks), Counter[str]())
    stages = "\n".join(f"| killed {words} | {reached[stage]:,} |" for stage, words in _STAGES.items())
    different = sum(len(b.different) for b in blocks)
    bound = wilson(different, killed).high
    loads = [x for b in blocks for x in b.load]
    return f"""# Exact resume: {trials:,} kills

A small run with two stages, a curriculum, a replay and a checkpoint every few steps is killed at a random moment of its CPU
time, then gone on with to its end. The digest of weights, optimiser, sampled ids and metrics must be that of a run that was
never interrupted. Kills at each *named* moment, such as between a checkpoint's rename and the pointer to it, belong to
`make test` and `make prove`.

    make evidence        # the trials are tests, in tests/train/test_exact_resume.py; a block of {TRIALS} that is done is kept

Machine: {"; ".join(sorted({b.machine for b in blocks}))}; load average {min(loads):.1f} to {max(loads):.1f}.
Code and run: `{blocks[0].code}`. Seconds by the clock, added over blocks: {sum(b.seconds for b in blocks):,.0f}.

| | |
|---|---|
| trials | {trials:,} |
{stages}
| ended before the kill came | {trials - killed:,} |
| **digests that differ** | **{different:,}** |

The share of such kills that change a result is below {100 * bound:.2f} % (upper end of Wilson's 95 % interval).
"""
