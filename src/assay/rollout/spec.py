"""The settings of a sampler: what a stage says of how its rollouts come about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.protocols import ContextManager, SamplerParts
from assay.rollout.context import KeepAll
from assay.rollout.function_tool import FunctionTool, tool_from
from assay.rollout.player import Player

__all__ = ["PlayerSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerSpec:
    """Each rollout on its own, from the context to its end: settings of a `Player`.

    Attributes:
        context: what of a conversation the policy goes on with.
        max_turns: assistant turns per rollout; None for ``Run.max_turns``.
        tools: that the policy may call in any task: functions with annotations and a docstring (`FunctionTool`), as themselves
            or by import path, ``module:function``.

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
        tools = [tool_from(tool, f"PlayerSpec.tools[{i}]") for i, tool in enumerate(self.tools)]
        object.__setattr__(self, "tools", tuple(tool.function for tool in tools))
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
            tools=tuple(map(FunctionTool, self.tools)),
        )

    @property
    def player(self) -> PlayerSpec:
        """The same settings."""
        return self
