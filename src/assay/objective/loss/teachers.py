"""Who teaches an attempt, and whether the teacher's tokens are the student's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError
from assay.objective.reduce import F

__all__ = ["Teachers", "Vocabulary", "check_teacher"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Teachers:
    """Whose opinion an attempt is taught by: one teacher's, or that of the teacher of its domain.

    Attributes:
        names: the teachers; each has a token column ``logp_NAME``. A self-distilled policy's own log-probabilities under a
            privileged context (its rows' ``score_context``) are a column such as ``logp_privileged``.
        by: column of the attempts that holds the name of each one's teacher, empty for none: such attempts are not taught. Left
            out when there is one teacher, who teaches all.
    """

    names: tuple[str, ...] = field(default=("teacher",), kw_only=False)
    by: str = ""

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) < len(self.names):
            raise ConfigError(f"Teachers({self.names}): give names that differ from one another, at least one")
        if len(self.names) > 1 and not self.by:
            raise ConfigError(f"Teachers({self.names}): say with by=... which column of the attempts names the teacher of each")

    @property
    def needs(self) -> tuple[str, ...]:
        """The teachers' columns."""
        return tuple(f"logp_{n}" for n in self.names)

    @property
    def attempts(self) -> tuple[str, ...]:
        """What names an attempt's teacher."""
        return (self.by,) if self.by else ()

    def of(self, batch: Batch) -> tuple[F, NDArray[np.bool_]]:
        """``[N]`` the teacher's log-probability of each token, and whether it has one.

        Raises:
            DataError: an attempt names a teacher that is none of these.
        """
        columns = [np.asarray(batch.token(n), np.float64) for n in self.needs]
        if not self.by:
            return columns[0], np.ones(len(columns[0]), np.bool_)
        named = np.asarray(batch.rollout(self.by)).astype(str)[batch.rows["rollout"]]
        unknown = sorted(set(named.tolist()) - {*self.names, ""})
        if unknown:
            raise DataError(f"an attempt has {self.by}={unknown[0]!r}, which is no teacher; they are {', '.join(self.names)}")
        who = np.repeat(named, batch.lengths)
        logp = np.select([who == n for n in self.names], columns, 0.0)
        return logp, who != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What must agree before a teacher's number for a token means that token.

    Attributes:
        size: ids that the tokenizer knows.
        digest: of its table from text to id; None where it cannot be told.
    """

    size: int
    digest: str | None = None


def check_teacher(student: Vocabulary, teacher: Vocabulary, name: str = "teacher") -> None:
    """Refuses a teacher whose tokens are not the student's, where that can be known.

    Raises:
        ConfigError: their tokenizers differ.

    >>> check_teacher(Vocabulary(size=64, digest="ab"), Vocabulary(size=64, digest="ab"))
    >>> check_teacher(Vocabulary(size=64), Vocabulary(size=80))
    Traceback (most recent call last):
    assay.core.errors.ConfigError: the tokenizer of 'teacher' knows 80 ids, the student's 64: log-probabilities of the ...
    """
    if student.size != teacher.size:
        found = f"knows {teacher.size} ids, the student's {student.size}"
    elif student.digest and teacher.digest and student.digest != teacher.digest:
        found = f"has the digest {teacher.digest}, the student's {student.digest}"
    else:
        return
    raise ConfigError(
        f"the tokenizer of {name!r} {found}: log-probabilities of the same ids would be of other texts; use a teacher of the "
        "same family, or align the texts first and bring the result as a column"
    )
