"""Word problems of any depth: quantities that are told by other quantities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay_tasks.math.exact import ExactProblem
from assay_tasks.math.stories import NAMES, THINGS

__all__ = ["Quantities"]

_MOST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities(ExactProblem):
    r"""How many things somebody has, who has as many more, fewer, times as many as others. The level is the number of operations.

    All operations are needed for the answer; for every two of them there is a sentence that is not, and the sentences stand in
    any order. After GSM-Infinite (arXiv 2502.05252).

    >>> q = Quantities()
    >>> facts = {"who": ["Ada", "Ben"], "what": ["keys", "cards"], "how": [["is", 4], ["times", 3, 0]],
    ...          "order": [1, 0], "asked": 1}
    >>> q.fields(facts)["story"]
    'Ben has 3 times as many cards as Ada has keys. Ada has 4 keys.'
    >>> q.solve(facts).steps
    "Ada's keys: 4\nBen's cards: 3 × 4 = 12"
    """

    name: str = "words/quantities"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)

    templates: ClassVar[tuple[str, ...]] = (
        "{story} How many {what} does {who} have?",
        "Read carefully. {story} What is the number of {what} that {who} has?",
        "{story}\nThe question: how many {what} are there in {who}'s possession?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A chain of quantities, each told by the one before and maybe another, and some beside it."""
        n = level + 1
        extra = level // 2
        pairs = rng.sample(range(len(NAMES) * len(THINGS)), n + extra)
        how: list[list[Any]] = [["is", rng.randint(2, 30)]]
        values: list[int] = [how[0][1]]
        for i in range(1, n + extra):
            base = i - 1 if i < n else rng.randrange(i)  # the first n are a chain
            how.append(_clue_of(base, values, rng) if i < n or rng.random() < 0.8 else ["is", rng.randint(2, 60)])
            values.append(_value(how[-1], values))
        order = list(range(n + extra))
        rng.shuffle(order)
        return {
            "who": [NAMES[p % len(NAMES)] for p in pairs],
            "what": [THINGS[p // len(NAMES)] for p in pairs],
            "how": how,
            "order": order,
            "asked": n - 1,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The sentences in their order, and what is asked."""
        asked = facts["asked"]
        story = " ".join(_sentence(facts, i) for i in facts["order"])
        return {"story": story, "who": facts["who"][asked], "what": facts["what"][asked]}

    def solve(self, facts: Facts) -> Solution:
        """What is asked, and before it what it is told by."""
        values: dict[int, int] = {}
        steps: list[str] = []
        waiting = [facts["asked"]]
        while waiting:
            i = waiting[-1]
            how = facts["how"][i]
            missing = [k for k in _needs(how) if k not in values]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if i not in values:
                values[i] = _value(how, values)
                steps.append(f"{facts['who'][i]}'s {facts['what'][i]}: {_work_value(how, values)}{values[i]}")
        return Solution(
            answer=str(values[facts["asked"]]), steps="\n".join(steps), effort=sum(facts["how"][i][0] != "is" for i in values)
        )


def _clue_of(base: int, values: list[int], rng: Random) -> list[Any]:
    """How a quantity follows from one before it; such that it stays a positive number that is not too large."""
    value = values[base]
    choices: list[list[Any]] = [["more", rng.randint(2, 40), base]]
    if value > 4:
        choices.append(["less", rng.randint(2, min(value - 2, 60)), base])
    if value < _MOST:
        choices.append(["times", rng.randint(2, 5), base])
    for k in (2, 3, 4, 5):
        if value % k == 0 and value // k > 1:
            choices.append(["part", k, base])
            break
    if base and value < _MOST:
        other = rng.randrange(base)
        choices.append(["sum", base, other])
        if abs(value - values[other]) > 1:
            choices.append(["gap", *((base, other) if value > values[other] else (other, base))])
    return rng.choice(choices)


def _needs(how: list[Any]) -> list[int]:
    return {"is": [], "sum": how[1:], "gap": how[1:]}.get(how[0], how[2:])


def _value(how: list[Any], values: Mapping[int, int] | list[int]) -> int:
    kind, n = str(how[0]), int(how[1])
    if kind == "is":
        return n
    last = values[int(how[2])]
    match kind:
        case "more":
            return last + n
        case "less":
            return last - n
        case "times":
            return last * n
        case "part":
            return last // n
        case "sum":
            return values[n] + last
        case _:
            return values[n] - last


def _work_value(how: list[Any], values: Mapping[int, int]) -> str:
    kind, a, *rest = how
    match kind:
        case "is":
            return ""
        case "sum" | "gap":
            return f"{values[a]} {'+' if kind == 'sum' else '-'} {values[rest[0]]} = "
        case "times":
            return f"{a} × {values[rest[0]]} = "
        case _:
            return f"{values[rest[0]]} {_SIGNS[kind]} {a} = "


_SIGNS = {"more": "+", "less": "-", "part": "/"}
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}


def _sentence(facts: Facts, i: int) -> str:
    kind, a, *rest = facts["how"][i]
    who, what = facts["who"][i], facts["what"][i]

    def has(k: int) -> str:
        return f"{facts['who'][k]} has {facts['what'][k]}"

    match kind:
        case "is":
            return f"{who} has {a} {what}."
        case "more":
            return f"{who} has {a} more {what} than {has(rest[0])}."
        case "less":
            return f"{who} has {a} fewer {what} than {has(rest[0])}."
        case "times":
            return f"{who} has {a} times as many {what} as {has(rest[0])}."
        case "part":
            return f"{who} has {_PARTS[a]} as many {what} as {has(rest[0])}."
        case "sum":
            return f"{who} has as many {what} as {has(a)} and {has(rest[0])} together."
        case _:
            return f"The number of {what} that {who} has is how many more {_more(facts, a, rest[0])}."


def _more(facts: Facts, a: int, b: int) -> str:
    return f"{facts['what'][a]} {facts['who'][a]} has than {facts['who'][b]} has {facts['what'][b]}"
