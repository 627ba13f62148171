"""Held-out evaluation of a model behind a server: attempts are written as they are judged, and go on where they stopped."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from assay.clients.openai_client import RequestRefused
from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.protocols import TaskSource
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.rollout.environments import EnvironmentFailure
from assay.train.evaluate import context_of
from assay.train.server_player import ServerPlayer
from assay.verify import ScoringPool
from assay.verify.confidence import CONFIDENCE

__all__ = ["JudgedRolloutFile", "ServedEvaluation", "ServedOutcome", "read_judged_rollouts"]

_ALL = (401, 403, 404)
"""Refusals that every request would meet."""

_FIELDS = frozenset({"task", "arm", "level", "attempt", "value", "answer"})
"""Of a line of an attempt."""

_SILENT = 16
"""Attempts in a row without an answer after which a server is taken for gone, or as many as are asked at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedOutcome:
    """What an evaluation of a server gave.

    Attributes:
        items: per task ``id, arm, level, values, answers, faults``, as `assay.measure.eval_items` reads them; ``missing`` is the
            number of attempts without an answer.
        reasons: why attempts have no answer, and how many for each.
    """

    items: tuple[Mapping[str, Any], ...]
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def missing(self) -> int:
        """Attempts without an answer: neither right nor wrong."""
        return sum(item["missing"] for item in self.items)

    @property
    def asked(self) -> int:
        """That were asked for."""
        return sum(len(i["values"]) + i["faults"] + i["missing"] for i in self.items)


class JudgedRolloutFile:
    """Attempts of an evaluation as JSON Lines: first what was asked, then each attempt when it is judged.

    Args:
        path: the file; None keeps nothing.
        asked: what decides the attempts, as plain values. A file of other values is refused.

    Raises:
        DataError: the file is none of these, or of another evaluation.
    """

    def __init__(self, path: Path | None, asked: Mapping[str, Any]) -> None:
        self.known: dict[tuple[str, int], dict[str, Any]] = {}
        self._file: TextIO | None = None
        if path is None:
            return
        head = {"evaluation": plain(asked)}
        whole = _lines(path) if path.exists() else []
        if whole and whole[0] != json.loads(json.dumps(head)):
            raise DataError(
                f"{path} has attempts of another evaluation ({_differs(whole[0], head)}); give another --out, or remove it"
            )
        self.known = {(a["task"], a["attempt"]): a for a in whole[1:]}
        try:
            _cut_half_line(path)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}; give another --out") from None
        if not whole:
            self._write(head)

    def add(self, attempt: dict[str, Any]) -> None:
        """Keeps an attempt."""
        self.known[attempt["task"], attempt["attempt"]] = attempt
        self._write(attempt)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, value: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(value, ensure_ascii=True) + "\n")
            self._file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedEvaluation:
    """Attempts of a server's model at held-out tasks, scored by the tasks' own verifier.

    An attempt without an answer, because the server could not be reached, was late, or refused it, is missing: neither right
    nor wrong, and asked again when the evaluation goes on.

    Attributes:
        player: asks the server.
        tasks: the family.
        items: its tasks that are asked (`assay.train.evaluate.held_out` gives them).
        n: attempts at each.
        concurrency: attempts at once.
    """

    player: ServerPlayer
    tasks: TaskSource
    items: Sequence[Task]
    n: int = 1
    concurrency: int = 16

    async def run(
        self, file: JudgedRolloutFile, pool: ScoringPool, tell: Callable[[int, int, int], None] = lambda done, of, missing: None
    ) -> ServedOutcome:
        """Asks for all attempts that the file lacks.

        Args:
            file: keeps what is judged.
            pool: of the tasks' verifier, one that gives verdicts only (``refuse=False``).
            tell: hears how many attempts are done, of how many, and how many of them are missing.

        Raises:
            RequestRefused: the server refuses every request, as for a wrong key or model.
        """
        wanted = deque((task, i) for task in self.items for i in range(self.n) if (task.id, i) not in file.known)
        state = _State(wanted=wanted, total=len(self.items) * self.n, tell=tell)
        workers = [asyncio.ensure_future(self._work(state, file, pool)) for _ in range(min(self.concurrency, len(wanted)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self.player.client.close()
        if wanted:
            state.reasons["not asked: the server gave no answer to anything any more"] += len(wanted)
        return ServedOutcome(items=tuple(self._item(task, file) for task in self.items), reasons=dict(state.reasons))

    async def _work(self, state: _State, file: JudgedRolloutFile, pool: ScoringPool) -> None:
        while state.wanted and not state.hopeless(max(_SILENT, self.concurrency)):
            task, number = state.wanted.popleft()
            try:
                rollout = await self.player.play(self.tasks, task, context_of(task), number)
            except (EngineError, EnvironmentFailure, RequestRefused) as error:
                if isinstance(error, RequestRefused) and error.status in _ALL:
                    raise
                state.miss(error)
                continue
            state.silent, state.answered = 0, True
            async with state.judging:  # one call at a time: a pool has its own processes
                score = (await asyncio.to_thread(pool.score, [(task, rollout)]))[rollout.id]
            file.add(_attempt(task, number, rollout, score))
            state.step()

    def _item(self, task: Task, file: JudgedRolloutFile) -> dict[str, Any]:
        made = [a for i in range(self.n) if (a := file.known.get((task.id, i))) is not None]
        valid = [a for a in made if a["value"] is not None]
        return {
            "id": task.id,
            "arm": task.arm,
            "level": task.level,
            "values": [a["value"] for a in valid],
            "answers": [a["answer"] for a in valid],
            **_stated_confidences(valid),
            "faults": len(made) - len(valid),
            "missing": self.n - len(made),
        }


@dataclass(slots=True, kw_only=True)
class _State:
    """An evaluation on its way."""

    wanted: deque[tuple[Task, int]]
    total: int
    tell: Callable[[int, int, int], None]
    silent: int = 0
    refused: int = 0
    answered: bool = False
    reasons: Counter[str] = field(default_factory=Counter[str])
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)
    done: int = 0

    def __post_init__(self) -> None:
        self.done = self.total - len(self.wanted)

    def hopeless(self, most: int) -> bool:
        """Whether the server has gone, or has refused all so far."""
        return self.silent >= most or (self.refused >= most and not self.answered)

    def miss(self, error: Exception) -> None:
        self.silent += isinstance(error, EngineError)
        self.refused += isinstance(error, RequestRefused)
        self.reasons[str(error)[:300]] += 1
        self.step()

    def step(self) -> None:
        self.done += 1
        self.tell(self.done, self.total, sum(self.reasons.values()))


def _stated_confidences(attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The confidences that answers state, where any does."""
    found = [a.get(CONFIDENCE) for a in attempts]
    return {CONFIDENCE: found} if any(q is not None for q in found) else {}


def _attempt(task: Task, number: int, rollout: Rollout, score: Any) -> dict[str, Any]:
    stated = {CONFIDENCE: score.columns[CONFIDENCE]} if CONFIDENCE in score.columns else {}
    return {
        **stated,
        "task": task.id,
        "arm": task.arm,
        "level": task.level,
        "attempt": number,
        "value": score.primary if score.valid else None,
        "fault": score.fault.value,
        "answer": rollout.text,
        "turns": len(rollout.calls),
        "stop": rollout.stop.value,
    }


def read_judged_rollouts(path: Path) -> list[dict[str, Any]]:
    """The items of an evaluation that an `JudgedRolloutFile` holds, as those of `ServedOutcome`.

    Raises:
        DataError: the file is none.
    """
    found: dict[str, dict[str, Any]] = {}
    lines = _lines(path)[1:]
    states = any(CONFIDENCE in a for a in lines)
    for a in lines:
        item = found.setdefault(
            a["task"],
            {"id": a["task"], "arm": a["arm"], "level": a["level"], "values": [], "answers": [], "faults": 0, "missing": 0},
        )
        if a["value"] is None:
            item["faults"] += 1
        else:
            item["values"].append(a["value"])
            item["answers"].append(a["answer"])
            if states:
                item.setdefault(CONFIDENCE, []).append(a.get(CONFIDENCE))
    return list(found.values())


def _lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines: a last one that was cut off by a kill is left out."""
    try:
        text = path.read_text(encoding="utf-8")
        found = [json.loads(line) for line in text[: text.rfind("\n") + 1].split("\n") if line]
        fits = not found or ("evaluation" in found[0] and all(a.keys() >= _FIELDS for a in found[1:]))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{path} cannot be read as attempts of an evaluation: {error}") from None
    if not fits:
        raise DataError(f"{path} holds no attempts of an evaluation: give a file that 'assay eval URL --out FILE' wrote")
    return found


def _cut_half_line(path: Path) -> None:
    if path.exists():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with path.open("rb+") as file:
                file.truncate(whole)


def _differs(found: Mapping[str, Any], head: Mapping[str, Any]) -> str:
    mine, theirs = head["evaluation"], found.get("evaluation", {})
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    return ", ".join(f"{name} is {theirs.get(name)!r} there, {mine.get(name)!r} here" for name in names)
