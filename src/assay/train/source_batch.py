"""A step's batch with rows from the stage's sources: joined to the groups of the same prompt, or as groups of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch, pack
from assay.core.batch_join import join_batches
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.group import Draw, Group
from assay.core.rollout import ids_of
from assay.core.score import ROW_WEIGHT, Score
from assay.core.task import Context, Task, question_text
from assay.objective.preferences import preference_batch
from assay.rollout.decode_text import AnswerReader
from assay.train.offline_rows import in_order
from assay.train.rewarded_rows import RewardedRow
from assay.train.row_sources import RowSource, preferences_in, rows_in
from assay.train.scoring import grade_rollouts

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["Joined", "SourceRows", "join_groups", "join_sources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A rollout made of a row, and where it goes.

    Attributes:
        group: with one rollout or, of a question of its own, several.
        rows: that its rollouts are of, in their order; none of what a run sampled itself.
        host: key of the step's group that it joins; empty for none.
    """

    group: Group
    rows: tuple[RewardedRow, ...]
    host: str = ""


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The rows of a source by their questions, as a stage reads them once.

    Attributes:
        source: settings.
        questions: each question with its rows, in the order of the data.
    """

    source: RowSource
    questions: dict[str, list[RewardedRow]] = field(default_factory=dict[str, list[RewardedRow]])

    @classmethod
    def of(cls, source: RowSource) -> SourceRows:
        """The rows, read."""
        made = cls(source)
        for row in rows_in(source):
            made.questions.setdefault(row.question, []).append(row)
        return made

    def of_step(self, seed: int, step: int) -> list[list[RewardedRow]]:
        """The questions of a step, counted from 0, of a source that is walked by itself: a pure function of its arguments."""
        n = self.source.rows
        every = list(self.questions.values())
        return [every[i] for i in in_order("source", seed, len(every), range(step * n, (step + 1) * n))]


async def join_sources(s: ReinforceRunner, batch: Batch | None, groups: Sequence[Group]) -> Batch | None:
    """The batch of a step with the rows of the stage's sources; they alone where nothing else was to be learned from.

    Args:
        s: the stage at work.
        batch: as the composer made it.
        groups: of the step, which rows may join.

    Raises:
        ConfigError: rows are to join groups, and a composer of the user's own does not name rollouts.
    """
    for number, source in enumerate(s.stage.sources):
        if source.stream == "preference":
            batch = _with(batch, _preferences(s, source), [None] * source.rows)
            continue
        rows = s.source_rows(number)
        joined = await _host_rows(s, rows, groups) if source.match == "prompt" else list(_own(s, rows))
        for stream in dict.fromkeys(row.stream for j in joined for row in j.rows):
            batch = join_groups(batch, [_only(j, stream) for j in joined], stream, groups)
    return batch


def join_groups(batch: Batch | None, joined: Sequence[Joined], stream: str, groups: Sequence[Group]) -> Batch | None:
    """The batch with rollouts that nobody sampled in this step, in their stream, each at its host or as a group of its own.

    Args:
        batch: as the composer made it; None for nothing.
        joined: the rollouts.
        stream: of their rows.
        groups: of the step.
    """
    placed, numbers = _place_rows(batch, joined, groups)
    return _with(batch, _pack_rows(placed, stream), numbers) if placed else batch


def _only(joined: Joined, stream: str) -> Joined:
    """What of it is of a stream."""
    at = [i for i, row in enumerate(joined.rows) if row.stream == stream]
    g = joined.group
    group = replace(g, rollouts=tuple(g.rollouts[i] for i in at), scores=tuple(g.scores[i] for i in at))
    return replace(joined, group=group, rows=tuple(joined.rows[i] for i in at))


# ---- groups of rows -----------------------------------------------------------------------------------------------------


async def _host_rows(s: ReinforceRunner, rows: SourceRows, groups: Sequence[Group]) -> list[Joined]:
    """Rows that answer what the step asked, graded by the stage's scorer unless they have a reward."""
    reader, found = AnswerReader.of(s.parts.tokenizer), list[tuple[Group, RewardedRow, Context]]()
    for group in groups:
        context = group.rollouts[0].context
        question = "\n".join(question_text(group.task.public_view().messages))
        for n, row in enumerate(rows.questions.get(question, ())[: rows.source.rows]):
            if context.prefill is not None:
                raise ConfigError(
                    f"Reinforce.sources: the guidance forces the first tokens of answers to task {group.task.id!r}, which the "
                    f"answer of {row.place} does not go on from; use match='own', or another guidance"
                )
            found.append((group, row, replace(context, key=f"{context.key}/{row.stream}-{n}")))
    version = s.parts.engine.info().version
    rollouts = [row.rollout(f"{c.key}/0", c, reader, version) for _, row, c in found]
    unknown = [i for i, (_, row, _) in enumerate(found) if row.reward is None]
    posed = [(found[i][0].task, found[i][2]) for i in unknown]
    graded = await grade_rollouts(s, posed, [rollouts[i] for i in unknown]) if posed else []
    scores = {i: g.scores[0] for i, g in zip(unknown, graded, strict=True)}
    return [
        Joined(
            group=replace(group, rollouts=(rollouts[i],), scores=(scores.get(i) or _score_row(row, _metric(group)),)),
            rows=(row,),
            host=group.key,
        )
        for i, (group, row, _) in enumerate(found)
    ]


def _own(s: ReinforceRunner, rows: SourceRows) -> Iterator[Joined]:
    """Rows that are walked by themselves, each question a group."""
    reader, version = AnswerReader.of(s.parts.tokenizer), s.parts.engine.info().version
    for place, answers in enumerate(rows.of_step(s.parts.run.seed, s.parts.stage_step)):
        opening = answers[0].demonstration.opening
        key = f"s{s.parts.step}/{rows.source.stream}/{place}"
        messages = tuple({"role": m.role, "content": m.content} for m in opening)
        task = Task(
            id=answers[0].place,
            domain="rows",
            arm="rows",
            level=0,
            split="train",
            index=0,
            public=FrozenMap({"messages": messages}),
        )
        rollouts = tuple(
            row.rollout(f"{key}/{n}", Context(key=key, group=key, task=task.public_view(), messages=opening), reader, version)
            for n, row in enumerate(answers)
        )
        scores = tuple(_score_row(row, "reward") for row in answers)
        group = Group(key=key, task=task, draw=Draw("rows", 0, 1.0), rollouts=rollouts, scores=scores)
        yield Joined(group=group, rows=tuple(answers))


def _score_row(row: RewardedRow, name: str) -> Score:
    """What a row says of itself; 0 where nobody reads it, as was looked at before the run."""
    return Score(components={name: row.reward or 0.0})


def _metric(group: Group) -> str:
    """The component that is the rollouts' own metric in a group."""
    names = next((list(x.components) for x in group.scores if x.valid), ["reward"])
    return next((n for n in ("correct", "reward") if n in names), names[0])


# ---- batches ------------------------------------------------------------------------------------------------------------


def _pack_rows(joined: Sequence[Joined], stream: str) -> Batch:
    made = pack([j.group for j in joined])
    made = made.merge_groups(range(len(joined)), [stream] * len(joined))
    weights = np.array([w for j in joined for w in ([row.weight for row in j.rows] or [1.0] * len(j.group.rollouts))], np.float64)
    return made.with_rollouts(**{ROW_WEIGHT: weights}) if (weights != 1.0).any() else made


def _preferences(s: ReinforceRunner, source: RowSource) -> Batch:
    p, rows, n = s.parts, preferences_in(source), source.rows
    wanted = in_order("source preferences", p.run.seed, len(rows), range(p.stage_step * n, (p.stage_step + 1) * n))
    made = preference_batch(
        [rows[i] for i in wanted], p.tokenizer.render, lambda text: ids_of([*p.tokenizer.encode(text), p.tokenizer.eos])
    )
    ids = np.array([f"s{p.step}/preference/{i}" for i in range(len(made.rollouts["group"]))], np.str_)
    made = made.with_rollouts(id=ids)
    return made.with_rollouts(**{ROW_WEIGHT: np.full(len(ids), source.weight)}) if source.weight != 1.0 else made


def _place_rows(batch: Batch | None, joined: Sequence[Joined], groups: Sequence[Group]) -> tuple[list[Joined], list[int | None]]:
    """Those that there is a place for, each with the number of its host's group in the batch, None for a group of its own.

    A row goes with the group that it would have joined, where the composer left that out, and where it could not be graded.
    """
    graded = [j for j in joined if any(x.valid for x in j.group.scores)]
    if batch is None or not any(j.host for j in graded):
        own = [j for j in graded if not j.host]
        return own, [None] * len(own)
    if "id" not in batch.rollouts:
        raise ConfigError(
            "Reinforce.sources: rows are to join the groups of their prompts, and the composer's batch does not name its "
            "rollouts (column 'id'); use a source with match='own', or the composer Compose"
        )
    place = dict(zip(batch.rollout("id").tolist(), batch.rollout("group").tolist(), strict=True))
    at = {g.key: next((place[r.id] for r in g.rollouts if r.id in place), None) for g in groups}
    there = [j for j in graded if not j.host or at.get(j.host) is not None]
    return there, [at[j.host] if j.host else None for j in there]


def _with(batch: Batch | None, rows: Batch, hosts: Sequence[int | None]) -> Batch:
    """The batch with the rows, whose groups get the numbers of their hosts or new ones."""
    if batch is None:
        return rows
    free = int(batch.rollout("group").max()) + 1
    taken = [free + i if host is None else host for i, host in enumerate(hosts)]
    joined = join_batches(batch, rows, np.array(taken, np.int64))
    if ROW_WEIGHT in joined.rollouts:  # rows that name none count once
        joined = joined.with_rollouts(**{ROW_WEIGHT: np.nan_to_num(joined.rollout(ROW_WEIGHT), nan=1.0)})
    return joined
