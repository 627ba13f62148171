"""Rollouts of tasks: one engine, one environment each, all on one event loop, token in and token out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.rollout.branching import Branching, BranchingSampler
    from assay.rollout.chunks import Chunks
    from assay.rollout.context import HideOlder, KeepAll, KeepLast
    from assay.rollout.critical_tokens import CriticalTokens, CriticalTokenSampler
    from assay.rollout.decode_text import AnswerReader
    from assay.rollout.function_tool import FunctionTool
    from assay.rollout.player import Player
    from assay.rollout.positions import context_after, states_between
    from assay.rollout.spec import PlayerSpec
    from assay.rollout.summarise import Summarise
    from assay.rollout.tool_class import MethodTool
    from assay.rollout.tool_limits import ToolLimits, tool

__all__ = [
    "AnswerReader",
    "Branching",
    "BranchingSampler",
    "Chunks",
    "CriticalTokenSampler",
    "CriticalTokens",
    "FunctionTool",
    "HideOlder",
    "KeepAll",
    "KeepLast",
    "MethodTool",
    "Player",
    "PlayerSpec",
    "Summarise",
    "ToolLimits",
    "context_after",
    "states_between",
    "tool",
]

_HOME = {
    "branching": "Branching BranchingSampler",
    "chunks": "Chunks",
    "context": "HideOlder KeepAll KeepLast",
    "critical_tokens": "CriticalTokenSampler CriticalTokens",
    "function_tool": "FunctionTool",
    "player": "Player",
    "positions": "context_after states_between",
    "decode_text": "AnswerReader",
    "spec": "PlayerSpec",
    "summarise": "Summarise",
    "tool_class": "MethodTool",
    "tool_limits": "ToolLimits tool",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
