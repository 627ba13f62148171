"""Any verifier as a reward function of TRL, verl or OpenRLHF."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from assay.core.canon import FrozenMap, plain
from assay.core.errors import DataError, RewardError
from assay.core.protocols import Verifier
from assay.core.score import Score
from assay.core.task import Task
from assay.interop.import_rewards import GOLD_NAMES
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["OpenRlhfFunction", "TrlFunction", "VerlFunction", "as_openrlhf", "as_trl", "as_verl"]

_ENDS = ("\n", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>", "<eos>")
"""What OpenRLHF leaves at the end of a query, which it decodes with its special tokens."""


class _Function:
    """What the three have in common: a pool that survives the fork of a trainer's worker, and tasks made of rows."""

    def __init__(self, verifier: Verifier, gold: str | None, deadline: float, workers: int, on_fault: float | None) -> None:
        self.verifier = verifier
        self.__name__ = type(verifier).__name__  # trainers call the metric by it
        self._gold, self._deadline, self._workers, self._on_fault = gold, deadline, workers, on_fault
        self._pool = self._make_pool()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.verifier, self._gold, self._deadline, self._workers, self._on_fault)

    def close(self) -> None:
        """End the processes that judge."""
        self._pool.close()

    def _make_pool(self) -> ScoringPool:
        self._owner = os.getpid()
        return ScoringPool(self.verifier, self._deadline, workers=self._workers, refuse=False)

    def _scores(self, prompts: Sequence[Any], texts: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Score]:
        """A verdict each, in order."""
        if self._owner != os.getpid():  # a trainer forked its workers after this was made
            self._pool = self._make_pool()
        tasks = [self._task(i, prompt, row) for i, (prompt, row) in enumerate(zip(prompts, rows, strict=True))]
        items = [(task, rollout_of(task, text, id=task.id, group=task.id)) for task, text in zip(tasks, texts, strict=True)]
        found = self._pool.score(items)
        return [found[task.id] for task in tasks]

    def _task(self, index: int, prompt: Any, row: Mapping[str, Any]) -> Task:
        kept = _plain_part(row)
        name = self._gold or next((n for n in GOLD_NAMES if n in kept), None)
        if self._gold is not None and self._gold not in kept:
            raise DataError(f"no column {self._gold!r} with the gold; there are {sorted(kept)}")
        private = {"row": {"prompt": prompt, **kept} if isinstance(prompt, str) else kept} | (
            {"answer": kept[name]} if name else {}
        )
        public = {"prompt": prompt} if isinstance(prompt, str) else {"messages": plain(prompt)}
        return Task(
            id=f"item {index}",
            domain=str(kept.get("data_source", "row")),
            arm="row",
            level=0,
            split="train",
            index=index,
            public=FrozenMap(public),
            private=FrozenMap(private),
        )

    def _number(self, score: Score) -> float:
        """The reward: the verdict, or what stands for a fault.

        Raises:
            RewardError: a fault, and nothing stands for one.
        """
        if score.valid:
            return score.primary
        if self._on_fault is None:
            said = score.info.get("traceback", score.info.get("error", "no detail"))
            raise RewardError(f"no verdict ({score.fault} fault), and a fault is not a 0: {said}")
        return self._on_fault


class TrlFunction(_Function):
    """A verifier as TRL's ``reward_func(prompts, completions, **columns)``; None for a rollout without a verdict.

    TRL leaves None out of a rollout's reward, and warns where nothing is left. See `as_trl`.
    """

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """Judge a batch: texts, or conversations of which the last message is judged."""
        lists: dict[str, Any] = {
            n: v for n, v in columns.items() if isinstance(v, list | tuple) and len(cast("list[Any]", v)) == len(prompts)
        }
        rows: list[dict[str, Any]] = [{n: v[i] for n, v in lists.items() if n != "completion_ids"} for i in range(len(prompts))]
        scores = self._scores(prompts, [_answer_text(c) for c in completions], rows)
        return [score.primary if score.valid else None for score in scores]


class VerlFunction(_Function):
    """A verifier as verl's ``compute_score(data_source, solution_str, ground_truth, extra_info, ...)``. See `as_verl`."""

    def __call__(
        self, data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **more: Any
    ) -> float | dict[str, float]:
        """Judge one rollout."""
        row = {**more, **(extra_info or {}), "data_source": data_source, "ground_truth": ground_truth, "answer": ground_truth}
        prompt = row.get("question", row.get("prompt", ""))
        (score,) = self._scores([prompt], [solution_str], [row])
        value = self._number(score)
        if self._on_fault is None:
            return value
        return {"score": value, "acc": value, "fault": float(not score.valid)}


class OpenRlhfFunction(_Function):
    """A verifier as OpenRLHF's ``reward_func(queries, prompts, labels, ...)``. See `as_openrlhf`."""

    def __call__(self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any) -> dict[str, Any]:
        """Judge a batch: of each query what follows its prompt."""
        texts = [_after(prompt, query) for query, prompt in zip(queries, prompts, strict=True)]
        scores = self._scores(prompts, texts, [{"answer": label, "label": label} for label in labels])
        values = [self._number(score) for score in scores]
        faults = [float(not score.valid) for score in scores]
        return {"rewards": _tensor(values), "scores": _tensor(values), "extra_logs": {"fault": _tensor(faults)}}


def as_trl(verifier: Verifier, *, gold: str | None = None, deadline: float = 5.0, workers: int = 8) -> TrlFunction:
    """A verifier as a reward function for TRL's trainers.

    A fault is None, which TRL leaves out; a verifier that is not ``trusted`` judges in processes that can be killed. Make it
    before the model is loaded.

    Args:
        verifier: any.
        gold: the data set's column with the right answer; by default the first of `GOLD_NAMES`.
        deadline: seconds for one verdict.
        workers: most processes that judge at once.

    >>> from assay.verify import ExactMatch
    >>> as_trl(ExactMatch())(["1+1=", "1+2="], ["2", "2"], answer=["2", "3"])
    [1.0, 0.0]
    """
    return TrlFunction(verifier, gold, deadline, workers, None)


def as_verl(
    verifier: Verifier, *, gold: str | None = None, deadline: float = 5.0, workers: int = 8, on_fault: float | None = None
) -> VerlFunction:
    """A verifier for verl's trainers: its result is the ``compute_score`` of the file that verl loads.

    verl has no verdict that says "none". So a fault raises, which ends verl's step, unless ``on_fault`` says what stands for one;
    then the result is a dict that counts it: ``{"score", "acc", "fault"}``.

    Args:
        verifier, gold, deadline, workers: as for `as_trl`; the gold is ``ground_truth`` by default, else a key of ``extra_info``.
        on_fault: the reward of a rollout without a verdict; None to raise `RewardError`.

    >>> from assay.verify import ExactMatch
    >>> as_verl(ExactMatch())("math", "2", "2")
    1.0
    """
    return VerlFunction(verifier, gold, deadline, workers, on_fault)


def as_openrlhf(
    verifier: Verifier, *, gold: str | None = None, deadline: float = 5.0, workers: int = 8, on_fault: float | None = None
) -> OpenRlhfFunction:
    """A verifier for OpenRLHF: its result is the ``reward_func`` of the file that OpenRLHF loads.

    A fault raises (OpenRLHF logs it, and the rollout has no reward) unless ``on_fault`` says what stands for one; ``fault`` in
    the extra logs counts them. Values are tensors where torch is loaded, as it is there, and lists elsewhere.

    Args:
        verifier, deadline, workers, on_fault: as for `as_verl`.
        gold: ``"answer"`` or ``"label"``: both are OpenRLHF's label.

    >>> from assay.verify import ExactMatch
    >>> [float(x) for x in as_openrlhf(ExactMatch())(["1+1=2"], ["1+1="], ["2"])["rewards"]]
    [1.0]
    """
    return OpenRlhfFunction(verifier, gold, deadline, workers, on_fault)


def _answer_text(completion: Any) -> str:
    """What was said: a text, or the last message of a conversation."""
    return str(completion if isinstance(completion, str) else completion[-1]["content"])


def _after(prompt: str, query: str) -> str:
    """What a query says after its prompt, without the special token that ended it."""
    at = query.find(prompt)
    text = query if at < 0 else query[at + len(prompt) :]
    for end in _ENDS:
        text = text.removesuffix(end)
    return text


def _plain_part(row: Mapping[str, Any]) -> dict[str, Any]:
    """Of a row, what plain JSON can hold; images and objects of a trainer stay away."""
    kept: dict[str, Any] = {}
    for name, value in row.items():
        try:
            kept[name] = plain(value)
        except DataError:
            continue
    return kept


def _tensor(values: list[float]) -> Any:
    """A tensor inside a trainer that has loaded torch; a list elsewhere."""
    torch = sys.modules.get("torch")
    return torch.tensor(values) if torch else values
