"""Where a right answer may have to stand in a text."""

from __future__ import annotations

__all__ = ["PLACE", "TEMPLATES"]

PLACE = "{answer}"
"""Where a form of answers has the answer."""

TEMPLATES = (
    PLACE,
    rf"\boxed{{{PLACE}}}",
    f"<answer>{PLACE}</answer>",
    f"#### {PLACE}",
    f"Answer: {PLACE}",
    f"The answer is {PLACE}.",
)
"""Where an answer may have to stand; the first that a verifier reads gold in is taken."""
