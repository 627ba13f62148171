"""What verifiers, curricula and environments promise, as checks that a user's own parts can be held to."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assay.core.canon import canonical
from assay.core.errors import AssayError, a_kind
from assay.core.media import media_of
from assay.core.optional_protocols import ShowsPictures
from assay.core.protocols import Environment, Obs, Snapshots, TaskSource, Verifier
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Message, Task, TaskView, media_in
from assay.testing.malformed_actions import why_call_unanswered, why_unanswered
from assay.verify.abilities import abilities_of, ability_of
from assay.verify.routing import Routed
from assay.verify.workers.pool import ScoringPool

__all__ = [
    "ContractError",
    "Report",
    "check_environment",
    "check_verifier",
    "guard",
    "most_common",
    "require",
    "verdict",
    "wait_for",
]

T = TypeVar("T")


class ContractError(AssayError, AssertionError):
    """A part broke what its protocol promises; the message names the part, the promise and the case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a contract check looked at.

    Attributes:
        subject: the part.
        passed: promises that held.
        skipped: promises that could not be checked, each with the reason.
        numbers: measured on the way.
    """

    subject: str
    passed: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    def lines(self) -> tuple[str, ...]:
        """The report as lines of text."""
        return (
            *(f"pass  {name}" for name in self.passed),
            *(f"skip  {name}" for name in self.skipped),
            *(f"      {name}: {value:g}" for name, value in self.numbers.items()),
        )


def require(held: bool, subject: str, finding: str) -> None:
    """Raises ContractError unless ``held``."""
    if not held:
        raise ContractError(f"{subject}: {finding}")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, on an event loop of its own."""
    return asyncio.run(coroutine)


# ---- verifiers --------------------------------------------------------------------------------------------------------


def guard(verifier: Verifier, deadline: float = 5.0) -> AbstractContextManager[ScoringPool | None]:
    """What `verdict` asks first, so that code which hangs or ends its process ends no check: a pool of one worker with a
    deadline for each answer, in seconds; None for a verifier that is ``trusted``.
    """
    if abilities_of(verifier).trusted:
        return nullcontext()
    return ScoringPool(verifier, deadline, workers=1, refuse=False)


def verdict(verifier: Verifier, task: Task, rollout: Rollout, *, again: bool = True, pool: ScoringPool | None = None) -> Score:
    """A verdict that keeps the verifier's promises: it does not raise or hang, is a `Score`, and comes again the same.

    Args:
        verifier, task, rollout: what judges, and what is judged.
        again: judge it twice; False takes the promise on trust, for verdicts that are dear.
        pool: gives the first verdict (`guard`); the verifier itself in this process when None.

    Raises:
        ContractError: it does not.
    """
    subject = f"verifier {type(verifier).__name__}"
    case = f"task {task.id!r}, answer {rollout.text!r}"
    try:
        first = verifier(task, rollout) if pool is None else _judge_guarded(pool, task, rollout, subject)
        anew = pool is not None and pool.abilities.key is None  # a pool judges questions that have a key but once
        second = (
            first if not again else _judge_guarded(pool, task, rollout, subject) if pool and anew else verifier(task, rollout)
        )
    except ContractError:
        raise
    except Exception as error:
        raise ContractError(f"{subject} raised {type(error).__name__} on {case}: {error}") from error
    require(_is_score(first), subject, f"gave {a_kind(first)} for {case}; it must give a Score")
    same = (dict(first.components), first.fault) == (dict(second.components), second.fault)
    if not same:  # scores are long to write down, and this is asked thousands of times
        require(same, subject, f"is not pure: two verdicts on {case} are {first} and {second}")
    own = verifier.route(task) if isinstance(verifier, Routed) else verifier
    declared = abilities_of(own)
    if declared.names and first.valid:
        found = sorted(first.components)
        given = {*declared.names, *(("reward",) if own is not verifier and ability_of(verifier, "weighted_sum") else ())}
        require(found == sorted(given), subject, f"declares {declared.names} but gave {found} for {case}")
    if first.fault is Fault.NONE:
        low = {name: value for name, value in first.components.items() if value < declared.floor_of(name)}
        require(not low, subject, f"gave {low} for {case}, below the floor that it declares, {declared.floor}")
    return first


def _judge_guarded(pool: ScoringPool, task: Task, rollout: Rollout, subject: str) -> Score:
    """The pool's verdict; what ended without one, or raised, is a broken promise of the verifier."""
    score = pool.score([(task, rollout)])[rollout.id]
    case = f"task {task.id!r}, answer {rollout.text!r}"
    ended = str(score.info.get("ended", ""))
    within = f"within {pool.deadline:g} s " if ended == "hung" else ""
    require(not ended, subject, f"gave no verdict {within}on {case}: {score.info.get('error')}")
    if "traceback" in score.info:
        kind, _, text = str(score.info["error"]).partition(": ")
        raise ContractError(f"{subject} raised {kind} on {case}: {text}{_last_line(str(score.info['traceback']))}")
    return score


def _last_line(traceback: str) -> str:
    """Where an error was raised, by the last line of its traceback that names a file; "" where none does."""
    found = re.findall(r'File "([^"]+)", line (\d+)', traceback)
    return f" ({Path(found[-1][0]).name}, line {found[-1][1]})" if found else ""


def _is_score(value: object) -> bool:
    return isinstance(value, Score)


def check_verifier(verifier: Verifier, cases: Sequence[tuple[Task, Rollout, float]]) -> Report:
    """Holds a verifier to cases whose primary value is known, and to purity on each.

    Args:
        verifier: the scorer.
        cases: task, rollout, and the primary value that is right.

    Raises:
        ContractError: a wrong value, an exception, an impure or undeclared verdict.
    """
    subject = f"verifier {type(verifier).__name__}"
    require(len(cases) > 0, subject, "there is no case to check it with")
    with guard(verifier) as pool:
        for task, rollout, wanted in cases:
            score = verdict(verifier, task, rollout, pool=pool)
            require(score.valid, subject, f"gave a fault for task {task.id!r}, answer {rollout.text!r}: {dict(score.info)}")
            case = f"task {task.id!r}, answer {rollout.text!r} (stop {rollout.stop})"
            require(score.primary == wanted, subject, f"gave {score.primary} for {case}; {wanted} is right")
    return Report(
        subject=subject,
        passed=("values", "pure", "declared components"),
        numbers={"cases": len(cases), "values": len({w for *_, w in cases})},
    )


# ---- environments -----------------------------------------------------------------------------------------------------


def check_environment(source: TaskSource, task: Task, steps: int = 64, deadline: float = 30.0) -> Report:
    """Holds a family's environment to its protocol on one task.

    Single use (a second start, and a step after the end, raise an `AssayError`), deterministic, and patient: whatever the
    policy says is answered, also the oracle's actions a little wrong, and calls of every tool that ``public["tools"]`` declares,
    with fitting and with wrong arguments (each within ``deadline`` seconds); an endless talker is stopped within ``steps``
    actions. One of several roles names an actor each
    time; pictures that are shown can be had from the family (`ShowsPictures`). One that writes snapshots (`Snapshots`)
    writes plain values, is not changed by it, and a fresh one goes on from them as it would have itself.

    Raises:
        ContractError: it breaks one of these.
    """
    subject = f"environment of {source.name}"
    world = task.public_view()
    require(source.environment(world) is not None, subject, f"task {task.id!r} has none")
    trace = source.trace(task, 0.0, np.random.default_rng(0)) or ()
    said = [m.content for m in trace if m.role == "assistant"]
    _check_pictures(source, task, said, subject)
    first = wait_for(_play_actions(source, world, said))
    require(first == wait_for(_play_actions(source, world, said)), subject, "two runs with the same actions differ")
    wait_for(_single_use(_fresh(source, world), subject))
    more = (_check_roles(first, subject), *_check_snapshots(source, world, said, subject))
    numbers: dict[str, float] = {}
    for name, action in {"empty": "", "junk": "\x00?!{}", "call": said[0] if said else "?"}.items():
        used = wait_for(_talk_until_done(_fresh(source, world), action, steps, subject))
        numbers[f"steps until the end ({name})"] = used
    unanswered = why_unanswered(lambda: _fresh(source, world), said, deadline)
    require(not unanswered, subject, unanswered)
    schemas = task.public.get("tools") or ()
    unanswered, made = why_call_unanswered(lambda: _fresh(source, world), schemas, world.messages[-1].content, deadline)
    require(not unanswered, subject, unanswered)
    if schemas:
        numbers["calls of declared tools"] = made
    malformed = "answers its oracle's actions a little wrong" if said else ""
    called = "answers calls of every declared tool, the same again" if schemas else ""
    passed = ("deterministic", "single use", "answers anything", "ends", malformed, called, *more)
    return Report(subject=subject, passed=tuple(filter(None, passed)), numbers=numbers)


def _fresh(source: TaskSource, world: TaskView) -> Environment:
    environment = source.environment(world)
    assert environment is not None
    return environment


def _check_pictures(source: TaskSource, task: Task, said: Sequence[str], subject: str) -> None:
    """Raises ContractError where a picture is shown that the family does not have, or that is another one."""

    async def show() -> tuple[Message, ...]:
        environment = _fresh(source, task.public_view())
        messages = (await environment.start()).messages
        for action in said:
            step = await environment.step(action)
            messages += step.obs.messages
            if step.done:
                break
        return messages

    for media in media_in((*task.public_view().messages, *wait_for(show()))):
        require(isinstance(source, ShowsPictures), subject, f"shows the picture {media.digest}, and the family has no `pictures`")
        assert isinstance(source, ShowsPictures)
        try:
            found = media_of(source.pictures.pixels(media.digest))
        except AssayError as error:
            raise ContractError(f"{subject}: shows the picture {media.digest}, which cannot be had: {error}") from error
        require(found == media, subject, f"shows {media}, and what can be had under that name is {found}")


_Seen = list[tuple[str, str, bool]]  # what was shown, to whom, and whether it was the end


async def _play_actions(source: TaskSource, world: TaskView, actions: Sequence[str]) -> _Seen:
    environment = _fresh(source, world)
    return _observe(await environment.start(), False) + await _step_through(environment, actions)


async def _step_through(environment: Environment, actions: Sequence[str]) -> _Seen:
    seen: _Seen = []
    for action in actions:
        step = await environment.step(action)
        seen += _observe(step.obs, step.done)
        if step.done:
            break
    return seen


def _observe(obs: Obs, done: bool) -> _Seen:
    return [(m.content, obs.actor, done) for m in obs.messages] or [("", obs.actor, done)]


def _check_roles(seen: _Seen, subject: str) -> str:
    """Which promise about roles held; "" where there are none."""
    actors = [actor for _, actor, done in seen if not done]
    require(all(actors) or not any(actors), subject, f"names an actor at some turns and none at others: {actors}")
    return "names an actor each time" if any(actors) else ""


def _check_snapshots(source: TaskSource, world: TaskView, said: Sequence[str], subject: str) -> tuple[str, ...]:
    """Which promises about snapshots held; none where it writes none."""
    if not isinstance(_fresh(source, world), Snapshots):
        return ()
    whole = wait_for(_stepped_from(_fresh(source, world), said))
    for before in range(len(said)):
        snapshot, rest = wait_for(_save_snapshots(_fresh(source, world), said, before))
        require(rest == whole[before:], subject, f"goes on otherwise once it wrote a snapshot behind {before} actions")
        try:
            plain_ = json.loads(canonical(snapshot))
        except AssayError as error:
            raise ContractError(f"{subject}: its snapshot is not plain: {error}") from error
        found = wait_for(_resume_from(_fresh(source, world), plain_, said[before:]))
        require(found == rest, subject, f"goes on from its own snapshot behind {before} actions otherwise: {found} for {rest}")
    return ("snapshots restore",)


async def _stepped_from(environment: Environment, said: Sequence[str]) -> list[_Seen]:
    await environment.start()
    return [await _step_through(environment, [action]) for action in said]


async def _save_snapshots(environment: Environment, said: Sequence[str], before: int) -> tuple[Any, list[_Seen]]:
    assert isinstance(environment, Snapshots)
    await environment.start()
    await _step_through(environment, said[:before])
    snapshot = await environment.snapshot()
    return snapshot, [await _step_through(environment, [action]) for action in said[before:]]


async def _resume_from(environment: Environment, snapshot: Any, said: Sequence[str]) -> list[_Seen]:
    assert isinstance(environment, Snapshots)
    await environment.restore(snapshot)
    return [await _step_through(environment, [action]) for action in said]


async def _single_use(environment: Environment, subject: str) -> None:
    await environment.start()
    await _check_refused(environment.start(), subject, "a second start")


async def _check_refused(coroutine: Coroutine[Any, Any, Any], subject: str, what: str) -> None:
    try:
        await coroutine
    except AssayError:
        return
    raise ContractError(f"{subject}: {what} was not refused; environments are single use")


async def _talk_until_done(environment: Environment, action: str, steps: int, subject: str) -> int:
    await environment.start()
    for used in range(1, steps + 1):
        try:
            step = await environment.step(action)
        except Exception as error:
            raise ContractError(f"{subject}: action {action!r} raised {type(error).__name__}: {error}") from error
        if step.done:
            await _check_refused(environment.step(action), subject, "a step after the end")
            return used
    raise ContractError(f"{subject}: still open after {steps} times {action!r}; give it a step limit")


def most_common(items: Sequence[str]) -> str:
    """The item that occurs most often; of several the first."""
    return Counter(items).most_common(1)[0][0]
