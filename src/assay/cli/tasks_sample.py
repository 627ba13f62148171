"""``assay tasks sample``: tasks of a family as JSON Lines, which are rows to train on once they hold their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.cli.options import parse
from assay.cli.sources import own_code, source
from assay.core.canon import plain
from assay.core.errors import AssayError, ConfigError, DataError
from assay.core.protocols import TaskSource, Verifier
from assay.core.task import Task

__all__ = ["sample"]

_FAMILY = {"positional": True, "arg": {"metavar": "FAMILY"}}
_N = {"arg": {"metavar": "N"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksSampleOptions:
    """Prints tasks of a family as JSON Lines, no question twice; the same command prints the same tasks everywhere.

    Attributes:
        name: a task family, one of its arms, or a suite ('assay tasks list' names them), rows.jsonl, puzzle.toml, or
            my_file.py:my_source.
        arm: only this arm; all in turn when not given.
        level: only this level; all in turn when not given.
        n: how many tasks.
        seed: another stream of tasks; the family's own when not given.
        split: train or test.
        form: how answers are asked for (tag, box, mark, plain); the family's own when not given.
        text: print each question and its answer to read, with what the policy is shown, instead of JSON.
        private: print answers, solutions, verifiers and all that only scorers and environments see, too: rows to train on.
    """

    name: str = field(metadata=_FAMILY)
    arm: str | None = field(default=None, metadata={"arg": {"metavar": "ARM"}})
    level: int | None = field(default=None, metadata=_N)
    n: int = field(default=10, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    seed: int | None = field(default=None, metadata=_N)
    split: str = field(default="train", metadata={"arg": {"metavar": "SPLIT"}})
    form: str | None = field(default=None, metadata={"arg": {"metavar": "FORM"}})
    text: bool = False
    private: bool = False

    def __post_init__(self) -> None:
        if self.text and self.private:
            raise ConfigError("--text is for reading, and shows answers; --private prints rows to train on: give one of them")


def sample(args: list[str]) -> int:
    """Prints each task as soon as it is drawn; where they run out behind the first, the work has failed."""
    from assay.tasks import in_turn

    own = parse(TasksSampleOptions, args, "assay tasks sample")
    if own.n < 1:
        raise ConfigError(f"-n {own.n}: sample at least one task")
    family = _shape_family(source(own.name), own)
    found = in_turn(family, own.n, own.split, (own.arm,) if own.arm else (), () if own.level is None else (own.level,))
    printed, secrets = 0, _Secrets(family) if own.private else None
    with own_code(own.name):
        try:
            for task in found:
                if own.text:
                    print(_readable(family, task))
                    printed += 1
                    continue
                head = {name: getattr(task, name) for name in ("id", "domain", "arm", "level", "split", "index")}
                secret: Mapping[str, Any] = secrets.of(task) if secrets else {}
                print(json.dumps(plain({**head, **task.public, **secret}), ensure_ascii=False))
                printed += 1
        except DataError as error:
            if not printed:
                raise
            raise AssayError(f"{error} ({printed} tasks were printed)") from error
    return 0


def _readable(family: TaskSource, task: Task) -> str:
    """A task for a reader: where it is from, what is asked, and the family's own answer, else what the verifier compares with."""
    from assay.train.metrics import gold_text, show_messages

    trace = family.trace(task, 0.0, np.random.default_rng(0))
    answer = ("answer", trace[-1].content) if trace else ("gold", gold_text(task))
    texts = [("prompt", show_messages(task.public_view().messages)), answer]
    lines = [f"{task.arm} level {task.level}  {task.split}  {task.id}"]
    for label, text in texts:
        first, *more = (text or "-").split("\n")
        lines += [f"  {label:<6}  {first}", *(f"  {'':<6}  {line}".rstrip() for line in more)]
    return "\n".join(lines) + "\n"


def _shape_family(family: TaskSource, own: TasksSampleOptions) -> TaskSource:
    """The family with the stream and the form that are asked for."""
    from assay.tasks import with_form, with_seed

    if own.seed is not None:
        family = with_seed(family, own.seed)
    if own.form is None:
        return family
    shaped = with_form(family, own.form)
    with own_code(own.name):
        _check_form(shaped, own.form, (own.arm,) if own.arm else tuple(shaped.arms()))
    return shaped


def _check_form(family: TaskSource, form: str, arms: Sequence[str]) -> None:
    """Raises ConfigError where the oracle's own answer in a form is not right: every answer to such a question would be wrong."""
    from assay.testing import ContractError
    from assay.testing.contracts import guard, verdict
    from assay.verify.rollouts import rollout_of

    with guard(family.verifier()) as pool:
        for arm in arms:
            if arm not in family.arms():
                return  # said where tasks are drawn
            task = family.task(arm, family.arms()[arm][0], "train", 0)
            trace = family.trace(task, 0.0, np.random.default_rng(0))
            if trace is None or family.environment(task.public_view()) is not None:
                continue
            answer = trace[-1].content
            try:
                score = verdict(family.verifier(), task, rollout_of(task, answer), again=False, pool=pool)
            except ContractError as error:
                raise ConfigError(f"--form {form}: {error}") from error
            if not score.valid or score.primary != 1.0:
                raise ConfigError(
                    f"--form {form}: the verifier of {arm} does not grade it: the family's own answer {answer[-80:]!r} scores "
                    f"{dict(score.components)}; give another form, or let verifier(form) read answers where the form has them"
                )


class _Secrets:
    """What only scorers and environments see of tasks, with the verifier as a row names it: so a row is judged as its task is."""

    def __init__(self, family: TaskSource) -> None:
        self._judge = family.verifier()
        self._specs: dict[int, tuple[Verifier, dict[str, Any] | None]] = {}  # kept, so that no other takes its number

    def of(self, task: Task) -> Mapping[str, Any]:
        """World and private part; ``verifier`` where a name stands for the task's own (`assay.tasks.judged_rows`)."""
        from assay.tasks.judged import judge_of, spec_of

        judge = judge_of(self._judge, task)
        if id(judge) not in self._specs:
            self._specs[id(judge)] = (judge, spec_of(judge))
        _, spec = self._specs[id(judge)]
        return {**({"world": task.world} if task.world else {}), **task.private, **({"verifier": spec} if spec else {})}
