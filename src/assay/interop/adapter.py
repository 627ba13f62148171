"""From any object that judges answers to a verifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import Verifier
from assay.interop.import_rewards import OpenRlhfReward, RubricReward, TrlReward, VerlReward
from assay.interop.load_object import load
from assay.interop.signature import Signature, signature_of
from assay.verify.reward_function import RewardFunction

__all__ = ["adapt", "instance_of", "load_verifier"]


def adapt(
    found: object, *, signature: str | None = None, gold: str | None = None, chat: bool | None = None, name: str = "the verifier"
) -> Verifier:
    """A verifier from a reward function with anybody's signature.

    Args:
        found: assay's own verifier or its class; a function of (prompt, completion, row); a reward function of verl, TRL or
            OpenRLHF; a rubric of ``verifiers``, its class, or one of its functions.
        signature: whose it is (`Signature`); None to tell by the names of its parameters.
        gold: the column that holds the right answer, where its name is an unusual one.
        chat: hand over lists of messages instead of text.
        name: what to call it in an error.

    Raises:
        ConfigError: no known signature; says what was found and what is accepted.
        UnknownNameError: ``signature`` is none.

    >>> adapt(lambda data_source, solution_str, ground_truth: 1.0).names
    ('reward',)
    """
    made = instance_of(found, name)
    if signature is not None and signature not in list(Signature):
        raise UnknownNameError("signature", signature, list(Signature))
    match Signature(signature) if signature is not None else signature_of(made, name):
        case Signature.ASSAY:
            return cast("Verifier", made)
        case Signature.PLAIN:
            return RewardFunction(cast("Callable[..., Any]", made))
        case Signature.VERL:
            return VerlReward(made, gold=gold, chat=chat)
        case Signature.VERL_BATCH:
            return VerlReward(made, gold=gold, chat=chat, batch=True)
        case Signature.TRL:
            return TrlReward(made, gold=gold, chat=chat)
        case Signature.OPENRLHF:
            return OpenRlhfReward(made, gold=gold, chat=chat)
        case _:
            return RubricReward(made, gold=gold, chat=chat)


def load_verifier(name: str, *, signature: str | None = None, gold: str | None = None, chat: bool | None = None) -> Verifier:
    """The verifier called ``package.module:name`` or ``path/to/file.py:name``: `load` and `adapt`.

    Raises:
        ConfigError: it is not there, or has no known signature.

    >>> load_verifier("assay.verify:ExactMatch").names
    ('correct',)
    """
    return adapt(load(name), signature=signature, gold=gold, chat=chat, name=name)


def instance_of(found: object, name: str) -> object:
    """The object itself, and of a class its instance with default settings.

    Args:
        found: anything.
        name: what to call it in an error.

    Raises:
        ConfigError: the class needs settings.
    """
    if not isinstance(found, type):
        return found
    try:
        return cast("Callable[[], object]", found)()
    except Exception as error:
        raise ConfigError(f"{name} is a class that cannot be made without settings ({error}); name an instance of it") from error
