"""What scorers promise, as a check that a user's own can be held to, and a context that answers by a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import canonical
from assay.core.errors import AssayError, DataError, EngineError, UnknownNameError
from assay.core.protocols import Tokenizer, Verifier
from assay.core.rollout import Ids
from assay.core.score import Fault, Score
from assay.core.scoring import JudgePort, RolloutGroup, Scorer, ScorerSpec
from assay.core.task import Message
from assay.testing.contracts import ContractError, Report, require, wait_for
from assay.testing.fakes import CharCodec
from assay.verify.abilities import abilities_of
from assay.verify.exact import ExactMatch
from assay.verify.verdict import judge as verdict_of

__all__ = ["ScriptedScoring", "check_scorer"]

_T = TypeVar("_T")
Reply = Callable[[Sequence[Message]], str]
"""A judge: messages to what it says; it may raise EngineError."""


def _even(row: Ids, model: str) -> NDArray[np.float32]:
    return np.full(len(row), -1.0, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedScoring:
    """A `ScoreContext` without a learner or a server.

    Attributes:
        verifier: of the tasks.
        logprob_of: log-probabilities ``[len(row)]`` of a row by a model; -1 of each token by default.
        replies: what each judge says, by its name.
        tokenizer: of the policy.
        step: global steps finished.
        asked: judges and models that were asked, in order; judges as ``judge:NAME``.
    """

    verifier: Verifier = field(default_factory=ExactMatch)
    logprob_of: Callable[[Ids, str], NDArray[np.float32]] = _even
    replies: Mapping[str, Reply] = field(default_factory=dict[str, Reply])
    tokenizer: Tokenizer = field(default_factory=lambda: CharCodec("".join(map(chr, range(32, 127))) + "\n"))
    step: int = 0
    asked: list[str] = field(default_factory=list[str])

    @property
    def task_floor(self) -> Mapping[str, float]:
        """What the verifier declares."""
        return abilities_of(self.verifier).floors

    async def verify(self, groups: Sequence[RolloutGroup]) -> list[tuple[Score, ...]]:
        """The verifier's verdicts, in this process."""
        return [tuple(verdict_of(self.verifier, g.task, r) for r in g.rollouts) for g in groups]

    async def logprob(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """By the script."""
        self.asked.append(model)
        return [self.logprob_of(row, model) for row in rows]

    def judge(self, name: str) -> JudgePort:
        """Who replies under that name.

        Raises:
            UnknownNameError: nobody.
        """
        self.asked.append(f"judge:{name}")
        if name not in self.replies:
            raise UnknownNameError("judge", name, self.replies)
        return _Scripted(name, self.replies[name])


@dataclass(frozen=True, slots=True)
class _Scripted:
    name: str
    reply: Reply

    async def ask(self, messages: Sequence[Message], read: Callable[[str], _T], *, sample: int = 0) -> _T:
        said = self.reply(messages)
        try:
            return read(said)
        except (ValueError, DataError) as error:
            raise EngineError(f"judge {self.name!r}: {error}; it said {said[:200]!r}") from None


def check_scorer(
    spec: ScorerSpec, cases: Sequence[tuple[RolloutGroup, Sequence[float | None]]], ctx: ScriptedScoring | None = None
) -> Report:
    """Holds a scorer to cases whose main values are known, and to what every scorer promises.

    It gives one score per rollout; asks only the judges and models that it declares; gives the same for the same, whatever the
    order of rollouts and groups; gives no component below its floor, and names the floor of each; continues alike from a saved
    state; and where its judges fail, gives faults and never numbers.

    Args:
        spec: settings.
        cases: groups, with the right main value of each rollout's score; None for a fault.
        ctx: what it may ask for.

    Raises:
        ContractError: it breaks one of these.
    """
    subject, ctx = f"scorer {type(spec).__name__}", ctx or ScriptedScoring()
    require(len(cases) > 0, subject, "there is no case to check it with")
    groups = [group for group, _ in cases]
    scorer = spec.build()
    found = _scores(scorer, groups, ctx, subject)
    both = [r for r, score in found.items() if {"correct", "reward"} <= score.components.keys()]
    mend = "give the mixture alone as 'reward', or leave 'reward' out and weigh the components in the objective (Scalarise)"
    learned = bool(getattr(spec, "weighted_sum", False))  # the stage then learns from 'reward', and measures by 'correct'
    require(
        not both or learned, subject, f"gave {both[:1]} both 'correct' and 'reward': a policy learns from 'correct' alone; {mend}"
    )
    for group, wanted in cases:
        for rollout, value in zip(group.rollouts, wanted, strict=True):
            score = found[rollout.id]
            got = score.primary if score.valid else None
            same = got is value or (got is not None and value is not None and bool(np.isclose(got, value, atol=1e-6)))
            require(same, subject, f"gave {got} for task {group.task.id!r}, answer {rollout.text!r}; {value} is right")
    allowed = {*spec.models, *(f"judge:{name}" for name in spec.judges)}
    require(set(ctx.asked) <= allowed, subject, f"asked {sorted(set(ctx.asked) - allowed)}, which its settings do not declare")
    turned = [replace(g, rollouts=g.rollouts[::-1]) for g in groups[::-1]]
    again = _scores(spec.build(), turned, ctx, subject)
    require(
        {k: _plain(v) for k, v in again.items()} == {k: _plain(v) for k, v in found.items()}, subject, "scores depend on order"
    )
    _floors(scorer, found.values(), ctx, subject)
    _resumes(spec, scorer, groups, ctx, subject)
    if spec.judges:
        _survives(spec, groups, found, ctx, subject)
    passed = ("values", "asks what it declares", "same for the same", "floors", "exact resume", "faults of judges")
    return Report(subject=subject, passed=passed if spec.judges else passed[:-1], numbers={"rollouts": len(found)})


def _scores(scorer: Scorer, groups: Sequence[RolloutGroup], ctx: ScriptedScoring, subject: str) -> dict[str, Score]:
    found = wait_for(_await_scores(scorer, groups, ctx))
    parts: Sequence[Any] = found
    flat = any(not isinstance(scores, Sequence) for scores in parts)
    require(not flat, subject, "gave single scores; give a list of scores for each group")
    other = [x for scores in parts for x in scores if not isinstance(x, Score)]
    require(not other, subject, f"gave {other[:1]} where a Score of a rollout is due")
    sizes, wanted = [len(scores) for scores in found], [len(g.rollouts) for g in groups]
    require(sizes == wanted, subject, f"gave {sizes} scores for groups of {wanted} rollouts")
    return {r.id: x for g, scores in zip(groups, found, strict=True) for r, x in zip(g.rollouts, scores, strict=True)}


async def _await_scores(scorer: Scorer, groups: Sequence[RolloutGroup], ctx: ScriptedScoring) -> Sequence[Sequence[Score]]:
    return await scorer.score(groups, ctx)


def _plain(score: Score) -> tuple[dict[str, float], dict[str, float], Fault]:
    return dict(score.components), dict(score.columns), score.fault


def _floors(scorer: Scorer, found: Iterable[Score], ctx: ScriptedScoring, subject: str) -> None:
    floor = scorer.floor(ctx)
    for score in found:
        for name, value in score.components.items():
            require(name in floor, subject, f"gives the component {name!r}, of which its floor {dict(floor)} says nothing")
            require(value >= floor[name], subject, f"gave {value} as {name!r}, below its floor {floor[name]}")


def _resumes(spec: ScorerSpec, scorer: Scorer, groups: Sequence[RolloutGroup], ctx: ScriptedScoring, subject: str) -> None:
    try:
        state = json.loads(canonical(scorer.state_dict()))
    except AssayError as error:
        raise ContractError(f"{subject}: its state is not plain: {error}") from error
    copy = spec.build()
    copy.load_state_dict(state)
    later = replace(ctx, step=ctx.step + 1)
    ours, theirs = _scores(scorer, groups, later, subject), _scores(copy, groups, later, subject)
    same = {k: _plain(v) for k, v in ours.items()} == {k: _plain(v) for k, v in theirs.items()}
    require(same, subject, "after state_dict and load_state_dict the scores differ")


def _survives(
    spec: ScorerSpec, groups: Sequence[RolloutGroup], found: Mapping[str, Score], ctx: ScriptedScoring, subject: str
) -> None:
    def silent(messages: Sequence[Message]) -> str:
        raise EngineError("no answer in 6 attempts")

    try:
        silenced = _scores(spec.build(), groups, replace(ctx, replies=dict.fromkeys(spec.judges, silent)), subject)
    except EngineError as error:
        raise ContractError(
            f"{subject}: raises where a judge gives no answer ({error}); give the rollout a fault (assay.core.unanswered_score)"
        ) from error
    faults = [x for x in silenced.values() if not x.valid]
    others = [dict(x.components) for name, x in silenced.items() if x.valid and _plain(x) != _plain(found[name])]
    require(
        bool(faults) and not others,
        subject,
        f"gave {others[:1] or 'numbers alone'} where its judges gave no answer; give a fault (assay.core.unanswered_score)",
    )
