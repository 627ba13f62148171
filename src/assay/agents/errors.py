"""What an endpoint refuses, before a wire format has written it in its own form."""

from __future__ import annotations

from assay.core.errors import AssayError

__all__ = ["AgentRequestError", "overflow"]


class AgentRequestError(AssayError, ValueError):
    """A request of an agent that is not answered.

    Attributes:
        status: HTTP status of the answer.
        code: for programs, such as ``context_length_exceeded``; empty for none.
        tokens, most: of a prompt that is too long, and what fits; 0 otherwise.

    >>> AgentRequestError("no", status=409).status
    409
    """

    def __init__(self, message: str, *, status: int = 400, code: str = "", tokens: int = 0, most: int = 0) -> None:
        super().__init__(message)
        self.status, self.code, self.tokens, self.most = status, code, tokens, most


def overflow(tokens: int, most: int) -> AgentRequestError:
    """A prompt of ``tokens`` that leaves no place for an answer in a context of ``most``: clients act on this very code.

    >>> overflow(600, 512).code
    'context_length_exceeded'
    """
    return AgentRequestError(
        f"This model's maximum context length is {most} tokens. However, your messages resulted in {tokens} tokens. Please "
        "reduce the length of the messages.",
        code="context_length_exceeded",
        tokens=tokens,
        most=most,
    )
