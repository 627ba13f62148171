"""Has a model seen these items? Scores of its answers and of its certainty, against items that it cannot have seen."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Request, Verifier
from assay.core.rollout import Completion, Ids, Sampling, Stop, ids_of
from assay.core.seeds import derive
from assay.core.task import Message, Task, question_text
from assay.core.util.event_loop import run_async
from assay.measure import Interval, auc, gap, mean_log_prob, min_k_prob, self_critique, zlib_ratio
from assay.rollout.decode_text import text_of, with_stop
from assay.train.models import model_folder
from assay.verify import ScoringPool, rollout_of

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.models.likelihood import LikelihoodReader, TextLikelihood

__all__ = ["ItemScores", "Membership", "MembershipProbe", "membership", "grade_answers"]

_CHANCE, _CLEAR = 0.5, 0.8
"""Areas under the curve: what says nothing, and what shows clearly that items were seen."""

Floats = NDArray[np.float64]

RETRY = "Solve the same problem once more, by a line of reasoning that is different from the one above.\n\n{question}"


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """What a model told of some items.

    Attributes:
        scores: name to ``[items]``; larger where an item is more likely to have been trained on.
        answers: its greedy answers.
        finished: whether each ended by itself.
        missing: names of the scores that could not be had, to why.
    """

    scores: Mapping[str, Floats]
    answers: tuple[str, ...]
    finished: tuple[bool, ...]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class MembershipProbe:
    """A model that is asked items, for scores of each.

    - ``self_critique``: the entropies of its greedy answer run as those of a second one, which was asked to go another way;
    - ``certainty``: minus the mean entropy of its greedy answer;
    - ``answer``, ``answer_min_k``: mean log-probability of the gold behind the prompt, and of its least likely tokens;
    - ``prompt``, ``prompt_min_k``: the same of the prompt;
    - ``zlib``: log-probability of prompt and gold over their compressed bytes.

    Those of the gold are there where every item has one that is text or a number; `ItemScores.missing` says why some are not.

    Attributes:
        model: a model folder in Hugging Face format, of any causal language model, or a run folder.
        retry: what is asked behind the first answer, with ``{question}`` and ``{answer}`` in it.
        max_new_tokens: longest answer; less where the context is full.
        share: of the tokens that count as the least likely ones.

    Raises:
        ConfigError: no room for an answer, or a ``retry`` with other names in braces.
    """

    model: Path | str
    retry: str = RETRY
    max_new_tokens: int = 512
    share: float = 0.2

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ConfigError(f"MembershipProbe.max_new_tokens={self.max_new_tokens}; use at least 1")
        try:
            self.retry.format(question="", answer="")
        except (KeyError, IndexError, ValueError) as error:
            raise ConfigError(
                f"MembershipProbe.retry={self.retry!r} cannot be filled in ({error}); use {{question}} and {{answer}}"
            ) from None

    @cached_property
    def _model(self) -> AnyModel:
        from assay.runtime import load_model

        return load_model(model_folder(Path(self.model)))

    @cached_property
    def _reader(self) -> LikelihoodReader:
        from assay.runtime.models.likelihood import LikelihoodReader

        return LikelihoodReader(self._model)

    def __call__(self, tasks: Sequence[Task]) -> ItemScores:
        """Asks every task.

        Raises:
            DataError: a prompt that leaves no room for an answer, or holds what the tokenizer lacks; names the task.
        """
        first = [self._render_prompt(task, task.public_view().messages) for task in tasks]
        answers = self._greedy(tasks, first)
        said = [text_of(self._model.tokenizer, a.ids, a) for a in answers]
        second = [self._render_prompt(t, self._asked_again(t, text)) for t, text in zip(tasks, said, strict=True)]
        again = self._greedy(tasks, second)
        once = [found.entropy for found in self._answer_likelihoods(first, [a.ids for a in answers])]
        twice = [found.entropy for found in self._answer_likelihoods(second, [a.ids for a in again])]
        likely, missing = self._likely(tasks, first)
        scores: dict[str, list[float]] = {
            "self_critique": [self_critique(a, b) for a, b in zip(once, twice, strict=True)],
            "certainty": [-float(a.mean()) if len(a) else 0.0 for a in once],
            **likely,
        }
        return ItemScores(
            {name: np.array(values) for name, values in scores.items()},
            tuple(said),
            tuple(a.stop is Stop.DONE for a in answers),
            missing,
        )

    def _likely(self, tasks: Sequence[Task], prompts: Sequence[Ids]) -> tuple[dict[str, list[float]], dict[str, str]]:
        """Scores of the text itself, and why some are missing."""
        golds = [task.private.get("answer") for task in tasks]
        bare = next((t for t, g in zip(tasks, golds, strict=True) if not isinstance(g, str | int | float)), None)
        short = next((t for t, p in zip(tasks, prompts, strict=True) if len(p) < 2), None)
        made: dict[str, list[float]] = {}
        missing: dict[str, str] = {}
        of_prompt = [] if short else [found.logp for found in self._reader.read(prompts)]
        if short:
            missing |= dict.fromkeys(("prompt", "prompt_min_k", "zlib"), f"the prompt of task {short.id!r} is a single token")
        else:
            made |= {
                "prompt": list(map(mean_log_prob, of_prompt)),
                "prompt_min_k": [min_k_prob(x, self.share) for x in of_prompt],
            }
        if bare:
            why = f"task {bare.id!r} has no answer that is text or a number"
            return made, missing | dict.fromkeys(("answer", "answer_min_k", "zlib"), why)
        behind = [found.logp for found in self._answer_likelihoods(prompts, list(map(self._encode_gold, tasks, map(str, golds))))]
        made |= {"answer": list(map(mean_log_prob, behind)), "answer_min_k": [min_k_prob(x, self.share) for x in behind]}
        if of_prompt:
            texts = [f"{_question(task)}\n{g}" for task, g in zip(tasks, golds, strict=True)]
            whole = [np.concatenate(pair) for pair in zip(of_prompt, behind, strict=True)]
            made["zlib"] = [zlib_ratio(x, text) for x, text in zip(whole, texts, strict=True)]
        return made, missing

    def _answer_likelihoods(self, prompts: Sequence[Ids], answers: Sequence[Ids]) -> list[TextLikelihood]:
        """What the model says of each answer behind its prompt, token by token; nothing of an empty one."""
        from assay.runtime.models.likelihood import TextLikelihood

        rows = [ids_of(np.concatenate(pair)) for pair in zip(prompts, answers, strict=True)]
        found = self._reader.read(rows)
        cut = [len(p) - 1 for p in prompts]
        return [TextLikelihood(r.logp[k:], r.entropy[k:]) for r, k in zip(found, cut, strict=True)]

    def _greedy(self, tasks: Sequence[Task], prompts: Sequence[Ids]) -> list[Completion]:
        from assay.runtime.engine.settings import engine_for

        engine, most = engine_for(self._model), self._model.shape.max_positions
        wanted = with_stop(Sampling(temperature=0.0, max_new_tokens=self.max_new_tokens), self._model.tokenizer)

        async def ask() -> list[Completion]:
            requests = [
                Request(
                    id=f"membership/{i}",
                    prompt=prompt,
                    seed=derive("membership", 0, "", i),
                    sampling=replace(wanted, max_new_tokens=min(wanted.max_new_tokens, most - len(prompt))),
                )
                for i, prompt in enumerate(prompts)
            ]
            return list(await asyncio.gather(*(engine.generate(request) for request in requests)))

        return run_async(ask())

    def _asked_again(self, task: Task, answer: str) -> list[Message]:
        question = _question(task)
        again = self.retry.format(question=question, answer=answer)
        return [*task.public_view().messages, Message("assistant", answer), Message("user", again)]

    def _render_prompt(self, task: Task, messages: Sequence[Message]) -> Ids:
        try:
            ids = self._model.tokenizer.render(messages)
        except DataError as error:
            raise DataError(f"task {task.id!r}: {error}") from None
        most = self._model.shape.max_positions
        if len(ids) >= most:
            raise DataError(
                f"task {task.id!r}: {len(ids)} tokens of prompt leave no room for an answer in the context of {most}; leave "
                "the item out, or give answers fewer tokens (max_new_tokens)"
            )
        return ids

    def _encode_gold(self, task: Task, gold: str) -> Ids:
        try:
            return ids_of([*self._model.tokenizer.encode(gold), self._model.tokenizer.eos])
        except DataError as error:
            raise DataError(f"task {task.id!r}, its answer: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """How a model takes items that it may have seen, against fresh ones.

    Attributes:
        items, fresh: numbers of both.
        scores: name to the probability that an item scores higher than a fresh one (`assay.measure.auc`); 1/2 says nothing.
        accuracy, fresh_accuracy: share of greedy answers that are right, of those that have a verdict.
        gap: the first minus the second.
        missing: what could not be had, scores and verdicts, to why.
    """

    items: int
    fresh: int
    scores: Mapping[str, Interval]
    accuracy: float
    fresh_accuracy: float
    gap: Interval
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def verdict(self) -> str:
        """What the numbers say, in a sentence: that it has seen the items, that nothing shows it, or that they are too few.

        Too few they are where no interval excludes 1/2 and each is wide enough to hold what a clear case would give.
        """
        high = sorted(name for name, area in self.scores.items() if area.low > _CHANCE)
        if high:
            return f"{', '.join(high)} of the items above those of fresh ones by more than chance: it may have seen them"
        if not self.scores or all(area.high >= _CLEAR for area in self.scores.values()):
            return f"too few to tell: {self.items} items and {self.fresh} fresh ones; give some hundred of each"
        return "no score shows that it has seen the items"


def membership(
    probe: MembershipProbe,
    items: Sequence[Task],
    fresh: Sequence[Task],
    verifier: Verifier,
    of_fresh: Verifier | None = None,
    *,
    deadline: float = 5.0,
    threshold: float = 1.0,
) -> Membership:
    """Asks a model items that it may have seen, and fresh ones of the same kind, and compares.

    Fresh items have to be drawn from the distribution of the others, or the two differ for reasons of their own: generated
    anew, or written after the model was made.

    Args:
        probe: the model, and how it is asked.
        items, fresh: single-answer tasks.
        verifier: judges the items.
        of_fresh: judges the fresh ones; the same one when None.
        deadline: seconds for one verdict.
        threshold: from which value on an answer is right.

    Raises:
        DataError: less than two items of either kind, or one that is both.
        RewardError: a verifier that fails on most answers.
    """
    both = {task.content for task in items} & {task.content for task in fresh}
    if both:
        task = next(t for t in fresh if t.content in both)
        raise DataError(f"{len(both)} items are also fresh ones, such as {task.id!r}: {_question(task)[:80]!r}; leave them out")
    told, other = probe(items), probe(fresh)
    known = grade_answers(verifier, items, told, deadline=deadline, threshold=threshold)
    new = grade_answers(of_fresh or verifier, fresh, other, deadline=deadline, threshold=threshold)
    shared = [name for name in told.scores if name in other.scores]
    missing = {**other.missing, **told.missing}
    for name, found, of in (("verdicts on items", known, items), ("verdicts on fresh ones", new, fresh)):
        if not len(found):
            raise DataError(f"the verifier failed on all {len(of)} answers, so that there are no {name}; is it the one for them?")
        if len(found) < len(of):
            missing[name] = f"the verifier failed on {len(of) - len(found)} of {len(of)} answers, which are left out"
    return Membership(
        items=len(items),
        fresh=len(fresh),
        scores={n: auc(told.scores[n], other.scores[n]) for n in shared},
        accuracy=float(known.mean()),
        fresh_accuracy=float(new.mean()),
        gap=gap(known, new),
        missing=missing,
    )


def grade_answers(
    verifier: Verifier, tasks: Sequence[Task], told: ItemScores, *, deadline: float = 5.0, threshold: float = 1.0
) -> Floats:
    """Whether each answer is right, 1 or 0; one on which the verifier fails is left out.

    Args:
        verifier: judges.
        tasks, told: items, and what a model told of them.
        deadline: seconds for one verdict.
        threshold: from which value on an answer is right.
    """
    ends = (Stop.DONE if done else Stop.LENGTH for done in told.finished)
    tried = [
        (task, rollout_of(task, text, id=str(i), stop=stop))
        for i, (task, text, stop) in enumerate(zip(tasks, told.answers, ends, strict=True))
    ]
    with ScoringPool(verifier, deadline) as pool:
        scores = pool.score(tried)
    return np.array([float(scores[r.id].primary >= threshold) for _, r in tried if scores[r.id].valid])


def _question(task: Task) -> str:
    return "\n".join(question_text(task.public_view().messages))
