"""What context managers and samplers promise, as checks that a user's own can be held to."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isinf

import numpy as np

from assay.core.canon import FrozenMap, digest
from assay.core.config import from_dict, to_dict
from assay.core.errors import AssayError
from assay.core.protocols import ContextManager, Environment, Obs, SamplerParts, SamplerSpec, Step
from assay.core.rollout import Call, Rollout, Sampling
from assay.core.rollout_metrics import ReportsRollouts
from assay.core.sample import samples
from assay.core.seeds import generator
from assay.core.task import Context, Message, Task, TaskView
from assay.rollout import Player
from assay.testing.contracts import ContractError, Report, require, wait_for
from assay.testing.fakes import Ask, CharCodec, FakeLearner, ScriptedEngine
from assay_tasks import KeyValue

__all__ = ["check_context_manager", "check_sampler", "parts_for", "trained_once"]

_CODEC = CharCodec(string.printable)
_LIMIT = 12
_ODDS = {"bias": generator("testing/odds", 0).standard_normal(_CODEC.size).astype(np.float32)}


def check_context_manager(manager: ContextManager, *, turns: int = 6, context: int = 256) -> Report:
    """Holds a context manager to its promises, in conversations of ``turns`` turns on an engine of ``context`` tokens.

    Every sampled token carries loss exactly once; no prefix exceeds the engine's context; a rollout whose environment broke and
    was played again is the same; where the manager is a dataclass, a run's file can say it; and where it reports metrics
    (`assay.core.ReportsRollouts`), they are finite numbers or ``nan``, and the same of the same rollouts.

    Raises:
        ContractError: it breaks one of these.

    >>> from assay.rollout import KeepLast
    >>> check_context_manager(KeepLast(n=1)).passed
    ('each token once', 'fits the context', 'the same again', 'can be filed')
    """
    subject = f"context manager {type(manager).__name__}"
    played = _play_manager(manager, turns, context, False, subject)
    for rollout in played:
        trained_once(rollout, subject)
        longest = max((len(c.tokens) for c in rollout.calls), default=0)
        require(longest <= context, subject, f"made a call of {longest} tokens for an engine of {context}")
    again = _play_manager(manager, turns, context, True, subject)
    for one, other in zip(played, again, strict=True):
        said = [[c.tokens.tolist() for c in r.calls] for r in (one, other)]
        require(
            said[0] == said[1] and other.fault == one.fault,
            subject,
            f"does another thing when a rollout is played again: {other.error or 'its calls differ'}",
        )
    numbers = {
        "calls": sum(len(r.calls) for r in played) / len(played),
        "rows": sum(len(samples(r)) for r in played) / len(played),
    }
    passed = ("each token once", "fits the context", "the same again", check_filed(manager, subject))
    if isinstance(manager, ReportsRollouts):
        passed = (*passed, _check_metrics(manager, played, subject))
    return Report(subject=subject, passed=passed, numbers=numbers)


def _check_metrics(part: ReportsRollouts, played: Sequence[Rollout], subject: str) -> str:
    """That metrics are numbers and depend on the rollouts alone."""
    first, again = (dict(part.rollout_metrics(played)) for _ in range(2))
    bad = [f"{n}={v!r}" for n, v in first.items() if not isinstance(v, int | float) or isinf(v)]  # pyright: ignore[reportUnnecessaryIsInstance]
    require(not bad, subject, f"reports {', '.join(bad)}; give finite numbers, or nan for what was not measured")
    require(repr(first) == repr(again), subject, f"reports {again} of the rollouts of which it reported {first}")
    return "metrics"


def check_sampler(spec: SamplerSpec, *, n: int = 6, turns: int = 6, context: int = 256) -> Report:
    """Holds a sampler to its promises, in conversations of ``turns`` turns with a scripted policy.

    ``n`` rollouts of each context with ids ``KEY/0 .. KEY/n-1``; every sampled token carries loss exactly once, those that
    rollouts share in one of them; no prefix exceeds the engine's context; built anew, and with the contexts in another order, it
    gives the same rollouts; it plays single rollouts for evaluations; and a run's file can say it.

    Raises:
        ContractError: it breaks one of these.

    >>> from assay.rollout import Branching
    >>> check_sampler(Branching()).numbers["shared"] > 0
    True
    """
    subject = f"sampler {type(spec).__name__}"
    asked = contexts_for()
    played = _collect_rollouts(spec, asked, n, turns, context, subject)
    ids = [f"{c.key}/{i}" for c in asked for i in range(n)]
    require([r.id for r in played] == ids, subject, f"gave rollouts {[r.id for r in played][:8]}; {ids[:8]} were asked for")
    sampled = {_identity(c) for r in played for c in r.calls if not c.shared}
    for rollout in played:
        trained_once(rollout, subject)
        for call in rollout.calls:
            require(len(call.tokens) <= context, subject, f"rollout {rollout.id} has a call of {len(call.tokens)} tokens")
            held = not call.shared or _owned(call, sampled)
            require(held, subject, f"rollout {rollout.id}: call {call.id} is shared, and no rollout sampled it")
    for what, order in (("built anew", asked), ("with the contexts in another order", asked[::-1])):
        again = {r.id: r for r in _collect_rollouts(spec, order, n, turns, context, subject)}
        same = all([c.tokens.tolist() for c in again[r.id].calls] == [c.tokens.tolist() for c in r.calls] for r in played)
        require(same, subject, f"gives other rollouts {what}")
    single = _collect_rollouts(spec.player, asked, 1, turns, context, subject)
    require(not any(c.shared for r in single for c in r.calls), subject, "its player shares calls between rollouts")
    numbers = {
        "shared": sum(c.shared for r in played for c in r.calls) / len(played),
        "calls": sum(len(r.calls) for r in played) / len(played),
    }
    passed = ("ids", "each token once", "fits the context", "the same again", "single rollouts", check_filed(spec, subject))
    if isinstance(spec, ReportsRollouts):
        passed = (*passed, _check_metrics(spec, played, subject))
    return Report(subject=subject, passed=passed, numbers=numbers)


def _identity(call: Call) -> tuple[bytes, bytes, bytes]:
    return call.prefix.tobytes(), call.completion.ids.tobytes(), call.completion.logp_engine.tobytes()


def _owned(call: Call, sampled: set[tuple[bytes, bytes, bytes]]) -> bool:
    """Whether a rollout sampled a shared call, or one that goes on behind its tokens."""
    prefix, ids, logp = _identity(call)
    return any(p == prefix and i.startswith(ids) and x.startswith(logp) for p, i, x in sampled)


def _collect_rollouts(
    spec: SamplerSpec, contexts: Sequence[Context], n: int, turns: int, context: int, subject: str
) -> list[Rollout]:
    try:
        return wait_for(spec.build(parts_for(turns, context)).collect(contexts, n))
    except AssayError as error:
        raise ContractError(f"{subject} raised {type(error).__name__}: {error}") from error


def trained_once(rollout: Rollout, subject: str) -> None:
    """Raises ContractError unless the rows of a rollout hold each token that it sampled exactly once with loss, as sampled, and
    those that it shares without.
    """
    found: Counter[tuple[int, int, float]] = Counter()
    for row in samples(rollout):
        call, logp = (row.columns[name].values[row.mask].tolist() for name in ("call", "logp_engine"))
        found.update(zip(call, row.ids[row.mask].tolist(), logp, strict=True))
    wanted: Counter[tuple[int, int, float]] = Counter()
    for call in (call for call in rollout.calls if not call.shared):
        ids = call.completion.ids.tolist()
        wanted.update(zip([call.id] * len(ids), ids, call.completion.logp_engine.tolist(), strict=True))
    extra, missing = found - wanted, wanted - found
    case = f"rollout {rollout.id}: (call, id, log-probability)"
    require(not missing, subject, f"{case} {sorted(missing)[:3]} carries no loss")
    require(not extra, subject, f"{case} {sorted(extra)[:3]} carries loss once too often")


def check_filed(part: object, subject: str) -> str:
    """Which promise about files held.

    Raises:
        ContractError: the part is a dataclass that a file cannot say, or that comes back as another.
    """
    try:
        table = to_dict(part)
        back = from_dict(object, table)
    except AssayError as error:
        raise ContractError(f"{subject}: a run's file cannot say it: {error}") from error
    require(back == part, subject, f"comes back from a file as {back!r}")
    return "can be filed"


def parts_for(turns: int = 6, context: int = 256, breaks: bool = False) -> SamplerParts:
    """What a sampler is tried with: a scripted policy of letters that ends some of its answers, in conversations of ``turns``."""
    weights = FakeLearner(_CODEC.size).weights | _ODDS
    return SamplerParts(
        engine=ScriptedEngine(_answer, _CODEC, weights, context),
        tokenizer=_CODEC,
        source=Talks(turns=turns, breaks=breaks),
        sampling=Sampling(max_new_tokens=_LIMIT, stop_ids=(_CODEC.eos,)),
        seed=0,
        max_turns=turns + 1,
        deadline=30.0,
    )


def contexts_for(count: int = 12) -> list[Context]:
    """As many contexts of `Talks`."""
    tasks = [
        Task(
            id=f"talk/{i}",
            domain="testing",
            arm="talk",
            level=1,
            split="train",
            index=i,
            public=FrozenMap({"prompt": f"{i}?"}),
        ).public_view()
        for i in range(count)
    ]
    return [Context(key=t.id, group=t.id, task=t, messages=t.messages) for t in tasks]


def _play_manager(manager: ContextManager, turns: int, context: int, breaks: bool, subject: str) -> list[Rollout]:
    parts = parts_for(turns, context, breaks)
    player = Player(
        engine=parts.engine,
        tokenizer=parts.tokenizer,
        source=parts.source,
        sampling=parts.sampling,
        seed=parts.seed,
        max_turns=parts.max_turns,
        manager=manager,
    )
    try:
        return wait_for(player.collect(contexts_for(), 1))
    except AssayError as error:
        raise ContractError(f"{subject} raised {type(error).__name__}: {error}") from error


def _answer(ask: Ask) -> list[int]:
    """Letters by the prompt and the seed; a third of the answers do not end by themselves."""
    rng = np.random.default_rng(int(digest([ask.ids.tolist(), ask.seed])[:15], 16))
    letters = [int(i) for i in rng.integers(2, 2 + 26, int(rng.integers(1, _LIMIT)))]
    return [*letters, _CODEC.eos] if rng.random() < 2 / 3 else [*letters, *[2] * _LIMIT]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talks(KeyValue):
    """Conversations that go on for ``turns`` turns whatever is said; where ``breaks``, each task's first environment breaks."""

    turns: int = 6
    breaks: bool = False
    _made: set[str] = field(default_factory=set[str], compare=False)

    def environment(self, world: TaskView) -> Environment:
        """One conversation."""
        first = world.id not in self._made
        self._made.add(world.id)
        return _Talk(self.turns, self.turns if self.breaks and first else 0)


class _Talk:
    def __init__(self, turns: int, fails: int) -> None:
        self._turns, self._fails, self._taken = turns, fails, 0

    async def start(self) -> Obs:
        """Nothing to show."""
        return Obs()

    async def step(self, action: str) -> Step:
        """The action again, in capitals."""
        self._taken += 1
        if self._taken == self._fails:
            raise OSError("planted: this environment breaks")
        return Step(obs=Obs((Message("tool", f"<{action.upper()}>"),)), done=self._taken >= self._turns)
