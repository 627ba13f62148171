"""The far side of a contained audit: answers as JSON in, verdicts as JSON out, in an interpreter inside the sandbox."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from assay.audit.effects import Played, WatchedVerifier
from assay.audit.hostile import Canary
from assay.audit.subject import resolve
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.core.wire import task_from_wire
from assay.verify.abilities import abilities_of
from assay.verify.rollouts import rollout_of
from assay.verify.verdict import broken_score

__all__ = ["AuditRequestHandler"]


class AuditRequestHandler:
    """A subject, made where it is judged.

    Args:
        recipe: arguments of `resolve`.
        token: by what code of an answer is known (`Canary`).
        port: likewise.
        out: descriptor that verdicts and events are written to, a line of JSON each: the verifier's own output goes elsewhere.

    Raises:
        ConfigError: what was named is not there, or no verifier.
    """

    def __init__(self, recipe: Mapping[str, Any], token: str, port: int, out: int) -> None:
        self._verifier: Any = resolve(**recipe).verifier
        abilities_of(self._verifier).prepare()
        self._watched = WatchedVerifier(self._verifier, Canary(place=os.getcwd(), token=token, port=port), out)
        self._out = out

    def answer(self, order: str) -> None:
        """Judges what an order of `assay.audit.sandboxed_verifier.SandboxedVerifier` asks for, and writes one line."""
        asked: dict[str, Any] = json.loads(order)
        items = tuple(_item(task, text, id) for task, text, id in asked["items"])
        try:
            if "how" in asked:
                score = Played(self._verifier, items, **asked["how"])(*items[0])
            else:
                score = self._watched(*items[0])
        except BaseException as error:  # sys.exit() in a reward function must not look like a crash
            score = broken_score(error)
        said = {name: score.info[name] for name in ("error", "seconds", "values", "verdict") if name in score.info}
        value = score.primary if score.valid else None
        os.write(self._out, (json.dumps({"value": value, **said}, default=list) + "\n").encode())


def _item(task: dict[str, Any], text: str, id: str) -> tuple[Task, Rollout]:
    made = task_from_wire(task)
    return made, rollout_of(made, text, id=id, group=id)
