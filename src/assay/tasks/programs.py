"""A program with a generator of its inputs becomes a family of tasks: SCALER's environments (arXiv 2601.04809)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.core.seeds import derive
from assay.core.util.renamed import refuse_renamed
from assay.sandbox import Limits, Sandbox, SandboxProgram
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.exact import ExactMatch

__all__ = ["Foreign", "ProgramTask", "Scaled", "make_program_family"]

Run = Callable[[str], str]
"""A program: input text to output text."""

Generate = Callable[[int, int], str]
"""A generator: scale and seed to input text. The same for the same two."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A Python program that nobody here wrote, run in the sandbox: it reads its input and prints its output.

    As a reference it is called with an input. As a generator it is called with scale and seed, which it reads in one line.

    Attributes:
        code: its source.
        wall: seconds that one run may take.
        backend: of the sandbox; ``auto`` takes the strongest level that this machine proves.

    Raises:
        DataError: a run fails or takes too long; names status, input and error.
        SandboxError: nothing here contains a program.
    """

    code: str
    wall: float = 5.0
    backend: str = "auto"

    def __call__(self, *given: object) -> str:
        """The output for an input, or for scale and seed."""
        text = " ".join(map(str, given))
        result = _sandbox(self.backend).run(SandboxProgram(code=self.code, stdin=text), Limits(wall=self.wall))
        if result.status != "ok":
            last = result.stderr.strip().rpartition("\n")[2]
            raise DataError(f"the program {self.code[:40]!r} ended as {result.status} on the input {text[:80]!r}: {last[:200]}")
        return result.stdout


@lru_cache(maxsize=4)
def _sandbox(backend: str) -> Sandbox:
    return Sandbox(backend, workers=1)  # its processes end with this one


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTask(Problem):
    """What a program prints for an input. The level is the scale of the input.

    Attributes:
        statement: what the program computes, and how input and output are written.
        references: programs that compute it; the first gives the answers. Functions of a module, or `Foreign`.
        generator: makes an input from scale and seed.

    Raises:
        ConfigError: no statement, no program or no generator.
        DataError: a program or the generator fails on what is drawn.
    """

    domain: str = "code"
    levels: tuple[int, ...] = (1,)
    statement: str = ""
    references: tuple[Run, ...] = ()
    generator: Generate | None = None

    templates: ClassVar[tuple[str, ...]] = (
        "{statement}\n\nInput:\n{input}\n\nWhat is the output?",
        "{statement}\n\nFind the output for this input:\n\n{input}",
        "A program solves this problem:\n\n{statement}\n\nWhat does it print when it reads the following?\n\n{input}",
    )

    def __init_subclass__(cls) -> None:
        super(ProgramTask, cls).__init_subclass__()
        refuse_renamed(cls, {"made": "make_input", "printed": "run_reference"})

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if not self.statement.strip() or not self.references or self.generator is None:
            raise ConfigError(f"{self.name}: give a statement, one or more references and a generator of inputs")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """An input of this scale."""
        return {"scale": level, "input": self.make_input(level, rng.getrandbits(62))}

    def solve(self, facts: Facts) -> Solution:
        """What the first reference prints."""
        return Solution(answer=self.run_reference(0, facts["input"]), effort=facts["scale"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Statement and input."""
        return {"statement": self.statement.strip(), "input": facts["input"]}

    def verifier(self, form: Form) -> Verifier:
        """The output, white space around it forgiven."""
        return ExactMatch(strip=True, where=form.place)

    def make_input(self, scale: int, seed: int) -> str:
        """An input, without white space at its ends.

        Raises:
            DataError: the generator fails, or gives no text.
        """
        return self._text(f"generator at scale {scale}, seed {seed}", lambda: (self.generator or str)(scale, seed))  # pyright: ignore[reportCallIssue, reportArgumentType]

    def run_reference(self, reference: int, given: str) -> str:
        """What a reference prints, without white space at the ends of lines.

        Raises:
            DataError: it fails, or gives no text.
        """
        text = self._text(f"reference {reference} on the input {given[:80]!r}", lambda: self.references[reference](given))
        return "\n".join(line.rstrip() for line in text.splitlines())

    def _text(self, place: str, run: Callable[[], str]) -> str:
        try:
            out: Any = run()
        except DataError as error:
            raise DataError(f"{self.name}: {place}: {error}") from None
        except Exception as error:  # a user's function raises what it likes
            raise DataError(f"{self.name}: {place}: {type(error).__name__}: {error}") from error
        if not isinstance(out, str):
            raise DataError(f"{self.name}: {place} gave {type(out).__name__}, not text; return str(...)")
        return out.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A program that was found fit to be a family.

    Attributes:
        task: with a level for each scale that was chosen.
        largest: scale up to which everything fits.
        refused: scales that were tried and are too large, ascending, each with the reason.
    """

    task: ProgramTask
    largest: int
    refused: tuple[tuple[int, str], ...] = ()

    @property
    def family(self) -> Problems:
        """A family with this one problem."""
        return Problems(name=self.task.name.partition("/")[0], problems=(self.task,))


def make_program_family(
    name: str,
    statement: str,
    references: Sequence[Run],
    generator: Generate,
    *,
    domain: str = "code",
    most_scale: int = 1000,
    most_characters: int = 2000,
    most_seconds: float = 2.0,
    same: float = 0.6,
    samples: int = 12,
    steps: int = 8,
) -> Scaled:
    """A family from programs and a generator of their inputs, if they are fit for it.

    Breadth: all references agree, over all scales that are tried. Depth: at one scale outputs differ. The largest scale is
    found by doubling and halving, so that question and answer stay within ``most_characters`` and a run within ``most_seconds``.

    Args:
        name: of the arm, ``family/problem``.
        statement: the problem in words.
        references: programs that solve it; with one alone, breadth says only that it gives the same twice.
        generator: makes an input from scale and seed.
        domain: of the tasks.
        most_scale: no scale beyond is tried, at most 1000.
        most_characters: of statement, input and output together.
        most_seconds: of one run of one reference.
        same: share of inputs at one scale that may have one output.
        samples: inputs at each scale that is tried.
        steps: levels that are offered, spread from scale 1 to the largest, closer at the small end.

    Raises:
        ConfigError: a setting out of range.
        DataError: scale 1 does not fit, references disagree, or outputs do not vary; says the input, or the output.

    >>> from random import Random
    >>> def double(text: str) -> str:
    ...     return str(2 * int(text))
    >>> def number(scale: int, seed: int) -> str:
    ...     return str(Random(seed).randrange(10 ** scale))
    >>> found = make_program_family("toy/double", "Print twice the number.", [double], number, most_characters=60)
    >>> found.largest, found.task.levels
    (18, (1, 2, 3, 5, 8, 12, 18))
    """
    if not 1 <= most_scale <= 1000 or samples < 4 or steps < 1 or not 0.0 < same < 1.0 or most_characters < 1:
        raise ConfigError(
            f"{name}: most_scale must be 1 to 1000, samples 4 or more, steps and characters 1 or more, same between 0 and 1; got "
            f"{most_scale}, {samples}, {steps}, {same}, {most_characters}"
        )
    task = ProgramTask(name=name, domain=domain, statement=statement, references=tuple(references), generator=generator)
    search = _Search(task, samples, most_characters, most_seconds)
    if reason := search.misfit(1):
        raise DataError(f"{name}: even scale 1 does not fit: {reason}")
    largest = _largest(search, most_scale)
    levels = sorted({round(largest ** (i / max(1, steps - 1))) for i in range(steps)} | {1, largest})
    for level in levels:
        if reason := search.misfit(level):
            raise DataError(
                f"{name}: scale {level} does not fit, though {largest} does: {reason}; sizes must grow with the scale"
            )
        search.varies(level, same)
    kept = ProgramTask(
        name=name, domain=domain, statement=statement, references=task.references, generator=generator, levels=tuple(levels)
    )
    return Scaled(task=kept, largest=largest, refused=tuple(sorted(search.refused.items())))


def _largest(search: _Search, most: int) -> int:
    """The largest scale that fits, where all below fit too."""
    low, high = 1, 2
    while high <= most and not search.misfit(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if search.misfit(middle) else (middle, high)
    return low


@dataclass(slots=True)
class _Search:
    """Scales that were tried, each once."""

    task: ProgramTask
    samples: int
    characters: int
    seconds: float
    outputs: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    refused: dict[int, str] = field(default_factory=dict[int, str])

    def misfit(self, scale: int) -> str:
        """Why a scale is too large; "" where it fits.

        Raises:
            DataError: references disagree.
        """
        if scale not in self.outputs and scale not in self.refused:
            outputs: list[str] = []
            for i in range(self.samples):
                given = self.task.make_input(scale, derive("scaled", i, self.task.name, str(scale)) >> 2)
                if reason := self._run(given, outputs):
                    self.refused[scale] = reason
                    break
            else:
                self.outputs[scale] = outputs
        return self.refused.get(scale, "")

    def _run(self, given: str, outputs: list[str]) -> str:
        for number in range(max(2, len(self.task.references))):  # one alone is run twice
            began = time.perf_counter()
            said = self.task.run_reference(number % len(self.task.references), given)
            took = time.perf_counter() - began
            if took > self.seconds:
                return f"reference {number} took {took:.2f} s, {self.seconds} are allowed"
            size = len(self.task.statement) + len(given) + len(said)
            if size > self.characters:
                return f"question and answer have {size} characters, {self.characters} are allowed"
            if not number:
                outputs.append(said)
            elif said != outputs[-1]:
                other = number % len(self.task.references)
                raise DataError(
                    f"{self.task.name}: reference 0 gives {outputs[-1][:80]!r} and reference {other} gives {said[:80]!r} on the "
                    f"input {given[:80]!r}; remove the wrong one, or make the answer unique"
                )
        return ""

    def varies(self, scale: int, same: float) -> None:
        """Refuse a scale at which one output is too frequent.

        Raises:
            DataError: as it says.
        """
        output, times = Counter(self.outputs[scale]).most_common(1)[0]
        if times > same * self.samples:
            raise DataError(
                f"{self.task.name}: {times} of {self.samples} inputs at scale {scale} have the output {output[:80]!r}; "
                "a constant answer would be right: let the generator vary more"
            )
