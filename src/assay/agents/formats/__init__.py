"""Wire formats of model providers as pure functions: a body to a request, an answer to a body or to events."""

from __future__ import annotations

from assay.agents.formats.anthropic import ANTHROPIC
from assay.agents.formats.chat import CHAT
from assay.agents.formats.completions import COMPLETIONS
from assay.agents.formats.gemini import GEMINI
from assay.agents.formats.responses import RESPONSES
from assay.agents.formats.wire_format import WireFormat

__all__ = ["ANTHROPIC", "CHAT", "COMPLETIONS", "GEMINI", "RESPONSES", "WireFormat"]
