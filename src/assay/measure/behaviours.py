"""Counts of four habits of reasoning in a text, by its words: verification, backtracking, sub-goals, backward chaining."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["BEHAVIOURS", "behaviour_rates", "count_behaviours"]

BEHAVIOURS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "verification": r"\b(?:let me (?:check|verify)|double[- ]check|check(?:ing)? (?:that|whether|this)\b|verify(?:ing)?\b"
        r"|check:)",
        "backtracking": r"\b(?:go(?:ing)? back\b|backtrack(?:ing)?\b|start(?:ing)? over\b|dead end\b"
        r"|let me try (?:again|another|a different)\b)",
        "subgoals": r"\b(?:sub-?goal\b|first, (?:I|we|let)|step \d+:|break (?:it|this) down\b|next, (?:I|we|let))",
        "backward_chaining": r"\b(?:work(?:ing)? backwards?\b|from the target\b|from the goal\b|to reach \S+, (?:I|we) need\b)",
    }.items()
}
"""Name to what shows it. Words, not understanding: a model that does the same in other words is not counted."""


def count_behaviours(text: str) -> dict[str, int]:
    """How often a text shows each habit.

    The sources classify answers by a language model; these are words that such prompts name, so counts are repeatable and
    low for a model that has words of its own.

    Source: Four Habits (arXiv 2503.01307), in part; ``count = |matches|``.

    >>> count_behaviours("First, I try 3 * 7 = 21. Let me check: 21 is not 24, go back. Working backwards, 24 / 3 = 8.")
    {'verification': 1, 'backtracking': 1, 'subgoals': 1, 'backward_chaining': 1}
    """
    return {name: len(pattern.findall(text)) for name, pattern in BEHAVIOURS.items()}


def behaviour_rates(texts: Sequence[str]) -> dict[str, float]:
    """Mean counts per text; zeros of none.

    >>> behaviour_rates(["go back, go back", "right"])["backtracking"]
    1.0
    """
    counts = [count_behaviours(text) for text in texts]
    return {name: sum(c[name] for c in counts) / max(len(counts), 1) for name in BEHAVIOURS}
