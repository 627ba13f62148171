"""A model behind a server that grades answers by a rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.core.canon import plain
from assay.core.config import from_dict
from assay.core.errors import DataError, EngineError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.scoring import JudgePort, RolloutGroup, ScoreContext, StatelessScorer, score_each, unanswered_score
from assay.core.task import Task
from assay.scorers.rubric import Rubric
from assay.verify.reward_function import prompt_of

__all__ = ["RubricJudge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricJudge(StatelessScorer):
    """Rewards by a judge and a rubric: component ``reward`` (`Rubric.reward`), and the score of each criterion under its name.

    All rollouts are judged at once, as far as the judge's ``concurrency`` allows. One on which there is no judgement is an
    ``infra`` fault, never a 0.

    Attributes:
        judge: name in ``Run.judges``.
        rubric: for all tasks; when None each task's own, ``private["rubric"]`` as plain data.

    >>> RubricJudge().judges
    ('judge',)
    """

    judge: str = "judge"
    rubric: Rubric | None = None

    @property
    def judges(self) -> tuple[str, ...]:
        """The one."""
        return (self.judge,)

    @property
    def by_group(self) -> bool:
        """True: judges answer while others are sampled."""
        return True

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """A judgement of each rollout.

        Raises:
            DataError: a task without a rubric; names it.
        """
        judge = ctx.judge(self.judge)
        return await score_each(groups, lambda task, rollout: self._score(judge, self._of(task), task, rollout))

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """0 of everything."""
        return {"reward": 0.0} | {c.name: 0.0 for c in (self.rubric.criteria if self.rubric else ())}

    async def _score(self, judge: JudgePort, rubric: Rubric, task: Task, rollout: Rollout) -> Score:
        try:
            scores = await judge.ask(rubric.question(prompt_of(task), rollout.text), rubric.scores)
        except EngineError as error:
            return unanswered_score(error)
        return Score(components={"reward": rubric.reward(scores), **scores})

    def _of(self, task: Task) -> Rubric:
        if self.rubric is not None:
            return self.rubric
        if "rubric" not in task.private:
            raise DataError(f"task {task.id!r} has no private 'rubric'; give it one, or RubricJudge a rubric for all tasks")
        return from_dict(Rubric, plain(task.private["rubric"]))
