"""reasoning-gym's scorers as subjects of an audit: ``score_answer(answer, entry)`` of each of its data sets."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from assay.audit import AuditCase
from assay.core import FrozenMap, MissingExtraError, Rollout, Score, Task

__all__ = ["MANY", "SEED", "SIZE", "UNKNOWN", "GymScorer", "data_sets", "gym_cases"]

SIZE, SEED = 24, 0
"""Of every data set here."""

MANY = frozenset(
    {
        "boxnet",
        "countdown",
        "cryptarithm",
        "graph_color",
        "group_anagrams",
        "intermediate_integration",
        "jugs",
        "kakurasu",
        "knight_swap",
        "n_queens",
        "palindrome_generation",
        "palindrome_partitioning",
        "polynomial_equations",
        "polynomial_multiplication",
        "prime_factorization",
        "propositional_logic",
        "puzzle24",
        "quantum_lock",
        "rubiks_cube",
        "rush_hour",
        "shortest_path",
        "simple_integration",
        "sokoban",
        "survo",
        "tower_of_hanoi",
        "word_ladder",
    }
)
"""Data sets in which several answers may be right: a near miss, or another task's answer, proves nothing there."""

_EXAMPLES = {
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
}
"""Where a data set without gold shows a right answer."""

UNKNOWN = frozenset({"boxnet", "rush_hour"})
"""Data sets that show no right answer."""

_NOT_ALONE = frozenset({"composite"})
"""A mixture of other data sets, whose scorers are audited each for itself."""


def data_sets() -> tuple[str, ...]:
    """Names of its data sets.

    Raises:
        MissingExtraError: reasoning-gym is not installed.
    """
    return tuple(sorted(set(_gym("factory").DATASETS) - _NOT_ALONE))


def gym_cases(name: str) -> list[AuditCase]:
    """Tasks of a data set with their gold."""
    cases: list[AuditCase] = []
    for index, entry in enumerate(_entries(name)):
        gold = _gold(name, entry)
        task = Task(
            id=f"{name} {index}",
            domain="reasoning_gym",
            arm=name,
            level=1,
            split="test",
            index=index,
            public=FrozenMap({"prompt": str(entry["question"])}),
            private=FrozenMap({"answer": gold}),
        )
        cases.append(AuditCase(task=task, solutions=(gold,), unique=name not in MANY))
    return cases


@dataclass(frozen=True)
class GymScorer:
    """``score_answer`` of a data set: the task's index says which entry, the last text is the answer.

    Attributes:
        name: of the data set.
    """

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("reward",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Score one attempt; what the scorer raises, leaves here."""
        entry = deepcopy(_entries(self.name)[task.index])  # one scorer writes into its entry
        return Score(components={"reward": float(_data_set(self.name).score_answer(rollout.text, entry))})

    def prepare(self) -> None:
        """Make the tasks before any answer is timed."""
        _entries(self.name)


def __getattr__(name: str) -> GymScorer:
    """Each scorer has a name in this module, so that it can be made again inside the sandbox."""
    if name.startswith("_") or name not in data_sets():
        raise AttributeError(f"module 'evidence.audits.gym' has no attribute {name!r}")
    return GymScorer(name)


@cache
def _data_set(name: str) -> Any:
    return _gym().create_dataset(name, size=SIZE, seed=SEED)


@cache
def _entries(name: str) -> tuple[dict[str, Any], ...]:
    made = _data_set(name)
    return tuple(made[i] for i in range(SIZE))


def _gold(name: str, entry: dict[str, Any]) -> str:
    found = entry["answer"] if entry["answer"] is not None else entry["metadata"].get(_EXAMPLES.get(name, ""), "?")
    return found if isinstance(found, str) else json.dumps(found)


def _gym(inside: str = "") -> Any:
    try:
        return import_module(f"reasoning_gym.{inside}" if inside else "reasoning_gym")
    except ImportError as error:
        raise MissingExtraError("reasoning_gym", "audits") from error
