"""Rubric weights that follow what the policy still differs in (POW3R)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError, EngineError
from assay.core.protocols import State
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.scoring import JudgePort, RolloutGroup, ScoreContext, unanswered_score
from assay.core.task import Task
from assay.scorers.rubric import Criterion, Rubric
from assay.verify.reward_function import prompt_of

__all__ = ["PolicyAwareRubric", "PolicyAwareScorer", "category_reward", "updated_weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAwareRubric:
    """A judge's verdicts per criterion, with weights that grow where a prompt's rollouts differ (POW3R, arXiv 2605.20164).

    ``R = 1/K sum_k sum_(j in k) w_j a_j s_j / sum_(j in k) w_j a_j`` over the ``K`` categories of the rubric, so that each
    keeps its share. After a prompt was scored, ``a_j`` moves towards ``clip(1 - lam + lam g_j / mean g, low, high)``, ``g_j``
    the spread of ``s_j`` over its rollouts: what all pass, or all fail, teaches nothing and loses weight. It is kept where fewer
    than ``valid`` of the rollouts have a verdict, and 1 where a whole category does not vary. The judge is asked about each
    criterion alone.

    Attributes:
        rubric: criteria with weights and categories; vetoes, saturation and interactions have no effect here.
        judge: name in ``Run.judges``.
        lam: how far weights follow the spread; 0 for a static reward.
        beta: how fast.
        low, high: bounds of ``a``.
        spread: ``std`` or ``variance``.
        valid: least share of a prompt's rollouts with a verdict.

    Raises:
        ConfigError: a number out of range.

    Unsure: published values of lam, beta, low and high, and whether the spread is a deviation or a variance.

    >>> PolicyAwareRubric(rubric=Rubric(criteria=(Criterion(name="clear", text="Is it clear?"),))).judges
    ('judge',)
    """

    rubric: Rubric
    judge: str = "judge"
    lam: float = 0.5
    beta: float = 0.5
    low: float = 0.25
    high: float = 4.0
    spread: str = "std"
    valid: float = 0.75

    def __post_init__(self) -> None:
        if not (0 <= self.lam <= 1 and 0 < self.beta <= 1 and 0 < self.low <= 1 <= self.high and 0 <= self.valid <= 1):
            raise ConfigError(
                f"PolicyAwareRubric(lam={self.lam}, beta={self.beta}, low={self.low}, high={self.high}, valid={self.valid}): use "
                "lam and valid in [0, 1], beta in (0, 1], low in (0, 1], high >= 1"
            )
        if self.spread not in ("std", "variance"):
            raise ConfigError(f"PolicyAwareRubric.spread={self.spread!r}; use 'std' or 'variance'")

    @property
    def models(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def judges(self) -> tuple[str, ...]:
        """The one."""
        return (self.judge,)

    def build(self) -> PolicyAwareScorer:
        """The scorer, all weights at 1."""
        return PolicyAwareScorer(self)


class PolicyAwareScorer:
    """`PolicyAwareRubric` at work."""

    def __init__(self, spec: PolicyAwareRubric) -> None:
        self.spec = spec
        self._alpha: dict[str, list[float]] = {}
        self._metrics: dict[str, float] = {}

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """Rewards by the weights of before; then moves them."""
        judge, criteria = ctx.judge(self.spec.judge), self.spec.rubric.criteria
        asked = [[self._verdicts(judge, g.task, r) for r in g.rollouts] for g in groups]
        found = await asyncio.gather(*(asyncio.gather(*of_group) for of_group in asked))
        out: list[list[Score]] = []
        for g, of_group in zip(groups, found, strict=True):
            alpha = self._alpha.get(g.task.content, [1.0] * len(criteria))
            out.append([self._score(verdicts, alpha) for verdicts in of_group])
            known = [[math.nan if isinstance(v, EngineError) else v for v in verdicts] for verdicts in of_group]
            self._alpha[g.task.content] = updated_weights(self.spec, alpha, np.array(known).reshape(-1, len(criteria)))
        every = [a for g in groups for a in self._alpha[g.task.content]]
        self._metrics = {"rubric/weight_min": min(every), "rubric/weight_max": max(every)} if every else {}
        return out

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """0 of everything."""
        return {"reward": 0.0} | {c.name: 0.0 for c in self.spec.rubric.criteria}

    def metrics(self) -> Mapping[str, float]:
        """``rubric/weight_min``, ``rubric/weight_max``: of the prompts just scored."""
        return self._metrics

    def state_dict(self) -> State:
        """The weights of each prompt."""
        return {"alpha": self._alpha}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        self._alpha = {name: [float(a) for a in values] for name, values in state["alpha"].items()}

    async def _verdicts(self, judge: JudgePort, task: Task, rollout: Rollout) -> list[float | EngineError]:
        async def one(criterion: Criterion) -> float | EngineError:
            alone = Rubric(criteria=(replace(criterion, weight=1.0),))
            try:
                found = await judge.ask(alone.question(prompt_of(task), rollout.text), alone.scores)
            except EngineError as error:
                return error
            return found[criterion.name]

        return await asyncio.gather(*map(one, self.spec.rubric.criteria))

    def _score(self, verdicts: Sequence[float | EngineError], alpha: Sequence[float]) -> Score:
        known = [v for v in verdicts if not isinstance(v, EngineError)]
        if len(known) < len(verdicts):
            return unanswered_score(next(v for v in verdicts if isinstance(v, EngineError)))
        named = {c.name: v for c, v in zip(self.spec.rubric.criteria, known, strict=True)}
        return Score(components={"reward": category_reward(self.spec.rubric.criteria, alpha, known), **named})


def category_reward(criteria: Sequence[Criterion], alpha: Sequence[float], scores: Sequence[float]) -> float:
    """``1/K sum_k sum_j w_j a_j s_j / sum_j w_j a_j``: multiplying all weights of a category changes nothing.

    >>> hard, soft = Criterion(name="a", text="?", category="x"), Criterion(name="b", text="?", category="y", weight=9.0)
    >>> category_reward((hard, soft), (1.0, 1.0), (1.0, 0.0))
    0.5
    """
    parts: dict[str, list[tuple[float, float]]] = {}
    for criterion, a, s in zip(criteria, alpha, scores, strict=True):
        parts.setdefault(criterion.category, []).append((criterion.weight * a, s))
    shares = [sum(w * s for w, s in part) / total for part in parts.values() if (total := sum(w for w, _ in part)) > 0]
    return sum(shares) / len(shares)


def updated_weights(
    spec: PolicyAwareRubric, alpha: Sequence[float], scores: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> list[float]:
    """The weights after a prompt's rollouts.

    Args:
        spec: settings.
        alpha: ``[criteria]`` before.
        scores: ``[rollouts, criteria]``, NaN where there is no verdict.
    """
    criteria = spec.rubric.criteria
    known = ~np.isnan(scores)
    enough = known.sum(0) >= max(1.0, spec.valid * len(scores))
    spreads = np.array([np.std(scores[known[:, j], j]) if known[:, j].any() else 0.0 for j in range(len(criteria))])
    spreads = spreads**2 if spec.spread == "variance" else spreads
    out = list(alpha)
    for category in dict.fromkeys(c.category for c in criteria):
        members = [j for j, c in enumerate(criteria) if c.category == category]
        weights = np.array([criteria[j].weight for j in members])
        total = float(weights.sum())
        mean = float(weights @ spreads[members]) / total if total else 0.0
        for j in members:
            if enough[j]:
                ratio = float(spreads[j]) / mean if mean > 0 else 1.0
                target = min(spec.high, max(spec.low, 1.0 - spec.lam + spec.lam * ratio))
                out[j] = (1.0 - spec.beta) * alpha[j] + spec.beta * target
    return out
