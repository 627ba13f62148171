"""Memory that ran out: which errors of libraries say so, and in what words."""

from __future__ import annotations

from assay.core.errors import AssayError

__all__ = ["ran_out"]

_PHRASES = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "cannot allocate memory",
    "std::bad_alloc",
    "bad_alloc",
)


def ran_out(error: BaseException) -> str | None:
    """What a library says of memory that ran out, in one line; None of any other error, unless it was raised from such.

    >>> ran_out(MemoryError()), ran_out(RuntimeError("CUDA out of memory")), ran_out(ValueError("out of memory"))
    ('MemoryError', 'CUDA out of memory', None)
    """
    cause: BaseException | None = error
    while cause is not None:
        text = " ".join(str(cause).split())
        named = isinstance(cause, MemoryError) or type(cause).__name__ == "OutOfMemoryError"
        if named or (isinstance(cause, RuntimeError) and any(phrase in text.lower() for phrase in _PHRASES)):
            at = max(0, text.find("DefaultCPUAllocator"))  # behind a place in the library's source
            return (text[at:] or type(cause).__name__)[:200]
        cause = cause.__cause__ if isinstance(cause, AssayError) else None
    return None
