"""Whose reward function this is, told by the names of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from assay.core.errors import ConfigError, a_kind

__all__ = ["ACCEPTED", "Parameters", "Signature", "parameters_of", "signature_of"]


class Signature(StrEnum):
    """How a reward function is called."""

    ASSAY = "assay"
    PLAIN = "plain"
    VERL = "verl"
    VERL_BATCH = "verl-batch"
    TRL = "trl"
    OPENRLHF = "openrlhf"
    VERIFIERS = "verifiers"


ACCEPTED = {
    Signature.ASSAY: "(task, rollout) -> Score",
    Signature.PLAIN: "(prompt, completion, row) -> float | dict",
    Signature.VERL: "(data_source, solution_str, ground_truth, extra_info=None, ...) -> float | dict with 'score'",
    Signature.VERL_BATCH: "(data_sources, solution_strs, ground_truths, extra_infos, ...) -> list",
    Signature.TRL: "(prompts, completions, **columns) -> list of float | None",
    Signature.OPENRLHF: "(queries, prompts, labels, ...) -> tensor | list | dict with 'rewards'",
    Signature.VERIFIERS: "a rubric with funcs and weights, or a function of prompt, completion, answer, state, task, info",
}
"""Each signature in words, in the order in which they are looked for."""

_NEEDED = {
    Signature.ASSAY: {"task", "rollout"},
    Signature.PLAIN: {"prompt", "completion", "row"},
    Signature.VERL_BATCH: {"solution_strs", "ground_truths"},
    Signature.VERL: {"solution_str", "ground_truth"},
    Signature.OPENRLHF: {"queries", "prompts", "labels"},
    Signature.TRL: {"completions"},
}
_OF_ONE = {"prompt", "completion", "answer", "state", "task", "info"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a function.

    Attributes:
        names: those that have a name, in order.
        required: of these, the ones without a default.
        more: it takes any further keyword.
    """

    names: tuple[str, ...]
    required: tuple[str, ...]
    more: bool

    def select_accepted(self, offered: dict[str, Any]) -> dict[str, Any]:
        """Of the keywords offered, those that the function takes."""
        return offered if self.more else {name: value for name, value in offered.items() if name in self.names}


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """What a function can be called with.

    Raises:
        ConfigError: it does not say.
    """
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ConfigError(f"{function!r} does not say which parameters it takes; wrap it in a function of your own") from None
    named = [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return Parameters(
        names=tuple(p.name for p in named),
        required=tuple(p.name for p in named if p.default is p.empty),
        more=any(p.kind is p.VAR_KEYWORD for p in found),
    )


def signature_of(found: object, name: str) -> Signature:
    """Whose signature an object has.

    Args:
        found: a function, a callable object, or a rubric.
        name: what to call it in an error.

    Raises:
        ConfigError: nobody's; says what was found and what is accepted.
    """
    if hasattr(found, "funcs") and hasattr(found, "weights"):
        return Signature.VERIFIERS
    if not callable(found):
        raise ConfigError(f"{name} is {a_kind(found)}, which cannot be called; accepted are\n{_accepted_forms()}")
    names = set(parameters_of(found).names)
    for signature, needed in _NEEDED.items():
        if needed <= names:
            return signature
    if names and (names <= _OF_ONE or "completion" in names or "state" in names):
        return Signature.VERIFIERS
    shown = ", ".join(parameters_of(found).names) or "none that has a name"
    raise ConfigError(
        f"{name} takes the parameters ({shown}), which is no known signature; rename them, or say whose it is (--signature). "
        f"Accepted are\n{_accepted_forms()}"
    )


def _accepted_forms() -> str:
    return "\n".join(f"  {signature}: {words}" for signature, words in ACCEPTED.items())
