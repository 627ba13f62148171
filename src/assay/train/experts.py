"""Expert rollouts: the family's oracle plays the contexts that the policy played, scored alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.manifest import Manifest
from assay.core.protocols import EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Ids, Span, Stop, ids_of
from assay.core.seeds import generator
from assay.core.task import Context
from assay.rollout.decode_text import AnswerReader
from assay.rollout.spec import PlayerSpec
from assay.train.scoring import grade_rollouts

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["Oracle", "expert_groups"]


async def expert_groups(s: ReinforceRunner, groups: Sequence[Group]) -> list[Group]:
    """For each group one of the same key with a single rollout, the oracle's; none unless the stage asks for experts.

    The rollout goes through the same environment, opening and verifier as the policy's own. Its tokens have no probability under
    any sampler: ``logp_engine`` is NaN, so that an objective that reads it there fails instead of learning from an invented one.

    Raises:
        ConfigError: the family has no oracle, or a guidance forced the first tokens of an answer.
    """
    if not s.stage.experts:
        return []
    contexts = [replace(g.rollouts[0].context, key=f"{g.rollouts[0].context.key}/expert") for g in groups]
    answers = {f"{c.key}/0": _turns(s, g, c) for g, c in zip(groups, contexts, strict=True)}
    oracle = Oracle(answers, s.parts.engine.info())
    parts = s.parts.sampler_parts(s.parts.run.sampling, oracle)
    rollouts = await PlayerSpec(max_turns=s.stage.sampler.max_turns).build(parts).collect(contexts, 1)
    graded = await grade_rollouts(s, [(g.task, c) for g, c in zip(groups, contexts, strict=True)], rollouts)
    return [replace(g, rollouts=a.rollouts, scores=a.scores) for g, a in zip(groups, graded, strict=True)]


def _turns(s: ReinforceRunner, group: Group, context: Context) -> list[Ids]:
    """What the oracle says at each turn, with its end token."""
    source, task = s.parts.run.tasks, group.task
    if context.prefill is not None:
        raise ConfigError(
            f"Reinforce.experts: the guidance forces the first tokens of answers to task {task.id!r}, which an oracle's answer "
            "does not go on from; use one or the other"
        )
    turns = source.trace(task, 0.0, generator("expert", s.parts.run.seed, task.split, task.index))
    if turns is None:
        raise ConfigError(
            f"task family {source.name!r} has no oracle, so Reinforce.experts=True has nobody to ask: use False, or a family "
            "with traces"
        )
    reader = AnswerReader.of(s.parts.tokenizer)
    said = [reader.format_answer(t.content) for t in turns if t.role == "assistant"]
    return [ids_of([*s.parts.tokenizer.encode(text), s.parts.tokenizer.eos]) for text in said]


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """An engine that says what it was told to; implements `assay.core.protocols.Engine`.

    Attributes:
        answers: rollout id to the tokens of each of its calls, in order.
        like: what the policy's engine says of itself.
    """

    answers: Mapping[str, Sequence[Ids]]
    like: EngineInfo

    async def generate(self, request: Request) -> Completion:
        """The next turn, cut off where the request's limit cuts off the policy's; nothing at all when the oracle is done."""
        rollout, _, number = request.id.rpartition("#")
        turns, limit = self.answers[rollout], request.sampling.max_new_tokens
        ids = turns[int(number)] if int(number) < len(turns) else ids_of([])
        return Completion(
            ids=ids[:limit],
            logp_engine=np.full(len(ids[:limit]), np.nan, np.float32),
            spans=(Span(self.like.version, 0, len(ids[:limit])),) if len(ids) else (),
            stop=Stop.DONE if 0 < len(ids) <= limit else Stop.LENGTH,
            sampling=replace(request.sampling, temperature=1.0),
        )

    async def abort(self, ids: Sequence[str]) -> None:
        """Nothing runs."""

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None:
        """It has no weights."""

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """``[len(row)]`` NaN: it has no distribution."""
        return [np.full(len(row), np.nan, np.float32) for row in rows]

    async def checksums(self) -> None:
        """It has no weights."""

    def info(self) -> EngineInfo:
        """What it was made like."""
        return self.like
