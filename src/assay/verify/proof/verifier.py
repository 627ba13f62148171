"""Formal proofs, judged by a checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from assay.core.canon import FrozenMap, plain
from assay.core.errors import DataError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.answer_verifier import option, verdict_score
from assay.verify.code.program import ProgramPlace, program_in
from assay.verify.proof.checker import ProofCheck, ProofChecker
from assay.verify.proof.metamath import Metamath

__all__ = ["Proof"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    r"""A formal proof of the statement that the task asks for, judged by a proof checker.

    The gold is a table in the checker's form (`Metamath`, `Coq`). Components: ``legal``: the answer takes no way around proving
    what was asked: no axiom of its own, no other statement, no change of the language or the checker; ``complete``: it has no
    gaps; ``correct``: it is a legal and complete proof, every step of which follows. ``info["verdict"]`` is as `ProofCheck` says.
    How many steps of a wrong proof are right is no component: whoever repeats right ones would raise it.

    A rollout that was cut off (stop other than ``done``) is no proof (``unfinished``).

    Attributes:
        checker: who decides.
        where: in which part of the text the proof stands (`assay.verify.code.ProgramPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: when judging: the gold is not of the checker's form; names the task.

    >>> from assay.verify import task_and_rollout
    >>> database = "$c wff |- $. $v p $. wp $f wff p $. ${ min $e |- p $. same $a |- p $. $}"
    >>> gold = {"database": database, "label": "again", "statement": "|- p", "hypotheses": {"h": "|- p"}}
    >>> [Proof()(*task_and_rollout(gold, text)).info["verdict"] for text in ("wp h same", "wp ?", "wp h", "again")]
    ['proved', 'incomplete', 'wrong', 'wrong']
    """

    trusted: ClassVar[bool] = False
    checker: ProofChecker = field(default_factory=Metamath)
    where: ProgramPlace = ProgramPlace.AUTO

    def __post_init__(self) -> None:
        option(ProgramPlace, self.where, "Proof.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "legal", "complete")

    def prepare(self) -> None:
        """Lets the checker find what it needs, so that no worker of a pool has to."""
        getattr(self.checker, "prepare", lambda: None)()

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout.

        Raises:
            DataError: the gold is not of the checker's form; names the task.
        """
        asked = plain(task.private.get("answer"))
        if not isinstance(asked, dict):
            raise DataError(f"task {task.id!r}: private['answer'] is {asked!r:.100}; give a table with the statement to prove")
        proof = program_in(rollout.text, self.where, self.checker.fences) if rollout.stop is Stop.DONE else None
        if proof is None:
            return self._rule(ProofCheck("unparsed"), "unparsed" if rollout.stop is Stop.DONE else "unfinished")
        try:
            found = self.checker.check(cast("Mapping[str, Any]", asked), proof)
        except DataError as error:
            raise DataError(f"task {task.id!r}: {error}") from None
        if found.verdict == "infra":
            return Score(components={}, fault=Fault.INFRA, info=FrozenMap({"verdict": "infra", **found.info}))
        return self._rule(found, found.verdict)

    def _rule(self, found: ProofCheck, word: str) -> Score:
        parts = {"correct": found.verdict == "proved", "legal": found.legal, "complete": found.complete}
        return verdict_score(word, {name: float(parts[name]) for name in self.names}, **found.info)
