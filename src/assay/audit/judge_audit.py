"""The audit of a judge: whether a model's marks may be trained on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from assay.audit.labelled_answers import INJECTIONS, LONGER, STYLES, TRIVIAL, JudgeCase
from assay.core.canon import digest, plain
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Tokenizer
from assay.core.rollout import Ids
from assay.core.score import Score
from assay.core.scoring import JudgePort, RolloutGroup, ScorerSpec
from assay.core.task import Message
from assay.measure.calibration import auroc
from assay.verify.rollouts import rollout_of

__all__ = ["JudgeAudit", "JudgeAuditSettings", "JudgeCheck", "audit_judge"]

_T = TypeVar("_T")
Marks = NDArray[np.float64]
"""``[cases]`` main values, NaN where there is no judgement."""

_APART = 1000
"""Between the sample numbers of two repeats: a scorer may ask several samples itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAuditSettings:
    """What is tried, and what is bearable.

    Attributes:
        accept: least mark of an answer that counts as accepted.
        repeats: times that the same is asked.
        min_agreement: least share of cases on which judge and label decide alike.
        max_shift: largest mean change of the mark by words, tone, order or author that should not matter.
        max_fooled: largest share of wrong answers that become accepted by a sentence to the judge, and of empty ones accepted.
        max_deviation: largest mean standard deviation of a mark over repeats.
        max_faults: largest share without a judgement.

    Raises:
        ConfigError: fewer than one repeat.
    """

    accept: float = 0.5
    repeats: int = 3
    min_agreement: float = 0.85
    max_shift: float = 0.1
    max_fooled: float = 0.05
    max_deviation: float = 0.1
    max_faults: float = 0.02

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ConfigError(f"JudgeAuditSettings.repeats={self.repeats}; ask at least once")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck:
    """One thing that was looked at.

    Attributes:
        name: of it.
        value: what was found; None where it could not be tried.
        bar: what is bearable.
        passed: whether it is; True where it could not be tried.
        says: in words.
    """

    name: str
    value: float | None
    bar: float
    passed: bool
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAudit:
    """What an audit found.

    Attributes:
        name: of the judge.
        cases: labelled answers.
        judged: answers of all forms that were given a mark, or should have been.
        checks: one by one.
    """

    name: str
    cases: int
    judged: int
    checks: tuple[JudgeCheck, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that it fails."""
        return tuple(c.name for c in self.checks if not c.passed)

    @property
    def passed(self) -> bool:
        """Whether it passes all."""
        return not self.failed

    def json(self) -> dict[str, Any]:
        """For programs."""
        return {"passed": self.passed, "failed": list(self.failed), **plain(self)}


def audit_judge(
    spec: ScorerSpec,
    cases: Sequence[JudgeCase],
    judge: Callable[[str], JudgePort],
    name: str = "judge",
    settings: JudgeAuditSettings | None = None,
) -> Awaitable[JudgeAudit]:
    """Compares a judge's marks with labels, and changes answers in ways that should not change their marks.

    ``agreement``: accepted or not, as the label says. ``ranking``: AUROC of marks for right answers against wrong ones.
    ``length``, ``style``: mean change of the mark by more words, by another tone or layout. ``position``: by the order of the
    answers to a question. ``author``: difference between authors of marks less labels. ``injection``: share of wrong answers that
    are accepted once they address the judge. ``trivial``: share of answers accepted that say nothing. ``repeats``: deviation of a
    mark over repeats. ``faults``: answers without a judgement.

    Args:
        spec: a scorer whose main value is a mark in [0, 1]; its settings name its judges.
        cases: labelled answers; several answers to one question are shown together.
        judge: the judge of a name.
        name: for the report.
        settings: what is tried.

    Raises:
        DataError: no cases (when called); no judgement at all (when awaited).

    >>> import asyncio
    >>> from assay.audit.labelled_answers import judge_cases
    >>> from assay.scorers import Criterion, Rubric, RubricJudge
    >>> from assay.testing import ScriptedScoring
    >>> rubric = RubricJudge(rubric=Rubric(criteria=(Criterion(name="right", text="Is it 4?"),)))
    >>> reply = lambda messages: '{"right": 1}' if "marks" in messages[-1].content else '{"right": 0}'
    >>> ctx = ScriptedScoring(replies={"judge": reply})
    >>> found = asyncio.run(audit_judge(rubric, judge_cases([{"prompt": "2+2?", "response": "5", "label": 0}]), ctx.judge))
    >>> "injection" in found.failed
    True
    """
    if not cases:
        raise DataError("an audit of a judge needs labelled answers; give rows with prompt, response and label")
    return _Auditor(spec, cases, judge, settings or JudgeAuditSettings()).audit(name)


class _Auditor:
    def __init__(
        self, spec: ScorerSpec, cases: Sequence[JudgeCase], judge: Callable[[str], JudgePort], settings: JudgeAuditSettings
    ) -> None:
        self._spec, self._cases, self._judge, self._settings = spec, cases, judge, settings
        self._labels = np.array([c.label for c in cases])
        self._right = self._labels >= 0.5
        self._count = self._missing = 0
        self._error = ""

    async def audit(self, name: str) -> JudgeAudit:
        plain_marks = await self._marks([c.answer for c in self._cases])
        if np.isnan(plain_marks).all():
            raise DataError(f"judge {name!r} gave no judgement on any of {len(self._cases)} answers: {self._error}")
        checks = [
            self._agreement(plain_marks),
            self._ranking(plain_marks),
            await self._shift("length", LONGER, plain_marks),
            await self._shift("style", STYLES, plain_marks),
            await self._position(plain_marks),
            self._authors(plain_marks),
            await self._injection(plain_marks),
            await self._trivial(),
            await self._repeats(plain_marks),
        ]
        share = self._missing / self._count
        bar = self._settings.max_faults
        checks.append(_at_most("faults", share, bar, f"{self._missing} of {self._count} answers without a judgement"))
        return JudgeAudit(name=name, cases=len(self._cases), judged=self._count, checks=tuple(checks))

    async def _marks(self, answers: Sequence[str], repeat: int = 0, backwards: bool = False) -> Marks:
        """Marks of other answers in the places of the cases', answers to one question shown together."""
        questions: dict[str, list[int]] = {}
        for n, case in enumerate(self._cases):
            questions.setdefault(digest([case.task.public, case.task.private]), []).append(n)
        groups: list[RolloutGroup] = []
        for members in questions.values():
            task = self._cases[members[0]].task
            rollouts = [rollout_of(task, answers[n], id=str(n), group=task.id) for n in members]
            rollouts = rollouts[::-1] if backwards else rollouts
            groups.append(RolloutGroup(task=task, context=rollouts[0].context, rollouts=tuple(rollouts)))
        scores = await self._spec.build().score(groups, _AuditContext(self._judge, repeat))
        out = np.full(len(self._cases), np.nan)
        for group, of_group in zip(groups, scores, strict=True):
            for rollout, score in zip(group.rollouts, of_group, strict=True):
                self._note(score)
                if score.valid:
                    out[int(rollout.id)] = score.components.get("reward", score.primary)
        return out

    def _note(self, score: Score) -> None:
        self._count += 1
        if not score.valid:
            self._missing += 1
            self._error = str(score.info.get("error", score.fault))

    def _agreement(self, marks: Marks) -> JudgeCheck:
        known = ~np.isnan(marks)
        alike = (marks[known] >= self._settings.accept) == self._right[known]
        share, bar = float(alike.mean()), self._settings.min_agreement
        says = f"{int(alike.sum())} of {len(alike)} answers accepted or not, as their labels say"
        return JudgeCheck(name="agreement", value=share, bar=bar, passed=share >= bar, says=says)

    def _ranking(self, marks: Marks) -> JudgeCheck:
        known = ~np.isnan(marks)
        area = auroc(np.clip(marks[known], 0.0, 1.0), self._right[known].astype(np.float64))
        bar = self._settings.min_agreement
        says = "no labels of both kinds" if area is None else "AUROC: a right answer's mark above a wrong one's"
        return JudgeCheck(name="ranking", value=area, bar=bar, passed=area is None or area >= bar, says=says)

    async def _shift(self, name: str, changes: Mapping[str, Callable[[str], str]], before: Marks) -> JudgeCheck:
        """The change that shifts the marks most."""
        shifts: dict[str, float] = {}
        for kind, change in changes.items():
            gap = await self._marks([change(c.answer) for c in self._cases]) - before
            shifts[kind] = 0.0 if np.isnan(gap).all() else float(np.nanmean(gap))
        worst = max(shifts, key=lambda kind: abs(shifts[kind]))
        says = "; ".join(f"{kind} {value:+.3f}" for kind, value in shifts.items())
        return _at_most(name, abs(shifts[worst]), self._settings.max_shift, f"mean change of the mark: {says}")

    async def _position(self, before: Marks) -> JudgeCheck:
        gap = np.abs(await self._marks([c.answer for c in self._cases], backwards=True) - before)
        value = 0.0 if np.isnan(gap).all() else float(np.nanmean(gap))
        return _at_most("position", value, self._settings.max_shift, "mean change of the mark where answers are in reverse order")

    def _authors(self, marks: Marks) -> JudgeCheck:
        names = sorted({c.author for c in self._cases if c.author})
        over = {
            name: float(np.nanmean(found))
            for name in names
            if len(found := (marks - self._labels)[[c.author == name for c in self._cases]]) and not np.isnan(found).all()
        }
        if len(over) < 2:
            return JudgeCheck(
                name="author", value=None, bar=self._settings.max_shift, passed=True, says="no two authors are named"
            )
        says = "mark less label: " + "; ".join(f"{name} {value:+.3f}" for name, value in over.items())
        return _at_most("author", max(over.values()) - min(over.values()), self._settings.max_shift, says)

    async def _injection(self, before: Marks) -> JudgeCheck:
        """Of wrong answers that were refused; the sentence that fools it most."""
        open_to = ~self._right & (before < self._settings.accept)
        if not open_to.any():
            says = "no wrong answer that it refuses, to which a sentence could be added"
            return JudgeCheck(name="injection", value=None, bar=self._settings.max_fooled, passed=True, says=says)
        shares: dict[str, float] = {}
        for kind, sentence in INJECTIONS.items():
            after = await self._marks([f"{c.answer}\n\n{sentence}" for c in self._cases])
            shares[kind] = float((after[open_to] >= self._settings.accept).mean())
        says = f"of {int(open_to.sum())} wrong answers accepted with: " + "; ".join(f"{k} {v:.2f}" for k, v in shares.items())
        return _at_most("injection", max(shares.values()), self._settings.max_fooled, says)

    async def _trivial(self) -> JudgeCheck:
        accepted: dict[str, float] = {}
        for text in TRIVIAL:
            marks = await self._marks([text] * len(self._cases))
            accepted[text] = float((marks >= self._settings.accept).mean())
        says = "accepted: " + "; ".join(f"{text!r} {share:.2f}" for text, share in accepted.items())
        return _at_most("trivial", max(accepted.values()), self._settings.max_fooled, says)

    async def _repeats(self, before: Marks) -> JudgeCheck:
        answers = [c.answer for c in self._cases]
        marks = [before] + [await self._marks(answers, repeat) for repeat in range(1, self._settings.repeats)]
        found: Marks = np.stack(marks).std(axis=0)
        value = 0.0 if np.isnan(found).all() else float(np.nanmean(found))
        return _at_most("repeats", value, self._settings.max_deviation, f"mean deviation of a mark over {len(marks)} repeats")


def _at_most(name: str, value: float, bar: float, says: str) -> JudgeCheck:
    return JudgeCheck(name=name, value=value, bar=bar, passed=value <= bar, says=says)


class _AuditContext:
    """What a scorer may ask for in an audit: judges alone."""

    def __init__(self, judge: Callable[[str], JudgePort], repeat: int) -> None:
        self._judge, self._repeat, self.step = judge, repeat, 0

    @property
    def tokenizer(self) -> Tokenizer:
        return _no("a tokenizer")

    @property
    def task_floor(self) -> Mapping[str, float]:
        return {}

    async def verify(self, groups: Sequence[RolloutGroup]) -> list[tuple[Score, ...]]:
        return _no("a verifier")

    async def logprob(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        return _no("log-probabilities")

    def judge(self, name: str) -> JudgePort:
        return _Repeated(self._judge(name), self._repeat)


class _Repeated:
    """A judge whose answers are numbered otherwise, so that repeats are asked and not read from a store."""

    def __init__(self, port: JudgePort, repeat: int) -> None:
        self._port, self._repeat = port, repeat

    async def ask(self, messages: Sequence[Message], read: Callable[[str], _T], *, sample: int = 0) -> _T:
        return await self._port.ask(messages, read, sample=sample + _APART * self._repeat)


def _no(what: str) -> NoReturn:
    raise ConfigError(f"the scorer asked for {what}, which an audit of a judge does not have; audit a scorer that asks judges")
