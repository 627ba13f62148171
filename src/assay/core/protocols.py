"""What the parts of a run promise each other. Packages implement them, recipes
put implementations together.

A protocol answers one question, in the order of the walk: what to practise, how it is posed, how the world answers, how tokens
are drawn, how good they are, what to try next, how to learn, where to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.group import Draw, Group, Outcome
from assay.core.learner import CarriesHeads, Learner, LossProgram, PassObserver, PerturbsWeights, Stats
from assay.core.manifest import Manifest
from assay.core.media import Media
from assay.core.rollout import Call, Completion, Ids, Rollout, Sampling, ToolResult
from assay.core.score import Score
from assay.core.task import Context, Message, Task, TaskView
from assay.core.thinking import Thinking
from assay.core.util.renamed import RenamedMembers

__all__ = [
    "AskPolicy",
    "BatchComposer",
    "BeginsTexts",
    "CallTokenizer",
    "CarriesHeads",
    "ChatTokenizer",
    "ContextManager",
    "Conversation",
    "Curriculum",
    "CurriculumSpec",
    "Engine",
    "EngineInfo",
    "EngineOfMany",
    "Environment",
    "GroupFilter",
    "Guidance",
    "GuidanceSpec",
    "IndexPolicy",
    "IndexPolicySpec",
    "Learner",
    "LossProgram",
    "Moment",
    "Obs",
    "PassObserver",
    "Posed",
    "PerturbsWeights",
    "Replay",
    "Request",
    "Restorable",
    "Sampler",
    "SamplerParts",
    "SamplerSpec",
    "ScheduleSpec",
    "ServesOldWeights",
    "SharesStates",
    "Snapshots",
    "State",
    "Stats",
    "Step",
    "SwapMode",
    "TaskSource",
    "Tokenizer",
    "Tool",
    "Tracker",
    "Verifier",
]

State = dict[str, Any]
"""A plain, JSON-able snapshot of whatever a stateful part must remember."""


# ---- what to practise -------------------------------------------------------------------------------------------------


@runtime_checkable
class TaskSource(Protocol):
    """A family of tasks: pure, with the split decided by a hash of the content."""

    @property
    def name(self) -> str: ...

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """Each arm with its levels, ascending."""
        ...

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th task of a stream; re-draws at most a bounded number of times to meet ``split``."""
        ...

    def verifier(self) -> Verifier:
        """The scorer of this family."""
        ...

    def environment(self, world: TaskView) -> Environment | None:
        """A fresh world for one rollout, or None where a single answer ends the task."""
        ...

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """An oracle's turns (assistant, tool, ...), each step corrupted with probability ``noise``; None: no oracle."""
        ...


class Verifier(Protocol):
    """Pure and synchronous: pools make it killable."""

    def __call__(self, task: Task, rollout: Rollout) -> Score: ...


# ---- how the world answers --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Obs:
    """What an environment shows: messages to append, and to whom.

    Attributes:
        messages: for the actor who acts next.
        actor: its name, in an environment of several roles; empty where there is one.
    """

    messages: tuple[Message, ...] = ()
    actor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An environment's answer to one action: what it shows, whether the episode ended, tool results."""

    obs: Obs = field(default_factory=Obs)
    done: bool = False
    results: tuple[ToolResult, ...] = ()


class Environment(Protocol):
    """Single use: no reset. Sees `TaskView`, never a private part.

    It answers equal actions with equal words, so that a rollout cut off can be played again up to where it stopped. Where
    several roles act in turn, each `Obs` names the actor who is to act next; each reads what it is shown at its own turns.
    """

    async def start(self) -> Obs: ...

    async def step(self, action: str) -> Step: ...


@runtime_checkable
class Restorable(Environment, Protocol):
    """An environment that can begin at a state which it once wrote: what a `Context` with a snapshot needs."""

    async def restore(self, snapshot: Any) -> Obs:
        """Instead of ``start``."""
        ...


@runtime_checkable
class Snapshots(Restorable, Protocol):
    """An environment that writes its state, as `Restorable.restore` reads it."""

    async def snapshot(self) -> Any:
        """What a fresh environment of the same task needs to go on here: numbers, strings, lists and dicts. It goes on too."""
        ...


class Tool(Protocol):
    """One callable inside an environment."""

    @property
    def schema(self) -> Mapping[str, Any]: ...

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult: ...


class Conversation(Protocol):
    """What the policy goes on with, as a context manager sees it: a value, whose methods give others.

    None of them tokenises what was sampled: ids go on as they are, or not at all.
    """

    @property
    def task(self) -> TaskView:
        """What is worked on."""
        ...

    @property
    def prefix(self) -> Ids:
        """``[P]`` ids of the next call, if nothing changes."""
        ...

    @property
    def answer_ids(self) -> Ids:
        """``[S]`` ids of the answer in progress, all that was sampled of it, forced ones first; empty between two turns."""
        ...

    @property
    def cuts(self) -> int:
        """How often the answer in progress reached the limit of a call; 0 between two turns."""
        ...

    @property
    def limit(self) -> int:
        """Most tokens of a call that begins an answer: those of `Sampling.max_new_tokens`."""
        ...

    @property
    def budget(self) -> int:
        """Tokens that the prefix may have for a call of `limit` tokens to fit into the engine's context."""
        ...

    @property
    def rewrites(self) -> int:
        """How often the conversation was rewritten in this rollout."""
        ...

    def turns(self) -> Sequence[tuple[Message, int]]:
        """Messages with their tokens, in order, the opening first; an answer in progress is none of them."""
        ...

    def keep(self, indices: Sequence[int]) -> Conversation:
        """Some of the turns alone, ascending."""
        ...

    def replace_messages(self, instead: Mapping[int, Message]) -> Conversation:
        """Other messages stand for some of the environment's answers, by their indices in `turns`."""
        ...

    def restart(self, messages: Sequence[Message]) -> Conversation:
        """The opening, then these messages; an answer in progress is given up."""
        ...

    def carry(self, ids: Ids, limit: int) -> Conversation:
        """The answer in progress goes on behind ``ids`` in place of all that was said of it, by at most ``limit`` tokens."""
        ...

    def end(self) -> Conversation:
        """The rollout ends here, with stop ``length``."""
        ...


class AskPolicy(Protocol):
    """Asks the policy itself, aside from what environments and verifiers read."""

    async def __call__(self, conversation: Conversation, messages: Sequence[Message], limit: int | None = None) -> Call | None:
        """What it answers to ``messages`` at this place of the conversation: a call of the rollout, trained like all others.

        Args:
            conversation: the place.
            messages: shown behind it.
            limit: most tokens of the answer; that of any call when None.

        Returns:
            The call, or None where the engine's context has no room for it.
        """
        ...


class ContextManager(Protocol):
    """What the policy may condition on next.

    It is asked at two moments: between two turns, when the environment has answered (``cuts`` is 0), and when an answer reached
    the limit of a call (``cuts`` counts how often). None leaves the conversation as it is: between turns it goes on, and an
    answer that was cut off stays cut off. It must do the same when asked the same: a rollout may be played again.
    """

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None: ...


# ---- how tokens are drawn ---------------------------------------------------------------------------------------------


class Tokenizer(Protocol):
    """Text to ids and back; ``encode`` never adds special tokens.

    Rendering is append-only: ``render(a + b)`` begins with ``render(a, answer=False)``, whatever comes in ``b``.
    """

    @property
    def size(self) -> int: ...

    @property
    def eos(self) -> int: ...

    def encode(self, text: str) -> Ids: ...

    def decode(self, ids: Sequence[int] | Ids) -> str: ...

    def render(self, messages: Sequence[Message], answer: bool = True) -> Ids:
        """Ids of whole turns; with ``answer``, up to where the assistant begins to speak."""
        ...


@runtime_checkable
class BeginsTexts(Tokenizer, Protocol):
    """A tokenizer that knows what stands in front of a plain text."""

    @property
    def bos_ids(self) -> Ids:
        """Special ids in front of a text: one in most families that have any, often none."""
        ...


@runtime_checkable
class ChatTokenizer(Tokenizer, Protocol):
    """A tokenizer that knows what its model's chat template writes around a turn that was sampled.

    ``render`` writes a whole conversation; it need not be append-only, because `follow` writes what comes behind an answer.
    """

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end an answer, `eos` first."""
        ...

    @property
    def thinking(self) -> Thinking | None:
        """The tags of the model's thoughts; None where answers are read as they are."""
        ...

    @property
    def opener(self) -> str:
        """What the template writes before the assistant's words."""
        ...

    def follow(self, history: Sequence[Message], messages: Sequence[Message], answer: bool = True) -> Ids:
        """Ids of ``messages`` behind a conversation whose last turn was sampled: `eos`, which ends that turn, comes first."""
        ...


@runtime_checkable
class CallTokenizer(ChatTokenizer, Protocol):
    """A tokenizer that writes an assistant's calls of tools in its model's own form."""

    def render_turn(self, history: Sequence[Message], message: Message) -> Ids:
        """Ids of an assistant's turn, text or calls, behind a conversation: what a model samples to say it, the end included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request(RenamedMembers):
    """One completion wanted: token in, token out.

    Attributes:
        id: unique while running.
        prompt: ``[P]`` ids.
        seed: 64-bit seed of the sampling noise.
        first: position of the first new token in the noise stream: how many tokens of the rollout were sampled before.
        sampling: how to draw.
        prefix_tokens: how many of the prompt's last tokens belong to the answer already: a text of ``Sampling.stop`` may begin in
            them.
        media: pictures that the prompt shows, in order; an engine that cannot see them must refuse.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"begun": "prefix_tokens"}

    id: str
    prompt: Ids
    seed: int
    sampling: Sampling
    first: int = 0
    prefix_tokens: int = 0
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What an engine says of itself.

    Attributes:
        version: weight version that it was given last.
        vocabulary: rows of its head.
        context: longest prompt plus completion.
        dtype: of the weights that it takes and serves, ``float32`` or ``bfloat16`` (`Manifest.round_to`).
        columns: token columns that its completions carry.
        digests: how its checksums are made, which those of a manifest must be to be compared: ``blake2b`` of bytes, as
            `array_digest`, or ``mixed``, which the device computes where the weights lie.
        media: kinds that it sees besides text, as ``image``.
    """

    version: int
    vocabulary: int
    context: int
    dtype: str = "float32"
    columns: tuple[str, ...] = ()
    digests: str = "blake2b"
    media: tuple[str, ...] = ()


class SwapMode(StrEnum):
    """What happens to running requests at a weight swap: finish first, or go on under new weights."""

    DRAIN = "drain"
    KEEP = "keep"


class Engine(Protocol):
    """Token in, token out."""

    async def generate(self, request: Request) -> Completion: ...

    async def abort(self, ids: Sequence[str]) -> None:
        """End running requests; each returns its tokens so far with stop ``partial``."""
        ...

    async def swap(self, manifest: Manifest, mode: SwapMode = SwapMode.DRAIN) -> None: ...

    async def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """``[len(row)]`` log-probabilities of each token given those before it, 0 first; temperature 1, the decode path."""
        ...

    async def checksums(self) -> Mapping[str, str] | None:
        """Digest per tensor of the arrays that the decode path really reads, under the names and as the digests of the manifest
        that they came from; a tensor that it cannot tell of is left out, and None stands for all of them.
        """
        ...

    def info(self) -> EngineInfo: ...


@runtime_checkable
class EngineOfMany(Engine, Protocol):
    """An engine that can be asked for many completions at once, and tells of them together."""

    async def generate_all(self, requests: Sequence[Request]) -> list[Completion]:
        """In the order of the requests."""
        ...


@runtime_checkable
class SharesStates(Engine, Protocol):
    """An engine whose computation of sampled tokens the learner's gradient pass can take over."""

    def record_states(self) -> AbstractContextManager[None]:
        """Inside, what is computed of sampled tokens is kept."""
        ...


@runtime_checkable
class ServesOldWeights(Engine, Protocol):
    """An engine that serves weights of some publications ago, on purpose."""

    @property
    def engine(self) -> Engine:
        """The engine that decodes."""
        ...

    def present(self) -> AbstractAsyncContextManager[None]:
        """Inside, the newest weights are served."""
        ...

    def save(self, folder: Path) -> None:
        """Writes the weights that wait for their turn."""
        ...

    def load(self, folder: Path) -> None:
        """Restores what `save` wrote."""
        ...


class Sampler(Protocol):
    """Contexts to rollouts, ``n`` each; a searcher is a sampler."""

    async def collect(self, contexts: Sequence[Context], n: int) -> list[Rollout]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerParts:
    """What a sampler is built from.

    Attributes:
        engine: draws tokens.
        tokenizer: of the policy.
        source: gives environments.
        sampling: how tokens are drawn.
        seed: all sampling noise derives from it and the rollouts' ids.
        max_turns: assistant turns per rollout, unless the sampler's settings say otherwise.
        deadline: seconds for one start or step of an environment.
        pictures: as of `assay.train.Run`.
    """

    engine: Engine
    tokenizer: Tokenizer
    source: TaskSource
    sampling: Sampling
    seed: int
    max_turns: int
    deadline: float
    pictures: Literal["refuse", "placeholder"] = "refuse"


class SamplerSpec(Protocol):
    """The frozen settings of a sampler."""

    def build(self, parts: SamplerParts) -> Sampler:
        """The sampler of one stage."""
        ...

    @property
    def max_turns(self) -> int | None:
        """Most assistant turns of a rollout; None for the run's."""
        ...

    @property
    def player(self) -> SamplerSpec:
        """What plays single rollouts, as evaluations do: without any search, in the same contexts as training."""
        ...


# ---- what to try next -------------------------------------------------------------------------------------------------


class Curriculum(Protocol):
    """Chooses arm and level, and where it likes the very task. Observes every graded group, learned from or not, exactly once."""

    def draw(self, n: int) -> list[Draw]: ...

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """All graded groups of a step, after credit."""
        ...

    def metrics(self) -> Mapping[str, float]: ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


class CurriculumSpec(Protocol):
    """The frozen settings of a curriculum; ``build`` gives the thing with state."""

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> Curriculum: ...


class IndexPolicy(Protocol):
    """Chooses the task of an (arm, level) stream where a draw leaves it open."""

    def next(self, arm: str, level: int) -> int:
        """The index of the next task."""
        ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


class IndexPolicySpec(Protocol):
    """The frozen settings of an index policy."""

    def build(self, seed: int) -> IndexPolicy: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a task is posed.

    Attributes:
        key: names the task in this step, unique in the run: context and group keys begin with it.
        step: steps of the run finished so far.
        seed: of the run.
    """

    key: str
    step: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Posed:
    """A context to be rolled out.

    Attributes:
        context: the start state. Contexts of a task with one ``group`` make one group, over rounds too.
        n: rollouts of it; None for the stage's group size.
        replaces: keys of groups of the same task that are no longer learned from, because this one is.
    """

    context: Context
    n: int | None = None
    replaces: tuple[str, ...] = ()


class Guidance(Protocol):
    """Poses a task round after round. Never sees the loss."""

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """What to roll out next.

        Args:
            task: with its private part, from which hints are made.
            history: the task's groups of this step so far, graded.
            moment: when.

        Returns:
            Contexts, or none when the task is done.
        """
        ...

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """All graded groups of a step, after credit."""
        ...

    def metrics(self) -> Mapping[str, float]: ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


class GuidanceSpec(Protocol):
    """The frozen settings of a guidance; ``build`` gives the thing with state."""

    def build(self, seed: int) -> Guidance: ...


class GroupFilter(Protocol):
    """Which graded rollouts of a group are learned from. Pure; what it leaves out is still observed."""

    def select(self, group: Group) -> Group | None:
        """The group, one with some of its rollouts, or None for no part of it."""
        ...


@runtime_checkable
class ScheduleSpec(Protocol):
    """How a setting of a stage changes: frozen and pure. What it must remember is a state, which the stage keeps."""

    @property
    def values(self) -> tuple[float, ...]:
        """The values that it goes through; all others lie between the least and the greatest of these."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the metrics that it looks at; none where it follows the number of the step."""
        ...

    def init(self) -> State:
        """The state before the first step."""
        ...

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        """The state after a finished step.

        Args:
            state: before; stays as it is.
            metrics: those of ``reads`` that the step has, or the evaluation behind it.
        """
        ...

    def at(self, step: int, state: State) -> float:
        """The value at a step of the stage, counted from 0."""
        ...

    def describe(self) -> str:
        """In a few words, for ``assay explain``."""
        ...


class Replay(Protocol):
    """Groups kept for later steps."""

    def put(self, groups: Sequence[Group], step: int) -> None: ...

    def sample(self, n: int) -> list[Group]: ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...


class BatchComposer(Protocol):
    """Groups to one optimiser batch: down-selects, mixes streams, names the denominator. Never computes advantages."""

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch, or None when nothing is left to learn from.

        ``experts`` are rollouts of others in contexts of ``groups``, under the same keys; their rows have stream ``expert``.
        """
        ...


# ---- where to report --------------------------------------------------------------------------------------------------


class Tracker(Protocol):
    """Receives named numbers per step."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...
