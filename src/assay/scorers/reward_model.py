"""A preference reward model on this machine as the reward (RLMT: of the answer behind the thought alone)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import State
from assay.core.score import Fault, Score
from assay.core.scoring import RolloutGroup, ScoreContext
from assay.core.task import Message

if TYPE_CHECKING:
    from assay.runtime.models.classifier import SequenceClassifier

__all__ = ["RewardModel", "RewardModelScorer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardModel:
    """The number that a sequence-classification model in Hugging Face format gives to prompt and answer.

    With ``answer_after`` the model sees what stands behind it alone, so that nothing in the thought can please it (RLMT,
    Bhaskar et al. 2025): altering the thought leaves the reward as it is. An answer without ``answer_after`` is scored whole,
    or with ``strict`` as ``placeholder``.

    Component ``reward``, raw, and no lower than ``lowest``. Reward models are over-optimised in time: watch it by ``Run.check``.

    Attributes:
        path: folder of model and tokenizer, on this machine.
        answer_after: what ends the thought, such as ``</think>``; empty to score all.
        answer_end: what ends the answer, such as ``</answer>``; empty for the end of the text.
        strict: whether an answer without ``answer_after`` is scored as ``placeholder``.
        placeholder: what is scored in its place.
        lowest: least reward, and that of a rollout that ended early because of what the policy said.
        device: ``auto`` for a GPU where there is one.
        batch: most conversations at once.
        max_tokens: most tokens of a conversation; what is more is cut off in front.

    Raises:
        ConfigError: no folder, or a number that cannot be.

    >>> RewardModel(path="models/reward", answer_after="</think>").answer_of("hm</think>Four.")
    'Four.'
    """

    path: str
    answer_after: str = ""
    answer_end: str = ""
    strict: bool = False
    placeholder: str = "I cannot answer."
    lowest: float = -20.0
    device: str = "auto"
    batch: int = 16
    max_tokens: int = 4096

    def __post_init__(self) -> None:
        if not self.path or self.batch < 1 or self.max_tokens < 1 or not abs(self.lowest) < math.inf:
            raise ConfigError(
                f"RewardModel(path={self.path!r}, batch={self.batch}, max_tokens={self.max_tokens}, lowest={self.lowest}): "
                "name a folder; use batch and max_tokens of at least 1, and a finite lowest reward"
            )
        if self.strict and not self.answer_after:
            raise ConfigError("RewardModel(strict=True) needs answer_after: say what must stand before an answer, as '</think>'")

    @property
    def models(self) -> tuple[str, ...]:
        """None: it has its own."""
        return ()

    @property
    def judges(self) -> tuple[str, ...]:
        """None."""
        return ()

    def build(self) -> RewardModelScorer:
        """The scorer; the model is read when it is first needed."""
        return RewardModelScorer(self)

    def answer_of(self, text: str) -> str:
        """What of a text the model sees."""
        if not self.answer_after:
            return text
        _, found, answer = text.rpartition(self.answer_after)
        if not found:
            return self.placeholder if self.strict else text
        return (answer.partition(self.answer_end)[0] if self.answer_end else answer).strip()


class RewardModelScorer:
    """`RewardModel` at work."""

    def __init__(self, spec: RewardModel) -> None:
        self.spec = spec
        self._model: SequenceClassifier | None = None

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """The model's numbers, all in one call.

        Raises:
            ConfigError: the folder holds no such model.
        """
        asked = [
            (*g.context.messages, Message("assistant", self.spec.answer_of(rollout.text)))
            for g in groups
            for rollout in g.rollouts
        ]
        found = iter(self._load_classifier().scores(asked))
        return [[self._score(next(found)) for _ in g.rollouts] for g in groups]

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """The lowest reward."""
        return {"reward": self.spec.lowest}

    def metrics(self) -> Mapping[str, float]:
        """None."""
        return {}

    def state_dict(self) -> State:
        """Empty: the model does not learn."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Nothing to restore."""

    def _score(self, value: float) -> Score:
        if not math.isfinite(value):
            return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": f"the reward model gave {value}"}))
        return Score(components={"reward": max(self.spec.lowest, value)})

    def _load_classifier(self) -> SequenceClassifier:
        if self._model is None:
            from assay.runtime.models.classifier import SequenceClassifier

            s = self.spec
            self._model = SequenceClassifier(Path(s.path), s.device, s.batch, s.max_tokens)
        return self._model
