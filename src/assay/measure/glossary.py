"""The words of a report, explained in it for a reader who has never trained a model this way."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["WORDS", "words_in"]

WORDS: Mapping[str, str] = {
    "advantage": "How much better a rollout was than what was to be expected, mostly the other rollouts of its prompt: above 0 "
    "it is made more likely, below 0 less.",
    "arm": "A kind of task in a family; with its level it says what a task is like.",
    "base": "The model as reinforcement learning found it.",
    "clipped": "Tokens whose probability has changed so much since they were sampled that they are left out of this update.",
    "components": "The named numbers that a verifier gives; 'correct', or else 'reward', decides whether an answer is right.",
    "contaminated": "Training prompts that contain items of the evaluation, whose accuracy then is memory.",
    "doctor": "Rules that look for known failures in a run's curves.",
    "entropy": "How undecided the model is at each token, in nats: near 0 it always says the same, and stops exploring.",
    "fault": "A rollout that could not be judged, because the verifier or the machine failed. It is left out, never scored 0.",
    "gold": "What the task says is right.",
    "gradient norm": "The size of an update before it is clipped; jumps announce trouble.",
    "greedy": "Answers that take the most likely token each time: the same on every try.",
    "held-out": "Tasks that are never trained on.",
    "interval": "95 %: where the accuracy would lie on other tasks of the same kind, by resampling the tasks.",
    "KL": "How far the model's distribution has moved from the base, in nats per token.",
    "level": "How hard a task is.",
    "loss": "What the update minimises. In reinforcement learning it says little: judge by reward and accuracy.",
    "mismatch": "The difference between the probabilities that sampled a token and those that the training computes for it.",
    "paired": "Compared item by item, on the items that both have; so a difference needs fewer of them to show.",
    "proved": "After an update it was checked that the engine samples with exactly the trained weights.",
    "reward": "What a rollout earns, from 0 to 1 in most tasks.",
    "rollout": "One answer of the model to a task in training, with all its turns.",
    "sampled": "Answers that are drawn by their probability, as in training: different on every try.",
    "signal": "Share of prompts whose rollouts differ in reward. From the others a comparison within the group learns nothing.",
    "step": "One round of training: draw tasks, sample rollouts, judge them, update the weights.",
    "truncated": "Cut off at the limit on new tokens.",
    "verdict": "What the verifier says of an answer.",
    "verifier": "The program that judges answers.",
    "warm-up": "Supervised training on worked examples, before reinforcement learning.",
}
"""Word to its explanation, in the order of the alphabet."""


def words_in(text: str) -> dict[str, str]:
    """The words that a text uses, in any case and also in the plural, with their explanations.

    >>> list(words_in("Held-out accuracy of greedy answers; 3 ROLLOUTS."))
    ['greedy', 'held-out', 'rollout']
    """
    plain = text.lower().replace("held out", "held-out")
    return {word: meaning for word, meaning in WORDS.items() if re.search(rf"\b{re.escape(word.lower())}s?\b", plain)}
