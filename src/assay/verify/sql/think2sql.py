"""Think2SQL's reward: a graded result, the form, and the share of its tags, weighed into one number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.composite import CompositeVerifier
from assay.verify.sql.match import SqlMatch
from assay.verify.text.tags import TagFormat, TagShare

__all__ = ["Think2Sql"]

_QATCH = ("cell_precision", "cell_recall", "cardinality")


@dataclass(frozen=True, slots=True)
class Think2Sql(CompositeVerifier):
    """``reward = w1 * result + w2 * format + w3 * tags``, of which a stage learns; accuracy is ``correct``, execution alone.

    ``result`` is QATCH's ``(cell_precision + cell_recall + cardinality) / 3`` when ``graded``, else ``correct``. ``format`` is 1
    for a text that is the tags in order and nothing besides. ``tags`` is the share of the four marks ``<think>``, ``</think>``,
    ``<answer>``, ``</answer>`` that stand exactly once.

    Attributes:
        sql: judges the query.
        graded: result by QATCH, which the paper finds best for RL; otherwise by execution.
        weights: of result, form and tags: (0.85, 0.10, 0.05) in the paper; its released settings are (0.85, 0.15, 0) ungraded and
            (0.95, 0.05, 0) graded.
        tags: of the form, in order.

    Raises:
        ConfigError: weights that are negative, not finite or all 0; a graded result of a `SqlMatch` without its parts.
        DataError: as `SqlMatch`.

    Source: Think2SQL (arXiv 2504.15077).

    >>> from assay.verify.rollouts import task_and_rollout
    >>> database = {"schema": {"t": [["a", "INTEGER"]]}, "instances": [{"t": [[1], [2]]}, {"t": [[3], [4]]}]}
    >>> gold = {"query": "SELECT a FROM t", "database": database}
    >>> said = "<think>half</think><answer>SELECT a FROM t LIMIT 1</answer>"
    >>> score = Think2Sql()(*task_and_rollout(gold, said))
    >>> score.components["correct"], round(score.components["reward"], 3)
    (0.0, 0.717)
    """

    sql: Verifier = field(default_factory=SqlMatch)
    graded: bool = True
    weights: tuple[float, float, float] = (0.85, 0.10, 0.05)
    tags: tuple[str, ...] = ("think", "answer")

    @property
    def weighted_sum(self) -> bool:
        """True: a stage learns from the component ``reward``."""
        return True

    def __post_init__(self) -> None:
        if len(self.weights) != 3 or not all(math.isfinite(w) and w >= 0 for w in self.weights) or not sum(self.weights):
            raise ConfigError(
                f"Think2Sql.weights={self.weights}; give three numbers that are not negative, of result, form and tags"
            )
        missing = [part for part in _QATCH if part not in getattr(self.sql, "parts", _QATCH)]
        if self.graded and missing:
            raise ConfigError(f"Think2Sql is graded, and SqlMatch.parts lack {missing}; name them, or set graded=False")
        TagFormat(self.tags)

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("reward", "correct", "result", "format", "tags")

    @property
    def floor(self) -> dict[str, float]:
        """0 of each."""
        return dict.fromkeys(self.names, 0.0)

    @property
    def members(self) -> tuple[Verifier, ...]:
        """Who judges the query, the form and the tags."""
        return (self.sql, TagFormat(self.tags), TagShare(self.tags))

    def with_members(self, members: tuple[Verifier, ...]) -> Think2Sql:
        """The same with another judge of queries."""
        return replace(self, sql=members[0])

    def merge_scores(self, task: Task, scores: tuple[Score, ...]) -> Score:
        """The weighted sum, and what it is of."""
        query, form, share = scores
        found = query.components
        result = sum(found[part] for part in _QATCH) / 3 if self.graded else found["correct"]
        said = {"correct": found["correct"], "result": result, "format": form.primary, "tags": share.primary}
        reward = sum(weight * said[name] for weight, name in zip(self.weights, ("result", "format", "tags"), strict=True))
        return Score(components={"reward": reward, **said}, info=FrozenMap({**form.info, **query.info}))
