"""Agent programs, unmodified: an endpoint that speaks their providers' protocols and records every sampled token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.agents.endpoint import AgentEndpoint
    from assay.agents.errors import AgentRequestError
    from assay.agents.messages import AgentAnswer, AgentMessage, AgentRequest, ToolCall
    from assay.agents.program import AgentProgram
    from assay.agents.program_sampler import AgentSampler, AgentTask
    from assay.agents.recorder import CallNode, CallRecorder
    from assay.agents.rendering import AgentRenderer
    from assay.agents.session import AgentSession, Budget

__all__ = [
    "AgentAnswer",
    "AgentEndpoint",
    "AgentMessage",
    "AgentProgram",
    "AgentRenderer",
    "AgentRequest",
    "AgentRequestError",
    "AgentSampler",
    "AgentSession",
    "AgentTask",
    "Budget",
    "CallNode",
    "CallRecorder",
    "ToolCall",
]

_HOME = {
    "endpoint": "AgentEndpoint",
    "errors": "AgentRequestError",
    "messages": "AgentAnswer AgentMessage AgentRequest ToolCall",
    "program": "AgentProgram",
    "program_sampler": "AgentSampler AgentTask",
    "recorder": "CallNode CallRecorder",
    "rendering": "AgentRenderer",
    "session": "AgentSession Budget",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
