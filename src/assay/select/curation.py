"""Steps of curation bound to verifiers: `assay.curate` names what it needs, this gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.task import Task
from assay.curate import Case
from assay.verify import ScoringPool, rollout_of

__all__ = ["VerifierGrader"]


@dataclass(frozen=True, kw_only=True)
class VerifierGrader:
    """A verifier as the grader of a step: in processes that can be killed, unless it is a trusted one of assay's.

    The verifier sees the question, the gold as ``private["answer"]``, and beside it the row's own fields. An answer that hangs
    or kills it twice is worth 0; one on which it fails otherwise has no verdict. Close it, or use it as a context manager.

    Attributes:
        verifier: what judges.
        deadline: seconds for one verdict.
        workers: answers judged at once at most.

    Raises:
        ConfigError: a deadline that is not positive, or no workers.

    >>> from assay.curate import Case
    >>> from assay.verify import ExactMatch
    >>> with VerifierGrader(verifier=ExactMatch()) as grader:
    ...     grader([Case("2+2?", "4", "4", {}), Case("2+2?", "4", "5", {})])
    [1.0, 0.0]
    """

    verifier: Verifier
    deadline: float = 5.0
    workers: int = 8
    _pools: list[ScoringPool] = field(default_factory=list[ScoringPool], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.deadline > 0 or self.workers < 1:
            said = f"deadline={self.deadline}, workers={self.workers}"
            raise ConfigError(f"VerifierGrader: {said}; use more than 0 seconds, and 1 worker or more")

    def __call__(self, cases: Sequence[Case]) -> list[float | str]:
        """A value for each case; where there is no verdict, the verifier's error."""
        self._open()
        tasks = [_task(case, i) for i, case in enumerate(cases)]
        tried = [(task, rollout_of(task, case.answer, id=task.id)) for task, case in zip(tasks, cases, strict=True)]
        scores = self._pools[0].score(tried)
        found = [scores[str(i)] for i in range(len(cases))]
        return [score.primary if score.valid else str(score.info.get("error", "no verdict")) for score in found]

    def close(self) -> None:
        """Ends the processes."""
        while self._pools:
            self._pools.pop().close()

    def _open(self) -> None:
        if not self._pools:
            self._pools.append(ScoringPool(self.verifier, self.deadline, workers=self.workers, refuse=False))

    def __enter__(self) -> VerifierGrader:
        self._open()  # it forks, and that is best before any library has threads
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _task(case: Case, index: int) -> Task:
    return Task(
        id=str(index),
        domain="curate",
        arm="curate",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": case.question}),
        private=FrozenMap({**case.row, "answer": case.gold, "row": dict(case.row)}),
    )
