"""Answers with slips: the fuzz that every verifier must stand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import process_time

from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Fault
from assay.core.task import Task
from assay.verify.abilities import abilities_of
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["HOSTILE_TEXTS", "Fuzzed", "fuzz", "slip"]

_BATCH = 500

HOSTILE_TEXTS = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "\u202e123",
    "é",
    "é",
    "١٢٣",
    "４２",
    "²",
    "½",
    "Ⅷ",
    "\u200b",
    "\ufeff4",
    "ß",
    "İ",
    "ﬁ",
    "a" * 1000,
    "(" * 500 + ")" * 500,
    "[" * 500 + "]" * 500,
    "{" * 500 + "}" * 500,
    "<answer>" * 500,
    "</answer>" * 500,
    "\\boxed{" * 500,
    "\\boxed{" * 300 + "}" * 300,
    "```" * 500,
    "\n```\n" * 300,
    "Answer:" * 500,
    "-" * 500,
    "->" * 500,
    "1/" * 500,
    "1e" * 500,
    "1" * 5000,
    "0." * 500,
    "," * 500,
    "1," * 500,
    "nan",
    "inf",
    "-inf",
    "1e999999999",
    "%" * 100,
    '"' * 500,
    '\\"' * 500,
    '{"a": ' * 500,
    "A or B",
    "\n" * 500,
    "\t\r\v\f\x1c\x85\u2028",
    "<<" * 300,
    "*" * 501,
    "[a" * 300,
    "a: " * 300,
    "a=b=c",
    "x1=" * 300,
    "0 0 0",
    "a is a " * 200,
    "#" * 500,
    "• " * 200,
    "null",
    "true",
    '{"a": NaN}',
    "None",
    "none",
    "unsat",
    "\U0001f600" * 300,
    "a\u0301" * 300,
    "…" * 300,
)
"""Texts on which programs that read text fail: nothing, halves of characters, other scripts' digits, nesting, repetition."""

_ALPHABET = "abcdxyzAB0129.,;:-+/%*_#=<>()[]{}\"'\\|&!? \n\t$^~`é١\u2028\ud800\U0001f600→−"


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What became of so many answers.

    Attributes:
        answers: how many.
        some: of these, how many have a component that is not 0.
        faults: how many made the verifier raise, hang or end its process; nothing else may be in here but 0.
        error: the first fault in words.
        seconds: of this process, for all of them.
        longest: of this process, for one answer; 0 where another process judged.
    """

    answers: int
    some: int
    faults: int
    error: str
    seconds: float
    longest: float


def slip(rng: random.Random, said: str) -> str:
    """A hostile text, the right answer with slips, or pieces of both."""
    kind = rng.random()
    if kind < 0.1:
        return rng.choice(HOSTILE_TEXTS)
    text = said if kind < 0.7 else "".join(rng.choices(_ALPHABET, k=rng.randint(0, 30)))
    for _ in range(rng.randint(0, 4)):
        at, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        piece = rng.choice(
            [rng.choice(_ALPHABET), "<answer>", "</answer>", "\\boxed{", "Answer: ", "```\n", "1e9", text[at:end], said]
        )
        text = text[:at] + piece + text[at if rng.random() < 0.5 else min(end, at + 2) :]
    return text


def fuzz(verifier: Verifier, cases: Sequence[tuple[Task, str]], answers: int, seed: int = 0) -> Fuzzed:
    """Judge answers that were made from right ones by slips.

    A ``trusted`` verifier is called in this process, and what it raises leaves here; any other judges in a `ScoringPool`.

    Args:
        verifier: the verifier.
        cases: tasks, each with a right answer.
        answers: how many.
        seed: decides all of them.

    >>> from assay.verify import Numeric, task_and_rollout
    >>> found = fuzz(Numeric(), [(task_and_rollout(4, "")[0], "4")], 50)
    >>> found.faults, 0 < found.some < 50
    (0, True)
    """
    rng = random.Random(seed)
    began = process_time()
    some, longest, errors = 0, 0.0, list[str]()
    rollouts = _attempts(rng, cases, answers)
    if abilities_of(verifier).trusted:
        for task, rollout in rollouts:
            before = process_time()
            score = verifier(task, rollout)
            longest = max(longest, process_time() - before)
            some += any(score.components.values())
            if score.fault is not Fault.NONE:
                errors.append(f"{score.fault} on {rollout.text!r}")
    else:
        with ScoringPool(verifier, deadline=20.0, refuse=False) as pool:
            while batch := list(islice(rollouts, _BATCH)):
                for (_, rollout), score in zip(batch, pool.score(batch).values(), strict=True):
                    some += any(score.components.values())
                    if not score.valid or "ended" in score.info:
                        errors.append(f"{score.info.get('error', score.fault)} on {rollout.text!r}")
    return Fuzzed(answers, some, len(errors), errors[0] if errors else "", process_time() - began, longest)


def _attempts(rng: random.Random, cases: Sequence[tuple[Task, str]], answers: int) -> Iterator[tuple[Task, Rollout]]:
    for n in range(answers):
        task, said = cases[n % len(cases)]
        yield task, rollout_of(task, slip(rng, said), id=f"slip {n}")
