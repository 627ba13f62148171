"""A model over HTTP with OpenAI's protocol, to be tried: one running batch for all callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.publish.service.completion_request import ServedDefaults
    from assay.publish.service.policy import policy_endpoint, serve_policy
    from assay.publish.service.server import application, serve
    from assay.publish.service.text_generator import TextGenerator
    from assay.publish.service.text_stream import TextStream

__all__ = [
    "ServedDefaults",
    "TextGenerator",
    "TextStream",
    "application",
    "policy_endpoint",
    "serve",
    "serve_policy",
]

_HOME = {
    "completion_request": "ServedDefaults",
    "policy": "policy_endpoint serve_policy",
    "server": "application serve",
    "text_generator": "TextGenerator",
    "text_stream": "TextStream",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
