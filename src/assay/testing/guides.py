"""What curricula, guidance and filters promise, as checks that a user's own parts can be held to."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol

import numpy as np

from assay.core.canon import FrozenMap, canonical
from assay.core.errors import AssayError
from assay.core.group import Draw, Group, Outcome
from assay.core.protocols import (
    Curriculum,
    CurriculumSpec,
    GroupFilter,
    Guidance,
    GuidanceSpec,
    Moment,
    Posed,
    State,
)
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.seeds import generator
from assay.core.task import Context, Task
from assay.testing.contracts import ContractError, Report, require
from assay.testing.records import graded_group
from assay.verify.rollouts import rollout_of

__all__ = ["check_curriculum", "check_filter", "check_guidance"]


class _Stateful(Protocol):
    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


def read_state(part: _Stateful, subject: str) -> State:
    """A part's state, written as JSON and read again."""
    try:
        return json.loads(canonical(part.state_dict()))
    except AssayError as error:
        raise ContractError(f"{subject}: its state is not plain: {error}") from error


# ---- curricula --------------------------------------------------------------------------------------------------------


def check_curriculum(spec: CurriculumSpec, arms: Mapping[str, tuple[int, ...]], *, seed: int = 0, draws: int = 20_000) -> Report:
    """Holds a curriculum to its laws, before and after it has observed uneven successes.

    Draws are of the cells offered; the propensity is the true probability of the draw (the mean inverse propensity of each cell,
    or of each row where rows are drawn, is 1 within five standard errors); a state saved as JSON and loaded elsewhere continues
    with the very same draws; groups that were left out of the batch, or have no valid rollout, are observed without an error.

    Raises:
        ContractError: it breaks one of these.
    """
    subject = f"curriculum {type(spec).__name__}"
    cells = {(arm, level) for arm, levels in arms.items() for level in levels}
    curriculum = spec.build(arms, seed)
    numbers: dict[str, float] = {}
    for phase in ("new", "experienced"):
        numbers[f"largest error of a propensity, in standard errors ({phase})"] = _propensities(curriculum, cells, draws, subject)
        _resumes(spec, arms, seed, curriculum, subject)
        curriculum.observe(_experience(arms))
    bad = [name for name, value in curriculum.metrics().items() if not np.isfinite(value)]
    require(not bad, subject, f"metrics {bad} are not finite")
    return Report(subject=subject, passed=("cells", "true propensities", "exact resume", "finite metrics"), numbers=numbers)


def _propensities(curriculum: Curriculum, cells: set[tuple[str, int]], draws: int, subject: str) -> float:
    got = curriculum.draw(1)
    if got and got[0].index is not None:  # one by one: what a call took before may change the chances of the rest
        draws = min(draws, 4_000)
        got += [draw for _ in range(draws - 1) for draw in curriculum.draw(1)]
    else:
        got = curriculum.draw(draws)
    require(len(got) == draws, subject, f"gave {len(got)} draws, {draws} were asked for")
    inverse: dict[tuple[str, int, int | None], float] = defaultdict(float)
    lowest: dict[tuple[str, int, int | None], float] = {}
    for draw in got:
        require((draw.arm, draw.level) in cells, subject, f"drew {(draw.arm, draw.level)}, which was not offered")
        require(0.0 < draw.propensity <= 1.0, subject, f"a propensity of {draw.propensity} is no probability")
        unit = (draw.arm, draw.level, draw.index)
        inverse[unit] += 1.0 / draw.propensity
        lowest[unit] = min(lowest.get(unit, 1.0), draw.propensity)
    worst = 0.0
    for unit, total in inverse.items():
        p = lowest[unit]
        error = abs(total / draws - 1.0) / max(((1.0 / p - 1.0) / draws) ** 0.5, 1e-9)
        name = unit[:2] if unit[2] is None else unit
        require(
            error < 5.0 or abs(total / draws - 1.0) < 1e-9, subject, f"drew {name} {error:.1f} standard errors off its propensity"
        )
        worst = max(worst, error)
    return worst


def _resumes(spec: CurriculumSpec, arms: Mapping[str, tuple[int, ...]], seed: int, curriculum: Curriculum, subject: str) -> None:
    state = read_state(curriculum, subject)
    copy = spec.build(arms, seed)
    copy.load_state_dict(state)
    ours, theirs = curriculum.draw(64), copy.draw(64)
    require(ours == theirs, subject, "after state_dict and load_state_dict the draws differ")
    curriculum.load_state_dict(state)
    require(curriculum.draw(64) == ours, subject, "going back to an older state gives other draws")


def _experience(arms: Mapping[str, tuple[int, ...]]) -> list[Outcome]:
    """Outcomes whose success falls with the level; some all right, some all wrong and left out, one without a verdict."""
    rng = generator("testing/experience", 0)
    out: list[Outcome] = []
    for arm, levels in arms.items():
        for position, level in enumerate(levels):
            share = 1.0 - position / max(1, len(levels) - 1)
            for k in range(6):
                values = [float(v) for v in rng.random(4) < share]
                group = graded_group(_task(arm, level, k), values, key=f"{arm}/{level}/{k}")
                advantages = np.array(values, np.float64) - sum(values) / len(values)
                out.append(Outcome(group=group, advantages=advantages, kept=True) if group.informative else Outcome(group=group))
            nothing = graded_group(_task(arm, level, 6), [Score(components={}, fault=Fault.INFRA)] * 2, key=f"{arm}/{level}/6")
            out.append(Outcome(group=nothing))
    return out


def _task(arm: str, level: int, index: int) -> Task:
    return Task(
        id=f"{arm}/{level}/{index}",
        domain="testing",
        arm=arm,
        level=level,
        split="train",
        index=index,
        public=FrozenMap({"prompt": "?"}),
    )


# ---- guidance ---------------------------------------------------------------------------------------------------------


def check_guidance(spec: GuidanceSpec, task: Task, *, rounds: int = 64) -> Report:
    """Holds a guidance to its laws on one task, whose rollouts are all wrong, all right, or mixed.

    It poses the task at least once and comes to an end within ``rounds``; keys of contexts are its own (they begin with the
    moment's key) and never repeat; what it replaces are groups that it posed; ``next`` is pure: asked twice, it says the same,
    and so does a copy with its state, saved as JSON; no context holds the private part of a task.

    Raises:
        ContractError: it breaks one of these.
    """
    subject = f"guidance {type(spec).__name__}"
    numbers: dict[str, float] = {}
    guidance = spec.build(0)
    for step, (name, share) in enumerate({"wrong": 0.0, "mixed": 0.5, "right": 1.0}.items()):
        moment = Moment(key=f"s{step}/0", step=step, seed=0)
        groups = _play_guidance(guidance, spec, task, moment, share, rounds, subject)
        numbers[f"rollouts where they are {name}"] = float(sum(len(g.rollouts) for g in groups))
        guidance.observe([Outcome(group=group, kept=True) for group in groups])
        copy = spec.build(0)
        copy.load_state_dict(read_state(guidance, subject))
        later = Moment(key=f"s{step + 1}/0", step=step + 1, seed=0)
        same = _plain(copy.next(task, (), later)) == _plain(guidance.next(task, (), later))
        require(same, subject, "after state_dict and load_state_dict it poses a task otherwise")
    bad = [name for name, value in guidance.metrics().items() if not np.isfinite(value)]
    require(not bad, subject, f"metrics {bad} are not finite")
    return Report(subject=subject, passed=("ends", "own keys", "pure", "exact resume", "nothing private"), numbers=numbers)


def _play_guidance(
    guidance: Guidance, spec: GuidanceSpec, task: Task, moment: Moment, share: float, rounds: int, subject: str
) -> list[Group]:
    done: dict[str, Group] = {}
    seen: set[str] = set()
    for _ in range(rounds):
        posed = guidance.next(task, tuple(done.values()), moment)
        again = guidance.next(task, tuple(done.values()), moment)
        require(_plain(posed) == _plain(again), subject, "is not pure: asked twice, it poses a task in two ways")
        if not posed:
            require(bool(done), subject, f"never posed task {task.id!r}")
            return list(done.values())
        for p in posed:
            context = p.context
            require(context.key not in seen, subject, f"gave the key {context.key!r} to two contexts")
            require(context.key.startswith(moment.key), subject, f"gave the key {context.key!r}, which must begin {moment.key!r}")
            require(context.group.startswith(moment.key), subject, f"a group's key {context.group!r} must begin {moment.key!r}")
            require(set(p.replaces) <= set(done), subject, f"replaces {p.replaces}, and there are only {sorted(done)}")
            require(not _holds_task(context), subject, f"its context {context.key!r} holds a task with its private part")
            require(p.n is None or p.n >= 1, subject, f"asks for {p.n} rollouts of {context.key!r}")
            seen.add(context.key)
            new = _group(task, context, p.n or 4, share)
            old = done.get(context.group)
            done[context.group] = new if old is None else _merge_groups(old, new)
    raise ContractError(f"{subject}: still poses task {task.id!r} after {rounds} rounds; give it an end")


def _plain(posed: Sequence[Posed]) -> list[str]:
    return [repr(p) for p in posed]


def _holds_task(value: Any) -> bool:
    if isinstance(value, Task):
        return True
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds_task(getattr(value, f.name)) for f in fields(value))
    return isinstance(value, tuple | list) and any(map(_holds_task, value))  # pyright: ignore[reportUnknownArgumentType]


def _group(task: Task, context: Context, n: int, share: float) -> Group:
    rollouts = [_rollout(task, context, i) for i in range(n)]
    scores = [Score(components={"correct": float(i < share * n)}) for i in range(n)]
    return Group(
        key=context.group, task=task, draw=Draw(task.arm, task.level, 1.0), rollouts=tuple(rollouts), scores=tuple(scores)
    )


def _rollout(task: Task, context: Context, i: int) -> Rollout:
    return replace(rollout_of(task, "ab", id=f"{context.key}/{i}", group=context.group), context=context)


def _merge_groups(old: Group, new: Group) -> Group:
    return Group(key=old.key, task=old.task, draw=old.draw, rollouts=old.rollouts + new.rollouts, scores=old.scores + new.scores)


# ---- filters ----------------------------------------------------------------------------------------------------------


def check_filter(part: GroupFilter) -> Report:
    """Holds a filter to its laws, on groups of all kinds.

    What it keeps is rollouts of the group, each once, with the scores that they had and under the group's own key; it is pure;
    and a group of which nothing is left is None, not an empty group.

    Raises:
        ContractError: it breaks one of these.
    """
    subject = f"filter {type(part).__name__}"
    rng = generator("testing/filter", 0)
    kept = 0
    groups = [graded_group(_task("a", 1, 0), [Score(components={}, fault=Fault.INFRA)] * 4, key="faulty")]
    groups += [
        graded_group(_task("a", 1, n), [float(v) for v in rng.random(n) < rng.random()], key=f"g{n}/{k}")
        for n in (1, 2, 3, 8, 16, 17)
        for k in range(20)
    ]
    for group in groups:
        found, again = part.select(group), part.select(group)
        ids = None if found is None else [r.id for r in found.rollouts]
        require(ids == (None if again is None else [r.id for r in again.rollouts]), subject, f"is not pure on {group.key!r}")
        if found is None or ids is None:
            continue
        require(len(ids) > 0, subject, f"kept a group of no rollouts of {group.key!r}; give None")
        require(found.key == group.key, subject, f"renamed the group {group.key!r} to {found.key!r}")
        score = {r.id: s for r, s in zip(group.rollouts, group.scores, strict=True)}
        require(len(set(ids)) == len(ids) and set(ids) <= set(score), subject, f"keeps {ids} of {group.key!r}")
        same = all(s is score[r.id] for r, s in zip(found.rollouts, found.scores, strict=True))
        require(same, subject, f"changed the scores of {group.key!r}; a filter selects")
        kept += 1
    return Report(subject=subject, passed=("selects", "pure"), numbers={"groups": len(groups), "kept": kept})
