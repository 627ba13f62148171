"""Things to name by their class, of which half is held back: few-shot classification by generated labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, ClassVar, Literal

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.text.label import Classification

__all__ = ["UNSURE", "NamedClass"]

UNSURE = "unsure"
"""The label of who does not know; never right."""

_COLOURS, _SHAPES = ("red", "blue", "green", "yellow"), ("round", "square", "flat", "curved")
_OTHERS = (("small", "large"), ("old", "new"), ("wooden", "metal", "glass"))
_NAMES = (
    *("dax", "wug", "toma", "zup", "fep", "modi", "kiki", "gorp"),
    *("lun", "blick", "rask", "vint", "peb", "solm", "quib", "harn"),
)
_CLASSES = tuple(zip(_NAMES, product(_COLOURS, _SHAPES), strict=True))
# base and new alternate along the diagonals, so that each half has every colour and every shape
_HALVES = {part: tuple(c for i, c in enumerate(_CLASSES) if (i + i // 4) % 2 == odd) for part, odd in (("base", 0), ("new", 1))}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedClass(Problem):
    """Name the class of a thing. At level n there are n + 1 classes to choose from, of sixteen: each a colour with a shape.

    Half of the classes are ``base``, to be trained on, and half ``new``, to see what training does to others (CLS-RL). How the
    question is put has GenCLS++'s dimensions, each a setting; the fifth, decoding by perplexity, is `assay.train.Policy.choose`.
    With few tasks of a stream (`assay.guide.FirstTasks`) it is few-shot.

    Attributes:
        part: of the classes.
        definitions: the question says what each class is.
        examples: things with their labels in the question.
        uncertain: ``unsure`` may be said too; it is never right.
        numeric: classes have numbers that mean nothing, in place of names.
        thinking: think before the label, between tags; otherwise the whole answer is the label.

    Raises:
        UnknownNameError: ``part`` is neither half.
        ConfigError: more classes than a half has, a negative number of examples.

    Source: CLS-RL (arXiv 2503.16188), its text part: thinking and No-Thinking, base and new classes; GenCLS++ (arXiv 2504.19898):
    in-context examples, definitions, the uncertain label, numeric labels.

    >>> facts = {"labels": ["dax", "wug"], "meanings": [["red", "round"], ["blue", "flat"]], "examples": []}
    >>> NamedClass().solve(facts | {"asked": ["old", "blue", "flat"]}).answer
    'wug'
    """

    name: str = "text/classes"
    domain: str = "text"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    part: Literal["base", "new"] = "base"
    definitions: bool = True
    examples: int = 0
    uncertain: bool = False
    numeric: bool = False
    thinking: bool = False

    templates: ClassVar[tuple[str, ...]] = (
        "To which class does this belong: {asked}?\n{classes}{examples}",
        "{classes}{examples}\nGive the class of: {asked}",
    )

    def __post_init__(self) -> None:
        super(NamedClass, self).__post_init__()
        if self.part not in _HALVES:
            raise UnknownNameError(f"{self.name}.part", self.part, _HALVES)
        most = len(_HALVES[self.part]) - 1
        if self.levels[-1] > most:
            raise ConfigError(
                f"{self.name}.levels go up to {self.levels[-1]}; a half has {most + 1} classes, for levels up to {most}"
            )
        if self.examples < 0:
            raise ConfigError(f"{self.name}.examples={self.examples}; use a number that is not negative")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Classes of this half, a thing of one of them, and other things as examples."""
        chosen = rng.sample(_HALVES[self.part], level + 1)
        labels = [str(_NAMES.index(name) + 1) if self.numeric else name for name, _ in chosen]
        meanings = [list(meaning) for _, meaning in chosen]
        shown = [rng.randrange(level + 1) for _ in range(self.examples)]
        return {
            "labels": labels,
            "meanings": meanings,
            "examples": [[_thing(meanings[at], rng), labels[at]] for at in shown],
            "asked": _thing(meanings[rng.randrange(level + 1)], rng),
        }

    def solve(self, facts: Facts) -> Solution:
        """The class of which it has both traits."""
        asked = set(facts["asked"])
        (at,) = [i for i, meaning in enumerate(facts["meanings"]) if asked.issuperset(meaning)]
        return Solution(answer=facts["labels"][at], steps=" and ".join(facts["meanings"][at]), effort=len(facts["labels"]))

    def fields(self, facts: Facts) -> dict[str, str]:
        """The thing, its possible classes, and examples."""
        means = [f" ({' and '.join(meaning)})" if self.definitions else "" for meaning in facts["meanings"]]
        named = [label + said for label, said in zip(facts["labels"], means, strict=True)]
        named += [f"{UNSURE} (if you cannot tell)"] if self.uncertain else []
        lines = [f"\n{', '.join(thing)}: {label}" for thing, label in facts["examples"]]
        return {"asked": ", ".join(facts["asked"]), "classes": f"The classes: {', '.join(named)}.", "examples": "".join(lines)}

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question, and whether to think."""
        how = (
            "Think between <think> and </think>, then put the label between <answer> and </answer>."
            if self.thinking
            else "Reply with the label alone."
        )
        return f"{self.word(facts, variant)}\n{how}"

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The label, behind a thought where one is asked for."""
        return f"<think>{solution.steps}</think><answer>{solution.answer}</answer>" if self.thinking else solution.answer

    def verifier(self, form: Form) -> Verifier:
        """CLS-RL's rule, or No-Thinking-CLS-RL's."""
        return Classification(thinking=self.thinking)


def _thing(meaning: list[str], rng: Random) -> list[str]:
    """Both traits of a class among others, in any order."""
    traits = [*meaning, *(rng.choice(values) for values in _OTHERS)]
    rng.shuffle(traits)
    return traits
