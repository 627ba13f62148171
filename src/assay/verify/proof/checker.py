"""What a checker of proofs must offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

__all__ = ["ProofCheck", "ProofChecker"]


@dataclass(frozen=True, slots=True)
class ProofCheck:
    """What a checker says of one proof.

    Attributes:
        verdict: ``proved``; ``wrong`` (a step does not follow, or it proves nothing); ``altered`` (it proves another statement);
            ``incomplete`` (it has gaps); ``illegal`` (it has what would make anything provable, or the checker unsafe);
            ``unparsed``; the limit that was exceeded; or ``infra``, which is no verdict.
        info: more about it, as plain values: ``why``, ``steps``, ``isolation``.

    >>> ProofCheck("incomplete").complete, ProofCheck("wrong").legal
    (False, True)
    """

    verdict: str
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def legal(self) -> bool:
        """Whether it proves what was asked by means that are allowed, as far as can be told."""
        return self.verdict not in ("illegal", "altered", "unparsed")

    @property
    def complete(self) -> bool:
        """Whether it was read to its end and has no gaps."""
        return self.verdict in ("proved", "wrong", "altered")


@runtime_checkable
class ProofChecker(Protocol):
    """Decides whether a text proves a statement.

    The statement, and all that the proof may build on, come from the task; nothing of it may be taken from the proof. A checker
    is a frozen dataclass, so that it has equality, a hash and a place in configurations.

    Attributes:
        fences: what fenced blocks of its language are tagged with.
    """

    fences: ClassVar[Sequence[str]]

    def check(self, asked: Mapping[str, Any], proof: str) -> ProofCheck:
        """Judges a proof. It takes bounded time and memory, whatever the text.

        Args:
            asked: the statement, as plain data, in the checker's own form.
            proof: what the model wrote.

        Raises:
            DataError: ``asked`` is not of the form that this checker needs. Never because of the proof.
            ConfigError: what the checker needs is not installed.
        """
        ...
