"""What verifiers of programs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.core.util.renamed import refuse_renamed
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, Status
from assay.sandbox.sandbox import Sandbox
from assay.sandbox.toolchain import Language, language
from assay.verify.answer_verifier import option, verdict_score
from assay.verify.code.cases import ProgramCase, run_cases
from assay.verify.code.program import ProgramPlace, program_in
from assay.verify.code.workers import sandbox_of
from assay.verify.workers.cpu import cores

__all__ = ["CaseVerifier", "ProgramVerifier"]

_NONE: frozenset[str] = frozenset()
_SLOW = frozenset({str(Status.TIMEOUT), str(Status.CPU)})
_ALWAYS = frozenset({"syntax", str(Status.INFRA)})
_ENDED = frozenset({"passed", "wrong"})
_WHY = 200
_LIMITS = Limits(cpu=2.0, wall=4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramVerifier(ABC):
    """Base of verifiers that run what a model wrote.

    A rollout that was cut off (stop other than ``done``) is no program: all components are 0, the verdict is ``unfinished``.
    Not ``trusted``: a pool judges in a process of its own, whose deadline must leave time for `limits` (docs/packages/code.md).

    Attributes:
        where: in which part of the text the program stands (`ProgramPlace`).
        limits: of each run.
        backend: how programs are contained (`assay.sandbox.Sandbox`).
        workers: how many runs of one answer go side by side.
        allow_unsafe: accept a level of the sandbox that contains nothing; ``info["isolation"]`` of every score says so.

    Raises:
        ConfigError: no workers; when judging, that nothing on this machine contains programs.
        UnknownNameError: ``where`` is no place.
    """

    trusted: ClassVar[bool] = False
    where: ProgramPlace = ProgramPlace.AUTO
    limits: Limits = _LIMITS
    backend: str = "auto"
    workers: int = 2
    allow_unsafe: bool = False

    def __post_init__(self) -> None:
        option(ProgramPlace, self.where, f"{type(self).__name__}.where")
        if self.workers < 1:
            raise ConfigError(f"{type(self).__name__}.workers={self.workers}; use at least 1")
        self.check()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        ...

    @abstractmethod
    def rule(self, gold: Gold, source: str) -> Score:
        """The verdict on a program.

        Raises:
            DataError: the gold is not of the form that this verifier needs. Never because of the program.
        """
        ...

    def check(self) -> None:  # noqa: B027 -- most subclasses have nothing to refuse
        """Refuses settings of a subclass that are out of range; it is called when a verifier is made.

        Raises:
            ConfigError: one is.
        """

    def prepare(self) -> None:
        """Finds out how programs are contained here, so that no worker of a pool has to."""
        self.sandbox()

    def for_workers(self, answers: int) -> Self:
        """The same verifier where so many answers are judged side by side: the runs of one share the cores with the others'.

        Args:
            answers: how many, this one included.
        """
        return replace(self, workers=max(1, min(self.workers, cores() // answers)))

    def __init_subclass__(cls) -> None:
        super(ProgramVerifier, cls).__init_subclass__()
        refuse_renamed(cls, {"found": "extract_program", "written_in": "program_language", "beside": "for_workers"})

    def program_language(self) -> Language:
        """The language of the programs that it judges."""
        return language("python")

    @property
    def fences(self) -> Sequence[str]:
        """What fenced blocks of its language are tagged with."""
        return self.program_language().names

    def extract_program(self, text: str) -> str | None:
        """The part of a text that is judged; None where it has none."""
        return program_in(text, self.where, self.fences)

    def sandbox(self) -> Sandbox:
        """The sandbox of this process; its workers are started when a program needs one."""
        return sandbox_of(self.backend, self.workers, allow_unsafe=self.allow_unsafe, language=self.program_language())

    def isolation(self) -> dict[str, Any]:
        """What contains the programs, as plain values for a run's record."""
        return self.sandbox().manifest()

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            DataError: the task lacks what the verifier needs, or has it in a wrong form; names the task.
        """
        source = self.extract_program(rollout.text) if rollout.stop is Stop.DONE else None
        if source is None:
            return self.nothing("unparsed" if rollout.stop is Stop.DONE else "unfinished", isolation=self.sandbox().tag)
        try:
            return self.rule(Gold(task.private), source)
        except DataError as error:
            raise DataError(f"task {task.id!r}: {error}") from None

    def nothing(self, verdict: str, **info: object) -> Score:
        """A verdict with all components 0."""
        return verdict_score(verdict, dict.fromkeys(self.names, 0.0), **info)


@dataclass(frozen=True, slots=True)
class Gold:
    """What a task holds to judge by: fields of ``private``, or of the table ``private["answer"]`` where it is one.

    Attributes:
        private: of the task.
    """

    private: Mapping[str, Any]

    def find(self, name: str) -> Any:
        """A field as plain JSON data; None where there is none."""
        answer = self.private.get("answer")
        found = self.private.get(name)
        if found is None and isinstance(answer, Mapping):
            found = cast("Mapping[str, Any]", answer).get(name)
        return plain(found)

    def items(self, name: str) -> list[Any]:
        """A field that is a list and not empty.

        Raises:
            DataError: it is none.
        """
        found = self.find(name)
        if not isinstance(found, list) or not found:
            raise DataError(f"private[{name!r}] is {short(found)}; give a list with at least one item")
        return cast("list[Any]", found)

    def text(self, name: str) -> str:
        """A field that is a text and not empty.

        Raises:
            DataError: it is none.
        """
        found = self.find(name)
        if not isinstance(found, str) or not found:
            raise DataError(f"private[{name!r}] is {short(found)}; give a text")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerifier(ProgramVerifier):
    """Base of verifiers that run a program on the cases of ``private["tests"]``, each in a process of its own.

    ``correct`` is 1 when all pass; ``fraction`` is the share of those that pass; ``ran`` is 1 when the program ended by itself,
    without an error, on every case that was run. A case on which it exceeded a limit scores 0 and is no fault: the program hung,
    not its judge. Where the sandbox itself fails, there is an ``infra`` fault and no score.

    ``info["cases"]`` has a word for each: ``passed``, ``wrong``, ``error``, ``syntax``, the limit that was exceeded (``timeout``,
    ``cpu``, ``memory``, ``output``, ``disk``, ``processes``), ``blocked``, or ``skipped`` for one that was not run.
    ``info["verdict"]`` is ``passed``, or the word of the first that did not.

    Attributes:
        stop_at_first_failure: cases behind the first that fails are not run.
        stop_at_first_timeout: cases behind the first that takes too long (``timeout``, ``cpu``) are not run.
    """

    stop_at_first_failure: bool = False
    stop_at_first_timeout: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction", "ran")

    @abstractmethod
    def cases(self, gold: Gold) -> Sequence[ProgramCase]:
        """The cases of a task.

        Raises:
            DataError: they are not of the form that this verifier needs.
        """
        ...

    def rule(self, gold: Gold, source: str) -> Score:
        """Run the cases."""
        return self.judge(self.cases(gold), source)

    def judge(self, cases: Sequence[ProgramCase], source: str) -> Score:
        """The verdict on a program by what it does on the cases."""
        words, results = run_cases(self.sandbox(), cases, source, self.limits, self._ending())
        if str(Status.INFRA) in words:
            return lost_run(results[-1])
        passed = words.count("passed")
        words += ["skipped"] * (len(cases) - len(words))
        first = next((i for i, word in enumerate(words) if word != "passed"), None)
        why = "" if first is None else reason(results[first])
        components = {
            "correct": float(passed == len(cases)),
            "fraction": passed / len(cases),
            "ran": float(all(word in _ENDED for word in words if word != "skipped")),
        }
        return verdict_score(
            "passed" if first is None else words[first],
            components,
            cases=tuple(words),
            isolation=results[0].isolation,
            **({"why": why} if why else {}),
        )

    def _ending(self) -> frozenset[str]:
        if self.stop_at_first_failure:
            return _ALWAYS | {str(status) for status in Status if status is not Status.OK} | {"wrong"}
        return _ALWAYS | (_SLOW if self.stop_at_first_timeout else _NONE)


def lost_run(result: Result) -> Score:
    """The fault of a run that the sandbox failed to make."""
    info = {"verdict": "infra", "error": f"the sandbox failed: {result.detail}", "isolation": result.isolation}
    return Score(components={}, fault=Fault.INFRA, info=FrozenMap(info))


def reason(result: Result) -> str:
    """The last line of what a program said of its failure; empty where it said nothing."""
    return (result.stderr.rstrip().rpartition("\n")[2] or result.detail)[:_WHY]


def refusal(result: Result) -> str:
    """What a compiler said first of a source that it refused."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else f"the compiler: {result.detail}")[
        :_WHY
    ]


def short(value: Any) -> str:
    """A value of a task for an error's message."""
    return "missing" if value is None else repr(value)[:100]
