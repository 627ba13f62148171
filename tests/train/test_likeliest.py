"""Decoding by perplexity: the likeliest of given answers, against the engine's own log-probabilities."""

from __future__ import annotations

from itertools import permutations

import pytest

from assay.core.errors import ConfigError, DataError
from assay.core.rollout import ids_of
from assay.core.task import Message
from assay.runtime import DecoderShape, char_tokenizer, init_model
from assay.runtime.models.any_model import AnyModel
from assay.runtime.models.likelihood import LikelihoodReader
from assay.train.likeliest import likeliest_answers

LABELS = ("1", "23", "45123", "5")


@pytest.fixture(scope="module")
def model() -> AnyModel:
    return init_model(DecoderShape(vocab_size=14, max_positions=16), char_tokenizer("0123456789"), seed=3)


def losses(model: AnyModel, prompt: str, per_token: bool) -> dict[str, float]:
    """One label at a time, token by token."""
    head = model.tokenizer.render([Message("user", prompt)])
    out: dict[str, float] = {}
    for label in LABELS:
        tail = [*model.tokenizer.encode(label), model.tokenizer.eos]
        (read,) = LikelihoodReader(model).read([ids_of([*head, *tail])])
        total = -sum(float(x) for x in read.logp[-len(tail) :])
        out[label] = total / len(tail) if per_token else total
    return out


@pytest.mark.parametrize("per_token", [True, False])
def test_it_is_the_label_with_the_least_loss_in_any_order(model: AnyModel, per_token: bool) -> None:
    prompts = ["7", "83", "96"]
    turns = [[Message("user", prompt)] for prompt in prompts]
    wanted = [min(LABELS, key=losses(model, prompt, per_token).__getitem__) for prompt in prompts]
    for order in list(permutations(LABELS))[::5]:
        assert likeliest_answers(model, turns, [order] * 3, per_token=per_token) == wanted


def test_without_a_mean_longer_labels_pay_for_their_length(model: AnyModel) -> None:
    found = {label: losses(model, "7", False)[label] for label in LABELS}
    assert found["45123"] == max(found.values())
    turns = [[Message("user", "7")]]
    assert likeliest_answers(model, turns, [("45123",)]) == ["45123"]


def test_what_cannot_be_asked_is_refused(model: AnyModel) -> None:
    turns = [[Message("user", "7")]]
    with pytest.raises(ConfigError, match="1 prompts and 2 lists"):
        likeliest_answers(model, turns, [("1",), ("2",)])
    with pytest.raises(ConfigError, match="one or more answers"):
        likeliest_answers(model, turns, [()])
    with pytest.raises(DataError, match=r"prompt 0 with the answer '1{20}' has \d+ tokens, the model's context 16"):
        likeliest_answers(model, turns, [("1" * 20,)])
