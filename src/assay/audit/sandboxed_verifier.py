"""A foreign verifier inside the sandbox: the near side of a contained audit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from assay.audit.hostile import Canary
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, SandboxError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.core.wire import task_to_wire
from assay.sandbox import Limits, PythonSession, Result, Sandbox, Status

__all__ = ["SandboxedVerifier", "reads_of", "sandbox_for"]

_MEMORY = 8 << 30
_BEGIN = 60.0
"""Seconds for importing the verifier and what it needs."""

_START = """
import os, sys
sys.dont_write_bytecode = True
sys.path[:] = [*{paths!r}, *sys.path]
from assay.audit.request_handler import AuditRequestHandler
_out, _null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
desk = AuditRequestHandler({recipe!r}, {token!r}, {port!r}, _out)
os.dup2(_null, 1), os.dup2(_null, 2)
"""


class SandboxedVerifier:
    """Judges with a subject that lives in the sandbox, in one interpreter that is replaced when it hangs or ends.

    It has no network, no files but its own folder and those that may be read, and an empty environment. Answers go in and
    verdicts come out as JSON. Use it as a context manager.

    Args:
        sandbox: with `reads_of` the subject.
        recipe: arguments of `assay.audit.subject.resolve`.
        canary: by what code of an answer is known; its events are written to this audit's file.
        deadline: seconds for one verdict.

    Raises:
        ConfigError: the subject cannot be made in there, with the last line of why.
        SandboxError: the sandbox failed, which is no verdict on the subject.
    """

    def __init__(self, sandbox: Sandbox, recipe: Mapping[str, Any], canary: Canary, deadline: float) -> None:
        self._recipe, self._canary, self._deadline = _absolute(recipe), canary, deadline
        several = 64 if sandbox.backend.name == "strong" else 1  # of programs that it starts: at landlock there can be none
        self._limits = Limits(wall=_BEGIN, cpu=_BEGIN, memory=_MEMORY, output=4 << 20, files=256, processes=several)
        self._scope: PythonSession = sandbox.scope(self._limits)
        self._ready = False

    def __enter__(self) -> SandboxedVerifier:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._scope.close()

    def score(self, items: Sequence[tuple[Task, Rollout]]) -> dict[str, Score]:
        """The verdict on each rollout, by rollout id; one that stopped the interpreter is tried once more."""
        out: dict[str, Score] = {}
        for task, rollout in items:
            order = {"items": [_wire(task, rollout)]}
            first = self._judge(order, self._deadline)
            out[rollout.id] = self._judge(order, self._deadline) if "ended" in first.info else first
        return out

    def play_together(self, items: Sequence[tuple[Task, Rollout]], seconds: float, **how: Any) -> tuple[float | str, ...] | None:
        """Values of several rollouts, as `assay.audit.effects.Played` gives them; None where they stopped it."""
        score = self._judge({"items": [_wire(*item) for item in items], "how": how}, seconds)
        return tuple(score.info["values"]) if "values" in score.info else None

    def _judge(self, order: Mapping[str, Any], seconds: float) -> Score:
        failed = ""
        for _ in range(2):
            if not self._ready:
                self._begin()
            result = self._scope.run(f"desk.answer({json.dumps(order)!r})", Limits(wall=seconds, cpu=2 * seconds, output=4 << 20))
            said = self._read_output(result)
            if result.status is Status.OK and said:
                return _score(said)
            self._ready = False
            if result.judged:
                return _stop_score(result, seconds)
            failed = result.detail
        raise SandboxError(f"the sandbox failed twice: {failed}")

    def _begin(self) -> None:
        own = Path(__file__).parents[3]
        source = _START.format(
            paths=[str(own), *_importable(), *_homes([str(self._recipe["name"])])],
            recipe=self._recipe,
            token=self._canary.token,
            port=self._canary.port,
        )
        result = self._scope.run(source, self._limits)
        if result.status is not Status.OK:
            last = result.stderr.strip().splitlines()[-1:] or [f"{result.status} {result.detail}"]
            raise ConfigError(
                f"{self._recipe['name']} cannot be made inside the sandbox: {last[0]}; in there it reads only Python's packages "
                "and its own folder, as far as other users may (chmod o+rX), and has no network: mend that, or audit it without "
                "(--no-sandbox)"
            )
        self._ready = True

    def _read_output(self, result: Result) -> dict[str, Any]:
        """What the far side wrote: its events go to the audit's file, its verdict is returned."""
        verdict: dict[str, Any] = {}
        with open(f"{self._canary.place}/events", "a", encoding="utf-8") as events:
            for line in result.stdout.splitlines():
                try:
                    said: Any = json.loads(line)
                except ValueError:
                    continue  # the verifier found our descriptor, or it ended in the middle of a line
                if isinstance(said, dict):
                    verdict = cast("dict[str, Any]", said)
                else:
                    events.write(f"{line}\n")
        return verdict


def sandbox_for(names: Sequence[str], backend: str) -> Sandbox:
    """A sandbox in which subjects of these names can be made.

    Raises:
        SandboxError: no level holds here, or not the one that was asked for.
    """
    return Sandbox(backend, workers=1, reads=reads_of(names))


def reads_of(names: Sequence[str]) -> tuple[str, ...]:
    """Folders that subjects of these names need: what Python imports from, and where their files are."""
    own = [str(Path(__file__).parents[3])]
    files = [str(Path(name.rpartition(":")[0]).resolve().parent) for name in names if ".py:" in name]
    return tuple(dict.fromkeys(path for path in (*own, *_importable(), *_homes(names), *files) if path != "/"))


def _importable() -> list[str]:
    return [str(Path(path or os.getcwd()).resolve()) for path in sys.path if Path(path or os.getcwd()).is_dir()]


def _homes(names: Sequence[str]) -> list[str]:
    """Folders of modules that are named and found by no folder of Python's import path, as those of an editable installation."""
    found: list[str] = []
    for name in names:
        module, colon, _ = name.partition(":")
        if not colon or module.endswith(".py"):
            continue
        try:
            spec = find_spec(module.partition(".")[0])
        except (ImportError, ValueError):  # said where it is imported
            continue
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            levels = 1 if spec.submodule_search_locations is None else 2
            found.append(str(Path(spec.origin).resolve().parents[levels - 1]))
    return [path for path in dict.fromkeys(found) if path not in _importable()]


def _absolute(recipe: Mapping[str, Any]) -> dict[str, Any]:
    where, _, name = str(recipe["name"]).rpartition(":")
    return {**recipe, "name": f"{Path(where).resolve()}:{name}"} if where.endswith(".py") else dict(recipe)


def _wire(task: Task, rollout: Rollout) -> tuple[dict[str, Any], str, str]:
    return task_to_wire(task), rollout.text, rollout.id


def _score(said: Mapping[str, Any]) -> Score:
    info = FrozenMap({name: said[name] for name in ("error", "seconds", "values", "verdict") if name in said})
    if said["value"] is None:
        return Score(components={}, fault=Fault.VERIFIER, info=info)
    return Score(components={"reward": float(said["value"])}, info=info)


def _stop_score(result: Result, seconds: float) -> Score:
    hung = result.status in (Status.TIMEOUT, Status.CPU)
    how = f"no verdict within {seconds:g} s" if hung else f"its process ended ({result.status}, exit code {result.exit_code})"
    info = {"ended": "hung" if hung else "died", "error": f"{how}, twice on the same answer"}
    return Score(components={}, fault=Fault.INFRA, info=FrozenMap(info))
