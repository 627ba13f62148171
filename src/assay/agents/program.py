"""The settings of an agent program that is trained: what is started, how it is told its task, where its answer stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from assay.agents.program_process import with_absolute_paths
from assay.agents.session import Budget
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.import_path import load_function
from assay.core.protocols import SamplerParts
from assay.core.rollout import Rollout

if TYPE_CHECKING:
    from assay.agents.program_sampler import AgentSampler

__all__ = ["AgentProgram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """Any program that asks a language model over HTTP, as it is: each rollout is one run of it, against an endpoint whose model
    is the policy.

    The program gets an address and a key of its own for each rollout, as ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``,
    ``ANTHROPIC_BASE_URL``, ``ANTHROPIC_API_KEY``, ``GOOGLE_GEMINI_BASE_URL``, ``GEMINI_API_KEY``, and its task as
    ``ASSAY_PROMPT``, as a JSON file ``ASSAY_TASK``, or where ``{prompt}`` or ``{task}`` stands in the command. Every sampled
    token of its calls is learned from once, with the score of the whole run.

    A run that is killed at its deadline, makes no call, or ends with an error is a fault of the infrastructure, and never a
    score. One that uses up its budget is told so and graded as it stands, with stop ``length``.

    Attributes:
        command: program and arguments; no shell reads them. ``{prompt}``, ``{task}`` (path of the JSON file), ``{url}``
            (OpenAI's, with ``/v1``), ``{root}`` (without) and ``{key}`` are replaced.
        function: a Python function in place of a program, sync or async, given an `AgentTask`; what it returns is the answer.
        answer: what is graded: text of the last ``call``, what it wrote to ``stdout``, or ``file:NAME`` in its folder.
        failed_exit: what an exit status other than 0 means behind at least one answer: ``infra``, a fault that no policy is
            scored for, or ``graded``, for programs that end so where the policy says nonsense.
        budget: calls, sampled tokens and concurrency of one run.
        timeout: seconds of one run.
        parallel: runs at once.
        one_by_one: calls are sampled one at a time, for engines whose rounding depends on what else is in a batch: such a run
            does not resume to the same digest without it.
        folder: where the folders of runs are made, named after their rollouts, so that prompts that show a path are the same
            again; a temporary one when empty. No two runs of a machine may share it.
        env: further environment variables. The program sees no others of this process but ``PATH``.

    Raises:
        ConfigError: neither a command nor a function, or both, or a setting out of range.

    >>> AgentProgram(command="python my_agent.py").answer
    'call'
    """

    command: str = ""
    function: Callable[..., Any] | None = None
    answer: str = "call"
    failed_exit: Literal["infra", "graded"] = "infra"
    budget: Budget = field(default_factory=Budget)
    timeout: float = 120.0
    parallel: int = 4
    one_by_one: bool = False
    folder: str = ""
    env: Mapping[str, str] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        kind, _, name = self.answer.partition(":")
        if self.answer not in ("call", "stdout") and (
            kind != "file" or not name.strip("./ ") or ".." in name or name.startswith("/")
        ):
            raise ConfigError(
                f"AgentProgram.answer={self.answer!r}; use 'call', 'stdout' or 'file:NAME', a file in the run's folder"
            )
        if self.failed_exit not in ("infra", "graded"):
            raise ConfigError(f"AgentProgram.failed_exit={self.failed_exit!r}; use 'infra' or 'graded'")
        if bool(self.command.strip()) == (self.function is not None):
            raise ConfigError(
                "AgentProgram has neither a command nor a function, or both; give one: command='python my_agent.py'"
            )
        if isinstance(self.function, str):
            object.__setattr__(self, "function", load_function(self.function, "AgentProgram.function"))
        if self.command:
            object.__setattr__(self, "command", with_absolute_paths(self.command))
        if not self.timeout > 0 or self.parallel < 1:
            raise ConfigError(
                f"AgentProgram(timeout={self.timeout}, parallel={self.parallel}); use seconds above 0, one run at once at least"
            )
        object.__setattr__(self, "env", FrozenMap({str(k): str(v) for k, v in dict(self.env).items()}))

    @property
    def max_turns(self) -> int | None:
        """The run's: an agent is held by its budget."""
        return None

    @property
    def player(self) -> AgentProgram:
        """The same: evaluations run the program too."""
        return self

    def build(self, parts: SamplerParts) -> AgentSampler:
        """The sampler."""
        from assay.agents.program_sampler import AgentSampler

        return AgentSampler(self, parts)

    def rollout_metrics(self, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """What a step's runs did.

        Returns:
            ``agent/calls`` per run; ``agent/spliced`` and ``agent/rendered``, the shares of calls behind a first one whose
            history came back in another form, or saying something else; ``agent/undelivered``, the share of answers that no agent
            read.
        """
        calls = [call for rollout in rollouts for call in rollout.calls]
        later = [call.history for call in calls if call.history]
        if not calls:
            return {}
        return {
            "agent/calls": len(calls) / len(rollouts),
            "agent/spliced": float(np.mean([h == "spliced" for h in later])) if later else 0.0,
            "agent/rendered": float(np.mean([h == "rendered" for h in later])) if later else 0.0,
            "agent/undelivered": float(np.mean([call.shared for call in calls])),
        }
