"""The text-to-SQL verifier."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.sandbox.sql.guard import Guard, QueryLimits
from assay.sandbox.sql.statement import Refusal, Statement, StatementVerdict, extract, read
from assay.verify.exact import expected_answer
from assay.verify.sql.compare import Runs, agree, cardinality, level, precision, settled
from assay.verify.sql.database import Database

__all__ = ["SqlMatch"]

_PARTS = ("correct", "syntax", "schema_linking", "ngram", "format", "cell_precision", "cell_recall", "cardinality")


@dataclass(frozen=True, slots=True)
class SqlMatch:
    """``correct`` is 1 when a query gives the gold query's result on every instance of the task's database, else 0.

    The gold query is ``private["answer"]``, the database ``private["database"]`` (`Database`), or the answer holds both, as
    ``{"query": ..., "database": ...}``. The query that is judged stands in the text's last ``sql`` fence, else its last
    ``<answer>``, else it is the whole text. It may only read, within `QueryLimits`.

    Rows are compared as multisets, in order only if the gold has an ``ORDER BY`` of its own; rows that it leaves tied may come in
    any order. NULLs equal each other, integers and floats of one value too; text never equals a number; names of columns do not
    matter.

    The other components are raw parts of published rewards; their weights belong to an objective's `Scalarise`.

    - ``syntax``: the query runs. ``schema_linking``: Jaccard of the tables and columns that both queries read, as SQLite resolves
      them when it compiles the queries, never guessed from their text. ``ngram``: Jaccard of runs of ``gram`` tokens.
      ``format``: one fence or one ``<answer>`` holds the query. Reasoning-SQL (arXiv 2503.23157) weighs ``correct`` 3, these 1
      each, and a judging model 2; the length of its n-grams is UNSURE.
    - ``cell_precision``, ``cell_recall``, ``cardinality``: QATCH's, means over the instances (Think2SQL, arXiv 2504.15077).

    Without a result every component is 0, except that a query which SQLite refuses keeps ``format`` and ``ngram``.

    ``info["verdict"]`` is ``equal``, ``different``, ``syntax``, ``forbidden``, ``limit`` or ``unparsed``; ``info["reason"]``
    says why there is no result. A query that exceeds a limit is a ``policy`` fault and scores the floor, 0. With
    ``info["vacuous"]`` neither query gives a row on any instance, so their equality says little. With ``info["ambiguous"]`` the
    gold query does not settle its own rows (a LIMIT among ties); each result that it was seen to give is right.

    Attributes:
        parts: components to give, ``correct`` among them.
        tolerance: how far a float may be from a number that it equals, absolute or relative; sums of floats depend on the order
            of their terms. 0 for exact values. Integers are always exact.
        any_columns: columns may come in another order.
        gram: tokens in an n-gram.
        limits: per query and instance.

    Raises:
        ConfigError: unknown parts, or a setting out of range.
        DataError: the task has no gold query or database, or the gold query itself fails.

    >>> from assay.core import FrozenMap, Task
    >>> from assay.testing import rollout_of
    >>> database = {"schema": {"t": [["a", "INTEGER"]]}, "instances": [{"t": [[1], [2]]}, {"t": [[3]]}]}
    >>> task = Task(
    ...     id="q", domain="sql", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "How many?"}),
    ...     private=FrozenMap({"answer": "SELECT count(*) FROM t", "database": database}),
    ... )
    >>> for query in ("SELECT count(a) FROM t", "SELECT 2", "DROP TABLE t"):
    ...     score = SqlMatch()(task, rollout_of(task, query))
    ...     print(score.components["correct"], score.info["verdict"])
    1.0 equal
    0.0 different
    0.0 forbidden
    """

    parts: tuple[str, ...] = _PARTS
    tolerance: float = 1e-12
    any_columns: bool = False
    gram: int = 2
    limits: QueryLimits = field(default_factory=QueryLimits)
    trusted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        unknown = [part for part in self.parts if part not in _PARTS]
        if unknown or "correct" not in self.parts or len(set(self.parts)) < len(self.parts):
            raise ConfigError(f"SqlMatch.parts is {self.parts}; give 'correct' and any others of {_PARTS[1:]}, each once")
        if not 0.0 <= self.tolerance < 0.01:
            raise ConfigError(f"SqlMatch.tolerance is {self.tolerance}; it must be in [0, 0.01)")
        if self.gram < 1:
            raise ConfigError(f"SqlMatch.gram is {self.gram}; an n-gram has at least one token")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return self.parts

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout."""
        wanted, database = _gold_query(task)
        try:
            return self._judge_query(Database.of(database), self._gold(wanted), rollout)
        except DataError as error:
            raise DataError(f"task {task.id!r}: {error}") from error

    def _judge_query(self, database: Database, gold: Statement, rollout: Rollout) -> Score:
        if rollout.stop is not Stop.DONE:
            return self._score_without_result(
                {}, Refusal(StatementVerdict.UNPARSED, f"the answer was cut off (stop {rollout.stop})")
            )
        text, marked = extract(rollout.text)
        try:
            query = read(text, self.limits.characters)
        except Refusal as refusal:
            return self._score_without_result({}, refusal)
        closeness = {"format": float(marked), "ngram": _jaccard(query.grams(self.gram), gold.grams(self.gram))}
        try:
            return self._compare_results(database, gold, query, closeness)
        except Refusal as refusal:
            return self._score_without_result(closeness if refusal.verdict is StatementVerdict.SYNTAX else {}, refusal)

    def _gold(self, text: str) -> Statement:
        try:
            return read(text, self.limits.characters)
        except Refusal as refusal:
            raise DataError(f"the gold query {text[:200]!r} is refused, {refusal}; 'answer' holds one query, unfenced") from None

    def _compare_results(self, database: Database, gold: Statement, query: Statement, closeness: dict[str, float]) -> Score:
        wanted: list[Runs] = []
        given: list[Runs] = []
        for index in range(len(database.instances)):
            with database.open(index) as connection, Guard(connection, self.limits, database.now) as guard:
                try:
                    ours = _runs(guard, gold)
                except Refusal as refusal:
                    raise DataError(
                        f"the gold query fails on instance {index}, {refusal}; mend it or raise SqlMatch.limits"
                    ) from None
                guard.allow(guard.steps)
                ours, theirs = level(ours, _runs(guard, query), self.tolerance)
                wanted.append(ours)
                given.append(theirs)
        pairs = [(ours.usual.rows, theirs.usual.rows) for ours, theirs in zip(wanted, given, strict=True)]
        equal = agree(wanted, given, gold.ordered, self.any_columns)
        found = closeness | {
            "correct": float(equal),
            "syntax": 1.0,
            "schema_linking": _jaccard(wanted[0].usual.used, given[0].usual.used),
            "cell_precision": sum(precision(theirs, ours) for ours, theirs in pairs) / len(pairs),
            "cell_recall": sum(precision(ours, theirs) for ours, theirs in pairs) / len(pairs),
            "cardinality": sum(cardinality(theirs, ours) for ours, theirs in pairs) / len(pairs),
        }
        info: dict[str, object] = {"verdict": str(StatementVerdict.EQUAL if equal else StatementVerdict.DIFFERENT)}
        if not any(rows for pair in pairs for rows in pair):
            info["vacuous"] = True
        if not all(map(settled, wanted)):
            info["ambiguous"] = True
        return Score(components={name: found[name] for name in self.parts}, info=FrozenMap(info))

    def _score_without_result(self, found: dict[str, float], refusal: Refusal) -> Score:
        """The score of a rollout without a result."""
        return Score(
            components={name: found.get(name, 0.0) for name in self.parts},
            info=FrozenMap({"verdict": str(refusal.verdict), "reason": refusal.reason[:300]}),
            fault=Fault.POLICY if refusal.verdict is StatementVerdict.LIMIT else Fault.NONE,
        )


def _gold_query(task: Task) -> tuple[str, object]:
    """The gold query, and the database as data."""
    answer = task.private.get("answer")
    if not isinstance(answer, Mapping):
        return expected_answer(task), task.private.get("database")
    both = cast("Mapping[str, object]", answer)
    if set(both) != {"query", "database"}:
        raise DataError(
            f"task {task.id!r}: the answer has the keys {sorted(both)}; give 'query' and 'database', or a query alone"
        )
    return str(both["query"]), both["database"]


def _runs(guard: Guard, query: Statement) -> Runs:
    usual = guard.run(query.text)
    if not query.ordered:
        return Runs(usual, usual, guard.run(query.text, backward=True))
    return Runs(usual, *(guard.run(query.breaking_ties(usual.width, direction)) for direction in ("ASC", "DESC")))


def _jaccard(one: Set[object], other: Set[object]) -> float:
    """Common members over all members; 1 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 1.0
