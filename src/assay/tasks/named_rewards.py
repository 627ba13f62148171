"""A reward or verifier that a person names, called exactly as a run on rows calls it."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any, cast

from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.interop.adapter import adapt, instance_of
from assay.interop.import_rewards import ForeignReward, RubricReward
from assay.interop.signature import Signature
from assay.tasks.rewards import ENVIRONMENTS, reward_verifier
from assay.verify.reward_function import RewardFunction
from assay.verify.user_reward import name_of

__all__ = ["describe_call", "named_verifier"]


def named_verifier(
    found: object,
    columns: Collection[str] | None = None,
    *,
    signature: str | None = None,
    gold: str | None = None,
    chat: bool | None = None,
    name: str = "the verifier",
) -> Verifier:
    """The verifier of a function or an object: what `assay.tasks.Rows` would train by, and what it would not, adapted.

    Args:
        found: what `reward_verifier` takes, or `assay.interop.adapt`: a verifier, a class, a rubric of the library verifiers.
        columns: fields of the rows; None where they are not known: then they have all that the function asks for.
        signature: whose it is; None to tell by the names of its parameters, ``plain`` for what `reward_verifier` tells.
        gold, chat, name: as in `assay.interop.adapt`.

    Raises:
        ConfigError, UnknownNameError: as `assay.interop.adapt`.
        DataError: it takes a field that the rows do not have.

    >>> named_verifier(lambda completion, answer: completion == answer).takes
    ('completion', 'answer')
    """
    made = instance_of(found, name)
    if signature not in (None, Signature.PLAIN) or not callable(made) or hasattr(made, "funcs"):
        return adapt(made, signature=signature, gold=gold, chat=chat, name=name)
    known = _needed_fields(made) if columns is None else columns
    try:
        verifier = reward_verifier(made, known)
    except ConfigError:  # a verifier, a function of the library verifiers, or one that adapt refuses too
        if signature is None:
            return adapt(made, gold=gold, chat=chat, name=name)
        raise
    if isinstance(verifier, ForeignReward) and verifier is not made:
        return adapt(made, gold=gold, chat=chat, name=name)
    return cast("Verifier", verifier)


def describe_call(verifier: Verifier) -> str:
    """How a verifier calls a person's function, in words; empty where it calls none.

    >>> describe_call(named_verifier(lambda completion, answer: 1.0))
    '<lambda>(completion, answer), by name, once for each answer'
    """
    if isinstance(verifier, RubricReward):
        return "as the library verifiers calls a rubric, with messages and state"
    if isinstance(verifier, ForeignReward):
        kind = type(verifier).__name__.removesuffix("Reward")
        return f"{name_of(verifier)} with the signature of {_OTHERS.get(kind, kind)}"
    if not isinstance(verifier, RewardFunction):
        return ""
    called = name_of(verifier)
    if verifier.batched:
        return f"{called}(prompts, completions, rows), with lists of several answers"
    if verifier.takes is None:
        return f"{called}(prompt, completion, row), once for each answer"
    taken = ", ".join("**row" if name == "**" else name for name in verifier.takes)
    return f"{called}({taken}), by name, once for each answer"


_OTHERS = {"Trl": "TRL, with lists", "Verl": "verl", "OpenRlhf": "OpenRLHF, with lists"}


def _needed_fields(found: Any) -> tuple[str, ...]:
    """Fields that rows must have for a function: all that it needs by name, and those that a case has in any case."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ("prompt", "answer")
    asked = [p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return ("prompt", "answer", *(name for name in asked if name not in ENVIRONMENTS and name != "rows"))
