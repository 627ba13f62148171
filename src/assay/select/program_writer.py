"""A model writes the programs that make a family of tasks from a problem: SCALER's environments (arXiv 2601.04809)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError, DataError
from assay.core.fields import check_positive
from assay.core.task import Message
from assay.tasks.programs import Foreign, Run, Scaled, make_program_family

if TYPE_CHECKING:
    from assay.clients.openai_client import OpenAIClient

__all__ = ["ProgramWriter", "WrittenFamily"]

UNIQUE = """{statement}

Does every valid input of this problem have exactly one right output, and which quantities of the input say how large it is?
Answer in two lines and nothing else:
UNIQUE: yes or no
SCALE: the quantities"""

GENERATOR = """{statement}

Write a Python program that makes random valid inputs for this problem. It reads one line with two whole numbers, the scale, from
1, and a seed, and prints one input in the format of the problem. The same scale and seed give the same input. These quantities
grow with the scale: {scale}. Answers must differ from seed to seed at every scale.{refused}
Answer with one block of code, ```python ... ```."""

REFERENCE = """{statement}

Write a Python program that solves this problem: it reads an input and prints the output, for inputs of any size, exactly.
Answer with one block of code, ```python ... ```."""


@dataclass(frozen=True, slots=True)
class WrittenFamily:
    """What came of a problem.

    Attributes:
        scaled: the family, with the largest scale that fits.
        scale: what grows with the scale, in the model's words.
        refused: why each attempt before was refused, in order.
    """

    scaled: Scaled
    scale: str
    refused: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProgramWriter:
    """Asks a model for a generator of inputs and for solutions of a problem, and keeps what passes `make_program_family`.

    First the model says whether outputs are unique, which an environment needs, and what of an input grows with its scale. Then
    it writes a generator and, where the problem brings none, ``references`` solutions, each without seeing the others: they must
    agree on all inputs (breadth), and outputs must vary (depth). What is refused is written again, with the reason, ``tries``
    times in all. All programs run in the sandbox.

    Source: SCALER (arXiv 2601.04809). UNSURE: the wording of its questions.

    Attributes:
        client: of the server that is asked.
        references: solutions that are asked for, two at least, or one alone would agree with itself.
        tries: generators that are asked for at most.
        temperature: of the answers.
        max_tokens: of an answer.
        wall: seconds that one run of a program may take.
        backend: of the sandbox, as `Foreign` has it.

    Raises:
        ConfigError: a number out of range.
    """

    client: OpenAIClient
    references: int = 3
    tries: int = 3
    temperature: float = 0.7
    max_tokens: int = 4096
    wall: float = 5.0
    backend: str = "auto"

    def __post_init__(self) -> None:
        check_positive(self, "tries", "max_tokens")
        if self.references < 2 or not self.wall > 0 or not self.temperature >= 0:
            raise ConfigError(
                f"ProgramWriter.references={self.references} must be at least 2, .wall={self.wall} above 0, .temperature="
                f"{self.temperature} at least 0"
            )

    async def write(self, name: str, statement: str, references: Sequence[Run] = (), **settings: Any) -> WrittenFamily:
        """A family from a problem in words.

        Args:
            name: of the arm, ``family/problem``.
            statement: the problem, and how input and output are written.
            references: solutions that it brings, such as those of a data set; the model writes none then.
            settings: of `make_program_family`.

        Raises:
            DataError: outputs are not unique, an answer has another form than was asked for, or all attempts were refused; says
                why.
            ConfigError: a setting out of range; or the server refuses to be asked.
            EngineError: the server gave no answer in time.
        """
        scale = await self._scale(name, statement)
        refused: list[str] = []
        for _ in range(self.tries):
            try:
                generator = await self._program(GENERATOR, statement, scale, refused)
                solutions = references or [await self._program(REFERENCE, statement) for _ in range(self.references)]
                found = await asyncio.to_thread(make_program_family, name, statement, solutions, generator, **settings)
            except DataError as error:
                refused.append(str(error))
                continue
            return WrittenFamily(found, scale, tuple(refused))
        raise DataError(f"{name}: none of {self.tries} attempts of {self.client.model} is fit: {'; '.join(refused)}")

    async def _scale(self, name: str, statement: str) -> str:
        """What grows with the scale."""
        said = await self._ask(UNIQUE.format(statement=statement))
        unique, scale = (re.search(rf"^{word}:(.*)$", said, re.MULTILINE) for word in ("UNIQUE", "SCALE"))
        if unique is None or scale is None or not scale[1].strip():
            raise DataError(f"{name}: asked for two lines, UNIQUE and SCALE, {self.client.model} said {said[:80]!r}")
        if unique[1].strip().lower().rstrip(".") != "yes":
            raise DataError(
                f"{name}: by {self.client.model} an input may have several right outputs; no program could judge them"
            )
        return scale[1].strip()

    async def _program(self, question: str, statement: str, scale: str = "", refused: Sequence[str] = ()) -> Foreign:
        """The last block of code of an answer."""
        why = f"\nAn earlier program was refused: {refused[-1]}" if refused else ""
        said = await self._ask(question.format(statement=statement, scale=scale, refused=why))
        blocks = re.findall(r"```(?:python)?[ \t]*\n(.*?)```", said, re.DOTALL)
        if not blocks:
            raise DataError(f"{self.client.model} answered without a block of code: {said[:80]!r}")
        return Foreign(blocks[-1], wall=self.wall, backend=self.backend)

    async def _ask(self, question: str) -> str:
        (answer,) = await self.client.chat(
            [Message("user", question)], 1, temperature=self.temperature, max_tokens=self.max_tokens
        )
        return answer.text
