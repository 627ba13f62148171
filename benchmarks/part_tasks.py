"""Small bases for `benchmarks.parts`: families of assay's in fewer letters, so that a third of a million weights can read them.

Facts, solutions and verifiers are the families' own; only the wording is shorter, and answers stand alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from assay.core import Sampling
from assay.runtime import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.tasks import BoxProblem, Facts, Form, Problems, ProgramTask, Solution, make_program_family
from assay.train import Built, Evaluation, Run, Scratch, WarmUp
from assay_tasks import Expression, Planted, load_puzzle

__all__ = ["BOX", "FARM", "FORMULAS", "PROGRAMS", "SUMS", "base_of", "slow"]

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortExpression(Expression):
    """An expression of RandomCalculation with nothing around it: ``7×3-5=``."""

    most: int = 9
    levels: tuple[int, ...] = (1, 2)
    templates: ClassVar[tuple[str, ...]] = ("{expression}=",)


def _farm() -> Problems:
    spec = load_puzzle(ROOT / "docs" / "add" / "puzzles" / "farm.toml")
    short = replace(
        spec,
        texts=("{heads} heads {legs} legs: hens?",),
        levels=(1, 2),
        by_level={"1": {}, "2": {"h": [2, 19], "c": [2, 19]}},
    )
    return Problems(name="farm", problems=(short,), form=Form.PLAIN)


SUMS = Problems(name="arithmetic", problems=(ShortExpression(),), form=Form.PLAIN)
FARM = _farm()


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedPart(BoxProblem):
    """Digits to be sorted, as many as ``length`` says, of the ``digits`` smallest ones: ``412>``."""

    templates: ClassVar[tuple[str, ...]] = ("{given}>",)

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The digits, and nothing around them."""
        return self.word(facts, variant)

    def draw_at(self, point: Mapping[str, int], rng: Random) -> dict[str, Any]:
        """Digits of the point."""
        return {"given": "".join(str(rng.randrange(point["digits"])) for _ in range(point["length"]))}

    def solve(self, facts: Facts) -> Solution:
        """In order."""
        return Solution(answer="".join(sorted(facts["given"])))


BOX = Problems(
    name="box",
    problems=(SortedPart(name="box/sort", domain="strings", axes={"length": (3, 4, 5, 6, 7, 8), "digits": (3, 4, 6, 8, 10)}),),
    form=Form.PLAIN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortProgram(ProgramTask):
    """A program's output with nothing around: the letter of the program, its input, and ``>``."""

    templates: ClassVar[tuple[str, ...]] = ("{statement}{input}>",)

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """Letter and input."""
        return self.word(facts, variant)


def _digits(scale: int, seed: int) -> str:
    rng = Random(seed)
    return "".join(str(rng.randrange(10)) for _ in range(scale + 2))


def _program(name: str, letter: str, run: Callable[[str], str]) -> ShortProgram:
    found = make_program_family(f"programs/{name}", letter, [run], _digits, most_scale=6, steps=12, most_characters=40).task
    return ShortProgram(**{field.name: getattr(found, field.name) for field in fields(found)})


PROGRAMS = Problems(
    name="programs",
    problems=(
        _program("distinct", "D", lambda text: "".join(dict.fromkeys(text))),
        _program("reverse", "R", lambda text: text[::-1]),
        _program("rising", "A", lambda text: "".join(sorted(text))),
        _program("turns", "T", lambda text: "".join(a for a, b in itertools.pairwise(text) if a < b)),
    ),
    form=Form.PLAIN,
)
"""SCALER's kind of environments: digits made distinct, reversed, sorted, and those that stand before a larger one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortFormula(Planted):
    """A formula of SATURN's, a capital for a negated variable, answered by numbers: ``abE,Bcd>`` and ``1 -2 3``."""

    @property
    def variants(self) -> int:
        """One."""
        return 1

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The clauses, and nothing around them."""
        letters = [chr(96 + x) if x > 0 else chr(64 - x) for x in facts["clauses"]]
        width = facts["width"]
        return ",".join("".join(letters[i : i + width]) for i in range(0, len(letters), width)) + ">"

    def solve(self, facts: Facts) -> Solution:
        """A satisfying assignment as the numbers of its literals."""
        said = super(ShortFormula, self).solve(facts)
        pairs = [part.split("=") for part in said.answer.split(", ")]
        literals = [str(i if value == "true" else -i) for i, (_, value) in enumerate(pairs, 1)]
        return replace(said, answer=" ".join(literals))


FORMULAS = Problems(
    name="formulas",
    problems=(ShortFormula(name="formulas/planted", levels=(1, 2, 3, 4), stages=((3, 5, 5), (3, 5, 6), (3, 5, 13), (3, 5, 15))),),
    form=Form.PLAIN,
)
"""SATURN's stages, from its easiest for 1.5B parameters to its hardest for 7B."""


def base_of(tasks: Problems, seed: int, *, levels: tuple[int, ...], steps: int, new: int) -> Built:
    """0.34M fresh weights, shown some levels of a family for so many steps of 64 traces, a slip in one of ten."""
    shown = WarmUp(
        steps=steps,
        batch=64,
        demonstrations=0,
        noise=0.1,
        levels=levels,
        learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
    )
    return Built(
        run=Run(
            name=f"base-{tasks.name}",
            seed=seed,
            model=Scratch(shape=DecoderShape(), seed=seed, alphabet="".join(map(chr, range(32, 127))) + "×÷\n"),
            tasks=tasks,
            stages=(shown,),
            sampling=Sampling(max_new_tokens=new),
            evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
            checkpoint_every=1000,
        )
    )


def slow(rate: float) -> LearnerSettings:
    """AdamW at a rate that falls to a tenth over the second half."""
    return LearnerSettings(optimizer=AdamW(lr=rate), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1))
