"""A recorded rollout, as the files of a run have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.core.util.renamed import RenamedMembers

__all__ = ["RolloutLine", "rollout_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutLine(RenamedMembers):
    """One sampled rollout with its verdict: a line of ``rollouts.jsonl``, or of a recorded step's file in ``rollouts/``.

    Attributes:
        step, stage: when.
        id, task: its own name, and its task's.
        arm, level: of the task.
        prompt, text: what was asked, and what was answered.
        stop: why it ended.
        components, fault: of its score; a rollout with a fault other than ``none`` and ``policy`` has no verdict.
        length: sampled tokens.
        gold: what is right; empty where that is not recorded.
        advantage: after credit; None where it was not learned from, or that is not recorded.
        reason: why it has no verdict, where the scorer said so.
        answer: what was graded, where that is no call's text; None where it is.
        raw: the tokens that the policy read first and those that followed, as text with special tokens; empty where that is not
            recorded.
        row: where the task stands in the user's rows, as ``row 7``; empty where that is not recorded.
        calls: of an agent, each with ``prompt`` (what it sent beyond an earlier call's tokens), ``text`` and ``history``.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"said": "answers"}

    step: int
    stage: str
    id: str
    task: str
    arm: str
    level: int
    prompt: str
    text: str
    stop: str
    components: Mapping[str, float]
    fault: str
    length: int
    gold: str = ""
    advantage: float | None = None
    reason: str = ""
    answer: str | None = None
    calls: tuple[Mapping[str, str], ...] = ()
    raw: tuple[str, ...] = ()
    row: str = ""

    @property
    def faulty(self) -> bool:
        """Whether it has no verdict that counts."""
        return self.fault not in ("none", "policy")

    @property
    def right(self) -> bool:
        """Whether its primary value is full."""
        return not self.faulty and (self.primary or 0.0) >= 1.0

    @property
    def verdict(self) -> str:
        """``right``, ``wrong`` or ``faulty``."""
        return "faulty" if self.faulty else "right" if self.right else "wrong"

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Labels and texts of what was answered: the text, or each call of an agent, and what was graded in place of a text."""
        told = [(f"call {i}: ", f"{c['prompt']} -> {c['text'] or '(empty)'}") for i, c in enumerate(self.calls, 1)]
        graded = [("graded: ", self.answer or "(empty)")] if self.answer is not None else []
        return [*(told or [("", self.text or "(empty)")]), *graded]

    @property
    def primary(self) -> float | None:
        """``correct``, else ``reward``, else the only component, else None."""
        for name in ("correct", "reward"):
            if name in self.components:
                return self.components[name]
        return next(iter(self.components.values())) if len(self.components) == 1 else None


def rollout_line(record: Mapping[str, Any]) -> RolloutLine:
    """A record of a rollout, read.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or of another type.
    """
    return RolloutLine(
        step=int(record["step"]),
        stage=str(record.get("stage", "rl")),
        id=str(record["id"]),
        task=str(record["task"]),
        arm=str(record["arm"]),
        level=int(record["level"]),
        prompt=str(record["prompt"]),
        text=str(record["text"]),
        stop=str(record["stop"]),
        components={str(n): float(v) for n, v in record["components"].items()},
        fault=str(record["fault"]),
        length=int(record["length"]),
        gold=str(record.get("gold", "")),
        advantage=None if record.get("advantage") is None else float(record["advantage"]),
        reason=str(record.get("reason", "")),
        answer=None if record.get("answer") is None else str(record["answer"]),
        raw=tuple(map(str, record.get("raw", ()))),
        row=str(record.get("row", "")),
        calls=tuple({k: str(v) for k, v in call.items()} for call in record.get("calls", ())),
    )
