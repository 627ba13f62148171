"""What a problem promises beyond its family: a solver of its own, wordings that differ, levels that grow."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import islice, pairwise
from math import sqrt
from random import Random
from statistics import fmean, variance
from typing import Any

from assay.core.canon import FrozenMap, canonical, digest, plain
from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.core.seeds import content_split, derive
from assay.core.task import Task
from assay.tasks.problem import Form, Problem, Solution
from assay.testing.contracts import Report, guard, require, verdict
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["check_problem"]

_STEPS = 0.9
"""How far the mean effort of a level may fall below that of the one before it, as a share: two levels may be as hard."""

_DRAWS = 100
"""Most questions drawn for each one that is `Problem.fair`."""


def check_problem(problem: Problem, *, n: int = 24, growth: float | None = 1.0, deadline: float = 5.0) -> Report:
    """Holds one kind of question to its protocol on ``n`` questions a level.

    Facts are plain JSON and a function of the generator alone; `Problem.solve` is a function of the facts, and leaves them as
    they are; its answer scores 1 in every `Form`; each wording is text of its own; the solver's mean effort does not fall from
    level to level by more than a tenth and twice the error of the difference.

    Args:
        problem: the kind of question.
        n: questions a level.
        growth: least ratio of the mean effort at the last level to that at the first; 0 for a problem whose solver does not
            count, None for 1 where it counts and 0 where not.
        deadline: seconds for one verdict of a verifier that is not ``trusted``; it is asked in a process of its own.

    Raises:
        ContractError: a promise is broken; names the problem, the level and the facts.
    """
    subject = f"problem {problem.name}"
    efforts: dict[int, list[int]] = {}
    with ExitStack() as pools:
        judge_of = _judges(problem, deadline, pools)
        for level in problem.levels:
            facts = _fair(problem, level, n, subject)
            for f in facts[:2]:
                _check_wording(problem, f, subject)
            solved = [_check_solved(problem, f, subject) for f in facts]
            for f, s in zip(facts[: max(1, n // 8)], solved, strict=False):
                _in_all_forms(problem, level, f, s, subject, judge_of)
            efforts[level] = [s.effort for s in solved]
    counts = any(map(any, efforts.values()))
    growth = float(counts) if growth is None else growth
    passed = ["facts are plain and pure", "the solver is a function of the facts", "the solution scores 1 in every form"]
    skipped: list[str] = []
    if growth:
        _grows(list(efforts.values()), growth, subject)
        passed.append("effort grows with the level")
    else:
        skipped.append(f"effort grows with the level: {'of too few questions' if counts else 'the solver counts none'}")
    ends = {"first": problem.levels[0], "last": problem.levels[-1]}
    numbers = {f"effort at the {end} level": fmean(efforts[level]) for end, level in ends.items()}
    return Report(subject=subject, passed=(*passed, "wordings differ"), skipped=tuple(skipped), numbers=numbers)


def _fair(problem: Problem, level: int, n: int, subject: str) -> list[dict[str, Any]]:
    drawn = (_draw(problem, level, i, subject) for i in range(_DRAWS * n))
    found = list(islice((facts for facts in drawn if problem.fair(facts)), n))
    require(len(found) == n, subject, f"level {level}: {len(found)} of {_DRAWS * n} questions drawn are fair; {n} are wanted")
    return found


def _draw(problem: Problem, level: int, index: int, subject: str) -> dict[str, Any]:
    seed = derive("check/problem", 0, problem.name, f"{level}/{index}")
    first, second = problem.draw(level, Random(seed)), problem.draw(level, Random(seed))
    same = repr(first) == repr(second)  # not a number is not equal to itself
    require(same, subject, f"level {level} draws {first} and then {second} from the same generator")
    try:
        read = json.loads(canonical(first))
    except DataError as error:
        require(False, subject, f"level {level} draws facts that JSON cannot hold: {error}")
        raise
    require(
        read == plain(first),
        subject,
        f"level {level} draws facts that change when they are written to JSON: {first}, then {read}",
    )
    return read


def _check_solved(problem: Problem, facts: dict[str, Any], subject: str) -> Solution:
    before = canonical(facts)
    first = problem.solve(facts)
    require(canonical(facts) == before, subject, f"the solver changes the facts {before.decode()}")
    second = problem.solve(facts)
    require(first == second, subject, f"the solver gives {first} and then {second} for {before.decode()}")
    return first


def _judges(problem: Problem, deadline: float, pools: ExitStack) -> Callable[[Form], tuple[Verifier, ScoringPool | None]]:
    """The verifier of a form and its guard, made once for all levels: a pool costs a process."""

    @cache
    def of(form: Form) -> tuple[Verifier, ScoringPool | None]:
        verifier: Verifier = problem.verifier(form)
        return verifier, pools.enter_context(guard(verifier, deadline))

    return of


def _in_all_forms(
    problem: Problem,
    level: int,
    facts: dict[str, Any],
    solved: Solution,
    subject: str,
    judge_of: Callable[[Form], tuple[Verifier, ScoringPool | None]],
) -> None:
    if problem.environment(_task(problem, level, facts, solved, "").public_view()) is not None:
        return  # one text does not end it; the family's check plays it
    for form in Form:
        text = problem.format_solution(solved, form)
        task = _task(problem, level, facts, solved, problem.prompt(facts, 0, form))
        verifier, pool = judge_of(form)
        score = verdict(verifier, task, rollout_of(task, text), pool=pool)
        good = score.valid and score.primary == 1.0
        require(
            good, subject, f"in the form {form.value!r} the solution {text!r} scores {dict(score.components)} {dict(score.info)}"
        )


def _task(problem: Problem, level: int, facts: dict[str, Any], solved: Solution, prompt: str) -> Task:
    whole = {"problem": problem.name, **facts}
    shown = {"problem": problem.name, "digest": digest(whole)} if problem.hidden else whole
    public = FrozenMap({"prompt": prompt, "facts": shown})
    world = {**problem.world(facts), "facts": whole} if problem.hidden else problem.world(facts)
    gold = solved.answer if solved.gold is None else solved.gold
    return Task(
        id=f"{problem.name}/{level}",
        domain=problem.domain,
        arm=problem.name,
        level=level,
        split=content_split(public["facts"]),
        index=0,
        public=public,
        world=FrozenMap(world),
        private=FrozenMap({"answer": gold}),
    )


def _check_wording(problem: Problem, facts: dict[str, Any], subject: str) -> None:
    texts = [problem.word(facts, variant) for variant in range(problem.variants)]
    require(bool(texts), subject, "has no wording: give it templates, or variants and word")
    require(all(t.strip() for t in texts), subject, f"a wording of {facts} is empty")
    require(len(set(texts)) == len(texts), subject, f"two wordings of {facts} are the same: {texts}")


def _grows(efforts: Sequence[Sequence[int]], growth: float, subject: str) -> None:
    means = [fmean(level) for level in efforts]
    falls = [a for a, b in pairwise(efforts) if fmean(b) < fmean(a) * _STEPS and fmean(a) - fmean(b) > 2.0 * _error(a, b)]
    require(not falls, subject, f"the solver's mean effort falls from level to level: {[round(m, 1) for m in means]}")
    require(
        means[-1] >= means[0] * growth and (len(means) < 2 or means[-1] > means[0]),
        subject,
        f"the solver's mean effort is {means[-1]:g} at the last level and {means[0]:g} at the first; "
        f"at least {growth:g} times as much is wanted",
    )


def _error(*samples: Sequence[int]) -> float:
    """The standard error of a difference of means; of one question nothing is known, and it counts as exact."""
    return sqrt(sum(variance(sample) / len(sample) for sample in samples if len(sample) > 1))
