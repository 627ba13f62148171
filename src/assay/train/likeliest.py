"""Decoding by perplexity: of some answers the one that a model finds likeliest, in place of what it would write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Ids, ids_of
from assay.core.task import Message

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["likeliest_answers"]


def likeliest_answers(
    model: AnyModel, prompts: Sequence[Sequence[Message]], answers: Sequence[Sequence[str]], *, per_token: bool = True
) -> list[str]:
    """``argmin_label NLL(label | prompt)``, prompt by prompt; the answer's end is a token of it.

    With ``per_token`` the negative log-likelihood is divided by the answer's tokens, which is the logarithm of its perplexity: a
    longer label is then not less likely for its length alone. Of equal ones the first in the alphabet is taken, so that the order
    in which labels are given says nothing.

    Args:
        model: asked at temperature 1.
        prompts: conversations, each ending with the user's turn.
        answers: for each prompt the texts to choose from.
        per_token: perplexity; otherwise the likelihood of the whole answer.

    Raises:
        ConfigError: not as many lists of answers as prompts, or an empty list.
        DataError: a prompt and an answer that do not fit into the model's context, or hold what its tokenizer lacks.

    Source: GenCLS++ (arXiv 2504.19898), decoding by perplexity over the labels.
    """
    if len(prompts) != len(answers) or not all(answers):
        raise ConfigError(
            f"likeliest_answers: {len(prompts)} prompts and {len(answers)} lists of answers, of lengths "
            f"{sorted({len(labels) for labels in answers})}; give each prompt one or more answers"
        )
    from assay.runtime.models.likelihood import LikelihoodReader

    tokenizer, most = model.tokenizer, model.shape.max_positions
    choices = [(at, label) for at, labels in enumerate(answers) for label in sorted(set(labels))]
    heads = [tokenizer.render(messages) for messages in prompts]
    rows: list[Ids] = []
    for at, label in choices:
        row = ids_of([*heads[at], *tokenizer.encode(label), tokenizer.eos])
        if len(row) > most:
            raise DataError(
                f"prompt {at} with the answer {label!r} has {len(row)} tokens, the model's context {most}; shorten either"
            )
        rows.append(row)
    # the first log-probability is of a row's second token: those of the answer are the last ones
    found = [read.logp[len(heads[at]) - 1 :] for (at, _), read in zip(choices, LikelihoodReader(model).read(rows), strict=True)]
    losses = [-float(np.mean(logp) if per_token else np.sum(logp)) for logp in found]
    best: dict[int, tuple[float, str]] = {}
    for (at, label), loss in zip(choices, losses, strict=True):
        best[at] = min(best.get(at, (loss, label)), (loss, label))
    return [best[at][1] for at in range(len(prompts))]
