"""Who teaches a rollout."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError
from assay.core.plan import Forward
from assay.objective.reducers import F

__all__ = ["Teachers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Teachers:
    """Whose opinion a rollout is taught by: one teacher's, or that of the teacher of its domain.

    Attributes:
        names: the teachers; each has a token column ``logp_NAME``, which the learner's model of that name fills unless rows or
            sampler bring it. A policy that teaches itself is such a model too, one that reads privileged prompts.
        by: column of the rollouts that holds the name of each one's teacher, empty for none: such rollouts are not taught.
            ``domain`` and ``arm`` are their tasks'. Left out when there is one teacher, who teaches all.
    """

    names: tuple[str, ...] = field(default=("teacher",), kw_only=False)
    by: str = ""

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) < len(self.names):
            raise ConfigError(f"Teachers({self.names}): give names that differ from one another, at least one")
        if len(self.names) > 1 and not self.by:
            raise ConfigError(f"Teachers({self.names}): say with by=... which column of the rollouts names the teacher of each")

    @property
    def needs(self) -> tuple[str, ...]:
        """The teachers' columns."""
        return tuple(f"logp_{n}" for n in self.names)

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """Passes of the teachers."""
        return tuple(Forward(f"logp_{n}", n) for n in self.names)

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What names a rollout's teacher."""
        return (self.by,) if self.by else ()

    def of(self, batch: Batch) -> tuple[F, NDArray[np.bool_]]:
        """``[N]`` the teacher's log-probability of each token, and whether it has one.

        Raises:
            DataError: a rollout names a teacher that is none of these.
        """
        columns = [np.asarray(batch.token(n), np.float64) for n in self.needs]
        if not self.by:
            return columns[0], np.ones(len(columns[0]), np.bool_)
        named = np.asarray(batch.rollout(self.by)).astype(str)[batch.rows["rollout"]]
        unknown = sorted(set(named.tolist()) - {*self.names, ""})
        if unknown:
            raise DataError(f"a rollout has {self.by}={unknown[0]!r}, which is no teacher; they are {', '.join(self.names)}")
        who = np.repeat(named, batch.lengths)
        logp = np.select([who == n for n in self.names], columns, 0.0)
        return logp, who != ""
