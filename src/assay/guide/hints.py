"""Help where a policy fails: longer and longer hints (GHPO), prefixes that make half of the rollouts succeed (SEELE)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.fields import later
from assay.core.group import Group, Outcome
from assay.core.protocols import Moment, Posed, State
from assay.core.task import Context, Prefill, Task
from assay.guide.guidance import Stateless, plain_context, solution_of

__all__ = ["Ghpo", "Seele", "SeeleGuidance", "check_shares", "check_text", "guided_context", "hinted_context", "needed_share"]


def hinted_context(task: Task, key: str, hint: str, text: str) -> Context:
    """The task with a hint in its last user turn, as a group of its own.

    Args:
        task: what is posed.
        key: of context and group.
        hint: the words that help.
        text: the turn; ``{prompt}`` stands for what it was, ``{hint}`` for the hint.

    Raises:
        DataError: the task has no user turn.
    """
    plain = plain_context(task, key)
    at = max((i for i, m in enumerate(plain.messages) if m.role == "user"), default=None)
    if at is None:
        raise DataError(f"task {task.id!r}: it has no user turn to put a hint in; use Plain()")
    before, after = text.split("{prompt}")
    turn = plain.messages[at]
    content = "".join((before.replace("{hint}", hint), turn.content, after.replace("{hint}", hint)))
    return replace(plain, messages=(*plain.messages[:at], replace(turn, content=content), *plain.messages[at + 1 :]), tag="hint")


def guided_context(task: Task, key: str, solution: str, share: float, text: str) -> Context:
    """The task with the first ``share`` of a solution's characters in its last user turn, or as the beginning of the answer.

    Args:
        task: what is posed.
        key: of context and group.
        solution: whose first part is given.
        share: of its characters, halves going up.
        text: the turn, as `hinted_context` has it; empty for an answer that begins with the part.

    Raises:
        DataError: there is no user turn to put it in.
    """
    hint = solution[: math.floor(share * len(solution) + 0.5)]
    return hinted_context(task, key, hint, text) if text else plain_context(task, key, Prefill(hint))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ghpo(Stateless):
    """GHPO: a task at which every rollout fails is posed again with the first part of its solution in the prompt, then with more.

    The last group takes the place of those before it and is learned from under its hinted prompt; all are observed. A group with
    one success is never hinted, nor one in which nothing could be graded.

    Round ``k`` is posed as ``x + y[:w_k |y|]`` where ``max_i r_i = 0`` in round ``k - 1``, with ``w`` of ``shares`` in turn.

    Source: Guided Hybrid Policy Optimization (arXiv 2507.10628); shares of the solution's characters. UNSURE: the numbers of its
    cold start, in which no task is tried plainly and every one has a fixed hint; its code has none by default.

    Attributes:
        shares: of the solution's characters, ascending, in (0, 1): one more round each.
        text: the last user turn; ``{prompt}`` and ``{hint}`` stand in it once each. Empty: the answer itself begins with the
            hint, for models that read no hints.
        cold_until: step of the run before which each task is posed once, behind ``cold_share`` of its solution; 0 for no cold
            start.
        cold_share: of the solution's characters, in (0, 1).

    Raises:
        ConfigError: shares out of range or order, another text, or a step below 0.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "1+1="}), private=FrozenMap({"answer": "2"}))
    >>> [posed.context.key for posed in Ghpo().next(task, [], Moment(key="s0/0"))]
    ['s0/0']
    """

    shares: tuple[float, ...] = (0.25, 0.5, 0.75)
    text: str = "{prompt}\nThe first part of a solution, to go on from:\n{hint}\n"
    cold_until: int = later(0)
    cold_share: float = later(0.5)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(self.shares))
        check_shares(self, self.shares)
        check_text(self, self.text)
        if self.cold_until < 0 or not 0.0 < self.cold_share < 1.0:
            raise ConfigError(
                f"Ghpo(cold_until={self.cold_until}, cold_share={self.cold_share}): a step of 0 or more, and a share in (0, 1)"
            )

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The prompt, or in a cold start its hint alone; after groups without success the next hint; nothing after a success,
        after a group whose rollouts are all faults, or when all hints were given.

        Raises:
            DataError: the task has no user turn, or neither a solution nor an answer that is text.
        """
        if moment.step < self.cold_until:
            solution = solution_of(task, "a hint")
            fixed = guided_context(task, f"{moment.key}/cold", solution, self.cold_share, self.text)
            return () if history else (Posed(context=fixed),)
        if not history:
            return (Posed(context=plain_context(task, moment.key)),)
        posed = list(dict.fromkeys(rollout.context.key for group in history for rollout in group.rollouts))
        rung = len(posed) - 1  # a context has a group for each role of its environment
        values = [v for group in history if group.rollouts and group.rollouts[0].context.key == posed[-1] for v in group.values]
        if rung >= len(self.shares) or not values or max(values) > 0.0:
            return ()
        solution = solution_of(task, "a hint")
        context = guided_context(task, f"{moment.key}/hint{rung + 1}", solution, self.shares[rung], self.text)
        return (Posed(context=context, replaces=tuple(group.key for group in history)),)


def check_shares(part: object, shares: Sequence[float], *, whole: bool = False) -> None:
    """Raises ConfigError unless a part's shares ascend within (0, 1), or within (0, 1] where the ``whole`` is allowed."""
    inside = bool(shares) and shares[0] > 0.0 and (shares[-1] <= 1.0 if whole else shares[-1] < 1.0)
    if not inside or list(shares) != sorted(set(shares)):
        raise ConfigError(
            f"{type(part).__name__}.shares={tuple(shares)}; give shares of the solution in (0, 1{']' if whole else ')'}, each "
            "more than the one before"
        )


def check_text(part: object, text: str, *, empty: bool = True) -> None:
    """Raises ConfigError unless ``{prompt}`` and ``{hint}`` stand once each in a part's text, or it is ``empty`` and may be."""
    for word in ("{prompt}", "{hint}"):
        if text.count(word) != 1 and (text or not empty):
            raise ConfigError(f"{type(part).__name__}.text={text!r} must hold {word!r} exactly once")


def needed_share(points: Sequence[tuple[float, float]], target: float, most: float) -> float:
    """The share of a solution with which success should be ``target``, by SEELE's curve through what was seen.

    ``f(p) = b + (1 - b) / (1 + exp(-k (p + mu)))`` is fitted by least squares to ``points`` (share, success), over a grid with
    ``k`` in [1, 32], ``mu`` in [-1, 0] and ``b`` in [0, .9]; successes at one share are averaged first.

    Returns:
        ``f^-1(target)`` within [0, ``most``]; 0 where the curve is above the target everywhere.

    >>> needed_share([(0.0, 0.0), (1.0, 1.0)], 0.5, 1.0)
    0.5
    """
    shares = sorted({share for share, _ in points})
    means = np.array([np.mean([a for s, a in points if s == share]) for share in shares])
    k, mu, b = _fit_curve(np.array(shares), means)
    if b >= target:
        return 0.0
    return float(np.clip(inverse(target, k, mu, b), 0.0, most))


def inverse(target: float, k: float, mu: float, b: float) -> float:
    """The share at which the curve is ``target``, for ``b < target < 1``.

    >>> round(inverse(0.5, 19.03, -0.64, 0.45), 4)
    0.519
    """
    return -mu - math.log((1.0 - b) / (target - b) - 1.0) / k


REMEMBERED = 65_536
"""Tasks whose share `SeeleGuidance` remembers at most, the newest: a source without end would fill the memory."""

_K = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
_MU = -np.linspace(0.0, 1.0, 21)
_B = np.linspace(0.0, 0.9, 10)


def _fit_curve(shares: np.ndarray, means: np.ndarray) -> tuple[float, float, float]:
    """The best ``(k, mu, b)`` of a grid: three numbers through at most a handful of points need no optimiser, and a grid
    gives the same bits everywhere. Of equally good ones the middle of the steepest, so that nothing hangs on its order.
    """
    k, mu, b = (axis[..., None] for axis in np.meshgrid(_K, _MU, _B, indexing="ij"))
    curve = b + (1.0 - b) / (1.0 + np.exp(-k * (shares + mu)))
    error = ((curve - means) ** 2).sum(axis=-1)
    best = np.flatnonzero(error.ravel() <= error.min() + 1e-12)
    place = int(best[len(best) // 2])
    i, rest = divmod(place, len(_MU) * len(_B))
    return float(_K[i]), float(_MU[rest // len(_B)]), float(_B[rest % len(_B)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seele:
    """SEELE: rollouts come in rounds, each with as long a part of the solution given as should make ``target`` of them succeed.

    After each round a curve of success over the part's share is laid through all rounds so far and turned round for the next one
    (`needed_share`). All rollouts of a task make one group: advantages compare over all its rounds. What was needed last is
    remembered per task, for its first round the next time; the first time it is all of the solution but one character.

    The curve is ``f(p) = b + (1 - b) / (1 + exp(-k (p + mu)))`` of the share ``p``, and the next round's ``p`` has
    ``f(p) = target``.
    Its small likelihood loss on the given tokens is of the composer and the objective: ``Compose(learn_forced=True)`` and
    ``grpo() + Nll(streams=("expert",), coef=0.001)``.

    Source: SEELE (arXiv 2509.06923).

    Attributes:
        rounds: per task.
        target: success aimed at, in (0, 1).

    Raises:
        ConfigError: a value out of range.

    The stage's group size is the size of a round: with 8 and four rounds a group has 32 rollouts.

    >>> Seele(rounds=2).build(seed=0).state_dict()
    {}
    """

    rounds: int = 4
    target: float = 0.5

    def __post_init__(self) -> None:
        if self.rounds < 1 or not 0.0 < self.target < 1.0:
            raise ConfigError(f"Seele.rounds={self.rounds} must be at least 1 and Seele.target={self.target} in (0, 1)")

    def build(self, seed: int) -> SeeleGuidance:
        """The guidance with its state."""
        return SeeleGuidance(self)


class SeeleGuidance:
    """The state of `Seele`: the share needed last, by task."""

    def __init__(self, spec: Seele) -> None:
        self.spec = spec
        self._needed: dict[str, float] = {}

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The next round.

        Raises:
            DataError: the task has neither a solution nor an answer that is text.
        """
        done = len({rollout.context.key for group in history for rollout in group.rollouts})
        if done >= self.spec.rounds:
            return ()
        solution = solution_of(task, "a prefix")
        most = most_given(solution)
        points = [point for group in history for point in rounds_of(group)]
        share = needed_share(points, self.spec.target, most) if points else self._needed.get(task.id, most)
        prefill = Prefill(solution, share)
        context = replace(plain_context(task, f"{moment.key}/round{done}", prefill), group=moment.key)
        return (Posed(context=context),)

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Remembers for each task the share that it needed."""
        for outcome in outcomes:
            points = rounds_of(outcome.group)
            if points:
                most = most_given(solution_of(outcome.group.task, "a prefix"))
                self._needed.pop(outcome.group.task.id, None)  # the newest stands last
                self._needed[outcome.group.task.id] = needed_share(points, self.spec.target, most)
        self._needed = dict(list(self._needed.items())[-REMEMBERED:])

    def metrics(self) -> Mapping[str, float]:
        """``guidance/share``: mean over the tasks met so far of the share needed last."""
        values = list(self._needed.values())
        return {"guidance/share": sum(values) / len(values)} if values else {}

    def state_dict(self) -> State:
        """Share by task."""
        return dict(self._needed)

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        self._needed = {str(task): float(share) for task, share in state.items()}


def most_given(solution: str) -> float:
    """The largest share of a solution that is given: all of it but one character.

    >>> most_given("abcd"), most_given("")
    (0.75, 0.0)
    """
    return max(0, len(solution) - 1) / max(1, len(solution))


def rounds_of(group: Group) -> list[tuple[float, float]]:
    """Each round of a group as (share given, mean success of its valid rollouts); rounds without a valid one are left out."""
    found: dict[str, list[float]] = {}
    share: dict[str, float] = {}
    for rollout, score in zip(group.rollouts, group.scores, strict=True):
        if score.valid:
            key, prefill = rollout.context.key, rollout.context.prefill
            share[key] = prefill.share if prefill else 0.0
            found.setdefault(key, []).append(min(1.0, max(0.0, score.primary)))
    return [(share[key], sum(values) / len(values)) for key, values in found.items()]
