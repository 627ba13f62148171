"""The math verifier: two tiers, a verdict in words, and faults that have owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from numbers import Real

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.exact import expected_answer
from assay.verify.math import large, symbolic
from assay.verify.math.equality import Rules, exact
from assay.verify.math.extract import PLACES, box_in, final_answer, locate_answer
from assay.verify.math.guards import tame
from assay.verify.math.phrases import is_prose
from assay.verify.math.read import read
from assay.verify.math.subprocess import judge_in_subprocess, rollout_from_texts
from assay.verify.math.values import Formula, Many, Opaque, Text, Value
from assay.verify.math.written import FORMS, written
from assay.verify.workers.fork import in_worker

__all__ = ["MathAnswer", "MathVerdict", "compare"]


class MathVerdict(StrEnum):
    """What is known of an answer.

    ``equal`` and ``different`` are certain. ``unparsed``: there is no answer, it cannot be read, or nothing installed can decide.
    ``timeout``: it had no verdict within the deadline, twice.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    UNPARSED = "unparsed"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class MathAnswer:
    """``correct`` is 1 when the rollout ended by itself and its final answer equals ``private["answer"]``, else 0.

    The exact tier reads both answers and compares them in exact arithmetic, in microseconds and without any library. What it
    leaves open goes to ``math-verify`` (``pip install 'assay-rl[math]'``), in a process that can be killed: the workers of a
    `ScoringPool`, or one of its own where the verifier is called by itself, from any thread.

    ``info`` has the ``verdict`` (`MathVerdict`), the ``tier`` that gave it (``exact`` or ``symbolic``), the ``answer`` as it was
    found, and a ``note`` where there is no certainty. An answer that hangs its judge twice is a ``policy`` fault and scores 0.
    Where only the symbolic tier could decide and it is not installed, the score is a ``verifier`` fault: nobody knows whether the
    answer is right.

    Attributes:
        look: where the answer may stand, in order (`PLACES`: ``box``, ``tag``, ``phrase``, ``line``).
        units: ``optional``: a unit that only one of the two has is passed over; ``required``: both have one or neither.
        percent: ``value``: ``50%`` is one half and nothing else; ``optional``: it is also 50.
        tolerance: rationals are equal when they differ by at most this share of the expected one; 0 for exactly.
        strict_tail: nothing but punctuation may follow the box or tag.
        symbolic: False: the exact tier alone. True: both. None: both where ``math-verify`` is installed.
        deadline: seconds for one answer in the symbolic tier.
        form: how a right answer must be written (`assay.verify.math.written.FORMS`): ``any`` way; as a ``number``, with nothing
            left to be calculated, so that repeating "3 + 4" does not answer it; ``simple``, without products of numbers;
            ``expanded``, without brackets around sums; as
            an ``interval`` or an inequality with the unknown alone.

    Raises:
        ConfigError: a setting that does not exist, or ``symbolic=True`` without ``math-verify``.
        DataError: the task has no answer.

    >>> MathAnswer(units="required").names
    ('correct',)
    """

    look: tuple[str, ...] = PLACES
    units: str = "optional"
    percent: str = "value"
    tolerance: float = 0.0
    strict_tail: bool = False
    symbolic: bool | None = None
    deadline: float = 2.0
    form: str = "any"

    def __post_init__(self) -> None:
        unknown = [place for place in self.look if place not in PLACES]
        if unknown or not self.look:
            raise ConfigError(f"MathAnswer.look={self.look}; name some of {', '.join(PLACES)}")
        for name, known in (("units", ("optional", "required")), ("percent", ("value", "optional")), ("form", FORMS)):
            if getattr(self, name) not in known:
                raise ConfigError(f"MathAnswer.{name}={getattr(self, name)!r}; it is one of {', '.join(known)}")
        if not 0.0 <= self.tolerance < 1.0:
            raise ConfigError(f"MathAnswer.tolerance={self.tolerance}; it is a share in [0, 1), 0 for exactly")
        if not self.deadline > 0.0:
            raise ConfigError(f"MathAnswer.deadline is in seconds and must be > 0, got {self.deadline}")
        if self.symbolic and not symbolic.available():
            raise ConfigError(f"MathAnswer.symbolic=True, but {symbolic.MISSING}")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct",)

    @property
    def trusted(self) -> bool:
        """Whether it may run in any process: the exact tier alone may."""
        return not self._second

    @property
    def _second(self) -> bool:
        return self.symbolic is not False and symbolic.available()

    @property
    def rules(self) -> Rules:
        """What counts as equal."""
        return Rules(self.units, self.percent, Fraction(self.tolerance)) if self._special else _PLAIN

    @property
    def _special(self) -> bool:
        return self.tolerance > 0.0 or self.units != "optional" or self.percent != "value"

    def prepare(self) -> None:
        """Import the symbolic tier, so that no answer pays for it."""
        if self._second:
            symbolic.prepare()

    def key(self, task: Task, rollout: Rollout) -> tuple[str, str | None]:
        """The question: what is expected, and what is answered."""
        return _expected_text(task), final_answer(rollout.text, self.look, self.strict_tail)

    def at_once(self, task: Task, rollout: Rollout) -> Score | None:
        """The verdict of the exact tier, and of everything that it leaves open and nobody else can decide; None where one can."""
        if rollout.stop is not Stop.DONE:
            return _score(MathVerdict.UNPARSED, "exact", None, "the rollout was cut off")
        gold = gold_of(_expected_text(task))
        answer = final_answer(rollout.text, self.look, self.strict_tail)
        if not answer:
            return _score(MathVerdict.UNPARSED, "exact", answer, "there is no answer")
        found = exact(gold, answer, self.rules, large.same)
        if not found and " " in answer and self._prose(gold, answer, rollout.text):
            return _score(MathVerdict.UNPARSED, "exact", answer, "a sentence that does not say in which place its answer stands")
        if found is not None:
            return self._found_score(found, "exact", answer)
        for whose, value in (("the gold", read(gold)), ("the answer", read(answer))):
            if isinstance(value, Opaque | Formula) and not tame(value.source):
                why = value.why if isinstance(value, Opaque) else "a formula that is too large to compute with"
                return _score(MathVerdict.UNPARSED, "exact", answer, f"{whose}: {why}")
        if self.symbolic is False:
            return _score(MathVerdict.UNPARSED, "exact", answer, "exact arithmetic cannot tell")
        return None if self._second else _score(MathVerdict.UNPARSED, "exact", answer, symbolic.MISSING, Fault.VERIFIER)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout; safe in any thread."""
        score = self.at_once(task, rollout)
        if score is not None:
            return score
        return self.decide(task, rollout) if in_worker() else judge_in_subprocess(self, task, rollout)

    def decide(self, task: Task, rollout: Rollout) -> Score:
        """The verdict with the symbolic tier, in this process: it may hang, or raise."""
        gold, answer = self.key(task, rollout)
        found = exact(gold_of(gold), answer or "", self.rules, symbolic.same)
        if found is None:
            return _score(MathVerdict.UNPARSED, "symbolic", answer, "neither tier can tell")
        return self._found_score(found, "symbolic", answer)

    def _prose(self, gold: str, answer: str, text: str) -> bool:
        """Whether an answer is a sentence that is not read, or words in no box or tag where mathematics is expected."""
        words = read(answer)
        if isinstance(words, Opaque):
            return is_prose(answer)
        if all(len(text.words.split()) < 3 for text in _texts(words)) or _texts(read(gold)):
            return False
        found = locate_answer(text, self.look, self.strict_tail)
        return found is not None and found[1] in ("phrase", "line")

    def _found_score(self, same: bool, tier: str, answer: str | None) -> Score:
        if same and not written(answer or "", self.form):
            return _score(
                MathVerdict.DIFFERENT, tier, answer, f"the value is right, but it is not written in the form {self.form!r}"
            )
        return _score(MathVerdict.EQUAL if same else MathVerdict.DIFFERENT, tier, answer)


def _texts(value: Value) -> list[Text]:
    """The words in a value, or in the items of a list."""
    items = value.items if isinstance(value, Many) else (value,)
    return [item for item in items if isinstance(item, Text)]


def _expected_text(task: Task) -> str:
    """The gold as text.

    Raises:
        DataError: there is none, or nothing that a text of mathematics could be.
    """
    text, gold = expected_answer(task), task.private["answer"]
    if not text.strip() or isinstance(gold, bool) or not isinstance(gold, str | Real):
        raise DataError(f"task {task.id!r} has the gold {gold!r}; give a number, or mathematics as text")
    return text


_PLAIN = Rules()
_TOLD = frozenset(verdict.value for verdict in MathVerdict)
_CORRECT = {"correct": 1.0}
_WRONG = {"correct": 0.0}


def _score(verdict: MathVerdict, tier: str, answer: str | None, note: str = "", fault: Fault = Fault.NONE) -> Score:
    info = {"verdict": verdict.value, "tier": tier, "answer": answer}
    if note:
        info["note"] = note
    if fault is Fault.VERIFIER:
        return Score(components={}, fault=fault, info=FrozenMap({**info, "error": note}))
    return Score(components=_CORRECT if verdict is MathVerdict.EQUAL else _WRONG, info=FrozenMap(info))


def gold_of(text: str) -> str:
    """The answer in what a data set calls the answer: a whole solution with a box, or with ``####`` before the number.

    >>> gold_of("2 + 2 = 4 #### 4"), gold_of("7")
    ('4', '7')
    """
    if "####" in text:
        return text.rpartition("####")[2].strip()
    return box_in(text) or text if "\\boxed" in text else text


def compare(gold: str, answer: str, settings: MathAnswer | None = None, *, look: Sequence[str] | None = None) -> MathVerdict:
    r"""Whether ``answer`` is ``gold``, for a trainer of your own: any thread, any process.

    Under asyncio, ``await asyncio.to_thread(compare, gold, answer)``.

    Args:
        gold: what is expected.
        answer: what the policy said, or the answer alone.
        settings: as in `MathAnswer`.
        look: instead of ``settings.look``.

    Raises:
        ConfigError: ``look`` names no place.

    >>> compare(r"\frac{1}{2}", r"It is \boxed{0.5}.").value, compare("(1,2)", "(2,1)").value
    ('equal', 'different')
    """
    judge = settings or _DEFAULT
    if look is not None:
        judge = MathAnswer(
            tuple(look),
            judge.units,
            judge.percent,
            judge.tolerance,
            judge.strict_tail,
            judge.symbolic,
            judge.deadline,
            judge.form,
        )
    text = final_answer(answer, judge.look, judge.strict_tail)
    found = exact(gold_of(gold), text, judge.rules, large.same) if text else None
    if found is not None and (found or " " not in (text or "")):
        return MathVerdict.EQUAL if found and written(text or "", judge.form) else MathVerdict.DIFFERENT
    told = str(judge(*rollout_from_texts(gold, answer)).info.get("verdict"))
    return MathVerdict(told) if told in _TOLD else MathVerdict.UNPARSED


_DEFAULT = MathAnswer()
