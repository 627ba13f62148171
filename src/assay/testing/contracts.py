"""What verifiers, curricula and environments promise, as checks that a user's own parts can be held to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from assay.core.errors import AssayError, a_kind
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task, World
from assay.verify.routed import Routed

__all__ = ["ContractError", "Report", "check_environment", "check_verifier", "most_common", "require", "verdict", "wait_for"]

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


def verdict(verifier: Verifier, task: Task, rollout: Rollout, *, again: bool = True) -> Score:
    """A verdict that keeps the verifier's promises: it does not raise, is a `Score`, and comes again the same.

    Args:
        verifier, task, rollout: what judges, and what is judged.
        again: judge it twice; False takes the promise on trust, for verdicts that are dear.

    Raises:
        ContractError: it does not.
    """
    subject = f"verifier {type(verifier).__name__}"
    case = f"task {task.id!r}, answer {rollout.text!r}"
    try:
        first = verifier(task, rollout)
        second = verifier(task, rollout) if again else first
    except Exception as error:
        raise ContractError(f"{subject} raised {type(error).__name__} on {case}: {error}") from error
    require(_is_score(first), subject, f"gave {a_kind(first)} for {case}; it must give a Score")
    same = (dict(first.components), first.fault) == (dict(second.components), second.fault)
    if not same:  # scores are long to write down, and this is asked thousands of times
        require(same, subject, f"is not pure: two verdicts on {case} are {first} and {second}")
    own = verifier.route(task) if isinstance(verifier, Routed) else verifier
    names: tuple[str, ...] = getattr(own, "names", ())
    if names and first.valid:
        found = sorted(first.components)
        require(found == sorted(names), subject, f"declares {names} but gave {found} for {case}")
    return first


def _is_score(value: object) -> bool:
    return isinstance(value, Score)


def check_verifier(verifier: Verifier, cases: Sequence[tuple[Task, Rollout, float]]) -> Report:
    """Holds a verifier to cases whose primary value is known, and to purity on each.

    Args:
        verifier: the scorer.
        cases: task, attempt, and the primary value that is right.

    Raises:
        ContractError: a wrong value, an exception, an impure or undeclared verdict.
    """
    subject = f"verifier {type(verifier).__name__}"
    require(len(cases) > 0, subject, "there is no case to check it with")
    for task, rollout, wanted in cases:
        score = verdict(verifier, task, rollout)
        require(score.valid, subject, f"gave a fault for task {task.id!r}, answer {rollout.text!r}: {dict(score.info)}")
        case = f"task {task.id!r}, answer {rollout.text!r} (stop {rollout.stop})"
        require(score.primary == wanted, subject, f"gave {score.primary} for {case}; {wanted} is right")
    return Report(
        subject=subject,
        passed=("values", "pure", "declared components"),
        numbers={"cases": len(cases), "values": len({w for *_, w in cases})},
    )


# ---- environments -----------------------------------------------------------------------------------------------------


def check_environment(source: TaskSource, task: Task, steps: int = 64) -> Report:
    """Holds a family's environment to its protocol on one task.

    Single use (a second start, and a step after the end, raise an `AssayError`), deterministic, and patient: whatever the
    policy says is answered, and an endless talker is stopped within ``steps`` actions.

    Raises:
        ContractError: it breaks one of these.
    """
    subject = f"environment of {source.name}"
    world = task.exposed()
    require(source.environment(world) is not None, subject, f"task {task.id!r} has none")
    trace = source.trace(task, 0.0, np.random.default_rng(0)) or ()
    said = [m.content for m in trace if m.role == "assistant"]
    first = wait_for(_played(source, world, said))
    require(first == wait_for(_played(source, world, said)), subject, "two runs with the same actions differ")
    wait_for(_single_use(_fresh(source, world), subject))
    numbers: dict[str, float] = {}
    for name, action in {"empty": "", "junk": "\x00?!{}", "call": said[0] if said else "?"}.items():
        used = wait_for(_talked(_fresh(source, world), action, steps, subject))
        numbers[f"steps until the end ({name})"] = used
    return Report(subject=subject, passed=("deterministic", "single use", "answers anything", "ends"), numbers=numbers)


def _fresh(source: TaskSource, world: World) -> Environment:
    environment = source.environment(world)
    assert environment is not None
    return environment


async def _played(source: TaskSource, world: World, actions: Sequence[str]) -> list[tuple[str, bool]]:
    environment = _fresh(source, world)
    seen = [(m.content, False) for m in (await environment.start()).messages]
    for action in actions:
        step = await environment.step(action)
        seen += [(m.content, step.done) for m in step.obs.messages] or [("", step.done)]
        if step.done:
            break
    return seen


async def _single_use(environment: Environment, subject: str) -> None:
    await environment.start()
    await _refused(environment.start(), subject, "a second start")


async def _refused(coroutine: Coroutine[Any, Any, Any], subject: str, what: str) -> None:
    try:
        await coroutine
    except AssayError:
        return
    raise ContractError(f"{subject}: {what} was not refused; environments are single use")


async def _talked(environment: Environment, action: str, steps: int, subject: str) -> int:
    await environment.start()
    for used in range(1, steps + 1):
        try:
            step = await environment.step(action)
        except Exception as error:
            raise ContractError(f"{subject}: action {action!r} raised {type(error).__name__}: {error}") from error
        if step.done:
            await _refused(environment.step(action), subject, "a step after the end")
            return used
    raise ContractError(f"{subject}: still open after {steps} times {action!r}; give it a step limit")


def most_common(items: Sequence[str]) -> str:
    """The item that occurs most often; of several the first."""
    return Counter(items).most_common(1)[0][0]
