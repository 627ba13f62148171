"""PCL: a value model of prompts says which of several candidates the policy would solve about half of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Outcome
from assay.core.optional_protocols import CountsRows
from assay.core.protocols import State, TaskSource
from assay.core.seeds import derive, uniforms
from assay.core.task import Task
from assay.guide.cell_curricula import cells_of
from assay.guide.row_book import Row

__all__ = ["PromptValue", "PromptValueCurriculum", "chances_of_selection"]

F = NDArray[np.float64]

GRAMS = (1, 2, 3)
"""Lengths of the runs of bytes that a prompt is known by."""

MOST_BYTES = 2048
"""Of a prompt's end that are read."""


@lru_cache(maxsize=64)
def chances_of_selection(rows: int, candidates: int, taken: int) -> F:
    """How probable it is that the row of each rank is taken.

    Of ``rows`` rows ``candidates`` are drawn evenly without repeats, and of these the ``taken`` best. The row of rank ``q`` is
    taken with probability ``candidates / rows`` times that of fewer than ``taken`` better ones beside it, which are
    hypergeometric.

    Returns:
        ``[rows]``, descending; sums to ``taken``.

    >>> chances_of_selection(4, 2, 1).round(4).tolist(), chances_of_selection(4, 1, 1).tolist()
    ([0.5, 0.3333, 0.1667, 0.0], [0.25, 0.25, 0.25, 0.25])
    """
    log = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, rows + 1)))])
    better, others = np.arange(rows), candidates - 1
    total = np.zeros(rows)
    for k in range(min(taken, others + 1)):
        fits = (k <= better) & (others - k <= rows - 1 - better)
        b, w = better[fits], rows - 1 - better[fits]
        ways = log[b] - log[k] - log[b - k] + log[w] - log[others - k] - log[w - others + k]
        total[fits] += np.exp(ways - (log[rows - 1] - log[others] - log[rows - 1 - others]))
    return total * candidates / rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptValue:
    """Of ``candidates`` times as many rows as are wanted, takes those whose expected success is nearest to ``target``.

    Expected success is ``V(x) = b + w . f(x)``, with ``f(x)`` the cell and the hashed runs of one to three bytes of the prompt,
    scaled to length 1. After a step each group moves ``w`` and ``b`` by ``learning_rate`` along the gradient of
    ``(V(x) - mean success)^2 / 2``: the value is one step behind the policy, and learned from rows that were drawn alone.

    Source: Prompt Curriculum Learning (arXiv 2510.01135). Half of the paper: there the value is a language model of the
    policy's size; here it is linear in the text. UNSURE: its learning rate.

    Attributes:
        pool: rows of each (arm, level), the first of its stream.
        candidates: rows looked at per row taken; 1 takes all alike.
        target: success that is wanted.
        learning_rate: in (0, 1]; at 1 a group's own value becomes its mean success.
        features: slots that runs of bytes are hashed into.

    Raises:
        ConfigError: a number out of range.

    >>> [round(d.propensity, 6) for d in PromptValue(pool=8).build({"sort": (3,)}, seed=0).draw(1)]
    [0.125]
    """

    pool: int = 64
    candidates: int = 4
    target: float = 0.5
    learning_rate: float = 0.25
    features: int = 4096

    def __post_init__(self) -> None:
        if min(self.pool, self.candidates, self.features) < 1:
            raise ConfigError(
                f"PromptValue.pool={self.pool}, .candidates={self.candidates} and .features={self.features} must be at least 1"
            )
        if not 0.0 <= self.target <= 1.0 or not 0.0 < self.learning_rate <= 1.0:
            raise ConfigError(
                f"PromptValue.target={self.target} is a success in [0, 1], and .learning_rate={self.learning_rate} in (0, 1]"
            )

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> PromptValueCurriculum:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return PromptValueCurriculum(self, arms, seed)


class PromptValueCurriculum:
    """The state of `PromptValue`; implements `assay.core.protocols.ReadsTasks`.

    Args:
        spec: its settings.
        arms: each arm with its levels.
        seed: the run's seed.

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.
    """

    def __init__(self, spec: PromptValue, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        self.spec, self.seed = spec, seed
        self._cells = cells_of(arms)
        self._turn = self._groups = 0
        self._error = 0.0
        self.model = np.zeros(1 + len(self._cells) + spec.features)
        self._take([spec.pool] * len(self._cells), None)

    def read_tasks(self, tasks: TaskSource) -> None:
        """Reads the prompts of the pool.

        Raises:
            ConfigError: the source has no training row in any of the cells.
        """
        sizes = [self.spec.pool] * len(self._cells)
        if isinstance(tasks, CountsRows):
            sizes = [min(self.spec.pool, tasks.size(arm, level, "train")) for arm, level in self._cells]
        if not sum(sizes):
            raise ConfigError(f"PromptValue: {tasks.name} has no training row in {self._cells[:8]}")
        self._take(sizes, tasks)

    def _take(self, sizes: Sequence[int], tasks: TaskSource | None) -> None:
        """The rows, and as one sparse matrix what each is known by: slots and values, row by row."""
        pairs = list(zip(self._cells, sizes, strict=True))
        self.rows: list[Row] = [(arm, level, i) for (arm, level), size in pairs for i in range(size)]
        self._at = {row: i for i, row in enumerate(self.rows)}
        self._cell = np.repeat(np.arange(len(sizes)), sizes)
        slots, values, starts = list[NDArray[np.int64]](), list[F](), [0]
        for (arm, level, index), cell in zip(self.rows, self._cell.tolist(), strict=True):
            text = _text(tasks.task(arm, level, "train", index)) if tasks else b""
            found, counts = np.unique([crc32(g) % self.spec.features for g in _grams(text)], return_counts=True)
            size = float(np.sqrt((counts**2).sum())) or 1.0
            slots += [np.array([0, 1 + cell]), found.astype(np.int64) + 1 + len(self._cells)]
            values += [np.array([1.0, 1.0]), counts / size]
            starts.append(starts[-1] + 2 + len(found))
        self._starts = np.array(starts)
        self._slots, self._values = np.concatenate(slots), np.concatenate(values)
        lengths = np.repeat(np.sqrt(np.add.reduceat(self._values**2, self._starts[:-1])), np.diff(self._starts))
        self._values /= lengths
        self._forget()

    def _forget(self) -> None:
        """What follows from the value model is computed anew when it is asked for."""
        self._expected: F | None = None
        self._equal: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def values(self) -> F:
        """``[rows]`` expected success of each row; 1/2 where nothing is known yet."""
        if self._expected is None:
            self._expected = 0.5 + np.add.reduceat(self._values * self.model[self._slots], self._starts[:-1])
        return self._expected

    def draw(self, n: int) -> list[Draw]:
        """``n`` rows, without repeats as long as there are others, in a random order.

        The propensity is a row's probability of being taken, divided by the number taken.

        Raises:
            ConfigError: ``n`` is not positive.
        """
        if n < 1:
            raise ConfigError(f"a curriculum draws at least one task, got n={n}")
        far = np.abs(self.values - self.spec.target)
        out: list[Draw] = []
        while len(out) < n:
            out += self._take_draws(min(n - len(out), len(self.rows)), far)
        return out

    def _take_draws(self, n: int, far: F) -> list[Draw]:
        u = uniforms(np.array([derive("curriculum/values", self.seed, "", self._turn)], np.uint64), 0, 2 * len(far))[0]
        self._turn += 1
        order, shuffled = u[: len(far)], u[len(far) :]
        looked = _least(order, min(self.spec.candidates * n, len(far)))
        best = looked[np.lexsort((order[looked], far[looked]))][:n]
        chances = self._chances(far, n)
        mixed: list[int] = best[np.argsort(shuffled[best], kind="stable")].tolist()
        found: list[Draw] = []
        for i in mixed:
            arm, level, index = self.rows[i]
            found.append(Draw(arm, level, float(chances[i]) / n, index))
        return found

    def _chances(self, far: F, n: int) -> F:
        """``[rows]`` probability of being taken: of rows that are equally far, the mean over their ranks."""
        by_rank = chances_of_selection(len(far), min(self.spec.candidates * n, len(far)), n)
        group, sizes, ends = self._equal_rows(far)
        sums = np.concatenate([[0.0], np.cumsum(by_rank)])
        return ((sums[ends] - sums[ends - sizes]) / sizes)[group]

    def _equal_rows(self, far: F) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Groups of equally far rows: ``[rows]`` group of each, and of each group its size and where it ends in the order.

        Metrics ask behind an observation, and the next draw asks the same again: the rows are sorted once for both.
        """
        if self._equal is None:
            _, group, sizes = np.unique(far, return_inverse=True, return_counts=True)
            self._equal = group, sizes, np.cumsum(sizes)
        return self._equal

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Moves the values towards the mean success of each group, row by row; groups of other rows say nothing."""
        seen = [(row, o.group.success) for o in outcomes if (row := self._at.get(o.group.row)) is not None]
        graded = sorted((row, success) for row, success in seen if success is not None)
        self._groups += len(graded)
        before = self.values
        self._forget()
        for row, success in graded:
            part = slice(self._starts[row], self._starts[row + 1])
            error = success - 0.5 - float(self._values[part] @ self.model[self._slots[part]])
            self.model[self._slots[part]] += self.spec.learning_rate * error * self._values[part]
        if graded:
            self._error = float(np.mean([abs(before[row] - success) for row, success in graded]))

    def metrics(self) -> Mapping[str, float]:
        """``curriculum/groups``, ``curriculum/value_error`` (mean distance of the last batch's successes from the values before
        it) and ``curriculum/share/...`` of a draw of one row.
        """
        chances = self._chances(np.abs(self.values - self.spec.target), 1)
        shares = np.bincount(self._cell, weights=chances, minlength=len(self._cells)).tolist()
        out = {"curriculum/groups": float(self._groups), "curriculum/value_error": self._error}
        return out | {f"curriculum/share/{arm}/level_{level}": x for (arm, level), x in zip(self._cells, shares, strict=True)}

    def state_dict(self) -> State:
        """Counters, and the slots of the value model that are not 0."""
        known = np.flatnonzero(self.model)
        return {
            "counts": [self._turn, self._groups],
            "error": self._error,
            "size": len(self.model),
            "slots": known.tolist(),
            "weights": self.model[known].tolist(),
        }

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state is of other arms or features.
        """
        if state["size"] != len(self.model):
            raise CheckpointError(f"the curriculum's value model has {state['size']} weights, this run's {len(self.model)}")
        self._turn, self._groups = (int(count) for count in state["counts"])
        self._error = float(state["error"])
        self.model[:] = 0.0
        self.model[np.array(state["slots"], np.int64)] = state["weights"]
        self._forget()


def _least(values: F, n: int) -> NDArray[np.int64]:
    """Where the ``n`` least values stand, in their order; without sorting the others."""
    found = np.argpartition(values, n - 1)[:n] if n < len(values) else np.arange(len(values))
    return found[np.argsort(values[found], kind="stable")]


def _text(task: Task) -> bytes:
    said = "\n".join(message.content for message in task.public_view().messages if message.role == "user")
    return said.encode("utf-8", "surrogatepass")[-MOST_BYTES:]


def _grams(text: bytes) -> list[bytes]:
    return [text[i : i + n] for n in GRAMS for i in range(len(text) - n + 1)]
