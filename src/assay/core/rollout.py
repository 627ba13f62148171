"""What was sampled: completions, calls, and the rollout as a tree of calls.

Linear chat, tools, compaction, sub-agents, parallel calls, retries and branches are all trees. Text is a view of the
tokens, never their source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import RESERVED, Array, TokenColumn
from assay.core.errors import DataError
from assay.core.fields import later
from assay.core.media import Media
from assay.core.score import Fault
from assay.core.task import Context

__all__ = ["ASIDE", "Annealing", "Call", "Completion", "Ids", "Rollout", "Sampling", "Span", "Stop", "ToolResult", "ids_of"]

Ids = NDArray[np.int32]

ASIDE = "aside"
"""Role of calls in which the policy speaks to itself, as in a summary: no environment hears them, and they are no answer."""


def ids_of(values: object) -> Ids:
    """Token ids as a read-only int32 array."""
    array = np.array(values, dtype=np.int32).reshape(-1)
    array.setflags(write=False)
    return array


class Stop(StrEnum):
    """Why generation ended. ``done`` is the policy's own choice; ``length`` was cut off; ``partial`` was ended from outside."""

    DONE = "done"
    LENGTH = "length"
    PARTIAL = "partial"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens ``[start, end)`` of a completion were sampled by weight ``version``."""

    version: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealing:
    """A temperature that falls along a rollout: hot where its course is set, cold where it is carried out.

    Token ``t``, counted from 0 over all that the policy sampled of the rollout, has temperature
    ``max(1 + peak - exp(t / decay), least)``, which is ``peak`` at the beginning; the first ``start`` tokens have 1. It
    multiplies `Sampling.temperature`. A schedule of the stage, ``annealing_decay``, makes the fall slower over the steps.

    Source: exploratory annealed decoding, EAD (arXiv 2510.05251), and its code, whose sampler divides by ``20 d``: the ``d`` of
    25 there is a ``decay`` of 500 here, and grows by 100 a step, up to 800,000. Its code leaves the correction for the annealed
    sampler off; here every token is scored at the temperature that it was drawn at.

    Attributes:
        peak: temperature of the first token.
        least: temperature that it does not fall below.
        decay: tokens in which the exponential grows by a factor of e.
        start: first tokens at temperature 1, those of a template.

    Raises:
        DataError: a number out of range.

    >>> import numpy as np
    >>> Annealing(decay=1000.0, start=0).at(np.array([0, 100, 500, 1000])).round(4).tolist()
    [1.2, 1.0948, 0.5513, 0.1]
    """

    peak: float = 1.2
    least: float = 0.1
    decay: float = 500.0
    start: int = 10

    def __post_init__(self) -> None:
        if not 0.0 < self.least <= self.peak < math.inf:
            raise DataError(f"Annealing.least={self.least}, peak={self.peak}; use 0 < least <= peak")
        if not 0.0 < self.decay < math.inf or self.start < 0:
            raise DataError(f"Annealing.decay={self.decay} must be above 0 and Annealing.start={self.start} at least 0")

    def at(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Temperatures of tokens, by their number in the rollout."""
        # exp overflows behind 700 times the decay; long before, the temperature is the least
        fallen = 1.0 + self.peak - np.exp(np.minimum(tokens / self.decay, 50.0))
        return np.where(tokens < self.start, 1.0, np.maximum(fallen, self.least))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    r"""How tokens are drawn.

    Attributes:
        temperature: divides the logits; 0 takes the most likely token.
        max_new_tokens: cut-off for one call.
        stop_ids: token ids that end the answer; the stop token itself is part of the completion.
        top_p, top_k: truncation of the support; 1.0 and 0 mean none.
        min_p: tokens less likely than this share of the most likely one's probability are not drawn; 0.0 for none. Of these
            truncations it comes first, then ``top_k``, then ``top_p`` of what is left.
        stop: texts that end the answer: the token that completes one is the last of the completion, and what verifiers read ends
            before it. An engine that cannot read what it samples refuses them with a ConfigError.
        keep_support: each token of a truncated distribution carries the ids that it was drawn from, as the column ``support``
            (`assay.core.ragged`), and a learner scores it within them. A run sets this where its objective needs it.
        annealing: lets the temperature fall along a rollout; None for one temperature. Each token then carries its own, as the
            column ``temperature``, and a learner scores it there. An engine that cannot refuses it with a ConfigError.

    Raises:
        DataError: a number out of range, an empty stop text, or ``keep_support`` where nothing is truncated.

    Carries: DeepSeek-V3.2's sampling masks (arXiv 2512.02556), in part.

    >>> Sampling(stop=("\n",)).stop
    ('\n',)
    """

    temperature: float = 1.0
    max_new_tokens: int = 64
    stop_ids: tuple[int, ...] = ()
    top_p: float = 1.0
    top_k: int = 0
    stop: tuple[str, ...] = ()
    min_p: float = later(0.0)
    keep_support: bool = later(False)
    annealing: Annealing | None = later(None)

    def __post_init__(self) -> None:
        if not self.temperature >= 0.0:
            raise DataError(f"Sampling.temperature must be >= 0, got {self.temperature}")
        if self.max_new_tokens < 1:
            raise DataError(f"Sampling.max_new_tokens must be >= 1, got {self.max_new_tokens}")
        if not 0.0 < self.top_p <= 1.0:
            raise DataError(f"Sampling.top_p must be in (0, 1], got {self.top_p}")
        if not 0.0 <= self.min_p <= 1.0:
            raise DataError(f"Sampling.min_p must be in [0, 1], got {self.min_p}")
        if self.top_k < 0:
            raise DataError(f"Sampling.top_k must be >= 0 (0 means all), got {self.top_k}")
        given: Any = self.stop
        if isinstance(given, str) or not all(isinstance(text, str) and text for text in given):
            raise DataError(f"Sampling.stop={given!r}; give a tuple of texts, none of them empty")
        if self.keep_support and not self.truncated:
            raise DataError(
                "Sampling.keep_support=True, and every token can be drawn: leave it out, or set top_p, top_k or min_p"
            )

    @property
    def truncated(self) -> bool:
        """Whether some tokens cannot be drawn at all.

        >>> Sampling(top_p=0.95).truncated, Sampling(temperature=0.7).truncated
        (True, False)
        """
        return self.top_p < 1.0 or self.top_k > 0 or self.min_p > 0.0

    @property
    def whole(self) -> Sampling:
        """The same without truncation, at one temperature."""
        return replace(self, top_p=1.0, top_k=0, min_p=0.0, keep_support=False, annealing=None)

    def temperatures(self, first: int, count: int) -> NDArray[np.float32]:
        """``[count]`` the temperature of each token of a rollout, from its token ``first`` on.

        >>> [round(float(t), 3) for t in Sampling(temperature=0.5, annealing=Annealing(decay=10.0, start=1)).temperatures(0, 3)]
        [0.5, 0.547, 0.489]
        """
        if self.annealing is None:
            return np.full(count, self.temperature, np.float32)
        return (self.temperature * self.annealing.at(np.arange(first, first + count))).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """What an engine returns for one request.

    Attributes:
        ids: ``[T]`` int32, as sampled.
        logp_engine: ``[T]`` float32, log-probability under the distribution that was actually sampled.
        spans: weight versions; they partition ``[0, T)`` in order.
        stop: why it ended.
        sampling: the parameters used.
        duration: seconds from admission to the end.
        columns: further token columns, ``[T, *trailing]`` each (entropy, expert routing, ...).
        prompt: those of them that the engine tells of the prompt's tokens too, ``[P, *trailing]`` each.
    """

    ids: Ids
    logp_engine: NDArray[np.float32]
    spans: tuple[Span, ...]
    stop: Stop
    sampling: Sampling
    duration: float = 0.0
    columns: Mapping[str, TokenColumn] = field(default_factory=dict[str, TokenColumn])
    prompt: Mapping[str, TokenColumn] = field(default_factory=dict[str, TokenColumn])

    def __post_init__(self) -> None:
        n = len(self.ids)
        if len(self.logp_engine) != n:
            raise DataError(f"completion has {n} ids but {len(self.logp_engine)} log-probabilities")
        end = 0
        for span in self.spans:
            end = span.end if span.start == end < span.end else n + 1
        if end != n:
            raise DataError(f"weight-version spans {self.spans} do not partition [0, {n})")
        if not RESERVED.isdisjoint(self.columns):
            taken = sorted(RESERVED.intersection(self.columns))
            raise DataError(f"an engine column may not be called {taken}: every row has these of its own")
        for name, column in self.columns.items():
            if len(column.values) != n:
                raise DataError(f"column {name!r} has {len(column.values)} tokens, the completion has {n}")
        for name, column in self.prompt.items():
            mine = self.columns.get(name)
            if mine is None or (mine.dtype, mine.trailing) != (column.dtype, column.trailing):
                kind = f"{column.dtype}{list(column.trailing)}"
                raise DataError(f"the prompt has a column {name!r} of {kind}, and the completion has none of that kind")

    def versions(self) -> NDArray[np.int32]:
        """``[T]`` weight version of each token."""
        out = np.empty(len(self.ids), np.int32)
        for span in self.spans:
            out[span.start : span.end] = span.version
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        content: what the policy is shown.
        error: what went wrong, or None.
        duration: seconds.
        cost: of the call, in the tool's own unit.
        timed_out: it gave no answer before its deadline, and the policy is told so.
        cut: characters of the answer that were left out of ``content``.
    """

    content: str
    error: str | None = None
    duration: float = 0.0
    cost: float = 0.0
    timed_out: bool = False
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """One model call in a rollout.

    Attributes:
        id, parent: position in the tree; parents come first, roots have None.
        role, policy: who acts (``assistant``, an actor of the environment, or `ASIDE` where nobody else is to hear it), and
            which policy sampled it.
        prefix: ``[P]`` ids that the engine was given.
        completion: what it returned.
        text: the assistant's turn so far, decoded, without its stop token: what verifiers and environments read. Forced first
            tokens are part of it, and a call that continues a cut-off one repeats that one's text.
        thought: what stands in the turn's thinking tags, which ``text`` leaves out; None where there are none, or nobody asked.
        results: tool results that followed.
        media: pictures that the prefix shows, in order.
        placeholders: the policy read the placeholders of these pictures as text, and saw none of them.
        score_prefix: ids to learn under instead of ``prefix``, on calls that start a training row; None for the same.
        privileged_prefix: ids that a privileged teacher reads instead, on calls that start a training row; None for none.
        shared: belongs to another rollout, where it carries loss; here it is context or another role's turn, so that verifiers
            read the whole rollout. An answer that never reached the agent that asked for it is shared too: nobody acted on it.
        history: how the prefix of an agent's call came about from its earlier ones: ``exact`` and ``spliced``, the tokens of an
            earlier answer as they were sampled, which the agent sent back as they were told or in another form; ``prefix``,
            what it sent has these very tokens; ``rendered``, it says something else and was written anew. Empty otherwise.
        forced: how many of the last ids of ``prefix`` begin the answer because its context demands it (`Context.prefill`).
    """

    id: int
    parent: int | None
    prefix: Ids
    completion: Completion
    text: str
    role: str = "assistant"
    policy: str = "policy"
    thought: str | None = None
    results: tuple[ToolResult, ...] = ()
    media: tuple[Media, ...] = ()
    placeholders: bool = False
    score_prefix: Ids | None = None
    privileged_prefix: Ids | None = None
    shared: bool = False
    history: str = ""
    forced: int = later(0)

    @property
    def tokens(self) -> Ids:
        """``[P + T]`` prefix and completion."""
        out = np.concatenate([self.prefix, self.completion.ids], dtype=np.int32)
        out.setflags(write=False)
        return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Rollout:
    """One rollout at a task: a tree of calls.

    Attributes:
        id: unique in the run; results are keyed by it, never by position.
        context: the start state.
        calls: parents before children.
        stop: why the whole rollout ended.
        seed: 64-bit seed of its sampling noise.
        error: what failed, in words, when ``stop`` is ``error``.
        fault: whose doing that was: ``policy`` when what the policy said exceeded a limit of its environment, else ``infra``;
            ``none`` (also: not known, which counts as ``infra``) otherwise.
        role: whose rollout it is, where the environment names actors: it has the calls of all of them, those of others
            `Call.shared`.
        episode: what the rollouts of such actors have in common; empty where there is one.
        answer: what is graded where that is no call's text, as what an agent program printed; None for the last call's.

    Raises:
        DataError: calls out of order, or a fault without stop ``error``.
    """

    id: str
    context: Context
    calls: tuple[Call, ...]
    stop: Stop
    seed: int
    error: str | None = None
    fault: Fault = Fault.NONE
    role: str = ""
    episode: str = ""
    answer: str | None = None

    def __post_init__(self) -> None:
        if self.fault is not Fault.NONE and self.stop is not Stop.ERROR:
            raise DataError(f"rollout {self.id} stopped as {self.stop.value!r} with a {self.fault.value} fault; use stop 'error'")
        for position, call in enumerate(self.calls):
            if call.id != position:
                raise DataError(f"rollout {self.id}: call {call.id} stands at position {position}")
            if call.parent is not None and not 0 <= call.parent < call.id:
                raise DataError(f"rollout {self.id}: call {call.id} has parent {call.parent}; parents come first")

    @property
    def text(self) -> str:
        """The answer: text of its last call that is no aside, unless something else is graded."""
        if self.answer is not None:
            return self.answer
        for call in reversed(self.own):
            if call.role != ASIDE:
                return call.text
        return ""

    @property
    def own(self) -> tuple[Call, ...]:
        """The calls of its role: all of them, where there are no roles."""
        return tuple(c for c in self.calls if c.role in (self.role, ASIDE)) if self.role else self.calls

    @property
    def length(self) -> int:
        """Sampled tokens over all its own calls, those of a beginning that it shares among them."""
        return sum([len(c.completion.ids) for c in (self.own if self.role else self.calls)])

    def column(self, name: str) -> Array:
        """``[length, *trailing]`` the sampled tokens' values of one engine column, its own calls concatenated.

        Raises:
            DataError: a call that sampled tokens has no such column, or nothing was sampled.
        """
        sampled = [c.completion for c in self.own if len(c.completion.ids)]
        if not sampled or not all(name in c.columns for c in sampled):
            known = sorted({n for c in sampled for n in c.columns})
            raise DataError(f"rollout {self.id}: not every call has a column {name!r}; {len(sampled)} calls have {known}")
        return np.concatenate([c.columns[name].values for c in sampled])

    def __repr__(self) -> str:
        return f"Rollout({self.id!r}, {len(self.calls)} calls, {self.length} tokens sampled, {self.stop.value})"
