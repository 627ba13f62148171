"""The settings of a sampler: what a stage says of how its rollouts come about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.import_path import load_part, name_of
from assay.core.optional_protocols import DiffersInEvaluation
from assay.core.protocols import ContextManager, SamplerParts, Tool
from assay.rollout.context import KeepAll
from assay.rollout.player import Player
from assay.rollout.tool_class import ToolClass, tools_from

__all__ = ["PlayerSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerSpec:
    """Each rollout on its own, from the context to its end: settings of a `Player`.

    Attributes:
        context: what of a conversation the policy goes on with.
        max_turns: assistant turns per rollout; None for ``Run.max_turns``.
        tools: that the policy may call in any task: functions with annotations and a docstring (`FunctionTool`), or classes whose
            public methods are such functions and of which each rollout has an instance of its own (`MethodTool`); as
            themselves or by import path, ``module:function``.

    Raises:
        ConfigError: ``max_turns`` below 1, or a tool that no model could call.

    >>> from assay.rollout import KeepLast
    >>> PlayerSpec(context=KeepLast(n=2)).player.max_turns is None
    True
    """

    context: ContextManager = field(default_factory=KeepAll)
    max_turns: int | None = None
    tools: tuple[Callable[..., Any], ...] = later(())

    def __post_init__(self) -> None:
        for i, named in enumerate(self.tools):
            tools_from(named, f"PlayerSpec.tools[{i}]")
        object.__setattr__(self, "tools", tuple(_name_tool(named) for named in self.tools))
        if self.max_turns is not None and self.max_turns < 1:
            raise ConfigError(f"PlayerSpec.max_turns={self.max_turns}; use at least 1, or leave it to Run.max_turns")

    def build(self, parts: SamplerParts) -> Player:
        """The player."""
        return Player(
            engine=parts.engine,
            tokenizer=parts.tokenizer,
            source=parts.source,
            sampling=parts.sampling,
            seed=parts.seed,
            max_turns=self.max_turns or parts.max_turns,
            manager=self.context,
            deadline=parts.deadline,
            pictures=parts.pictures,
            tools=self.all_tools(),
        )

    def for_evaluation(self) -> PlayerSpec:
        """The settings of evaluations: the same, unless the context manager has others there."""
        context = self.context
        return replace(self, context=context.for_evaluation()) if isinstance(context, DiffersInEvaluation) else self

    def all_tools(self) -> tuple[Tool, ...]:
        """The tools, each method of a class for itself."""
        return tuple(tool for i, named in enumerate(self.tools) for tool in tools_from(named, f"PlayerSpec.tools[{i}]"))

    @property
    def player(self) -> PlayerSpec:
        """The same settings."""
        return self


def _name_tool(given: Any) -> Any:
    """What a run's file says: the function, the class by its path, or the tools' own settings."""
    found = load_part(given, "PlayerSpec.tools") if isinstance(given, str) else given
    return ToolClass(name_of(found)) if isinstance(found, type) else found
