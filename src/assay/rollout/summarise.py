"""A conversation that has grown too long goes on from a summary that the policy itself wrote (SUPO)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.core.errors import ConfigError
from assay.core.protocols import AskPolicy, Conversation
from assay.core.rollout import Stop
from assay.core.task import Message

__all__ = ["Summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise:
    """Behind a conversation with ``tokens > share * context`` the policy is asked for a summary, and goes on from the task's
    opening and that (SUPO, arXiv 2510.06727).

    The summary is a call of the rollout: it stands in the row of the turns that it sums up, and is trained with the rollout's one
    advantage. The next call starts a row of its own. Without overflow a rollout is the same as without this manager.

    A rollout that would need more than ``most`` summaries ends with stop ``length``, and so does one whose summary is cut off or
    has no room. Combine it with `assay.objective.DropTruncated`, which takes such rollouts out of the loss: without it summaries
    collapse in the paper. Turns are limited by ``max_turns``.

    Attributes:
        context: tokens of the working context; 0 for the engine's whole context.
        share: of it that the conversation may fill (.95 in the paper).
        most: summaries of a rollout (7 in the paper, of a context of 4096).
        most_evaluated: those of a rollout in an evaluation, where a policy may go on for longer than it was trained to (23 after
            2 in the paper); None for ``most``.
        instruction: what asks for a summary.
        shown: how it is shown; ``{summary}`` stands for it.
        limit: most tokens of a summary; 0 for those of any call.

    Raises:
        ConfigError: a number out of range, or a ``shown`` without place for the summary.

    >>> Summarise(context=4096).working(budget=0, limit=0)
    3891
    """

    context: int = 0
    share: float = 0.95
    most: int = 7
    instruction: str = "Summarise what you have found out and done so far, and what is left to do. You will go on from it alone."
    shown: str = "Your summary of what was done so far:\n{summary}"
    limit: int = 0
    most_evaluated: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"Summarise.share={self.share}; use a share of the context in (0, 1]")
        if self.most < 1:
            raise ConfigError(f"Summarise.most={self.most}; allow at least 1 summary, or use KeepAll()")
        if self.most_evaluated is not None and self.most_evaluated < 1:
            raise ConfigError(
                f"Summarise.most_evaluated={self.most_evaluated}; allow at least 1 summary, or None for those of training"
            )
        for name in ("context", "limit"):
            if getattr(self, name) < 0:
                raise ConfigError(f"Summarise.{name}={getattr(self, name)}; use a number of tokens, or 0")
        if "{summary}" not in self.shown:
            raise ConfigError(f"Summarise.shown={self.shown!r}; write {{summary}} where the summary is to stand")

    def for_evaluation(self) -> Summarise:
        """The same with ``most_evaluated`` summaries."""
        return self if self.most_evaluated is None else replace(self, most=self.most_evaluated, most_evaluated=None)

    def working(self, budget: int, limit: int) -> int:
        """Tokens that the conversation may have; the engine's context is ``budget + limit``."""
        return int(self.share * (self.context or budget + limit))

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None:
        """The opening and a summary, where the conversation is too long; an answer that was cut off stays so."""
        if conversation.cuts or len(conversation.prefix) <= self.working(conversation.budget, conversation.limit):
            return None
        if conversation.rewrites >= self.most:
            return conversation.end()
        call = await ask(conversation, [Message("user", self.instruction)], self.limit or None)
        if call is None or call.completion.stop is not Stop.DONE:
            return conversation.end()
        return conversation.restart([Message("user", self.shown.replace("{summary}", call.text))])
