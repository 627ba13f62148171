"""Reward without a verifier: how probable the reference answer is behind the policy's own reasoning."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import State, Tokenizer
from assay.core.rollout import Ids, Rollout, ids_of
from assay.core.score import Fault, Score
from assay.core.scoring import RolloutGroup, ScoreContext
from assay.core.task import Task
from assay.scorers.spread import SpreadFilter, SpreadHistory
from assay.verify.user_reward import abstained, abstention

__all__ = ["ReferenceProbability", "ReferenceScorer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceProbability:
    """RLPR (Yu et al. 2025, arXiv 2506.18254): ``reward = max(0, b - b0)``.

    ``b`` is the mean probability of the reference answer's tokens where the policy's own answer stood, behind its own reasoning;
    ``b0`` the same without any reasoning, by the weights that the stage started from. The mean is over probabilities and not over
    their logarithms, so that one rare token does not decide. Probabilities are at temperature 1. The reference's tokens enter no
    row that is learned from.

    Components: ``reward``, ``probability`` (b), ``base`` (b0), and ``format``: 1 where ``opening`` and ``closing`` stand once
    each and the answer ends the text. An answer without ``opening`` has nowhere to put the reference: its ``probability`` and
    ``reward`` are 0 where the prompt asks for ``opening`` or another answer of its group has it. Where neither is so the task
    is not posed for this scorer: the group abstains, without a reward, and is counted in ``reference/abstained``. The paper's
    final reward is ``Scalarise(weights=(("reward", 0.9), ("format", 0.1)))``.

    With ``spread``, each rollout of a group that differs too little carries ``admitted`` 0 (`Score.columns`), else 1;
    ``Reinforce(filter=Admitted())`` leaves such groups out. The paper's penalty on repetition is a credit term,
    `assay.objective.NgramPenalty`. ``b0`` costs one row more per group in each step and is not kept: what a resumed run computes
    is then what the run itself would have.

    Attributes:
        opening: what an answer begins with, behind the reasoning.
        closing: what it ends with; empty for the end of the text.
        reference: field of the task's private part that holds the answer; of a list the first.
        base: the anchor that gives ``b0``.
        spread: which groups are admitted; None admits all and gives no column.

    Raises:
        ConfigError: no opening, or no name of a field.

    >>> ReferenceProbability().models
    ('policy', 'base')
    """

    opening: str = "<answer>"
    closing: str = "</answer>"
    reference: str = "answer"
    base: str = "base"
    spread: SpreadFilter | None = field(default_factory=SpreadFilter)

    def __post_init__(self) -> None:
        if not self.opening or not self.reference:
            raise ConfigError(
                f"ReferenceProbability: opening={self.opening!r}, reference={self.reference!r}; say what an answer begins "
                "with, as '<answer>', and which private field holds the reference"
            )

    @property
    def models(self) -> tuple[str, ...]:
        """The policy and the base."""
        return ("policy", self.base)

    @property
    def judges(self) -> tuple[str, ...]:
        """None."""
        return ()

    def build(self) -> ReferenceScorer:
        """The scorer, with an empty history."""
        return ReferenceScorer(self)


class ReferenceScorer:
    """`ReferenceProbability` at work."""

    def __init__(self, spec: ReferenceProbability) -> None:
        self.spec = spec
        self._history = SpreadHistory(spec.spread) if spec.spread else None
        self._metrics: dict[str, float] = {}

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """Two forward passes: one over a row per rollout by the policy, one over a row per group by the base.

        Raises:
            DataError: a task without a reference that is text; names it.
        """
        spec, code = self.spec, ctx.tokenizer
        wanted = [ids_of(code.encode(reference_of(g.task, spec.reference))) for g in groups]
        opening = code.encode(spec.opening)
        starts = [[reasoning_of(r, code, spec.opening) for r in g.rollouts] for g in groups]
        rows = [join_ids(s, y) for of_group, y in zip(starts, wanted, strict=True) for s in of_group if s is not None]
        asked = [next((r.calls[0].prefix for r in g.rollouts if r.calls), ids_of([])) for g in groups]
        bare = [join_ids(prompt, opening, y) for prompt, y in zip(asked, wanted, strict=True)]
        found, base = iter(await ctx.logprob(rows)), await ctx.logprob(bare, spec.base)
        scores: list[list[Score]] = []
        for g, of_group, y, b0 in zip(groups, starts, wanted, base, strict=True):
            if not asks_for(g, spec.opening) and not any(s is not None for s in of_group):
                scores.append([abstention(f"neither the prompt nor an answer of its group has {spec.opening!r}")] * len(of_group))
                continue
            behind = [0.0 if s is None else mean_probability(next(found), len(y)) for s in of_group]
            scores.append([self._score(r, b, mean_probability(b0, len(y))) for r, b in zip(g.rollouts, behind, strict=True)])
        return self._admit_scores(ctx.step, scores)

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """0 of everything: probabilities."""
        return {"reward": 0.0, "probability": 0.0, "base": 0.0, "format": 0.0}

    def metrics(self) -> Mapping[str, float]:
        """``reference/admitted``: share of the groups; ``reference/spread``: running mean of their deviations.

        Where any group abstained, ``reference/abstained``: their share.
        """
        return self._metrics

    def state_dict(self) -> State:
        """Of the history."""
        return self._history.state_dict() if self._history else {}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        if self._history:
            self._history.load_state_dict(state)

    def _score(self, rollout: Rollout, b: float, b0: float) -> Score:
        form = float(well_formed(rollout.text, self.spec.opening, self.spec.closing))
        return Score(
            components={"reward": max(0.0, b - b0), "probability": b, "base": b0, "format": form},
            fault=Fault.NONE,
            info=FrozenMap({"verdict": "formed" if form else "not formed"}),
        )

    def _admit_scores(self, step: int, scores: list[list[Score]]) -> list[list[Score]]:
        judged = [of_group for of_group in scores if not any(map(abstained, of_group))]
        silent = len(scores) - len(judged)
        self._metrics = {"reference/abstained": silent / len(scores)} if silent else {}
        if self._history is None:
            return scores
        kept = self._history.admit(step, [float(np.std([x.components["reward"] for x in of_group])) for of_group in judged])
        self._metrics |= {"reference/admitted": sum(kept) / max(1, len(kept)), "reference/spread": self._history.mean or 0.0}
        admitted = iter(kept)
        return [
            of_group if any(map(abstained, of_group)) else [_with_admission(x, k) for k in [next(admitted)] for x in of_group]
            for of_group in scores
        ]


def _with_admission(score: Score, admitted: bool) -> Score:
    return Score(components=score.components, columns={"admitted": float(admitted)}, info=score.info)


def asks_for(group: RolloutGroup, opening: str) -> bool:
    """Whether a message of the prompt shows what an answer begins with."""
    return any(opening in message.content for message in group.context.messages)


def mean_probability(logp: NDArray[np.float32], last: int) -> float:
    """Mean of the probabilities of the last tokens of a row: the arithmetic one, as RLPR has it.

    >>> round(mean_probability(np.log(np.array([0.5, 0.9, 0.01, 0.9])), 3), 3)
    0.603
    """
    return float(np.exp(logp[len(logp) - last :].astype(np.float64)).mean())


def reference_of(task: Task, name: str) -> str:
    """The reference answer.

    Raises:
        DataError: there is none, or it is no text; names the task.
    """
    found: Any = task.private.get(name)
    if isinstance(found, list | tuple):
        found = next(iter(cast("Sequence[Any]", found)), None)
    if not isinstance(found, str) or not found:
        raise DataError(
            f"task {task.id!r} has no text in its private {name!r} ({found!r}), whose probability would be the reward"
        )
    return found


def reasoning_of(rollout: Rollout, code: Tokenizer, opening: str) -> Ids | None:
    """The tokens up to where the answer begins, prompt included and as they were sampled; None where none begins.

    Where ``opening`` ends inside a token, the text up to its end is encoded again from that token on.
    """
    if not rollout.calls:
        return None
    call = rollout.calls[-1]
    ids = call.completion.ids
    text = code.decode(ids)
    at = text.rfind(opening)
    if at < 0:
        return None
    end = at + len(opening)
    cut = bisect_left(range(len(ids) + 1), end, key=lambda k: len(code.decode(ids[:k])))
    while not text[:end].startswith(said := code.decode(ids[:cut])):
        cut -= 1  # a token that goes on beyond the end, or half a character, which is decoded as another
    return join_ids(call.prefix, ids[:cut], code.encode(text[len(said) : end]))


def well_formed(text: str, opening: str, closing: str) -> bool:
    """Whether opening and closing stand once each, in this order, and nothing follows.

    >>> [well_formed(t, "<a>", "</a>") for t in ("why <a>4</a>", "<a>4</a> so", "<a>4", "<a><a>4</a>")]
    [True, False, False, False]
    """
    if text.count(opening) != 1 or (closing and text.count(closing) != 1):
        return False
    return not closing or (text.rstrip().endswith(closing) and text.index(opening) < text.index(closing))


def join_ids(*parts: Ids) -> Ids:
    """Token ids behind one another."""
    return ids_of(np.concatenate(parts))
