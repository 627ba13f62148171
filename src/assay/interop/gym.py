"""reasoning-gym's scorers as verifiers: foreign code over a model's words, so it runs in the sandbox."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, DataError, MissingExtraError, RewardError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.sandbox import Limits, PythonSession, Status
from assay.verify.answer_verifier import AnswerPlace, answer_in, option
from assay.verify.code.workers import sandbox_of

__all__ = ["DENIED", "GymReward"]

DENIED: Mapping[str, str] = FrozenMap(
    {
        **dict.fromkeys(
            (
                "binary_matrix",
                "countdown",
                "intermediate_integration",
                "n_queens",
                "polynomial_multiplication",
                "puzzle24",
                "simple_integration",
                "spiral_matrix",
                "string_insertion",
            ),
            "its scorer runs the answer as code",
        ),
        "game_of_life_halting": "its scorer pays any words",
        "codeio": "its items differ from one process to the next",
        "composite": "it is a mixture of others; name those",
    }
)
"""Data sets of reasoning-gym that are not taken, and why (docs/evidence/verifiers.md)."""

_BEGIN = 60.0
"""Seconds to import reasoning-gym."""

_START = """
import sys
sys.dont_write_bytecode = True
sys.path[:] = [*{paths!r}, *sys.path]
import json, reasoning_gym
_made = {{}}
def _score(order):
    name, answer, entry = json.loads(order)
    if name not in _made:
        _made[name] = reasoning_gym.create_dataset(name, size=1, seed=0)
    print(json.dumps(float(_made[name].score_answer(answer, entry))))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GymReward:
    """``score_answer`` of a data set of reasoning-gym: ``reward`` in [0, 1], as its scorer gives it.

    The scorer runs in an interpreter in the sandbox, without network, without files but Python's packages, and is killed when it
    hangs: a deadline twice exceeded on one answer is the policy's fault and scores 0. So this side neither hangs nor dies, and is
    ``trusted``: a `ScoringPool` needs no worker for it, which would import reasoning-gym anew. White space around the answer is
    removed, since many scorers refuse it. Where a scorer raises, there is no verdict: a ``verifier`` fault.

    Attributes:
        dataset: its name; data sets of `DENIED` are refused.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).
        deadline: seconds for one answer.
        backend: how it is contained (`assay.sandbox.Sandbox`).

    Raises:
        ConfigError: a data set that is denied; when judging, that nothing here contains programs.
        MissingExtraError: reasoning-gym is not installed.
        DataError: the task's row has no ``entry``, the data set's own item.
    """

    dataset: str = ""
    where: AnswerPlace = AnswerPlace.AUTO
    deadline: float = 2.0
    backend: str = "auto"

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "GymReward.where")
        if not self.dataset:
            raise ConfigError("GymReward.dataset is empty; name a data set of reasoning-gym")
        if self.dataset in DENIED:
            raise ConfigError(f"reasoning-gym's {self.dataset!r} is not taken: {DENIED[self.dataset]}")
        if not self.deadline > 0:
            raise ConfigError(f"GymReward.deadline is in seconds and must be > 0, got {self.deadline}")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("reward",)

    @property
    def trusted(self) -> bool:
        """Whether it may be called in this process."""
        return True

    def isolation(self) -> dict[str, Any]:
        """What contains the scorers, as plain values for a run's record."""
        return sandbox_of(self.backend, 1, reads=tuple(_importable())).manifest()

    def ready(self) -> None:
        """Raise where reasoning-gym is not installed."""
        if importlib.util.find_spec("reasoning_gym") is None:
            raise MissingExtraError("reasoning_gym", "audits")

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout."""
        row: Any = task.private.get("row", task.private)
        if "entry" not in row:
            raise DataError(f"task {task.id!r} has no 'entry' of a data set of reasoning-gym; it has {sorted(row)}")
        said = answer_in(rollout.text, self.where) if rollout.stop is Stop.DONE else None
        if said is None:
            return Score(components={"reward": 0.0}, info=FrozenMap({"verdict": "unparsed"}))
        order = json.dumps([self.dataset, said.strip(), plain(row["entry"])])
        for _ in range(2):
            result = _process_of(self.backend).ask(order, self.deadline)
            if result.status is Status.OK:
                return self._read_score(result.stdout)
            if result.status not in (Status.TIMEOUT, Status.CPU, Status.MEMORY):
                last = (result.stderr.strip().splitlines() or [result.detail])[-1]
                raise RewardError(f"the scorer of reasoning-gym's {self.dataset!r} failed ({result.status}): {last}")
        info = FrozenMap({"error": f"no verdict within {self.deadline:g} s, twice on the same answer"})
        return Score(components={"reward": 0.0}, fault=Fault.POLICY, info=info)

    def _read_score(self, stdout: str) -> Score:
        lines = stdout.strip().splitlines()
        try:
            return Score(components={"reward": float(lines[-1])}, info=FrozenMap({"verdict": "scored"}))
        except (IndexError, ValueError):
            raise RewardError(f"the scorer of reasoning-gym's {self.dataset!r} gave no number: {stdout[-200:]!r}") from None


class _ScorerProcess:
    """The one contained interpreter of this process in which scorers run; replaced when it hangs."""

    def __init__(self, backend: str) -> None:
        self._lock, self._begun = threading.Lock(), -1
        limits = Limits(wall=_BEGIN, cpu=_BEGIN, memory=4 << 30, output=1 << 20, files=256)
        self._scope: PythonSession = sandbox_of(backend, 1, reads=tuple(_importable())).scope(limits)

    def open(self) -> None:
        """Import what scorers need, in an interpreter that has not."""
        if self._begun == self._scope.starts:
            return
        begun = self._scope.run(_START.format(paths=_importable()))
        if begun.status is not Status.OK:
            last = (begun.stderr.strip().splitlines() or [begun.detail])[-1]
            raise ConfigError(f"reasoning-gym cannot be imported inside the sandbox: {last}")
        self._begun = self._scope.starts

    def ask(self, order: str, seconds: float) -> Any:
        """A turn, in an interpreter that has imported what it needs."""
        with self._lock:
            self.open()
            result = self._scope.run(f"_score({order!r})", Limits(wall=seconds, cpu=2 * seconds, output=1 << 20))
            if result.status is not Status.OK:
                self._begun = -1
            return result


_processes: dict[str, _ScorerProcess] = {}
os.register_at_fork(after_in_child=_processes.clear)  # the parent's interpreter is its own


def _process_of(backend: str) -> _ScorerProcess:
    if backend not in _processes:
        _processes[backend] = _ScorerProcess(backend)
    return _processes[backend]


def _importable() -> list[str]:
    """Where installed packages are, and reasoning-gym among them; never the folder that the program was started in."""
    spec = importlib.util.find_spec("reasoning_gym")
    own = [Path(spec.origin).parents[1]] if spec and spec.origin else []
    installed = [Path(p) for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    return list(dict.fromkeys(str(p.resolve()) for p in (*own, *installed)))
