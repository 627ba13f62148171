"""Cog-Rethinker: tasks without success are decomposed, then a wrong answer is reflected on, beside earlier right answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.group import Group, Outcome
from assay.core.protocols import Moment, Posed, Replay, State
from assay.core.task import Task, question_text
from assay.guide.compose import Compose
from assay.guide.guidance import plain_context
from assay.guide.hints import hinted_context

__all__ = ["Rethink", "RethinkGuidance", "RewrittenAnswers", "rank_bm25"]

_STAGES = ("decompose", "reflect")
_KEY = "/rethink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rethink:
    """Cog-Rethinker's ladder: a task without success is posed again, to be decomposed, and then with a wrong answer to refine.

    Stage ``k + 1`` follows where ``max_i r_i = 0`` at stage ``k``. A later group takes the place of the one before, and is
    learned under the plain prompt, so evaluation needs one template. With ``imitate`` the plain group stays instead, and
    `RewrittenAnswers` makes demonstrations of the plain prompt of what the later stages got right: the paper's
    ``DAPO + lambda SFT`` is ``dapo() + Nll(streams=("expert",), coef=lambda)`` with that composer.

    A stage may show ``demos`` earlier right answers, of the questions that are most like the task's by BM25: to decompose, those
    of plain and of decomposed rollouts; to reflect, those of reflected ones. The buffers grow as the run goes on.

    Source: Cog-Rethinker (arXiv 2510.15979). UNSURE: the wording, lambda, and how many answers are kept and shown.

    Attributes:
        decompose: the last user turn of the second round, with ``{prompt}``, and with ``{demos}`` where some are shown.
        reflect: of the third, with ``{prompt}`` and, as ``{answer}``, a wrong answer, and with ``{demos}`` likewise.
        demos: right answers shown by a stage that has them; 0 for none.
        demo: one of them, with ``{prompt}`` and ``{answer}``.
        buffer: right answers kept of each stage, the newest.
        imitate: whether what the later stages got right becomes demonstrations, and enters no group.

    Raises:
        ConfigError: another text, or a number out of range.

    >>> Rethink(reflect="{prompt} not {answer}").reflect
    '{prompt} not {answer}'
    """

    decompose: str = "{prompt}\nSplit this into smaller problems, solve each, and combine what you found.\n"
    reflect: str = "{prompt}\nThis answer is wrong:\n{answer}\nSay where it fails, and give the right one.\n"
    demos: int = later(0)
    demo: str = later("{prompt}\n{answer}\n\n")
    buffer: int = later(256)
    imitate: bool = later(False)

    def __post_init__(self) -> None:
        shown = ("{demos}",) if self.demos else ()
        for name, text, words in (
            ("decompose", self.decompose, ("{prompt}", *shown)),
            ("reflect", self.reflect, ("{prompt}", "{answer}", *shown)),
            ("demo", self.demo, ("{prompt}", "{answer}")),
        ):
            for word in words:
                if text.count(word) != 1:
                    raise ConfigError(f"Rethink.{name}={text!r} must hold {word!r} exactly once")
        if self.demos < 0 or self.buffer < 1:
            raise ConfigError(f"Rethink.demos={self.demos} must be at least 0 and Rethink.buffer={self.buffer} at least 1")

    def build(self, seed: int) -> RethinkGuidance:
        """The guidance with its buffers."""
        return RethinkGuidance(self)


class RethinkGuidance:
    """The state of `Rethink`: for each stage the questions that were answered right, with the answer, newest last."""

    def __init__(self, spec: Rethink) -> None:
        self.spec = spec
        self._right: dict[str, dict[str, str]] = {stage: {} for stage in _STAGES}

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The prompt; after groups without success the next stage.

        Raises:
            DataError: the task has no user turn.
        """
        plain = plain_context(task, moment.key)
        if not history:
            return (Posed(context=plain),)
        number = len({r.context.key for g in history for r in g.rollouts})
        values = [v for group in history for v in group.values]
        if number > len(_STAGES) or not values or max(values) > 0.0:
            return ()
        stage, said = _STAGES[number - 1], [r.calls[-1].text for g in history for r in g.rollouts if r.calls]
        text = (self.spec.decompose if number == 1 else self.spec.reflect).replace("{answer}", "{hint}")
        text = text.replace("{demos}", self._show_right_answers(stage, question_text(plain.messages)))
        context = hinted_context(task, f"{moment.key}{_KEY}{number}", said[0] if said else "", text)
        context = replace(context, score_messages=plain.messages, tag=stage)
        return (Posed(context=context, replaces=() if self.spec.imitate else tuple(g.key for g in history)),)

    def _show_right_answers(self, stage: str, question: Sequence[str]) -> str:
        """The demonstrations as text, the likest last."""
        asked = "\n".join(question)
        kept = [(q, a) for q, a in self._right[stage].items() if q != asked]
        best = rank_bm25(asked, [q for q, _ in kept])[: self.spec.demos]
        # braces of data are no places to be filled in: each word is put in once, the answer last
        return "".join(
            self.spec.demo.replace("{prompt}", _plain(kept[i][0])).replace("{answer}", _plain(kept[i][1])) for i in reversed(best)
        )

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Keeps the first right answer of each group."""
        if not self.spec.demos:
            return
        for group in (o.group for o in outcomes):
            right = next((r for r, s in zip(group.rollouts, group.scores, strict=True) if s.valid and s.primary > 0.0), None)
            if right is None or not right.calls or right.context.tag not in ("plain", *_STAGES):
                continue
            kept = self._right["reflect" if right.context.tag == "reflect" else "decompose"]
            question = "\n".join(question_text(group.task.public_view().messages))
            kept.pop(question, None)
            kept[question] = right.calls[-1].text
            while len(kept) > self.spec.buffer:
                del kept[next(iter(kept))]

    def metrics(self) -> Mapping[str, float]:
        """``guidance/kept/STAGE``: right answers kept for each stage, where any are shown."""
        return {f"guidance/kept/{stage}": float(len(of)) for stage, of in self._right.items()} if self.spec.demos else {}

    def state_dict(self) -> State:
        """Questions and answers of each stage, oldest first."""
        return {stage: [[q, a] for q, a in of.items()] for stage, of in self._right.items()}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        self._right = {stage: {str(q): str(a) for q, a in state[stage]} for stage in _STAGES}


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenAnswers:
    """What `Rethink` got right at its later stages, as demonstrations of the plain prompt in the place of the group that failed.

    Right answers of these stages are rows of the stream ``expert``, under the plain prompt; wrong ones are left out, and neither
    enters a group or a statistic. A term such as ``Nll(streams=("expert",))`` learns from them.

    Source: Cog-Rethinker (arXiv 2510.15979), its supervised loss on rewritten answers.

    Attributes:
        inner: makes the batch.
    """

    inner: Compose = field(default_factory=Compose)

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no row with a loss token is left."""
        plain = [g for g in groups if not _later(g)]
        return self.inner.compose(plain, replay, step, [*experts, *(self.rewritten(g) for g in groups if _later(g))])

    def rewritten(self, group: Group) -> Group:
        """The right answers of a later stage under the key of the plain group; maybe none."""
        right = [i for i, s in enumerate(group.scores) if s.valid and s.primary > 0.0]
        rollouts = [group.rollouts[i] for i in right]
        return replace(
            group,
            key=_plain_key(group.key),
            rollouts=tuple(replace(r, context=replace(r.context, group=_plain_key(r.context.group))) for r in rollouts),
            scores=tuple(group.scores[i] for i in right),
        )


def rank_bm25(question: str, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> list[int]:
    """Places of the texts, the likest to a question first; of equal ones the later first.

    ``sum_w idf_w f_w (k1 + 1) / (f_w + k1 (1 - b + b n / mean n))`` over the words ``w`` of the question, ``f_w`` how often the
    text has it, ``n`` its words, ``idf_w = ln(1 + (N - N_w + .5) / (N_w + .5))`` with ``N_w`` of ``N`` texts that have it. A word
    is a run of letters, a digit or a sign.

    >>> rank_bm25("cats and dogs", ["two birds", "dogs bark", "cats chase dogs"])
    [2, 1, 0]
    """
    words = [Counter(_words(text)) for text in texts]
    mean = sum(sum(w.values()) for w in words) / max(1, len(words)) or 1.0
    scores = [0.0] * len(words)
    for word in dict.fromkeys(_words(question)):
        having = sum(word in w for w in words)
        idf = math.log(1.0 + (len(words) - having + 0.5) / (having + 0.5))
        for i, w in enumerate(words):
            size = k1 * (1.0 - b + b * sum(w.values()) / mean)
            scores[i] += idf * w[word] * (k1 + 1.0) / (w[word] + size)
    return sorted(range(len(words)), key=lambda i: (-scores[i], -i))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d|[^\w\s]", text.lower())


def _plain_key(key: str) -> str:
    """Of the group that a later stage followed, of the same role."""
    before, _, behind = key.rpartition(_KEY)
    return before + "".join(behind.partition("@")[1:])


def _later(group: Group) -> bool:
    return bool(group.rollouts) and group.rollouts[0].context.tag in _STAGES


def _plain(text: str) -> str:
    """Text without what a template would fill in."""
    return re.sub(r"\{(prompt|answer|hint|demos)\}", r"(\1)", text)
